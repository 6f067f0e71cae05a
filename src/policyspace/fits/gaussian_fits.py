"""The likelihood of the Gaussian linear policy: everything follows from the moment matrix of features and actions."""

from dataclasses import dataclass

import numpy as np

from policyspace.data.blocks import Block, Rows
from policyspace.data.joint_moments import Moments, moments_of
from policyspace.errors import InputError
from policyspace.fits.base import Fit, LinearLikelihood
from policyspace.fits.design import Design, Standardisation
from policyspace.fits.law import ChiSquare, ReferenceLaw, WilksLambda
from policyspace.fits.subsets import residual_blocks
from policyspace.fits.triangular import residuals_of_all, triangular_factor
from policyspace.policies.base import Policy
from policyspace.policies.gaussian import GaussianLinear
from policyspace.policies.groups import Support

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

    def __call__(self, block: Block) -> np.ndarray:
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
    design: Design
    enumerates = True

    def __init__(self, space: GaussianLinear, rows: Rows, moments: Moments | None = None) -> None:
        moments = moments_of(rows) if moments is None else moments
        self.space, self.num_pairs, self.design = space, rows.num_rows, Design(space, moments)
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
        if space.estimated:
            self._check_estimable()
        self._factor, self._num_responses = self._quadratic(factor)
        self._columns = [self._coordinates(g.indices) for g in space.groups]
        self._upper = np.triu_indices(self._num_responses)
        if space.estimated:
            self._check_noise()
        else:
            self._check_rounding()
        self.law: ReferenceLaw = self._law()
        self.full = self.fit(space.everything)

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
                "groups of single parameters with an estimated covariance have no exact test for several actions: "
                "give the covariance, or group by feature."
            )
        spare = self.design.total_weight - self.design.num_free(np.ones(self.space.num_parameters, bool)) / self._k
        if spare < self._k:
            raise InputError(
                f"{self.num_pairs} rows are too few to estimate a covariance beside {len(self.design.mean)} features: "
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

    def _law(self) -> ReferenceLaw:
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
        return sorted(c for i, g in groups if g.always or i in support for c in self._columns[i])

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
        return np.sqrt(np.diag(self.residual_moments(self.space.everything) / self.total_weight))

    def penalised_policy(self, support: Support | None = None) -> Policy:
        """The most likely policy; an estimated Σ̂ becomes part of it, its degrees of freedom counted."""
        space = self.space
        support = space.everything if support is None else support
        theta = self.fit(support).theta
        if not space.estimated:
            return Policy(space, theta)
        spare = self.total_weight - self.num_free(support) / len(space.row_names)
        covariance = self.residual_moments(support) / spare
        known = GaussianLinear(
            space.feature_names, space.row_names, (covariance + covariance.T) / 2, intercept=space.intercept
        )
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
        weights = weights / self.design.scale
        theta = np.zeros((self._k, p + self._intercept))
        theta[:, self._intercept :] = weights + self._shift
        if self._intercept:
            theta[:, 0] = self._center - weights @ self.design.mean
        # A coordinate that is not free keeps its fixed value to the bit.
        return np.where(space.free(support), theta.ravel(), space.fixed)

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
