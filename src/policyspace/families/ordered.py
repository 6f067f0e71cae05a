"""Ordered logit policy: actions in a stated order, with proportional odds."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.special import expit

from policyspace.data.sample import Sample
from policyspace.data.validation import translate_constructor
from policyspace.errors import InputError
from policyspace.families.base import Array, Groups, Key, PolicySpace, recorded_policy
from policyspace.families.nuisance import NuisanceLikelihood, NuisanceLinear
from policyspace.families.softmax import ChoicePolicy, choices
from policyspace.safe_io import JSON


@final
@translate_constructor
class OrderedLinear(NuisanceLinear, ChoicePolicy):
    """Levels in an order, P(a ≤ k | s) = σ(ζ_k − weights·φ(s)): each weight moves the odds of all higher levels alike.

    The law of R's `polr`. Its thresholds ζ_1 < ζ_2 < … are minus the constant, and each next one the exponential of a
    parameter "log gap" higher; `thresholds(theta)` gives them.

    Parameters
    ----------
    features, groups, assume, fixed, blocks
        As in `GaussianLinear`.
    actions : sequence of str, optional
        Names of the actions, in the order of their codes 0…k.
    levels : sequence of str, optional
        The actions from the lowest to the highest. Without it, actions that are numbers go by their size; a space that is
        made with its actions takes these in their order.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> rng = np.random.default_rng(0)
    >>> states = rng.normal(size=(300, 2))
    >>> effort = np.digitize(1.5 * states[:, 0] + rng.logistic(size=300), [-1.0, 1.0])
    >>> taken = np.array(["low", "medium", "high"])[effort]
    >>> space = policyspace.OrderedLinear(levels=["low", "medium", "high"])
    >>> policyspace.identify(states, taken, features=["food", "noise"], policy=space).selected
    ('food',)
    """

    in_words = "proportional-odds"

    def __init__(
        self,
        features: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        levels: Sequence[Any] | None = None,
        groups: Groups | None = None,
        assume: Sequence[str] = (),
        fixed: Any = 0.0,
        blocks: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        if isinstance(levels, str):
            raise InputError(f"levels must be a list from the lowest to the highest, found the text '{levels}'.")
        if features is None:
            self.defer(actions, blocks, levels=levels, groups=groups, assume=assume, fixed=fixed)
            return
        self.action_names = choices(actions)
        self.levels = self.action_names if levels is None else tuple(str(level) for level in levels)
        if sorted(self.levels) != sorted(self.action_names):
            raise InputError(
                f"the levels must be all actions, each once: {', '.join(sorted(self.action_names))}; found "
                f"{', '.join(self.levels)}."
            )
        self._place = np.array([self.levels.index(name) for name in self.action_names])
        above = zip(self.levels[1:-1], self.levels[2:], strict=True)
        self.nuisance_names = tuple(f"log gap[{low}|{high}]" for low, high in above)
        self._set_up(features, groups, assume, fixed, True, blocks)

    def bind(self, data: Sample) -> PolicySpace:
        """The same space over the features and actions of the data, in the order that was said or that numbers have."""
        if self._said is None or self._said["levels"] is not None or not data.discrete:
            return super().bind(data)
        recorded: Any = recorded_policy(data).get("levels")
        try:
            ordered = recorded or sorted(data.action_names, key=float)
        except ValueError:
            names = list(data.action_names)
            raise InputError(
                f"the policy 'ordered' needs the order of the actions {', '.join(names)}, which are no numbers: say it "
                f"from the lowest to the highest, as in --levels {','.join(names)} or levels={names}."
            ) from None
        found = OrderedLinear()
        found._said = dict(self._said) | {"levels": ordered}
        return found.bind(data)

    def describe(self) -> dict[str, JSON]:
        """The order of the levels."""
        return {"family": "ordered", "levels": list(self.levels)}

    def thresholds(self, theta: np.ndarray) -> np.ndarray:
        """ζ_k of P(a ≤ k | s) = σ(ζ_k − weights·φ(s)), without the constant in the weights [k]."""
        return self._cuts(self.nuisance(theta)) - theta[0]

    def _cuts(self, nuisance: Array) -> Array:
        """0, and the sums of the gaps after it [k]."""
        xp = nuisance.__array_namespace__()
        return xp.concatenate([xp.zeros(1), xp.cumsum(xp.exp(nuisance))])

    def _ends(self, nuisance: Array) -> tuple[Array, Array]:
        """The thresholds below and above each level [k + 1]; those at the ends are infinite."""
        xp, cuts = nuisance.__array_namespace__(), self._cuts(nuisance)
        return xp.concatenate([xp.full(1, -np.inf), cuts]), xp.concatenate([cuts, xp.full(1, np.inf)])

    def probabilities(self, theta: Array, features: Array) -> Array:
        """π_θ(a|s) of every action, in the order of their codes [..., k + 1]."""
        eta, nuisance = self.natural(theta, features)[..., 0], self.nuisance(theta)
        xp = eta.__array_namespace__()
        return xp.exp(
            xp.stack(
                [
                    self.log_density(eta, nuisance, xp.full(eta.shape, code, dtype=int))
                    for code in range(len(self.levels))
                ],
                axis=-1,
            )
        )

    def mean(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """The probabilities of all actions but the last."""
        return np.asarray(self.probabilities(theta, features)[..., :-1])

    # -- formulas --------------------------------------------------------------------------------------------------

    def log_density(self, eta: Array, nuisance: Array, actions: Array) -> Array:
        """log(σ(b) − σ(a)) = log σ(b) + log σ(−a) + log(1 − exp(a − b)), a and b the ends of the level less η."""
        xp = nuisance.__array_namespace__()
        place = xp.asarray(self._place)[actions]
        lower, upper = self._ends(nuisance)
        gap = xp.concatenate([xp.full(1, np.inf), xp.exp(nuisance), xp.full(1, np.inf)])[place]
        inner = xp.log(-xp.expm1(-gap))
        return inner - xp.logaddexp(0.0, eta - upper[place]) - xp.logaddexp(0.0, lower[place] - eta)

    def derivatives(
        self, eta: np.ndarray, nuisance: np.ndarray, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """In η and the log gaps γ: a threshold ζ_k moves by exp γ_j with each γ_j of a gap below it."""
        place, size, gaps = self._place[actions], len(nuisance), np.exp(nuisance)
        lower, upper = self._ends(nuisance)
        above, below = expit(eta - upper[place]), expit(lower[place] - eta)  # 1 − σ(b) and σ(a)
        bent_above, bent_below = above * (1 - above), below * (1 - below)
        number = np.arange(size) + 1  # the gap of level k is below threshold k + 1
        moved_above = np.where((number <= place[..., None]) & (place[..., None] <= size), gaps, 0.0)
        moved_below = np.where(number <= place[..., None] - 1, gaps, 0.0)
        inside = number == place[..., None]  # [..., r], the level's own gap
        with np.errstate(over="ignore", invalid="ignore"):
            rate = np.where(inside, gaps * np.exp(-gaps) / -np.expm1(-gaps), 0.0)  # d log(1 − exp(−gap))/dγ
            fall = np.where(inside, gaps**2 * np.exp(-gaps) / np.expm1(-gaps) ** 2, 0.0) - rate  # minus its derivative
        slopes = np.concatenate(
            [(below - above)[..., None], above[..., None] * moved_above - below[..., None] * moved_below + rate],
            axis=-1,
        )
        bent = np.empty((*slopes.shape, 1 + size))
        bent[..., 0, 0] = bent_above + bent_below
        mixed = -(bent_above[..., None] * moved_above + bent_below[..., None] * moved_below)
        bent[..., 0, 1:] = bent[..., 1:, 0] = mixed
        bent[..., 1:, 1:] = (
            bent_above[..., None, None] * moved_above[..., :, None] * moved_above[..., None, :]
            + bent_below[..., None, None] * moved_below[..., :, None] * moved_below[..., None, :]
        )
        own = np.arange(size)
        bent[..., own + 1, own + 1] += fall - above[..., None] * moved_above + below[..., None] * moved_below
        return self.log_density(eta, nuisance, actions), slopes, bent

    def information_roots(self, eta: np.ndarray, nuisance: np.ndarray) -> list[np.ndarray]:
        """Of each action, the slopes if it were taken, times the root of its probability."""
        found = []
        for code in range(len(self.levels)):
            value, slopes, _ = self.derivatives(eta, nuisance, np.full(eta.shape, code))
            found.append(np.exp(value / 2)[..., None] * slopes)
        return found

    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """Action codes: how many thresholds a logistic number around η has passed."""
        eta, cuts = self.natural(theta, features), self._cuts(self.nuisance(theta))
        codes = np.argsort(self._place)
        if isinstance(key, np.random.Generator):
            return codes[(eta + key.logistic(size=eta.shape) > cuts).sum(axis=-1)]
        from policyspace.families.jax_backend import jax, jnp

        return jnp.asarray(codes)[(eta + jax.random.logistic(key, eta.shape, jnp.float64) > cuts).sum(axis=-1)]


class OrderedLikelihood(NuisanceLikelihood):
    """Newton from the shares of the levels; weights are infinite where levels do not overlap along a direction."""

    space: OrderedLinear

    @cached_property
    def _origin(self) -> np.ndarray:
        """The agent that takes each level as often as all rows do; one that is never taken has a small share."""
        theta, arrays = np.zeros(self.space.num_parameters), self.rows.arrays
        place = self.space._place[arrays.actions]
        counts = np.bincount(place, arrays.weights, len(self.space.levels))
        below = np.cumsum(np.maximum(counts, 0.01))[:-1]
        cuts = np.log(below) - np.log(np.maximum(counts, 0.01).sum() - below)
        theta[0] = -cuts[0]
        theta[len(theta) - len(cuts) + 1 :] = np.log(np.diff(cuts))
        return theta

    def _separated(self) -> np.ndarray:
        """Directions (weights, gaps) in which no row comes nearer to an end of its level, and some leave one."""
        from scipy.optimize import linprog

        space, arrays = self.space, self.rows.arrays
        x, place = self.rows.standardised(slice(None)), space._place[arrays.actions]
        if arrays.weights is not None:
            x, place = x[arrays.weights > 0], place[arrays.weights > 0]
        size = len(space.nuisance_names)
        number = np.arange(size) + 1
        upper = np.hstack([-x, (number <= place[:, None]).astype(float)])[place <= size]
        lower = np.hstack([x, -(number <= place[:, None] - 1).astype(float)])[place > 0]
        margins = np.unique(np.vstack([upper, lower]), axis=0)
        null = self.design.null_space()
        moving, open_ = np.zeros(space.num_parameters, dtype=bool), np.ones(len(margins), dtype=bool)
        while open_.any():
            found = linprog(-margins[open_].sum(axis=0), A_ub=-margins, b_ub=np.zeros(len(margins)), bounds=(-1, 1))
            strict = open_ if found.x is None else open_ & (margins @ found.x > STRICT)
            if found.x is None or not strict.any():
                break
            own = found.x[1:] - null @ (null.T @ found.x[1:])
            shift = own * self.design.mean / self.design.scale
            moving[1:] |= np.abs(own) > STRICT
            moving[0] |= abs(found.x[0] - shift.sum()) > STRICT * (1 + np.abs(shift).sum())
            open_ &= ~strict
        return moving


STRICT = 1e-6
"""A margin, for directions of size 1, that is more than rounding."""
