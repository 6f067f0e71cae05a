"""How far an agent is from the best policy known inside what it controls, measured on the same episodes."""

from typing import Any, NamedTuple

import numpy as np

from policyspace.policies.jax_setup import jax
from policyspace.worlds.agents import Agent, learn
from policyspace.worlds.confmdp import ConfMDP, Key, rollout

NUM_OTHERS = 2
"""Agents that learn for comparison: as their world's agents do, from other chances."""
LONGER: dict[str, dict[str, Any]] = {"car": {"num_steps": 600}}
"""Where agents do not learn to the end by default, one that does instead, with such options of `learn`."""
NUM_EPISODES = 4000
"""That J is the mean of."""
FAR = 0.25
"""The share of what can be learned, beyond which an agent that lacks it is said to."""


class Returns(NamedTuple):
    """J of an agent and of the best policy known in its space, and how far the first is below the second."""

    agent: float
    best_known: float
    unlearned: float  # J of an agent whose weights are all at their fixed values
    standard_error: float  # of the agent's J
    distance_error: float  # of the distance: all act in the same episodes

    @property
    def distance(self) -> float:
        """How much better the best known policy is; zero if it is the agent's."""
        return self.best_known - self.agent

    @property
    def learned(self) -> float:
        """The share of what can be learned that the agent has: all of it, where the rest is no more than chance."""
        if self.distance <= 2.0 * self.distance_error:
            return 1.0
        return max(0.0, 1.0 - self.distance / max(self.best_known - self.unlearned, self.distance))

    @property
    def far(self) -> bool:
        """Whether the agent is far from the best known policy."""
        return self.learned < 1.0 - FAR

    def to_dict(self) -> dict[str, float]:
        """As a file keeps it."""
        return {"agent": self.agent, "best_known": self.best_known, "distance": self.distance}


def returns_of(agent: Agent, world: ConfMDP, key: Key) -> Returns:
    """The mean discounted return of an agent at its ω, and that of the best of itself and others that learned there.

    The others control the same and learn as agents of the world do; or one learns longer, as LONGER says. All are measured
    on as many episodes, from the same random numbers.
    """
    learning = LONGER.get(world.name, {})
    fresh, acting = jax.random.split(key)
    keys = [jax.random.fold_in(fresh, number) for number in range(1 if learning else NUM_OTHERS)]
    others = [learn(world, agent.space, agent.controls, agent.configuration, own, **learning).theta for own in keys]
    omega = world.check_configuration(agent.configuration)
    own, *rivals, nothing = (
        rollout(world, agent.space, theta, omega, acting, NUM_EPISODES).returns(world.discount)
        for theta in (agent.theta, *others, agent.space.fixed)
    )
    best = max((own, *rivals), key=lambda returns: float(np.mean(returns)))
    values = [float(np.mean(returns)) for returns in (own, best, nothing)]
    errors = [float(np.std(returns) / np.sqrt(NUM_EPISODES)) for returns in (own, best - own)]
    return Returns(*values, *errors)
