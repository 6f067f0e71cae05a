"""Ask an agent by its actions alone: sequential bets on which of two actions belongs to which of two observations."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import logsumexp, stdtrit

from policyspace.asking.agents import AskedAgent, joined, rows_of
from policyspace.asking.answer import AskedGroup, AskOptions, Cost, Effect, Redraw, verdict_of
from policyspace.asking.inputs import Inputs
from policyspace.asking.inside import MARGIN, Neighbours, steps_of_memory
from policyspace.asking.states import Counted, States
from policyspace.errors import InputError
from policyspace.inference.betting import OnlinePredictor, randomisation_p_value, shown_by
from policyspace.runtime import say_progress

PAIRS, ACTIVE = 20, 15
"""Of each input in a round, and how many of them are those whose answers are expected to differ most."""

CANDIDATES = 160
"""Pairs among which these are chosen, before their answers are known."""

QUESTIONS = 600
"""Most questions of the bets about each input, unless somebody says how many."""

FEW = 0.3
"""Questions that find on average no smaller total variation than this are few."""

TRIES = 10
"""Of drawing candidates, where few of them differ."""

STAKE = 0.95
"""The share of the wealth that is bet."""

EFFECT_STATES, ANSWERS, FOLDS = 500, 2, 2
"""In so many states effects are measured, by so many answers to either reading; predictors are fitted to other folds."""

EFFECT_ROWS = 4000
"""Most answers to which such a predictor is fitted."""

REPEATED = 100
"""States in which the agent is asked at first and at last, to see whether being asked changes it."""

CHANGED = 0.01
"""Significance from which on first and last answers count as different."""


def log_pair_e_values(own: np.ndarray, exchanged: np.ndarray) -> np.ndarray:
    """The logarithm of what bets on pairs pay [n], from log f of the answers as given and of the answers exchanged.

    A pair pays .05 + .95·2 f(a|x) f(a'|x')/(f(a|x) f(a'|x') + f(a'|x) f(a|x')). If the agent does not react, both orders
    are as likely: then the mean is 1, whatever f is.

    Examples
    --------
    >>> import numpy as np
    >>> own, exchanged = np.log([0.9 * 0.8]), np.log([0.1 * 0.2])
    >>> both = np.exp([log_pair_e_values(own, exchanged), log_pair_e_values(exchanged, own)])
    >>> round(float(both.mean()), 12)
    1.0
    """
    share = np.exp(own - np.logaddexp(own, exchanged))
    return np.log(1 - STAKE + 2 * STAKE * share)


def fewest_questions(significance: float) -> int:
    """That bets on pairs need to find anything, if all of them are won by an agent that is known."""
    return 2 * int(np.ceil(np.log(1 / significance) / np.log(1 + STAKE)))


def questions_of_pairs(num_states: int, num_groups: int, lags: int, options: AskOptions) -> tuple[int, int, int]:
    """The most questions of the bets about an input, those of each of its effects, and the most of all together."""
    bets = options.budget or QUESTIONS
    effect = ANSWERS * effect_states(num_states, options.budget)
    together = num_groups * bets + effect * (1 + num_groups * len(options.redraw)) + 2 * min(REPEATED, bets)
    return bets, effect, lags * together


def effect_states(num_states: int, budget: int | None) -> int:
    """In how many states effects are measured."""
    return min(EFFECT_STATES, max((ANSWERS * EFFECT_STATES if budget is None else budget) // ANSWERS, 1), num_states)


def smallest_found(num_groups: int, significance: float, questions: int) -> float:
    """The total variation of a choice between two from which on so many questions find an input, on average.

    With chances of .5 ± τ/2, a pair of answers to readings that are τ apart multiplies the wealth by exp(τ²), to the
    second order in τ; closed testing asks for num_groups/significance.
    """
    return float(min(np.sqrt(2 * np.log(num_groups / significance) / max(questions, 1)), 1.0))


def answers_of(agent: AskedAgent, actions: np.ndarray) -> np.ndarray:
    """Actions as bets take them [n, choices]: choices from 0 on, or numbers."""
    rows = np.asarray(actions).reshape(len(actions), -1)
    if agent.action_type == "continuous":
        return rows.astype(np.float64)
    return rows.astype(np.int64) - np.ravel(getattr(agent.action_space, "start", 0)).astype(np.int64)


@final
@dataclass(frozen=True)
class Asked:
    """Some states of the log, in which readings may have been put in."""

    rows: np.ndarray
    """Of the log [n]."""
    observations: Any
    """What the agent is shown there."""
    numbers: np.ndarray
    """What describes that [n, p], as of `Inputs.columns`."""

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: np.ndarray) -> "Asked":
        """Some of them."""
        return Asked(self.rows[places], rows_of(self.observations, places), self.numbers[places])

    @staticmethod
    def joined(parts: "Sequence[Asked]") -> "Asked":
        """Some after the others."""
        rows, numbers = (np.concatenate([getattr(one, name) for one in parts]) for name in ("rows", "numbers"))
        return Asked(rows, joined([one.observations for one in parts]), numbers)


@final
class Asker:
    """Asks an agent in states of the log; with a memory, also in the steps after."""

    def __init__(self, counted: Counted, states: States, inputs: Inputs, memory: int, rng: np.random.Generator) -> None:
        self.counted, self.states, self.inputs, self.rng = counted, states, inputs, rng
        self.lags = range(memory + 1)
        self.memory = states.memories(counted.agent, np.arange(len(states)))
        """Before every state of the log."""
        self.numbers = inputs.columns(states.observations)
        self._owners = np.array(inputs.column_groups)

    def shown(self, rows: np.ndarray) -> Asked:
        """States as they were."""
        return Asked(rows, self.states.take(rows), self.numbers[rows])

    def redrawn(self, asked: Asked, group: str, donors: np.ndarray) -> Asked:
        """The same with the readings of an input in other rows."""
        observations = self.inputs.replaced(asked.observations, group, self.states.take(donors))
        if any(part.symbol is not None for part in self.inputs.parts[group]):  # its cells are those of others, too
            return Asked(asked.rows, observations, self.inputs.columns(observations))
        return Asked(asked.rows, observations, self.described(asked.rows, asked.numbers, group, donors))

    def described(self, rows: np.ndarray, numbers: np.ndarray, group: str, donors: np.ndarray) -> np.ndarray:
        """What describes states with the readings of an input in other rows."""
        found, own = numbers.copy(), self._owners == group
        found[:, own] = self.numbers[donors][:, own]
        return found

    def answers(self, asked: Asked) -> np.ndarray:
        """What the agent does [n, lags, choices], in the order of the rows."""
        memory, found = rows_of(self.memory, asked.rows), []
        for lag in self.lags:
            seen = asked.observations if lag == 0 else self.states.take(self.states.later(asked.rows, lag)[0])
            actions, memory = self.counted.act(seen, self.rng, memory)
            found.append(answers_of(self.counted.agent, actions))
        return np.stack(found, axis=1)

    def in_order(self, asked: Asked, order: np.ndarray) -> np.ndarray:
        """The same answers, asked in another order."""
        answers = self.answers(asked.take(order))
        found = np.empty_like(answers)
        found[order] = answers
        return found

    def at_lags(self, rows: np.ndarray, numbers: np.ndarray) -> list[np.ndarray]:
        """At each lag what describes the state and, later, what the agent sees then."""
        later = (self.numbers[self.states.later(rows, lag)[0]] for lag in self.lags[1:])
        return [numbers, *(np.hstack([numbers, seen]) for seen in later)]

    def going(self, rows: np.ndarray) -> np.ndarray:
        """At which lags [n, lags] the episode of a state still goes on."""
        return np.stack([self.states.later(rows, lag)[1] for lag in self.lags], axis=1)


@final
class Predictors:
    """What an agent is expected to answer, at each lag, by its earlier answers."""

    def __init__(self, agent: AskedAgent, lags: int) -> None:
        choices = (0,) * agent.num_actions if agent.action_type == "continuous" else agent.choices
        self.each = [OnlinePredictor(choices, growth=1.4)]
        self.each += [OnlinePredictor(choices, growth=1.5, trees=False) for _ in range(lags - 1)]

    @property
    def ready(self) -> bool:
        """Have they been fitted?"""
        return self.each[0].ready

    def tell(self, numbers: Sequence[np.ndarray], answers: np.ndarray, going: np.ndarray) -> None:
        """Answers [n, lags, choices] to states that are described by numbers, at each lag."""
        for lag, predictor in enumerate(self.each):
            predictor.tell(numbers[lag][going[:, lag]], answers[going[:, lag], lag])
            predictor.refit()

    def log_densities(self, numbers: Sequence[np.ndarray], answers: np.ndarray, going: np.ndarray) -> np.ndarray:
        """Of answers in given states, at each lag [lags, n]; 0 where the episode has ended."""
        found = [predictor.log_density(numbers[lag], answers[:, lag]) for lag, predictor in enumerate(self.each)]
        return np.where(going.T, np.stack(found), 0.0)

    def expected_difference(self, numbers: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> np.ndarray:
        """How far the answers to two readings are expected to differ, all lags together [n]."""
        pairs = zip(self.each, numbers, others, strict=True)
        return np.asarray(sum(predictor.expected_difference(here, there) for predictor, here, there in pairs))

    def fitted_also_to(self, numbers: Sequence[np.ndarray], answers: np.ndarray, going: np.ndarray) -> "Predictors":
        """A copy that has been fitted to more rows."""
        found = deepcopy(self)
        for predictor in found.each:
            predictor.growth, predictor.MOST_ROWS = 1.0, EFFECT_ROWS
        found.tell(numbers, answers, going)
        return found


# -- The bets.


@final
class PairBets:
    """The wealth of bets that an agent reacts to each input, and the questions that it took."""

    def __init__(
        self,
        asking: Asker,
        groups: Sequence[str],
        significance: float,
        active: int = ACTIVE,
        correction: str = "closed",
    ) -> None:
        self.asking, self.groups, self.active = asking, tuple(groups), active
        self.significance, self.correction = significance, correction
        self.predictors = Predictors(asking.counted.agent, len(asking.lags))
        self.questions = dict.fromkeys(self.groups, 0)
        self.found: dict[str, float] = {}
        """The inputs found, and the wealth with which they were."""
        self._wealth = np.zeros((2 if len(asking.lags) > 1 else 1, len(self.groups)))

    @property
    def log_wealth(self) -> np.ndarray:
        """By input: the average of bets on the next action and on all that a memory may hold."""
        return np.asarray(logsumexp(self._wealth, axis=0) - np.log(len(self._wealth)))

    @property
    def open(self) -> tuple[str, ...]:
        """The inputs that have not been found."""
        return tuple(group for group in self.groups if group not in self.found)

    def begin(self, budget: int) -> tuple[Asked, np.ndarray]:
        """Ask in states with mixed readings, to have something to predict by: these states and the answers."""
        rng, n = self.asking.rng, len(self.asking.states)
        states = self.asking.shown(rng.integers(n, size=min(REPEATED, budget)))
        for group in self.groups:
            other = rng.random(len(states)) < 0.5
            states = self.asking.redrawn(states, group, np.where(other, rng.integers(n, size=len(states)), states.rows))
        answers = self.asking.answers(states)
        going = self.asking.going(states.rows)
        self.predictors.tell(self.asking.at_lags(states.rows, states.numbers), answers, going)
        return states, answers

    def run(self, budget: int) -> None:
        """Round after round until all inputs are found, or so many questions have been asked about each."""
        while pairs := {
            group: min(PAIRS, left) for group in self.open if (left := (budget - self.questions[group]) // 2)
        }:
            named = f": reacts to {', '.join(list(self.found)[-4:])}" if self.found else ""
            settled = sum(self.questions[group] if group in pairs else budget for group in self.groups)
            say_progress(f"asking by pairs{named}", settled, budget * len(self.groups))
            before = dict(self.questions)
            self.round(pairs)
            if self.questions == before:  # readings that hardly ever differ
                break

    def round(self, pairs: Mapping[str, int]) -> None:
        """So many pairs of some inputs, asked together, and bet on by what was answered before."""
        chosen = {group: self._chosen(group, num) for group, num in pairs.items()}
        here, there = (Asked.joined([both[side] for both in chosen.values()]) for side in (0, 1))
        if not len(here):
            return
        n, rng = len(here), self.asking.rng
        every = Asked.joined([here, there])
        first = rng.random(n) < 0.5  # which reading is asked first is drawn, so that the order says nothing
        order = np.stack([np.where(first, np.arange(n), n + np.arange(n)), np.where(first, n, 0) + np.arange(n)], 1)
        answers, going = self.asking.in_order(every, order.ravel()), self.asking.going(here.rows)
        numbers = [self.asking.at_lags(one.rows, one.numbers) for one in (here, there)]
        a, b = answers[:n], answers[n:]
        densities = self.predictors.log_densities
        own = densities(numbers[0], a, going) + densities(numbers[1], b, going)
        exchanged = densities(numbers[0], b, going) + densities(numbers[1], a, going)
        start = 0
        for group, (one, _) in chosen.items():
            rows, place = slice(start, start + len(one)), self.groups.index(group)
            start += len(one)
            self.questions[group] += 2 * len(one)
            self._wealth[0, place] += log_pair_e_values(own[0, rows], exchanged[0, rows]).sum()
            if len(self._wealth) > 1:
                self._wealth[1, place] += log_pair_e_values(own[:, rows].sum(0), exchanged[:, rows].sum(0)).sum()
        shown = shown_by(self.log_wealth, self.significance, self.correction)
        for group in self.open:
            if shown[self.groups.index(group)]:
                self.found[group] = float(np.exp(min(self.log_wealth[self.groups.index(group)], 600.0)))
        known = [np.concatenate(parts) for parts in zip(*numbers, strict=True)]
        self.predictors.tell(known, answers, np.tile(going, (2, 1)))

    def _chosen(self, group: str, pairs: int) -> tuple[Asked, Asked]:
        """Pairs that differ in an input alone: those whose answers are expected to differ most, and others at random."""
        asking, states = self.asking, self.asking.states
        found = np.zeros((2, 0), dtype=np.int64)
        for _ in range(TRIES):  # more than once where few readings differ
            rows, donors = drawn = asking.rng.integers(len(states), size=(2, CANDIDATES))
            differ = asking.inputs.differ(states.take(rows), group, states.take(donors))
            found = np.hstack([found, drawn[:, differ]])
            if found.shape[1] >= pairs:
                break
        rows, donors = found
        best = np.zeros(0, dtype=np.int64)
        if self.predictors.ready and self.active and len(rows):
            numbers = asking.numbers[rows]
            both = (asking.at_lags(rows, one) for one in (numbers, asking.described(rows, numbers, group, donors)))
            best = np.argsort(-self.predictors.expected_difference(*both), kind="stable")[: min(self.active, pairs)]
        rest = np.setdiff1d(np.arange(len(rows)), best)[: pairs - len(best)]  # candidates are in a random order
        places = np.concatenate([best, rest])
        here = asking.shown(rows[places])
        return here, asking.redrawn(here, group, donors[places])


# -- How far the answers move.


@final
class GuessedEffects:
    """How often a predictor tells from one answer which of two readings it was given to, beyond chance.

    Whoever sees an answer and guesses the reading is right with a chance of (1 + total variation)/2 at best. So the share
    of right guesses gives an unbiased estimate of a lower bound of the total variation, and of itself where the predictor
    knows which of both readings makes the answer more probable: for choices and numbers, one or several.
    """

    def __init__(self, asking: Asker, options: AskOptions, groups: Sequence[str]) -> None:
        self.asking, self.groups = asking, groups
        self.kinds = options.redraw
        size = effect_states(len(asking.states), options.budget)
        self.rows = asking.rng.choice(len(asking.states), size, replace=False)
        near = Neighbours(asking.states, asking.inputs, self.rows, asking.rng) if "likely" in self.kinds else None
        self.donors: dict[tuple[str, Redraw], np.ndarray] = {}
        for group in groups:
            for kind in self.kinds:
                self.donors[group, kind] = asking.rng.integers(len(asking.states), size=len(self.rows))
                if kind == "likely" and near is not None and len(asking.inputs.groups) > 1:
                    nearest = near.of(group)
                    places = asking.rng.integers(nearest.shape[1], size=(len(self.rows), 1))
                    self.donors[group, kind] = np.take_along_axis(nearest, places, axis=1)[:, 0]
        self.folds: list[tuple[np.ndarray, dict[Any, list[np.ndarray]], dict[Any, np.ndarray]]] = []
        """The places of each fold, and by the reading the numbers and the answers [ANSWERS · n, lags, choices]."""

    def ask(self) -> Iterator[int]:
        """Fold after fold, all questions in a random order; says how many folds are done."""
        for done, part in enumerate(np.array_split(np.arange(len(self.rows)), FOLDS)):
            yield done
            if not len(part):
                continue
            base = self.asking.shown(np.tile(self.rows[part], ANSWERS))
            shown: dict[Any, Asked] = {None: base}
            for (group, kind), donors in self.donors.items():
                shown[group, kind] = self.asking.redrawn(base, group, np.tile(donors[part], ANSWERS))
            every = Asked.joined(list(shown.values()))
            answers = self.asking.in_order(every, self.asking.rng.permutation(len(every)))
            numbers = {key: self.asking.at_lags(one.rows, one.numbers) for key, one in shown.items()}
            self.folds.append((part, numbers, dict(zip(shown, np.split(answers, len(shown)), strict=True))))

    def effects(self, predictors: Predictors) -> dict[tuple[str, Redraw], list[Effect]]:
        """By input and kind, at each lag, from the folds that were asked."""
        moved = {key: np.zeros((len(self.asking.lags), len(self.rows))) for key in self.donors}
        asked = np.concatenate([part for part, _, _ in self.folds])
        going = self.asking.going(self.rows)
        for own, (part, numbers, answers) in enumerate(self.folds):
            others = [fold for i, fold in enumerate(self.folds) if i != own]
            fitted = predictors
            if others:
                lags = range(len(self.asking.lags))
                known = [np.concatenate([f[1][key][lag] for f in others for key in f[1]]) for lag in lags]
                rows = np.concatenate([np.tile(f[0], ANSWERS) for f in others for _ in f[1]])
                mixed = self.asking.rng.permutation(len(rows))
                given = np.concatenate([f[2][key] for f in others for key in f[2]])
                fitted = predictors.fitted_also_to([one[mixed] for one in known], given[mixed], going[rows][mixed])
            there = np.tile(going[part], (ANSWERS, 1))
            for key in self.donors:
                shares = []
                for reading in (None, key):
                    first = fitted.log_densities(numbers[None], answers[reading], there)
                    second = fitted.log_densities(numbers[key], answers[reading], there)
                    guessed = 0.5 + 0.5 * np.sign(first - second)
                    shares.append(guessed.reshape(len(first), ANSWERS, len(part)).mean(axis=1))
                moved[key][:, part] = shares[0] - shares[1]
        episodes = self.asking.states.episode_numbers
        found: dict[tuple[str, Redraw], list[Effect]] = {}
        for key, change in moved.items():
            found[key] = []
            for lag in self.asking.lags:
                rows = asked[going[asked, lag]]
                owners, donors = episodes[self.rows[rows]], episodes[self.donors[key][rows]]
                found[key].append(mean_of_answers(change[lag, rows], owners, donors))
        return found


def mean_of_answers(change: np.ndarray, owners: np.ndarray, donors: np.ndarray) -> Effect:
    """The mean of changes [n] with a margin for other episodes, as `mean_effect` of distributions.

    Here most of the spread is chance of the answers themselves, which counts once though each change has an owner and a
    donor (Cameron, Gelbach and Miller 2011). The mean of guesses may be negative.
    """
    if len(change) < 2:
        return Effect(0.0, -1.0, 1.0)
    mean, size = float(change.mean()), 1 + max(owners.max(), donors.max())
    rest = (change - mean) / len(change)
    own = np.bincount(owners, rest, size)
    both = own + np.bincount(donors, rest, size)
    spread = max((both**2).sum() - (rest**2).sum(), (own**2).sum(), (rest**2).sum())
    free = len(np.union1d(owners, donors)) - 1
    margin = float(stdtrit(free, MARGIN) * np.sqrt(spread * (free + 1) / free)) if free else 1.0
    return Effect(mean, max(mean - margin, -1.0), min(mean + margin, 1.0))


# -- All of it.


def ask_paired(
    agent: AskedAgent, states: States, inputs: Inputs, options: AskOptions, rng: np.random.Generator
) -> tuple[tuple[AskedGroup, ...], Cost, str, list[str]]:
    """Bets until all inputs are found or the budget ends, then effects; what was found, cost, why it stopped, warnings."""
    check_budget(options)
    counted = Counted(agent)
    budget = options.budget or QUESTIONS
    varying = [group for group, varies in states.varying(inputs).items() if varies]
    stopped, effects = "", dict[tuple[str, Redraw], list[Effect]]()
    warnings: list[str] = []
    asking = Asker(counted, states, inputs, steps_of_memory(agent, options), rng)
    bets = PairBets(asking, varying, options.significance, correction=options.correction)
    try:
        repeated, first = bets.begin(budget)
        bets.run(budget)
        measuring = GuessedEffects(asking, options, varying)
        try:
            for done in measuring.ask():
                say_progress("measuring effects", done, FOLDS)
        finally:
            if measuring.folds:
                effects = measuring.effects(bets.predictors)
        last = asking.answers(repeated)
        p_value = change_p_value(agent, repeated.numbers, first[:, 0], last[:, 0], rng)
        if p_value <= CHANGED:
            warnings.append(
                f"{agent.name} answers otherwise in the same {len(first)} states after the questions than before them "
                f"(p = {p_value:.2g}): it learns from being asked, or drifts, so that effects are those of a changing agent."
            )
    except InputError as error:
        stopped = str(error)
    return tuple(_concluded(group, bets, effects, options) for group in inputs.groups), counted.cost, stopped, warnings


def check_budget(options: AskOptions) -> None:
    """So few questions can find nothing, whatever the answers are."""
    least = fewest_questions(options.significance)
    if options.budget is not None and options.budget < least:
        raise InputError(
            f"bets on pairs find nothing in {options.budget} questions about each input: give a budget of at least {least}, "
            f"by default it is {QUESTIONS}."
        )


def change_p_value(
    agent: AskedAgent, numbers: np.ndarray, first: np.ndarray, last: np.ndarray, rng: np.random.Generator
) -> float:
    """Of answers in the same states at two times: exact if these may be exchanged, state by state.

    The statistic sums up the squared sums of what has changed, alone and times each of the standardised numbers.
    """
    if agent.action_type == "continuous":
        change = (last - first) / np.maximum(np.concatenate([first, last]).std(axis=0), 1e-12)
    else:
        levels = [np.arange(k) for k in agent.choices]
        change = np.hstack([
            (last[:, [c]] == level).astype(float) - (first[:, [c]] == level) for c, level in enumerate(levels)
        ])  # fmt: skip
    weights = (numbers - numbers.mean(axis=0)) / np.maximum(numbers.std(axis=0), 1e-12)
    weights = np.hstack([np.ones((len(numbers), 1)), weights / max(weights.shape[1], 1) ** 0.5])
    signs = rng.choice([-1.0, 1.0], size=(999, len(change)))
    sums = [np.einsum("sn,nk,np->skp", sign, change, weights) for sign in (np.ones((1, len(change))), signs)]
    observed, drawn = ((one**2).sum(axis=(1, 2)) for one in sums)
    return randomisation_p_value(float(observed[0]), drawn)


def _concluded(
    group: str, bets: PairBets, effects: Mapping[tuple[str, Redraw], list[Effect]], options: AskOptions
) -> AskedGroup:
    """What the bets and the effects say about one input."""
    if group not in bets.groups:
        return AskedGroup(group, "no evidence", None)
    lags = effects.get((group, "any"), [])
    lag = int(np.argmax([one.estimate for one in lags])) if lags else 0
    largest = lags[lag] if lags else None
    likely = effects[group, "likely"][lag] if (group, "likely") in effects else None
    wealth = bets.found.get(group, float(np.exp(min(bets.log_wealth[bets.groups.index(group)], 600.0))))
    verdict = verdict_of(1.0 if largest is None else largest.estimate) if group in bets.found else "no evidence"
    several = tuple(lags) if len(lags) > 1 else ()
    return AskedGroup(group, verdict, largest, likely, wealth, bets.questions[group], None, None, several)
