"""Rule 1's search: which of the 2^D supports are sufficient, and which of those are minimal — exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from policyspace.fits.base import Likelihood
from policyspace.fits.law import ReferenceLaw
from policyspace.policies.groups import Support

BATCH = 64


@runtime_checkable
class Enumerates(Protocol):
    """A likelihood that can give λ_I of all supports at once."""

    def statistics_of_all(self, groups: list[int]) -> np.ndarray:
        """λ_I [2^D]."""


@runtime_checkable
class Brackets(Protocol):
    """A likelihood that can say on which side of a critical value λ_I lies before it has converged."""

    def bracket(self, supports: Sequence[Support], criticals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of λ_I."""

    def screen(self, groups: Sequence[int]) -> np.ndarray:
        """Approximate λ_I of all supports [2^D]."""


@dataclass
class Lattice:
    """Bounds on λ_I for the 2^D supports of some groups (bit g ⇔ groups[g] is in), all other groups being in.

    λ falls as supports grow, so a fit inside one support bounds all its subsets from below, all its supersets from above.
    """

    likelihood: Likelihood
    groups: list[int]
    degrees_of_freedom: np.ndarray  # [2^D]
    lower: np.ndarray
    upper: np.ndarray
    num_fits: int = 0

    @classmethod
    def of(cls, likelihood: Likelihood, groups: list[int], degrees_of_freedom: np.ndarray) -> "Lattice":
        """Exact where the likelihood enumerates, otherwise knowing only that the full support has λ = 0."""
        if isinstance(likelihood, Enumerates):
            exact = likelihood.statistics_of_all(groups)
            return cls(likelihood, groups, degrees_of_freedom, exact, exact)
        lower, upper = np.zeros(2 ** len(groups)), np.full(2 ** len(groups), np.inf)
        upper[-1] = 0.0
        return cls(likelihood, groups, degrees_of_freedom, lower, upper)

    @property
    def exact(self) -> bool:
        """Whether every λ is known."""
        return self.lower is self.upper

    def support(self, mask: int) -> Support:
        """The support that a bit mask stands for."""
        absent = {g for bit, g in enumerate(self.groups) if not mask >> bit & 1}
        return self.likelihood.space.everything - absent

    def learn(self, masks: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        """Take in bounds on some supports, and what they imply for the others."""
        self.num_fits += len(masks)
        self.lower[masks] = np.maximum(self.lower[masks], lower)
        self.upper[masks] = np.minimum(self.upper[masks], upper)
        for bit in range(len(self.groups)):
            low, up = _halves(self.lower, bit), _halves(self.upper, bit)
            np.maximum(low[:, 0], low[:, 1], out=low[:, 0])
            np.minimum(up[:, 1], up[:, 0], out=up[:, 1])

    def fit(self, masks: np.ndarray) -> None:
        """Fit some supports to convergence."""
        fits = self.likelihood.fit_many([self.support(int(mask)) for mask in masks])
        statistics = np.array([2 * (self.likelihood.full.log_likelihood - fit.log_likelihood) for fit in fits])
        self.learn(masks, statistics, statistics)

    def decide(self, critical: np.ndarray, upward_closed: bool) -> np.ndarray:
        """Which supports are sufficient, λ_I ≤ c_I [2^D], as far as the minimal ones depend on it.

        Only supports that the bounds leave open are fitted: first large ones that the quadratic screen expects to fail
        (they settle their subsets) and small ones that it expects to hold (nothing above them matters any more).
        """
        if self.exact:
            return self.upper <= critical
        likelihood = self.likelihood
        screen = likelihood.screen(self.groups) if isinstance(likelihood, Brackets) else self.degrees_of_freedom * 1.0
        size = _sizes(len(self.groups))
        holds = screen <= critical
        while True:
            accepted = self.upper <= critical
            unknown = ~accepted & ~(self.lower > critical)
            if upward_closed:
                wanted = ~_any_child(_any_subset(accepted))
            else:  # candidates, and what could still disqualify one
                barren = ~_any_child(accepted)
                wanted = barren | _any_parent(accepted & barren)
            todo = np.flatnonzero(unknown & wanted)
            if not len(todo):
                return accepted
            order = np.lexsort((todo, np.where(holds[todo], size[todo], -size[todo])))
            rejects = [m for m in todo[order] if not holds[m]][:BATCH]
            accepts = [m for m in todo[order] if holds[m]][:BATCH]
            masks = np.array(rejects + accepts)
            if isinstance(likelihood, Brackets):
                lower, upper = likelihood.bracket([self.support(int(m)) for m in masks], critical[masks])
                self.learn(masks, lower, upper)
            else:
                self.fit(masks)

    def adjusted_p_values(self, law: ReferenceLaw, effort: int) -> np.ndarray:
        """For each group max p_I over the supports without it [D]: the p-value of closed testing.

        Where not every λ is known, at most `effort` more fits close the gap; what stays open is bounded from above.
        """
        size = self.degrees_of_freedom
        while True:
            worst, where = self._largest_p_values(law, self.lower)
            if self.exact:
                return worst
            loose = np.unique(where[self.upper[where] > self.lower[where] + 1e-9])
            if not len(loose) or effort <= 0:
                return worst
            # The supersets of a loose support come first: they tighten more than itself.
            self.fit(loose[np.argsort(size[loose])][: min(len(loose), effort)])
            effort -= len(loose)

    def _largest_p_values(self, law: ReferenceLaw, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest p-value among the supports without each group, and a support where it is reached."""
        levels = np.unique(self.degrees_of_freedom)
        best = np.zeros(len(self.groups))
        where = np.zeros(len(self.groups), dtype=np.int64)
        for level in levels:
            masks = np.flatnonzero(self.degrees_of_freedom == level)
            values = statistics[masks]
            for bit in range(len(self.groups)):
                without = (masks >> bit & 1) == 0
                if without.any():
                    position = int(np.argmin(np.where(without, values, np.inf)))
                    p = law.p_value(float(values[position]), int(level))
                    if p > best[bit]:
                        best[bit], where[bit] = p, masks[position]
        return best, where


def minimal(sufficient: np.ndarray) -> np.ndarray:
    """The sufficient supports none of whose proper subsets is sufficient (bit masks)."""
    return np.flatnonzero(sufficient & ~_any_child(_any_subset(sufficient)))


def without_sufficient_child(sufficient: np.ndarray) -> np.ndarray:
    """The sufficient supports that stop being so whichever one group is taken away: the paper's Rule 1."""
    return np.flatnonzero(sufficient & ~_any_child(sufficient))


def _halves(values: np.ndarray, bit: int) -> np.ndarray:
    """A view [·, 2, ·] whose middle index is the bit: without and with the group."""
    return values.reshape(-1, 2, 1 << bit)


def _any_subset(flags: np.ndarray) -> np.ndarray:
    """Whether a support or any of its subsets is flagged."""
    spread = flags.copy()
    for bit in range(len(flags).bit_length() - 1):
        halves = _halves(spread, bit)
        halves[:, 1] |= halves[:, 0]
    return spread


def _any_child(flags: np.ndarray) -> np.ndarray:
    """Whether a support with one group taken away is flagged."""
    child = np.zeros_like(flags)
    for bit in range(len(flags).bit_length() - 1):
        _halves(child, bit)[:, 1] |= _halves(flags, bit)[:, 0]
    return child


def _any_parent(flags: np.ndarray) -> np.ndarray:
    """Whether a support with one group added is flagged."""
    parent = np.zeros_like(flags)
    for bit in range(len(flags).bit_length() - 1):
        _halves(parent, bit)[:, 0] |= _halves(flags, bit)[:, 1]
    return parent


def _sizes(num_groups: int) -> np.ndarray:
    return np.bitwise_count(np.arange(2**num_groups))
