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


# -- Agents of which only actions come out.


class Draws:
    """The same agents, who draw their action by chances of their own."""

    def __init__(self, weights, seed=0):
        self.weights, self.rng, self.__name__ = np.array(weights), np.random.default_rng(seed), "draws"

    def __call__(self, seen):
        return int(self.rng.random() < 1 / (1 + np.exp(-seen @ self.weights)))


def drawing(weights, seed=0):
    return as_agent(Draws(weights, seed), observation_space=NUMBERS, action_space=spaces.Discrete(2))


def test_only_actions_come_out_of_one_of_them():
    first, second = (2.0, 0.0, 1.5, 1.0, 0.0), (2.0, 1.5, 0.0, 2.5, 0.0)
    found = compare(agent(*first), drawing(second), log=LOG, features=NAMES, budget=400)
    assert found.way == "paired" and found.act_otherwise and found.evidence > 60
    assert {group.group: group.change for group in found.groups} == {
        "kept": "both",
        "new": "only the second",
        "old": "only the first",
        "grown": "both",
        "radio": "no evidence",
    }
    assert found.sentence == (
        "Both agents react to kept and grown; only the second was shown to react to new; only the first was shown to react "
        "to old; no evidence for radio. They act otherwise in the same states."
    )
    truth = np.abs(1 / (1 + np.exp(-LOG @ np.array(first))) - 1 / (1 + np.exp(-LOG @ np.array(second)))).mean()
    assert 0 < found.apart.low <= truth and found.apart.estimate > 0.4 * truth
    text = str(found)
    assert "P(any false 'react' or 'otherwise', of both together) ≤ 5 %" in text and "leaves no trace" in text
    assert '"evidence"' in found.to_json() and found.added == ()


def test_two_that_act_alike_are_told_apart_as_rarely_as_promised():
    from policyspace.asking import Asker, Counted, States, TwoAgents

    false = 0
    for seed in range(40):
        pair = [drawing(FIRST, seed), drawing(FIRST, 1000 + seed)]
        states = States(LOG, np.arange(len(LOG)))
        inputs = policyspace.asking.Inputs.of(NUMBERS, features=NAMES)
        told = TwoAgents([Asker(Counted(one), states, inputs, 0, np.random.default_rng(seed)) for one in pair])
        told.run(160, 0.05)  # it ends as soon as it has been shown
        false += told.wealth >= 20
    assert false <= 40 * 0.05 + 3 * np.sqrt(40 * 0.05 * 0.95)


class Acts:
    """Can only act: to the angle, and to its velocity too."""

    def __init__(self, weight):
        self.weight, self.rng = weight, np.random.default_rng(3)

    def reset(self):
        pass

    def act(self, seen):
        return int(self.rng.random() < 1 / (1 + np.exp(-20 * seen[2] - self.weight * seen[3])))


def test_agents_that_can_only_act():
    found = policyspace.compare(Acts(0), Acts(5), "CartPole-v1", budget=500, memory=0)
    changes = {group.group: group.change for group in found.groups}
    assert found.way == "played" and found.apart is None and found.act_otherwise is None
    assert changes["angular_velocity"] == "only the second" and changes["position"] == "no evidence"
    assert "only the readings that were delivered" in str(found)
    with pytest.raises(InputError, match="need no log"):
        policyspace.compare(lambda seen: int(seen[2] > 0), Acts(5), "CartPole-v1", LOG[:, :4].astype(np.float32))
