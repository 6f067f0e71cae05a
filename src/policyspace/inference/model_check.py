"""Do the data contradict what a policy space assumes? Its form, its noise, and rows that are independent decisions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from policyspace.answer import Assumption
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.large.samples import STRETCH
from policyspace.fits.base import Likelihood
from policyspace.inference.lean.held_out import held_out_errors
from policyspace.inference.lean.rows import checked_rows, sample_of_episodes
from policyspace.inference.residual_tests import (
    clustered_p,
    lag_correlation,
    lag_p,
    pairs,
    smallest_p,
    stretches_told_apart,
)
from policyspace.inference.residuals import Residuals, residuals_of
from policyspace.policies.base import PolicySpace
from policyspace.progress import say_progress

NAMES = ("independent rows", "form", "noise")

MOST_ROWS = 20_000
"""Rows that are looked at: whole episodes, evenly spaced."""

FORM_LEVEL = 0.05
NOISE_LEVEL = 0.02
DEPENDENCE_LEVEL = 0.02
"""p-values below which an assumption counts as contradicted: lenient, for then a test without assumptions decides."""

LEAST_GAIN = 0.01
"""A share of the residuals below which what flexible regressions predict does not matter."""

HELD_OUT_ROWS = 6000
"""Rows in which flexible regressions are compared."""

VISIBLE = 0.05
"""A correlation of neighbouring rows that is worth telling."""

FEWEST_ROWS = 8
"""Rows a parameter of a linear policy below which its residuals are made by the fit more than by the agent."""


MOST_LAGS = 4
"""Last actions that are tried as an explanation of rows that depend on each other."""

FORGETS = 10.0
"""An input that forgets its past fewer times than this in an episode counts as drifting."""

OVERWHELMING = 10.0
"""A p-value that stays below the level when multiplied by this is no matter of the law's tails."""

MANY_EPISODES = 40
"""Episodes from which the sum of drifting scores has nearly its normal law."""


@dataclass(frozen=True)
class ModelCheck:
    """What was found: each assumption, and the feature columns that drift with the agent's own noise over few episodes."""

    assumptions: list[Assumption]
    fed_back: frozenset[int] = frozenset()

    def broken(self, names: Sequence[str]) -> list[str]:
        """What the data contradict among these assumptions, in words."""
        return [a.words for a in self.assumptions if a.held is False and a.name in names]

    def feedback(self, space: PolicySpace, adjusted: Mapping[int, float], significance: float) -> Assumption:
        """No test has its law for an input that is a sum of the agent's own noise, until there are many episodes.

        Where such an input is selected by evidence that is not overwhelming, nothing is promised.
        """
        columns = space.group_columns() or {}
        doubtful = [
            space.groups[g].name
            for g, p in adjusted.items()
            if p <= significance < OVERWHELMING * p and self.fed_back.intersection(columns.get(g, ()))
        ]
        words = "nothing was selected on account of the agent's own past noise"
        if doubtful:
            words = (
                f"{', '.join(doubtful)} may be selected only because it drifts with the agent's own past noise: there are "
                "too few episodes for any test to have its law"
            )
        return Assumption("no feedback", not doubtful, float(len(doubtful)), words)


def check_model(likelihood: Likelihood, data: Demonstrations) -> ModelCheck:
    """Each assumption with whether the data contradict it; nothing can be checked of a policy that the user wrote."""
    if data.weights is not None:
        return unchecked("rows that stand for several have no order and no chance of their own")
    if data.whole is not None and not data.whole.stretched:
        return unchecked("no stretch of rows that was looked at holds two different actions")
    say_progress("checking what the policy assumes")
    together = data.episodes
    if data.whole is not None and together is None:  # the sample is of stretches
        together = np.arange(data.num_pairs) // STRETCH
    rows = sample_of_episodes(together, data.num_pairs, MOST_ROWS)
    found = _looked_at(likelihood, data, rows)
    others = np.delete(np.arange(data.num_pairs), rows) if data.whole is not None else rows[:0]
    if not found.broken(NAMES) or len(others) < len(rows):
        return found
    # A false alarm costs power, and of a large log there are rows that are new: they confirm a first alarm.
    again = _looked_at(likelihood, data, others)
    both = [two if one.held is False else one for one, two in zip(found.assumptions, again.assumptions, strict=True)]
    return ModelCheck(both, found.fed_back & again.fed_back)


def _looked_at(likelihood: Likelihood, data: Demonstrations, rows: np.ndarray) -> ModelCheck:
    left = residuals_of(likelihood, data, rows)
    if left is None:
        return unchecked("this policy cannot say what it expects")
    of = "" if len(rows) == data.num_logged else f" (on {len(rows)} of {data.num_logged} rows, whole episodes)"
    num_rows = data.num_pairs
    if likelihood.full.separated:
        left = left.uncertain()
        num_rows = len(left.values)
        if not num_rows:
            return _of_perfect_fit(likelihood, data)
        of = f" (on the {num_rows} rows in which the fit is not perfect)"
    if likelihood.design is not None and num_rows < FEWEST_ROWS * _parameters_of_an_action(likelihood):
        return unchecked(f"{num_rows} rows are too few for what this policy leaves over to look like its noise")
    return ModelCheck([_independence(left, of), _form(left, of), _noise(left, of)], _fed_back(left))


def _of_perfect_fit(likelihood: Likelihood, data: Demonstrations) -> ModelCheck:
    """Nothing is left to look at, but actions that hardly ever change may be told apart by chance."""
    found = unchecked("the data are fitted perfectly, and nothing is left to look at")
    episodes = np.zeros(data.num_pairs, dtype=np.int64) if data.episodes is None else data.episodes
    stretches, p = stretches_told_apart(data.actions, episodes, round(_parameters_of_an_action(likelihood)))
    if p <= DEPENDENCE_LEVEL:
        return found
    words = (
        f"rows are not independent decisions: the actions change so rarely ({stretches} stretches of equal ones) that a "
        f"linear rule may tell them apart by chance (p = {p:.2g})"
    )
    return ModelCheck([Assumption("independent rows", False, p, words), *found.assumptions[1:]])


def _parameters_of_an_action(likelihood: Likelihood) -> float:
    """Each component of a continuous action is fitted to all rows; labels share them."""
    space = likelihood.space
    return space.num_parameters if space.discrete else space.num_parameters / len(space.action_names)


def unchecked(why: str) -> ModelCheck:
    """Nothing was looked at, for this reason."""
    return ModelCheck([Assumption(name, None, None, f"not checked: {why}") for name in NAMES])


def _form(left: Residuals, of: str) -> Assumption:
    """Do powers of the inputs or of the fitted action explain what is left?"""
    x = left.features
    p = smallest_p(left.values, np.hstack([np.ones((len(x), 1)), x]), _powers_and_products(x, left.fitted))
    gain = _held_out_gain(left)
    held = p > FORM_LEVEL and gain <= max(LEAST_GAIN, 5 / len(x))
    if held:
        words = f"no flexible regression predicts what the policy leaves unexplained (p = {p:.2g}){of}"
    elif gain > LEAST_GAIN:
        words = f"flexible regressions predict {gain:.0%} of what the policy leaves over in rows they have not seen{of}"
    else:
        words = f"powers or products of the inputs explain what the policy leaves over (p = {p:.1e}){of}"
    return Assumption("form", held, p, words)


def _powers_and_products(x: np.ndarray, fitted: np.ndarray) -> Iterator[np.ndarray]:
    """Powers of the fitted action, squares of the inputs, and where there are rows enough their products."""
    yield np.hstack([fitted**2, fitted**3])
    yield x**2
    n, q = x.shape
    if 1 < q <= 20 and n > 20 * q**2:
        products, ends = np.empty((n, q * (q - 1) // 2)), np.cumsum(np.arange(q - 1, 0, -1))
        for i, columns in enumerate(np.split(products, ends[:-1], axis=1)):
            np.multiply(x[:, i : i + 1], x[:, i + 1 :], out=columns)
        yield products


def _held_out_gain(left: Residuals) -> float:
    """The share of the residuals that the best flexible family predicts in episodes that it was not fitted to."""
    rows = slice(None, HELD_OUT_ROWS)
    if len(left.values) < 40 or not left.values[rows].std(axis=0).all():
        return 0.0
    episodes = None if left.clusters is None else left.clusters[rows]
    errors = held_out_errors(checked_rows(left.features[rows], left.values[rows], None, episodes, None, None), 0)
    return max(0.0, 1.0 - min(errors.values()))


def _noise(left: Residuals, of: str) -> Assumption:
    """Is the spread of the actions what the policy says, and does it not depend on the state?"""
    if left.discrete:
        return Assumption("noise", True, None, "labels have no spread beyond their probabilities")
    x, eta = left.features, left.fitted
    constant = np.ones((len(x), 1))
    p = smallest_p(left.values**2, constant, [np.hstack([eta, eta**2]), np.hstack([x, x**2])])
    held = p > NOISE_LEVEL
    words = f"the spread of the actions does not depend on the state (p = {p:.2g}){of}"
    if not held:
        words = f"the spread of the actions depends on the state (p = {p:.1e}){of}"
    if left.noise_is_given:
        off = 2 * float(ndtr(-abs(left.dispersion - 1) * np.sqrt(left.values.size / 2)))
        if off <= NOISE_LEVEL:
            held, p = False, min(p, off)
            words = (
                f"the actions spread {left.dispersion:.2f} times as much (in variance) as the given covariance says{of}"
            )
    return Assumption("noise", held, p, words)


def _independence(left: Residuals, of: str) -> Assumption:
    """Are neighbouring rows, and rows of one episode, as different from each other as independent decisions are?"""
    found = [lag_p(left.values, left.episodes)]
    scores = np.hstack([left.values, *(left.values * x[:, None] for x in left.features.T)])
    blocks = np.arange(len(scores)) // max(25, len(scores) // 200)
    found.append(clustered_p(scores, blocks if left.clusters is None else left.clusters))
    p = min(1.0, len(found) * min(found))
    held = p > DEPENDENCE_LEVEL
    lag = lag_correlation(left.values, left.episodes)
    words = f"what is left of neighbouring rows is uncorrelated ({lag:.2f}; p = {p:.2g}){of}"
    if not held:
        seen = f"what is left of neighbouring rows correlates {lag:.2f}"
        if abs(lag) < VISIBLE:
            seen = "what is left of rows that belong together is too alike"
        words = f"rows are not independent decisions: {seen} (p = {max(p, 1e-99):.1e}){of}{_remedy(left)}"
    return Assumption("independent rows", held, p, words)


def _remedy(left: Residuals) -> str:
    """What might make rows independent: another order where a table was sorted, or the last actions as features."""
    if left.clusters is not None:
        return _habit(left)
    changes = int((left.actions[1:] != left.actions[:-1]).any(axis=1).sum())
    if left.discrete and changes < len(np.unique(left.actions, axis=0)):
        return "; they are sorted by action: if their order means nothing, shuffle them"
    return f"{_habit(left)}; if their order means nothing, as in a table that was sorted, shuffle them"


def _habit(left: Residuals) -> str:
    """How many of the agent's last actions explain what neighbouring rows have in common, where a few do."""
    for lags in range(1, MOST_LAGS + 1):
        rows = np.flatnonzero(left.episodes[lags:] == left.episodes[:-lags]) + lags
        past = np.hstack([np.ones((len(rows), 1)), *(left.actions[rows - lag] for lag in range(1, lags + 1))])
        if len(rows) < 20 + past.shape[1]:
            return ""
        rest = left.values[rows] - past @ np.linalg.lstsq(past, left.values[rows], rcond=None)[0]
        if lag_p(rest, left.episodes[rows]) > DEPENDENCE_LEVEL:
            return f"; --lags {lags} would take the agent's own last actions into account"
    return ""


def _fed_back(left: Residuals) -> frozenset[int]:
    """The inputs that hardly forget within an episode, and move with the noise of the actions.

    Their scores are a martingale with the law of a unit root, not a normal one, until there are many episodes.
    """
    inside = pairs(left.episodes, 1)
    num_episodes = len(np.unique(left.episodes))
    if len(inside) < 20 or num_episodes >= max(MANY_EPISODES, 4 * left.features.shape[1]):
        return frozenset()
    now, after = left.features[inside], left.features[inside + 1]
    persistence = (now * after).mean(axis=0) / np.maximum((now**2).mean(axis=0), np.finfo(float).tiny)
    forgets = len(left.features) / num_episodes * (1 - persistence)  # time constants in an episode
    innovation = after - persistence * now
    moved = innovation.T @ left.values[inside]
    size = np.sqrt((innovation**2).sum(axis=0))[:, None] * np.sqrt((left.values[inside] ** 2).sum(axis=0))
    z = np.abs(moved / np.maximum(size, np.finfo(float).tiny)).max(axis=1) * np.sqrt(len(inside))
    return frozenset(np.flatnonzero((forgets < FORGETS) & (z > 4.0)).tolist())
