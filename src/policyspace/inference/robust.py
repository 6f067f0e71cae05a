"""Wald's test with a covariance by cluster: for subjects whose rows belong together, and for sampling weights."""

from collections.abc import Sequence
from typing import final

import numpy as np
from scipy.special import fdtrc

from policyspace.answer import Assumption
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits.base import Likelihood
from policyspace.fits.sandwich import clustered_covariance, clusters_of
from policyspace.inference.base import SupportTest
from policyspace.inference.glr import Test
from policyspace.policies.groups import Support

FEWEST_CLUSTERS = 40
"""Clusters from which the covariance is known well enough for a promise."""


@final
class RobustWald(SupportTest):
    """W_I = θ̂_Jᵀ V_JJ⁻¹ θ̂_J with V by cluster, J what Θ_I fixes; W_I/m against F_{m, G−1}, G the number of clusters."""

    name = "robust"
    statistic_name = "W"
    monotone = False  # larger hypotheses have more degrees of freedom
    assumes = ("form", "no feedback", "independent clusters")

    def __init__(self, likelihood: Likelihood, data: Demonstrations) -> None:
        if likelihood.full.separated and not likelihood.penalised:
            raise InputError(
                "the test 'robust' needs finite weights, found separated data: use the test 'lean' or 'firth'."
            )
        self.space, self.likelihood, self._data = likelihood.space, likelihood, data
        self._covariance = clustered_covariance(likelihood, data)
        self._num_clusters = int(clusters_of(data).max()) + 1

    def test_many(self, supports: Sequence[Support]) -> list[Test]:
        """Each from the one full fit."""
        return [self._test(support) for support in supports]

    def _test(self, support: Support) -> Test:
        fixed = np.flatnonzero(~self.space.free(support))
        if not len(fixed) or len(fixed) >= self._num_clusters - 1:
            return Test(support, 0.0, len(fixed), 1.0)
        away = (self.likelihood.full.theta - self.space.fixed)[fixed]
        scale = np.sqrt(np.diag(self._covariance)[fixed])
        unit = self._covariance[np.ix_(fixed, fixed)] / np.outer(scale, scale)
        statistic = float((away / scale) @ np.linalg.pinv(unit, hermitian=True) @ (away / scale))
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
        return f"Wald test, its covariance by {self._num_clusters} {self.dependence}, against the F distribution"
