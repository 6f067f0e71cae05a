"""The car: its cells, its analysis on records with a known answer, both rules against brute force, one real run."""

import json
from itertools import combinations

import numpy as np
import pytest

from policyspace.data.demonstrations import Demonstrations
from policyspace.experiments import car_sensors as car
from policyspace.experiments.car_panels import BY, analyse, outcomes
from policyspace.experiments.frames import rates
from policyspace.experiments.panel import Scale
from policyspace.experiments.records import Record
from policyspace.fits import likelihood_of
from policyspace.fits.network_fits import NetworkLikelihood
from policyspace.inference.rules import all_supports as by_closed_testing
from policyspace.inference.universal import Universal
from policyspace.inference.wilks import WilksTest
from policyspace.policies import GaussianLinear
from policyspace.policies.network import GaussianNetwork
from policyspace.report.style import save

OWNED = ["speed", "left"]


def record(seed, n, wilks_1, wilks_2, universal_1, universal_2, failed=False):
    def said(rule_1, rule_2):
        return {"rule_1": rule_1, "rule_2": rule_2, "restart_noise": 30.0 + seed}

    result = {
        "owned": OWNED,
        "failed": failed,
        "wilks": said(wilks_1, wilks_2),
        "universal": said(universal_1, universal_2),
        "lean": said(universal_1, universal_2),
    }
    return Record("car", {"seed": seed, "num_episodes": n, "significance": 0.1}, "0", 1.0, result)


def known_records():
    right, wrong = OWNED, [*OWNED, "right"]
    return [
        record(0, 10, [wrong], wrong, [["speed"], ["left"]], []),
        record(1, 10, [wrong, right], right, [right, ["left", "right"]], ["left"]),
        record(0, 300, [wrong], wrong, [right], right),
        record(1, 300, [right], wrong, [right], right),
        record(2, 300, [["right"]], ["right"], [[]], [], failed=True),
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
    ours = False, 10, "rule_1", "universal"  # what is in some of the supports only is not said to be controlled
    assert (correct[ours], among[ours], false[ours]) == ((0, 2), (1, 2), (0, 2))
    assert correct[False, 300, "rule_2", "universal"] == (2, 2)
    assert correct[True, 300, "rule_2", "universal"] == (0, 1)
    assert false[True, 300, "rule_1", "universal"] == (0, 1)
    assert false[True, 300, "rule_1", "wilks"] == (1, 1)


def test_the_page_says_what_the_records_say(tmp_path):
    main, errors = analyse(known_records())
    assert main.verdict == "does not hold" and "So few drivers" in main.why  # two cannot show that it does
    assert "0.50" in main.why and "1 of 3 drivers failed to learn" in main.why
    assert errors.verdict == "our own" and "moves by 31 in the median" in errors.why
    assert len(main.rows) == len(errors.rows) == 18
    assert main.rows[-1][0] == "1 that failed to learn"
    assert json.loads(json.dumps(main.numbers))["num_failed"] == 1
    for panel in (main, errors):
        for name in ("a.svg", "b.svg"):
            save(panel.figure, tmp_path / name)
        assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_claim_holds_or_not_as_the_records_have_it():
    right, wrong = OWNED, [*OWNED, "right"]
    holds = [record(i, 100, [right], wrong if i < 3 else right, [right], right) for i in range(20)]
    partly = [record(i, 100, [right if i < 8 else wrong], wrong, [right], right) for i in range(20)]
    fails = [record(i, 100, [wrong], wrong, [wrong], wrong) for i in range(10)]
    assert analyse(holds)[0].verdict == "holds"
    assert analyse(partly)[0].verdict == "holds partly"
    only_ours = [record(i, 100, [wrong], wrong, [right], right) for i in range(20)]
    assert analyse(only_ours)[0].verdict == "holds partly" and "a test that holds" in analyse(only_ours)[0].why
    assert analyse(fails)[0].verdict == "does not hold" and "So few" not in analyse(fails)[0].why


def test_the_same_drivers_at_every_number_of_episodes():
    whole = car.cells(Scale())
    assert len(whole) == 400 and len({cell.key for cell in whole}) == 400
    assert {c.setting["learning_rate"] for c in whole} == {0.03}
    published = car.cells(Scale(runs=2, as_published=True))
    assert [c.setting["num_episodes"] for c in published] == [10, 30, 100, 300] * 2
    assert all(c.setting["learning_rate"] == 0.01 and c.setting["one_start"] for c in published)
    assert len(car.cells(Scale(quick=True))) == 3


def linear(seed, size, weights=(0.5, 0.3, 0.0, 0.15)):
    """A linear Gaussian agent, whose likelihood has one peak: brute force is exact."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(size, 4))
    actions = (features @ np.array(weights))[:, None] + rng.normal(size=(size, 1))
    data = Demonstrations(features, actions, tuple("abcd"), ("push",), np.arange(size) // 5)
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
    local = Universal(likelihood_of(space, data), data, 0.1, seed)
    rest = space.everything - set(space.tested)
    everything = [frozenset(s) | rest for size in range(5) for s in combinations(space.tested, size)]
    accepted = [s for s in everything if local.log_e([s])[0] < np.log(10.0)]
    minimal = [s for s in accepted if not any(t < s for t in accepted)]
    found = car.by_rules(Universal(likelihood_of(space, data), data, 0.1, seed), 0.1)
    assert sorted(found["rule_1"]) == sorted(space.named(s) for s in minimal)
    assert found["rule_2"] == [space.groups[g].name for g in space.tested if space.everything - {g} not in accepted]


def test_one_driver_is_observed_and_both_rules_answer():
    """A real driver, its first ten episodes; the record is plain data and the same the second time."""
    cell = car.cells(Scale(quick=True))[0]
    result = car.run(cell.setting)
    assert json.loads(json.dumps(result)) == result
    assert result["owned"] == ["speed", "sensor_+45", "sensor_+30"]
    assert not result["failed"] and result["arrived"] >= 0.9 and result["mean_return"] > 55
    assert 700 < result["num_pairs"] < 1500
    assert all(p <= 1 for p in result["universal"]["p_values"].values())
    selected = {name for name, p in result["universal"]["p_values"].items() if p <= 0.1}
    assert selected == set(result["universal"]["rule_2"])
    assert min(result["wilks"]["statistics"].values()) >= 0
    assert car.run(cell.setting) == result
