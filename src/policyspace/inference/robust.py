"""Wald's test with a covariance by cluster: for subjects whose rows belong together, and for sampling weights."""

from collections.abc import Sequence
from typing import final

import numpy as np
from scipy.special import fdtrc

from policyspace.answer import Assumption
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits.base import Likelihood
from policyspace.fits.few_clusters import wald_statistic
from policyspace.fits.sandwich import clustered_covariance, few_clusters, num_clusters
from policyspace.inference.base import SupportTest
from policyspace.inference.glr import Test
from policyspace.policies.groups import Support

FEWEST_CLUSTERS = 40
"""Clusters from which the level is kept in simulations (tests/inference/test_robust_level.py); at 20 it may be 6 %."""


@final
class RobustWald(SupportTest):
    """W_I = θ̂_Jᵀ V_JJ⁻¹ θ̂_J with V by cluster, J what Θ_I fixes, m = |J|.

    V is corrected for the number G of clusters, and W_I has Hotelling's law with degrees of freedom of its own; beyond
    many clusters neither matters, and W_I/m is taken as F_{m, G−1}.
    """

    name = "robust"
    statistic_name = "W"
    monotone = False  # larger hypotheses have more degrees of freedom
    assumes = ("form", "no feedback", "independent clusters")
    sampled = True

    def __init__(self, likelihood: Likelihood, data: Demonstrations) -> None:
        if likelihood.full.separated and not likelihood.penalised:
            raise InputError(
                "the test 'robust' needs finite weights, found separated data: use the test 'lean' or 'firth'."
            )
        self.space, self.likelihood, self._data = likelihood.space, likelihood, data
        self._num_clusters = num_clusters(data)
        self._few = few_clusters(likelihood, data)
        self._covariance = clustered_covariance(likelihood, data) if self._few is None else None

    def test_many(self, supports: Sequence[Support]) -> list[Test]:
        """Each from the one full fit."""
        return [self._test(support) for support in supports]

    def _test(self, support: Support) -> Test:
        fixed = np.flatnonzero(~self.space.free(support))
        if not len(fixed) or len(fixed) >= self._num_clusters - 1:
            return Test(support, 0.0, len(fixed), 1.0)
        away = (self.likelihood.full.theta - self.space.fixed)[fixed]
        if self._few is not None:
            statistic, p_value = self._few.test(away, fixed)
            return Test(support, statistic, len(fixed), p_value)
        assert self._covariance is not None
        statistic = wald_statistic(away, self._covariance[np.ix_(fixed, fixed)])
        p_value = float(fdtrc(len(fixed), self._num_clusters - 1, statistic / len(fixed)))
        return Test(support, statistic, len(fixed), p_value)

    @property
    def dependence(self) -> str:
        """Subjects where they are known, else rows."""
        return "rows" if self._data.subjects is None else "subjects"

    def condition(self) -> str:
        """What remains to be assumed."""
        return f"the mean of the actions is that of the given space and {self.dependence} are independent of each other"

    def own_assumptions(self) -> list[Assumption]:
        """That there are enough clusters."""
        words = f"{self._num_clusters} {self.dependence} are taken as independent of each other"
        enough = self._num_clusters >= FEWEST_CLUSTERS
        if not enough:
            words = (
                f"{self._num_clusters} {self.dependence} are too few: a covariance by cluster needs {FEWEST_CLUSTERS}"
            )
        return [Assumption("independent clusters", enough, float(self._num_clusters), words)]

    def note(self) -> str:
        """What it is."""
        by = f"Wald test, its covariance by {self._num_clusters} {self.dependence}"
        return f"{by}, against the F distribution" if self._few is None else f"{by}, corrected for so few (CR2 and HTZ)"
