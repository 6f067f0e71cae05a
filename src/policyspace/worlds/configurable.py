"""What a loop of configuring must know of a world: what can be set, what agents perceive and do, and how to watch one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from policyspace.errors import InputError
from policyspace.policies import PolicySpace
from policyspace.worlds.configuration_parameters import ConfigurationParameter, checked_configuration
from policyspace.worlds.trajectories import Trajectories

Array = Any  # a NumPy or a JAX array
Key = Any  # a JAX random key
Configuration = dict[str, Array]
"""ω: one array a configuration parameter, by name."""


class CannotBePlayed(InputError):
    """A world does not work at some configuration, though that lies between the bounds."""


class Configurable(ABC):
    """A world that can be configured and simulated; densities, which importance weights need, are a `ConfMDP`'s."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the command line and reports call the world."""

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...]:
        """The features φ that agents may perceive, without the constant."""

    @property
    @abstractmethod
    def action_names(self) -> tuple[str, ...]:
        """The actions, or the components of a continuous action."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[ConfigurationParameter, ...]:
        """The entries of ω."""

    @property
    def action_bounds(self) -> tuple[float, float] | None:
        """The interval that matters for the components of an action; None if actions are discrete, codes 0, 1, …"""
        return None

    @abstractmethod
    def policy_space(self, **options: Any) -> PolicySpace:
        """The policy space in which this world's agents are sought; options go to its constructor."""

    @abstractmethod
    def simulate(
        self, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
    ) -> Trajectories:
        """Episodes of π_θ at ω; `CannotBePlayed` where there are none."""

    def check_configuration(self, given: Mapping[str, Any]) -> Configuration:
        """ω from what a user gave: names, shapes, finiteness and bounds checked; what is missing has its default."""
        return checked_configuration(self.parameters, given)

    def flat_configuration(self) -> Configuration | None:
        """The one ω that shows everything at least sometimes, where the world has such a one."""
        return None

    def uniform_configuration(self, key: Key) -> Configuration:
        """The ω that plays no favourites: uniform between the bounds, unless the world has a flat one."""
        rng = generator(key)
        return {p.name: rng.uniform(p.low, p.high, p.shape) for p in self.parameters}


def generator(key: Key) -> np.random.Generator:
    """NumPy's random numbers from a JAX key: the same key, the same numbers."""
    from policyspace.policies.jax_setup import jax

    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
