"""The agent's own last actions as features, against a loop over episodes."""

import numpy as np
import pytest

import policyspace
from policyspace import Demonstrations, InputError
from policyspace.data.lags import with_lags


def log(seed=0, n=120, labels=("l", "r", "s")):
    rng = np.random.default_rng(seed)
    episodes = rng.integers(0, 7, n)  # their rows stand mixed
    return Demonstrations.from_arrays(
        rng.normal(size=(n, 2)), rng.choice(labels, n), features=["x", "y"], episodes=episodes
    )


@pytest.mark.parametrize("lags", [1, 3])
def test_lags_are_those_of_a_loop(lags):
    data = log()
    made = with_lags(data, lags)
    past, rows = {}, []
    for i in range(data.num_pairs):
        before = past.setdefault(int(data.episodes[i]), [])
        if len(before) >= lags:
            one_hot = [float(before[-lag] == a) for lag in range(1, lags + 1) for a in (0, 1)]
            rows.append([*data.features[i], *one_hot])
        before.append(int(data.actions[i]))
    assert made.features.tolist() == rows
    assert list(made.blocks) == ["previous action", "action 2 back", "action 3 back"][:lags]
    assert made.metadata["warnings"][-1].endswith(f"{data.num_pairs - len(rows)} of {data.num_pairs} rows.")


def test_lags_of_amounts_and_of_subjects_without_episodes():
    data = Demonstrations.from_arrays(np.arange(6.0), np.arange(6.0) ** 2, subjects=list("ababab"))
    made = with_lags(data, 1)
    assert made.names == ("x0", "previous action")
    assert made.features.tolist() == [[2, 0], [3, 1], [4, 4], [5, 9]]


@pytest.mark.parametrize("lags", [0, 200, 1.5])
def test_lags_that_cannot_be(lags):
    with pytest.raises(InputError, match=r"whole number|previous actions"):
        with_lags(log(), lags)


def habitual(seed, effect, n=1200):
    """An agent that repeats its last action, and uses x by `effect`; z is never used, but drifts like the habit."""
    rng = np.random.default_rng(seed)
    x, actions, last = rng.normal(size=n), [], 0.0
    for i in range(n):
        right = rng.random() < 1 / (1 + np.exp(-(effect * x[i] + 1.5 * last)))
        last = 1.0 if right else -1.0
        actions.append("right" if right else "left")
    return Demonstrations.from_arrays(np.column_stack([x, rng.normal(size=n)]), actions, features=["x", "z"])


def test_the_check_suggests_lags_and_the_answer_says_what_is_beyond_habit():
    data = habitual(3, 1.0)
    plain = policyspace.identify(data)
    assert "--lags 1" in " ".join(plain.notes())
    answer = policyspace.identify(data, lags=1)
    assert answer.sentence.startswith("Beyond its habit the agent uses x; of its own past it uses previous action;")
    assert answer.test == "wilks" and answer.promise
    assert policyspace.identify(habitual(2, 0.0), lags=1).sentence.startswith("Nothing but habit is shown to be used;")
