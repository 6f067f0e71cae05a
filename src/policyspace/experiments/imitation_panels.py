"""Records of imitators → their distance from the agent beside the authors', the log-loss that they add, and what holds."""

from typing import TYPE_CHECKING

from policyspace.experiments.means import INK, Mean, mean_of, one_axes, plain
from policyspace.experiments.panel import Panel, Verdict
from policyspace.experiments.records import Record

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
COLOURS = {
    "true": "#1f2933",
    "no-conf": "#2f80c2",
    "conf": "#0b6e4f",
    "plain": "#c0392b",
    "ridge": "#d98e04",
    "lasso": "#8e5ea2",
}
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

Means = dict[int, dict[str, Mean]]
"""By number of episodes and imitator."""


def analyse(records: list[Record]) -> list[Panel]:
    """The distance from θ*, as the authors report it, and the log-loss, which is what imitating is for."""
    return [error_panel(records), divergence_panel(records)] if records else []


def means(records: list[Record], what: str) -> Means:
    """The mean of one measure over agents, for every number of episodes and imitator."""
    return {
        n: {name: mean_of([r.result[what][name] for r in own]) for name in LABELS}
        for n, own in _by_episodes(records).items()
    }


def differences(records: list[Record], what: str, better: str, worse: str) -> dict[int, Mean]:
    """One imitator's measure minus another's on the same agents and data, by number of episodes."""
    return {
        n: mean_of([r.result[what][better] - r.result[what][worse] for r in own])
        for n, own in _by_episodes(records).items()
    }


def judge(records: list[Record], what: str) -> tuple[Verdict, str]:
    """Whether the identified space helps, by 95 % intervals of paired differences.

    Configured identification must beat plain maximum likelihood at every n, and be beaten by ridge and lasso at none:
    then the claim holds; where it beats plain maximum likelihood at some n, partly; else it does not.
    """
    against = {name: differences(records, what, "conf", name) for name in ("plain", "ridge", "lasso")}
    wins = [n for n, d in against["plain"].items() if d.high < 0]
    lost = {name: [n for n, d in against[name].items() if d.low > 0] for name in ("ridge", "lasso")}
    everywhere = len(wins) == len(against["plain"]) and not any(lost.values())
    unbeaten = [n for n, d in differences(records, what, "true", "ridge").items() if d.low > 0]
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
    found = means(records, "error")
    verdict, why = judge(records, "error")
    return Panel(
        "imitation-error",
        "Distance from the agent's parameters",
        "Maximum likelihood inside the identified space comes nearer to θ* than plain maximum likelihood, and with "
        "configuration no less near than ridge and lasso.",
        verdict,
        f"{why} {_method(records)}",
        draw_errors(found),
        ("episodes", *LABELS.values()),
        [(str(n), *(_beside(m.words, _authors(name, n)) for name, m in row.items())) for n, row in found.items()],
        _numbers(found) | {"missed and wrong": _spaces(records)},
    )


def divergence_panel(records: list[Record]) -> Panel:
    """E KL(π* ‖ π̂) on the agent's own states."""
    found = means(records, "divergence")
    verdict, why = judge(records, "divergence")
    return Panel(
        "imitation-divergence",
        "Log-loss that imitating adds",
        "Is the identified space also better by what imitators care about, E KL(π* ‖ π̂) on the agent's own states?",
        "our own",
        f"By the same rule the claim {verdict} here. {why}",
        draw_divergences(found),
        ("episodes", *LABELS.values()),
        [(str(n), *(_short(m) for m in row.values())) for n, row in found.items()],
        _numbers(found),
    )


def draw_errors(found: Means) -> "Figure":
    """A small plot an imitator, all on the same axes: ours in colour, the authors' dashed and grey."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 5.0), facecolor="white", layout="constrained")
    figure.suptitle("Distance from the agent, ‖θ̂ − θ*‖", x=0.012, ha="left", fontweight="bold", fontsize=11)
    plots = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    n = list(found)
    for axes, (name, label) in zip(plots, LABELS.items(), strict=True):
        own = [found[k][name] for k in n]
        axes.plot(AUTHORS_EPISODES, AUTHORS[name], color="#9aa5b1", linestyle=(0, (4, 3)), label="the authors'")
        margins = [0.0 if m.margin is None else m.margin for m in own]
        values = [m.value for m in own]
        axes.errorbar(n, values, margins, color=COLOURS[name], marker="o", markersize=4, linewidth=2, label="ours")
        axes.set_title(label, fontsize=9.5, color=INK)
        axes.set_xscale("log")
        axes.minorticks_off()
        plain(axes)
    plots[0].set_ylim(bottom=0)  # of all, which share it
    plots[0].legend(frameon=False, fontsize=8)
    figure.supxlabel("episodes", fontsize=9)
    return figure


def draw_divergences(found: Means) -> "Figure":
    """All imitators on one pair of logarithmic axes."""
    figure, axes = one_axes("Log-loss added by imitating, E KL(π* ‖ π̂)")
    for name, label in LABELS.items():
        values = [row[name].value for row in found.values()]
        axes.plot(list(found), values, marker="o", markersize=4, color=COLOURS[name], linewidth=2, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_xlabel("episodes")
    axes.set_ylabel("nats a step")
    axes.legend(frameon=False, fontsize=8.5)
    return figure


def _method(records: list[Record]) -> str:
    gauge = "Weights are compared with the mean over the four actions removed."
    if records[0].setting["as_published"]:
        fits = "Fitted by 1000 steps of Adam at 0.03, whose early stop is a penalty of its own."
        levels = "every look at full δ as in the paper's union"
    else:
        fits = (
            "Separated data have no finite maximum: all maximum-likelihood fits bear the same penalty 0.001‖θ‖², a ridge "
            "of one episode."
        )
        levels = "δ split over the looks"
    return f"{fits} The space is identified with D-optimal configurations, three looks more, {levels}. {gauge}"


def _by_episodes(records: list[Record]) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for record in sorted(records, key=lambda r: (r.setting["num_episodes"], r.setting["seed"])):
        found.setdefault(record.setting["num_episodes"], []).append(record)
    return found


def _spaces(records: list[Record]) -> dict[str, dict[str, dict[str, float]]]:
    """How many controlled features each identification misses and how many it adds, on average."""
    return {
        str(n): {
            what: {name: mean_of([r.result[what][name] for r in own]).value for name in ("no-conf", "conf")}
            for what in ("missed", "wrong")
        }
        for n, own in _by_episodes(records).items()
    }


def _numbers(found: Means) -> dict[str, dict[str, dict[str, float | int | None]]]:
    return {str(n): {name: m.numbers for name, m in row.items()} for n, row in found.items()}


def _authors(name: str, n: int) -> float | None:
    return AUTHORS[name][AUTHORS_EPISODES.index(n)] if n in AUTHORS_EPISODES else None


def _beside(words: str, authors: float | None) -> str:
    return words if authors is None else f"{words} (authors {authors:.2f})"


def _short(mean: Mean) -> str:
    return f"{mean.value:.2g}" if mean.margin is None else f"{mean.value:.2g} ± {mean.margin:.1g}"


def _where(numbers: list[int]) -> str:
    return f"at n = {', '.join(map(str, numbers))}" if numbers else "nowhere"
