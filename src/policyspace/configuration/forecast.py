"""What the next round would settle: the power of its tests, expected from what is known of the agent."""

from collections.abc import Sequence

import numpy as np

from policyspace.configuration.observed_information import information_per_episode
from policyspace.configuration.request import PROMISING, Forecast
from policyspace.fits.fisher import noncentrality_for_power
from policyspace.fits.law import ChiSquare
from policyspace.planning import Wilks, pairs_for_power
from policyspace.policies import PolicySpace
from policyspace.worlds.configurable import Configurable, Configuration, Key
from policyspace.worlds.trajectories import Trajectories

NUM_SIMULATED = 100
"""As many episodes as designs simulate, so that the compiled code is the same."""


def forecast(
    world: Configurable,
    space: PolicySpace,
    theta: np.ndarray,
    logged: Trajectories,
    num_known: int,
    configuration: Configuration,
    units: Sequence[int],
    num_episodes: int,
    significance: float,
    key: Key,
) -> list[Forecast]:
    """For every unit, P(λ_u > c) at the non-centrality m·θ_uᵀ S_u θ_u, S_u the information of one episode about θ_u.

    S_u = F_uu − F_uo F_oo⁺ F_ou at ω, from episodes of π_θ̂. θ̂ comes from `num_known` episodes like the logged ones and
    carries their noise, which would pass for control: what pure noise would give, tr(S_u Cov θ̂_u) and twice its
    deviation, is taken off.
    """
    fresh = world.simulate(space, theta, configuration, key, NUM_SIMULATED)
    information = information_per_episode(space, theta, fresh)
    # A weight of which the data say nothing may be anything up to ten or so: its estimate is all noise.
    known = num_known * information_per_episode(space, theta, logged) + 0.01 * np.eye(len(theta))
    noise = np.linalg.inv(known)
    test = Wilks(ChiSquare(), significance / max(len(units), 1))
    return [
        _forecast(space, theta, unit, _beyond_others(information, space, unit), noise, num_episodes, test)
        for unit in units
    ]


def _beyond_others(information: np.ndarray, space: PolicySpace, unit: int) -> np.ndarray:
    """What an episode tells about a unit when all other weights are unknown: the Schur complement."""
    mine = np.array(space.groups[unit].indices)
    others = np.setdiff1d(np.arange(len(information)), mine)
    cross = information[np.ix_(mine, others)]
    inverse = np.linalg.pinv(information[np.ix_(others, others)], rcond=1e-9, hermitian=True)
    values, vectors = np.linalg.eigh(information[np.ix_(mine, mine)] - cross @ inverse @ cross.T)
    # What rounding leaves of a direction that the others explain, or that is never visited, is no information.
    values = np.where(values > 1e-8 * np.trace(information), values, 0.0)
    return (vectors * values) @ vectors.T


def _forecast(
    space: PolicySpace,
    theta: np.ndarray,
    unit: int,
    information: np.ndarray,
    noise: np.ndarray,
    num_episodes: int,
    test: Wilks,
) -> Forecast:
    group = space.groups[unit]
    mine, df = list(group.indices), len(group.indices)
    effect = theta[mine] - space.fixed[mine]
    by_chance = information @ noise[np.ix_(mine, mine)]
    chance = np.trace(by_chance) + 2 * np.sqrt(2 * np.trace(by_chance @ by_chance))
    rate = float(effect @ information @ effect - chance)
    needed = noncentrality_for_power(test.law, test.level, df, PROMISING)
    typical = num_episodes * max(float(np.trace(information)), 0.0) / df
    return Forecast(
        group.name,
        test.power(num_episodes, max(rate, 0.0), df),
        pairs_for_power(test, rate, df, PROMISING),
        float(np.sqrt(needed / typical)) if typical > 0 else float("inf"),
    )
