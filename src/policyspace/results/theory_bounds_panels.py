"""Records of simulated data sets → how loose the bounds are, and sample sizes proven, planned and seen."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from policyspace.experiments.records import Record
from policyspace.report.estimates import Mean, Rate
from policyspace.report.plots import draw_lines, draw_points, legend_below, logarithmic, mark_of
from policyspace.report.style import AMBER, DASHED, GREEN, INK, SERIES, WRITTEN, bare, new_figure, new_plot
from policyspace.results.frames import groups, in_order, tidy
from policyspace.results.judging import Part, verdict_of
from policyspace.results.panel import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Bounds, proven and simulated"
QUANTITIES = {
    "score": "‖g(θ̂)‖",
    "parameters": "‖θ̂ − θ*‖",
    "expected": "ℓ(θ̂) − ℓ(θ*)",
    "empirical": "ℓ̂(θ*) − ℓ̂(θ̂)",
}
FAMILIES = {"gaussian": "Gaussian", "boltzmann": "Boltzmann"}
COLOURS = {"gaussian": GREEN, "boltzmann": AMBER}
NO_SETTINGS = "The paper simulates none of this, so it has no settings to be taken literally."
FEWEST_SETS = 100
"""Simulated data sets below which a share near δ cannot be told from δ."""


@dataclass(frozen=True)
class Looseness:
    """One bound that holds with probability 1 − δ: how often it was broken, and how far it lies above what it bounds."""

    family: str
    num_pairs: int
    quantity: str
    broken: Rate
    factor: float  # the bound divided by the 1 − δ quantile of what it bounds
    interval: tuple[float, float]  # of that factor, by the order statistics around the quantile


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


def analyse(records: list[Record]) -> list[Panel]:
    """Concentration, sample sizes, power: a panel for each that has records."""
    loose, sizes = looseness(records), sample_sizes(records)
    panels = [concentration_panel(loose)] if loose else []
    return [*panels, sizes_panel(sizes), power_panel(sizes)] if sizes else panels


def looseness(records: list[Record]) -> list[Looseness]:
    """Every bound of Theorem 4.1 and Lemma A.3, by family and number of pairs."""

    def rows(record: Record) -> list[dict[str, Any]]:
        shares = record.result["shares"]
        return [record.setting | {"quantity": quantity, "share": shares[quantity]} for quantity in QUANTITIES]

    found = []
    frame = in_order(tidy(records, rows, kind="concentration"), "family", FAMILIES, "num_pairs")
    for (family, n, quantity), own in groups(frame, "family", "num_pairs", "quantity").items():
        shares, delta = own["share"].explode().to_numpy(), own["significance"][0]
        broken = Rate(int((shares > 1).sum()), len(shares), f"{FAMILIES[family]}, {n}", delta)
        ends = np.sort(shares)[
            np.clip(binom.ppf([0.975, 0.025], len(shares), 1 - delta), 0, len(shares) - 1).astype(int)
        ]
        interval = float(1 / ends[0]), float(1 / ends[1])
        found.append(Looseness(family, n, quantity, broken, float(1 / np.quantile(shares, 1 - delta)), interval))
    return found


def sample_sizes(records: list[Record]) -> list[Size]:
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
    bad = [f for f in found if f.broken.verdict == "too often"]
    least, most = min(f.factor for f in found), max(f.factor for f in found)
    return Panel(
        "theory-concentration",
        "How loose Theorem 4.1 is",
        "With probability 1 − δ the maximum-likelihood fit is as near to the truth as Theorem 4.1 says.",
        verdict_of([Part("", f not in bad) for f in found], min(f.broken.num_runs for f in found), FEWEST_SETS),
        f"At δ = {found[0].broken.nominal:g} the {len(found)} bounds were broken {sum(f.broken.count for f in found)} "
        f"times in {sum(f.broken.num_runs for f in found)}; they lie {_number(least)} to {_number(most)} times above the "
        "quantile that they bound.",
        draw_looseness(found),
        ("policy", "pairs", "bounded", "broken (95 %)", "bound / quantile"),
        [
            (FAMILIES[f.family], str(f.num_pairs), QUANTITIES[f.quantity], f.broken.words, _number(f.factor))
            for f in found
        ],
        {f"{f.family}, {f.num_pairs}, {f.quantity}": {"broken": f.broken.count, "factor": f.factor} for f in found},
        "A bound holds unless it is surely broken more often than δ; the claim holds if all do, and partly if some do. At "
        f"least {FEWEST_SETS} data sets of each. {NO_SETTINGS}",
        stated=False,
    )


def sizes_panel(sizes: list[Size]) -> Panel:
    """Holds where P(Î ≠ I*) is at most δ at the n that is proven, and no simulated one lies above its bound."""
    contradicted = [s for s in sizes if s.wrong.low > s.bound or s.wrong_when_proven > s.wrong.nominal]
    void, worst = sum(s.bound >= 1 for s in sizes), max(1e-300, *(s.wrong_when_proven for s in sizes))
    words, numbers = [], {}
    for family, own in _by_family(sizes):
        seen, planned, proven = pairs_seen(own, own[0].wrong.nominal), own[0].planned_pairs, own[0].proven_pairs
        numbers[family] = {"seen": seen, "planned": planned, "proven": proven}
        enough = f"{_number(seen)} pairs do" if seen else "no number of pairs that was tried does"
        words.append(
            f"{FAMILIES[family]}: in simulation {enough}, planned are {_number(planned)}, proven {_number(proven)}"
        )
    return Panel(
        "theory-sizes",
        "Sample sizes: proven, planned, seen",
        "From some number of pairs on Rule 2 finds exactly what is controlled with probability 1 − δ (Theorem 4.2).",
        verdict_of([Part("", not contradicted)], min(s.wrong.num_runs for s in sizes), FEWEST_SETS),
        f"{'; '.join(words)}. At the proven n the chance of an error is below {worst:.0e}; at {void} of the {len(sizes)} "
        "simulated sizes the bound is above 1 and says nothing.",
        draw_sizes(sizes),
        ("policy", "pairs", "Î ≠ I* (95 %)", "foretold by χ²", "Theorem 4.2"),
        [
            (FAMILIES[s.family], str(s.num_pairs), s.wrong.words, f"{s.foretold:.3f}", f"≤ {_number(s.bound)}")
            for s in sizes
        ],
        {"pairs": numbers, "contradicted": len(contradicted)},
        "It holds if at the n that is proven the chance of an error, by the law of λ, is at most δ, and if at no simulated "
        f"n the share of errors is surely above its bound; it does not if either fails. At least {FEWEST_SETS} data "
        f"sets of each. {NO_SETTINGS}",
        stated=False,
    )


def power_panel(sizes: list[Size]) -> Panel:
    """How many intervals of the simulated power hold the foretold one: 95 % would, were planning exact."""
    rows = [(s, rate) for s in sizes for rate in s.found]
    inside = sum(rate.verdict == "as promised" for _, rate in rows)
    off = max(abs(rate.value - rate.nominal) for _, rate in rows)
    return Panel(
        "theory-power",
        "Power as planned",
        "Does the non-central χ² that planning uses foretell how often each feature is found?",
        "our own",
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
            ends = np.array([[max(0.0, f.factor - f.interval[0]), max(0.0, f.interval[1] - f.factor)] for f in own]).T
            axes.errorbar([f.factor for f in own], heights, xerr=ends, fmt="oDs^"[place % 4], color=COLOURS[family],
                          label=f"{title}, {n} pairs", markersize=5, capsize=2)  # fmt: skip
    axes.axvline(1, color=INK, linewidth=1, linestyle=DASHED)
    axes.set_xscale("log")
    axes.set_yticks(range(len(QUANTITIES)), [WRITTEN.get(words, words) for words in QUANTITIES.values()])
    axes.set_ylim(len(QUANTITIES) - 0.5, -0.5)
    axes.set_xlabel("bound divided by the quantile that it bounds")
    legend_below(axes)
    return figure


def draw_sizes(sizes: list[Size]) -> "Figure":
    """Left, P(Î ≠ I*) against the number of pairs; right, the number from which on it is seen, planned and proven small."""
    figure = new_figure(4.0, "When Rule 2 finds exactly what is controlled", width=9.6)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    foretold = {(s.family, s.num_pairs): Mean(s.foretold, None, 1) for s in sizes}
    draw_lines(left, foretold, COLOURS, dense=True)
    draw_points(left, {(s.family, s.num_pairs): s.wrong for s in sizes}, COLOURS, FAMILIES)
    delta = sizes[0].wrong.nominal
    left.axhline(delta, color=INK, linewidth=1, linestyle=DASHED)
    few, many = min(s.num_pairs for s in sizes), max(s.num_pairs for s in sizes)
    logarithmic(left, [n for n in (50, 100, 200, 500, 1000, 2000, 5000) if few <= n <= many])
    left.set_ylim(bottom=-0.02)
    left.set(xlabel=f"pairs (lines: foretold by χ²; dashed: δ = {delta:g})", ylabel="P(Î ≠ I*)")
    left.set_title("how often another set is found", loc="left", fontsize=10.5, color=INK)
    for row, (family, own) in enumerate(_by_family(sizes)):
        needed = pairs_seen(own, delta), own[0].planned_pairs, own[0].proven_pairs
        known = [(n, place + 0.24 * row - 0.12) for place, n in enumerate(needed) if n is not None]
        right.plot(*zip(*known, strict=True), mark_of(family, COLOURS), color=COLOURS[family], markersize=7)
        for n, height in known:
            right.annotate(
                draw_number(n), (n, height), xytext=(7, 0), textcoords="offset points", va="center", fontsize=8.5
            )
    right.set_xscale("log")
    right.set_xlim(right=300 * max(s.proven_pairs for s in sizes))
    right.set_yticks(range(3), ["seen", "planned", "proven"])
    right.set_ylim(2.5, -0.5)
    right.set_xlabel("pairs")
    right.set_title("pairs from which on it is at most δ", loc="left", fontsize=10.5, color=INK)
    for axes in (left, right):
        bare(axes)
    legend_below(left)
    return figure


def draw_number(value: float) -> str:
    """A number as pictures write it."""
    power = int(np.log10(value))
    return f"{value:.0f}" if power < 5 else rf"${value / 10.0**power:.1f}\times10^{{{power}}}$"


def draw_powers(sizes: list[Size]) -> "Figure":
    """A plot a family: how often each feature was found with so many pairs, and the line of how often that was foretold."""
    families = _by_family(sizes)
    figure = new_figure(3.8, "Power, planned and seen", width=4.3 * len(families) + 1)
    plots = figure.subplots(1, len(families), sharey=True, squeeze=False)[0]
    for axes, (family, own) in zip(plots, families, strict=True):
        bare(axes)
        found = {(rate.name, size.num_pairs): rate for size in own for rate in size.found}
        colours = dict(zip(dict.fromkeys(name for name, _ in found), SERIES, strict=False))
        labels = {name: f"feature {name}" for name in colours}
        foretold = {key: Mean(rate.nominal, None, 1) for key, rate in found.items()}
        draw_lines(axes, foretold, colours, dense=True)
        draw_points(axes, found, colours, labels)
        logarithmic(axes, [size.num_pairs for size in own])
        axes.set_title(FAMILIES[family], loc="left", fontsize=10.5, color=INK)
        axes.set_xlabel("pairs (lines: foretold by χ²)")
    plots[0].set_ylim(-0.03, 1.03)
    plots[0].set_ylabel("share of data sets in which it was found")
    legend_below(plots[0])
    return figure


def _by_family(sizes: list[Size]) -> list[tuple[str, list[Size]]]:
    found = [(family, [s for s in sizes if s.family == family]) for family in FAMILIES]
    return [(family, own) for family, own in found if own]


def _number(value: float) -> str:
    return f"{value:.0f}" if 10 <= value < 1e5 else f"{value:.2g}"
