"""Testing by betting on draws of known distribution: predictors of actions, and wealth as an e-value."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, final

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

# -- What wealth proves about several groups at once.

LARGEST = 600.0
"""Logarithms of wealth are cut off here, where a number could hold no more."""


def closed_e_values(log_wealth: np.ndarray) -> np.ndarray:
    """The smallest average of wealths [G] over any set that holds each group: e-values of closed testing.

    A group is found at level δ when its number is at least 1/δ: then every set that holds it is rejected, so that the
    chance of any false finding is at most δ, at any time (Vovk and Wang 2021). Of the other groups of the worst set only
    the smallest matter: with the wealths in order, s₀ ≤ s₁ ≤ …, and their sums P, the next one lowers the average of the
    first m and w while (m + 1)·s_m − P_m < w, which never holds for w itself. So it takes G log G steps.

    Examples
    --------
    >>> import numpy as np
    >>> closed_e_values(np.log([90.0, 10.0, 2.0])).round(6).tolist()
    [34.0, 6.0, 2.0]
    """
    wealth = np.exp(np.minimum(log_wealth, LARGEST))
    ordered = np.sort(wealth)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    places = np.arange(len(wealth))
    used = np.searchsorted((places + 1) * ordered - sums[:-1], wealth, side="left")
    return np.asarray((wealth + sums[used]) / (used + 1))


def e_benjamini_hochberg(log_wealth: np.ndarray, level: float) -> np.ndarray:
    """Which groups [G] are found when the expected share of false ones is to be at most `level` (Wang and Ramdas 2022).

    Examples
    --------
    >>> import numpy as np
    >>> e_benjamini_hochberg(np.log([70.0, 40.0, 2.0]), 0.05).tolist()
    [True, True, False]
    """
    num = len(log_wealth)
    order = np.argsort(-log_wealth, kind="stable")
    enough = log_wealth[order] >= np.log(num / (level * np.arange(1, num + 1))) - 1e-12
    found = np.zeros(num, dtype=bool)
    if enough.any():
        found[order[: int(np.flatnonzero(enough)[-1]) + 1]] = True
    return found


def shown_by(log_wealth: np.ndarray, level: float, correction: str) -> np.ndarray:
    """Which groups [G] wealth shows: by closed testing or, with "bh", by the procedure of Benjamini and Hochberg."""
    if correction == "bh":
        return e_benjamini_hochberg(log_wealth, level)
    return np.asarray(closed_e_values(log_wealth) >= 1 / level)


def randomisation_p_value(observed: float, redrawn: np.ndarray) -> float:
    """(1 + #{Tᵐ ≥ T})/(M + 1): exact for a statistic of draws that was chosen before them, whatever their number.

    Examples
    --------
    >>> import numpy as np
    >>> randomisation_p_value(3.0, np.arange(9.0))
    0.7
    """
    edge = observed - 1e-9 * max(1.0, abs(observed))
    return float((1 + np.count_nonzero(redrawn >= edge)) / (1 + len(redrawn)))


# -- Predictors: what an agent is expected to do. Any of them makes a valid bet, a good one wins.

BROAD = 0.1
"""The share of every prediction that is spread over all actions, so that no single surprise costs much."""

SMALLEST_SD = 0.02
"""Of the spread of an action that is left when its prediction is exact."""


class Regression(ABC):
    """A regression of several outputs on standardised numbers."""

    @abstractmethod
    def predicted(self, numbers: np.ndarray) -> np.ndarray:
        """The outputs [n, k]: scores of the choices, or means."""

    def log_spread(self, numbers: np.ndarray) -> np.ndarray | float:
        """How much wider than usual the outputs are spread around their means, as a logarithm [n, k]."""
        return 0.0


MOST_COLUMNS = 160
"""Of a regression on products: beyond so many only squares, or the numbers alone, are used."""

STEPS = 20
"""Of the logistic regression; bets need no more digits."""


def products(numbers: np.ndarray, num_rows: int) -> np.ndarray:
    """A constant, the numbers [n, p] and, as far as so many rows allow it, their squares and products."""
    n, p = numbers.shape
    columns = [np.ones((n, 1)), numbers]
    if 1 + p * (p + 3) / 2 <= min(num_rows / 2, MOST_COLUMNS):
        first, second = np.triu_indices(p)
        columns.append(numbers[:, first] * numbers[:, second])
    elif 1 + 2 * p <= num_rows / 2:
        columns.append(numbers**2)
    return np.hstack(columns)


@final
class RidgeRegression(Regression):
    """Ridge regression on numbers and their products: normal or, of choices, logistic."""

    def __init__(self, numbers: np.ndarray, outputs: np.ndarray, choices: bool) -> None:
        self.num_rows = len(numbers)
        design = products(numbers, self.num_rows)
        penalty = np.full(design.shape[1], 1.0)
        penalty[0], penalty[1 + numbers.shape[1] :] = 1e-3, 3.0
        gram = design.T @ design
        self.spread: np.ndarray | None = None
        if not choices:
            solve = cho_factor(gram + np.diag(penalty))
            self.weights = cho_solve(solve, design.T @ outputs)
            left = np.log(np.abs(outputs - design @ self.weights) + 1e-6)
            lean = design[:, : 1 + numbers.shape[1]]
            heavy = np.linalg.solve(
                lean.T @ lean + np.diag(10 * penalty[: lean.shape[1]]), lean.T @ (left - left.mean(0))
            )
            self.spread = heavy
            return
        # The Hessian of a logistic regression is at most half of XᵀX for every choice (Böhning 1992): steps by that.
        solve = cho_factor(0.5 * gram + np.diag(penalty))
        self.weights = ahead = np.zeros((design.shape[1], outputs.shape[1]))
        for step in range(STEPS):
            left = outputs - softmax(design @ ahead)
            new = ahead + cho_solve(solve, design.T @ left - penalty[:, None] * ahead)
            ahead = new + step / (step + 3) * (new - self.weights)
            self.weights = new

    def predicted(self, numbers: np.ndarray) -> np.ndarray:
        """Scores or means."""
        return np.asarray(products(numbers, self.num_rows) @ self.weights)

    def log_spread(self, numbers: np.ndarray) -> np.ndarray | float:
        """Linear in the numbers, between a quarter and four times the usual one."""
        if self.spread is None:
            return 0.0
        return np.clip(self.spread[0] + numbers @ self.spread[1:], -1.4, 1.4)


NUM_TREES = 40
NUM_BINS = 12
SHRINKAGE = 0.25
SMALLEST_LEAF = 4
LEAF_PENALTY = 2.0


@final
class BoostedTrees(Regression):
    """Gradient boosting of trees with two levels, whose leaves hold all outputs: borders, curves and products of two."""

    def __init__(self, numbers: np.ndarray, outputs: np.ndarray, choices: bool) -> None:
        n, p = numbers.shape
        shares = np.linspace(0, 1, NUM_BINS + 1)[1:-1]
        edges = [np.unique(np.quantile(column, shares)) for column in numbers.T]
        self._features = np.repeat(np.arange(p), [len(e) for e in edges])
        self._edges = np.concatenate(edges)
        above = (numbers[:, self._features] > self._edges).astype(np.float32).T  # [candidates, n]
        k = outputs.shape[1]
        self.base = np.log(outputs.mean(axis=0) + 1 / n) if choices else outputs.mean(axis=0)
        score = np.tile(self.base, (n, 1))
        self.splits = np.zeros((NUM_TREES, 3), dtype=np.intp)  # the root, then below it for no and for yes
        self.leaves = np.zeros((NUM_TREES, 4, k))
        for tree in range(NUM_TREES):
            expected = softmax(score) if choices else score
            gradient = outputs - expected
            curvature = np.maximum(expected * (1 - expected), 1e-3) if choices else np.ones_like(gradient)
            sums = np.hstack([gradient, curvature, np.ones((n, 1))]).astype(np.float32)
            root = best_split(above @ sums, sums.sum(axis=0), k)
            yes = above[root]
            inside = above @ np.hstack([sums * (1 - yes)[:, None], sums * yes[:, None]])
            total = np.stack([(sums * (1 - yes)[:, None]).sum(axis=0), (sums * yes[:, None]).sum(axis=0)])
            width = sums.shape[1]
            below = [best_split(inside[:, side * width : (side + 1) * width], total[side], k) for side in (0, 1)]
            self.splits[tree] = root, *below
            leaf = (2 * yes + np.where(yes > 0, above[below[1]], above[below[0]])).astype(np.intp)
            for place in range(4):
                rows = leaf == place
                up, down = gradient[rows].sum(axis=0), curvature[rows].sum(axis=0)
                self.leaves[tree, place] = SHRINKAGE * up / (down + LEAF_PENALTY)
            score = score + self.leaves[tree][leaf]

    def predicted(self, numbers: np.ndarray) -> np.ndarray:
        """Scores or means."""
        found = np.tile(self.base, (len(numbers), 1))
        for start in range(0, len(numbers), 20_000):
            rows = slice(start, start + 20_000)
            above = numbers[rows][:, self._features[self.splits]] > self._edges[self.splits]  # [n, trees, 3]
            leaf = 2 * above[..., 0] + np.where(above[..., 0], above[..., 2], above[..., 1])
            found[rows] += self.leaves[np.arange(NUM_TREES), leaf].sum(axis=1)
        return found


def best_split(yes: np.ndarray, total: np.ndarray, k: int) -> int:
    """The candidate whose two sides have the largest gain; `yes` [candidates, 2k + 1] sums gradients, curvatures, rows."""
    no = total - yes
    gain = sum((side[:, :k] ** 2 / (side[:, k : 2 * k] + LEAF_PENALTY)).sum(axis=1) for side in (yes, no))
    small = np.minimum(yes[:, -1], no[:, -1]) < SMALLEST_LEAF
    return int(np.argmax(np.where(small, -1.0, gain)))


def log_student(z: np.ndarray) -> np.ndarray:
    """The logarithm of Student's density with five degrees of freedom, up to a constant: surprises cost little."""
    return -3.0 * np.log1p(z**2 / 5.0)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities [n, k]."""
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


@final
@dataclass
class Prediction:
    """What the experts expect of one choice, or of one number of an action."""

    num_choices: int
    """0 of a number."""
    experts: tuple[Regression, ...]
    sds: tuple[float, ...]
    weights: np.ndarray
    usual: np.ndarray
    """How often each choice was made; of a number its mean and standard deviation."""

    @classmethod
    def fitted(
        cls, numbers: np.ndarray, actions: np.ndarray, num_choices: int, weights: np.ndarray, trees: bool
    ) -> Self:
        """From the past."""
        if num_choices:
            outputs = (actions[:, None] == np.arange(num_choices)).astype(np.float64)
            usual = (outputs.sum(axis=0) + 0.5) / (len(outputs) + 0.5 * num_choices)
        else:
            usual = np.array([actions.mean(), max(float(actions.std()), 1e-9)])
            outputs = ((actions - usual[0]) / usual[1])[:, None]
        kinds = (RidgeRegression, BoostedTrees) if trees else (RidgeRegression,)
        experts = tuple(kind(numbers, outputs, num_choices > 0) for kind in kinds)
        sds = [1.0 for _ in experts]
        if not num_choices:
            for i, expert in enumerate(experts):
                z = (outputs - expert.predicted(numbers)) / np.exp(expert.log_spread(numbers))
                sds[i] = 1.2 * max(float(np.sqrt(np.mean(z**2))), SMALLEST_SD)
        return cls(num_choices, experts, tuple(sds), weights[: len(experts)], usual)

    def each(self, numbers: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The log density of the actions by each expert [e, n]."""
        found = []
        for expert, sd in zip(self.experts, self.sds, strict=True):
            if self.num_choices:
                scores = expert.predicted(numbers)
                found.append(np.take_along_axis(scores, actions[:, None], 1)[:, 0] - logsumexp(scores, axis=1))
            else:
                wide = np.log(sd) + np.broadcast_to(expert.log_spread(numbers), (len(numbers), 1))[:, 0]
                z = ((actions - self.usual[0]) / self.usual[1] - expert.predicted(numbers)[:, 0]) / np.exp(wide)
                found.append(log_student(z) - wide)
        return np.stack(found)

    def log_density(self, numbers: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Of the experts together, and a little of anything [n]; of numbers up to a constant."""
        if self.num_choices:
            broad = np.log(self.usual)[actions]
        else:
            broad = log_student((actions - self.usual[0]) / (2 * self.usual[1])) - np.log(2.0)
        both = logsumexp(self.each(numbers, actions), axis=0, b=(1 - BROAD) * self.weights[:, None])
        return np.asarray(np.logaddexp(both, np.log(BROAD) + broad))

    def centre(self, numbers: np.ndarray) -> np.ndarray:
        """Chances of the choices [n, k], or the expected number [n, 1] in units of its spread around that."""
        if self.num_choices:
            return np.asarray(
                sum(w * softmax(e.predicted(numbers)) for w, e in zip(self.weights, self.experts, strict=True))
            )
        ways = zip(self.weights, self.experts, self.sds, strict=True)
        return np.asarray(sum(w * e.predicted(numbers) / sd for w, e, sd in ways))


@final
class OnlinePredictor:
    """f(action | numbers): what an agent is expected to do, by what it has done, refitted as the rows grow.

    Parameters
    ----------
    choices : tuple of int
        How many actions each choice has; 0 for an action that is a number.
    growth : float
        It is refitted when there are so many times as many rows as at the last time.
    first : int
        Rows before the first fit; until then all actions are as likely.
    trees : bool, default True
        Boosted trees beside the ridge regression: slower, and needed where an agent's borders are curved.
    """

    MOST_ROWS = 2000

    def __init__(self, choices: tuple[int, ...], growth: float = 1.3, first: int = 60, trees: bool = True) -> None:
        self.choices, self.growth, self.first, self.trees = choices, growth, first, trees
        self._numbers: list[np.ndarray] = []
        self._actions: list[np.ndarray] = []
        self.num_rows = 0
        self._fitted_on = 0
        self._scores = np.zeros((len(choices), 2))
        self._predictions: list[Prediction] = []
        self._middle = self._scale = np.zeros(0)

    def tell(self, numbers: np.ndarray, actions: np.ndarray) -> None:
        """Rows of the past: numbers [n, p] that describe the states, and the actions in them [n, choices]."""
        if not len(numbers):
            return
        if self._predictions:  # what the experts were worth on rows that they had not seen
            seen = self._standard(numbers)
            for c, prediction in enumerate(self._predictions):
                self._scores[c, : len(prediction.experts)] += prediction.each(seen, actions[:, c]).sum(axis=1)
        self._numbers.append(numbers)
        self._actions.append(actions)
        self.num_rows += len(numbers)

    @property
    def due(self) -> int:
        """The number of rows at which it will be fitted again."""
        return int(np.ceil(self.growth * self._fitted_on)) if self._predictions else self.first

    def refit(self) -> bool:
        """Fit again if that is due."""
        if self.num_rows < self.due:
            return False
        numbers, actions = np.concatenate(self._numbers), np.concatenate(self._actions)
        if len(numbers) > self.MOST_ROWS:  # the latest half, and as many of those before
            half = self.MOST_ROWS // 2
            earlier = np.linspace(0, len(numbers) - half - 1, half).astype(np.intp)
            rows = np.concatenate([earlier, np.arange(len(numbers) - half, len(numbers))])
            numbers, actions = numbers[rows], actions[rows]
        self._middle = numbers.mean(axis=0)
        self._scale = np.maximum(numbers.std(axis=0), 1e-9 * (1 + np.abs(self._middle)))
        seen = self._standard(numbers)
        self._predictions = [
            Prediction.fitted(seen, column, k, self._weights(c), self.trees)
            for c, (column, k) in enumerate(zip(actions.T, self.choices, strict=True))
        ]
        self._scores *= 0.5  # an expert that becomes good is believed soon
        self._fitted_on = self.num_rows
        return True

    @property
    def ready(self) -> bool:
        """Has it been fitted?"""
        return bool(self._predictions)

    def log_density(self, numbers: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """log f of actions [n, choices], of numbers up to a constant; 0 before the first fit."""
        if not self._predictions:
            return np.zeros(len(numbers))
        seen = self._standard(numbers)
        columns = zip(self._predictions, actions.T, strict=True)
        return np.asarray(sum(prediction.log_density(seen, column) for prediction, column in columns))

    def expected_difference(self, numbers: np.ndarray, others: np.ndarray) -> np.ndarray:
        """How far the actions in two states are expected to differ [n], for choosing what to ask."""
        if not self._predictions:
            return np.zeros(len(numbers))
        here, there = self._standard(numbers), self._standard(others)
        return np.asarray(sum(np.abs(one.centre(here) - one.centre(there)).sum(axis=1) for one in self._predictions))

    def _standard(self, numbers: np.ndarray) -> np.ndarray:
        return np.clip((numbers - self._middle) / self._scale, -6, 6)

    def _weights(self, choice: int) -> np.ndarray:
        if not self.trees:
            return np.ones(1)
        score = self._scores[choice]
        believed = np.exp(np.maximum(score - score.max(), -3.0))
        return np.asarray(believed / believed.sum())


# -- Bets on which of several candidates was delivered.


@final
@dataclass(frozen=True)
class DrawnRows:
    """Rows in which every group read one of several candidates, drawn with known chances.

    numbers [n, q] describe what was delivered and actions [n, choices] what was done; of each group g its candidates
    [n, c, q_g] in the columns `columns[g]` of the numbers, their chances [n, c], and which one was delivered [n].
    `starts` [n] says where episodes begin and `streams` [n] which of several environments a row is of.
    """

    numbers: np.ndarray
    actions: np.ndarray
    candidates: Sequence[np.ndarray]
    chances: Sequence[np.ndarray]
    drawn: np.ndarray
    """[n, G]."""
    starts: np.ndarray
    streams: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice | np.ndarray) -> "DrawnRows":
        return DrawnRows(
            self.numbers[rows],
            self.actions[rows],
            [one[rows] for one in self.candidates],
            [one[rows] for one in self.chances],
            self.drawn[rows],
            self.starts[rows],
            self.streams[rows],
        )


def log_e_values(log_densities: np.ndarray, chances: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """log f(a | delivered) − log of its mean over the candidates [n], from log f [n, c]; their mean is 1 if f tells nothing.

    Examples
    --------
    >>> import numpy as np
    >>> chances, log_f = np.array([[0.8, 0.2]]), np.log([[0.5, 0.1]])
    >>> e = [float(np.exp(log_e_values(log_f, chances, np.array([k])))[0]) for k in (0, 1)]
    >>> round(0.8 * e[0] + 0.2 * e[1], 12)
    1.0
    """
    with np.errstate(divide="ignore"):
        mean = logsumexp(log_densities + np.log(chances), axis=1)
    return np.asarray(np.take_along_axis(log_densities, drawn[:, None], 1)[:, 0] - mean)


class Look(NamedTuple):
    """Some rows of one group that were bet on: log f of their actions after every candidate [n, c], chances, and draws."""

    log_densities: np.ndarray
    chances: np.ndarray
    drawn: np.ndarray


@final
class DrawBets:
    """Wealth of bets that an agent reads what it was delivered, one for every group of numbers.

    A bet on row t is e = f(a | delivered)/Σ_k p_k f(a | candidate k), with f fitted to the rows before: whatever f is and
    whatever the agent is, its mean given all that went before is at most 1 unless the action depends on the group. With a
    `memory` of L steps, half of the wealth bets on all actions from t to t + L together, which are known L steps later:
    rows are settled then, and nothing else is to be looked at before.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> candidates = rng.normal(size=(400, 3, 1))
    >>> drawn = rng.integers(0, 3, 400)
    >>> seen = np.take_along_axis(candidates, drawn[:, None, None], 1)[:, 0]
    >>> bets = DrawBets([np.array([0])], choices=(2,))
    >>> thirds, zeros = np.full((400, 3), 1 / 3), np.zeros(400, dtype=int)
    >>> bets.tell(DrawnRows(seen, (seen > 0).astype(int), [candidates], [thirds], drawn[:, None], zeros > 0, zeros))
    >>> bets.settle()
    >>> bool(bets.log_wealth[0] > np.log(20))
    True
    """

    def __init__(self, columns: Sequence[np.ndarray], choices: tuple[int, ...], memory: int = 0) -> None:
        self.columns, self.choices, self.memory = list(columns), choices, memory
        self.num_settled = 0
        self._rows: list[DrawnRows] = []
        self._waiting = 0
        self._first = 0  # the row with which `_rows` begins
        self._increments: list[np.ndarray] = []
        self._looks: list[list[Look]] = [[] for _ in self.columns]
        self._predictor = OnlinePredictor(choices)
        self._later = [OnlinePredictor(choices, growth=1.5, trees=False) for _ in range(memory)]
        self._wealth = np.zeros((2 if memory else 1, len(self.columns)))

    @property
    def log_wealth(self) -> np.ndarray:
        """Of the settled rows [G]: the average of betting on one action, and on all that a memory may hold."""
        return np.asarray(logsumexp(self._wealth, axis=0) - np.log(len(self._wealth)))

    @property
    def path(self) -> np.ndarray:
        """The logarithm of the wealth after every settled row [n, G]."""
        if not self._increments:
            return np.zeros((0, len(self.columns)))
        sums = np.cumsum(np.concatenate(self._increments, axis=1), axis=1)
        return np.asarray(logsumexp(sums, axis=0) - np.log(len(self._wealth)))

    def moved(self, group: int, others: slice) -> np.ndarray:
        """For each row that was bet on, an unbiased estimate of how often f tells a delivered reading from others [n].

        Of the action alone f guesses which of both was delivered, the more firmly the more it expects them to differ. The
        guesses when the first candidate was delivered, less those when the other was, each divided by its chance, are on
        average at most the total variation between the actions after both. `others` are candidates with equal chances.
        """
        found = [np.zeros(0)]
        for look in self._looks[group]:
            guess = 0.5 * np.tanh(2 * (look.log_densities[:, :1] - look.log_densities[:, others]))
            there = np.arange(look.chances.shape[1])[others] == look.drawn[:, None]
            first = (look.drawn == 0) / look.chances[:, 0]
            found.append((guess * (first[:, None] - there / look.chances[:, others])).mean(axis=1))
        return np.concatenate(found)

    def tell(self, rows: DrawnRows) -> None:
        """Rows in the order of time; those of several streams at one time one after the other."""
        self._rows.append(rows)
        self._waiting += len(rows)

    def settle(self, ended: bool = False) -> None:
        """Bet on all rows whose actions are known; on all that there are where no more will come."""
        if not self._waiting:
            return
        rows = joined_rows(self._rows)
        after, before = neighbours(rows, self.memory)
        known = len(rows) if ended or not self.memory else last_settled(rows, self.memory)
        begin = self.num_settled - self._first
        while begin < known:
            end = min(known, begin + max(self._predictor.due - self._predictor.num_rows, 1))
            part = np.arange(begin, end)
            self._bet(rows, part, after, before)
            self._learn(rows, part, after, before)
            begin = end
        self.num_settled = self._first + known
        keep = self._kept(rows, known)
        self._rows, self._first = [rows[keep:]], self._first + keep
        self._waiting = len(rows) - known

    def _kept(self, rows: DrawnRows, known: int) -> int:
        """The first row that is still needed: the one before the first that is not settled, of every stream."""
        if not self.memory:
            return known
        return max(0, known - len(np.unique(rows.streams)))

    def _bet(self, rows: DrawnRows, part: np.ndarray, after: np.ndarray, before: np.ndarray) -> None:
        found = np.zeros((len(self._wealth), len(part), len(self.columns)))
        context = self._context(rows, part, before) if self.memory else None
        where = [
            (g, at) for g, chances in enumerate(rows.chances)
            if len(at := np.flatnonzero(chances[part].max(axis=1) < 1.0))
        ]  # fmt: skip
        if self._predictor.ready and where:
            tables, owners = [], []
            for g, at in where:
                swapped = np.repeat(rows.numbers[part[at]], rows.candidates[g].shape[1], axis=0)
                swapped[:, self.columns[g]] = rows.candidates[g][part[at]].reshape(len(swapped), -1)
                tables.append(swapped)
                owners.append(np.repeat(part[at], rows.candidates[g].shape[1]))
            numbers, owner = np.concatenate(tables), np.concatenate(owners)
            now = self._predictor.log_density(numbers, rows.actions[owner])
            densities = [now]
            if self.memory and context is not None:
                total = now.copy()
                for lag, predictor in enumerate(self._later, start=1):
                    follows = after[owner, lag] >= 0
                    if predictor.ready and follows.any():
                        seen = np.hstack([numbers[follows], context[owner[follows] - part[0]]])
                        total[follows] += predictor.log_density(seen, rows.actions[after[owner[follows], lag]])
                densities.append(total)
            for way, density in enumerate(densities):
                start = 0
                for g, at in where:
                    size = rows.candidates[g].shape[1]
                    table = density[start : start + size * len(at)].reshape(len(at), size)
                    start += size * len(at)
                    chances, drawn = rows.chances[g][part[at]], rows.drawn[part[at], g]
                    found[way, at, g] = log_e_values(table, chances, drawn)
                    if way == 0:
                        self._looks[g].append(Look(table, chances, drawn))
        self._increments.append(found)
        self._wealth = self._wealth + found.sum(axis=1)

    def _learn(self, rows: DrawnRows, part: np.ndarray, after: np.ndarray, before: np.ndarray) -> None:
        self._predictor.tell(rows.numbers[part], rows.actions[part])
        refitted = self._predictor.refit()
        if self.memory:
            seen = np.hstack([rows.numbers[part], self._context(rows, part, before)])
            for lag, predictor in enumerate(self._later, start=1):
                follows = after[part, lag] >= 0
                predictor.tell(seen[follows], rows.actions[after[part[follows], lag]])
                if refitted:  # whenever rows are told, the same are bet on with the same fit
                    predictor.refit()

    def _context(self, rows: DrawnRows, part: np.ndarray, before: np.ndarray) -> np.ndarray:
        """What was delivered and done in the step before, nothing at the start of an episode."""
        at = before[part]
        past = np.hstack([rows.numbers[at], *[
            (rows.actions[at, c, None] == np.arange(1, k)).astype(float) if k else rows.actions[at, c, None]
            for c, k in enumerate(self.choices)
        ]])  # fmt: skip
        return np.where(at[:, None] >= 0, past, 0.0)


def joined_rows(parts: Sequence[DrawnRows]) -> DrawnRows:
    """Some rows after the others."""
    if len(parts) == 1:
        return parts[0]
    groups = range(len(parts[0].candidates))
    return DrawnRows(
        np.concatenate([one.numbers for one in parts]),
        np.concatenate([one.actions for one in parts]),
        [np.concatenate([one.candidates[g] for one in parts]) for g in groups],
        [np.concatenate([one.chances[g] for one in parts]) for g in groups],
        np.concatenate([one.drawn for one in parts]),
        np.concatenate([one.starts for one in parts]),
        np.concatenate([one.streams for one in parts]),
    )


def neighbours(rows: DrawnRows, memory: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each row the rows 0, 1, … `memory` steps later in its episode [n, memory + 1], and the one before it; else −1."""
    n = len(rows)
    after, before = np.full((n, memory + 1), -1), np.full(n, -1)
    after[:, 0] = np.arange(n)
    for stream in np.unique(rows.streams):
        at = np.flatnonzero(rows.streams == stream)
        episode = np.cumsum(rows.starts[at])
        for lag in range(1, memory + 1):
            same = episode[lag:] == episode[:-lag]
            after[at[:-lag][same], lag] = at[lag:][same]
        same = episode[1:] == episode[:-1]
        before[at[1:][same]] = at[:-1][same]
    return after, before


def last_settled(rows: DrawnRows, memory: int) -> int:
    """Rows before the first one whose stream does not go on for so many steps."""
    edge = len(rows)
    for stream in np.unique(rows.streams):
        at = np.flatnonzero(rows.streams == stream)
        edge = min(edge, int(at[max(len(at) - memory, 0)]) if memory and len(at) else edge)
    return edge
