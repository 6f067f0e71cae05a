"""The mixture e-value of a linear policy: λ weighed against a prior on what is tested, cheap and valid at every look."""

from collections.abc import Sequence
from typing import final

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits.base import Likelihood, LinearLikelihood
from policyspace.inference.base import SupportTest, e_value
from policyspace.inference.glr import Test
from policyspace.policies.groups import Support

SPREAD = 1.0
"""τ: the prior's standard deviation for weights of standardised features (Gaussian: in units of the action's noise)."""


@final
class Mixture(SupportTest):
    """E_I = Π_j (1 + τ²/v_j)^{−½} · exp{½ λ_I · min_j τ²/(τ² + v_j)}, v_j the variances of what Θ_I fixes.

    For one parameter this is the likelihood ratio averaged over a N(0, τ²) prior, to second order; for several a lower
    bound on it. Asymptotic, but unlike Wilks' p-value it may be looked at after every episode.
    """

    name = "mixture"
    statistic_name = "λ"
    monotone = False  # smaller supports fix more, and the prior's price is higher

    def __init__(
        self, likelihood: Likelihood, data: Demonstrations | None = None, level: float = 0.05, seed: int = 0
    ) -> None:
        if not isinstance(likelihood, LinearLikelihood):
            raise InputError("the mixture e-value is for linear policies: use 'universal' or 'eprocess' for this one.")
        if not likelihood.identifiable:
            raise InputError(
                "the mixture e-value needs features that are not collinear: drop a redundant one, or use 'universal'."
            )
        self.likelihood, self.space = likelihood, likelihood.space
        self._variance = self._standardised_variance(likelihood)

    def _standardised_variance(self, likelihood: LinearLikelihood) -> np.ndarray:
        """(nF̂)⁻¹ of the weights of standardised features [d, d]."""
        space = likelihood.space
        scale = np.ones((len(space.row_names), len(space.column_names)))
        scale[:, int(space.intercept) :] = likelihood.design.scale
        scale = scale / likelihood.action_scale()[:, None]
        unit = likelihood.total_weight * likelihood.information() / np.outer(scale, scale)
        return np.linalg.pinv(unit, hermitian=True)

    def test_many(self, supports: Sequence[Support]) -> list[Test]:
        """p = min(1, 1/E_I)."""
        return [self._test(support) for support in supports]

    def _test(self, support: Support) -> Test:
        fit = self.likelihood.fit(support)
        self.likelihood.adopt(fit)
        statistic = 2 * (self.likelihood.full.log_likelihood - fit.log_likelihood)
        zeroed = np.flatnonzero(~self.space.free(support))
        degrees = self.likelihood.degrees_of_freedom(support)
        log_e = log_mixture(statistic, self._variance[np.ix_(zeroed, zeroed)], SPREAD)
        return Test(support, statistic, degrees, float(np.exp(-max(log_e, 0.0))), e_value(log_e))

    def note(self) -> str:
        """What it is."""
        return "mixture e-value, 1/E as p-value; asymptotic, valid at every look"


def log_mixture(statistic: float, variance: np.ndarray, spread: float) -> float:
    """log E from λ and the covariance matrix [m, m] of the m estimates that the hypothesis fixes."""
    if not len(variance):
        return 0.0
    v = np.maximum(np.linalg.eigvalsh(variance), np.finfo(float).tiny)
    price = -0.5 * float(np.log1p(spread**2 / v).sum())
    return price + 0.5 * statistic * float((spread**2 / (spread**2 + v)).min())
