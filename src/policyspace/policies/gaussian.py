"""The Gaussian linear policy a ~ N(weights·φ(s), Σ) (Table 1, first row)."""

import copy
from collections.abc import Sequence
from typing import Any, Literal, final

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.policies.base import Array, ExponentialFamily, Key
from policyspace.policies.groups import Groups

EXTREME = 1e-100
"""Variances beyond this, or its inverse, would overflow on their way to a likelihood."""


@final
class GaussianLinear(ExponentialFamily):
    """Continuous actions of dimension k with covariance Σ: known (scalar, diagonal or full) or estimated.

    A(η) = ½ ηᵀΣ⁻¹η, with u(a) = Σ⁻¹a; the A of Appendix A.1 lacks the ½. By default one action, named "action", an estimated
    covariance, groups by feature, and an intercept.
    """

    discrete = False
    quadratic = True

    def __init__(
        self,
        features: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        covariance: float | Sequence[Any] | np.ndarray | Literal["estimate"] | None = None,
        groups: Groups | None = None,
        always: Sequence[str] = (),
        fixed: Any = 0.0,
        intercept: bool | None = None,
        blocks: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.estimated = covariance is None or (isinstance(covariance, str) and covariance == "estimate")
        if features is None:
            said = {"covariance": covariance, "groups": groups, "always": always, "fixed": fixed}
            self._wait(actions, blocks, **said, intercept=intercept)
            return
        rows = ("action",) if actions is None else tuple(actions)
        self.action_names = rows
        super().__init__(tuple(features), rows, groups, tuple(always), fixed, intercept, blocks)
        if not self.estimated:
            self.covariance = covariance_matrix(covariance, len(self.row_names))
            self.precision = np.linalg.inv(self.covariance)

    def expected_action(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray | None:
        """weights·φ(s)."""
        return np.asarray(self.natural(theta, features))

    def acting(self, theta: np.ndarray, data: Demonstrations | str = "nothing was seen") -> "GaussianLinear":
        """The same space with the covariance that θ leaves in the data, or one without data, if it has none."""
        if not self.estimated:
            return self
        space = copy.copy(self)
        found = np.eye(len(self.row_names)) if isinstance(data, str) else self.noise_covariance(theta, data)
        # Actions that the features explain exactly leave no noise: there is always a little.
        space.covariance = found + (1e-9 * np.trace(found) + 1e-12) * np.eye(len(found))
        space.precision, space.estimated = np.linalg.inv(space.covariance), False
        return space

    def describe(self) -> dict[str, Any]:
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

    def noise_covariance(self, theta: Array | None = None, data: Demonstrations | None = None) -> np.ndarray:
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


def columns_of_noise(key: Key, root: np.ndarray, shape: tuple[int, ...]) -> Array:
    """Σ^½ε for a JAX key, of a shape [k, …]: samples along the last axis, where they are contiguous."""
    from policyspace.policies.jax_setup import jnp
    from policyspace.policies.random_numbers import standard_normals

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
