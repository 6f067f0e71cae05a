"""Firth's penalised likelihood: log L + ½ log det F, finite even where the data are separated."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from policyspace.errors import InputError
from policyspace.families.base import Support
from policyspace.families.likelihood import Fit, LinearLikelihood
from policyspace.families.newton import maximise
from policyspace.families.softmax import SoftmaxLikelihood, SoftmaxLinear
from policyspace.families.softmax_sums import information, softmax

DIFFERENCE = 1e-5
"""How far weights of standardised features are moved to see how the penalised score changes."""

POLISHING_STEPS = 4


class FirthLikelihood(LinearLikelihood):
    """The Jeffreys prior on the Boltzmann policy; the penalty is the full space's in restricted fits too, so they nest."""

    space: SoftmaxLinear
    penalised = True

    def __init__(self, plain: SoftmaxLikelihood) -> None:
        if not plain.identifiable:
            raise InputError(
                "Firth's penalty needs features that are not collinear, for it takes the determinant of their Fisher "
                "information: drop a redundant feature first."
            )
        self.space, self.num_rows, self.law, self._plain = plain.space, plain.num_rows, plain.law, plain
        self.total_weight, self.diverging, self.design = plain.total_weight, plain.diverging, plain.design
        self._k = len(self.space.row_names)
        self._last: tuple[np.ndarray, np.ndarray] | None = None
        # log det F of raw coordinates, from that of standardised ones.
        self._log_scale = self._k * float(np.log(plain.design.scale).sum())
        self.full = self.fit(self.space.full_support)

    def fit(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """Fisher scoring on the penalised likelihood, whose modified score is Firth's."""
        plain, free = self._plain, self.space.free_mask(support)
        begin = plain._fixed
        if start is not None:
            begin = np.where(free, plain.design.to_standardised(self.space.weights(start)).ravel(), plain._fixed)
        best = maximise(self._evaluate, self._hessian, begin, free, max_steps=500, reach=self._reach, secant=True)
        theta, value, gradient = best.theta, best.value, best.gradient
        if free.all() and best.converged:  # its weights are reported, of restricted fits only the likelihood
            theta, value, gradient = self._polished(theta, value, gradient)
        separated = bool(plain.diverging[free].any())
        return plain._as_fit(theta, value, gradient, best.converged, support, separated)

    def _polished(self, theta: np.ndarray, value: float, gradient: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Newton steps on the penalised score itself, its derivative by differences: weights to all digits."""
        moves = DIFFERENCE * np.eye(len(theta))
        slopes = [(self._evaluate(theta - m)[1] - self._evaluate(theta + m)[1]) / (2 * DIFFERENCE) for m in moves]
        curvature = (np.array(slopes) + np.array(slopes).T) / 2
        if np.linalg.eigvalsh(curvature)[0] <= 0:
            return theta, value, gradient
        for _ in range(POLISHING_STEPS):
            moved = theta + np.linalg.solve(curvature, gradient)
            new_value, new_gradient = self._evaluate(moved)
            if not np.abs(new_gradient).max() < np.abs(gradient).max():
                break
            theta, value, gradient = moved, max(new_value, value), new_gradient
        return theta, value, gradient

    def fit_many(self, supports: Sequence[Support]) -> list[Fit]:
        """Each fit begins at the full one, which most restrictions hardly move."""
        return [self.fit(support, self.full.theta) for support in supports]

    def _reach(self, step: np.ndarray) -> float:
        """The largest change of a natural parameter in any row."""
        return float(np.abs(self._rows @ step.reshape(self._k, -1).T).max())

    def _evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log L + ½ log det F and its gradient, from one pass over the rows."""
        rows, x = self._plain.rows, self._rows
        probabilities, log_partition = softmax(x, theta.reshape(self._k, -1, 1))
        p = np.hstack(probabilities)
        hessian = information(x, p.T, rows.weights)
        self._last = theta.copy(), hessian
        weights = np.ones(len(x)) if rows.weights is None else rows.weights
        value = float(theta @ rows.statistic - weights @ log_partition[:, 0])
        sign, log_det = np.linalg.slogdet(hessian)
        if sign <= 0:
            return -np.inf, rows.statistic - ((p * weights[:, None]).T @ x).ravel()
        pull = (self._modification(p, hessian) - p) * weights[:, None]
        gradient = rows.statistic + (pull.T @ x).ravel()
        return value + 0.5 * float(log_det) + self._log_scale, gradient

    def _hessian(self, theta: np.ndarray) -> np.ndarray:
        """That of −log L; a step asks for it where the objective was last evaluated."""
        if self._last is None or not np.array_equal(self._last[0], theta):
            self._last = theta.copy(), self._plain.rows.hessian(theta)
        return self._last[1]

    def _modification(self, p: np.ndarray, hessian: np.ndarray) -> np.ndarray:
        """What the penalty adds to each action of each row [n, k]: ½ tr(F⁻¹ ∂F/∂θ) = Σ_i w_i (what it adds) ⊗ φ_i.

        It is ½ Σ_ab (φᵀF⁻¹_ab φ) κ_abc with κ_abc = δ_ab W_ac − W_ac p_b − p_a W_bc, the third cumulant of the actions,
        where W = diag p − ppᵀ: ½ p_c (h_c − pᵀh) with h_a = φᵀF⁻¹_aa φ − 2 Σ_b φᵀF⁻¹_ab φ p_b.
        """
        x, k = self._rows, self._k
        q = x.shape[1]
        inverse = np.linalg.inv(hessian).reshape(k, q, k, q).transpose(1, 0, 2, 3).reshape(q, k * k * q)
        # φᵀF⁻¹_ab φ: one product of matrices, then a sum over the features of each row.
        leverage = ((x @ inverse).reshape(-1, k * k, q) @ x[:, :, None]).reshape(-1, k, k)
        h = np.einsum("naa->na", leverage) - 2 * (leverage @ p[:, :, None])[:, :, 0]
        return 0.5 * p * (h - np.sum(p * h, axis=1, keepdims=True))

    @cached_property
    def _rows(self) -> np.ndarray:
        return self._plain.rows.standardised(slice(None))

    def information(self) -> np.ndarray:
        """F̂ at the penalised fit."""
        features, weights = self._plain.rows.features, self._plain.rows.weights
        return self.space.fisher(self.full.theta, features, weights)

    def standardised_information(self) -> np.ndarray:
        """The same in the coordinates of the standardised design."""
        theta = self._plain.design.to_standardised(self.space.weights(self.full.theta)).ravel()
        return self._plain.rows.hessian(theta) / self.total_weight
