"""Ask an agent by its action distributions: compare them before and after an input is redrawn."""

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from scipy.special import stdtrit

from policyspace.asking.agents import AskedAgent, rows_of
from policyspace.asking.answer import AskedGroup, AskOptions, Cost, Effect, Redraw, Witness, verdict_of
from policyspace.asking.inputs import Inputs
from policyspace.asking.law import NOISE, Law
from policyspace.asking.states import Counted, States
from policyspace.errors import InputError
from policyspace.runtime import say_progress

STATES, REDRAWS = 1000, 4
"""In so many states of the log each input is redrawn so often."""

CANDIDATES, NEAR = 1000, 10
"""A likely reading is that of one of the nearest rows among so many candidates."""

STEPS_OF_MEMORY = 8
"""How long the effect of a reading is followed in an agent with a memory."""

MARGIN = 0.975
"""Quantile of the margins of effects, which hold with 95 %."""


def ask_inside(
    agent: AskedAgent, states: States, inputs: Inputs, options: AskOptions, rng: np.random.Generator
) -> tuple[tuple[AskedGroup, ...], Cost, str]:
    """Every input in turn, by any and by likely readings; what was found, what it cost, and why it stopped early."""
    counted = Counted(agent)
    asking = Questions(counted, states, inputs, options, rng)
    found: dict[str, AskedGroup] = {}
    stopped = ""
    for done, group in enumerate(inputs.groups):
        named = [one.group for one in found.values() if one.witness is not None]
        so_far = f": reacts to {', '.join(named[-4:])}" if named else ""
        say_progress(f"asking inside{so_far}", done, len(inputs.groups))
        try:
            found[group] = asking.ask(group)
        except InputError as error:
            stopped = f"asked about '{group}', {error}"
            break
    rest = (AskedGroup(group, "no evidence", None) for group in inputs.groups if group not in found)
    return (*found.values(), *rest), counted.cost, stopped


def steps_of_memory(agent: AskedAgent, options: AskOptions) -> int:
    """How many steps after a reading its effect is looked for."""
    if options.memory is not None:
        return options.memory if agent.has_memory else 0
    return STEPS_OF_MEMORY if agent.has_memory else 0


def numbers_of_questions(num_states: int, budget: int | None) -> tuple[int, int]:
    """In how many states an input is redrawn, and how often in each."""
    budget = STATES * REDRAWS if budget is None else budget
    redraws = min(REDRAWS, budget)
    rows = min(num_states, budget // redraws)
    return rows, max(redraws, budget // rows)


def never_bound(num_states: int, significance: float) -> float:
    """Of an event that was not seen in any of so many states drawn at random: Clopper and Pearson's bound of its share."""
    return float(-np.expm1(np.log(significance) / max(num_states, 1)))


def mean_effect(change: np.ndarray, owners: np.ndarray, donors: np.ndarray) -> Effect:
    """The mean of changes [n, m], with a margin for other episodes of the same agent.

    Changes in one episode are alike, and so are those by readings from one. So each episode has a share in the mean, as
    the owner [n] of states and as the donor [n, m] of readings, and the spread of these shares is that of the mean (the
    projection of a two-sample statistic).
    """
    if not change.size:
        return Effect(0.0, 0.0, 1.0)
    mean = float(change.mean())
    rest, size = change - mean, 1 + max(owners.max(), donors.max())
    shares = np.bincount(owners, rest.mean(axis=1), size) / len(rest)
    shares += np.bincount(donors.ravel(), rest.ravel(), size) / rest.size
    free = len(np.union1d(owners, donors)) - 1
    if free < 1:
        return Effect(mean, 0.0, 1.0)
    margin = float(stdtrit(free, MARGIN) * np.sqrt((shares**2).sum() * (free + 1) / free))
    return Effect(mean, max(mean - margin, 0.0), min(mean + margin, 1.0))


@final
class Questions:
    """The states to ask in, and what the agent does there as they are: now and, with a memory, in the steps after."""

    def __init__(
        self, counted: Counted, states: States, inputs: Inputs, options: AskOptions, rng: np.random.Generator
    ) -> None:
        self.counted, self.states, self.inputs, self.options, self.rng = counted, states, inputs, options, rng
        n, self.redraws = numbers_of_questions(len(states), options.budget)
        self.rows = np.sort(rng.choice(len(states), n, replace=False))
        self.memory = states.memories(counted.agent, self.rows)
        later = [states.later(self.rows, lag) for lag in range(steps_of_memory(counted.agent, options) + 1)]
        self.sequence = [states.take(after) for after, _ in later]
        """The observations at each lag; of batches of one shape, because networks round by it."""
        self.going = [same for _, same in later]
        """Which rows are then still in the same episode."""
        self.episodes = states.episode_numbers
        self.near = Neighbours(states, inputs, self.rows, rng) if "likely" in options.redraw else None
        self.laws = self.replayed(self.sequence[0])
        self.changes: dict[str, np.ndarray] = {}
        """By input how far any reading moves the action in each state, at the lag where that is most."""

    def replayed(self, first: Any) -> list[Law]:
        """What the agent does when it sees something first, and at each lag what is in the log."""
        laws, memory = [], self.memory
        for lag, seen in enumerate(self.sequence):
            law, memory = self.counted.law(seen if lag else first, memory)
            laws.append(law)
        return laws

    def ask(self, group: str) -> AskedGroup:
        """All questions about one input."""
        changes: dict[Redraw, tuple[np.ndarray, np.ndarray]] = {}
        differs = np.zeros(len(self.rows), dtype=bool)
        questions, best = 0, None
        for kind in self.options.redraw:
            donors = self._donors(kind, group)
            change = np.zeros((len(self.sequence), self.redraws, len(self.rows)))
            for m, places in enumerate(donors.T):
                given = self.states.take(places)
                other = self.inputs.differ(self.sequence[0], group, given)
                if kind == "any":
                    differs |= other
                questions += int(other.sum())
                if not other.any():
                    continue
                asked = self.inputs.replaced(self.sequence[0], group, given)
                for lag, law in enumerate(self.replayed(asked)):
                    moved = self.laws[lag].distance(law)
                    moved[~self.going[lag] | (self.laws[lag].total_variation(law) <= NOISE)] = 0.0
                    change[lag, m] = moved
                    top = int(moved.argmax())
                    if moved[top] > (0.0 if best is None else best.change):
                        best = self._witness(group, top, lag, asked, float(moved[top]))
            changes[kind] = change, donors
        return self._concluded(group, changes, int(differs.sum()), questions, best)

    def _concluded(
        self,
        group: str,
        changes: Mapping[Redraw, tuple[np.ndarray, np.ndarray]],
        num_states: int,
        questions: int,
        witness: Witness | None,
    ) -> AskedGroup:
        if not questions:
            return AskedGroup(group, "no evidence", None)
        if witness is None:
            bound = never_bound(num_states, self.options.significance / len(self.inputs.groups))
            nothing = Effect(0.0, 0.0, bound)
            likely = nothing if "likely" in changes else None
            lags = (nothing,) * len(self.sequence) if len(self.sequence) > 1 else ()
            return AskedGroup(group, "never", nothing, likely, None, questions, None, bound, lags)
        effects = {
            kind: [self._effect(one, donors, lag) for lag, one in enumerate(found)]
            for kind, (found, donors) in changes.items()
        }
        lag = int(np.argmax([effect.estimate for effect in effects["any"]]))
        likely = effects["likely"][lag] if "likely" in effects else None
        lags = tuple(effects["any"]) if len(self.sequence) > 1 else ()
        effect = effects["any"][lag]
        self.changes[group] = changes["any"][0][lag].mean(axis=0)
        return AskedGroup(group, verdict_of(effect.estimate), effect, likely, None, questions, witness, None, lags)

    def _effect(self, change: np.ndarray, donors: np.ndarray, lag: int) -> Effect:
        """The mean over the states in which the episode goes on."""
        going = self.going[lag]
        return mean_effect(change.T[going], self.episodes[self.rows[going]], self.episodes[donors[going]])

    def _witness(self, group: str, top: int, lag: int, asked: Any, change: float) -> Witness:
        def one(values: Any) -> Any:
            return rows_of(values, np.array([top]))

        rest = tuple(one(seen) for seen in self.sequence[1 : lag + 1])
        first, second = one(self.sequence[0]), one(asked)
        readings = self.inputs.reading(first, group, 0), self.inputs.reading(second, group, 0)
        memory = self.counted.agent.copy_memory(one(self.memory))
        return Witness(group, int(self.rows[top]), *readings, change, lag, (first, *rest), (second, *rest), memory)

    def _donors(self, kind: Redraw, group: str) -> np.ndarray:
        """The rows [n, redraws] whose readings are put in: of the whole log, or near in the other inputs."""
        shape = (len(self.rows), self.redraws)
        if kind == "any" or self.near is None or len(self.inputs.groups) == 1:
            return self.rng.integers(len(self.states), size=shape)
        nearest = self.near.of(group)
        return np.take_along_axis(nearest, self.rng.integers(nearest.shape[1], size=shape), axis=1)


@final
class Neighbours:
    """Rows of the log that are near to given ones in all inputs but one, measured in standard deviations."""

    def __init__(self, states: States, inputs: Inputs, rows: np.ndarray, rng: np.random.Generator) -> None:
        self.pool = np.sort(rng.choice(len(states), min(len(states), CANDIDATES), replace=False))
        ours, theirs = (inputs.columns(states.take(some)) for some in (rows, self.pool))
        centre, scale = theirs.mean(axis=0), theirs.std(axis=0)
        scale[scale == 0] = 1.0
        self.ours, self.theirs = (((one - centre) / scale).astype(np.float32) for one in (ours, theirs))
        self.owners = np.array(inputs.column_groups)
        self.same = rows[:, None] == self.pool

    def of(self, group: str) -> np.ndarray:
        """The nearest rows [n, at most NEAR] of every given one, itself not among them."""
        a, b = self.ours[:, self.owners != group], self.theirs[:, self.owners != group]
        apart = (b**2).sum(axis=1) - 2 * (a @ b.T)
        apart[self.same] = np.inf
        near = min(NEAR, max(len(self.pool) - 1, 1))
        return self.pool[np.argpartition(apart, near - 1, axis=1)[:, :near]]
