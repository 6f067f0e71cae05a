"""Records of imitators → their distance from the agent beside the authors', the log-loss that they add, and what holds."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from policyspace.experiments.frames import differences, means, tidy
from policyspace.experiments.panel import Panel, Verdict
from policyspace.experiments.records import Record
from policyspace.report.estimates import Mean
from policyspace.report.plots import draw_lines, draw_whiskers, legend
from policyspace.report.style import AMBER, BLUE, DASHED, GREEN, GREY, INK, PURPLE, RED, bare, new_figure, new_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "true": "true space",
    "no-conf": "identified at ω₀",
    "conf": "identified by configuring",
    "plain": "plain maximum likelihood",
    "ridge": "ridge",
    "lasso": "lasso",
}
COLOURS = {"true": INK, "no-conf": BLUE, "conf": GREEN, "plain": RED, "ridge": AMBER, "lasso": PURPLE}
AUTHORS_EPISODES = (10, 30, 100, 300, 1000, 3000)
AUTHORS = {
    "true": (10.83, 10.27, 7.77, 6.06, 5.33, 4.72),
    "no-conf": (12.92, 12.28, 9.81, 7.21, 5.37, 4.78),
    "conf": (11.32, 10.23, 8.23, 6.22, 5.79, 5.19),
    "plain": (13.56, 13.58, 11.38, 9.56, 7.14, 6.04),
    "ridge": (11.82, 10.87, 7.90, 6.45, 5.88, 5.45),
    "lasso": (12.62, 11.69, 8.61, 6.58, 5.86, 5.34),
}
"""‖θ̂ − θ*‖ in the journal version of the paper, in the gauge of the authors' four rows."""

FEW = 10
"""Agents below which intervals are so wide that a verdict says little."""


def analyse(records: list[Record]) -> list[Panel]:
    """The distance from θ*, as the authors report it, and the log-loss, which is what imitating is for."""
    return [error_panel(records), divergence_panel(records)] if records else []


def imitated(records: list[Record]) -> pl.DataFrame:
    """A row an agent, number of episodes and imitator; missed and wrong features of those that identify."""

    def rows(record: Record) -> list[dict[str, Any]]:
        measures = ("error", "divergence", "missed", "wrong")
        found = [{name: record.result[name].get(imitator) for name in measures} for imitator in LABELS]
        setting = {"episodes": record.setting["num_episodes"], "seed": record.setting["seed"]}
        return [setting | {"imitator": imitator} | own for imitator, own in zip(LABELS, found, strict=True)]

    return tidy(records, rows).sort("episodes", "seed", maintain_order=True)


def judge(found: pl.DataFrame, what: str) -> tuple[Verdict, str]:
    """Whether the identified space helps, by 95 % intervals of paired differences.

    Configured identification must beat plain maximum likelihood at every n, and be beaten by ridge and lasso at none:
    then the claim holds; where it beats plain maximum likelihood at some n, partly; else it does not.
    """
    against = {
        name: differences(found, what, "imitator", "conf", name, "episodes") for name in ("plain", "ridge", "lasso")
    }
    wins = [n for n, d in against["plain"].items() if d.high < 0]
    lost = {name: [n for n, d in against[name].items() if d.low > 0] for name in ("ridge", "lasso")}
    everywhere = len(wins) == len(against["plain"]) and not any(lost.values())
    limits = differences(found, what, "imitator", "true", "ridge", "episodes")
    unbeaten = [n for n, d in limits.items() if d.low > 0]
    limit = f" Even in the true space ridge is better {_where(unbeaten)}." if unbeaten else ""
    verdict: Verdict = "holds" if everywhere else "holds partly" if wins else "does not hold"
    agents = min(d.num_runs for d in against["plain"].values())
    few = " (too few to tell much)" if agents < FEW else ""
    return verdict, (
        f"On {agents} agents{few} the identified space is better than plain maximum likelihood {_where(wins)}; "
        f"ridge is better than it {_where(lost['ridge'])}, lasso {_where(lost['lasso'])}.{limit}"
    )


def error_panel(records: list[Record]) -> Panel:
    """‖θ̂ − θ*‖ beside the authors' numbers."""
    found = imitated(records)
    errors = means(found, "error", "episodes", "imitator")
    verdict, why = judge(found, "error")
    return Panel(
        "imitation-error",
        "Distance from the agent's parameters",
        "Maximum likelihood inside the identified space comes nearer to θ* than plain maximum likelihood, and with "
        "configuration no less near than ridge and lasso.",
        verdict,
        f"{why} {_method(records)}",
        draw_errors(errors),
        ("episodes", *LABELS.values()),
        _rows({(n, name): mean.words + _authors(name, n) for (n, name), mean in errors.items()}),
        _nested({key: mean.numbers for key, mean in errors.items()}) | {"missed and wrong": _spaces(found)},
    )


def divergence_panel(records: list[Record]) -> Panel:
    """E KL(π* ‖ π̂) on the agent's own states."""
    found = imitated(records)
    divergences = means(found, "divergence", "episodes", "imitator")
    verdict, why = judge(found, "divergence")
    return Panel(
        "imitation-divergence",
        "Log-loss that imitating adds",
        "Is the identified space also better by what imitators care about, E KL(π* ‖ π̂) on the agent's own states?",
        "our own",
        f"By the same rule the claim {verdict} here. {why}",
        draw_divergences(divergences),
        ("episodes", *LABELS.values()),
        _rows({key: _short(mean) for key, mean in divergences.items()}),
        _nested({key: mean.numbers for key, mean in divergences.items()}),
    )


def draw_errors(found: dict[tuple[int, str], Mean]) -> "Figure":
    """A small plot an imitator, all on the same axes: ours in colour, the authors' dashed and grey."""
    figure = new_figure(5.0, "Distance from the agent, ‖θ̂ − θ*‖")
    plots = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    for axes, (name, label) in zip(plots, LABELS.items(), strict=True):
        axes.plot(AUTHORS_EPISODES, AUTHORS[name], color=GREY, linestyle=DASHED, label="the authors'")
        own = [(n, mean) for (n, other), mean in found.items() if other == name]
        draw_whiskers(axes, own, COLOURS[name], "ours", "o-", linewidth=2)
        axes.set_title(label, fontsize=9.5, color=INK)
        axes.set_xscale("log")
        axes.minorticks_off()
        bare(axes)
    plots[0].set_ylim(bottom=0)  # of all, which share it
    legend(plots[0])
    figure.supxlabel("episodes", fontsize=9)
    return figure


def draw_divergences(found: dict[tuple[int, str], Mean]) -> "Figure":
    """All imitators on one pair of logarithmic axes."""
    figure, axes = new_plot(4.2, "Log-loss added by imitating, E KL(π* ‖ π̂)")
    draw_lines(axes, {(name, n): replace(mean, margin=None) for (n, name), mean in found.items()}, COLOURS, LABELS)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set(xlabel="episodes", ylabel="nats a step")
    legend(axes)
    return figure


def _method(records: list[Record]) -> str:
    gauge = "Weights are compared with the mean over the four actions removed."
    if records[0].setting["as_published"]:
        fits = "Fitted by 1000 steps of Adam at 0.03, whose early stop is a penalty of its own."
        levels = "every round at full δ as in the paper's union"
    else:
        fits = (
            "Separated data have no finite maximum: all maximum-likelihood fits bear the same penalty 0.001‖θ‖², a ridge "
            "of one episode."
        )
        levels = "δ split over the rounds"
    return f"{fits} The space is identified with D-optimal configurations, three rounds more, {levels}. {gauge}"


def _spaces(found: pl.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """How many controlled features each identification misses and how many it adds, on average."""
    spaces = {what: means(found, what, "episodes", "imitator") for what in ("missed", "wrong")}
    averages = {what: _nested({key: m.value for key, m in own.items()}) for what, own in spaces.items()}
    return {n: {what: averages[what][n] for what in averages} for n in averages["missed"]}


def _nested(found: dict[tuple[int, str], Any]) -> dict[str, Any]:
    """By number of episodes, then by imitator."""
    nested: dict[str, Any] = {}
    for (n, name), value in found.items():
        nested.setdefault(str(n), {})[name] = value
    return nested


def _rows(cells: dict[tuple[int, str], str]) -> list[tuple[str, ...]]:
    """A row a number of episodes, a column an imitator."""
    return [(n, *row.values()) for n, row in _nested(cells).items()]


def _authors(name: str, n: int) -> str:
    known = n in AUTHORS_EPISODES
    return f" (authors {AUTHORS[name][AUTHORS_EPISODES.index(n)]:.2f})" if known else ""


def _short(mean: Mean) -> str:
    return f"{mean.value:.2g}" if mean.margin is None else f"{mean.value:.2g} ± {mean.margin:.1g}"


def _where(numbers: list[int]) -> str:
    return f"at n = {', '.join(map(str, numbers))}" if numbers else "nowhere"
