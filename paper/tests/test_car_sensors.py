"""The car: its cells, its analysis on records with a known answer, both rules against brute force, one real run."""

import json
from itertools import combinations

import numpy as np
import pytest
from policyspace_paper import car
from policyspace_paper.car import BY, analyse, not_owned, outcomes
from policyspace_paper.estimates import rates
from policyspace_paper.execution import Record, RunSize
from scipy.stats import chi2

from policyspace import GaussianLinear, GaussianNetwork, Sample, likelihood_of
from policyspace.families import NetworkLikelihood
from policyspace.inference import UniversalTest, WilksTest
from policyspace.inference import search_supports as by_closed_testing
from policyspace.report import save

OWNED = ["speed", "left"]
CELLS = car.EXPERIMENT.cells


def record(seed, n, said, failed=False, procedure="ours", free=(3.0, -1.0)):
    """`said` is what each test says: (Rule 1, Rule 2); `free` is λ of the two sensors that are not owned."""
    statistics = {"speed": 50.0, "right": free[0], "back": free[1]}
    answers = {test: {"rule_1": one, "rule_2": two, "statistics": statistics} for test, (one, two) in said.items()}
    setting = {"procedure": procedure, "seed": seed, "num_episodes": n, "significance": 0.1}
    return Record("car", setting, "0", 1.0, {"owned": OWNED, "failed": failed} | answers)


def ours(wilks_1, wilks_2, universal_1, universal_2):
    universal = universal_1, universal_2
    return {"wilks": (wilks_1, wilks_2), "universal": universal, "lean": universal}


def known_records():
    right, wrong = OWNED, [*OWNED, "right"]
    return [
        record(0, 10, ours([wrong], wrong, [["speed"], ["left"]], [])),
        record(1, 10, ours([wrong, right], right, [right, ["left", "right"]], ["left"])),
        record(0, 300, ours([wrong], wrong, [right], right)),
        record(1, 300, ours([right], wrong, [right], right)),
        record(2, 300, ours([["right"]], ["right"], [[]], []), failed=True),
    ]


def test_shares_are_what_was_counted():
    found = outcomes(known_records())
    correct, among, false = (
        {key: (rate.count, rate.num_runs) for key, rate in rates(found, what, *BY).items()}
        for what in ("correct", "among", "false")
    )
    assert len(correct) == len(among) == len(false) == 18
    first = False, 10, "rule_1", "wilks"
    assert (correct[first], among[first], false[first]) == ((0, 2), (1, 2), (1, 2))
    second = False, 10, "rule_2", "wilks"
    assert (correct[second], among[second], false[second]) == ((1, 2), (1, 2), (1, 2))
    other = False, 10, "rule_1", "universal"  # what is in some of the supports only is not said to be controlled
    assert (correct[other], among[other], false[other]) == ((0, 2), (1, 2), (0, 2))
    assert correct[False, 300, "rule_2", "universal"] == (2, 2)
    assert correct[True, 300, "rule_2", "universal"] == (0, 1)
    assert false[True, 300, "rule_1", "universal"] == (0, 1)
    assert false[True, 300, "rule_1", "wilks"] == (1, 1)


def test_the_page_says_what_the_records_say(tmp_path):
    main, errors, law = analyse(known_records())
    assert main.verdict == "too few runs to say" and "1 of 3 drivers failed to learn" in main.why
    assert errors.verdict == law.verdict == "our own"
    assert "full maximisation: Rule 1 0.500" in errors.why
    assert len(main.rows) == len(errors.rows) == 18
    assert main.rows[-1][0] == "1 that failed to learn"
    assert json.loads(json.dumps(main.numbers))["num_failed"] == 1
    for one, again in zip((main, errors, law), analyse(known_records()), strict=True):
        save(one.figure, tmp_path / "a.svg")
        save(again.figure, tmp_path / "b.svg")
        assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_claim_holds_or_not_as_the_records_have_it():
    right, wrong, none = OWNED, [*OWNED, "right"], []

    def made(few_1, few_2, many_1, many_2, test="adam-best-0.01"):
        """Twenty drivers, so many of whom each rule finds with few and with many episodes."""
        return [
            record(i, n, {test: ([right if i < one else none], right if i < two else wrong)}, procedure="literal")
            for n, one, two in ((10, few_1, few_2), (100, many_1, many_2))
            for i in range(20)
        ]

    assert analyse(made(4, 18, 20, 10))[0].verdict == "holds"
    assert analyse(made(18, 4, 20, 10))[0].verdict == "holds partly"  # with few episodes Rule 1 is ahead
    assert analyse(made(4, 18, 20, 20))[0].verdict == "holds partly"  # with many nobody is
    assert analyse(made(18, 4, 2, 10))[0].verdict == "does not hold"
    small = [r for r in made(4, 18, 20, 10) if r.setting["seed"] < 5]
    assert analyse(small)[0].verdict == "too few runs to say"


def test_the_claim_is_judged_by_the_way_of_testing_that_shows_most():
    right, wrong = OWNED, [*OWNED, "right"]
    bad, few, many = ([wrong], wrong), ([[]], right), ([right], wrong)
    records = [
        record(i, n, {"adam-last-1": bad, "adam-last-0.01": good}, procedure="literal")
        for n, good in ((10, few), (100, many))
        for i in range(20)
    ]
    panel = analyse(records)[0]
    assert panel.verdict == "holds partly" and panel.in_how_many == "it holds in 1 of 2 readings"
    assert "By χ², Adam's last point from U(±0.01): At n = 10" in panel.why
    again = [record(r.setting["seed"], r.setting["num_episodes"], {"adam-best-0.01": good}, procedure="literal")
             for r, good in zip(records, [few] * 20 + [many] * 20, strict=True)]  # fmt: skip
    assert analyse(again)[0].verdict == "holds" and analyse(again)[0].in_how_many == "it holds in 1 of 1 readings"


def test_the_law_counts_what_is_above_and_below_and_leaves_owned_sensors_out():
    said = {"adam-best-1": ([OWNED], OWNED)}
    records = [record(i, 10, said, procedure="literal", free=free) for i, free in enumerate([(-3.0, 5.0), (7.0, 30.0)])]
    statistics = not_owned(records)
    assert sorted(statistics["statistic"].to_list()) == [-3.0, 5.0, 7.0, 30.0]  # 50 of an owned one is not among them
    law = analyse(records)[2]
    assert law.numbers["critical"] == pytest.approx(chi2.ppf(1 - 0.02, 8))
    assert law.numbers["laws"] == [
        {"test": "adam-best-1", "num_episodes": 10, "median": 6.0, "above": 0.25, "negative": 1}
    ]


def test_the_same_drivers_at_every_number_of_episodes_and_by_every_procedure():
    whole = CELLS(RunSize())
    assert len(whole) == 600 and len({cell.key for cell in whole}) == 600
    assert {c.setting["learning_rate"] for c in whole} == {0.03}
    literal = CELLS(RunSize(runs=2, as_published=True))
    assert [c.setting["num_episodes"] for c in literal] == [10, 30, 100] * 2
    assert all(c.setting["procedure"] == "literal" for c in literal)
    assert {(c.setting["rate"], c.setting["num_steps"]) for c in literal} == {(0.1, 200)}
    assert {c.key for c in literal} < {c.key for c in whole}
    assert len(CELLS(RunSize(quick=True))) == 2


def linear(seed, size, weights=(0.5, 0.3, 0.0, 0.15)):
    """A linear Gaussian agent, whose likelihood has one peak: brute force is exact."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(size, 4))
    actions = (features @ np.array(weights))[:, None] + rng.normal(size=(size, 1))
    data = Sample(features, actions, tuple("abcd"), ("push",), np.arange(size) // 5)
    return GaussianLinear(tuple("abcd"), ("push",), 1.0), data


@pytest.mark.parametrize("seed", range(4))
def test_the_rules_by_chi_square_are_those_of_the_library(seed):
    """A network without hidden units is a linear policy, of which the library knows λ of all supports in closed form."""
    space, data = linear(seed, 200)
    network = NetworkLikelihood(GaussianNetwork(data.names, ("push",), (), 1.0), data.features, data.actions, None)
    found = car.by_wilks(network, 0.1)
    library = by_closed_testing(WilksTest(likelihood_of(space, data)), 0.1, paper_rule=True)
    names = [[space.groups[g].name for g in space.tested if g in support] for support in library.supports]
    assert sorted(found["rule_1"]) == sorted(names)
    assert set(found["rule_2"]) <= {"a", "b", "d"} and "a" in found["rule_2"]
    for g, test in library.tests.items():
        assert found["statistics"][space.groups[g].name] == pytest.approx(test.statistic, abs=2e-3)
    assert 5 <= found["num_fits"] <= 16


@pytest.mark.parametrize("seed", range(3))
def test_the_rules_by_universal_inference_are_brute_force(seed):
    """E_I of every support by itself: accepted are those below 1/δ, and Rule 1 gives the minimal ones of them."""
    space, data = linear(seed, 150)
    local = UniversalTest(likelihood_of(space, data), data, 0.1, seed)
    rest = space.full_support - set(space.tested)
    everything = [frozenset(s) | rest for size in range(5) for s in combinations(space.tested, size)]
    accepted = [s for s in everything if local.log_e([s])[0] < np.log(10.0)]
    minimal = [s for s in accepted if not any(t < s for t in accepted)]
    found = car.by_rules(UniversalTest(likelihood_of(space, data), data, 0.1, seed), 0.1)
    assert sorted(found["rule_1"]) == sorted(space.named(s) for s in minimal)
    assert found["rule_2"] == [space.groups[g].name for g in space.tested if space.full_support - {g} not in accepted]


def test_one_driver_is_observed_and_both_rules_answer():
    """A real driver, its first ten episodes; the record is plain data."""
    cell = next(c for c in CELLS(RunSize(quick=True)) if c.setting["procedure"] == "ours")
    result = car.run(cell.setting)
    assert json.loads(json.dumps(result)) == result
    assert result["owned"] == ["speed", "sensor_+45", "sensor_+30"]
    assert not result["failed"] and result["arrived"] >= 0.9 and result["mean_return"] > 55
    assert 700 < result["num_pairs"] < 1500
    assert all(p <= 1 for p in result["universal"]["p_values"].values())
    selected = {name for name, p in result["universal"]["p_values"].items() if p <= 0.1}
    assert selected == set(result["universal"]["rule_2"])
    assert min(result["wilks"]["statistics"].values()) >= 0


@pytest.mark.slow
def test_the_same_driver_has_the_same_record():
    cell = next(c for c in CELLS(RunSize(quick=True)) if c.setting["procedure"] == "ours")
    assert car.run(cell.setting) == car.run(cell.setting)


def test_one_driver_by_the_papers_fits():
    """Rules as printed on λ of 32 paths of Adam, from two kinds of starts, at two points; the same the second time."""
    cell = next(c for c in CELLS(RunSize(quick=True)) if c.setting["procedure"] == "literal")
    result = car.run(cell.setting)
    assert json.loads(json.dumps(result)) == result == car.run(cell.setting)
    names = [name for name in result if name.startswith("adam")]
    assert names == ["adam-last-0.01", "adam-best-0.01", "adam-last-1", "adam-best-1"]
    for name in names:
        found = result[name]
        rejected = [n for n, x in found["statistics"].items() if x > chi2.ppf(1 - 0.1 / 5, 8)]
        assert found["rule_2"] == rejected and set(result["owned"]) & set(rejected)
        assert found["rule_1"]
