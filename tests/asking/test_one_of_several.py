"""One agent of several: what it sees is what the two interfaces of PettingZoo show; tests/peers has the real library."""

import numpy as np
import pytest
from gymnasium import spaces

import policyspace
from policyspace import InputError, watch
from policyspace.asking import OneAgent

NAMES = ["left", "middle", "right"]


class Race:
    """Agents add their actions to one sum, until it passes 20; each sees the sum, and what the one before it did."""

    def __init__(self):
        self.possible_agents = NAMES
        self.seen = spaces.Box(-50, 50, (2,), np.float64)
        self.acts = {name: spaces.Discrete(3) for name in NAMES}

    def observation_space(self, name):
        return self.seen

    def action_space(self, name):
        return self.acts[name]

    def close(self):
        self.closed = True


class AtOnce(Race):
    """All act at once."""

    def reset(self, seed=None, options=None):
        self.agents, self.sum = list(NAMES), 0
        return {name: np.zeros(2) for name in NAMES}, {}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.sum += sum(actions.values())
        seen = {name: np.array([self.sum, actions[NAMES[j - 1]]]) for j, name in enumerate(NAMES)}
        ended = self.sum > 20
        if ended:
            self.agents = []
        rewards = {name: float(actions[name]) for name in NAMES}
        return seen, rewards, dict.fromkeys(NAMES, ended), dict.fromkeys(NAMES, False), {}


class InTurn(Race):
    """One after the other."""

    def agent_iter(self):
        raise AssertionError

    def reset(self, seed=None, options=None):
        self.agents, self.sum, self.turn, self.acted = list(NAMES), 0, 0, dict.fromkeys(NAMES, 0)
        self.agent_selection = NAMES[0]

    def observe(self, name):
        return np.array([self.sum, self.acted[NAMES[NAMES.index(name) - 1]]], dtype=float)

    def last(self):
        name = self.agent_selection
        return self.observe(name), float(self.acted[name]), self.sum > 20, False, {}

    def step(self, action):
        name = self.agent_selection
        if self.sum > 20:
            assert action is None
            self.agents.remove(name)
        else:
            self.acted[name] = int(action)
            self.sum += int(action)
        self.turn += 1
        self.agent_selection = NAMES[self.turn % 3]


def others(name, seen):
    return 2 if name == "left" else 1


@pytest.mark.parametrize("kind", [AtOnce, InTurn])
def test_what_one_agent_sees_while_the_others_play(kind):
    env = OneAgent(kind(), "middle", others)
    observation, _ = env.reset(seed=0)
    sums, rewards, ended = [observation[0]], [], False
    while not ended:
        observation, reward, ended, late, _ = env.step(2)
        sums.append(observation[0])
        rewards.append(reward)
        assert not late and observation[1] == 2  # what "left" did
    # 5 a round; in turn "left" acts first, so that the sum is 2 at the first look
    assert sums == ([0, 5, 10, 15, 20, 25] if kind is AtOnce else [2, 7, 12, 17, 22])
    assert rewards == [2.0] * (len(sums) - 1)
    env.close()


@pytest.mark.parametrize("kind", [AtOnce, InTurn])
def test_the_others_draw_by_the_seed(kind):
    def played(seed):
        env = OneAgent(kind(), "right")
        return [env.reset(seed=seed)[0].tolist()] + [env.step(0)[0].tolist() for _ in range(3)]

    assert played(1) == played(1) and len({str(played(seed)) for seed in range(5)}) > 1


@pytest.mark.parametrize("kind", [AtOnce, InTurn])
def test_it_is_watched_and_asked(kind):
    agent = lambda seen: int(seen[1] > 0) + int(seen[1] > 1)  # noqa: E731
    log = watch(OneAgent(kind(), "middle"), agent, 5, features=["sum", "before"])
    assert (np.asarray(log.features)[:, 0] <= 22).all()
    answer = policyspace.ask(agent, OneAgent(kind(), "middle"), features=["sum", "before"], episodes=40)
    assert answer.selected == ("before",) and answer.never == ("sum",)


def test_names_are_needed():
    with pytest.raises(InputError, match="there is no agent 'midle'"):
        OneAgent(AtOnce(), "midle")
    with pytest.raises(InputError, match=r"one of left, middle and right.*OneAgent\(env, name\)"):
        watch(AtOnce(), lambda seen: 0, 1)
    with pytest.raises(InputError, match="possible_agents, found int"):
        OneAgent(3, "left")
    short = InTurn()
    short.last = lambda: (np.zeros(2), 0.0, True, False, {})
    short.reset = lambda seed=None, options=None: InTurn.reset(short) or setattr(short, "sum", 21)
    with pytest.raises(InputError, match="100 episodes ended before 'right' could act"):
        OneAgent(short, "right").reset(seed=0)
