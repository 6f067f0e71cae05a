"""Algorithms 3 and 4 as printed, on an agent whose answers are known, and in the grid world in miniature."""

import json
from itertools import combinations

import jax
import numpy as np
import pytest
from policyspace_paper.configuring import run, world_and_space
from policyspace_paper.execution import Record, RunSize, find_experiment
from policyspace_paper.printed import (
    PrintedAlgorithm,
    algorithm_1,
    algorithm_2,
    algorithm_3,
    algorithm_4,
    by_adam,
    in_closed_form,
)
from scipy.stats import chi2

from policyspace import GaussianLinear, Sample, SoftmaxLinear, likelihood_of, rollout
from policyspace.report import save
from policyspace.study import PaperObjective, Round

WORLD, SPACE = world_and_space("gridworld")


def observe(key, configuration, num_episodes):
    """A wavering agent that goes by its row: seen anywhere, its weights stay the same."""
    theta = np.zeros(SPACE.num_parameters)
    theta[[1, 2]] = 1.0
    return rollout(WORLD, SPACE, theta, configuration, key, num_episodes)


def algorithm(answers, space=SPACE, num_attempts=2):
    """λ as a table says, data set after data set; what is asked for is noted."""
    asked, answers = [], iter(answers)

    class Noting:
        name = "paper"

        def propose(self, question):
            asked.append(question.names)
            return PaperObjective(num_updates=1, last_point=True).propose(question)

    def fitted(data, supports):
        return np.array(next(answers), dtype=float), np.zeros(space.num_parameters)

    made = PrintedAlgorithm(WORLD, space, observe, jax.random.key(0), Noting(), fitted, 0.01, 5, num_attempts)
    return made, asked


def test_algorithm_4_asks_for_each_unit_until_it_is_selected_and_unites():
    units = [SPACE.groups[g].name for g in SPACE.tested]
    nothing, all_but_three = [0.0] * len(units), [99.0] * len(units)
    all_but_three[1] = all_but_three[3] = all_but_three[4] = 0.0
    second = [0.0] * len(units)
    second[3] = 99.0
    made, asked = algorithm([all_but_three, nothing, second, nothing, nothing])
    rounds = made.simplified(WORLD.default_configuration())
    # The second unit is given up after two attempts, in one of which the fourth is found; the fifth has two of its own.
    assert asked == [(units[1],), (units[1],), (units[4],), (units[4],)]
    assert set(rounds[-1].selected) == set(units) - {units[1], units[4]}
    assert [r.newly_selected for r in rounds[1:]] == [(), (units[3],), (), ()]
    assert rounds[-1].total_episodes == 25
    assert [Round.from_dict(r.to_dict()) for r in rounds] == rounds


def grouped():
    names = list(WORLD.feature_names)
    return SoftmaxLinear(WORLD.feature_names, WORLD.action_names, groups={"a": names[:8], "b": names[8:]})


def test_algorithm_3_asks_for_every_set_not_yet_returned_and_returns_all_that_any_round_did():
    """λ of {}, {a}, {b}: {a} suffices in the first round, {b} in the second, {} in the third; none is taken back."""
    made, asked = algorithm([[99, 0, 99], [99, 99, 0], [0, 0, 0]], grouped(), num_attempts=1)
    assert made.combinatorial(WORLD.default_configuration())[-1] == [[], ["a"], ["b"]]
    assert asked == [("b",), ("a", "b")]


@pytest.mark.parametrize("kind", ["adam", "closed"])
def test_statistics_are_those_of_the_library(kind):
    seen = observe(jax.random.key(1), WORLD.uniform_configuration(jax.random.key(0)), 60)
    data = seen.pairs(WORLD.feature_names, WORLD.action_names)
    supports = [SPACE.full_support - {g} for g in SPACE.tested]
    adam = {"rate": 0.03, "num_steps": 1000, "spreads": (0.0,)}
    found, theta = (by_adam(SPACE, adam) if kind == "adam" else in_closed_form(SPACE))(data, supports)
    likelihood = likelihood_of(SPACE, data)
    exact = [2 * (likelihood.full.log_likelihood - fit.log_likelihood) for fit in likelihood.fit_many(supports)]
    assert found == pytest.approx(exact, abs=0.05)
    assert theta.shape == (SPACE.num_parameters,)


def test_a_batch_too_small_to_be_fitted_selects_nothing():
    seen = observe(jax.random.key(1), WORLD.default_configuration(), 1)
    data = seen.pairs(WORLD.feature_names, WORLD.action_names).take(np.arange(2))
    found, _ = in_closed_form(SPACE)(data, [SPACE.full_support - {g} for g in SPACE.tested])
    assert not found.any()


def test_a_literal_run_is_plain_data_and_the_same_twice():
    setting = next(
        c.setting for c in find_experiment("gridworld").cells(RunSize(quick=True)) if c.setting["part"] == "story"
    )
    assert setting["procedure"] == "literal"
    setting = setting | {"learning": {"num_steps": 20, "num_episodes": 50, "learning_rate": 0.1, "decay": 1.0}}
    result = run(setting)
    assert json.dumps(result) == json.dumps(run(setting))
    assert result["num_rounds"] == len(result["rounds"]) and result["total_episodes"] == 100 * result["num_rounds"]


def test_rule_1_with_configuration_by_both_procedures(tmp_path, monkeypatch):
    monkeypatch.setattr("policyspace_paper.configuring.NUM_ATTEMPTS", 1)
    experiment = find_experiment("gridworld-rule-1")
    for cell in experiment.cells(RunSize(quick=True)):
        learning = {"learning": {"num_steps": 20, "num_episodes": 50, "learning_rate": 0.1}}
        setting = cell.setting | learning | {"num_episodes": 20}
        result = json.loads(json.dumps(experiment.run(setting)))
        assert result["num_rounds"] <= (15 if setting["procedure"] == "literal" else 2)
        if setting["procedure"] == "literal":
            assert all(support in result["last"] for support in result["first"])
        panel, *_ = experiment.analyse([Record("gridworld-rule-1", setting, "0", 1.0, result)])
        assert panel.verdict == "our own" and len(panel.rows) == 2
        save(panel.figure, tmp_path / "figure.svg")


@pytest.mark.parametrize("seed", range(3))
def test_algorithms_1_and_2_are_the_rules_on_least_squares(seed):
    """With Σ = 1 and one action λ is the difference of residual sums of squares, which NumPy knows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(150, 3))
    y = 1 + x @ np.array([0.5, 0.0, 0.25]) + rng.normal(size=150)
    space = GaussianLinear(("a", "b", "c"), ("push",), 1.0)
    data = Sample(x, y[:, None], ("a", "b", "c"), ("push",))

    def residual(names):
        design = np.column_stack([np.ones(150), *(x[:, "abc".index(name)] for name in names)])
        return np.sum((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2)

    def lost(names):
        return residual(names) - residual("abc")

    critical = [chi2.ppf(1 - 0.05 / 8, m) if m else 0.0 for m in range(4)]
    every = [set(s) for size in range(4) for s in combinations("abc", size)]
    enough = [s for s in every if lost(sorted(s)) <= critical[3 - len(s)] + 1e-9]
    rule_1 = [sorted(s) for s in enough if not any(s - {i} in enough for i in s)]
    assert sorted(algorithm_1(data, space, 0.05)) == sorted(rule_1)
    rule_2 = [n for n in "abc" if lost("abc".replace(n, "")) > chi2.ppf(1 - 0.05 / 3, 1)]
    assert algorithm_2(data, space, 0.05) == rule_2


def test_algorithms_3_and_4_unite_and_take_the_papers_letters():
    how = {"significance": 0.05, "num_episodes": 20, "num_attempts": 1, "penalty": 0.5, "num_updates": 5}
    start, key = WORLD.default_configuration(), jax.random.key(3)
    found = algorithm_4(WORLD, SPACE, observe, key, start, **how)
    assert set(found) <= {SPACE.groups[g].name for g in SPACE.tested}
    assert found == algorithm_4(WORLD, SPACE, observe, key, start, **how)
    sets = algorithm_3(WORLD, grouped(), observe, key, start, **how)
    assert sets == sorted(sets, key=lambda names: (len(names), names))
    for function, name in ((algorithm_1, "Algorithm 1"), (algorithm_2, "Algorithm 2"), (algorithm_3, "Algorithm 3"),
                           (algorithm_4, "Algorithm 4")):  # fmt: skip
        assert function.__doc__.startswith(f"{name}, Identification Rule")
