"""The agent's own last actions as features, against a loop over episodes."""

from dataclasses import replace

import numpy as np
import pytest

import policyspace
from policyspace import InputError, Sample
from policyspace.data import with_lags, with_lags_of_inputs


def log(seed=0, n=120, labels=("l", "r", "s")):
    rng = np.random.default_rng(seed)
    episodes = rng.integers(0, 7, n)  # their rows stand mixed
    return Sample.from_arrays(rng.normal(size=(n, 2)), rng.choice(labels, n), features=["x", "y"], episodes=episodes)


@pytest.mark.parametrize("lags", [1, 3])
def test_lags_are_those_of_a_loop(lags):
    data = log()
    made = with_lags(data, lags)
    past, rows = {}, []
    for i in range(data.num_rows):
        before = past.setdefault(int(data.episodes[i]), [])
        if len(before) >= lags:
            one_hot = [float(before[-lag] == a) for lag in range(1, lags + 1) for a in (0, 1)]
            rows.append([*data.features[i], *one_hot])
        before.append(int(data.actions[i]))
    assert made.features.tolist() == rows
    assert list(made.blocks) == ["previous action", "action 2 back", "action 3 back"][:lags]
    assert made.origin.notes[-1].endswith(f"{data.num_rows - len(rows)} of {data.num_rows} rows.")


def test_lags_of_amounts_and_of_subjects_without_episodes():
    data = Sample.from_arrays(np.arange(6.0), np.arange(6.0) ** 2, subjects=list("ababab"))
    made = with_lags(data, 1)
    assert made.names == ("x0", "previous action")
    assert made.features.tolist() == [[2, 0], [3, 1], [4, 4], [5, 9]]


@pytest.mark.parametrize("lags", [0, 200, 1.5])
def test_lags_that_cannot_be(lags):
    with pytest.raises(InputError, match=r"whole number|previous ones"):
        with_lags(log(), lags)


def habitual(seed, effect, n=1200):
    """An agent that repeats its last action, and uses x by `effect`; z is never used, but drifts like the habit."""
    rng = np.random.default_rng(seed)
    x, actions, last = rng.normal(size=n), [], 0.0
    for i in range(n):
        right = rng.random() < 1 / (1 + np.exp(-(effect * x[i] + 1.5 * last)))
        last = 1.0 if right else -1.0
        actions.append("right" if right else "left")
    return Sample.from_arrays(np.column_stack([x, rng.normal(size=n)]), actions, features=["x", "z"])


def test_the_check_suggests_lags_and_the_answer_says_what_is_beyond_them():
    data = habitual(3, 1.0)
    plain = policyspace.identify(data)
    assert "--lags 1" in " ".join(plain.notes())
    answer = policyspace.identify(data, lags=1)
    assert answer.sentence.startswith("Beyond its own past actions the agent uses x; of its past actions it uses")
    assert answer.test.name == "lean" and answer.guarantee
    assert policyspace.identify(habitual(2, 0.0), lags=1).sentence.startswith(
        "Nothing but its own past actions is shown to be used;"
    )


def test_lags_of_inputs_are_those_of_a_loop_and_one_group_with_the_input():
    data = log()
    made = with_lags_of_inputs(data, 2)
    past, rows = {}, []
    for i in range(data.num_rows):
        before = past.setdefault(int(data.episodes[i]), [])
        if len(before) >= 2:
            rows.append([*data.features[i], *before[-1], *before[-2]])
        before.append(list(data.features[i]))
    assert made.features.tolist() == rows
    assert made.blocks["x (now to 2 back)"] == ("x", "x, 1 back", "x, 2 back")
    assert made.origin.lags_of_inputs == 2
    with pytest.raises(InputError, match="whole number"):
        with_lags_of_inputs(data, 0)


def test_an_agent_that_remembers_uses_what_it_saw_earlier():
    """a_t = x_{t−2} + noise, beside an unused sensor that copies x_{t−1} with noise: given the past of x it says nothing."""
    false, found, plainly = 0, 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = np.zeros(1500)
        for t in range(1, 1500):
            x[t] = 0.9 * x[t - 1] + np.sqrt(0.19) * rng.normal()
        delayed, copy = np.roll(x, 2), np.roll(x, 1) + 0.3 * rng.normal(size=1500)
        data = Sample.from_arrays(np.column_stack([x, copy]), delayed + rng.normal(size=1500), features=["x", "copy"])
        answer = policyspace.identify(data, lags_of_inputs=2)
        false += "copy (now to 2 back)" in answer.selected
        found += "x (now to 2 back)" in answer.selected
        plain = policyspace.identify(data)
        assert plain.guarantee.conditions[-1].text == "a memory of at most 4 rows"
        plainly += "copy" in plain.selected
        without = policyspace.identify(data, test="lean", clusters="rows")
        assert "copy" in without.selected  # where the past of x is not taken in, the copy stands in for it
    assert false <= 3 and plainly <= 3 and found >= 18  # P(more than 3 of 20 at .05) = .016
    known = replace(data, origin=replace(data.origin, memory=True))
    answer = policyspace.identify(known)
    assert answer.grade == "suggested" and answer.no_guarantee[0].reason == "memory"
    stands_in = policyspace.identify(known, test="lean", clusters="rows")
    assert stands_in.no_guarantee[0].reason == "memory" and "or what it remembers" in stands_in.sentence
    short = policyspace.identify(known, lags_of_inputs=2)
    assert short.guarantee.conditions[-1].text == "a memory of at most 2 rows"
