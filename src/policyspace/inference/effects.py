"""Effects of groups on behaviour with intervals, and effect curves: what the fitted policy does when a feature changes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import chndtr

from policyspace.data.sample import Sample
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace
from policyspace.families.covariance import clustered_covariance, inverse_of, raw_inverse
from policyspace.families.likelihood import Likelihood

# -- One number: how much the action changes when what the other features predict of a group takes its place.

SAMPLE = 4000
"""Rows on which the change is averaged."""

NOISE_ROWS = 200
"""Rows at which the noise of the fit is computed."""

CONFIDENCE = 0.95
MOST_PARAMETERS = 600
"""Of a policy whose derivatives are differences of its mean."""


class GroupEffect(NamedTuple):
    """A share of decisions, or standard deviations of the action; the ends of its interval are NaN where it has none."""

    size: float
    low: float = np.nan
    high: float = np.nan


NOT_KNOWN = GroupEffect(np.nan)


@dataclass(frozen=True)
class Behaviour:
    """The mean action of a fitted policy, and how uncertain the fit is.

    `mean` maps features [n, q] to mean actions, or to probabilities of all actions but one [n, k]. `factor` maps them to
    [n, k or 1, r]: the error of the mean is `factor` times r independent errors of variance 1, times `spread` [k].
    """

    mean: Callable[[np.ndarray], np.ndarray]
    factor: Callable[[np.ndarray], np.ndarray] | None
    spread: np.ndarray
    names: tuple[str, ...]
    """Of the columns of the mean."""
    rest: str | None = None
    """The action to which what is left of the probability belongs."""
    rest_spread: float = np.nan
    """The `spread` of that, where `factor` is one for all columns."""


def effect_of_change(
    change: np.ndarray, size: float, factors: np.ndarray | None, spread: np.ndarray, most: float = np.inf
) -> GroupEffect:
    """The effect without what the noise of the fit adds to it, and its interval.

    `size` is the mean absolute change as it was fitted; `change` [m, k] are the changes at some rows, whose errors are
    `factors` [m, k or 1, r] times `spread` [k]. With z the changes in units of their standard errors, mean z² exceeds
    that of the true changes by 1, and it has about the law of a multiple of a non-central χ² (Satterthwaite): its
    non-centrality is estimated without bias, and bounded by inverting that law. The bounds include 0 where z may be noise.
    """
    if factors is None or not np.isfinite(size):
        return GroupEffect(min(size, most))
    noise = np.sqrt((factors**2).sum(axis=2)) * spread
    known = noise > 1e-9 * max(float(noise.max(initial=0.0)), 1e-300)
    if not known.any() or not np.isfinite(noise).all():
        return GroupEffect(min(size, most), *((size, size) if np.isfinite(noise).all() else ()))
    z = change[known] / noise[known]
    unit = (np.broadcast_to(factors, (*noise.shape, factors.shape[2])) * spread[:, None])[known] / noise[known][:, None]
    share = float(((unit.T @ unit / len(z)) ** 2).sum())  # 1 / degrees of freedom of mean z²
    square = max(float((z**2).mean()), 1e-300)
    low, high = _noncentrality(square / share, 1 / share)
    factor = np.sqrt(np.array([max(square - 1, 0.0), low * share, high * share]) / square)
    middle, least, largest = np.minimum(size * factor, most).tolist()
    return GroupEffect(middle, min(least, middle), max(largest, middle))


def _noncentrality(value: float, degrees: float) -> tuple[float, float]:
    """Bounds of the non-centrality of a χ² of which one value was seen."""
    tail = (1 - CONFIDENCE) / 2
    if value > 2000 + 10 * degrees:  # √χ² is then nearly normal with standard deviation 1
        root = np.sqrt(value - degrees + 1)
        return (root - 1.959964) ** 2, (root + 1.959964) ** 2

    def bound(share: float) -> float:
        if chndtr(value, degrees, 0.0) <= share:
            return 0.0
        low, high = 0.0, 4 * value + 40.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if chndtr(value, degrees, middle) > share else (low, middle)
        return low

    return bound(1 - tail), bound(tail)


def evenly(num_rows: int, most: int) -> np.ndarray:
    """So many rows at most, evenly spaced."""
    return np.unique(np.linspace(0, num_rows - 1, min(num_rows, most)).astype(np.intp))


def sampled_rows(data: Sample, most: int) -> np.ndarray:
    """So many rows at most, evenly spaced; a row that counts for several comes as often."""
    if data.weights is None or not data.weights.sum() > 0:
        return evenly(data.num_rows, most)
    total = np.cumsum(data.weights)
    num = min(most, round(float(total[-1])) if not data.sampling_weights else max(data.num_rows, 1000))
    return np.searchsorted(total, (np.arange(num) + 0.5) / num * total[-1])


def behaviour_of(likelihood: Likelihood, data: Sample) -> Behaviour | None:
    """Of the most likely policy of a space; None where its mean is unknown."""
    space, theta = likelihood.space, likelihood.full.theta
    first = space.mean(theta, data.features[:1])
    if first is None:
        return None
    root = _root_of_covariance(likelihood, data)
    factor = None if root is None else partial(mean_factors, space, theta, root)
    names, num = tuple(data.action_names), first.shape[1]
    rest = names[-1] if data.action_type.kind == "discrete" and len(names) == num + 1 else None
    return Behaviour(partial(_mean, space, theta), factor, np.ones(num), names[:num], rest)


def _mean(space: PolicySpace, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
    found = space.mean(theta, features)
    assert found is not None
    return found


def mean_factors(space: PolicySpace, theta: np.ndarray, root: np.ndarray, features: np.ndarray) -> np.ndarray:
    """The derivative of the mean action at some features, times R [d, r]: [n, k, r]."""
    if not (_plain(space, theta) and space.as_linear("effects are").intercept):
        sides = [
            np.stack([_mean(space, theta + step * column, features) for column in root.T], axis=2)
            for step in (-0.01, 0.01)
        ]
        return np.asarray((sides[1] - sides[0]) / 0.02)
    # A linear policy depends on η, a number for each row of weights, which the weight of the constant moves alone.
    k, q = len(space.as_linear("effects are").row_names), len(space.column_names)
    steps = np.zeros((k, k, q))
    steps[np.arange(k), np.arange(k), 0] = 1e-4
    slopes = [
        (_mean(space, theta + step, features) - _mean(space, theta - step, features)) / 2e-4
        for step in steps.reshape(k, -1)
    ]
    design = np.hstack([np.ones((len(features), 1)), features])
    moved = np.einsum("nq,kqr->nkr", design, root.reshape(k, q, -1), optimize=True)
    return np.asarray(np.stack(slopes, axis=2) @ moved)


def _plain(space: PolicySpace, theta: np.ndarray) -> bool:
    """Whether θ is a matrix of weights of the features and the constant, and nothing else."""
    if not space.linear:
        return False
    linear = space.as_linear("effects are")
    own = tuple(linear.column_names)[int(linear.intercept) :] == tuple(linear.feature_names)
    return own and len(theta) == len(linear.row_names) * len(linear.column_names)


def _root_of_covariance(likelihood: Likelihood, data: Sample) -> np.ndarray | None:
    """R [d, d] with RRᵀ the covariance of θ̂; None where it is unknown: separated data, several best fits."""
    if likelihood.full.separated or (not likelihood.identifiable and likelihood.design is None):
        return None
    if len(likelihood.full.theta) > MOST_PARAMETERS:
        return None
    clustered = (data.subjects is not None or data.sampling_weights) and data.in_memory and likelihood.identifiable
    if clustered and likelihood.space.linear:
        try:
            covariance = clustered_covariance(likelihood, data)
        except InputError:  # of a single subject
            return None
    elif likelihood.design is not None:
        linear = likelihood.as_linear("effects are")
        covariance, _ = raw_inverse(linear.refined_estimate()[1] / likelihood.total_weight, linear.design)
        covariance = covariance / likelihood.total_weight
    else:
        covariance = inverse_of(likelihood)[0] / likelihood.total_weight
    if covariance.shape != (len(likelihood.full.theta),) * 2 or not np.isfinite(covariance).all():
        return None
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


class Guess:
    """What the other columns of φ(s) say linearly of some of them."""

    def __init__(self, space: PolicySpace, features: np.ndarray) -> None:
        self._space, self._constant = space, not space.linear or space.as_linear("effects are").intercept
        # The triangle of a QR decomposition has the least squares of all rows.
        self._triangle = np.asarray(np.linalg.qr(self._design(features), mode="r"))

    def replacing(self, inside: Sequence[int], features: np.ndarray) -> np.ndarray:
        """The features [n, q] with the guess of the others in the place of some columns."""
        design, own = self._design(features), np.add(inside, int(self._constant))
        others, predicting = self._predicting(own)
        found = features.copy()
        found[:, list(inside)] = design[:, others] @ predicting
        return found

    def without(self, indices: Sequence[int]) -> np.ndarray:
        """A [d, d]: Aθ acts on features as θ would if those of these weights were replaced, for these rows alone."""
        k, q = len(self._space.as_linear("effects are").row_names), len(self._space.column_names)
        map_ = np.eye(k * q)
        for row in range(k):
            if own := [i % q for i in indices if i // q == row]:
                others, predicting = self._predicting(np.array(own))
                at = row * q + np.array(own)
                map_[at, at] = 0.0
                map_[np.ix_(row * q + others, at)] = predicting
        return map_

    def _predicting(self, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        others = np.setdiff1d(np.arange(self._triangle.shape[1]), own)
        return others, np.linalg.lstsq(self._triangle[:, others], self._triangle[:, own], rcond=None)[0]

    def _design(self, features: np.ndarray) -> np.ndarray:
        return np.hstack([np.ones((len(features), 1)), features]) if self._constant else features


def action_effects(likelihood: Likelihood, data: Sample) -> dict[int, GroupEffect]:
    """For each tested group the mean absolute change of the action, or of all probabilities together.

    Continuous actions count in their own standard deviations, the mean over components; for discrete ones it is half the
    summed change of probabilities: the share of decisions that would change. Of single weights of a linear policy, the
    feature is replaced for their own rows of weights alone.
    """
    space, columns, theta = likelihood.space, likelihood.space.group_columns(), likelihood.full.theta
    plain = _plain(space, theta)
    behaviour = behaviour_of(likelihood, data) if plain or columns is not None else None
    if behaviour is None:
        return {}
    rows = sampled_rows(data, SAMPLE)
    features, kind = data.features[rows], data.action_type
    expected, scale = behaviour.mean(features), kind.scale(data.actions[rows])
    most = 1.0 if kind.kind == "discrete" else np.inf
    some = evenly(len(rows), NOISE_ROWS)
    before, root = None, None
    if behaviour.factor is not None:
        before, root = behaviour.factor(features[some]), _root_of_covariance(likelihood, data)
    guess = Guess(space, features)
    found = {}
    for group in space.tested:
        factors = None
        if columns is not None:
            replaced = guess.replacing(columns[group], features)
            other = behaviour.mean(replaced)
            if before is not None and behaviour.factor is not None:
                factors = before - behaviour.factor(replaced[some])
        else:
            without = guess.without(space.groups[group].indices)
            other = _mean(space, without @ theta, features)
            if before is not None and root is not None:
                factors = before - mean_factors(space, without @ theta, without @ root, features[some])
        size = kind.change(expected, other, scale)
        found[group] = effect_of_change((expected - other)[some], size, factors, behaviour.spread, most)
    return found


# -- Curves: the mean action while one feature changes and the others stay as they were logged.

CURVE_ROWS, CURVE_POINTS, FEW_VALUES = 120, 25, 12
"""Rows whose other features are kept, points of a curve, and values up to which a feature has no curve but points."""

MOST_RUG = 100


@dataclass(frozen=True)
class EffectCurve:
    """What the agent does on average while one feature takes each of some values, and the other features stay as logged.

    Parameters
    ----------
    feature, group : str
        What changes, and the group that it is tested with.
    values : tuple of float
        Where the curve is known; of a category 0, 1, 2, … for its `levels`.
    actions : tuple of str
        The labels or the components of the action.
    mean, low, high : tuple of tuple of float
        For each action its probability or its mean at the values, and the ends of the 95 % interval (NaN if unknown).
    observed : tuple of float
        Values that were logged.
    levels : tuple of str
        The names of the values, of a category.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> states = np.random.default_rng(0).normal(size=(300, 2))
    >>> actions = states[:, 0] + np.random.default_rng(1).normal(size=300)
    >>> curve = policyspace.identify(states, actions, features=["speed", "noise"]).curves()[0]
    >>> curve.feature, len(curve.values), curve.mean[0][-1] > curve.mean[0][0]
    ('speed', 25, True)
    """

    feature: str
    group: str
    values: tuple[float, ...]
    actions: tuple[str, ...]
    mean: tuple[tuple[float, ...], ...]
    low: tuple[tuple[float, ...], ...]
    high: tuple[tuple[float, ...], ...]
    observed: tuple[float, ...]
    levels: tuple[str, ...] = ()


def curves_of(make: Callable[[], Behaviour | None], space: PolicySpace, data: Sample) -> tuple[EffectCurve, ...]:
    """One for each feature of each tested group, or for each category; `make` gives the fitted policy."""
    columns = space.group_columns()
    behaviour = None if columns is None else make()
    if columns is None or behaviour is None:
        return ()
    found = []
    for g in space.tested:
        group, inside = space.groups[g].name, list(columns[g])
        own = data.features[:, inside]
        category = len(inside) > 1 and bool(np.isin(own, (0.0, 1.0)).all()) and own.sum(axis=1).max() <= 1
        if category:
            names = [data.names[i].removeprefix(f"{group}=") for i in inside]
            patterns = np.vstack([np.eye(len(inside)), np.zeros((int((own.sum(axis=1) == 0).any()), len(inside)))])
            levels = (*names, *["(other)"] * (len(patterns) - len(names)))
            found.append(_curve(behaviour, data, group, group, inside, patterns, np.empty(0), levels))
            continue
        for i in inside:
            seen = data.features[:, i]
            values = np.unique(seen)
            if len(values) > FEW_VALUES:
                least, most = np.quantile(seen, (0.025, 0.975)).tolist()
                values = np.linspace(least, most, CURVE_POINTS)
            found.append(_curve(behaviour, data, data.names[i], group, [i], values[:, None], seen, ()))
    return tuple(found)


def _curve(
    behaviour: Behaviour, data: Sample, feature: str, group: str, inside: list[int], patterns: np.ndarray,
    seen: np.ndarray, levels: tuple[str, ...],
) -> EffectCurve:  # fmt: skip
    rows = data.features[sampled_rows(data, CURVE_ROWS)]
    changed = np.tile(rows, (len(patterns), 1))
    changed[:, inside] = np.repeat(patterns, len(rows), axis=0)
    shape = (len(patterns), len(rows), -1)
    mean = behaviour.mean(changed).reshape(shape).mean(axis=1)
    noise = np.full(mean.shape, np.nan)
    rest = np.full((len(mean), 1), np.nan)
    if behaviour.factor is not None:
        factors = behaviour.factor(changed)
        factors = factors.reshape(*shape[:2], *factors.shape[1:]).mean(axis=1)
        noise = np.sqrt((factors**2).sum(axis=2)) * behaviour.spread
        if mean.shape[1] == 1:
            rest = noise
        elif factors.shape[1] == 1:
            rest = np.sqrt((factors**2).sum(axis=2)) * behaviour.rest_spread
        else:
            rest = np.sqrt(((factors * behaviour.spread[:, None]).sum(axis=1) ** 2).sum(axis=1))[:, None]
    names = behaviour.names
    if behaviour.rest is not None:
        mean = np.hstack([mean, 1 - mean.sum(axis=1, keepdims=True)])
        noise, names = np.hstack([noise, rest]), (*names, behaviour.rest)
    low, high = mean - 1.959964 * noise, mean + 1.959964 * noise
    if data.action_type.kind == "discrete":
        mean, low, high = (np.clip(one, 0.0, 1.0) for one in (mean, low, high))
    values = np.arange(len(patterns)) if levels else patterns[:, 0]

    def columns(table: np.ndarray) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(column) for column in table.T.tolist())

    shown = seen[evenly(len(seen), MOST_RUG)] if len(seen) else seen
    return EffectCurve(
        feature, group, tuple(values.tolist()), tuple(names), columns(mean), columns(low), columns(high),
        tuple(shown.tolist()), levels,
    )  # fmt: skip
