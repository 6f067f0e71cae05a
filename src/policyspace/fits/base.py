"""Maximum likelihood inside Θ_I: what a fit is, and what every likelihood can do."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from policyspace.fits.design import Design
from policyspace.fits.law import ReferenceLaw
from policyspace.policies.base import ExponentialFamily, Policy, PolicySpace
from policyspace.policies.groups import Support
from policyspace.progress import counted


@dataclass(frozen=True)
class Fit:
    """θ̂_I, the maximum-likelihood parameter inside Θ_I; `-log_likelihood` is the paper's ℓ̂(θ̂_I), a sum."""

    theta: np.ndarray
    support: Support
    log_likelihood: float
    gradient_norm: float
    converged: bool
    separated: bool
    num_free: int  # the rank of the Fisher information on the free coordinates
    law: ReferenceLaw  # what λ against a larger fit is measured with
    restart_noise: float = 0.0  # by how much λ moves with other random starts, where there are many peaks


class Likelihood(ABC):
    """The likelihood of one data set in one policy space: fits it inside any Θ_I and knows the law of λ_I."""

    space: PolicySpace
    num_pairs: int
    total_weight: float  # the number of pairs, or what their weights add up to
    law: ReferenceLaw
    full: Fit
    diverging: np.ndarray  # [d], the coordinates whose maximum-likelihood value is infinite (separation)
    design: Design | None = None  # of a linear policy
    enumerates = False  # whether λ of all supports comes at once
    penalised = False  # whether Firth's penalty is part of it

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

    def bracket(self, supports: Sequence[Support], criticals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of λ_I that say on which side of its critical value it lies; exact, where nothing less is cheaper."""
        fits = self.fit_many(supports)
        exact = np.array([2 * (self.full.log_likelihood - fit.log_likelihood) for fit in fits])
        return exact, exact

    def screen(self, groups: Sequence[int]) -> np.ndarray | None:
        """Approximate λ_I of all supports [2^D], where that is cheap."""
        return None

    def statistics_of_all(self, groups: list[int]) -> np.ndarray:
        """λ_I of all supports [2^D]; only where the likelihood `enumerates`."""
        raise TypeError(f"{type(self).__name__} cannot give λ of all supports at once")

    def penalised_policy(self, support: Support | None = None) -> Policy:
        """A policy inside Θ_I, by default in all of Θ, that is finite and reproducible: the most likely one, or near it."""
        return Policy(self.space, (self.full if support is None else self.fit(support)).theta)

    def bets(self, before: Sequence[Policy] = ()) -> list[Policy]:
        """Policies for a bettor to divide its wealth over, learned from this data in the whole space.

        Any number of them is valid: the mean of e-values is an e-value. `before` are those of a smaller data set.
        """
        return [self.penalised_policy()]

    def first_climb(self, support: Support, start: np.ndarray) -> float:
        """log L at some θ ∈ Θ_I near the most likely one, cheaply: the fit itself, where it is unique."""
        return self.fit(support).log_likelihood

    def short_statistic(self, actions: np.ndarray, policy: Policy, support: Support) -> float | None:
        """λ_I of any actions on these states by one short protocol; None where fits are unique and need none."""
        return None

    def finite_theta(self) -> np.ndarray:
        """An estimate of θ that is finite on every data set: the full fit, where that always is."""
        return self.full.theta

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
        return self.num_free(self.space.everything) - self.num_free(support)

    def num_free_of_all(self, groups: Sequence[int]) -> np.ndarray:
        """`num_free` of every support [2^D] of some groups, all others being in; bit g ⇔ groups[g] is in."""
        absent = [[g for bit, g in enumerate(groups) if not mask >> bit & 1] for mask in range(2 ** len(groups))]
        return np.array([self.num_free(self.space.everything.difference(out)) for out in absent])

    def adopt(self, restricted: Fit) -> None:
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
    design: Design

    def action_scale(self) -> np.ndarray:
        """The unit in which each row's weights are measured [k]: the noise of a continuous action, 1 for labels."""
        return np.ones(len(self.space.row_names))

    def sharpened(self) -> tuple[np.ndarray, np.ndarray]:
        """θ̂ to all digits [d], and n·F̂ there in the coordinates of the standardised design [d, d]."""
        return self.full.theta, self.total_weight * self.standardised_information()

    @abstractmethod
    def standardised_information(self) -> np.ndarray:
        """F̂ at the full fit, a mean over pairs, in the coordinates of the standardised design [d, d]."""

    def num_free(self, support: Support) -> int:
        """Σ over actions of the rank of their free columns."""
        return self.design.num_free(self.space.free(support))

    def num_free_of_all(self, groups: Sequence[int]) -> np.ndarray:
        """`num_free` of every support of some groups."""
        return self.design.num_free_of_all([self.space.groups[g].indices for g in groups])

    @property
    def identifiable(self) -> bool:
        """Whether the second moment matrix of the features is non-singular; all actions are played."""
        return self.design.full_rank
