"""What is known of a log-likelihood around one point: its derivatives there, and from some rows how it goes on."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg.lapack import dpotrf


class SumsOverRows(Protocol):
    """A log-likelihood that is a sum over rows."""

    total_weight: float

    def evaluate(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log L [m] and its gradient [m, d] at θ [m, d]."""

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """−∇² log L [d, d]."""

    def hessians(self, thetas: np.ndarray) -> np.ndarray:
        """The same at several θ [m, d, d]."""


@dataclass(frozen=True)
class Anchor:
    """Gradient and Hessian of all rows at θ₀; what a step away changes in them beyond that, a sample of the rows tells."""

    rows: SumsOverRows
    sample: SumsOverRows | None  # None where all rows are few
    theta: np.ndarray  # [d]
    gradient: np.ndarray  # [d]
    curvature: np.ndarray  # −∇² log L at θ₀ [d, d]

    @cached_property
    def _sampled(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The sample's gradient and Hessian at θ₀, and what its sums are multiplied by."""
        assert self.sample is not None
        scale = self.rows.total_weight / self.sample.total_weight
        gradient, curvature = self.sample.evaluate(self.theta[None])[1][0], self.sample.hessian(self.theta)
        return gradient, curvature, scale

    def gradients(self, thetas: np.ndarray) -> np.ndarray:
        """About ∇ log L of all rows [m, d]: exact to first order around θ₀, the rest from the sample."""
        assert self.sample is not None
        steps = thetas - self.theta
        gradient, curvature, scale = self._sampled
        bent = self.sample.evaluate(thetas)[1] - gradient + steps @ curvature
        return self.gradient - steps @ self.curvature + scale * bent

    def curvature_at(self, theta: np.ndarray) -> np.ndarray:
        """About −∇² log L of all rows at θ [d, d]."""
        if self.sample is None:
            return self.rows.hessian(theta)
        _, before, scale = self._sampled
        here = self.sample.hessian(theta) * scale
        corrected = self.curvature + here - before * scale
        return here if dpotrf(corrected)[1] else corrected  # which must be positive
