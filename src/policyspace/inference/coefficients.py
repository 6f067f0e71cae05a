"""The numbers that users of regressions expect: a table of weights, and how well the policy fits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from scipy.special import chdtri, ndtr, stdtr, stdtrit

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits.base import Likelihood, LinearLikelihood
from policyspace.fits.fisher import as_linear_likelihood, raw_inverse
from policyspace.fits.sandwich import clustered_covariance, num_clusters
from policyspace.inference.calibration_bins import CalibrationBin, calibration_bins
from policyspace.inference.intervals import ends_of, parameter_names
from policyspace.table import Table

COLUMNS = ("parameter", "estimate", "std. error", "interval", "odds ratio", "p", "standardised")


FEW_CLUSTERS = 100
"""Clusters below which standard errors by cluster, which are those of R's `vcovCL`, are noticeably too small."""


@dataclass(frozen=True)
class Coefficient:
    """One weight; `odds_ratio` is exp(estimate) of a choice, NaN for amounts.

    `standardised` is the estimate for one standard deviation of the feature (and of a continuous action), `behavioural`
    how much the action changes when the feature's group is replaced by what the others predict of it.
    """

    parameter: str
    group: str
    estimate: float
    standard_error: float
    lower: float
    upper: float
    odds_ratio: float
    p_value: float
    standardised: float
    behavioural: float


@dataclass(frozen=True)
class FitNumbers:
    """How well the policy fits; `null_log_likelihood` is that of an agent that ignores all features."""

    num_pairs: int
    num_parameters: int  # those of an estimated covariance too
    log_likelihood: float
    null_log_likelihood: float
    equal_shares_log_likelihood: float  # of labels: that of an agent that chooses all of them equally often
    mcfadden: float  # ρ² = 1 − log L / log L of the null, of labels
    aic: float
    bic: float
    hit_rate: float  # of labels: how often the most probable one was chosen
    explained: float  # of amounts: the share of their variance


@final
@dataclass(frozen=True)
class Coefficients:
    """Every weight, the fit, and how often labels were chosen beside how often they were expected."""

    rows: list[Coefficient]
    fit: FitNumbers
    calibration: list[CalibrationBin]
    errors: str  # what the standard errors are of
    interval: str  # Wald or profile, with its level
    sample: str = ""  # of a log that is read in passes, the rows by which hits, calibration and spreads are judged

    def table(self) -> Table:
        """The weights as words."""
        choices = any(row.odds_ratio == row.odds_ratio for row in self.rows)
        columns = [name for name in COLUMNS if choices or name != "odds ratio"]
        return Table(columns, [[_cell(row, name) for name in columns] for row in self.rows])

    def notes(self) -> list[str]:
        """The fit in sentences."""
        fit = self.fit
        lines = [f"Standard errors: {self.errors}. Intervals: {self.interval}."]
        likelihoods = f"Log-likelihood {fit.log_likelihood:.4f}; {fit.null_log_likelihood:.4f} without any feature"
        if self.calibration:
            lines.append(f"{likelihoods}, {fit.equal_shares_log_likelihood:.4f} with equal shares.")
            lines.append(f"McFadden's ρ² {fit.mcfadden:.4f}; hit rate {fit.hit_rate:.1%}.")
        else:
            lines.append(f"{likelihoods}. Explained variance {fit.explained:.1%}.")
        if self.sample:
            lines.append(f"Standardised weights, hits, calibration and explained variance are those of {self.sample}.")
        counted = f"{fit.num_pairs} pairs, {fit.num_parameters} parameters"
        return [*lines, f"AIC {fit.aic:.4f}, BIC {fit.bic:.4f} ({counted})."]

    def __str__(self) -> str:
        return "\n".join([self.table().text(ruled=True), "", *self.notes()])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; what JSON cannot hold becomes null."""

        def plain(item: Any) -> dict[str, Any]:
            return {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in vars(item).items()}

        return {
            "coefficients": [plain(row) for row in self.rows],
            "fit": plain(self.fit),
            "calibration": [plain(one) for one in self.calibration],
            "standard_errors": self.errors,
            "intervals": self.interval,
        }


def coefficients_of(
    likelihood: Likelihood,
    data: Demonstrations,
    changes: Mapping[str, float],
    significance: float = 0.05,
    interval: Literal["wald", "profile"] = "wald",
    errors: Literal["auto", "model", "clustered"] = "auto",
) -> Coefficients:
    """The table of a linear policy; `changes` are the behavioural effects of its groups."""
    linear = as_linear_likelihood(likelihood, "coefficients are")
    space = linear.space
    if interval not in ("wald", "profile") or errors not in ("auto", "model", "clustered"):
        raise InputError(
            f"intervals are 'wald' or 'profile' and errors 'auto', 'model' or 'clustered', found '{interval}' and "
            f"'{errors}': choose among these."
        )
    clustered = errors == "clustered" or (errors == "auto" and (data.subjects is not None or data.sampling_weights))
    if clustered and data.whole is not None:
        raise InputError(
            f"standard errors by cluster need all rows in memory, found {data.num_logged} that are read in passes: take "
            "those of the model (errors='model')."
        )
    if interval == "profile" and (clustered or likelihood.penalised):
        raise InputError(
            "a profile interval is that of a plain likelihood, found subjects, sampling weights or Firth's penalty: take "
            "Wald's intervals."
        )
    spread, degrees, source = _standard_errors(linear, data, clustered)
    names, owner = parameter_names(space), {i: g.name for g in space.groups for i in g.indices}
    theta, infinite = linear.sharpened()[0], likelihood.diverging & (not likelihood.penalised)
    estimate = np.where(infinite, np.copysign(np.inf, theta), theta)
    spread = np.where(infinite, np.nan, spread)
    half = (stdtrit(degrees, 1 - significance / 2) if degrees < np.inf else np.sqrt(chdtri(1, significance))) * spread
    ends = (
        ends_of(likelihood, significance)
        if interval == "profile"
        else lambda i: (theta[i] - half[i], theta[i] + half[i])
    )
    z = np.abs((theta - space.fixed) / spread)
    p_values = 2 * (stdtr(degrees, -z) if degrees < np.inf else ndtr(-z))
    unit = _units(space, data)
    rows = [
        Coefficient(
            names[i], owner[i], float(estimate[i]), float(spread[i]), float(ends(i)[0]), float(ends(i)[1]),
            float(np.exp(np.minimum(estimate[i], 700.0))) if space.discrete else np.nan, float(p_values[i]),
            float(estimate[i] * unit[i]), changes.get(owner[i], np.nan),
        )
        for i in range(space.num_parameters)
    ]  # fmt: skip
    expected = space.expected_action(theta, data.features)
    assert expected is not None
    calibration = calibration_bins(expected, data) if space.discrete else []
    level = f"{'profile likelihood' if interval == 'profile' else 'Wald'}, {1 - significance:.0%}"
    looked = f"{data.num_pairs} of {data.num_logged} rows" if data.whole is not None else ""
    return Coefficients(rows, _fit_numbers(linear, data, theta), calibration, source, level, looked)


def _standard_errors(
    likelihood: LinearLikelihood, data: Demonstrations, clustered: bool
) -> tuple[np.ndarray, float, str]:
    """Of every weight [d], the degrees of freedom of their law (infinite: the normal one), and what they are of."""
    if clustered:
        size = num_clusters(data)
        what = f"{size} subjects" if data.subjects is not None else "rows"
        holds = "which hold where rows of a cluster depend on each other too"
        if size < FEW_CLUSTERS:
            holds += (
                f"; with fewer than {FEW_CLUSTERS} clusters they are too small, for which the test 'robust' makes up"
            )
        return np.sqrt(np.diag(clustered_covariance(likelihood, data))), size - 1.0, f"by cluster ({what}), {holds}"
    inverse, hidden = raw_inverse(likelihood.sharpened()[1] / likelihood.total_weight, likelihood.design)
    spare, degrees = likelihood.total_weight, np.inf
    if getattr(likelihood.space, "estimated", False):
        spare -= likelihood.num_free(likelihood.space.everything) / len(likelihood.space.action_names)
        degrees = spare
    variance = np.where(hidden, np.nan, np.diag(inverse)) / spare
    penalised = ", at the weights of Firth's penalty" if likelihood.penalised else ""
    return np.sqrt(variance), degrees, f"of the model{penalised}, which hold if rows are independent decisions"


def _units(space: Any, data: Demonstrations) -> np.ndarray:
    """What a weight is multiplied by to be that of standardised features and amounts [d]; NaN for the constant."""
    weights = np.ones(data.num_pairs) if data.weights is None else data.weights
    spread = np.asarray(space.spread(data.features, weights))
    of_action = np.ones(1) if data.discrete else data.actions.std(axis=0)
    return spread / np.repeat(of_action, len(spread) // len(of_action))


def _fit_numbers(likelihood: LinearLikelihood, data: Demonstrations, theta: np.ndarray) -> FitNumbers:
    space = likelihood.space
    expected = space.expected_action(theta, data.features)
    assert expected is not None
    weights = np.ones(data.num_pairs) if data.weights is None else data.weights
    num_free, total = likelihood.num_free(space.everything), likelihood.total_weight
    best, null, equal, hits, explained = likelihood.full.log_likelihood, np.nan, np.nan, np.nan, np.nan
    if space.discrete:
        counts = np.bincount(data.actions, weights, len(data.action_names))
        if data.whole is None:
            log_probs = np.asarray(space.log_prob(theta, data.features, data.actions))
            best = float(weights @ log_probs)  # without Firth's penalty
        else:
            assert data.whole.label_weights is not None
            counts = data.whole.label_weights
        null = float(counts[counts > 0] @ np.log(counts[counts > 0] / total))
        equal, there = -total * float(np.log(len(counts))), _num_available(space, data)
        if (there < len(counts)).any():
            equal = -float(weights @ np.log(there))
        if space.offset or not getattr(space, "constants", True) or (there < len(counts)).any():
            alone = likelihood.fit(frozenset()).theta
            null = float(weights @ np.asarray(space.log_prob(alone, data.features, data.actions)))
        probabilities = np.column_stack([expected, 1 - expected.sum(axis=1)])
        hits = float(weights @ (probabilities.argmax(axis=1) == data.actions) / weights.sum())
    else:
        null = likelihood.fit(frozenset()).log_likelihood
        centred = data.actions - np.average(data.actions, axis=0, weights=weights)
        left = (weights @ (data.actions - expected) ** 2).sum()
        explained = 1 - float(left / (weights @ centred**2).sum())
        k = data.actions.shape[1]
        num_free += k * (k + 1) // 2 if getattr(space, "estimated", False) else 0
    return FitNumbers(
        data.counted_pairs, num_free, best, null, equal, 1 - best / null if space.discrete else np.nan,
        2 * num_free - 2 * best, num_free * float(np.log(total)) - 2 * best, hits, explained,
    )  # fmt: skip


def _num_available(space: Any, data: Demonstrations) -> np.ndarray:
    """How many labels can be chosen in each row [n]."""
    theta, rows = np.zeros(space.num_parameters), np.zeros(data.num_pairs, dtype=np.intp)
    each = [space.log_prob(theta, data.features, rows + a) for a in range(len(data.action_names))]
    return np.isfinite(each).sum(axis=0)


def _cell(row: Coefficient, column: str) -> str:
    words = {
        "parameter": row.parameter,
        "estimate": _number(row.estimate),
        "std. error": _number(row.standard_error),
        "interval": f"[{_number(row.lower)}, {_number(row.upper)}]",
        "odds ratio": _number(row.odds_ratio),
        "p": f"{row.p_value:.4f}" if row.p_value >= 1e-4 else f"{row.p_value:.1e}",
        "standardised": _number(row.standardised),
    }
    return words[column]


def _number(value: float) -> str:
    return "–" if value != value else "∞" if value == np.inf else "−∞" if value == -np.inf else f"{value:.4g}"
