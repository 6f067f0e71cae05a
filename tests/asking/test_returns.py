"""The return that an input is worth: by closed form, and exactly nothing for one that is not read."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import policyspace
from policyspace import InputError
from policyspace.asking import ask

STEPS = 10


class Signs(gymnasium.Env):
    """Three independent numbers; a step is worth 1 where the action says the sign of the first."""

    observation_space, action_space = spaces.Box(-9, 9, (3,), np.float64), spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.now = 0
        return self._seen(), {}

    def _seen(self):
        self.at = self.np_random.normal(size=3)
        return self.at.copy()

    def step(self, action):
        reward = float(action == (self.at[0] > 0))
        self.now += 1
        return self._seen(), reward, False, self.now == STEPS, {}


class Locked(Signs):
    """Cannot be copied."""

    def __deepcopy__(self, memo):
        raise TypeError("no copies")


class Unseeded(Signs):
    """Does not repeat itself with the same seed."""

    chance = np.random.default_rng(0)

    def _seen(self):
        self.at = self.chance.normal(size=3)
        return self.at.copy()


def wavering(seen):
    """By chances of its own: right in 9 of 10 steps, and the second number changes nothing but the chances."""
    right = np.where(seen[..., 1] > 0, 0.95, 0.85)
    p = np.where(seen[..., 0] > 0, right, 1 - right)
    return np.stack([1 - p, p], axis=-1)


@pytest.mark.parametrize("env", [Signs, Signs(), Locked()], ids=["made", "copied", "one after the other"])
def test_losses_are_those_of_the_closed_form(env):
    answer = ask(wavering, env, features=["sign", "nerve", "radio"], episodes=40, returns=60)
    losses = {group.group: group.returned for group in answer.groups}
    sign, nerve, radio = (losses[name].loss for name in ("sign", "nerve", "radio"))
    assert (radio.estimate, radio.low, radio.high) == (0, 0, 0) and losses["radio"].pairs_needed is None
    assert sign.low < STEPS * (0.9 - 0.5) < sign.high  # another reading says the sign by chance alone
    assert nerve.low < 0 < nerve.high  # readings of others change the chances, but not how good they are on average
    assert losses["sign"].pairs == 60 and losses["sign"].pairs_needed > 0
    assert "return lost" in answer.table().columns and not answer.warnings
    assert answer.to_frame()["return_lost"][2] == 0


def test_margins_shrink_as_pairs_grow_and_the_pairs_needed_suffice():
    few = ask(wavering, Signs, episodes=40, returns=20).groups[0].returned
    enough = ask(wavering, Signs, episodes=40, returns=few.pairs_needed).groups[0].returned
    margin = enough.loss.high - enough.loss.estimate
    assert margin < 1.4 * 0.1 * STEPS * 0.9  # the spread of few pairs is uncertain itself


def test_an_environment_that_does_not_repeat_itself_is_pointed_out():
    answer = ask(wavering, Unseeded(), episodes=10, returns=4)
    assert "do not repeat an episode with the same seeds" in answer.warnings[-1]


def test_same_seed_same_losses():
    first, again = (ask(wavering, Signs, episodes=10, returns=5, seed=2).to_json() for _ in range(2))
    assert first == again


def test_too_few_pairs():
    with pytest.raises(InputError, match="at least 2 pairs of episodes, found 1"):
        ask(wavering, Signs, episodes=2, returns=1)


class Acts:
    """The same agent, which keeps its chances to itself; `fails` so many steps after it was made."""

    def __init__(self, fails=10**9):
        self.rng, self.left = np.random.default_rng(4), fails

    def reset(self):
        pass

    def act(self, seen):
        self.left -= 1
        if self.left < 0:
            raise ValueError("out of batteries")
        return int(self.rng.random() < wavering(seen)[1])


class Hardware(Acts):
    """Cannot be copied."""

    def __deepcopy__(self, memo):
        raise TypeError("no copies")


@pytest.mark.parametrize("env", [Signs, Signs(), Locked()], ids=["made", "copied", "the same"])
def test_losses_of_an_agent_that_can_only_act(env):
    answer = ask(Acts(), env, features=["sign", "nerve", "radio"], memory=0, budget=400, returns=60)
    lost = {group.group: group.returned.loss for group in answer.groups}
    assert answer.way == "played" and "return lost" in answer.table().columns
    assert (lost["radio"].low, lost["radio"].high) == (0.0, 0.0)
    assert (
        lost["sign"].low <= 0.4 * STEPS <= lost["sign"].high
    )  # .9 of the steps are right, and half when it is redrawn
    assert answer.cost.steps > 400 + 5 * 60 * STEPS


def test_one_that_cannot_be_copied_does_not_repeat_itself():
    answer = ask(Hardware(), Signs, features=["sign", "nerve", "radio"], memory=0, budget=400, returns=20)
    assert any("do not repeat an episode" in warning for warning in answer.warnings)
    lost = {group.group: group.returned.loss for group in answer.groups}
    assert lost["radio"].low < 0 < lost["radio"].high and lost["sign"].low > 0


def test_what_was_found_is_kept_when_it_fails_in_between():
    answer = ask(Acts(fails=900), Signs, features=["sign", "nerve", "radio"], memory=0, budget=400, returns=60)
    assert answer.selected == ("sign",) and answer.stopped.startswith("comparing returns, ")
    assert "out of batteries" in answer.stopped and answer.groups[0].returned is None


def test_returns_need_a_place_to_play():
    log = np.random.default_rng(0).normal(size=(200, 3))
    spaced = policyspace.asking.as_agent(wavering, Signs())
    with pytest.raises(InputError, match="found no environment"):
        ask(spaced, log=log, returns=3)
