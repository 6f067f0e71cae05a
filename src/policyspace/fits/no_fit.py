"""Where there is no policy model, nothing is fitted: the likelihood that says so."""

from dataclasses import dataclass

import numpy as np

from policyspace.data.blocks import ArrayRows
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.joint_moments import moments_of
from policyspace.errors import InputError
from policyspace.fits.base import Fit, Likelihood
from policyspace.fits.design import Design
from policyspace.fits.fisher import dependences
from policyspace.policies.any_policy import NO_MODEL, AnyPolicy
from policyspace.policies.base import Policy
from policyspace.policies.gaussian import GaussianLinear
from policyspace.policies.groups import Support


@dataclass(frozen=True)
class NoLaw:
    """λ does not exist, and has no law."""

    name: str = "none"

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """Nothing can be rejected."""
        return 1.0

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """Never exceeded."""
        return float("inf")

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """Nothing is found."""
        return 0.0


class NoFit(Likelihood):
    """No parameters, no information, and a log-likelihood that is not a number."""

    space: AnyPolicy
    identifiable = False  # there is nothing to identify

    def __init__(self, space: AnyPolicy, data: Demonstrations) -> None:
        self.space, self.num_pairs, self.total_weight, self.law = space, data.num_pairs, data.total_weight, NoLaw()
        self.diverging, self._rows = np.zeros(0, dtype=bool), ArrayRows(data.features, np.empty((data.num_pairs, 0)))
        self.full = self.fit(space.everything)

    def fit(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """The same for every support."""
        return Fit(np.zeros(0), support, float("nan"), 0.0, True, False, 0, self.law)

    def num_free(self, support: Support) -> int:
        """None."""
        return 0

    def information(self) -> np.ndarray:
        """Of no parameters [0, 0]."""
        return np.zeros((0, 0))

    def remarks(self) -> list[str]:
        """Which groups these states cannot tell apart, as for a linear policy of the same groups."""
        columns = self.space.group_columns()
        inside = {g.name: [self.space.feature_names[c] for c in columns[i]] for i, g in enumerate(self.space.groups)}
        linear = GaussianLinear(self.space.feature_names, groups=inside)
        return [str(found) for found in dependences(linear, Design(linear, moments_of(self._rows)))]

    def penalised_policy(self, support: Support | None = None) -> Policy:
        """There is none."""
        raise InputError(NO_MODEL)
