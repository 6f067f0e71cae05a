"""The likelihood of policies of general statistics t(s, a): the fits of the Boltzmann policy on rows of its own."""

from functools import cached_property

import numpy as np

from policyspace.fits.boltzmann_fits import BoltzmannLikelihood
from policyspace.fits.choice_rows import ChoiceDesign, ChoiceRows
from policyspace.fits.firth import FirthLikelihood
from policyspace.fits.law import ChiSquare
from policyspace.fits.merge import merge_rows
from policyspace.fits.separation import MOST_CONSTRAINTS
from policyspace.policies.choice_linear import ChoiceLinear
from policyspace.policies.groups import INTERCEPT


class FirthChoiceLikelihood(FirthLikelihood):
    """log L + ½ log det F of a policy of general statistics."""

    space: ChoiceLinear  # type: ignore[assignment]
    _plain: "ChoiceLikelihood"

    def _reach(self, step: np.ndarray) -> float:
        """The largest change of a difference of natural parameters in any row."""
        eta, there = self._statistics @ step, self._available
        return float((np.where(there, eta, -np.inf).max(axis=1) - np.where(there, eta, np.inf).min(axis=1)).max())

    def _evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log L + ½ log det F and its gradient, by the third cumulant of the statistics.

        ½ tr(F⁻¹ ∂F/∂θ) = ½ Σ_i w_i Σ_b p_b (d_bᵀF⁻¹d_b) d_b with d_b = t_b − t̄.
        """
        rows, t = self._plain.rows, self._statistics
        eta = np.where(self._available, t @ theta + self._offsets, -np.inf)
        top = eta.max(axis=1)
        odds = np.exp(eta - top[:, None])
        total = odds.sum(axis=1)
        p = odds / total[:, None]
        weights = np.ones(len(t)) if rows.weights is None else rows.weights
        mean = (p[:, None, :] @ t)[:, 0]
        centred = t - mean[:, None]
        shares = (p * weights[:, None])[:, :, None] * centred
        flat = shares.reshape(-1, len(theta))
        hessian = centred.reshape(-1, len(theta)).T @ flat
        self._last = theta.copy(), hessian
        value, gradient = (
            float(theta @ rows.statistic + rows.known - weights @ (np.log(total) + top)),
            rows.statistic - weights @ mean,
        )
        sign, log_det = np.linalg.slogdet(hessian)
        if sign <= 0:
            return -np.inf, gradient
        leverage = np.einsum("nad,nad->na", centred @ np.linalg.inv(hessian), centred)
        return value + 0.5 * float(log_det) + self._log_scale, gradient + 0.5 * (leverage.ravel() @ flat)

    @cached_property
    def _statistics(self) -> np.ndarray:
        return self._plain.rows.statistics(slice(None))

    @cached_property
    def _available(self) -> np.ndarray:
        return self._plain.rows.available(slice(None))

    @cached_property
    def _offsets(self) -> np.ndarray:
        return self._plain.rows.offsets(slice(None))


class ChoiceLikelihood(BoltzmannLikelihood):
    """Newton on a concave likelihood: shared coefficients, and actions that are not always available."""

    space: ChoiceLinear  # type: ignore[assignment]
    design: ChoiceDesign
    rows: ChoiceRows  # type: ignore[assignment]
    with_penalty = FirthChoiceLikelihood

    def __init__(
        self, space: ChoiceLinear, features: np.ndarray, actions: np.ndarray, weights: np.ndarray | None
    ) -> None:
        self.space, self.num_pairs, self.law = space, len(features), ChiSquare()
        if merged := merge_rows(features, actions, weights, len(space.action_names)):
            features, actions = merged
            weights = actions.sum(axis=1)
        self.design = ChoiceDesign(space, features, weights)
        self.total_weight = self.design.total_weight
        self.rows = ChoiceRows(self.design, features, actions, weights)
        self._fixed = self._checked_fixed()

    def _prior(self, spread: float) -> np.ndarray:
        """The precision of every weight [d]; constants are nearly free."""
        precision = np.full(self.space.num_parameters, spread**-2)
        for group in self.space.groups:
            if group.name == INTERCEPT:
                precision[list(group.indices)] = 1e-6
        return precision

    def _separated(self) -> np.ndarray:
        """The coordinates [d] along which log L grows for ever: directions D with D·(t_y − t_b) ≥ 0 for every action y
        that is played in a row and every other b that is available there, with some strict.
        """
        rows = self.rows
        played, there = rows.action_weights(slice(None)) > 0, rows.available(slice(None))
        better = played[:, :, None] & there[:, None, :] & ~np.eye(played.shape[1], dtype=bool)
        pairs = np.argwhere(better)
        # Where both actions of a pair are played, each pair stands beside its reverse: their difference is pinned to 0.
        diverging = np.zeros(self.space.num_parameters, dtype=bool)
        null = self.design.null_space()
        open_ = np.ones(len(pairs), dtype=bool)
        while open_.any():
            direction = self._direction(pairs, open_)
            margins = self._margins(pairs, direction)
            strict = open_ & (margins > 1e-6)
            if not strict.any():
                break
            seen = direction - null @ (null.T @ direction)
            raw = self.design.to_raw(seen[None])[0] * self.design.scale
            diverging |= np.abs(raw) > 1e-6 * (1 + np.abs(raw).max() * self._is_constant)
            open_ &= ~strict
        return diverging

    @cached_property
    def _is_constant(self) -> np.ndarray:
        return np.array([name.startswith(f"{INTERCEPT}[") for name in self.space.parameter_names])

    def _differences(self, pairs: np.ndarray) -> np.ndarray:
        """t(s, y) − t(s, b) of pairs (row, y, b) [·, d]."""
        t = self.rows.statistics(pairs[:, 0])
        index = np.arange(len(pairs))
        return t[index, pairs[:, 1]] - t[index, pairs[:, 2]]

    def _margins(self, pairs: np.ndarray, direction: np.ndarray) -> np.ndarray:
        chunks = np.array_split(pairs, max(1, len(pairs) // 20_000))
        return np.concatenate([self._differences(chunk) @ direction for chunk in chunks])

    def _direction(self, pairs: np.ndarray, open_: np.ndarray) -> np.ndarray:
        """argmax Σ margins of the open pairs subject to margins ≥ 0 of all pairs and |D| ≤ 1."""
        from scipy.optimize import linprog

        chunks = np.array_split(pairs[open_], max(1, open_.sum() // 20_000))
        objective = np.sum([self._differences(chunk).sum(axis=0) for chunk in chunks], axis=0)
        chosen = np.linspace(0, len(pairs) - 1, min(len(pairs), MOST_CONSTRAINTS)).astype(int)
        while True:
            constraints = -self._differences(pairs[chosen])
            answer = linprog(-objective, A_ub=constraints, b_ub=np.zeros(len(chosen)), bounds=(-1, 1), method="highs")
            if answer.x is None:
                return np.zeros_like(objective)
            direction = np.where(np.abs(answer.x) > 1e-9, answer.x, 0.0)
            margins = self._margins(pairs, direction)
            violated = np.flatnonzero(margins < -1e-7)
            fresh = np.setdiff1d(violated[np.argsort(margins[violated])][:MOST_CONSTRAINTS], chosen)
            if not len(fresh):
                return direction
            chosen = np.concatenate([chosen, fresh])
