"""Gaps of many configurations and what stands for them → how well each ranks them as the gap does."""

from typing import TYPE_CHECKING, Any

import polars as pl
from scipy.stats import rankdata, spearmanr

from policyspace.experiments.records import Record
from policyspace.experiments.surrogate import SURROGATES
from policyspace.report.plots import SHARES, draw_lines
from policyspace.report.style import BLUE, GREEN, GREY, INK, PURPLE, RED, bare, new_figure
from policyspace.results.frames import groups, means, tidy
from policyspace.results.panel import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TITLE = "The objective of a configuration, and what it stands for"
COLOURS = {"paper": RED, "d-optimal": GREEN, "bound": BLUE, "gradient": PURPLE, "again": GREY}


def analyse(records: list[Record]) -> list[Panel]:
    """How well each surrogate ranks the configurations of an agent."""
    if not records:
        return []
    found = ranks(records)
    known = means(correlations(found), "rho", "surrogate")
    rho = {name: known[name] for name in SURROGATES if name in known}
    told = "; ".join(f"{SURROGATES[name]} {mean.words}" for name, mean in rho.items())
    return [
        Panel(
            "surrogate",
            "Does the objective rank configurations as the gap in likelihood does?",
            "The ideal goal is the ω in which the agent loses most likelihood without the tested feature (Section 5). Does "
            "what stands for it, from 100 episodes at ω₀, put the configurations of an agent in the same order?",
            "our own",
            f"Spearman's ρ with the gap, over {records[0].setting['num_configurations']} configurations of an agent, as a "
            f"mean over {len(records)} agents, but for those to whom all configurations are worth the same by it: {told}. "
            "The gap learned again from other random starts says how well the order can be known at all; the bound is given "
            "the exact gradient, where the objective has an estimate and a penalty.",
            draw(found, {name: mean.words for name, mean in rho.items()}),
            ("what stands for the gap", "agents", "Spearman's ρ (95 %)"),
            [(SURROGATES[name], str(mean.num_runs), mean.words) for name, mean in rho.items()],
            {name: mean.numbers for name, mean in rho.items()},
        )
    ]


def ranks(records: list[Record]) -> pl.DataFrame:
    """A row an agent, surrogate and configuration: the places of surrogate and gap, from 0 to 1."""

    def rows(record: Record) -> list[dict[str, Any]]:
        truth = _places(record.result["gap"])
        return [
            {"seed": record.setting["seed"], "surrogate": name, "place": place, "gap": gap}
            for name in SURROGATES
            for place, gap in zip(_places(record.result[name]), truth, strict=True)
        ]

    return tidy(records, rows)


def _places(values: list[float]) -> list[float]:
    return list((rankdata(values) - 1) / max(1, len(values) - 1))


def correlations(found: pl.DataFrame) -> pl.DataFrame:
    """Spearman's ρ of every agent and surrogate; none where all are equal."""
    rows = []
    for (name, seed), own in groups(found, "surrogate", "seed").items():
        known = own["place"].n_unique() > 1 and own["gap"].n_unique() > 1
        rho = float(spearmanr(own["place"], own["gap"]).statistic) if known else None
        rows.append({"surrogate": name, "seed": seed, "rho": rho})
    return pl.DataFrame(rows)


def draw(found: pl.DataFrame, rho: dict[str, str]) -> "Figure":
    """A plot a surrogate: the mean place of the gap at each place of the surrogate; the diagonal is the same order."""
    figure = new_figure(3.4, "Configurations in order: by what stands for the gap, and by the gap", width=10.0)
    plots = figure.subplots(1, len(SURROGATES), sharey=True)
    for axes, (name, label) in zip(plots, SURROGATES.items(), strict=True):
        bare(axes)
        own = found.filter(pl.col("surrogate") == name).with_columns(fifth=(pl.col("place") * 4).round() / 4)
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1, alpha=0.4)
        axes.scatter(own["place"], own["gap"], s=7, color=COLOURS[name], alpha=0.18, linewidths=0)
        draw_lines(axes, {(name, x): mean for x, mean in means(own, "gap", "fifth").items()}, COLOURS, within=SHARES)
        axes.set_title(f"{label}\nρ = {rho.get(name, 'unknown')}", loc="left", fontsize=9.5, color=INK)
        axes.set_xlabel("place by it")
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    plots[0].set_ylabel("place by the gap")
    return figure
