"""Coefficient tables with Wald, profile-likelihood and clustered intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, singledispatch
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from scipy.special import chdtri, ndtr, stdtr, stdtrit

from policyspace.data.sample import Sample
from policyspace.display import TextTable, floating, latex
from policyspace.errors import InputError
from policyspace.families.base import ExponentialFamily
from policyspace.families.concave import ConcaveLikelihood
from policyspace.families.covariance import (
    clustered_covariance,
    inverse_information,
    inverse_of,
    num_clusters,
    raw_inverse,
)
from policyspace.families.gaussian import GaussianLikelihood
from policyspace.families.likelihood import Likelihood, LinearLikelihood
from policyspace.families.newton import maximise
from policyspace.inference.base import check_share
from policyspace.runtime import counted, object_at
from policyspace.safe_io import JSON

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

# -- Is what a policy expects as often as it says what happens? Probabilities in bins, beside how often labels were chosen.

MOST_BINS = 10


@dataclass(frozen=True)
class CalibrationBin:
    """One label in rows where it was about equally probable."""

    label: str
    expected: float
    chosen: float
    weight: float  # pairs in the bin


def calibration_bins(expected: np.ndarray, data: Sample) -> list[CalibrationBin]:
    """For every label but, of two, the reference: bins of about equal weight by its probability [n, k]."""
    weights = np.ones(data.num_rows) if data.weights is None else data.weights
    probabilities = np.column_stack([expected, 1 - expected.sum(axis=1)])
    found = []
    for a, label in enumerate(data.action_names[: 1 if len(data.action_names) == 2 else None]):
        values, order = np.unique(probabilities[:, a].round(12), return_inverse=True)
        below = np.cumsum(np.bincount(order, weights)) - np.bincount(order, weights) / 2
        bins = np.minimum((below / weights.sum() * MOST_BINS).astype(np.intp), MOST_BINS - 1)[order]
        for one in np.unique(bins).tolist():
            inside = bins == one
            size = weights[inside].sum()
            if size > 0:
                share = weights[inside] @ (data.actions[inside] == a) / size
                mean = weights[inside] @ values[order[inside]] / size
                found.append(CalibrationBin(label, float(mean), float(share), float(size)))
    return found


# -- Where the profile likelihood of a weight has fallen by c/2: all ends of all weights side by side.

FARTHEST = 500.0
"""A weight of a standardised feature beyond which nothing changes any more: the interval is open there."""

MOST_PASSES = 30
"""Passes over the rows for the ends that are followed together; what has not settled by then is followed alone."""

SETTLED = 1e-6
"""How near √λ must come to √c; λ of an interval's end is then right to six digits."""


def profile_ends(likelihood: ConcaveLikelihood, significance: float) -> Callable[[int], tuple[float, float]]:
    """θ_i ↦ both ends of {x : λ(θ_i = x) ≤ c}; λ(x) is that of the hypothesis θ_i = x, all other weights free."""
    profile = Profile(likelihood, float(np.sqrt(likelihood.law.critical(significance, 1))))
    space, design = likelihood.space, likelihood.design
    offset, q = int(space.intercept), len(space.column_names)
    constant = np.concatenate([np.zeros(offset, dtype=bool), design.constant])
    open_ = (profile.hidden & ~likelihood.diverging) | constant[np.arange(space.num_parameters) % q]
    tested = [i for g in space.tested for i in space.groups[g].indices if not open_[i]]
    together = {} if likelihood.diverging.any() else profile.together(tested)
    units = np.eye(space.num_parameters).reshape(-1, *space.weights(profile.best).shape)
    raw = design.to_raw(units).reshape(space.num_parameters, -1).T  # θ as it is = raw · θ of standardised features

    def ends(i: int) -> tuple[float, float]:
        if open_[raw[i] != 0].any():
            return -np.inf, np.inf
        size = float(np.abs(raw[i]).max())
        lower, upper = (together.get((i, side), np.nan) for side in (-1, 1))
        if np.isnan([lower, upper]).any():
            lower, upper = profile.alone(i, raw[i] / size)
        best = float(raw[i] @ profile.best)
        return best + lower * size, best + upper * size

    return ends


class Profile:
    """√λ(x) of each weight, in coordinates of standardised features; distances are from θ̂_i."""

    def __init__(self, likelihood: ConcaveLikelihood, root: float) -> None:
        self.likelihood, self.rows, self.root = likelihood, likelihood.rows, root
        weights = likelihood.space.weights(likelihood.full.theta)
        self.best = likelihood.design.to_standardised(weights).ravel()
        self.inverse, self.hidden = inverse_information(self.rows.hessian(self.best))

    def together(self, indices: list[int]) -> dict[tuple[int, int], float]:
        """The distances at which √λ = √c, by passes over the rows that serve all ends at once; NaN if not settled.

        √λ(x) is nearly linear, so x takes secant steps while the other weights take steps with the inverse Hessian of
        θ̂, from which coordinate i is eliminated: H_rr⁻¹g = (H⁻¹g)_r − H⁻¹_ri (H⁻¹g)_i / H⁻¹_ii.
        """
        ends = [(i, side) for i in indices for side in (-1, 1)]
        if not ends:
            return {}
        which, sides = np.array(ends).T
        path = self.inverse[which] / self.inverse[which, which][:, None]
        distance = sides * self.root * np.sqrt(self.inverse[which, which])
        theta = self.best + distance[:, None] * path
        before, root_before = np.zeros(len(ends)), np.zeros(len(ends))
        settled, active = np.full(len(ends), np.nan), np.arange(len(ends))
        for _ in range(MOST_PASSES):
            values, gradients = self.rows.evaluate(theta[active])
            mine, columns = which[active], np.arange(len(active))
            gradients[columns, mine] = 0.0
            steps = gradients @ self.inverse
            steps -= steps[columns, mine][:, None] * path[active]
            gain = 0.5 * np.einsum("ed,ed->e", gradients, steps)
            found = np.sqrt(np.maximum(2 * (self.likelihood.full.log_likelihood - values - gain), 0.0))
            done = (np.abs(found - self.root) < SETTLED) & (gain < 1e-9)
            settled[active[done]] = distance[active[done]]
            moved = self._secant(distance[active], before[active], found, root_before[active])
            before[active], root_before[active] = distance[active], found
            theta[active] += steps + (moved - distance[active])[:, None] * path[active]
            distance[active] = moved
            lost = ~(np.isfinite(theta[active]).all(axis=1) & (sides[active] * moved > 0) & (np.abs(moved) < FARTHEST))
            active = active[~done & ~lost]
            if not len(active):
                break
        return dict(zip(ends, settled.tolist(), strict=True))

    def _secant(self, x: np.ndarray, before: np.ndarray, found: np.ndarray, root_before: np.ndarray) -> np.ndarray:
        """Where the line through the last two points of (x, √λ) reaches √c; where they coincide, through θ̂."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (found - root_before) / (x - before)
            slope = np.where(np.abs(x - before) > 1e-9 * np.abs(x), slope, found / x)
            return x + (self.root - found) / slope

    def alone(self, i: int, row: np.ndarray) -> tuple[float, float]:
        """Both distances of Σ_j row_j θ_j by full fits: for separated data, for what did not settle, and for constants,
        which are sums where features are centred. θ = change · u, where u has that sum at place i.
        """
        size = len(self.best)
        change, back = np.eye(size), np.eye(size)
        change[i], back[i] = -row / row[i], row
        change[i, i] = 1 / row[i]
        best, inverse, free = back @ self.best, back @ self.inverse @ back.T, np.arange(size) != i
        path = inverse[:, i] / inverse[i, i] if inverse[i, i] > 0 else np.eye(size)[i]
        # Where the data are separated other weights have run off: no straight path from θ̂ is a good start.
        path = np.eye(size)[i] if self.likelihood.diverging.any() else path

        def at(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self.rows.at(change @ u)
            return value, gradient @ change

        def hessian(u: np.ndarray) -> np.ndarray:
            return change.T @ self.rows.hessian(change @ u) @ change

        @cache
        def excess(distance: float) -> float:
            """√λ(x) − √c."""
            if not distance:
                return -self.root
            with np.errstate(over="ignore", invalid="ignore"):  # far out on a separated weight; such steps are undone
                fitted = maximise(at, hessian, best + distance * path, free)
            return float(np.sqrt(max(2 * (self.likelihood.full.log_likelihood - fitted.value), 0.0))) - self.root

        if self.likelihood.diverging[i]:
            # Open on the side to which θ_i runs off, and on the other too unless zero can be excluded.
            toward = _end(excess, -best[i], farthest=abs(best[i])) if best[i] else np.inf
            lower, upper = sorted((toward, float(np.copysign(np.inf, -toward))))
            return lower, upper
        step = min(self.root * float(np.sqrt(inverse[i, i])), 5.0)
        return _end(excess, -step, FARTHEST), _end(excess, step, FARTHEST)


def _end(excess: Callable[[float], float], step: float, farthest: float) -> float:
    """The distance at which √λ(x) = √c, doubling the step until it is passed; infinite where that does not happen."""
    from scipy.optimize import brentq  # slow to import, and seldom needed

    inside, outside = 0.0, step
    while excess(outside) < 0:
        inside, outside = outside, 2 * outside
        if abs(outside) > farthest:
            return float(np.copysign(np.inf, step))
    return float(brentq(excess, *sorted((inside, outside)), xtol=1e-6 * abs(step)))


# -- Likelihood-based confidence intervals: "no evidence" becomes "smaller than x".


@dataclass(frozen=True)
class Interval:
    """{x : λ(θ_i = x) ≤ c} of one parameter; an end is infinite where the likelihood never falls off."""

    parameter: str
    group: str
    fixed: float  # what the parameter is worth when it is not controlled
    estimate: float
    lower: float
    upper: float

    @property
    def bound(self) -> float:
        """How far, at most, the parameter is from the value of an agent that does not control it."""
        return max(abs(self.lower - self.fixed), abs(self.upper - self.fixed))


def profile_intervals(likelihood: Likelihood, significance: float = 0.05) -> list[Interval]:
    """{x : 2(min_{θ_i=x} ℓ̂ − ℓ̂(θ̂)) ≤ c} for all tested coefficients, each holding θ_i with probability 1 − `significance`.

    Closed for the Gaussian policy: the normal interval, or Student's where the covariance is estimated.

    Parameters
    ----------
    likelihood : Likelihood
        Of a linear policy space, see `likelihood_of`.
    significance : float
        The chance that one interval misses its coefficient.

    Returns
    -------
    list of Interval
        One for each tested coefficient.

    Examples
    --------
    >>> import policyspace
    >>> sample = policyspace.Sample([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.5], names=["speed"])
    >>> space = policyspace.GaussianLinear(["speed"], covariance=0.1)
    >>> found = policyspace.profile_intervals(policyspace.likelihood_of(space, sample))
    >>> [(one.group, round(one.lower, 2), round(one.upper, 2)) for one in found]  # 1.25 ± 1.96 √(0.1 / 2)
    [('speed', 0.81, 1.69)]
    """
    check_share(significance, "the significance")
    space = likelihood.space.as_linear("profile intervals")
    ends = ends_of(likelihood, significance)
    owner = {i: space.groups[g].name for g in space.tested for i in space.groups[g].indices}
    names, theta = parameter_names(space), likelihood.full.theta
    return [
        Interval(names[i], owner[i], float(space.fixed[i]), float(theta[i]), *ends(i))
        for i in counted(sorted(owner), "profiling parameters")
    ]


def parameter_names(space: ExponentialFamily) -> list[str]:
    """θ by name: the feature, and where there are several rows of weights the action too."""
    columns, rows = space.column_names, space.row_names
    return [f"{column}[{row}]" if len(rows) > 1 else column for row in rows for column in columns]


@singledispatch
def ends_of(likelihood: Likelihood, significance: float) -> Callable[[int], tuple[float, float]]:
    """θ_i ↦ both ends of its interval, by the kind of the likelihood."""
    raise InputError(
        f"profile intervals are for plain likelihoods of linear policies, found {type(likelihood).__name__}."
    )


ends_of.register(ConcaveLikelihood)(profile_ends)


@ends_of.register
def student_ends(likelihood: GaussianLikelihood, significance: float) -> Callable[[int], tuple[float, float]]:
    """θ̂_i ± c·s_i, c of the normal law or of Student's: where θ_i = x fixed, λ(x) is a function of ((x − θ̂_i)/s_i)²."""
    inverse, hidden = inverse_of(likelihood)
    spare = likelihood.total_weight
    quantile = float(np.sqrt(chdtri(1, significance)))
    if likelihood.space.estimated:
        spare -= likelihood.num_free(likelihood.space.full_support) / len(likelihood.space.row_names)
        quantile = float(stdtrit(spare, 1 - significance / 2))
    half = quantile * np.sqrt(np.diag(inverse) / spare)
    half[hidden] = np.inf
    theta = likelihood.full.theta
    return lambda i: (float(theta[i] - half[i]), float(theta[i] + half[i]))


# -- The numbers that users of regressions expect: a table of weights, and how well the policy fits.

RATIOS = {"logit": "odds ratio", "log": "rate ratio"}
"""What exp(estimate) is, by the link between the mean of the action and the weights."""

COLUMNS = ("parameter", "estimate", "std. error", "interval", "odds ratio", "p", "standardised")


FEW_CLUSTERS = 100
"""Clusters below which standard errors by cluster, which are those of R's `vcovCL`, are noticeably too small."""


@dataclass(frozen=True)
class Coefficient:
    """One weight; `odds_ratio` is exp(estimate) of a choice, of counts their rate ratio, NaN for amounts.

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

    num_rows: int
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
class CoefficientTable:
    """Every weight, the fit, and how often labels were chosen beside how often they were expected."""

    rows: list[Coefficient]
    fit: FitNumbers
    calibration: list[CalibrationBin]
    errors: str  # what the standard errors are of
    interval: str  # Wald or profile, with its level
    sample: str = ""  # of a log that is read in passes, the rows by which hits, calibration and spreads are judged
    ratio: str = "odds ratio"  # what exp(estimate) is

    def table(self) -> TextTable:
        """The weights as words."""
        choices = any(row.odds_ratio == row.odds_ratio for row in self.rows)
        columns = [name for name in COLUMNS if choices or name != "odds ratio"]
        titles = [self.ratio if name == "odds ratio" else name for name in columns]
        return TextTable(titles, [[_cell(row, name) for name in columns] for row in self.rows])

    def notes(self) -> list[str]:
        """The fit in sentences."""
        fit = self.fit
        lines = [f"Standard errors: {self.errors}. Intervals: {self.interval}."]
        likelihoods = f"Log-likelihood {fit.log_likelihood:.4f}; {fit.null_log_likelihood:.4f} without any feature"
        if self.calibration:
            lines.append(f"{likelihoods}, {fit.equal_shares_log_likelihood:.4f} with equal shares.")
            lines.append(f"McFadden's ρ² {fit.mcfadden:.4f}; hit rate {fit.hit_rate:.1%}.")
        else:
            what = "deviance" if fit.mcfadden == fit.mcfadden else "variance"
            lines.append(f"{likelihoods}. Explained {what} {fit.explained:.1%}.")
        if self.sample:
            lines.append(f"Standardised weights, hits, calibration and explained variance are those of {self.sample}.")
        counted = f"{fit.num_rows} rows, {fit.num_parameters} parameters"
        return [*lines, f"AIC {fit.aic:.4f}, BIC {fit.bic:.4f} ({counted})."]

    def __str__(self) -> str:
        return "\n".join([self.table().text(ruled=True), "", *self.notes()])

    def to_frame(self) -> "polars.DataFrame":
        """One row a weight with the fields of `Coefficient`."""
        from polars import DataFrame

        return DataFrame([vars(row) for row in self.rows])

    def to_latex(
        self,
        *others: "CoefficientTable",
        names: Sequence[str] = (),
        caption: str | None = None,
        label: str | None = None,
    ) -> str:
        r"""Estimates with stars, standard errors below them, this model and others side by side; needs the package booktabs.

        Parameters
        ----------
        *others : CoefficientTable
            Further models; a parameter that a model does not have is left empty.
        names : sequence of str
            Of the models; by default (1), (2), ….
        caption, label : str, optional
            Put it into a `table` that floats.

        Returns
        -------
        str
            The table.

        Examples
        --------
        >>> import numpy as np
        >>> import policyspace
        >>> states = np.random.default_rng(0).normal(size=(300, 1))
        >>> actions = states[:, 0] + np.random.default_rng(1).normal(size=300)
        >>> weights = policyspace.identify(states, actions, features=["speed"], policy="gaussian").coefficients()
        >>> print(weights.to_latex().splitlines()[6])
        speed & 0.9469*** \\
        """
        models = (self, *others)
        titles = list(names) or [f"({i})" for i in range(1, len(models) + 1)]
        if len(titles) != len(models):
            raise InputError(f"names must be one for each of {len(models)} models, found {len(titles)}: name each.")
        parameters = list(dict.fromkeys(row.parameter for model in models for row in model.rows))
        known = [{row.parameter: row for row in model.rows} for model in models]
        lines = [f"\\begin{{tabular}}{{l{'r' * len(models)}}}", r"\toprule"]
        lines += ["& " + " & ".join(map(latex, titles)) + r" \\", r"\midrule"]
        for name in parameters:
            found = [rows.get(name) for rows in known]
            stars = ["*" * sum(row.p_value < level for level in (0.05, 0.01, 0.001)) if row else "" for row in found]
            cells = [latex(_number(row.estimate)) + mark if row else "" for row, mark in zip(found, stars, strict=True)]
            errors = [f"({latex(_number(row.standard_error))})" if row else "" for row in found]
            lines += [" & ".join([latex(name), *cells]) + r" \\", " & ".join(["", *errors]) + r" \\"]
        ends = [
            ("rows", [f"{model.fit.num_rows}" for model in models]),
            ("log-likelihood", [latex(f"{model.fit.log_likelihood:.2f}") for model in models]),
            ("AIC", [latex(f"{model.fit.aic:.2f}") for model in models]),
        ]
        lines += [r"\midrule", *(" & ".join([name, *cells]) + r" \\" for name, cells in ends)]
        lines += [r"\bottomrule", r"\end{tabular}"]
        return floating(lines, caption, label) if caption is not None or label is not None else "\n".join(lines) + "\n"

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw every estimate with its interval into the axes, or into those of a new figure of pyplot; return them."""
        axes: Axes = object_at("policyspace.report.figures:coefficient_axes")(self, ax)
        return axes

    def to_dict(self) -> dict[str, JSON]:
        """Everything as plain data; what JSON cannot hold becomes null."""

        def plain(item: object) -> dict[str, JSON]:
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
    data: Sample,
    changes: Mapping[str, float],
    significance: float = 0.05,
    interval: Literal["wald", "profile"] = "wald",
    errors: Literal["auto", "model", "clustered"] = "auto",
) -> CoefficientTable:
    """The table of a linear policy; `changes` are the behavioural effects of its groups."""
    linear = likelihood.as_linear("coefficients are")
    space = linear.space
    if interval not in ("wald", "profile") or errors not in ("auto", "model", "clustered"):
        raise InputError(
            f"intervals are 'wald' or 'profile' and errors 'auto', 'model' or 'clustered', found '{interval}' and "
            f"'{errors}': choose among these."
        )
    clustered = errors == "clustered" or (errors == "auto" and (data.subjects is not None or data.sampling_weights))
    if clustered and not data.in_memory:
        raise InputError(
            f"standard errors by cluster need all rows in memory, found {data.num_rows_total} that are read in passes: take "
            "those of the model (errors='model')."
        )
    if interval == "profile" and (clustered or likelihood.penalised):
        raise InputError(
            "a profile interval is that of a plain likelihood, found subjects, sampling weights or Firth's penalty: take "
            "Wald's intervals."
        )
    spread, degrees, source = _standard_errors(linear, data, clustered)
    names, owner = parameter_names(space), {i: g.name for g in space.groups for i in g.indices}
    theta, infinite = linear.refined_estimate()[0], likelihood.diverging & (not likelihood.penalised)
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
    unit, ratio = _units(space, data), RATIOS.get(space.link, "")
    rows = [
        Coefficient(
            names[i], owner[i], float(estimate[i]), float(spread[i]), float(ends(i)[0]), float(ends(i)[1]),
            float(np.exp(np.minimum(estimate[i], 700.0))) if ratio else np.nan, float(p_values[i]),
            float(estimate[i] * unit[i]), changes.get(owner[i], np.nan),
        )
        for i in range(space.num_parameters)
    ]  # fmt: skip
    expected = space.mean(theta, data.features)
    assert expected is not None
    calibration = calibration_bins(expected, data) if space.link == "logit" else []
    level = f"{'profile likelihood' if interval == 'profile' else 'Wald'}, {1 - significance:.0%}"
    looked = f"{data.num_rows} of {data.num_rows_total} rows" if not data.in_memory else ""
    found = space.fit_measures(linear, theta, data)
    num_free = linear.num_free(space.full_support) + found.num_noise_parameters
    best, total = found.log_likelihood, linear.total_weight
    fit = FitNumbers(
        data.num_observed, num_free, best, found.null_log_likelihood, found.equal_shares_log_likelihood, found.mcfadden,
        2 * num_free - 2 * best, num_free * float(np.log(total)) - 2 * best, found.hit_rate, found.explained,
    )  # fmt: skip
    return CoefficientTable(rows, fit, calibration, source, level, looked, ratio or RATIOS["logit"])


def _standard_errors(likelihood: LinearLikelihood, data: Sample, clustered: bool) -> tuple[np.ndarray, float, str]:
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
    inverse, hidden = raw_inverse(likelihood.refined_estimate()[1] / likelihood.total_weight, likelihood.design)
    spare, degrees = likelihood.total_weight, np.inf
    if getattr(likelihood.space, "estimated", False):
        spare -= likelihood.num_free(likelihood.space.full_support) / len(likelihood.space.action_names)
        degrees = spare
    variance = np.where(hidden, np.nan, np.diag(inverse)) / spare
    penalised = ", at the weights of Firth's penalty" if likelihood.penalised else ""
    return np.sqrt(variance), degrees, f"of the model{penalised}, which hold if rows are independent decisions"


def _units(space: Any, data: Sample) -> np.ndarray:
    """What a weight is multiplied by to be that of standardised features and amounts [d]; NaN for the constant."""
    weights = np.ones(data.num_rows) if data.weights is None else data.weights
    spread = np.asarray(space.spread(data.features, weights))
    if space.link != "identity":
        return spread
    scale = data.action_type.scale(data.actions)
    return spread / np.repeat(scale, len(spread) // len(scale))


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
