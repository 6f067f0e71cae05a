"""Distributions of actions, and distances between two of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import qmc

from policyspace.errors import InputError

NOISE = 1e-5
"""Answers that differ by less are equal: networks compute in single precision, and round by the size of a batch."""

POINTS = 64
"""Of the quadrature for actions of several numbers; a power of two."""

CHUNK = 4096
"""Rows of one quadrature."""


@final
@dataclass(frozen=True)
class Law:
    """The distribution of the action in each of n states.

    A `categorical` law has one array of probabilities [n, k] for each choice (several in a MultiDiscrete space), a
    `normal` one independent numbers with `mean` and `sd` [n, d], and a `point` is the action itself, in `mean`. Normal
    numbers are clipped to `low` and `high` [d] where these are given; where `squashed`, a tanh brings them there instead.

    Examples
    --------
    >>> import numpy as np
    >>> from policyspace.asking.law import Law
    >>> left, right = (Law("normal", mean=np.array([[m]]), sd=np.ones((1, 1))) for m in (0.0, 1.0))
    >>> left.total_variation(right).round(4).tolist()
    [0.3829]
    """

    kind: Literal["categorical", "normal", "point"]
    probabilities: tuple[np.ndarray, ...] = ()
    mean: np.ndarray | None = None
    sd: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    squashed: bool = False

    @classmethod
    def of_choices(cls, chosen: np.ndarray, sizes: Sequence[int], chance: float = 0.0) -> "Law":
        """What was chosen [n] or [n, number of choices], but with a `chance` anything."""
        columns = np.asarray(chosen).reshape(len(chosen), -1).astype(np.int64)
        tables = []
        for column, k in zip(columns.T, sizes, strict=True):
            tables.append(np.full((len(column), k), chance / k))
            tables[-1][np.arange(len(column)), column] += 1 - chance
        return cls("categorical", tuple(tables))

    @staticmethod
    def joined(laws: "Sequence[Law]") -> "Law":
        """The laws of some states after those of others."""
        first, several = laws[0], len(laws) > 1
        if not several:
            return first
        if any(law.kind != first.kind for law in laws):
            raise InputError("an agent must answer alike in every state, found actions of different kinds: correct it.")
        if first.kind == "categorical":
            return Law(
                "categorical", tuple(map(np.concatenate, zip(*(law.probabilities for law in laws), strict=True)))
            )
        mean, sd = np.concatenate([law._mean for law in laws]), None
        if first.kind == "normal":
            sd = np.concatenate([law._sd for law in laws])
        return replace(first, mean=mean, sd=sd)

    def greedy(self) -> "Law":
        """The same agent when it always takes its most probable action."""
        if self.kind == "categorical":
            best = np.stack([p.argmax(axis=1) for p in self.probabilities], axis=1)
            return Law.of_choices(best, [p.shape[1] for p in self.probabilities])
        if self.kind == "normal":
            return Law("point", mean=self._delivered(self._mean), low=self.low, high=self.high)
        return self

    @property
    def num_rows(self) -> int:
        """The number of states."""
        return len(self.probabilities[0] if self.kind == "categorical" else self._mean)

    @property
    def _mean(self) -> np.ndarray:
        assert self.mean is not None
        return self.mean

    @property
    def _sd(self) -> np.ndarray:
        assert self.sd is not None
        return self.sd

    def _bound(self, bound: np.ndarray | None, otherwise: float) -> np.ndarray:
        return np.full(self._mean.shape[1], otherwise) if bound is None else np.asarray(bound, dtype=np.float64)

    def take(self, rows: Any) -> "Law":
        """The laws of some rows: indices, a slice or a mask."""

        def taken(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[rows]

        probabilities = tuple(array[rows] for array in self.probabilities)
        return replace(self, probabilities=probabilities, mean=taken(self.mean), sd=taken(self.sd))

    def total_variation(self, other: "Law") -> np.ndarray:
        """The share of choices [n] that move from one law to the other, row by row.

        Exact for one choice and for one number. For several it is a quadrature at fixed points, held between its exact
        bounds: at least the largest of the single ones, at most what these amount to together. Of a `point` it is 1 where
        the actions differ by more than `NOISE` of their size, else 0.
        """
        if self.kind == "categorical":
            single = np.stack(
                [0.5 * np.abs(a - b).sum(axis=1) for a, b in zip(self.probabilities, other.probabilities, strict=True)],
                axis=1,
            )
            return single[:, 0] if single.shape[1] == 1 else self._of_several_choices(other, single)
        if self.kind == "point":
            return (np.abs(self._mean - other._mean) > NOISE * (1 + np.abs(self._mean))).any(axis=1).astype(np.float64)
        single = self._of_single_numbers(other)
        return single[:, 0] if single.shape[1] == 1 else self._of_several_numbers(other, single)

    def distance(self, other: "Law") -> np.ndarray:
        """How far the action moves [n]: the total variation or, of a `point`, the largest move as a share of its range.

        The range is that from `low` to `high`, where it is known, else 1.
        """
        if self.kind != "point":
            return self.total_variation(other)
        size = self._bound(self.high, 1.0) - self._bound(self.low, 0.0)
        moved = np.abs(self._mean - other._mean) / np.where(np.isfinite(size) & (size > 0), size, 1.0)
        return np.minimum(moved.max(axis=1), 1.0)

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """One action a row: [n] of a single choice, [n, k] of several, [n, d] of numbers."""
        if self.kind == "point":
            return self._mean
        if self.kind == "normal":
            return self._delivered(self._mean + self._sd * rng.standard_normal(self._mean.shape))
        chosen = []
        for p in self.probabilities:
            below = np.cumsum(p, axis=1) < rng.random((len(p), 1)) * p.sum(axis=1, keepdims=True)
            chosen.append(np.minimum(below.sum(axis=1), p.shape[1] - 1))
        return chosen[0] if len(chosen) == 1 else np.stack(chosen, axis=1)

    def log_density(self, actions: np.ndarray) -> np.ndarray:
        """Of actions as `sample` returns them [n]; of a point it is not defined."""
        if self.kind == "categorical":
            columns = np.asarray(actions).reshape(self.num_rows, -1).astype(np.int64)
            with np.errstate(divide="ignore"):
                terms = [
                    np.log(p[np.arange(len(p)), column])
                    for p, column in zip(self.probabilities, columns.T, strict=True)
                ]
            return np.sum(terms, axis=0)
        found = self._log_densities(np.asarray(actions, dtype=np.float64).reshape(self._mean.shape), self._log_parts())
        return np.asarray(found.sum(axis=1))

    def _delivered(self, numbers: np.ndarray) -> np.ndarray:
        """Normal numbers as the environment gets them."""
        low, high = self._ends
        if not self.squashed:
            return np.clip(numbers, low, high)
        return low + (np.tanh(numbers) + 1) / 2 * (high - low)

    @property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        return self._bound(self.low, -np.inf), self._bound(self.high, np.inf)

    # -- Total variation of products.

    def _of_several_choices(self, other: "Law", single: np.ndarray) -> np.ndarray:
        """Every combination of choices where these are few, else at fixed points."""
        sizes = [p.shape[1] for p in self.probabilities]
        if np.prod(sizes) > 4 * POINTS:
            return self._at_fixed_points(other, single)
        joint = []
        for law in (self, other):
            table = law.probabilities[0]
            for p in law.probabilities[1:]:
                table = (table[:, :, None] * p[:, None, :]).reshape(len(p), -1)
            joint.append(table)
        return np.asarray(0.5 * np.abs(joint[0] - joint[1]).sum(axis=1))

    def _of_single_numbers(self, other: "Law") -> np.ndarray:
        """Half the sum of |P − Q| over the pieces between the ends and the points where the densities cross [n, d]."""
        m1, s1, m2, s2 = self._mean, self._sd, other._mean, other._sd
        low, high = (-np.inf, np.inf) if self.squashed else self._ends
        curve = s2**2 - s1**2
        slope = s1**2 * m2 - s2**2 * m1
        level = (s2 * m1) ** 2 - (s1 * m2) ** 2 - 2 * (s1 * s2) ** 2 * np.log(s2 / s1)
        root = np.sqrt(np.maximum(slope**2 - curve * level, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            far = -(slope + np.where(slope < 0, -1.0, 1.0) * root)  # its sign loses no digits
            crossings = np.stack([far / curve, level / far])
        crossings = np.sort(np.clip(np.where(np.isnan(crossings), 0.0, crossings), low, high), axis=0)
        ends = np.stack([np.broadcast_to(low, m1.shape), *crossings, np.broadcast_to(high, m1.shape)])
        gap = ndtr((ends - m1) / s1) - ndtr((ends - m2) / s2)
        pieces = np.diff(np.concatenate([np.zeros((1, *m1.shape)), gap, np.zeros((1, *m1.shape))]), axis=0)
        return np.asarray(0.5 * np.abs(pieces).sum(axis=0))

    def _of_several_numbers(self, other: "Law", single: np.ndarray) -> np.ndarray:
        """By a closed form where nothing is clipped and the spreads are equal."""
        same = np.abs(self._sd - other._sd).max(axis=1) <= NOISE * self._sd.max(axis=1)
        if (self.squashed or (self.low is None and self.high is None)) and same.all():
            apart = np.linalg.norm((self._mean - other._mean) / self._sd, axis=1)
            return np.asarray(2 * ndtr(apart / 2) - 1)
        return self._at_fixed_points(other, single)

    def _at_fixed_points(self, other: "Law", single: np.ndarray) -> np.ndarray:
        """½ E_P(1 − q/p)₊ + ½ E_Q(1 − p/q)₊ at the points of a Sobol sequence; exact where a single number moves."""
        found, moving = single.max(axis=1), (single > NOISE).sum(axis=1) > 1
        at = np.flatnonzero(moving)
        uniform = np.clip(qmc.Sobol(single.shape[1], rng=0).random(POINTS), 1e-9, 1 - 1e-9)
        for start in range(0, len(at), CHUNK):
            rows = at[start : start + CHUNK]
            first, second = self.take(rows), other.take(rows)
            total = np.zeros(len(rows))
            densities = first._density(), second._density()
            for one, own, its in ((first, 0, 1), (second, 1, 0)):
                for u in uniform:
                    drawn = one._quantile(u)
                    total += -np.expm1(np.minimum(densities[its](drawn) - densities[own](drawn), 0.0))
            bound = 1 - np.prod(1 - np.minimum(single[rows], 1.0), axis=1)
            found[rows] = np.clip(total / (2 * POINTS), found[rows], np.maximum(bound, found[rows]))
        return found

    def _quantile(self, u: np.ndarray) -> np.ndarray:
        """The actions at the shares u [d] of every single choice or number."""
        if self.kind == "categorical":
            below = [(np.cumsum(p, axis=1) < share).sum(axis=1) for p, share in zip(self.probabilities, u, strict=True)]
            return np.stack([np.minimum(b, p.shape[1] - 1) for b, p in zip(below, self.probabilities, strict=True)], 1)
        return self._delivered(self._mean + self._sd * ndtri(u))

    def _density(self) -> Callable[[np.ndarray], np.ndarray]:
        """`log_density` of many actions, one after the other."""
        if self.kind == "categorical":
            return self.log_density
        known = self._log_parts()
        return lambda actions: np.asarray(self._log_densities(actions, known).sum(axis=1))

    def _log_parts(self) -> tuple[np.ndarray, ...]:
        """Of every number [n, d] what its density needs whatever the action is: the peak, and the masses beyond the ends."""
        low, high = self._ends
        peak = -np.log(self._sd) - 0.5 * np.log(2 * np.pi)
        if self.squashed:
            return (peak,)
        return peak, log_ndtr((low - self._mean) / self._sd), log_ndtr((self._mean - high) / self._sd)

    def _log_densities(self, actions: np.ndarray, parts: tuple[np.ndarray, ...]) -> np.ndarray:
        """Of every number [n, d]: a density inside, the mass beyond it at an end where it is clipped."""
        low, high = self._ends
        peak = parts[0]
        if self.squashed:
            part = np.clip((actions - low) / (high - low) * 2 - 1, NOISE - 1, 1 - NOISE)
            z = (np.arctanh(part) - self._mean) / self._sd
            return peak - 0.5 * z**2 - np.log((1 - part**2) * (high - low) / 2)
        found = peak - 0.5 * ((actions - self._mean) / self._sd) ** 2
        found = np.where(actions <= low, parts[1], found)
        return np.where(actions >= high, parts[2], found)
