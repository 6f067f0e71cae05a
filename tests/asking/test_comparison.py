"""Two agents by the same questions: what was added or dropped is what they are made of."""

import numpy as np
import pytest
from gymnasium import spaces

import policyspace
from policyspace import InputError
from policyspace.asking import as_agent, compare

NUMBERS = spaces.Box(-4, 4, (5,), np.float64)
NAMES = ["kept", "new", "old", "grown", "radio"]
LOG = np.random.default_rng(0).normal(size=(600, 5))


def agent(*weights):
    def chances(seen):
        p = 1 / (1 + np.exp(-seen @ np.array(weights)))
        return np.stack([1 - p, p], axis=-1)

    return as_agent(chances, observation_space=NUMBERS, action_space=spaces.Discrete(2))


def brute(weights, j):
    """The mean total variation in every row, of any reading."""
    seen = LOG @ np.array(weights)
    moved = seen[:, None] + weights[j] * (LOG[None, :, j] - LOG[:, None, j])
    return np.abs(1 / (1 + np.exp(-moved)) - 1 / (1 + np.exp(-seen[:, None]))).mean()


FIRST, SECOND = (1.0, 0.0, 0.7, 0.3, 0.0), (1.0, 0.5, 0.0, 2.0, 0.0)


def test_changes_are_those_of_the_weights():
    found = compare(agent(*FIRST), agent(*SECOND), log=LOG, features=NAMES)
    assert {group.group: group.change for group in found.groups} == {
        "kept": "less",  # the others move the action more
        "new": "added",
        "old": "dropped",
        "grown": "more",
        "radio": "neither",
    }
    assert found.sentence == (
        "The second agent also reacts to new, never reacts to old any more, reacts more to grown, reacts less to kept."
    )
    assert (found.added, found.dropped) == (("new",), ("old",))
    for j, group in enumerate(found.groups):
        truth = brute(SECOND, j) - brute(FIRST, j)
        margin = group.difference.high - group.difference.estimate
        assert abs(group.difference.estimate - truth) <= 1.5 * margin, group.group
    apart = np.abs(1 / (1 + np.exp(-LOG @ np.array(FIRST))) - 1 / (1 + np.exp(-LOG @ np.array(SECOND)))).mean()
    assert found.apart.estimate == pytest.approx(apart)
    assert found.witness("new").change > 0.1
    with pytest.raises(InputError, match="neither agent"):
        found.witness("radio")
    assert "added" in str(found) and '"added"' in found.to_json()


def test_an_agent_is_like_itself():
    found = compare(agent(*FIRST), agent(*FIRST), log=LOG, features=NAMES)
    assert {group.change for group in found.groups} == {"alike", "neither"}
    assert found.apart.estimate == 0 and "the same inputs" in found.sentence


def test_false_changes_are_rare():
    """Agents whose effects are equal, by symmetry, but not their actions: at most δ of the comparisons err."""
    wrong = 0
    for seed in range(100):
        log = np.random.default_rng(seed).choice([-1.0, 1.0], size=(400, 5)) * [1, 1, 0, 0, 0]
        found = compare(agent(1, 1, 0, 0, 0), agent(1, -1, 0, 0, 0), log=log, features=NAMES, budget=400, seed=seed)
        wrong += any(group.change in ("more", "less") for group in found.groups)
    assert wrong <= 100 * 0.05 + 3 * np.sqrt(100 * 0.05 * 0.95)


def test_both_play_where_no_log_is_given():
    old, new = (lambda seen: int(seen[2] > 0)), (lambda seen: int(seen[2] + seen[3] > 0))
    found = policyspace.compare(old, new, "CartPole-v1", episodes=3)
    assert found.added == ("angular_velocity",) and found.environment == "CartPole-v1"
    assert found.num_states == found.cost.steps


def test_agents_that_do_not_fit_each_other():
    other = as_agent(lambda seen: int(seen[0] > 0), observation_space=NUMBERS, action_space=spaces.Discrete(3))
    with pytest.raises(InputError, match="both agents must see and do the same"):
        compare(agent(*FIRST), other, log=LOG)
