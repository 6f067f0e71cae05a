"""The rounds that a budget pays for: as many as can still tell their own weights apart, and where the first one is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack, final

import numpy as np

from policyspace.configuration.round import plain, same_configuration
from policyspace.configuration.schedule import Options, Schedule, check_count
from policyspace.inference.lean.nuisance import rows_needed, units_needed
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.printable import number_of
from policyspace.worlds.configurable import Configurable

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
class Plan:
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
) -> Plan:
    """The rounds of a joint design in a world, the first of them at `initial`, by default the world's own configuration.

    No round is smaller than its test needs, and there is one if the budget is small; where evidence is followed after
    every episode, a round needs no size of its own.
    """
    needed, why = (1, FOLLOWED) if sequential else _needed(space, _looked(world, space))
    count = max(1, min(MOST_ROUNDS, budget // needed))
    if count == MOST_ROUNDS and not sequential:
        why += f", and more than {MOST_ROUNDS} rounds have not found more"
    sizes = sizes_of(Schedule(("unit",), True, num_attempts=count - 1, budget=budget))
    flat, first = world.flat_configuration(), world.check_configuration(initial or {})
    aside = None if flat is None or same_configuration(plain(first), plain(flat)) else _typed(plain(flat))
    # Where no model is trusted a smaller round makes no promise at all.
    too_few = needed if space.guess else math.ceil(needed / 2)
    return Plan(sizes, needed, too_few, why, flat is not None, aside)


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
    if options.get("attempts") is None and budget is not None and joint:
        check_count("episodes in the budget", budget, 1)
        options["attempts"] = len(plan_rounds(world, space, budget, schedule.sequential).sizes) - 1
    return Schedule.of(space, joint, **options)


def _typed(value: Any) -> str:
    """A configuration as it is typed after --configuration, and its numbers and lists."""
    if isinstance(value, dict):
        return ",".join(f"{name}={_typed(entry)}" for name, entry in value.items())
    return f"[{','.join(map(_typed, value))}]" if isinstance(value, list) else repr(value).removesuffix(".0")


class Look(NamedTuple):
    """What a few simulated episodes show of a world."""

    still: np.ndarray  # which features stay the same within an episode [q]
    length: float  # steps of an episode


def _looked(world: Configurable, space: PolicySpace) -> Look:
    """By an agent that does nothing but chance."""
    able = space.acting(space.fixed)
    seen = world.simulate(able, space.fixed, world.check_configuration({}), jax.random.key(0), 8)
    features, mask = np.asarray(seen.features), np.asarray(seen.mask)
    still = (~mask[..., None] | (features == features[:, :1])).all(axis=(0, 1))
    return Look(still, float(mask.sum(axis=1).mean()))


def _needed(space: PolicySpace, seen: Look) -> tuple[int, str]:
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
        more = max(units_needed(curved, still, flexible), math.ceil(rows_needed(sizes, curved, flexible) / seen.length))
    if flexible <= needed:
        return needed, why
    return flexible, (
        f"every round is tested without a model, by regressions on {width} features and their products; they need "
        f"{flexible} episodes, of {seen.length:.0f} steps each in a look at 8 of them"
    )
