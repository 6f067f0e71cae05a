"""The rounds that a budget pays for: as many as can still tell their own weights apart, and where the first one is."""

import math
from dataclasses import dataclass
from typing import Unpack, final

import numpy as np

from policyspace.configuration.schedule import Options, Schedule
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
    num_columns: int  # of weights that every round estimates anew
    num_constant: int  # of those, columns that stay the same within an episode
    flat: bool  # whether the world has a flat configuration to begin with

    @property
    def needed(self) -> int:
        """Episodes below which a round cannot tell its own weights apart."""
        return needed_episodes(self.num_columns, self.num_constant)

    @property
    def sentences(self) -> list[str]:
        """The plan and why, for people."""
        sizes, total = self.sizes, sum(self.sizes)
        listed = f"{sizes[0]}" if len(sizes) == 1 else f"{', '.join(map(str, sizes[:-1]))} and {sizes[-1]}"
        rounds = "one round" if len(sizes) == 1 else f"{len(sizes)} rounds"
        why = (
            f"every round estimates {self.num_columns} columns of weights anew, {self.num_constant} of which stay the same "
            f"within an episode; with fewer than {self.needed} episodes it could not tell them apart"
        )
        most = "" if len(sizes) < MOST_ROUNDS else f", and more than {MOST_ROUNDS} rounds have not found more"
        first = (
            "The first round is best at the flat configuration, which shows every feature at least sometimes."
            if self.flat
            else "The world has no flat configuration: the first round is where the agent is."
        )
        return [f"Plan for {total} episodes: {rounds} of {listed}.", f"Why: {why}{most}.", first]


def needed_episodes(num_columns: int, num_constant: int) -> int:
    """The least episodes of a round: enough pairs for every column, and enough episodes for those that hardly vary."""
    return max(math.ceil(PAIRS * num_columns / STEPS), EPISODES * num_constant)


def plan_rounds(world: Configurable, space: PolicySpace, budget: int) -> Plan:
    """The rounds of a joint design in a world: no round smaller than its weights need, one if the budget is small."""
    columns, constant = _columns(world, space)
    count = max(1, min(MOST_ROUNDS, budget // needed_episodes(columns, constant)))
    schedule = Schedule(("unit",), True, num_attempts=count - 1, budget=budget)
    sizes: list[int] = []
    while len(sizes) < count:
        sizes.append(schedule.episodes(len(sizes), sum(sizes)))
    return Plan(tuple(sizes), columns, constant, world.flat_configuration() is not None)


def schedule_for(world: Configurable, space: PolicySpace, joint: bool, **options: Unpack[Options]) -> Schedule:
    """The schedule of a study in a world; how often to configure follows from the budget, unless it is said."""
    schedule = Schedule.of(space, joint, **options | {"budget": None})
    budget = options.get("budget")
    if options.get("attempts") is None and budget is not None and joint and not schedule.sequential:
        options["attempts"] = len(plan_rounds(world, space, budget).sizes) - 1
    return Schedule.of(space, joint, **options)


def _columns(world: Configurable, space: PolicySpace) -> tuple[int, int]:
    """How many columns of weights a row of actions has, and how many of them stay the same within an episode.

    A few episodes of an agent that does nothing but chance tell which; the constant is one of them.
    """
    able = space.acting(space.fixed)
    seen = world.simulate(able, space.fixed, world.check_configuration({}), jax.random.key(0), 8)
    features, mask = np.asarray(seen.features), np.asarray(seen.mask)[..., None]
    still = (~mask | (features == features[:, :1])).all(axis=(0, 1))
    constant = int(bool(getattr(space, "intercept", False)))  # networks have biases instead
    return len(still) + constant, int(still.sum()) + constant
