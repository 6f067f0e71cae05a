"""The rounds that a budget pays for: as many as can still tell their own weights apart, and where the first one is."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Unpack, final

import numpy as np

from policyspace.configuration.schedule import Options, Schedule
from policyspace.inference.lean.nuisance import rows_needed, units_needed
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.worlds.configurable import Configurable

MOST_ROUNDS = 4
"""More rounds than this have not found more at any budget that was tried."""
PAIRS, STEPS = 5, 2
"""Pairs that each column of weights needs in a round, and steps that an episode of a good agent lasts at least."""
EPISODES = 4
"""Episodes for each column that stays the same within an episode: only other episodes tell such columns apart."""


@final
@dataclass(frozen=True)
class Plan:
    """How many rounds of how many episodes, and what that follows from."""

    sizes: tuple[int, ...]
    needed: int  # episodes of a round, at least
    why: str  # so many are needed
    flat: bool  # whether the world has a flat configuration to begin with

    @property
    def sentences(self) -> list[str]:
        """The plan and why, for people."""
        sizes, total = self.sizes, sum(self.sizes)
        listed = f"{sizes[0]}" if len(sizes) == 1 else f"{', '.join(map(str, sizes[:-1]))} and {sizes[-1]}"
        rounds = "one round" if len(sizes) == 1 else f"{len(sizes)} rounds"
        most = "" if len(sizes) < MOST_ROUNDS else f", and more than {MOST_ROUNDS} rounds have not found more"
        first = (
            "The first round is best at the flat configuration, which shows every feature at least sometimes."
            if self.flat
            else "The world has no flat configuration: the first round is where the agent is."
        )
        return [f"Plan for {total} episodes: {rounds} of {listed}.", f"Why: {self.why}{most}.", *self._too_small, first]

    @property
    def _too_small(self) -> list[str]:
        """A sentence where even one round is too small."""
        total = sum(self.sizes)
        return [f"{total} are fewer than {self.needed}: expect little."] if total < self.needed else []


def needed_episodes(num_columns: int, num_constant: int) -> int:
    """The least episodes of a round: enough pairs for every column, and enough episodes for those that hardly vary."""
    return max(math.ceil(PAIRS * num_columns / STEPS), EPISODES * num_constant)


def plan_rounds(world: Configurable, space: PolicySpace, budget: int) -> Plan:
    """The rounds of a joint design in a world: no round smaller than its test needs, one if the budget is small."""
    needed, why = _needed(space, _looked(world, space))
    count = max(1, min(MOST_ROUNDS, budget // needed))
    schedule = Schedule(("unit",), True, num_attempts=count - 1, budget=budget)
    sizes: list[int] = []
    while len(sizes) < count:
        sizes.append(schedule.episodes(len(sizes), sum(sizes)))
    return Plan(tuple(sizes), needed, why, world.flat_configuration() is not None)


def schedule_for(world: Configurable, space: PolicySpace, joint: bool, **options: Unpack[Options]) -> Schedule:
    """The schedule of a study in a world; how often to configure follows from the budget, unless it is said."""
    schedule = Schedule.of(space, joint, **options | {"budget": None})
    budget = options.get("budget")
    if options.get("attempts") is None and budget is not None and joint and not schedule.sequential:
        options["attempts"] = len(plan_rounds(world, space, budget).sizes) - 1
    return Schedule.of(space, joint, **options)


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
    needed = needed_episodes(width + constant, still + constant)
    why = (
        f"every round estimates {width + constant} columns of weights anew, {still + constant} of which stay the same "
        f"within an episode; with fewer than {needed} episodes it could not tell them apart"
    )
    if not space.guess:
        return needed, why
    columns = [own for own in (space.group_columns() or {}).values() if own]
    sizes, curved = [len(own) for own in columns], sum(seen.still[own[0]] for own in columns if len(own) == 1)
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
