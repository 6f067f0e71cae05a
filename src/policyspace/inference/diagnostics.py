"""Model checks: functional form, noise distribution, serial dependence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import bdtr, ndtr

from policyspace.answer import AssumptionCheck
from policyspace.data.large.layout import STRETCH
from policyspace.data.sample import ActionType, Sample
from policyspace.families.base import PolicySpace
from policyspace.families.likelihood import Likelihood
from policyspace.inference.lean.regression import held_out_errors
from policyspace.inference.lean.rows import checked_rows, sample_of_episodes
from policyspace.inference.lean.scores import bonferroni_min_p
from policyspace.runtime import say_progress

# -- What a fitted policy leaves of the actions, row by row.

CERTAIN = 1e-2
"""Standardised residuals below which a fit counts as perfect in a row: one of labels has a chance of 1e-4 to be wrong."""


@dataclass(frozen=True)
class OrderedResiduals:
    """What the fitted policy leaves of the actions, row by row, divided by the noise that it assumes."""

    features: np.ndarray  # [n, q], standardised
    fitted: np.ndarray  # [n, k], the expected action, standardised
    values: np.ndarray  # [n, k]
    episodes: np.ndarray  # [n], one label where the data name none
    clusters: np.ndarray | None  # [n], subjects, or episodes, where the data name any
    dispersion: float  # mean square of the values: 1 where the assumed noise is right
    dispersion_error: float | None  # its standard error, where the policy says how large the noise is
    free_spread: bool  # whether actions of one mean can spread more, or less
    actions: np.ndarray  # [n, k], those that were taken

    def nondegenerate(self) -> "OrderedResiduals":
        """Those of the rows, and of the labels, of which the fit leaves something to chance."""
        open_ = np.abs(self.values) > CERTAIN
        kept, labels = open_.any(axis=1), open_.any(axis=0)
        same = {name: getattr(self, name)[kept] for name in ("features", "fitted", "episodes", "actions")}
        clusters = None if self.clusters is None else self.clusters[kept]
        return replace(self, values=self.values[kept][:, labels], clusters=clusters, **same)


def residuals_of(likelihood: Likelihood, data: Sample, rows: np.ndarray) -> OrderedResiduals | None:
    """Those of some rows, sorted by episode; None where the policy cannot say what it expects."""
    features, space = data.features[rows], likelihood.space
    left = space.residuals(likelihood.full.theta, features, data.action_type, data.actions[rows])
    if left is None:
        return None
    episodes = np.zeros(len(rows), dtype=np.int64) if data.episodes is None else data.episodes[rows]
    order = np.argsort(episodes, kind="stable")
    clusters = data.episodes if data.subjects is None else data.subjects
    return OrderedResiduals(
        _standardised(features)[order], _standardised(left.mean)[order], left.values[order], episodes[order],
        None if clusters is None else clusters[rows][order], left.dispersion, left.dispersion_error,
        data.action_type.free_spread, left.seen[order],
    )  # fmt: skip


def _standardised(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return np.clip((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0), -4.0, 4.0)


# -- p-values that tell whether residuals look like independent noise: against columns, between neighbours, within clusters.

LAGS = 4
"""Distances between rows at which correlation is looked for."""

SELDOM = 0.5
"""Changes of the action, as a share of those that independent draws would have, below which it changes rarely."""


def pairs(episodes: np.ndarray, lag: int) -> np.ndarray:
    """The rows that have another one of their episode `lag` rows later."""
    return np.flatnonzero(episodes[lag:] == episodes[:-lag])


def lag_correlation(values: np.ndarray, episodes: np.ndarray) -> float:
    """The correlation of neighbouring rows of an episode."""
    inside = pairs(episodes, 1)
    product = (values[inside] * values[inside + 1]).mean() if len(inside) else 0.0
    return float(product / max((values**2).mean(), np.finfo(float).tiny))


def lag_p(values: np.ndarray, episodes: np.ndarray) -> float:
    """Products of residuals at distance 1 … LAGS have mean zero where rows are independent decisions."""
    p_values = []
    for lag in range(1, LAGS + 1):
        inside = pairs(episodes, lag)
        if len(inside) >= 20:
            products = (values[inside] * values[inside + lag]).mean(axis=1)
            z = products.sum() / max(np.sqrt((products**2).sum()), np.finfo(float).tiny)
            p_values.append(2 * float(ndtr(-abs(z))))
    return min(1.0, len(p_values) * min(p_values)) if p_values else 1.0


def clustered_p(scores: np.ndarray, clusters: np.ndarray) -> float:
    """Sums over clusters vary no more than sums of independent rows: their squares against the sums of squares."""
    codes, inverse = np.unique(clusters, return_inverse=True)
    if not 4 <= len(codes) < len(scores):
        return 1.0
    order = np.argsort(inverse, kind="stable")
    first = np.searchsorted(inverse[order], np.arange(len(codes)))
    together = scores[order]
    sums, squares = np.add.reduceat(together, first), np.add.reduceat(together**2, first)
    excess = sums**2 - squares  # mean zero, row by row of clusters, where rows are independent
    z = excess.sum(axis=0) / np.maximum(np.sqrt((excess**2).sum(axis=0)), np.finfo(float).tiny)
    total = excess.sum(axis=0) / np.maximum(squares.sum(axis=0), np.finfo(float).tiny)
    return float(min(1.0, len(z) * ndtr(-z[total > 0]).min(initial=1.0)))


def count_label_runs(labels: np.ndarray, episodes: np.ndarray, num_columns: int) -> tuple[int, float]:
    """Stretches of equal labels within episodes, and the chance that a linear rule tells so many apart; 0 if they are short.

    N points in general position are told apart by a rule of D columns with the chance P(B < D), B being binomial of N − 1
    fair tosses (Cover 1965). An agent that stays with an action decides once a stretch, not once a row.
    """
    inside = pairs(episodes, 1)
    changes = int((labels[inside] != labels[inside + 1]).sum())
    _, counts = np.unique(labels, return_counts=True)
    usual = len(inside) * (1 - float(((counts / counts.sum()) ** 2).sum()))
    stretches = changes + len(np.unique(episodes))
    if changes > SELDOM * usual:
        return stretches, 0.0
    return stretches, float(bdtr(num_columns - 1, stretches - 1, 0.5)) if stretches > num_columns else 1.0


# -- Do the data contradict what a policy space assumes? Its form, its noise, and rows that are independent decisions.

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

    assumptions: list[AssumptionCheck]
    fed_back: frozenset[int] = frozenset()

    def broken(self, names: Sequence[str]) -> list[str]:
        """What the data contradict among these assumptions, in words."""
        return [a.message for a in self.assumptions if a.status == "violated" and a.name in names]

    def feedback(self, space: PolicySpace, adjusted: Mapping[int, float], significance: float) -> AssumptionCheck:
        """No test has its law for an input that is a sum of the agent's own noise, until there are many episodes.

        Where such an input is selected by evidence that is not overwhelming, there is no guarantee.
        """
        columns = space.group_columns() or {}
        doubtful = [
            space.groups[g].name
            for g, p in adjusted.items()
            if p <= significance < OVERWHELMING * p and self.fed_back.intersection(columns.get(g, ()))
        ]
        words = "no selected input drifts with the agent's own past noise"
        if doubtful:
            words = (
                f"{', '.join(doubtful)} may be selected only because it drifts with the agent's own past noise: there are "
                "too few episodes for any test to keep its level"
            )
        return AssumptionCheck.of("no feedback", not doubtful, words)


def check_model(likelihood: Likelihood, data: Sample, of_form: bool = True) -> ModelCheck:
    """Each assumption with whether the data contradict it; nothing can be checked of a policy that the user wrote.

    Without `of_form` the form, which costs the most, is left out: for a test that assumes none.
    """
    if data.sampling_weights:
        return unchecked("rows with sampling weights have no chance of their own")
    if data.weights is not None:
        return _of_counts(likelihood, data, of_form)
    if not data.rows.stretched:
        return unchecked("no stretch of rows that was looked at holds two different actions")
    say_progress("checking what the policy assumes")
    together = data.episodes
    if not data.in_memory and together is None:  # the sample is of stretches
        together = np.arange(data.num_rows) // STRETCH
    rows = sample_of_episodes(together, data.num_rows, MOST_ROWS)
    found = _looked_at(likelihood, data, rows, of_form)
    others = np.delete(np.arange(data.num_rows), rows) if not data.in_memory else rows[:0]
    if not found.broken(NAMES) or len(others) < len(rows):
        return found
    # A false alarm costs power, and of a large log there are rows that are new: they confirm a first alarm.
    again = _looked_at(likelihood, data, others, of_form)
    both = [
        two if one.status == "violated" else one for one, two in zip(found.assumptions, again.assumptions, strict=True)
    ]
    return ModelCheck(both, found.fed_back & again.fed_back)


def _of_counts(likelihood: Likelihood, data: Sample, of_form: bool) -> ModelCheck:
    """Rows that stand for several are as many rows, in no order, so that none is a neighbour of another."""
    assert data.weights is not None
    if (data.weights != np.round(data.weights)).any():
        return unchecked("weights that are no whole numbers are no rows")
    rows = np.repeat(np.arange(data.num_rows), data.weights.astype(np.intp))
    found = _looked_at(likelihood, data, np.random.default_rng(0).permutation(rows)[:MOST_ROWS], of_form)
    return ModelCheck([unchecked("rows that stand for several have no order").assumptions[0], *found.assumptions[1:]])


def _looked_at(likelihood: Likelihood, data: Sample, rows: np.ndarray, of_form: bool) -> ModelCheck:
    left = residuals_of(likelihood, data, rows)
    if left is None:
        return unchecked("this policy cannot say what it expects")
    whole = data.weights is not None or len(rows) == data.num_rows_total
    of = "" if whole else f" (on {len(rows)} of {data.num_rows_total} rows, whole episodes)"
    num_rows = data.num_rows
    if likelihood.full.separated:
        left = left.nondegenerate()
        num_rows = len(left.values)
        if not num_rows:
            return _of_perfect_fit(likelihood, data)
        of = f" (on the {num_rows} rows in which the fit is not perfect)"
    if likelihood.design is not None and num_rows < FEWEST_ROWS * _parameters_of_an_action(
        likelihood.space, data.action_type
    ):
        return unchecked(f"{num_rows} rows are too few for what this policy leaves over to look like its noise")
    form = _form(left, of) if of_form else AssumptionCheck.of("form", None, "not checked: the test assumes no form")
    return ModelCheck([_independence(left, of), form, _noise(left, likelihood.space, of)], _fed_back(left))


def _of_perfect_fit(likelihood: Likelihood, data: Sample) -> ModelCheck:
    """Nothing is left to look at, but actions that hardly ever change may be told apart by chance."""
    found = unchecked("the data are fitted perfectly, and nothing is left to look at")
    episodes = np.zeros(data.num_rows, dtype=np.int64) if data.episodes is None else data.episodes
    stretches, p = count_label_runs(
        data.actions, episodes, round(_parameters_of_an_action(likelihood.space, data.action_type))
    )
    if p <= DEPENDENCE_LEVEL:
        return found
    words = (
        f"rows are not independent decisions: the actions change so rarely ({stretches} stretches of equal ones) that a "
        f"linear rule may tell them apart by chance (p = {p:.2g})"
    )
    return ModelCheck([AssumptionCheck.of("independent rows", False, words, p), *found.assumptions[1:]])


def _parameters_of_an_action(space: PolicySpace, action_type: ActionType) -> float:
    """Each component of a continuous action is fitted to all rows; labels share them."""
    return space.num_parameters / action_type.num_components


def unchecked(why: str) -> ModelCheck:
    """Nothing was looked at, for this reason."""
    return ModelCheck([AssumptionCheck.of(name, None, f"not checked: {why}") for name in NAMES])


def _form(left: OrderedResiduals, of: str) -> AssumptionCheck:
    """Do powers of the inputs or of the fitted action explain what is left?"""
    x = left.features
    p = bonferroni_min_p(left.values, np.hstack([np.ones((len(x), 1)), x]), _powers_and_products(x, left.fitted))
    gain = _held_out_gain(left)
    held = p > FORM_LEVEL and gain <= max(LEAST_GAIN, 5 / len(x))
    if held:
        words = f"no flexible regression predicts what the policy leaves unexplained (p = {p:.2g}){of}"
    elif gain > LEAST_GAIN:
        words = f"flexible regressions predict {gain:.0%} of what the policy leaves over in rows they have not seen{of}"
    else:
        words = f"powers or products of the inputs explain what the policy leaves over (p = {p:.1e}){of}"
    return AssumptionCheck.of("form", held, words, p)


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


def _held_out_gain(left: OrderedResiduals) -> float:
    """The share of the residuals that the best flexible family predicts in episodes that it was not fitted to."""
    rows = slice(None, HELD_OUT_ROWS)
    if len(left.values) < 40 or not left.values[rows].std(axis=0).all():
        return 0.0
    episodes = None if left.clusters is None else left.clusters[rows]
    errors = held_out_errors(checked_rows(left.features[rows], left.values[rows], None, episodes, None, None), 0)
    return max(0.0, 1.0 - min(errors.values()))


def _noise(left: OrderedResiduals, space: PolicySpace, of: str) -> AssumptionCheck:
    """Is the spread of the actions what the policy says, and does it not depend on the state?"""
    if not left.free_spread:
        return AssumptionCheck.of("noise", True, "discrete actions have no spread beyond their probabilities")
    x, eta = left.features, left.fitted
    constant = np.ones((len(x), 1))
    p = bonferroni_min_p(left.values**2, constant, [np.hstack([eta, eta**2]), np.hstack([x, x**2])])
    held = p > NOISE_LEVEL
    words = f"the spread of the actions does not depend on the state (p = {p:.2g}){of}"
    if not held:
        words = f"the spread of the actions depends on the state (p = {p:.1e}){of}"
    if left.dispersion_error is not None:
        off = 2 * float(ndtr(-abs(left.dispersion - 1) / left.dispersion_error))
        if off <= NOISE_LEVEL:
            held, p = False, min(p, off)
            words = (
                f"the actions spread {left.dispersion:.2f} times as much (in variance) as {space.noise_source} says{of}"
            )
            if left.dispersion > 1 and space.if_wider:
                words += f": {space.if_wider}"
    return AssumptionCheck.of("noise", held, words, p)


def _independence(left: OrderedResiduals, of: str) -> AssumptionCheck:
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
    return AssumptionCheck.of("independent rows", held, words, p)


def _remedy(left: OrderedResiduals) -> str:
    """What might make rows independent: another order where a table was sorted, or the last actions as features."""
    if left.clusters is not None:
        return _habit(left)
    changes = int((left.actions[1:] != left.actions[:-1]).any(axis=1).sum())
    if changes < len(np.unique(left.actions, axis=0)) < len(left.actions) / 2:
        return f"; they are sorted by action{IF_WITHOUT_ORDER}"
    return f"{_habit(left)}{IF_WITHOUT_ORDER}"


IF_WITHOUT_ORDER = ": if their order means nothing, say so (exchangeable=True, --rows-are exchangeable)"


def _habit(left: OrderedResiduals) -> str:
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


def _fed_back(left: OrderedResiduals) -> frozenset[int]:
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
