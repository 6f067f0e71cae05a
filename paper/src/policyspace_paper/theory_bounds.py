"""`theory`: the bounds of Section 4 against simulation, and sample sizes proven, planned and seen."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np
from scipy.stats import binom

from policyspace import theory as bounds
from policyspace.data.sample import Sample
from policyspace.families.covariance import smallest_eigenvalue
from policyspace.families.gaussian import GaussianLinear
from policyspace.families.likelihood import ChiSquare
from policyspace.families.registry import likelihood_of
from policyspace.families.softmax import SoftmaxLinear
from policyspace.inference.parametric import WilksTest
from policyspace.inference.selection import each_group_alone
from policyspace.report.figures import AMBER, DASHED, GREEN, INK, SERIES, WRITTEN, new_plot
from policyspace.runtime import single_threaded_blas
from policyspace_paper.estimates import Mean, Rate, groups, in_order, tidy
from policyspace_paper.execution import Experiment, Record, RunSetting, RunSize
from policyspace_paper.panels import Claim, ClaimPart, Panel
from policyspace_paper.plots import Plot, draw, legend_below, logarithmic, mark_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# -- Simulated data sets of agents that are known.

RUNS = 1
"""The paper simulates no bound: `--runs` multiplies the simulated data sets below."""

FEATURES = ("a", "b", "c")
WEIGHTS: "dict[Family, np.ndarray]" = {
    "gaussian": np.array([[0.2, 0.5, -0.3, 0.0]]),
    "boltzmann": np.array([[0.2, 0.9, -0.5, 0.0], [-0.1, 0.3, 0.6, 0.0]]),
}
"""A constant and three features on [−1, 1], of which the agent does not control the last."""
COVARIANCE = 0.5

PAIRS = (100, 1000)
FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Of the number of pairs that is planned."""
CONCENTRATION_LEVEL, CORRECTNESS_LEVEL = 0.1, 0.05


Family = Literal["gaussian", "boltzmann"]


class TheorySetting(RunSetting, total=False):
    """A batch of simulated data sets of one agent: how near the fit is, or how often Rule 2 is right."""

    kind: Literal["concentration", "correctness"]
    family: Family
    num_runs: int
    num_pairs: int  # of concentration
    factor: float  # of correctness: of the number of pairs that is planned


class TheoryResult(TypedDict, total=False):
    """Of concentration: shares of their bounds. Of correctness: how often what was found, and what was foretold."""

    shares: dict[str, list[float]]
    num_pairs: int
    exact: int
    found: dict[str, int]
    controlled: list[str]
    predicted: dict[str, float]
    bound: float
    planned_pairs: float
    proven_pairs: float
    wrong_when_proven: float


Records = list[Record[TheorySetting, TheoryResult]]


def settings(size: RunSize) -> Iterable[TheorySetting]:
    """Data sets in batches with a seed each; a multiple of them with `runs`. The paper's settings change nothing here."""
    batches, num_runs = (1, 40) if size.quick else (5, 100)
    seeds = range(batches * size.num_runs(RUNS, 1))
    for family in WEIGHTS:
        for n in PAIRS:
            for seed in seeds:
                yield {
                    "kind": "concentration", "num_pairs": n, "significance": CONCENTRATION_LEVEL, "family": family,
                    "num_runs": num_runs, "seed": seed,
                }  # fmt: skip
        for factor in (0.5, 1.0) if size.quick else FACTORS:
            for seed in seeds:
                yield {
                    "kind": "correctness", "factor": factor, "significance": CORRECTNESS_LEVEL, "family": family,
                    "num_runs": num_runs, "seed": seed,
                }  # fmt: skip


@single_threaded_blas()
def run(setting: TheorySetting) -> TheoryResult:
    """One batch of simulated data sets of one agent."""
    return _concentration(setting) if setting["kind"] == "concentration" else _correctness(setting)


def agent(family: Family) -> tuple[GaussianLinear | SoftmaxLinear, np.ndarray]:
    """The policy space of a family, and θ*."""
    if family == "gaussian":
        return GaussianLinear(FEATURES, covariance=COVARIANCE), WEIGHTS[family].ravel()
    return SoftmaxLinear(FEATURES, ("left", "right", "stay")), WEIGHTS[family].ravel()


@cache
def expectation(family: Family) -> bounds.Assessment:
    """What theory and planning say when nothing is unknown: θ*, its gaps and λ_min over a fine grid of states.

    Actions weighted by their probabilities make θ* the best fit, and λ_i/n of every group 2·KL(θ*‖Θ_i).
    """
    space, theta = agent(family)
    middle = (np.arange(12) + 0.5) / 6 - 1
    states = np.stack(np.meshgrid(middle, middle, middle), axis=-1).reshape(-1, 3)
    if family == "gaussian":
        data = Sample(states, np.asarray(space.natural(theta, states)), FEATURES, space.action_names)
    else:
        codes = np.tile(np.arange(3), len(states))
        rows = np.repeat(states, 3, axis=0)
        weights = np.exp(np.asarray(space.log_prob(theta, rows, codes)))
        data = Sample(rows, codes, FEATURES, space.action_names, weights=weights)
    return bounds.assess_likelihood(likelihood_of(space, data), data, CORRECTNESS_LEVEL)


def _simulate(space: GaussianLinear | SoftmaxLinear, theta: np.ndarray, n: int, rng: np.random.Generator) -> Sample:
    states = rng.uniform(-1, 1, size=(n, 3))
    return Sample(states, space.sample(rng, theta, states), FEATURES, space.action_names)


def _concentration(setting: TheorySetting) -> TheoryResult:
    """Everything that Theorem 4.1 and Lemma A.3 bound, as a share of its bound, one number a data set."""
    space, theta = agent(setting["family"])
    n, d, delta = setting["num_pairs"], space.num_parameters, setting["significance"]
    shares: dict[str, list[float]] = {"score": [], "parameters": [], "expected": [], "empirical": []}
    for r in range(setting["num_runs"]):
        data = _simulate(space, theta, n, np.random.default_rng([setting["seed"], r]))
        states, actions, full = data.features, data.actions, likelihood_of(space, data).full
        scale = bounds.subgaussian_scale(space, bounds.plug_in_feature_bound(space, states))
        # The theorem needs the smallest eigenvalue on the way from θ* to θ̂.
        way = [theta + t * (full.theta - theta) for t in (0.0, 0.5, 1.0)]
        smallest = min(smallest_eigenvalue(bounds.empirical_fisher(space, t, states)) for t in way)
        score = np.asarray(space.score(theta, states, actions)).mean(axis=0)
        eta, fitted = space.natural(theta, states), space.natural(full.theta, states)
        gained = np.sum((fitted - eta) * space.cumulant_gradient(eta), axis=1)
        expected = float(np.mean(space.cumulant(fitted) - space.cumulant(eta) - gained))
        empirical = (full.log_likelihood - float(np.sum(space.log_prob(theta, states, actions)))) / n
        most = bounds.likelihood_bound(n, d, scale, smallest, delta)
        shares["score"].append(float(np.linalg.norm(score)) / bounds.score_bound(n, d, scale, delta))
        error = float(np.linalg.norm(full.theta - theta))
        shares["parameters"].append(error / bounds.parameter_bound(n, d, scale, smallest, delta))
        shares["expected"].append(float(expected / most))
        shares["empirical"].append(float(empirical / most))
    return {"shares": shares}


def _correctness(setting: TheorySetting) -> TheoryResult:
    """Rule 2 on data sets of the planned size times a factor, beside what is foretold for that size."""
    space, theta = agent(setting["family"])
    foretold, delta = expectation(setting["family"]), setting["significance"]
    assert foretold.typical_pairs is not None and foretold.setting is not None
    n = round(setting["factor"] * foretold.typical_pairs)
    level = delta / 2 / (foretold.num_tests - len(foretold.gaps))  # as planned: half of δ for each kind of error
    found = dict.fromkeys(FEATURES, 0)
    exact = 0
    for r in range(setting["num_runs"]):
        data = _simulate(space, theta, n, np.random.default_rng([setting["seed"], r]))
        tests = each_group_alone(WilksTest(likelihood_of(space, data)), level).tests
        selected = {space.groups[g].name for g, test in tests.items() if test.p_value <= level}
        exact += selected == set(foretold.gaps)
        for name in selected:
            found[name] += 1
    law, size = ChiSquare(), len(space.row_names)
    power = {name: law.power(2 * n * gap, level, size) for name, gap in foretold.gaps.items()}
    # From some n on Theorem 4.2 proves Rule 2 right: P(Î ≠ I*) there, with its c(1), by the law of λ.
    proven = bounds.pairs_for_correctness(delta, foretold.setting)
    critical = proven * bounds.best_critical_value(proven, foretold.setting)[0]
    false = (foretold.num_tests - len(foretold.gaps)) * law.p_value(critical, size)
    missed = sum(law.cumulative(critical, 2 * proven * gap, size) for gap in foretold.gaps.values())
    return {
        "num_pairs": n,
        "exact": exact,
        "found": found,
        "controlled": sorted(foretold.gaps),
        "predicted": {name: power.get(name, level) for name in FEATURES},
        "bound": bounds.best_critical_value(n, foretold.setting)[1],
        "planned_pairs": foretold.typical_pairs,
        "proven_pairs": proven,
        "wrong_when_proven": false + missed,
    }


# -- Records of simulated data sets → how loose the bounds are, and sample sizes proven, planned and seen.

QUANTITIES = {
    "score": "‖g(θ̂)‖",
    "parameters": "‖θ̂ − θ*‖",
    "expected": "ℓ(θ̂) − ℓ(θ*)",
    "empirical": "ℓ̂(θ*) − ℓ̂(θ̂)",
}
FAMILIES = {"gaussian": "Gaussian", "boltzmann": "Boltzmann"}
COLOURS = {"gaussian": GREEN, "boltzmann": AMBER}
FEWEST_SETS = 100
"""Simulated data sets below which a share near δ cannot be told from δ."""
NO_SETTINGS = (
    f"At least {FEWEST_SETS} data sets of each. The paper simulates none of this, so it has no settings to be taken "
    "literally."
)
CONCENTRATION = Claim(
    "With probability 1 − δ the maximum-likelihood fit is as near to the truth as Theorem 4.1 says.",
    "A bound holds unless it is surely broken more often than δ; the claim holds if all do, and partly if some do. "
    f"{NO_SETTINGS}",
    FEWEST_SETS,
    stated=False,
)
SIZES = Claim(
    "From some number of pairs on Rule 2 finds exactly what is controlled with probability 1 − δ (Theorem 4.2).",
    "It holds if at the n that is proven the chance of an error, by the law of λ, is at most δ, and if at no simulated "
    f"n the share of errors is surely above its bound; it does not if either fails. {NO_SETTINGS}",
    FEWEST_SETS,
    stated=False,
)


@dataclass(frozen=True)
class Looseness:
    """One bound that holds with probability 1 − δ: how often it was broken, and how far it lies above what it bounds."""

    family: str
    num_pairs: int
    quantity: str
    broken: Rate
    factor: Mean  # the bound divided by the 1 − δ quantile of what it bounds; ends by the order statistics around that


@dataclass(frozen=True)
class Size:
    """Rule 2 at one number of pairs: P(Î ≠ I*) simulated, foretold by the non-central χ² and bounded by Theorem 4.2."""

    family: str
    num_pairs: int
    wrong: Rate
    foretold: float
    bound: float
    planned_pairs: float
    proven_pairs: float
    wrong_when_proven: float  # P(Î ≠ I*) at that many pairs, by the law of λ
    found: list[Rate]  # of each feature: how often it was found; nominal is how often that was foretold


def analyse(records: Records) -> list[Panel]:
    """Concentration, sample sizes, power: a panel for each that has records."""
    loose, sizes = looseness(records), sample_sizes(records)
    panels = [concentration_panel(loose)] if loose else []
    return [*panels, sizes_panel(sizes), power_panel(sizes)] if sizes else panels


def looseness(records: Records) -> list[Looseness]:
    """Every bound of Theorem 4.1 and Lemma A.3, by family and number of pairs."""
    found = []
    frame = tidy(
        records,
        lambda r: [
            {**r.setting, "quantity": quantity, "share": r.result["shares"][quantity]} for quantity in QUANTITIES
        ],
        kind="concentration",
    )
    frame = in_order(frame, "family", FAMILIES, "num_pairs")
    for (family, n, quantity), own in groups(frame, "family", "num_pairs", "quantity").items():
        shares, delta = own["share"].explode().to_numpy(), own["significance"][0]
        broken = Rate(int((shares > 1).sum()), len(shares), f"{FAMILIES[family]}, {n}", delta)
        places = np.clip(binom.ppf([0.975, 0.025], len(shares), 1 - delta), 0, len(shares) - 1).astype(int)
        ends = np.sort(shares)[places]
        factor = float(1 / np.quantile(shares, 1 - delta))
        interval = Mean(factor, None, len(shares), (float(1 / ends[0]), float(1 / ends[1])))
        found.append(Looseness(family, n, quantity, broken, interval))
    return found


def sample_sizes(records: Records) -> list[Size]:
    """Every simulated number of pairs, by family."""
    found = []
    frame = in_order(tidy(records, kind="correctness"), "family", FAMILIES, "factor")
    for (family, _), own in groups(frame, "family", "factor").items():
        first, total = own.row(0, named=True), int(own["num_runs"].sum())
        n, predicted = first["num_pairs"], first["predicted"]
        hits = {name: int(own["found"].struct.field(name).sum()) for name in predicted}
        right = [p if name in first["controlled"] else 1 - p for name, p in predicted.items()]
        found.append(
            Size(
                family, n, Rate(total - int(own["exact"].sum()), total, f"{FAMILIES[family]}, {n}", first["significance"]),
                1 - float(np.prod(right)),  # as if the tests of different features were independent, which they nearly are
                first["bound"], first["planned_pairs"], first["proven_pairs"], first["wrong_when_proven"],
                [Rate(hits[name], total, name, p) for name, p in predicted.items()],
            )
        )  # fmt: skip
    return found


def pairs_seen(sizes: list[Size], wanted: float) -> float | None:
    """The n at which the simulated P(Î ≠ I*) falls to the wanted one, by a line in log n between two sizes."""
    ordered = sorted(sizes, key=lambda s: s.num_pairs)
    for before, after in pairwise(ordered):
        high, low = before.wrong.value, after.wrong.value
        if high > wanted >= low:
            share = (high - wanted) / (high - low)
            return float(np.exp((1 - share) * np.log(before.num_pairs) + share * np.log(after.num_pairs)))
    return float(ordered[0].num_pairs) if ordered[0].wrong.value <= wanted else None


def concentration_panel(found: list[Looseness]) -> Panel:
    """Holds where no bound is broken more often than δ, by the 95 % interval; partly where some are; else it does not."""
    least, most = min(f.factor.value for f in found), max(f.factor.value for f in found)
    return Panel(
        "theory-concentration",
        "How loose Theorem 4.1 is",
        CONCENTRATION,
        f"At δ = {found[0].broken.nominal:g} the {len(found)} bounds were broken {sum(f.broken.count for f in found)} "
        f"times in {sum(f.broken.num_runs for f in found)}; they lie {_number(least)} to {_number(most)} times above the "
        "quantile that they bound.",
        draw_looseness(found),
        ("policy", "pairs", "bounded", "broken (95 %)", "bound / quantile"),
        [
            (FAMILIES[f.family], str(f.num_pairs), QUANTITIES[f.quantity], f.broken.words, _number(f.factor.value))
            for f in found
        ],
        {
            f"{f.family}, {f.num_pairs}, {f.quantity}": {"broken": f.broken.count, "factor": f.factor.value}
            for f in found
        },
        [ClaimPart("", f.broken.verdict != "too often") for f in found],
        min(f.broken.num_runs for f in found),
    )


def sizes_panel(sizes: list[Size]) -> Panel:
    """Holds where P(Î ≠ I*) is at most δ at the n that is proven, and no simulated one lies above its bound."""
    contradicted = [s for s in sizes if s.wrong.low > s.bound or s.wrong_when_proven > s.wrong.nominal]
    void, worst = sum(s.bound >= 1 for s in sizes), max(1e-300, *(s.wrong_when_proven for s in sizes))
    words, numbers = [], {}
    for family, own in _by_family(sizes).items():
        seen, planned, proven = pairs_seen(own, own[0].wrong.nominal), own[0].planned_pairs, own[0].proven_pairs
        numbers[family] = {"seen": seen, "planned": planned, "proven": proven}
        enough = f"{_number(seen)} pairs do" if seen else "no number of pairs that was tried does"
        words.append(
            f"{FAMILIES[family]}: in simulation {enough}, planned are {_number(planned)}, proven {_number(proven)}"
        )
    return Panel(
        "theory-sizes",
        "Sample sizes: proven, planned, seen",
        SIZES,
        f"{'; '.join(words)}. At the proven n the chance of an error is below {worst:.0e}; at {void} of the {len(sizes)} "
        "simulated sizes the bound is above 1 and says nothing.",
        draw_sizes(sizes),
        ("policy", "pairs", "Î ≠ I* (95 %)", "foretold by χ²", "Theorem 4.2"),
        [
            (FAMILIES[s.family], str(s.num_pairs), s.wrong.words, f"{s.foretold:.3f}", f"≤ {_number(s.bound)}")
            for s in sizes
        ],
        {"pairs": numbers, "contradicted": len(contradicted)},
        [ClaimPart("", not contradicted)],
        min(s.wrong.num_runs for s in sizes),
    )


def power_panel(sizes: list[Size]) -> Panel:
    """How many intervals of the simulated power hold the foretold one: 95 % would, were planning exact."""
    rows = [(s, rate) for s in sizes for rate in s.found]
    inside = sum(rate.verdict == "as promised" for _, rate in rows)
    off = max(abs(rate.value - rate.nominal) for _, rate in rows)
    return Panel(
        "theory-power",
        "Power as planned",
        Claim("Does the non-central χ² that planning uses foretell how often each feature is found?"),
        f"{inside} of {len(rows)} intervals hold what was foretold; the largest difference is {off:.3f}.",
        draw_powers(sizes),
        ("policy", "pairs", "feature", "found (95 %)", "foretold"),
        [(FAMILIES[s.family], str(s.num_pairs), rate.name, rate.words, f"{rate.nominal:.3f}") for s, rate in rows],
        {"inside": inside, "of": len(rows), "largest difference": off},
    )


def draw_looseness(found: list[Looseness]) -> "Figure":
    """How many times above the quantile each bound lies, on a logarithmic axis; 1 is a bound that is just right."""
    figure, axes = new_plot(3.4, "Bounds of Theorem 4.1 against simulation")
    for family, title in FAMILIES.items():
        for place, n in enumerate(sorted({f.num_pairs for f in found})):
            own = [f for f in found if f.family == family and f.num_pairs == n]
            heights = [list(QUANTITIES).index(f.quantity) + 0.16 * (2 * place - 1) for f in own]
            factors = [f.factor.value for f in own]
            ends = np.maximum([[f.factor.value - f.factor.low, f.factor.high - f.factor.value] for f in own], 0.0).T
            axes.errorbar(factors, heights, xerr=ends, fmt="oDs^"[place % 4], color=COLOURS[family],
                          label=f"{title}, {n} pairs", markersize=5, capsize=2)  # fmt: skip
    axes.axvline(1, color=INK, linewidth=1, linestyle=DASHED)
    axes.set_xscale("log")
    axes.set_yticks(range(len(QUANTITIES)), [WRITTEN.get(words, words) for words in QUANTITIES.values()])
    axes.set_ylim(len(QUANTITIES) - 0.5, -0.5)
    axes.set_xlabel("bound divided by the quantile that it bounds")
    legend_below(figure)
    return figure


def draw_sizes(sizes: list[Size]) -> "Figure":
    """Left, P(Î ≠ I*) against the number of pairs; right, the number from which on it is seen, planned and proven small."""
    foretold = {(s.family, s.num_pairs): Mean(s.foretold, None, 1) for s in sizes}
    delta, tried = sizes[0].wrong.nominal, [s.num_pairs for s in sizes]

    def shares(axes: "Axes") -> None:
        axes.axhline(delta, color=INK, linewidth=1, linestyle=DASHED)
        logarithmic(axes, [n for n in (50, 100, 200, 500, 1000, 2000, 5000) if min(tried) <= n <= max(tried)])
        axes.set_ylim(bottom=-0.02)
        axes.set(xlabel=f"pairs (lines: foretold by χ²; dashed: δ = {delta:g})", ylabel="P(Î ≠ I*)")

    def needed(axes: "Axes") -> None:
        for row, (family, own) in enumerate(_by_family(sizes).items()):
            numbers = pairs_seen(own, delta), own[0].planned_pairs, own[0].proven_pairs
            known = [(n, place + 0.24 * row - 0.12) for place, n in enumerate(numbers) if n is not None]
            axes.plot(*zip(*known, strict=True), mark_of(family, COLOURS), color=COLOURS[family], markersize=7)
            for n, height in known:
                power = int(np.log10(n))
                words = f"{n:.0f}" if power < 5 else rf"${n / 10.0**power:.1f}\times10^{{{power}}}$"
                axes.annotate(words, (n, height), xytext=(7, 0), textcoords="offset points", va="center", fontsize=8.5)
        axes.set_xscale("log")
        axes.set_xlim(right=300 * max(s.proven_pairs for s in sizes))
        axes.set_yticks(range(3), ["seen", "planned", "proven"])
        axes.set_ylim(2.5, -0.5)
        axes.set_xlabel("pairs")

    wrong = {(s.family, s.num_pairs): s.wrong for s in sizes}
    plots = [
        Plot(wrong, "how often another set is found", "points", foretold, shares),
        Plot({}, "pairs from which on it is at most δ", more=needed),
    ]
    return draw(
        "When Rule 2 finds exactly what is controlled", plots, COLOURS, FAMILIES, height=4.0, width=9.6, xscale="linear",
        sharey=False, width_ratios=(3, 2),
    )  # fmt: skip


def draw_powers(sizes: list[Size]) -> "Figure":
    """A plot a family: how often each feature was found with so many pairs, and the line of how often that was foretold."""
    plots = []
    for family, own in _by_family(sizes).items():
        found = {(rate.name, size.num_pairs): rate for size in own for rate in size.found}
        foretold = {key: Mean(rate.nominal, None, 1) for key, rate in found.items()}
        plots.append(Plot(found, FAMILIES[family], "points", foretold))
    colours = dict(zip(dict.fromkeys(rate.name for size in sizes for rate in size.found), SERIES, strict=False))
    labels = {name: f"feature {name}" for name in colours}
    return draw(
        "Power, planned and seen", plots, colours, labels, height=3.8, width=4.3 * len(plots) + 1, shares=True,
        xlabel="pairs (lines: foretold by χ²)", ylabel="share of data sets in which it was found",
    )  # fmt: skip


def _by_family(sizes: list[Size]) -> dict[str, list[Size]]:
    found = {family: [s for s in sizes if s.family == family] for family in FAMILIES}
    return {family: own for family, own in found.items() if own}


def _number(value: float) -> str:
    return f"{value:.0f}" if 10 <= value < 1e5 else f"{value:.2g}"


EXPERIMENT = Experiment("theory", "Bounds, proven and simulated", settings, run, analyse)
