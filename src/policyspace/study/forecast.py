"""Power of the next round, and how many rounds a budget allows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack, final

import numpy as np

from policyspace.errors import number_of
from policyspace.families.base import PolicySpace
from policyspace.families.covariance import noncentrality_for_power
from policyspace.families.jax_backend import jax
from policyspace.families.likelihood import ChiSquare
from policyspace.inference.lean.regression import min_rows, units_needed
from policyspace.planning import Wilks, pairs_for_power
from policyspace.study.designs import information_per_episode
from policyspace.study.records import PROMISING, Forecast, Options, Schedule, check_count, plain, same_configuration
from policyspace.worlds.base import Configurable, Configuration, Key, Trajectories

# -- The rounds that a budget pays for: as many as can still tell their own weights apart, and where the first one is.

MOST_ROUNDS = 4
"""More rounds than this have not found more at any budget that was tried."""
PAIRS, STEPS = 5, 2
"""Pairs that each column of weights needs in a round, and steps that an episode of a good agent lasts at least."""
EPISODES = 4
"""Episodes for each column that stays the same within an episode: only other episodes tell such columns apart."""
MOST_LISTED = 8
"""More sizes of rounds would not be read one by one."""
FOLLOWED = "evidence is followed after every episode and multiplies over rounds, so that none must decide by itself"
"""Why rounds of an e-process need no size of their own."""


@final
@dataclass(frozen=True)
class RoundBudget:
    """How many rounds of how many episodes, and what that follows from."""

    sizes: tuple[int, ...]
    needed: int  # episodes of a round that a budget is split into, at least
    too_few: int  # below so many episodes even one round finds little
    why: str  # there are so many rounds
    flat: bool  # whether the world has a flat configuration
    aside: str | None = None  # how the flat configuration is named, if the first round is elsewhere

    @property
    def sentences(self) -> list[str]:
        """The plan, why, and where the first round is, for people."""
        total = sum(self.sizes)
        little = [f"{total} are fewer than {self.too_few}: expect little."] if total < self.too_few else []
        return [
            f"Plan for {number_of(total, 'episode')}: {in_words(self.sizes)}.",
            f"Why: {self.why}.",
            *little,
            self._first,
        ]

    @property
    def _first(self) -> str:
        """Where the first round is, and how to choose the flat configuration."""
        if not self.flat:
            return "The world has no flat configuration: the first round is where the agent is."
        if self.aside is None:
            return "The first round is at the flat configuration, which shows every feature at least sometimes."
        return (
            "The first round is at the configuration given; the flat one shows every feature at least sometimes: "
            f'--configuration "{self.aside}".'
        )


def in_words(sizes: Sequence[int]) -> str:
    """So many rounds, of so many episodes."""
    if len(sizes) == 1:
        return f"one round of {sizes[0]}"
    if len(sizes) > MOST_LISTED:
        return f"{len(sizes)} rounds of at most {max(sizes)}"
    return f"{len(sizes)} rounds of {', '.join(map(str, sizes[:-1]))} and {sizes[-1]}"


def needed_episodes(num_columns: int, num_constant: int) -> int:
    """The least episodes of a round: enough pairs for every column, and enough episodes for those that hardly vary."""
    return max(math.ceil(PAIRS * num_columns / STEPS), EPISODES * num_constant)


def plan_rounds(
    world: Configurable,
    space: PolicySpace,
    budget: int,
    sequential: bool = False,
    initial: Mapping[str, Any] | None = None,
) -> RoundBudget:
    """The rounds of a joint design in a world, the first of them at `initial`, by default the world's own configuration.

    No round is smaller than its test needs, and there is one if the budget is small; where evidence is followed after
    every episode, a round needs no size of its own.
    """
    needed, why = (1, FOLLOWED) if sequential else _needed(space, _looked(world, space))
    count = max(1, min(MOST_ROUNDS, budget // needed))
    if count == MOST_ROUNDS and not sequential:
        why += f", and more than {MOST_ROUNDS} rounds have not found more"
    sizes = sizes_of(Schedule(("unit",), True, max_rounds=count - 1, budget=budget))
    flat, first = world.flat_configuration(), world.check_configuration(initial or {})
    aside = None if flat is None or same_configuration(plain(first), plain(flat)) else _typed(plain(flat))
    # Where no model is trusted a smaller round makes no promise at all.
    too_few = needed if space.guess else math.ceil(needed / 2)
    return RoundBudget(sizes, needed, too_few, why, flat is not None, aside)


def sizes_of(schedule: Schedule) -> tuple[int, ...]:
    """The episodes of each round, if all are held and reported as they are asked for."""
    sizes: list[int] = []
    while len(sizes) < schedule.num_rounds and (size := schedule.episodes(len(sizes), sum(sizes))) > 0:
        sizes.append(size)
    return tuple(sizes)


def schedule_for(world: Configurable, space: PolicySpace, joint: bool, **options: Unpack[Options]) -> Schedule:
    """The schedule of a study in a world; how often to configure follows from the budget, unless it is said."""
    schedule = Schedule.of(space, joint, **options | {"budget": None})
    budget = options.get("budget")
    if options.get("max_rounds") is None and budget is not None and joint:
        check_count("episodes in the budget", budget, 1)
        options["max_rounds"] = len(plan_rounds(world, space, budget, schedule.sequential).sizes) - 1
    return Schedule.of(space, joint, **options)


def _typed(value: Any) -> str:
    """A configuration as it is typed after --configuration, and its numbers and lists."""
    if isinstance(value, dict):
        return ",".join(f"{name}={_typed(entry)}" for name, entry in value.items())
    return f"[{','.join(map(_typed, value))}]" if isinstance(value, list) else repr(value).removesuffix(".0")


class PilotEpisodes(NamedTuple):
    """What a few simulated episodes show of a world."""

    still: np.ndarray  # which features stay the same within an episode [q]
    length: float  # steps of an episode


def _looked(world: Configurable, space: PolicySpace) -> PilotEpisodes:
    """By an agent that does nothing but chance."""
    able = space.acting(space.fixed)
    seen = world.simulate(able, space.fixed, world.check_configuration({}), jax.random.key(0), 8)
    features, mask = np.asarray(seen.features), np.asarray(seen.mask)
    still = (~mask[..., None] | (features == features[:, :1])).all(axis=(0, 1))
    return PilotEpisodes(still, float(mask.sum(axis=1).mean()))


def _needed(space: PolicySpace, seen: PilotEpisodes) -> tuple[int, str]:
    """Episodes that a round needs for its own test, and why."""
    constant = int(bool(getattr(space, "intercept", False)))  # networks have biases instead
    width, still = len(seen.still), int(seen.still.sum())
    columns = width + constant
    what = f"estimates {columns} columns of weights anew, {still + constant} of which stay the same within an episode"
    if not space.linear:
        columns = math.ceil(space.num_parameters / len(space.action_names))
        what = f"fits a network of {space.num_parameters} weights anew"
    needed = needed_episodes(columns, still + constant)
    why = f"every round {what}; rounds of fewer than {needed} episodes are too small to split a budget into"
    if not space.guess:
        return needed, why
    inputs = [own for own in (space.group_columns() or {}).values() if own]
    sizes, curved = [len(own) for own in inputs], sum(bool(seen.still[own[0]]) for own in inputs if len(own) == 1)
    # Curves of features that stay the same within an episode get finer with the number of these.
    flexible, more = 0, 1
    while more > flexible:
        flexible = more
        more = max(units_needed(curved, still, flexible), math.ceil(min_rows(sizes, curved, flexible) / seen.length))
    if flexible <= needed:
        return needed, why
    return flexible, (
        f"every round is tested without a model, by regressions on {width} features and their products; they need "
        f"{flexible} episodes, of {seen.length:.0f} steps each in a look at 8 of them"
    )


# -- What the next round would settle: the power of its tests, expected from what is known of the agent.

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
        _forecast(space, theta, unit, beyond_others(information, space, unit), noise, num_episodes, test)
        for unit in units
    ]


def beyond_others(information: np.ndarray, space: PolicySpace, unit: int) -> np.ndarray:
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
