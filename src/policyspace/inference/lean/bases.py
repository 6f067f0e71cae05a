"""Functions of the inputs: one table of columns serves every support, as each column knows the inputs it depends on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from policyspace.inference.lean.rows import Rows

CLIP = 4.0
"""Inputs are clipped at so many standard deviations before anything but the linear terms is computed."""
HEAVY, FAR = 2.0, 8.0
"""An input has heavy tails if its deviation is so many times that of its middle half, and some rows lie so far out."""
NUM_QUANTILES = 101
"""Points at which the scale of such an input is known."""
MOST_SORTED = 20_000
"""Rows whose quantiles are taken."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Inputs as curves and products see them: clipped, those with heavy tails at the normal quantile of their rank.

    A few rows far out make the deviation so large that all others would lie in one bump.
    """

    quantiles: Mapping[int, tuple[np.ndarray, np.ndarray]]
    """By input: points of it, and where each lies on the new scale."""

    @classmethod
    def of(cls, rows: Rows) -> "Scale":
        """By the rows at hand."""
        z = rows.inputs[:: max(1, rows.num // MOST_SORTED)]
        shares = (np.arange(NUM_QUANTILES) + 0.5) / NUM_QUANTILES
        found = {}
        for i in np.flatnonzero(~(rows.constant | rows.two_valued) & (np.abs(rows.inputs).max(axis=0) > FAR)):
            low, high = np.quantile(z[:, i], [0.25, 0.75])
            if 0 < HEAVY * (high - low) < 2 * ndtri(0.75):
                points, first = np.unique(np.quantile(z[:, i], shares), return_index=True)
                last = np.append(first[1:], NUM_QUANTILES) - 1
                found[int(i)] = points, ndtri((shares[first] + shares[last]) / 2)
        return cls(found)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """[n, q], a copy."""
        seen = np.clip(z, -CLIP, CLIP)
        for i, (points, places) in self.quantiles.items():
            seen[:, i] = np.interp(z[:, i], points, places)
        return seen


@dataclass(frozen=True, eq=False)
class Block(ABC):
    """Columns of one kind: z → fn(z), `depends` [q, p] says which inputs each reads."""

    name: str
    depends: np.ndarray

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.depends.shape[1]

    @abstractmethod
    def columns(self, z: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """[n, p] from standardised inputs [n, q], and from these as curves see them."""


class Linear(Block):
    """A constant and the inputs themselves."""

    @classmethod
    def of(cls, num_inputs: int) -> "Linear":
        """For so many inputs."""
        return cls("linear", np.hstack([np.zeros((num_inputs, 1), bool), np.eye(num_inputs, dtype=bool)]))

    def columns(self, z: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """The constant, then z."""
        return np.hstack([np.ones((len(z), 1)), z])


@dataclass(frozen=True, eq=False)
class Bumps(Block):
    """Gaussian bumps of one input each, at its quantiles."""

    source: np.ndarray
    centre: np.ndarray
    width_of: np.ndarray

    @classmethod
    def of(cls, rows: Rows, num_knots: int, inputs: np.ndarray, scale: Scale) -> "Bumps":
        """`num_knots` bumps for each of some inputs."""
        z, curved = scale(rows.inputs[:: max(1, rows.num // MOST_SORTED)]), np.flatnonzero(inputs)
        knots = np.quantile(z[:, curved], np.linspace(0.02, 0.98, num_knots), axis=0)
        gaps = np.maximum(np.gradient(knots, axis=0), 0.2) if num_knots > 1 else np.ones_like(knots)
        source = np.repeat(curved, num_knots)
        depends = np.zeros((rows.inputs.shape[1], len(source)), bool)
        depends[source, np.arange(len(source))] = True
        return cls("bumps", depends, source, knots.T.ravel(), 1.2 * gaps.T.ravel())

    def columns(self, z: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """One bump a column."""
        bumps = seen[:, self.source]
        bumps -= self.centre
        bumps /= self.width_of
        bumps *= bumps
        bumps *= -0.5
        return np.exp(bumps, out=bumps)


@dataclass(frozen=True, eq=False)
class Products(Block):
    """Powers of one input, or products of two."""

    factors: np.ndarray

    @classmethod
    def pairs(cls, rows: Rows, alone: np.ndarray) -> "Products":
        """All products of two different inputs that are not both `alone`, and not sums of the two, as of two levels."""
        left_out = (alone[:, None] & alone) | _sums(rows)
        kept = [(a, b) for a, b in combinations(np.flatnonzero(~rows.constant), 2) if not left_out[a, b]]
        return cls._from("pairs", rows, np.array(kept, dtype=np.intp).reshape(-1, 2))

    @classmethod
    def powers(cls, rows: Rows, degree: int, inputs: np.ndarray) -> "Products":
        """One power of each of some inputs."""
        return cls._from(f"powers of {degree}", rows, np.repeat(np.flatnonzero(inputs)[:, None], degree, axis=1))

    @classmethod
    def _from(cls, name: str, rows: Rows, factors: np.ndarray) -> "Products":
        depends = np.zeros((rows.inputs.shape[1], len(factors)), bool)
        for position in range(factors.shape[1]):
            depends[factors[:, position], np.arange(len(factors))] = True
        return cls(name, depends, factors)

    def columns(self, z: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """One product a column."""
        out = seen[:, self.factors[:, 0]]
        for position in range(1, self.factors.shape[1]):
            out *= seen[:, self.factors[:, position]]
        return out


@dataclass(frozen=True, eq=False)
class Waves(Block):
    """Cosines of random directions, each within two or three inputs, so that most survive leaving one input out."""

    slopes: np.ndarray
    phases: np.ndarray

    @classmethod
    def of(cls, rows: Rows, num_waves: int, seed: int, inputs: np.ndarray, still: np.ndarray) -> "Waves":
        """`num_waves` random cosines of some inputs, each with one at least that does not stay `still` in an episode."""
        rng = np.random.default_rng([seed, num_waves])
        usable, moving = np.flatnonzero(inputs), np.flatnonzero(inputs & ~still)
        slopes = np.zeros((rows.inputs.shape[1], num_waves))
        for wave in range(num_waves):
            chosen = rng.permutation(usable)[: min(2 + wave % 2, len(usable))]
            if still[chosen].all():
                chosen[0] = rng.choice(moving)
            slopes[chosen, wave] = rng.choice([0.7, 1.3, 2.2]) * rng.standard_normal(len(chosen)) / np.sqrt(len(chosen))
        return cls("waves", slopes != 0, slopes, rng.uniform(0, 2 * np.pi, num_waves))

    def columns(self, z: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """One cosine a column."""
        angle = seen @ self.slopes
        angle += self.phases
        return np.cos(angle, out=angle)


def _sums(rows: Rows) -> np.ndarray:
    """Which products of two inputs are a sum of both and a constant [q, q]: of two values each, but not all four pairs."""
    high = ((rows.inputs > 0) & rows.two_valued).astype(np.float64)
    low = rows.two_valued - high
    fewest = np.minimum.reduce([high.T @ high, high.T @ low, low.T @ high, low.T @ low])
    return np.asarray((fewest == 0) & rows.two_valued & rows.two_valued[:, None])


@dataclass(frozen=True, eq=False)
class Basis:
    """The columns of several blocks side by side; the first is the constant, then come the inputs themselves."""

    blocks: tuple[Block, ...]
    scale: Scale

    @property
    def depends(self) -> np.ndarray:
        """Which inputs each column reads [q, P]."""
        return np.hstack([block.depends for block in self.blocks])

    @property
    def width(self) -> int:
        """The number of columns."""
        return sum(block.width for block in self.blocks)

    def columns(self, z: np.ndarray) -> np.ndarray:
        """The table [n, P]."""
        seen, table, start = self.scale(z), np.empty((len(z), self.width)), 0
        for block in self.blocks:
            table[:, start : start + block.width] = block.columns(z, seen)
            start += block.width
        return table

    def within(self, inputs: Sequence[int]) -> np.ndarray:
        """The columns that read nothing but these inputs, as a mask [P]."""
        outside = np.ones(self.depends.shape[0], bool)
        outside[list(inputs)] = False
        return np.logical_not(np.any(self.depends[outside], axis=0, keepdims=True))[0]
