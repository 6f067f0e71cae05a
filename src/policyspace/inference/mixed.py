"""The random-effects test: coefficients that vary between subjects."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import chdtrc, fdtrc, ndtr

from policyspace.answer import MOST_COUNTED, AssumptionCheck, ClusterSummary, Note, Reason, SubjectEffects
from policyspace.data.sample import Sample
from policyspace.errors import InputError
from policyspace.families.base import INTERCEPT, PolicySpace, Support
from policyspace.families.likelihood import Likelihood
from policyspace.inference.base import SupportTest, TestResult
from policyspace.inference.coefficients import parameter_names

FEWEST_SUBJECTS = 6
"""Below so many nothing is guaranteed."""

ROUNDS, TOLERANCE = 100, 1e-4
"""Iterations of the fit, and the change of standardised weights at which they end."""

EM_ROUNDS = 3
"""Iterations in which variances are found by EM; then by MacKay's faster update."""

FARTHEST = 2.0
"""How far a standardised weight of a subject moves in one iteration at most: logits saturate."""

SMALLEST_VARIANCE, LARGEST_VARIANCE = 1e-6, 25.0
"""Of standardised weights between subjects."""

NEIGHBOURS, ALIKE = 10, 1.3
"""Following rows with which each is compared, and the standard errors beyond which neighbours count as alike."""

LEAST_SHARE = 0.05
"""The effective number of subjects behind a variance is at least this share of them."""

RIDGE = 1e-6
"""Of the information on average weights: those about which no subject says anything have a finite estimate."""

OWN = 1e-9
"""The share of its information that a weight has beyond the constants of a subject, where it varies within it."""


@final
@dataclass(frozen=True)
class MixedFit:
    """Average weights γ, the weights γ + bᵢ of each subject, and what each subject says about γ; all standardised.

    In the words of a linear mixed model: θᵢ = γ + bᵢ with bᵢ ~ N(0, Ω), Ω diagonal. `own` [S, d] is eᵢ, what the subject's
    rows say at γ of the direction in which γ should move; its variance is `information` [S, d, d], Aᵢ, if the model holds.
    """

    average: np.ndarray
    """γ [d]."""
    deviations: np.ndarray
    """bᵢ [S, d]."""
    variance: np.ndarray
    """Ω [d]; 0 where all subjects share a weight."""
    covariance: np.ndarray
    """C, of γ [d, d]."""
    conditional: np.ndarray
    """The variance of γ + bᵢ given the rows [S, d]."""
    own: np.ndarray
    information: np.ndarray
    converged: bool


@final
class SubjectScores:
    """The rows of each subject, and their score and information about standardised weights ϑ with θ = M·ϑ."""

    def __init__(self, space: PolicySpace, data: Sample) -> None:
        if data.subjects is None:
            raise InputError("the test 'mixed' needs subjects: name their column (--subjects), or use another test.")
        self.space = space.as_linear("random effects")
        self.names, owner = data.subject_names, data.subjects
        order, ends = np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner))[:-1]
        weights = np.ones(data.num_rows) if data.weights is None else data.weights
        parts = (np.split(values[order], ends) for values in (data.features, data.actions, weights))
        self.rows = list(zip(*parts, strict=True))
        self.num_rows = float(weights.sum())
        self.to_raw = self.space.standardisation(data)
        self.noise = space.variance(np.zeros(space.num_parameters), data.features[:1]) is None
        """Is the covariance of the noise estimated too?"""
        if self.noise:
            self.space = self.space.with_covariance(np.cov(data.actions.T, aweights=weights, ddof=0).reshape(
                data.actions.shape[1], -1
            ))  # fmt: skip

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The score [S, d] and the information [S, d, d] of each subject at its own weights [S, d]."""
        scores, informations = np.empty(theta.shape), np.empty((*theta.shape, theta.shape[1]))
        for i, (features, actions, weights) in enumerate(self.rows):
            raw = self.to_raw @ theta[i]
            scores[i] = weights @ self.space.score(raw, features, actions)
            informations[i] = weights.sum() * self.space.fisher(raw, features, weights)
        return scores @ self.to_raw, self.to_raw.T @ informations @ self.to_raw

    def renew_noise(self, theta: np.ndarray, num_free: float) -> None:
        """Estimate the covariance of the noise from the residuals, which have lost so many degrees of freedom."""
        squares = 0.0
        for raw, (features, actions, weights) in zip(theta @ self.to_raw.T, self.rows, strict=True):
            left = actions - self.space.mean(raw, features)
            squares = squares + (left * weights[:, None]).T @ left
        k = len(np.atleast_2d(squares))
        rest = max(self.num_rows - num_free / k, 0.05 * self.num_rows)
        found = squares / rest
        self.space = self.space.with_covariance(found + (1e-9 * np.trace(found) + 1e-300) * np.eye(k))


def fit_mixed(scores: SubjectScores, random: np.ndarray, free: np.ndarray, fixed: np.ndarray) -> MixedFit:
    """The approximate maximum of the marginal likelihood over the free weights [d]; `random` ones differ by subject.

    No information of a single subject is inverted, so that a subject whose actions are separated does no harm.
    """
    size, d = len(scores), len(free)
    gamma, b = fixed.copy(), np.zeros((size, d))
    omega = np.where(random & free, 0.25, 0.0)
    unit, keep = np.eye(d), np.flatnonzero(free)
    converged = False
    for step in range(ROUNDS):
        theta = gamma + b
        g, h = scores.at(theta)
        v = shrunken(h, omega)
        a = h - h @ v @ h
        target = np.einsum("sij,sj->si", h, theta - fixed) + g
        pull = target - np.einsum("sij,sj->si", h @ v, target)
        c = np.zeros((d, d))
        c[np.ix_(keep, keep)] = np.linalg.inv(
            a.sum(axis=0)[np.ix_(keep, keep)] + RIDGE * unit[: len(keep), : len(keep)]
        )
        new = fixed + c @ pull.sum(axis=0)
        deviation = np.einsum("sij,sj->si", v, target - np.einsum("sij,j->si", h, new - fixed))
        uncertain = v + v @ h @ c @ h @ v
        moved = np.clip(new + deviation - theta, -FARTHEST, FARTHEST)
        limited = bool((np.abs(new + deviation - theta) > FARTHEST).any())
        gamma, b = (new, deviation) if not limited else (new, theta + moved - new)
        spread, known = (deviation**2).sum(axis=0), np.einsum("sjj->j", uncertain)
        before = omega
        if step < EM_ROUNDS:
            omega = (spread + known) / size
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                omega = spread / np.maximum(size - np.where(omega > 0, known / omega, 0.0), LEAST_SHARE * size)
        omega = np.where(random & free, np.clip(omega, SMALLEST_VARIANCE, LARGEST_VARIANCE), 0.0)
        if scores.noise:
            scores.renew_noise(gamma + b, float(np.einsum("sij,sji->", v, h)) + len(keep))
        change = np.abs(moved).max(initial=0.0) + np.abs(omega - before).max(initial=0.0)
        if step > EM_ROUNDS and change < TOLERANCE:
            converged = True
            break
    own = pull - np.einsum("sij,j->si", a, new - fixed)
    shared = v @ h @ c
    conditional = np.diag(c) + np.einsum("sjj->sj", uncertain) - 2 * np.einsum("sjj->sj", shared)
    return MixedFit(gamma, b, omega, c, conditional, own, a, converged)


def shrunken(information: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Vᵢ = (Hᵢ + Ω⁻¹)⁻¹ [S, d, d], also where entries of Ω are 0."""
    root = np.sqrt(omega)
    inner = np.eye(len(omega)) + root[:, None] * information * root
    return np.asarray(root[:, None] * np.linalg.inv(inner) * root)


def within_subjects(information: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Which weights [d] some subject's rows tell from its constants, by the information [S, d, d] of each subject."""
    d = information.shape[1]
    found = np.zeros(d, dtype=bool)
    rest = np.setdiff1d(np.arange(d), constants)
    for h in information:
        scale = np.sqrt(np.maximum(np.diag(h), np.finfo(float).tiny))
        h = h / np.outer(scale, scale)
        inverse = np.linalg.pinv(h[np.ix_(constants, constants)], rcond=OWN, hermitian=True)
        across = h[np.ix_(rest, constants)]
        found[rest] |= np.diag(h)[rest] - np.einsum("ij,jk,ik->i", across, inverse, across) > OWN
    found[constants] = True
    return found


# -- The test of average weights, and how many subjects use a group at least.


@final
class RandomEffects(SupportTest):
    """F_J = γ_Jᵀ C_JJ⁻¹ γ_J / (k·max(1, q)) against F_{k, ν}, for the weights γ of subjects like these.

    q compares what subjects say about γ_J with what the model expects of them (Hartung and Knapp's factor, which never
    makes a test more liberal); ν is the number of subjects less that of the constants they share the direction with.
    """

    name, in_words = "mixed", "random-effects F test"
    statistic_name = "F"
    monotone = False  # larger hypotheses have more degrees of freedom
    assumes = ("form", "enough subjects", "converged")

    def __init__(self, likelihood: Likelihood, data: Sample) -> None:
        self.space, self.likelihood = likelihood.space, likelihood
        self._data = data
        self._scores = SubjectScores(likelihood.space, data)
        if len(self._scores) < 2:
            raise InputError("the test 'mixed' needs several subjects, found one: leave the subjects out.")
        d = likelihood.space.num_parameters
        self._fixed = np.linalg.solve(self._scores.to_raw, likelihood.space.fixed)
        _, information = self._scores.at(np.tile(self._fixed, (len(self._scores), 1)))
        self.varying = within_subjects(information, self._constants)
        """Which weights [d] are of columns that vary within subjects."""
        lagged = set(data.origin.lagged_actions)
        habit = [i for group in self.space.groups if group.name in lagged for i in group.indices]
        alike = [*habit, *range(d - len(self.space.nuisance_names), d)]  # thresholds and dispersions do not differ
        self._random = self.varying & ~np.isin(np.arange(d), alike)

    @property
    def _constants(self) -> np.ndarray:
        inside = [i for group in self.space.groups if group.name == INTERCEPT for i in group.indices]
        return np.array(inside, dtype=np.intp)

    @property
    def num_subjects(self) -> int:
        """S."""
        return len(self._scores)

    @cached_property
    def fit(self) -> MixedFit:
        """The fit of all weights."""
        return fit_mixed(self._scores, self._random, np.ones(len(self._fixed), dtype=bool), self._fixed)

    def test_many(self, supports: Sequence[Support]) -> list[TestResult]:
        """Each from the one fit."""
        return [self._test(support) for support in supports]

    def _test(self, support: Support) -> TestResult:
        inside = np.flatnonzero(~self.space.free_mask(support))
        statistic, free, p_value = self._law_of(inside)
        return TestResult(support, statistic, len(inside), p_value if free > 0 else 1.0)

    def _law_of(self, inside: np.ndarray) -> tuple[float, int, float]:
        """F, its denominator's degrees of freedom and the p-value of γ_J being as it is when J is not used."""
        fit, k = self.fit, len(inside)
        steady = ~self.varying
        steady[self._constants] = True
        free = len(self._scores) - (1 if self.varying[inside].all() else int(steady.sum() / self._rows))
        if not k or free <= k:
            return 0.0, 0, 1.0
        # Transformed weights M·ϑ: a column that is centred moves constants, not the weights that are tested.
        to_raw = self._scores.to_raw[inside]
        away = to_raw @ fit.average - self.space.fixed[inside]
        covariance = to_raw @ fit.covariance @ to_raw.T
        precision = np.linalg.pinv(covariance, hermitian=True)
        said = fit.own @ fit.covariance.T @ to_raw.T  # [S, k]: how each subject moves γ_J
        among = to_raw @ (fit.covariance @ fit.information @ fit.covariance) @ to_raw.T
        spread = float(np.einsum("si,sij,sj->", said, np.linalg.pinv(among, hermitian=True), said))
        factor = max(1.0, spread / (k * free))
        statistic = float(away @ precision @ away) / (k * factor)
        return statistic, free, float(fdtrc(k, free, statistic))

    @property
    def _rows(self) -> int:
        """How many constants a subject has: one a row of weights."""
        return max(len(self._constants), 1)

    def at_least(self, support: Support, significance: float) -> int:
        """By how many of these subjects what a support leaves out is used at least, wrong with at most this chance.

        Each subject's score at the fit without it has a p-value; the bound is the largest k such that, for every k′ ≤ k,
        Fisher's combination of the S − k′ + 1 largest p-values is rejected (partial conjunction). It takes rows of one
        subject as independent, given their states.
        """
        free = self.space.free_mask(support)
        inside = ~free
        fit = fit_mixed(self._scores, self._random, free, self._fixed)
        g, h = self._scores.at(fit.average + fit.deviations)
        v = shrunken(h, fit.variance)
        prior = np.where(fit.variance > 0, fit.deviations / np.where(fit.variance > 0, fit.variance, 1.0), 0.0)
        across = h[:, inside] @ v  # [S, k, d]
        said = g[:, inside] - np.einsum("skd,sd->sk", across, np.where(free, g - prior, 0.0))
        information = h[:, inside][:, :, inside] - across @ h[:, :, inside]
        squares = np.einsum("si,sij,sj->s", said, np.linalg.pinv(information, hermitian=True), said)
        p_values = np.sort(chdtrc(int(inside.sum()), squares))[::-1]
        combined = -2 * np.cumsum(np.log(np.maximum(p_values, 1e-300)))
        found = chdtrc(2.0 * np.arange(1, len(p_values) + 1), combined)[::-1] <= significance
        return int(np.argmin(found)) if not found.all() else len(found)

    def effects(self, significance: float) -> SubjectEffects:
        """The weights of all subjects in the units of the features, and by how many each group is used at least."""
        fit, to_raw = self.fit, self._scores.to_raw
        average, spread = to_raw @ fit.average, np.sqrt(fit.variance) * np.diag(to_raw)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(average == 0, 0.5, ndtr(np.abs(average) / np.abs(spread)))
        own = (fit.average + fit.deviations) @ to_raw.T
        margins = np.sqrt(np.maximum(fit.conditional, 0.0)) * np.abs(np.diag(to_raw))
        kept = [i for group in self.space.groups if group.name != INTERCEPT for i in group.indices]
        owner = {i: group.name for group in self.space.groups for i in group.indices}
        names, level = parameter_names(self._scores.space), significance / max(len(self.space.tested), 1)
        bounded = [g for g in self.space.tested if self.num_subjects <= MOST_COUNTED and not self._dependent(g)]
        return SubjectEffects(
            names=self._scores.names,
            parameters=tuple(names[i] for i in kept),
            groups=tuple(owner[i] for i in kept),
            average=tuple(average[kept].tolist()),
            standard_error=tuple(np.sqrt(np.diag(to_raw @ fit.covariance @ to_raw.T))[kept].tolist()),
            spread=tuple(np.abs(spread)[kept].tolist()),
            share_of_sign=tuple(share[kept].tolist()),
            weights=tuple(map(tuple, own[:, kept].tolist())),
            margins=tuple(map(tuple, margins[:, kept].tolist())),
            at_least={self.space.groups[g].name: self.at_least(self.space.support_without(g), level) for g in bounded},
            significance=significance,
        )

    def _dependent(self, group: int) -> bool:
        """Whether what neighbouring rows of a subject say about a group correlates, so that no number of subjects is told.

        Of a weight that does not vary within subjects no subject says anything alone.
        """
        own_indices = list(self.space.groups[group].indices)
        if not self.varying[own_indices].all():
            return True
        indices = [*own_indices, *self._constants]  # of the constants: what is left of the actions themselves
        products, squares, theta = 0.0, 0.0, self.fit.average + self.fit.deviations
        for own, (features, actions, weights) in zip(theta, self._scores.rows, strict=True):
            scores = (
                self._scores.space.score(self._scores.to_raw @ own, features, actions) @ self._scores.to_raw[:, indices]
            )
            scores = weights[:, None] * (scores - scores.mean(axis=0))
            sums = np.vstack([np.zeros(scores.shape[1]), np.cumsum(scores, axis=0)])
            ends = np.minimum(np.arange(len(scores)) + 1 + NEIGHBOURS, len(scores))
            # Scores about their own mean are alike by −1/(T − 1) of their variance: that is no dependence.
            pairs = (ends - np.arange(1, len(scores) + 1))[:, None] * (scores**2).mean(axis=0) / max(len(scores) - 1, 1)
            product = scores * (sums[ends] - sums[1:]) + pairs
            products, squares = products + product.sum(axis=0), squares + (product**2).sum(axis=0)
        return bool((products > ALIKE * np.sqrt(squares)).any())

    @property
    def clusters(self) -> ClusterSummary:
        """Subjects."""
        return ClusterSummary("subjects", self.num_subjects)

    def conditions(self) -> tuple[Note, ...]:
        """What remains to be assumed."""
        weights = Note(Reason.RANDOM_WEIGHTS, {"family": self.space.in_words})
        return weights, Note(Reason.INDEPENDENT_CLUSTERS, {"clusters": "subjects"})

    def own_assumptions(self) -> list[AssumptionCheck]:
        """That there are enough subjects, and that the fit has ended."""
        size = self.num_subjects
        enough = size >= FEWEST_SUBJECTS
        words = f"{size} subjects are taken as independent of each other"
        if not enough:
            words = f"{size} subjects are too few: their spread is known from {FEWEST_SUBJECTS} on"
        ended = self.fit.converged
        fit = "the fit of the random effects " + ("converged" if ended else "did not converge")
        return [AssumptionCheck.of("enough subjects", enough, words), AssumptionCheck.of("converged", ended, fit)]

    def note(self) -> str:
        """What it is."""
        return f"random effects of {self.num_subjects} subjects, against the F distribution"
