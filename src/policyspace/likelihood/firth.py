"""Firth's penalised likelihood: log L + ½ log det F, finite even where the data are separated."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from policyspace.errors import InputError
from policyspace.likelihood.base import Fit, LinearLikelihood
from policyspace.likelihood.boltzmann import BoltzmannLikelihood
from policyspace.likelihood.newton import maximise
from policyspace.likelihood.softmax import softmax
from policyspace.policies.boltzmann import BoltzmannLinear
from policyspace.policies.groups import Support


class FirthLikelihood(LinearLikelihood):
    """The Jeffreys prior on the Boltzmann policy; the penalty is the full space's in restricted fits too, so they nest."""

    space: BoltzmannLinear

    def __init__(self, plain: BoltzmannLikelihood) -> None:
        if not plain.identifiable:
            raise InputError(
                "Firth's penalty needs features that are not collinear, for it takes the determinant of their Fisher "
                "information: drop a redundant feature first."
            )
        self.space, self.num_pairs, self.law, self._plain = plain.space, plain.num_pairs, plain.law, plain
        self.total_weight, self.diverging, self.design = plain.total_weight, plain.diverging, plain.design
        self._k = len(self.space.row_names)
        self._last: tuple[np.ndarray, np.ndarray] | None = None
        # log det F of raw coordinates, from that of standardised ones.
        self._log_scale = self._k * float(np.log(plain.design.scale).sum())
        self.full = self.fit(self.space.everything)

    def fit(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """Fisher scoring on the penalised likelihood, whose modified score is Firth's."""
        plain, free = self._plain, self.space.free(support)
        begin = plain._fixed
        if start is not None:
            begin = np.where(free, plain.design.to_standardised(self.space.weights(start)).ravel(), plain._fixed)
        best = maximise(self._evaluate, self._hessian, begin, free, max_steps=500, reach=self._reach)
        separated = bool(plain.diverging[free].any())
        return plain._as_fit(best.theta, best.value, best.gradient, best.converged, support, separated)

    def fit_many(self, supports: Sequence[Support]) -> list[Fit]:
        """Each fit begins at the full one, which most restrictions hardly move."""
        return [self.fit(support, self.full.theta) for support in supports]

    def _reach(self, step: np.ndarray) -> float:
        """The largest change of a natural parameter in any row."""
        return float(np.abs(self._rows @ step.reshape(self._k, -1).T).max())

    def _evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self._plain.rows.at(theta)
        hessian = self._hessian(theta)
        sign, log_det = np.linalg.slogdet(hessian)
        if sign <= 0:
            return -np.inf, gradient
        return value + 0.5 * float(log_det) + self._log_scale, gradient + self._penalty_gradient(theta, hessian)

    def _hessian(self, theta: np.ndarray) -> np.ndarray:
        """That of −log L; the penalty and the step after it ask for it at the same point."""
        if self._last is None or not np.array_equal(self._last[0], theta):
            self._last = theta.copy(), self._plain.rows.hessian(theta)
        return self._last[1]

    def _penalty_gradient(self, theta: np.ndarray, hessian: np.ndarray) -> np.ndarray:
        """½ tr(F⁻¹ ∂F/∂θ) = ½ Σ_i w_i Σ_ab (φᵀF⁻¹_ab φ) κ_abc ⊗ φ, κ the third cumulant of the actions."""
        x, k = self._rows, self._k
        q = x.shape[1]
        inverse = np.linalg.inv(hessian).reshape(k, q, k, q).transpose(1, 0, 2, 3).reshape(q, k * k * q)
        # φᵀF⁻¹_ab φ: one product of matrices, then a sum over the features of each row.
        leverage = ((x @ inverse).reshape(-1, k * k, q) @ x[:, :, None]).reshape(-1, k, k)
        p = np.stack([p[:, 0] for p in softmax(x, theta.reshape(k, q, 1))[0]], axis=1)
        covariance = p[:, :, None] * (np.eye(k) - p[:, None, :])
        diagonal = np.einsum("naa->na", leverage)
        # κ_abc = δ_ab W_ac − W_ac p_b − p_a W_bc
        third = np.einsum("na,nac->nc", diagonal, covariance) - 2 * np.einsum("nab,nb,nac->nc", leverage, p, covariance)
        if self._plain.rows.weights is not None:
            third *= self._plain.rows.weights[:, None]
        return 0.5 * (third.T @ x).ravel()

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
