"""The interface of likelihoods, fits, and null distributions of the likelihood ratio."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.special import betaincinv, chdtrc, chdtri, chndtr, fdtrc, ncfdtr

from policyspace.errors import InputError
from policyspace.families.base import ExponentialFamily, Policy, PolicySpace, Support
from policyspace.families.design import DesignMatrix
from policyspace.runtime import counted

# -- The law of λ when the hypothesis is true: χ² (Wilks), F and Wilks' Λ for an estimated covariance.


class NullDistribution(Protocol):
    """How large λ may be by chance, for a number of degrees of freedom."""

    def __hash__(self) -> int:
        """Laws are plain values: what follows from one is remembered by it."""
        ...

    @property
    def name(self) -> str:
        """The name that reports show."""

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """P(λ ≥ statistic) under the hypothesis."""

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """c: the λ that is exceeded with probability `significance` under the hypothesis."""

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """P(λ > c) when the agent does control, at the given non-centrality."""


class PowerFunction(NullDistribution, Protocol):
    """A law of λ that is known under the alternative too, so that it can be planned with."""

    def cumulative(self, statistic: float, noncentrality: float, degrees_of_freedom: int) -> float:
        """P(λ ≤ statistic) when the agent does control, at the given non-centrality."""


@dataclass(frozen=True)
class ChiSquare:
    """Wilks' theorem (Theorem 2.1): λ → χ²_m; exact for a Gaussian policy of known covariance on states that were fixed.

    On trajectories later states are made of earlier actions: there it holds as the number of episodes grows.
    """

    name: str = "chi2"

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """P(χ²_m ≥ λ); a hypothesis that fixes nothing cannot be rejected."""
        return float(chdtrc(degrees_of_freedom, statistic)) if degrees_of_freedom else 1.0

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """The quantile χ²_{m,1−α}; c(0) = 0 is never exceeded, the full set is always sufficient."""
        return float(chdtri(degrees_of_freedom, significance)) if degrees_of_freedom else np.inf

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """P(χ²_m(ncp) > c)."""
        if not degrees_of_freedom:
            return 0.0
        return 1.0 - self.cumulative(self.critical(significance, degrees_of_freedom), noncentrality, degrees_of_freedom)

    def cumulative(self, statistic: float, noncentrality: float, degrees_of_freedom: int) -> float:
        """P(χ²_m(ncp) ≤ λ)."""
        return float(chndtr(statistic, degrees_of_freedom, noncentrality)) if degrees_of_freedom else 1.0


@dataclass(frozen=True)
class WilksLambda:
    """Λ = |S|/|S_I| = exp(−λ/n) by Rao's F: for one action the F test.

    Exact, on states that were fixed, for up to two actions or two fixed rows.
    """

    num_rows: float
    num_columns: int  # rank of the design, the constant included
    num_actions: int
    name: str = "F"

    def _rao(self, degrees_of_freedom: int) -> tuple[float, float, float]:
        """(t, df1, df2) of F = (Λ^{−1/t} − 1)·df2/df1."""
        p, h = self.num_actions, degrees_of_freedom / self.num_actions
        error = self.num_rows - self.num_columns
        denominator = p * p + h * h - 5
        t = np.sqrt((p * p * h * h - 4) / denominator) if denominator > 0 else 1.0
        return t, p * h, (error + h - (p + h + 1) / 2) * t - (p * h - 2) / 2

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """P(F_{df1,df2} ≥ F(λ))."""
        if not degrees_of_freedom:
            return 1.0
        t, df1, df2 = self._rao(degrees_of_freedom)
        return float(fdtrc(df1, df2, np.expm1(statistic / self.num_rows / t) * df2 / df1))

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """The critical F brought back to the scale of λ."""
        if not degrees_of_freedom:
            return np.inf
        t, df1, df2 = self._rao(degrees_of_freedom)
        return float(self.num_rows * t * np.log1p(_critical_f(significance, df1, df2) * df1 / df2))

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """P(F_{df1,df2}(ncp) > c)."""
        if not degrees_of_freedom:
            return 0.0
        _, df1, df2 = self._rao(degrees_of_freedom)
        return 1.0 - float(ncfdtr(df1, df2, noncentrality, _critical_f(significance, df1, df2)))

    def cumulative(self, statistic: float, noncentrality: float, degrees_of_freedom: int) -> float:
        """P(F_{df1,df2}(ncp) ≤ F(λ))."""
        if not degrees_of_freedom:
            return 1.0
        t, df1, df2 = self._rao(degrees_of_freedom)
        return float(ncfdtr(df1, df2, noncentrality, np.expm1(statistic / self.num_rows / t) * df2 / df1))


def _critical_f(significance: float, df1: float, df2: float) -> float:
    """The F that is exceeded with probability `significance`, exact far in the tail too."""
    x = float(betaincinv(df2 / 2, df1 / 2, significance))
    return df2 * (1 - x) / (df1 * x)


@dataclass(frozen=True)
class WorstCaseThreshold:
    """One critical value for every support, that of the smallest: valid at once for all true supports.

    Where features are collinear several supports can be true together, and every one of them has
    λ_I ≤ 2(ℓ̂(θ*) − ℓ̂(θ̂)), which has the law of the largest hypothesis.
    """

    law: NullDistribution
    most: int
    name: str = "constant"

    def p_value(self, statistic: float, degrees_of_freedom: int) -> float:
        """The p-value as if all `most` scalars were zeroed."""
        return self.law.p_value(statistic, self.most) if degrees_of_freedom else 1.0

    def critical(self, significance: float, degrees_of_freedom: int) -> float:
        """The critical value of the smallest support."""
        return self.law.critical(significance, self.most if degrees_of_freedom else 0)

    def power(self, noncentrality: float, significance: float, degrees_of_freedom: int) -> float:
        """Power is not used under a constant threshold; the law's own is an upper bound."""
        return self.law.power(noncentrality, significance, degrees_of_freedom)


# -- Maximum likelihood inside Θ_I: what a fit is, and what every likelihood can do.


@dataclass(frozen=True)
class Fit:
    """θ̂_I, the maximum-likelihood parameter inside Θ_I.

    Parameters
    ----------
    theta : array of shape (d,)
        θ̂_I.
    support : frozenset of int
        I, the groups that are free.
    log_likelihood : float
        A sum over rows: minus the paper's ℓ̂(θ̂_I).
    gradient_norm : float
        Where the fit ended.
    converged, separated : bool
        Whether the maximum was found, and whether it lies at infinity.
    num_free : int
        The rank of the Fisher information on the free coordinates.
    law : NullDistribution
        What λ against a larger fit is measured with.
    restart_noise : float
        By how much λ moves with other random starts, where there are many peaks.

    Examples
    --------
    >>> import policyspace
    >>> sample = policyspace.Sample([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.5], names=["speed"])
    >>> found = policyspace.fit(policyspace.GaussianLinear(["speed"]), sample)
    >>> found.converged, found.num_free, found.theta.round(2).tolist()
    (True, 2, [0.92, 1.25])
    """

    theta: np.ndarray
    support: Support
    log_likelihood: float
    gradient_norm: float
    converged: bool
    separated: bool
    num_free: int  # the rank of the Fisher information on the free coordinates
    law: NullDistribution  # what λ against a larger fit is measured with
    restart_noise: float = 0.0  # by how much λ moves with other random starts, where there are many peaks


class Likelihood(ABC):
    """The likelihood of one data set in one policy space: fits it inside any Θ_I and knows the law of λ_I."""

    space: PolicySpace
    num_rows: int
    total_weight: float  # the number of pairs, or what their weights add up to
    law: NullDistribution
    full: Fit
    diverging: np.ndarray  # [d], the coordinates whose maximum-likelihood value is infinite (separation)
    design: DesignMatrix | None = None  # of a linear policy
    has_all_subsets = False  # whether λ of all supports comes at once
    penalised = False  # whether Firth's penalty is part of it
    penalty: type[Any] | None = None  # the same likelihood with Firth's penalty, where the family has one

    @abstractmethod
    def fit(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """The fit inside Θ_I, to convergence."""

    @abstractmethod
    def num_free(self, support: Support) -> int:
        """The rank of the Fisher information on the coordinates that Θ_I leaves free."""

    @abstractmethod
    def information(self) -> np.ndarray:
        """The empirical Fisher information F̂ at the full fit, a mean over pairs [d, d]."""

    @property
    @abstractmethod
    def identifiable(self) -> bool:
        """Whether different θ are different policies on these states."""

    def fit_many(self, supports: Sequence[Support]) -> list[Fit]:
        """The fits inside several Θ_I; families that can, do it in one pass."""
        return [self.fit(support) for support in counted(supports, "fitting")]

    def bound_statistics(self, supports: Sequence[Support], criticals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of λ_I that say on which side of its critical value it lies; exact, where nothing less is cheaper."""
        fits = self.fit_many(supports)
        exact = np.array([2 * (self.full.log_likelihood - fit.log_likelihood) for fit in fits])
        return exact, exact

    def approximate_statistics(self, groups: Sequence[int]) -> np.ndarray | None:
        """Approximate λ_I of all supports [2^D], where that is cheap."""
        return None

    def statistics_of_all(self, groups: list[int]) -> np.ndarray:
        """λ_I of all supports [2^D]; only where the likelihood `enumerates`."""
        raise TypeError(f"{type(self).__name__} cannot give λ of all supports at once")

    def penalised_policy(self, support: Support | None = None) -> Policy:
        """A policy inside Θ_I, by default in all of Θ, that is finite and reproducible: the most likely one, or near it."""
        return Policy(self.space, (self.full if support is None else self.fit(support)).theta)

    def shrunken_policy(self, support: Support, penalty: float | np.ndarray) -> Policy:
        """argmax log L(θ) − ½ Σ penalty_j z_j² over Θ_I: ridge, with one penalty or one for each parameter [d].

        z are the weights of standardised features in units of the noise of their action; constants are all but free.
        """
        raise InputError(f"penalised fits are for linear and network policies, found {type(self.space).__name__}.")

    def prior_predictive_policies(self, before: Sequence[Policy] = ()) -> list[Policy]:
        """Policies for a bettor to divide its wealth over, learned from this data in the whole space.

        Any number of them is valid: the mean of e-values is an e-value. `before` are those of a smaller data set.
        """
        return [self.penalised_policy()]

    def approximate_max(self, support: Support, start: np.ndarray) -> float:
        """log L at some θ ∈ Θ_I near the most likely one, cheaply: the fit itself, where it is unique."""
        return self.fit(support).log_likelihood

    def quick_statistic(self, actions: np.ndarray, policy: Policy, support: Support) -> float | None:
        """λ_I of any actions on these states by one short protocol; None where fits are unique and need none."""
        return None

    def finite_theta(self) -> np.ndarray:
        """An estimate of θ that is finite on every data set: the full fit, where that always is."""
        return self.full.theta

    def as_linear(self, what: str) -> "LinearLikelihood":
        """The same likelihood, which must be that of a linear policy for what is asked."""
        raise InputError(f"{what} for linear policies, found {type(self.space).__name__}: ask about one of these.")

    def with_penalty(self) -> "Likelihood":
        """The same likelihood with Firth's penalty."""
        if self.penalised:
            return self
        if self.penalty is None:
            raise InputError(
                f"Firth's penalty is for the linear Boltzmann policy, found {type(self.space).__name__}: leave it out."
            )
        found: Likelihood = self.penalty(self)
        return found

    def prepare(self, groups: Sequence[int]) -> None:  # noqa: B027 (most likelihoods have nothing to prepare)
        """Make the fits that help each other before any of them is read; nothing to do where a fit is unique."""

    @property
    def restart_noise(self) -> float:
        """By how much λ moves with other random starts: not at all, where a fit is unique."""
        return 0.0

    def remarks(self) -> list[str]:
        """What a reader of these fits must know: nothing, where a fit is unique."""
        return []

    def degrees_of_freedom(self, support: Support) -> int:
        """rank(F) − rank(F restricted to the free coordinates): the number of zeroed scalars, collinear ones aside."""
        return self.num_free(self.space.full_support) - self.num_free(support)

    def num_free_of_all(self, groups: Sequence[int]) -> np.ndarray:
        """`num_free` of every support [2^D] of some groups, all others being in; bit g ⇔ groups[g] is in."""
        absent = [[g for bit, g in enumerate(groups) if not mask >> bit & 1] for mask in range(2 ** len(groups))]
        return np.array([self.num_free(self.space.full_support.difference(out)) for out in absent])

    def replace_full_fit_if_better(self, restricted: Fit) -> None:
        """Take over a restricted fit that beats the full one (by rounding, if at all), so that λ is never negative."""
        if restricted.log_likelihood > self.full.log_likelihood:
            self.full = replace(
                self.full,
                theta=restricted.theta,
                log_likelihood=restricted.log_likelihood,
                converged=restricted.converged,
            )


class LinearLikelihood(Likelihood):
    """Of a linear policy: what its states can tell is a matter of the ranks of its columns."""

    space: ExponentialFamily
    design: DesignMatrix

    def as_linear(self, what: str) -> "LinearLikelihood":
        """The same likelihood: it is that of a linear policy."""
        return self

    def action_scale(self) -> np.ndarray:
        """The unit in which each row's weights are measured [k]: the noise of a continuous action, 1 for labels."""
        return np.ones(len(self.space.row_names))

    def standardised_weights(self, theta: np.ndarray) -> np.ndarray:
        """The weights of standardised features in units of the noise of their action [d]."""
        weights = self.design.to_standardised(self.space.weights(theta))
        return np.asarray(weights / self.action_scale()[:, None]).ravel()

    def refined_estimate(self) -> tuple[np.ndarray, np.ndarray]:
        """θ̂ to all digits [d], and n·F̂ there in the coordinates of the standardised design [d, d]."""
        return self.full.theta, self.total_weight * self.standardised_information()

    @cached_property
    def prior_precision(self) -> np.ndarray:
        """The precision of a prior of unit spread on standardised weights [d, d], whichever label is the reference.

        Of one column it is 1; of a group of columns, as the levels of a category, their correlations, so that the prior is
        about what the group adds to η, and which level is left out does not matter.
        """
        precision, q = np.eye(self.space.num_parameters), len(self.design.mean) + self.space.intercept
        labels = self.label_precision()
        for group in self.space.groups:
            inside = [i for i in group.indices if not self._is_constant[i]]
            columns = sorted({i % q - self.space.intercept for i in inside})
            if not columns or len(inside) != len(labels) * len(columns):  # single parameters: no whole columns
                continue
            together = self.design.correlation[np.ix_(columns, columns)]
            if np.linalg.eigvalsh(together)[0] < 1e-6:
                continue
            place = np.array([[a * q + c + self.space.intercept for c in columns] for a in range(len(labels))]).ravel()
            precision[np.ix_(place, place)] = np.kron(labels, together)
        return precision

    def label_precision(self) -> np.ndarray:
        """The same for the rows of weights of one column [k, k]."""
        return np.eye(len(self.space.row_names))

    @cached_property
    def _is_constant(self) -> np.ndarray:
        """Which parameters are constants [d]."""
        columns = np.arange(len(self.space.column_names)) < int(self.space.intercept)
        return np.tile(columns, len(self.space.row_names))

    @abstractmethod
    def standardised_information(self) -> np.ndarray:
        """F̂ at the full fit, a mean over pairs, in the coordinates of the standardised design [d, d]."""

    def num_free(self, support: Support) -> int:
        """Σ over actions of the rank of their free columns."""
        return self.design.num_free(self.space.free_mask(support))

    def num_free_of_all(self, groups: Sequence[int]) -> np.ndarray:
        """`num_free` of every support of some groups."""
        return self.design.num_free_of_all([self.space.groups[g].indices for g in groups])

    @property
    def identifiable(self) -> bool:
        """Whether the second moment matrix of the features is non-singular; all actions are played."""
        return self.design.full_rank
