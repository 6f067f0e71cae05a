"""Environments that are wrong in one way each, and one that is not."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Base(gymnasium.Env):
    """Two readings of the deviation k, ten steps an episode."""

    observation_space = spaces.Box(-10, 10, (2,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, k=1.0):
        self.k, self.now = k, 0

    def seen(self):
        return self.k * self.np_random.normal(size=2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.now = 0
        return self.seen(), {}

    def step(self, action):
        self.now += 1
        return self.seen(), 0.0, self.now >= 10, False, {}


class Unseeded(Base):
    def seen(self):
        return self.k * np.random.default_rng().normal(size=2)


class NotANumber(Base):
    def seen(self):
        return super().seen() * [1.0, np.nan if self.now == 7 else 1.0]


class Priceless(Base):
    def step(self, action):
        seen, _, *others = super().step(action)
        return seen, np.inf, *others


class ThreeNumbers(Base):
    def seen(self):
        return self.k * self.np_random.normal(size=3)


class OldReset(Base):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class PairReset(Base):
    def reset(self, *, seed=None, options=None):
        return tuple(super().reset(seed=seed)[0])


class OldStep(Base):
    def step(self, action):
        seen, reward, ended, _, info = super().step(action)
        return seen, reward, ended, info


class Raises(Base):
    def step(self, action):
        raise RuntimeError("boom in step")


class Exits(Base):
    def step(self, action):
        raise SystemExit(3)


class NoSuchRoom(Base):
    observation_space = spaces.Dict({"room": spaces.Discrete(3)})

    def seen(self):
        return {"room": -1}


class OtherKeys(NoSuchRoom):
    def seen(self):
        return {"room": 1, "light": 1}


class NotClosing(Base):
    def close(self):
        raise OSError("stuck")


class NoActions(Base):
    action_space = None


class Empty(Base):
    observation_space = spaces.Box(-1, 1, (0,))

    def seen(self):
        return np.zeros(0)


class Sequences(Base):
    observation_space = spaces.Sequence(spaces.Box(-1, 1, (1,)))


class ReadOnly(Base):
    def __init__(self):
        self.now = 0

    k = property(lambda self: 1.0)


class Whole(Base):
    def __init__(self, n=3):
        super().__init__(float(len(range(n))))


class Windy(Base):
    def __init__(self, windy=False):
        super().__init__(3.0 if windy else 1.0)


class Endless(Base):
    def step(self, action):
        return self.seen(), 0.0, False, False, {}


class Late(Base):
    """Works long enough to be believed, and then only outside of 0.3 to 0.9."""

    def step(self, action):
        if 0.3 < self.k < 0.9:
            raise ValueError("k may not be there")
        return super().step(action)


class Box2(Base):
    action_space = spaces.Box(-1, 1, (2,), np.float32)


class WholeBox(Base):
    action_space = spaces.Box(-1, 1, (1,), np.int64)


class FromMinusOne(Base):
    action_space = spaces.Discrete(3, start=-1)


def nothing(k=1.0):
    return None


def a_class(k=1.0):
    return Base


def a_vector(k=1.0):
    return gymnasium.make_vec("CartPole-v1", num_envs=2)


def by_configuration(configuration):
    return Base(configuration["k"])


def by_another_name(configuration):
    return Base(configuration["q"])
