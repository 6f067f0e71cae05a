"""Linear Gaussian policy and its likelihood."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, final

import numpy as np

from policyspace.data.rows import Moments, RowBlock, Rows, moments_of
from policyspace.data.sample import Sample
from policyspace.data.validation import translate_constructor
from policyspace.errors import InputError
from policyspace.families.base import Array, ExponentialFamily, FitMeasures, Groups, Key, Policy, Support
from policyspace.families.design import (
    DesignMatrix,
    Standardisation,
    residual_blocks,
    residuals_of_all,
    triangular_factor,
)
from policyspace.families.likelihood import ChiSquare, Fit, Likelihood, LinearLikelihood, NullDistribution, WilksLambda
from policyspace.safe_io import JSON

# -- The Gaussian linear policy a ~ N(weights·φ(s), Σ) (Table 1, first row).

EXTREME = 1e-100
"""Variances beyond this, or its inverse, would overflow on their way to a likelihood."""


@final
@translate_constructor
class GaussianLinear(ExponentialFamily):
    """Continuous actions of dimension k with covariance Σ: known (scalar, diagonal or full) or estimated.

    A(η) = ½ ηᵀΣ⁻¹η, with u(a) = Σ⁻¹a; the A of Appendix A.1 lacks the ½.

    Parameters
    ----------
    features : sequence of str, optional
        Names of the features; without them the space takes all names from the data that it is bound to.
    actions : sequence of str, optional
        Names of the components of an action; by default one, named "action".
    covariance : float, array_like of shape (k,) or (k, k), or "estimate", default "estimate"
        Σ, one variance for all actions or one each.
    groups : {"feature", "parameter", "action"} or mapping of names to features, default "feature"
        What is tested together.
    assume : sequence of str
        Groups that are taken to be used, and not tested.
    fixed : float or mapping of names to floats, default 0
        What a weight is worth that the agent does not use.
    intercept : bool, default True
        Whether there is a constant.
    blocks : mapping of names to features, optional
        The one-hot features of each category.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> rng = np.random.default_rng(0)
    >>> states = rng.normal(size=(300, 2))
    >>> steering = 0.5 * states[:, 0] + rng.normal(size=300)
    >>> space = policyspace.GaussianLinear(covariance=1.0)
    >>> policyspace.identify(states, steering, features=["curve", "noise"], policy=space).selected
    ('curve',)
    """

    in_words = "linear Gaussian"
    discrete = False
    quadratic = True

    def __init__(
        self,
        features: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        covariance: float | Sequence[Any] | np.ndarray | Literal["estimate"] | None = None,
        groups: Groups | None = None,
        assume: Sequence[str] = (),
        fixed: Any = 0.0,
        intercept: bool | None = None,
        blocks: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.estimated = covariance is None or (isinstance(covariance, str) and covariance == "estimate")
        if features is None:
            said = {"covariance": covariance, "groups": groups, "assume": assume, "fixed": fixed}
            self.defer(actions, blocks, **said, intercept=intercept)
            return
        super().__init__(features, actions, groups, assume, fixed, intercept, blocks)
        if not self.estimated:
            self.covariance = covariance_matrix(covariance, len(self.row_names))
            self.precision = np.linalg.inv(self.covariance)

    def mean(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray | None:
        """weights·φ(s)."""
        return np.asarray(self.natural(theta, features))

    def variance(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray | None:
        """The diagonal of Σ, where it is given."""
        return (
            None if self.estimated else np.broadcast_to(np.diag(self.covariance), (len(features), len(self.row_names)))
        )

    def score_roots(self, theta: np.ndarray, features: np.ndarray, covariance: np.ndarray | None) -> list[np.ndarray]:
        """The columns of a root of Σ⁻¹, for every row."""
        assert covariance is not None
        root = np.linalg.cholesky(np.linalg.inv(covariance))
        return [np.broadcast_to(column, (len(features), len(root))) for column in root.T]

    def cautions(self, data: Sample) -> list[str]:
        """Actions that look like labels, or are clipped."""
        return unlike_gaussian(data)

    def fit_measures(self, likelihood: Likelihood, theta: np.ndarray, data: Sample) -> FitMeasures:
        """The share of the variance that the features explain."""
        weights, k = np.ones(data.num_rows) if data.weights is None else data.weights, len(self.row_names)
        centred = data.actions - np.average(data.actions, axis=0, weights=weights)
        left = (weights @ (data.actions - self.mean(theta, data.features)) ** 2).sum()
        return FitMeasures(
            likelihood.full.log_likelihood,
            likelihood.fit(frozenset()).log_likelihood,
            explained=1 - float(left / (weights @ centred**2).sum()),
            num_noise_parameters=k * (k + 1) // 2 if self.estimated else 0,
        )

    def acting(self, theta: np.ndarray, data: Sample | str = "nothing was seen") -> "GaussianLinear":
        """The same space with the covariance that θ leaves in the data, or one without data, if it has none."""
        if not self.estimated:
            return self
        found = np.eye(len(self.row_names)) if isinstance(data, str) else self.noise_covariance(theta, data)
        # Actions that the features explain exactly leave no noise: there is always a little.
        return self.with_covariance(found + (1e-9 * np.trace(found) + 1e-12) * np.eye(len(found)))

    def with_covariance(self, covariance: np.ndarray) -> Self:
        """The same space with a covariance that is known."""
        space = copy.copy(self)
        space.covariance, space.precision, space.estimated = covariance, np.linalg.inv(covariance), False
        return space

    def describe(self) -> dict[str, JSON]:
        """Whether it has an intercept, and the covariance."""
        covariance = "estimate" if self.estimated else self.covariance.tolist()
        return {"family": "gaussian", "intercept": self.intercept, "covariance": covariance}

    def action_statistic(self, actions: Array) -> Array:
        """u(a) = Σ⁻¹a."""
        self._needs_covariance()
        return actions @ self.precision

    def log_base(self, actions: Array) -> Array:
        """log h(a) = −½ aᵀΣ⁻¹a − ½ log det 2πΣ."""
        self._needs_covariance()
        xp = actions.__array_namespace__()
        return -0.5 * xp.sum((actions @ self.precision) * actions, axis=-1) - 0.5 * self._log_det()

    def cumulant(self, eta: Array) -> Array:
        """A(η) = ½ ηᵀΣ⁻¹η."""
        xp = eta.__array_namespace__()
        return 0.5 * xp.sum(self.cumulant_gradient(eta) * eta, axis=-1)

    def cumulant_gradient(self, eta: Array) -> Array:
        """E[u] = Σ⁻¹η."""
        self._needs_covariance()
        return eta @ self.precision

    def cumulant_hessian(self, eta: Array) -> Array:
        """Cov[u] = Σ⁻¹, whatever the state."""
        self._needs_covariance()
        xp = eta.__array_namespace__()
        return xp.broadcast_to(xp.asarray(self.precision), (*eta.shape, eta.shape[-1]))

    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """a = weights·φ(s) + Σ^½ε."""
        self._needs_covariance()
        mean, root = self.natural(theta, features), np.linalg.cholesky(self.covariance)
        if isinstance(key, np.random.Generator):
            noise = key.standard_normal(mean.shape)
            return mean + noise @ root.T
        return (mean.T + columns_of_noise(key, root, mean.T.shape)).T

    def noise_covariance(self, theta: Array | None = None, data: Sample | None = None) -> np.ndarray:
        """Σ, or in its place the covariance of what θ leaves of the data's actions."""
        if not self.estimated:
            return self.covariance
        if theta is None or data is None:
            raise InputError("the scale of a Gaussian policy needs its covariance: give a space that knows it.")
        left = data.actions - self.natural(theta, data.features)
        weights = np.ones(len(left)) if data.weights is None else data.weights
        return (left * weights[:, None]).T @ left / weights.sum()

    def _log_det(self) -> float:
        return float(np.linalg.slogdet(2 * np.pi * self.covariance)[1])

    def _needs_covariance(self) -> None:
        if self.estimated:
            raise InputError("this Gaussian space estimates its covariance: give a covariance to evaluate its density.")


FEWEST_CLIPPED = 20
"""Rows below which one of them is more than a twentieth, and tells nothing about a bound."""


def unlike_gaussian(data: Sample) -> list[str]:
    """Few whole numbers may be labels, and actions clipped at a bound are not Gaussian."""
    found = []
    if data.maybe_discrete:
        found.append(
            "the action takes only a few whole values: if they are discrete actions, use the Boltzmann policy "
            "(--policy boltzmann)."
        )
    for name, column in zip(data.action_names, data.actions.T, strict=True):
        for bound, where in ((column.min(), "smallest"), (column.max(), "largest")):
            share = float((column == bound).mean())
            if len(column) >= FEWEST_CLIPPED and share > 0.05 and len(np.unique(column)) > 10:
                found.append(
                    f"{share:.0%} of '{name}' equal its {where} value {bound:g}: actions that are clipped at a bound break "
                    "the Gaussian likelihood; log them before they are clipped."
                )
    return found


def columns_of_noise(key: Key, root: np.ndarray, shape: tuple[int, ...]) -> Array:
    """Σ^½ε for a JAX key, of a shape [k, …]: samples along the last axis, where they are contiguous."""
    from policyspace.families.jax_backend import jnp, standard_normals

    noise = standard_normals(key, shape)
    # No products with the zeros of the root: matrices this narrow are slow.
    return jnp.stack([sum(share * e for share, e in zip(row, noise, strict=True) if share) for row in root.tolist()])


def covariance_matrix(given: Any, size: int) -> np.ndarray:
    """Σ [k, k] from a variance, k variances or a full matrix; must be symmetric and positive definite."""
    try:
        matrix = np.asarray(given)
        matrix = matrix.astype(np.float64, casting="same_kind" if matrix.dtype.kind in "biuf" else "no")
    except (TypeError, ValueError) as error:
        raise InputError(f"the covariance must be numbers or 'estimate', found {given!r:.80}.") from error
    if matrix.ndim == 0:
        matrix = matrix * np.eye(size)
    elif matrix.shape == (size,):
        matrix = np.diag(matrix)
    if matrix.shape != (size, size):
        raise InputError(
            f"the covariance must be one variance, {size} variances or a {size}×{size} matrix, found the shape "
            f"{matrix.shape}: give as many as there are actions."
        )
    if not np.isfinite(matrix).all():
        raise InputError("the covariance must be finite, found NaN or infinity: correct it, or say 'estimate'.")
    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0):
        raise InputError("the covariance must be symmetric: its entries above and below the diagonal differ.")
    smallest, largest = np.linalg.eigvalsh(matrix)[[0, -1]].tolist()
    if not smallest > 0:
        raise InputError(
            f"the covariance must be positive definite, found the eigenvalue {smallest:.3g}: correct it, or say 'estimate'."
        )
    if not EXTREME < smallest <= largest < 1 / EXTREME:
        raise InputError(
            f"the covariance must lie between {EXTREME:g} and {1 / EXTREME:g}, found the eigenvalues {smallest:.3g} to "
            f"{largest:.3g}: measure the actions in other units."
        )
    return matrix


# -- The likelihood of the Gaussian linear policy: everything follows from the moment matrix of features and actions.

EXACT = 1e-12
"""The share of the actions' variance below which a residual is rounding rather than noise."""

RESOLUTION = 1e-9
"""The smallest part of a standardised column that counts as its own, where rows are decomposed themselves."""

NEGLIGIBLE = 1e-5
"""The error of λ that the rounding of a moment matrix may cause before the rows themselves are decomposed."""


@dataclass(frozen=True)
class JointTable:
    """Constant, standardised features and actions of a block, a known fixed part and the means taken off."""

    standardise: Standardisation
    shift: np.ndarray  # [k, q']
    center: np.ndarray  # [k]

    def __call__(self, block: RowBlock) -> np.ndarray:
        """Rows [c, q + k], times the roots of their weights."""
        left = block.actions - block.features @ self.shift.T - self.center
        joint = np.hstack([self.standardise(block.features), left])
        return joint if block.weights is None else joint * np.sqrt(block.weights[:, None])


class GaussianLikelihood(LinearLikelihood):
    """Least squares in the metric Σ⁻¹; with an estimated covariance, n·log det of the residual moments.

    Where every group holds whole columns of the weights, the k actions are k responses to the same columns; otherwise
    (groups of single parameters) the quadratic form θᵀ(Σ⁻¹ ⊗ ΦᵀΦ)θ is one response to k·q columns.
    """

    space: GaussianLinear
    design: DesignMatrix
    has_all_subsets = True

    def __init__(self, space: GaussianLinear, rows: Rows, moments: Moments | None = None) -> None:
        moments = moments_of(rows) if moments is None else moments
        self.space, self.num_rows, self.design = space, rows.num_rows, DesignMatrix(space, moments)
        self.total_weight, self.diverging = self.design.total_weight, np.zeros(space.num_parameters, dtype=bool)
        self._k, self._intercept = len(space.row_names), int(space.intercept)
        self._shift = space.weights(space.fixed)[:, self._intercept :]
        self._center = np.zeros(self._k)
        if space.intercept:
            self._center = moments.mean[-self._k :] - self._shift @ self.design.mean
        joint, error = self._joint(moments)
        self._whole_columns = all(self._holds_whole_columns(g.indices) for g in space.groups)
        self._well_conditioned = error * self._rounding(joint) < NEGLIGIBLE
        if self._well_conditioned:
            factor = np.linalg.cholesky(joint).T
        else:
            table = JointTable(self.design.standardise, self._shift, self._center)
            factor = triangular_factor(rows, table)[self._intercept :, self._intercept :]
            self._sharpen(factor)
        self._triangle = factor
        if space.estimated:
            self._check_estimable()
        self._factor, self._num_responses = self._quadratic(factor)
        self._columns = [self._coordinates(g.indices) for g in space.groups]
        self._upper = np.triu_indices(self._num_responses)
        if space.estimated:
            self._check_noise()
        else:
            self._check_rounding()
        self.law: NullDistribution = self._law()
        self.full = self.fit(space.full_support)

    def _joint(self, moments: Moments) -> tuple[np.ndarray, float]:
        """[[ΦᵀΦ, Φᵀa], [aᵀΦ, aᵀa]] of standardised features and actions without their known fixed part.

        And the factor by which taking that part off, here rather than in the rows, makes their rounding larger.
        """
        p = len(self.design.mean)
        raw = moments.scatter if self._intercept else moments.about(np.zeros_like(moments.shift))
        turn = np.eye(len(raw))
        turn[:p, :p] *= self.design.standardise.inverse_scale
        turn[p:, :p] = -self._shift
        joint = turn @ raw @ turn.T
        largest = (np.abs(turn[p:]) @ np.sqrt(np.diag(raw))) ** 2
        left = np.maximum(np.diag(joint)[p:], np.finfo(float).tiny)
        return (joint + joint.T) / 2, float((largest / left).max()) if self._shift.any() else 1.0

    def _rounding(self, moments: np.ndarray) -> float:
        """A bound on the error of any λ made from the moment matrix: its rounding over its smallest eigenvalue."""
        scale = np.sqrt(np.maximum(np.diag(moments), 0.0))
        if not scale.all():
            return np.inf
        smallest = float(np.linalg.eigvalsh(moments / np.outer(scale, scale))[0])
        p = len(self.design.mean)
        squares = 0.0 if self.space.estimated else float(np.sum(self.space.precision * moments[p:, p:]))
        return np.finfo(float).eps * max(self.total_weight, squares) / max(smallest, np.finfo(float).eps)

    def _sharpen(self, factor: np.ndarray) -> None:
        """Let the design judge ranks by the rows' own decomposition, as finely as the rounding of its means allows."""
        p, design = len(self.design.mean), self.design
        offset = float(np.max(np.abs(design.mean) / design.scale, initial=0.0, where=~design.constant))
        design.resolve(factor[:, :p] / np.sqrt(self.total_weight), max(RESOLUTION, 8 * np.finfo(float).eps * offset))

    def _holds_whole_columns(self, indices: tuple[int, ...]) -> bool:
        q = len(self.space.column_names)
        columns = {i % q for i in indices}
        return len(indices) == self._k * len(columns)

    def _check_estimable(self) -> None:
        if not self._whole_columns:
            raise InputError(
                "groups of single parameters, or by action, with an estimated covariance have no exact test for several "
                "actions: give the covariance, or group by feature."
            )
        spare = self.design.total_weight - self.design.num_free(np.ones(self.space.num_parameters, bool)) / self._k
        if spare < self._k:
            raise InputError(
                f"{self.num_rows} rows are too few to estimate a covariance beside {len(self.design.mean)} features: "
                "give the covariance, collect more rows, or use fewer features."
            )

    def _check_noise(self) -> None:
        """What the features leave of the actions must be more than rounding, in every direction."""
        squares = np.sum(self._factor[:, -self._k :] ** 2, axis=0)
        spread = np.sqrt(squares + self.total_weight * (EXACT * self._center) ** 2)
        spread[spread == 0] = 1.0
        unit = self._residual(list(range(len(self.design.mean)))) / np.outer(spread, spread)
        if np.diag(unit).min() < EXACT:
            raise InputError(
                "the actions are an exact linear function of the features: no noise is left to estimate the "
                "covariance from; give the covariance, or fit a deterministic agent with a known noise level."
            )
        noise = np.sqrt(np.diag(unit))
        if np.linalg.eigvalsh(unit / np.outer(noise, noise))[0] < EXACT:
            raise InputError(
                "the actions are linear functions of one another, given the features, so their covariance cannot be "
                "estimated: drop a redundant action column, or give the covariance."
            )

    def _check_rounding(self) -> None:
        """λ is a difference of sums as large as aᵀΣ⁻¹a: their rounding must be small beside a critical value."""
        total = float(np.sum(self._factor[:, -self._num_responses :] ** 2))
        if np.finfo(float).eps * total > 0.1:
            raise InputError(
                f"the covariance is so small beside the actions (their squares add up to {total:.1g} variances) that "
                "rounding would decide: check its units, or leave it out to estimate it."
            )

    def _quadratic(self, factor: np.ndarray) -> tuple[np.ndarray, int]:
        """[A, b] with responses b so that the deviance is the squared length of b − Aθ (or n log det, if estimated)."""
        p = len(self.design.mean)
        if self.space.estimated:
            return factor, self._k
        whiten = np.linalg.inv(np.linalg.cholesky(self.space.covariance))
        responses = factor[:, p:] @ whiten.T
        if self._whole_columns:
            return np.hstack([factor[:, :p], responses]), self._k
        return np.hstack([np.kron(whiten, factor[:, :p]), responses.T.reshape(-1, 1)]), 1

    def _law(self) -> NullDistribution:
        if not self.space.estimated:
            return ChiSquare()
        rank = self.design.rank(frozenset(range(len(self.design.mean)))) + self._intercept
        return WilksLambda(self.design.total_weight, rank, self._k)

    def _coordinates(self, indices: tuple[int, ...]) -> list[int]:
        """The rows of the moment matrix that belong to parameters θ (the intercept has none: it is projected out)."""
        q, p = len(self.space.column_names), len(self.design.mean)
        own = [(i // q, i % q - self._intercept) for i in indices if i % q >= self._intercept]
        if self._whole_columns:
            return sorted({column for _, column in own})
        return [row * p + column for row, column in own]

    def _free_columns(self, support: Support) -> list[int]:
        groups = enumerate(self.space.groups)
        return sorted(c for i, g in groups if g.assumed or i in support for c in self._columns[i])

    def information(self) -> np.ndarray:
        """F̂ = Σ⁻¹ ⊗ mean φφᵀ, in raw coordinates; an estimated Σ is plugged in."""
        mean = self.design.mean
        phi = self.design.second_moment / self.design.total_weight
        if self._intercept:
            phi = phi + np.outer(mean, mean)
            phi = np.block([[np.ones((1, 1)), mean[None]], [mean[:, None], phi]])
        return np.kron(self._precision(), phi)

    def standardised_information(self) -> np.ndarray:
        """The same in the coordinates of the standardised design."""
        phi = np.eye(len(self.space.column_names))
        phi[self._intercept :, self._intercept :] = self.design.correlation
        return np.kron(self._precision(), phi)

    def _precision(self) -> np.ndarray:
        if not self.space.estimated:
            return self.space.precision
        return np.linalg.pinv(self._residual(list(range(len(self.design.mean)))) / self.design.total_weight)

    def _solve(self, columns: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """The least-squares weights of some columns, the shortest where they are collinear, and what they leave over."""
        responses = self._factor[:, -self._num_responses :]
        if not columns:
            return np.zeros((0, self._num_responses)), responses
        own = self._factor[:, columns]
        length = np.sqrt((own**2).sum(axis=0))
        length[length == 0] = 1.0
        left, singular, right = np.linalg.svd(own / length, full_matrices=False)
        kept = singular > self.design.resolution
        beta = right[kept].T @ ((left[:, kept].T @ responses) / singular[kept, None]) / length[:, None]
        return beta, responses - own @ beta

    def _residual(self, columns: list[int]) -> np.ndarray:
        rest = self._solve(columns)[1]
        return rest.T @ rest

    def residual_moments(self, support: Support) -> np.ndarray:
        """Σ (a − weights·φ)(a − weights·φ)ᵀ at the fit inside Θ_I [k, k], where the covariance is estimated."""
        return self._residual(self._free_columns(support))

    def action_scale(self) -> np.ndarray:
        """The standard deviation of each action's noise."""
        if not self.space.estimated:
            return np.sqrt(np.diag(self.space.covariance))
        return np.sqrt(np.diag(self.residual_moments(self.space.full_support) / self.total_weight))

    def penalised_policy(self, support: Support | None = None) -> Policy:
        """The most likely policy; an estimated Σ̂ becomes part of it, its degrees of freedom counted."""
        space = self.space
        support = space.full_support if support is None else support
        theta = self.fit(support).theta
        if not space.estimated:
            return Policy(space, theta)
        spare = self.total_weight - self.num_free(support) / len(space.row_names)
        covariance = self.residual_moments(support) / spare
        known = GaussianLinear(
            space.feature_names, space.row_names, (covariance + covariance.T) / 2, intercept=space.intercept
        )
        return Policy(known, theta)

    def shrunken_policy(self, support: Support, penalty: float | np.ndarray) -> Policy:
        """In closed form; an estimated Σ̂ is that of what the penalised weights leave, their degrees of freedom counted.

        While the weights are found, it is that of the full fit.
        """
        space, p, k, own = self.space, len(self.design.mean), self._k, self._intercept
        features, actions = self._triangle[:, :p], self._triangle[:, p:]
        precision = self._precision() if space.estimated else space.precision
        matrix = np.kron(precision, features.T @ features)
        target = precision @ (actions.T @ features)
        everything = np.broadcast_to(penalty, (k, p + own) if np.ndim(penalty) == 0 else (k * (p + own),))
        held = everything.reshape(k, p + own)[:, own:] / self.action_scale()[:, None] ** 2
        free = space.free_mask(support).reshape(k, p + own)[:, own:].ravel() & np.tile(~self.design.constant, k)
        inside = np.ix_(free, free)
        system = matrix[inside] + np.diag(held.ravel()[free])
        beta = np.zeros(k * p)
        beta[free] = np.linalg.solve(system, target.ravel()[free])
        weights = beta.reshape(k, p)
        theta = self._theta(weights / self.design.scale, support)
        if not space.estimated:
            return Policy(space, theta)
        left = actions - features @ weights.T
        spent = float(np.trace(np.linalg.solve(system, matrix[inside]))) / k + own
        covariance = left.T @ left / max(self.total_weight - spent, 1.0)
        known = copy.copy(space)
        known.covariance, known.estimated = (covariance + covariance.T) / 2, False
        known.precision = np.linalg.inv(known.covariance)
        return Policy(known, theta)

    def _deviance(self, blocks: np.ndarray) -> np.ndarray:
        """tr(residual moments), or n·log det when the covariance is estimated; blocks are upper triangles [r(r+1)/2, m]."""
        r = self._num_responses
        row, column = self._upper
        if not self.space.estimated:
            return blocks[row == column].sum(axis=0)
        square = np.empty((blocks.shape[1], r, r))
        square[:, row, column] = square[:, column, row] = blocks.T
        return self.design.total_weight * np.linalg.slogdet(square)[1]

    def fit(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """Weighted least squares on the free columns, in closed form: a start changes nothing."""
        space = self.space
        columns = self._free_columns(support)
        beta = np.zeros((self._factor.shape[1] - self._num_responses, self._num_responses))
        beta[columns], rest = self._solve(columns)
        residual = rest.T @ rest
        gradient = self._factor[:, columns].T @ rest
        deviance = float(self._deviance(residual[self._upper][:, None])[0])
        theta = self._raw_theta(beta, support)
        total = self.design.total_weight
        if space.estimated:
            log_likelihood = -0.5 * (
                deviance - total * self._k * np.log(total) + total * self._k * (np.log(2 * np.pi) + 1)
            )
        else:
            log_likelihood = -0.5 * (deviance + total * np.linalg.slogdet(2 * np.pi * space.covariance)[1])
        norm = float(np.abs(gradient).max(initial=0.0))
        return Fit(theta, support, float(log_likelihood), norm, True, False, self.num_free(support), self.law)

    def _raw_theta(self, beta: np.ndarray, support: Support) -> np.ndarray:
        space = self.space
        p = len(self.design.mean)
        if self._whole_columns:
            weights = beta.T if space.estimated else np.linalg.cholesky(space.covariance) @ beta.T
        else:
            weights = beta.reshape(self._k, p)
        return self._theta(weights / self.design.scale, support)

    def _theta(self, weights: np.ndarray, support: Support) -> np.ndarray:
        """θ from the weights [k, p] of the raw columns beyond their fixed values."""
        theta = np.zeros((self._k, len(self.design.mean) + self._intercept))
        theta[:, self._intercept :] = weights + self._shift
        if self._intercept:
            theta[:, 0] = self._center - weights @ self.design.mean
        # A coordinate that is not free keeps its fixed value to the bit.
        return np.where(self.space.free_mask(support), theta.ravel(), self.space.fixed)

    def statistics_of_all(self, groups: list[int]) -> np.ndarray:
        """λ_I for every support of the given groups [2^D], all others free: bit g says whether groups[g] is in."""
        length = np.sqrt((self._factor**2).sum(axis=0))
        length[length == 0] = 1.0
        length[-self._num_responses :] = 1.0
        scaled = self._factor / length
        columns = [self._columns[g] for g in groups]
        if self._well_conditioned:
            blocks = residual_blocks(scaled.T @ scaled, columns, self._num_responses)
        else:
            blocks, _ = residuals_of_all(scaled, columns, self._num_responses, self.design.resolution)
        deviance = self._deviance(blocks)
        deviance -= deviance.min()  # the full support's, up to rounding
        return deviance
