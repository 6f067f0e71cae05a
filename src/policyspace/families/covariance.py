"""Fisher information, robust (sandwich) covariance, and small-sample corrections CR2 and HTZ."""

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from scipy.special import fdtrc

from policyspace.data.sample import Sample
from policyspace.errors import InputError
from policyspace.families.base import INTERCEPT, ExponentialFamily, Group
from policyspace.families.design import DesignMatrix
from policyspace.families.likelihood import Likelihood, LinearLikelihood, NullDistribution

# -- What these states can tell: smallest eigenvalue, collinear groups, and the smallest effect that would show.


@dataclass(frozen=True)
class Collinearity:
    """Groups of which each is, on these states, a combination of the others."""

    groups: tuple[str, ...]
    exchangeable: bool  # any one of them does for all

    def __str__(self) -> str:
        if INTERCEPT in self.groups and len(self.groups) == 2:
            name = next(group for group in self.groups if group != INTERCEPT)
            return f"{name} is constant in this data: it cannot be told apart from the intercept, and says nothing."
        if len(self.groups) == 1:
            return f"{self.groups[0]} has a constant or redundant column, which is not counted."
        names = f"{', '.join(self.groups[:-1])} and {self.groups[-1]}"
        if self.exchangeable:
            none = "neither" if len(self.groups) == 2 else "none of them"
            return f"{names} cannot be told apart in this data: Rule 2 will select {none}, use Rule 1 (combinatorial)."
        return (
            f"{names} are linearly dependent in this data, each a combination of the others: Rule 2 will select none "
            "of them, use Rule 1 (combinatorial)."
        )


def smallest_eigenvalue(information: np.ndarray) -> float:
    """λ̂_min(F̂), zero where the policy space is not identifiable on these states (Lemma 4.1)."""
    return max(float(np.linalg.eigvalsh(information)[0]), 0.0)


def collinear_groups(likelihood: Likelihood) -> list[Collinearity]:
    """Groups of a linear policy that cannot be told apart; none are looked for in other spaces."""
    return (
        [] if likelihood.design is None else dependences(likelihood.space.as_linear("dependences"), likelihood.design)
    )


def dependences(space: ExponentialFamily, design: DesignMatrix) -> list[Collinearity]:
    """The sets of groups that these states cannot tell apart, from the null space of the feature matrix."""
    found = []
    offset, q = int(space.intercept), len(space.column_names)
    owner = {i % q - offset: group for group in space.groups for i in group.indices}
    for column in np.flatnonzero(design.constant).tolist():
        alone = len({i % q for i in owner[column].indices}) == 1
        name = space.feature_names[column] if alone and "[" in owner[column].name else owner[column].name
        names = (INTERCEPT, name) if alone and space.intercept else (name,)
        found.append(Collinearity(names, exchangeable=True))
    null = design.null_space()
    linked = np.abs(null @ null.T) > 1e-6
    # A constant column is a null direction of its own, however the basis mixes it with others.
    linked[design.constant] = linked[:, design.constant] = False
    seen: set[int] = set()
    for start in np.flatnonzero(linked.any(axis=1) & ~design.constant).tolist():
        if start in seen:
            continue
        component, frontier = {start}, [start]
        while frontier:
            new = set(np.flatnonzero(linked[frontier.pop()]).tolist()) - component
            component |= new
            frontier.extend(new)
        seen |= component
        found.append(_dependence(space, design, component, offset, q))
    return found


def _dependence(
    space: ExponentialFamily, design: DesignMatrix, component: set[int], offset: int, q: int
) -> Collinearity:
    members: dict[str, set[int]] = {}
    rows: dict[str, set[int]] = {}
    whole = True
    for group in space.groups:
        columns = {i % q - offset for i in group.indices}
        if inside := columns & component:
            # Single parameters of one feature share its fate: name the feature.
            name = space.feature_names[min(inside)] if len(inside) == 1 and "[" in group.name else group.name
            members.setdefault(name, set()).update(inside)
            rows.setdefault(name, set()).update(i // q for i in group.indices)
            whole = whole and inside == columns
    ranks = {design.rank(frozenset(columns)) for columns in members.values()}
    # A group that reaches further, by other columns or other actions, is more than a substitute.
    alike = whole and all(of == set.union(*rows.values()) for of in rows.values())
    return Collinearity(tuple(members), exchangeable=alike and ranks == {design.rank(frozenset(component))})


def detectable_effect(
    likelihood: Likelihood,
    inverse: tuple[np.ndarray, np.ndarray],
    group: Group,
    significance: float,
    power: float = 0.8,
) -> float:
    """The smallest ‖θ_g‖ that the test of a group would have shown with this power, whatever its direction.

    n·θ_gᵀ([F⁻¹]_gg)⁻¹θ_g must reach the non-centrality at which P(λ > c) is `power`; infinite where F is singular.
    `inverse` is what `inverse_of` gives.
    """
    indices = list(group.indices)
    needed = noncentrality_for_power(likelihood.law, significance, len(indices), power)
    return float(np.sqrt(needed * worst_variance(*inverse, group) / likelihood.total_weight))


def inverse_information(information: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """F⁺ [d, d], and the coordinates [d] that take part in a direction which changes nothing on these states."""
    scale = np.sqrt(np.diag(information))
    scale[scale == 0] = 1.0
    eigenvalues, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    real = eigenvalues > 1e-11
    hidden = np.abs(vectors[:, ~real]).max(axis=1, initial=0.0) > 1e-5
    return (vectors[:, real] / eigenvalues[real]) @ vectors[:, real].T / np.outer(scale, scale), hidden


def inverse_of(likelihood: Likelihood) -> tuple[np.ndarray, np.ndarray]:
    """`inverse_information` of a likelihood; by standardised features, for a large mean is no collinearity.

    A feature like a year or a time stamp is nearly a multiple of the constant: its raw F is singular to all digits.
    """
    if likelihood.design is None:
        return inverse_information(likelihood.information())
    return raw_inverse(likelihood.as_linear("standardised features are").standardised_information(), likelihood.design)


def raw_inverse(standardised: np.ndarray, design: DesignMatrix) -> tuple[np.ndarray, np.ndarray]:
    """`inverse_information` in raw coordinates, from F̂ in those of the standardised design."""
    inverse, hidden = inverse_information(standardised)
    back = to_raw_coordinates(design, len(inverse))
    # An intercept is hidden with what it can take over from.
    return back.T @ inverse @ back, (np.abs(back).T @ hidden) > 0


def to_raw_coordinates(design: DesignMatrix, size: int) -> np.ndarray:
    """J [d, d] with θ_raw = Jᵀ θ_standardised."""
    return design.to_raw(np.eye(size).reshape(size, design.num_rows, -1)).reshape(size, size)


def worst_variance(inverse: np.ndarray, hidden: np.ndarray, group: Group) -> float:
    """The largest eigenvalue of [F⁻¹]_gg: the variance, times n, of the direction of a group that shows least."""
    indices = list(group.indices)
    return np.inf if hidden[indices].any() else float(np.linalg.eigvalsh(inverse[np.ix_(indices, indices)])[-1])


@lru_cache(maxsize=256)  # every unit of a report asks the same
def noncentrality_for_power(law: NullDistribution, significance: float, degrees_of_freedom: int, power: float) -> float:
    """The non-centrality at which the test of that level has that power."""
    low, high = 0.0, 16.0
    while law.power(high, significance, degrees_of_freedom) < power and high < 1e9:
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        if law.power(middle, significance, degrees_of_freedom) < power:
            low = middle
        else:
            high = middle
    return high


# -- Few clusters: a covariance by cluster without its bias (CR2), and the degrees of freedom of tests by it (HTZ).

OWN = 1e-9
"""What may be left of a direction that only one cluster knows: nothing but rounding."""


@final
class SmallSampleSandwich:
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


# -- The covariance of a linear fit that needs no independent rows: information, scores by cluster, information.

MOST = 1000
"""Clusters up to which the covariance and its degrees of freedom are those of few clusters."""


def clusters_of(data: Sample) -> np.ndarray:
    """The cluster of each row [n]: its subject, or the row itself."""
    return np.arange(data.num_rows) if data.subjects is None else np.unique(data.subjects, return_inverse=True)[1]


def num_clusters(data: Sample) -> int:
    """How many clusters there are; each of the pairs that a row counts is one, where there are no subjects."""
    return int(data.total_weight) if _counts_are_clusters(data) else int(clusters_of(data).max()) + 1


def clustered_covariance(likelihood: Likelihood, data: Sample) -> np.ndarray:
    """V = B (Σ_c g_c g_cᵀ) B · G/(G−1) of θ̂ [d, d], g_c the score of cluster c.

    B is the inverse of the information. Of a Gaussian policy it is that of least squares, times (n−1)/(n−q), as R's `vcovCL`
    has it.
    """
    linear = _identifiable(likelihood)
    space, design = linear.space, linear.design
    theta, information = linear.refined_estimate()
    scores = _scores(linear, data, theta)
    weights = _weights(data)
    size = num_clusters(data)
    if size < 2:
        raise InputError("a covariance by cluster needs at least two subjects, found one: leave the subjects out.")
    if _counts_are_clusters(data):
        meat = (scores / np.maximum(weights, np.finfo(float).tiny)[:, None]).T @ scores
    else:
        sums = np.zeros((size, scores.shape[1]))
        np.add.at(sums, clusters_of(data), scores)
        meat = sums.T @ sums
    meat *= size / (size - 1)
    if not space.quadratic:
        bread = np.linalg.inv(information)
    else:
        rows = design.standardise(data.features)
        bread = np.kron(np.eye(len(space.row_names)), np.linalg.inv((rows * weights[:, None]).T @ rows))
        meat *= (likelihood.total_weight - 1) / (likelihood.total_weight - rows.shape[1])
    back = to_raw_coordinates(design, len(bread))
    return back.T @ bread @ meat @ bread @ back


def cr2(likelihood: Likelihood, data: Sample) -> SmallSampleSandwich | None:
    """Tests that are right with few clusters, too; None where there are many."""
    linear, size = _identifiable(likelihood), num_clusters(data)
    if size < 2:
        raise InputError("a covariance by cluster needs at least two subjects, found one: leave the subjects out.")
    if size > MOST:
        return None
    data = data.expand_weights("a covariance by few clusters") if _counts_are_clusters(data) else data
    codes = clusters_of(data)
    space, design, theta = linear.space, linear.design, linear.refined_estimate()[0]
    order = np.argsort(codes, kind="stable")
    data, codes = data.take(order), codes[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    covariance = space.noise_covariance(theta, data)
    metric = None if covariance is None else np.linalg.cholesky(np.linalg.inv(covariance))
    scores = _scores(linear, data, theta, metric)
    information = np.zeros((size, scores.shape[1], scores.shape[1]))
    for root in space.score_roots(theta, data.features, covariance):
        rows = design.scores(data.features, root * np.sqrt(_weights(data))[:, None])
        for own, part in zip(information, np.split(rows, starts[1:]), strict=True):
            own += part.T @ part
    sums = np.add.reduceat(scores, starts)
    return SmallSampleSandwich(sums, information, to_raw_coordinates(design, scores.shape[1]))


def _identifiable(likelihood: Likelihood) -> LinearLikelihood:
    linear = likelihood.as_linear("a covariance by cluster is")
    if not linear.identifiable:
        raise InputError(
            "a covariance by cluster needs features that are not collinear: drop a redundant one, or use the test 'lean'."
        )
    return linear


def _scores(linear: LinearLikelihood, data: Sample, theta: np.ndarray, metric: np.ndarray | None = None) -> np.ndarray:
    """The weighted scores of all rows [n, d].

    Amounts count in their own units, or with a `metric` LLᵀ = Σ⁻¹ as the likelihood has it.
    """
    residuals = linear.space.score_residuals(theta, data.features, data.action_type, data.actions)
    left = residuals * _weights(data)[:, None]
    return linear.design.scores(data.features, left if metric is None else left @ metric @ metric.T)


def _weights(data: Sample) -> np.ndarray:
    return np.ones(data.num_rows) if data.weights is None else data.weights


def _counts_are_clusters(data: Sample) -> bool:
    """Whether each of the pairs that a row counts is a cluster."""
    return data.subjects is None and not data.sampling_weights and data.weights is not None
