"""Where the profile likelihood of a Boltzmann weight has fallen by c/2: all ends of all weights side by side."""

from collections.abc import Callable
from functools import cache

import numpy as np

from policyspace.fits.boltzmann_fits import BoltzmannLikelihood
from policyspace.fits.fisher import inverse_information
from policyspace.fits.newton import maximise

FARTHEST = 500.0
"""A weight of a standardised feature beyond which nothing changes any more: the interval is open there."""

MOST_PASSES = 30
"""Passes over the rows for the ends that are followed together; what has not settled by then is followed alone."""

SETTLED = 1e-6
"""How near √λ must come to √c; λ of an interval's end is then right to six digits."""


def boltzmann_ends(likelihood: BoltzmannLikelihood, significance: float) -> Callable[[int], tuple[float, float]]:
    """θ_i ↦ both ends of {x : λ(θ_i = x) ≤ c}; λ(x) is that of the hypothesis θ_i = x, all other weights free."""
    profile = Profile(likelihood, float(np.sqrt(likelihood.law.critical(significance, 1))))
    space, design = likelihood.space, likelihood.design
    offset, q = int(space.intercept), len(space.column_names)
    constant = np.concatenate([np.zeros(offset, dtype=bool), design.constant])
    open_ = (profile.hidden & ~likelihood.diverging) | constant[np.arange(space.num_parameters) % q]
    tested = [i for g in space.tested for i in space.groups[g].indices if not open_[i]]
    together = {} if likelihood.diverging.any() else profile.together(tested)
    units = np.eye(space.num_parameters).reshape(-1, *space.weights(profile.best).shape)
    raw = design.to_raw(units).reshape(space.num_parameters, -1).T  # θ as it is = raw · θ of standardised features

    def ends(i: int) -> tuple[float, float]:
        if open_[raw[i] != 0].any():
            return -np.inf, np.inf
        size = float(np.abs(raw[i]).max())
        lower, upper = (together.get((i, side), np.nan) for side in (-1, 1))
        if np.isnan([lower, upper]).any():
            lower, upper = profile.alone(i, raw[i] / size)
        best = float(raw[i] @ profile.best)
        return best + lower * size, best + upper * size

    return ends


class Profile:
    """√λ(x) of each weight, in coordinates of standardised features; distances are from θ̂_i."""

    def __init__(self, likelihood: BoltzmannLikelihood, root: float) -> None:
        self.likelihood, self.rows, self.root = likelihood, likelihood.rows, root
        weights = likelihood.space.weights(likelihood.full.theta)
        self.best = likelihood.design.to_standardised(weights).ravel()
        self.inverse, self.hidden = inverse_information(self.rows.hessian(self.best))

    def together(self, indices: list[int]) -> dict[tuple[int, int], float]:
        """The distances at which √λ = √c, by passes over the rows that serve all ends at once; NaN if not settled.

        √λ(x) is nearly linear, so x takes secant steps while the other weights take steps with the inverse Hessian of
        θ̂, from which coordinate i is eliminated: H_rr⁻¹g = (H⁻¹g)_r − H⁻¹_ri (H⁻¹g)_i / H⁻¹_ii.
        """
        ends = [(i, side) for i in indices for side in (-1, 1)]
        if not ends:
            return {}
        which, sides = np.array(ends).T
        path = self.inverse[which] / self.inverse[which, which][:, None]
        distance = sides * self.root * np.sqrt(self.inverse[which, which])
        theta = self.best + distance[:, None] * path
        before, root_before = np.zeros(len(ends)), np.zeros(len(ends))
        settled, active = np.full(len(ends), np.nan), np.arange(len(ends))
        for _ in range(MOST_PASSES):
            values, gradients = self.rows.evaluate(theta[active])
            mine, columns = which[active], np.arange(len(active))
            gradients[columns, mine] = 0.0
            steps = gradients @ self.inverse
            steps -= steps[columns, mine][:, None] * path[active]
            gain = 0.5 * np.einsum("ed,ed->e", gradients, steps)
            found = np.sqrt(np.maximum(2 * (self.likelihood.full.log_likelihood - values - gain), 0.0))
            done = (np.abs(found - self.root) < SETTLED) & (gain < 1e-9)
            settled[active[done]] = distance[active[done]]
            moved = self._secant(distance[active], before[active], found, root_before[active])
            before[active], root_before[active] = distance[active], found
            theta[active] += steps + (moved - distance[active])[:, None] * path[active]
            distance[active] = moved
            lost = ~(np.isfinite(theta[active]).all(axis=1) & (sides[active] * moved > 0) & (np.abs(moved) < FARTHEST))
            active = active[~done & ~lost]
            if not len(active):
                break
        return dict(zip(ends, settled.tolist(), strict=True))

    def _secant(self, x: np.ndarray, before: np.ndarray, found: np.ndarray, root_before: np.ndarray) -> np.ndarray:
        """Where the line through the last two points of (x, √λ) reaches √c; where they coincide, through θ̂."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (found - root_before) / (x - before)
            slope = np.where(np.abs(x - before) > 1e-9 * np.abs(x), slope, found / x)
            return x + (self.root - found) / slope

    def alone(self, i: int, row: np.ndarray) -> tuple[float, float]:
        """Both distances of Σ_j row_j θ_j by full fits: for separated data, for what did not settle, and for constants,
        which are sums where features are centred. θ = change · u, where u has that sum at place i.
        """
        size = len(self.best)
        change, back = np.eye(size), np.eye(size)
        change[i], back[i] = -row / row[i], row
        change[i, i] = 1 / row[i]
        best, inverse, free = back @ self.best, back @ self.inverse @ back.T, np.arange(size) != i
        path = inverse[:, i] / inverse[i, i] if inverse[i, i] > 0 else np.eye(size)[i]
        # Where the data are separated other weights have run off: no straight path from θ̂ is a good start.
        path = np.eye(size)[i] if self.likelihood.diverging.any() else path

        def at(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self.rows.at(change @ u)
            return value, gradient @ change

        def hessian(u: np.ndarray) -> np.ndarray:
            return change.T @ self.rows.hessian(change @ u) @ change

        @cache
        def excess(distance: float) -> float:
            """√λ(x) − √c."""
            if not distance:
                return -self.root
            with np.errstate(over="ignore", invalid="ignore"):  # far out on a separated weight; such steps are undone
                fitted = maximise(at, hessian, best + distance * path, free)
            return float(np.sqrt(max(2 * (self.likelihood.full.log_likelihood - fitted.value), 0.0))) - self.root

        if self.likelihood.diverging[i]:
            # Open on the side to which θ_i runs off, and on the other too unless zero can be excluded.
            toward = _end(excess, -best[i], farthest=abs(best[i])) if best[i] else np.inf
            lower, upper = sorted((toward, float(np.copysign(np.inf, -toward))))
            return lower, upper
        step = min(self.root * float(np.sqrt(inverse[i, i])), 5.0)
        return _end(excess, -step, FARTHEST), _end(excess, step, FARTHEST)


def _end(excess: Callable[[float], float], step: float, farthest: float) -> float:
    """The distance at which √λ(x) = √c, doubling the step until it is passed; infinite where that does not happen."""
    from scipy.optimize import brentq  # slow to import, and seldom needed

    inside, outside = 0.0, step
    while excess(outside) < 0:
        inside, outside = outside, 2 * outside
        if abs(outside) > farthest:
            return float(np.copysign(np.inf, step))
    return float(brentq(excess, *sorted((inside, outside)), xtol=1e-6 * abs(step)))
