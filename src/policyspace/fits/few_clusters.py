"""Few clusters: a covariance by cluster without its bias (CR2), and the degrees of freedom of tests by it (HTZ).

Bell and McCaffrey (2002) and Pustejovsky and Tipton (2018), for any likelihood whose clusters have scores and information:
in coordinates in which the whole information is the identity, cluster g has the information K_g, and the covariance of the
estimate is Σ_g y_g y_gᵀ with y_g = (1 − K_g)^(−1/2) (score of g), which is unbiased where the model is right.
"""

from typing import final

import numpy as np
from scipy.special import fdtrc

OWN = 1e-9
"""What may be left of a direction that only one cluster knows: nothing but rounding."""


@final
class FewClusters:
    """Tests of weights from the scores [G, d] and the information [G, d, d] of G clusters; `weights` [d, d] are the
    contrasts of the coordinates of these that the weights are.
    """

    def __init__(self, scores: np.ndarray, information: np.ndarray, weights: np.ndarray) -> None:
        values, vectors = np.linalg.eigh(information.sum(axis=0))
        root = (vectors / np.sqrt(values)) @ vectors.T
        shares, axes = np.linalg.eigh(root @ information @ root)
        left = np.maximum(1.0 - shares, 0.0)
        bias = np.where(left > OWN, 1.0 / np.sqrt(np.maximum(left, OWN)), 0.0)
        across = axes.swapaxes(-1, -2)
        self._contrasts = root @ weights
        self._adjust = (axes * bias[:, None, :]) @ across  # (1 − K_g)^(−1/2), where that is defined
        self._product = (axes * (bias * shares)[:, None, :]) @ across  # the same times K_g
        self._adjusted = np.einsum("gij,gj->gi", self._adjust, scores @ root)

    def covariance(self, fixed: np.ndarray) -> np.ndarray:
        """Of the weights `fixed` [m, m]."""
        moved = self._adjusted @ self._contrasts[:, fixed]
        return moved.T @ moved

    def degrees(self, fixed: np.ndarray) -> float:
        """η, with which η·covariance is nearly a Wishart matrix: that of its total variance, if the model were right.

        The covariance of what clusters g and h add to the contrasts C is W_gh = δ_gh CᵀA_g K_g A_g C − N_g N_hᵀ, with
        A_g = (1 − K_g)^(−1/2) and N_g = CᵀA_g K_g; the total variance is Σ_gh (tr W_gh)² + tr W_gh².
        """
        unit = np.linalg.qr(self._contrasts[:, fixed])[0]
        crossed, own, between = self._parts(unit)
        # One, but for directions that only one cluster knows.
        expected, axes = np.linalg.eigh((own - between).sum(axis=0))
        if expected[0] < OWN**0.5:
            return 0.0
        crossed, own, between = self._parts(unit @ (axes / np.sqrt(expected)))
        size = unit.shape[1]
        flat = crossed.reshape(len(crossed), -1)
        moments = (flat.T @ flat).reshape(size, -1, size, flat.shape[1] // size)
        trace = np.trace(own, axis1=1, axis2=2)
        of_traces = (trace**2 - 2 * trace * np.trace(between, axis1=1, axis2=2)).sum() + (moments**2).sum()
        of_squares = ((own - 2 * between) * own.swapaxes(1, 2)).sum()
        of_squares += np.einsum("sitj,tisj->", moments, moments)
        return float(size * (size + 1) / (of_traces + of_squares))

    def _parts(self, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """N_g, CᵀA_g K_g A_g C and N_g N_gᵀ of every cluster."""
        crossed = unit.T @ self._product
        return crossed, crossed @ self._adjust @ unit, crossed @ crossed.swapaxes(1, 2)

    def test(self, away: np.ndarray, fixed: np.ndarray) -> tuple[float, float]:
        """W of the hypothesis that the weights `fixed` are `away` [m] from their estimates, and its p-value."""
        statistic = wald_statistic(away, self.covariance(fixed))
        size, degrees = len(away), self.degrees(fixed)
        spare = degrees - size + 1
        if not spare > 0:
            return statistic, 1.0
        return statistic, float(fdtrc(size, spare, statistic * spare / (degrees * size)))


def wald_statistic(away: np.ndarray, covariance: np.ndarray) -> float:
    """awayᵀ covariance⁻¹ away, in units in which variances are 1."""
    scale = np.sqrt(np.diag(covariance))
    unit = covariance / np.outer(scale, scale)
    return float((away / scale) @ np.linalg.pinv(unit, hermitian=True) @ (away / scale))
