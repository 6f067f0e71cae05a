"""Records of an experiment on configuring → α̂ and β̂ with their intervals, figures, and whether the claims hold."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.configuration.round import Round
from policyspace.experiments.means import Mean, mean_of, plain
from policyspace.experiments.panel import Panel, Verdict
from policyspace.experiments.records import Record
from policyspace.report.rounds_picture import Story, draw_rounds
from policyspace.worlds import make_world

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "none": "no configuration",
    "uniform": "uniform configuration",
    "paper": "the paper's C_I",
    "d-optimal": "D-optimal",
    "noncentrality": "non-centrality",
}
COLOURS = {
    "none": "#7b8794",
    "uniform": "#2f80c2",
    "paper": "#c0392b",
    "d-optimal": "#0b6e4f",
    "noncentrality": "#d98e04",
}
COLUMNS = (
    "design",
    "episodes",
    "agents",
    "β̂, controlled and missed",
    "α̂, not controlled and selected",
    "agents with a false selection",
)


@dataclass(frozen=True)
class Summary:
    """What one design found with so many episodes: means over agents."""

    design: str
    episodes: int
    num_agents: int
    false_positive_rate: Mean | None  # none where every agent controls everything
    false_negative_rate: Mean | None
    num_with_false: int  # agents of whom anything was selected wrongly
    missed_by_seed: dict[int, float]

    @property
    def row(self) -> tuple[str, ...]:
        """Under COLUMNS."""
        rates = (self.false_negative_rate, self.false_positive_rate)
        share = f"{self.num_with_false} of {self.num_agents}"
        return (LABELS[self.design], str(self.episodes), str(self.num_agents), *map(_words, rates), share)

    @property
    def numbers(self) -> dict[str, Any]:
        """As plain data."""
        rates = {"false_negative_rate": self.false_negative_rate, "false_positive_rate": self.false_positive_rate}
        return {
            "design": self.design,
            "episodes": self.episodes,
            "agents": self.num_agents,
            "agents_with_a_false_selection": self.num_with_false,
            **{name: None if rate is None else rate.numbers for name, rate in rates.items()},
        }


def panels(name: str, title: str, records: list[Record]) -> list[Panel]:
    """Every part of which there are records, in the order of the paper."""
    parts = {part: [r for r in records if r.setting["part"] == part] for part in ("episodes", "totals", "story")}
    made = {"episodes": by_episodes, "totals": at_totals, "story": story}
    return [made[part](name, title, found) for part, found in parts.items() if found]


def summarise(records: list[Record], episodes: str) -> list[Summary]:
    """One summary a design and number of episodes, which the entry `episodes` of a setting says."""
    cells: dict[tuple[int, str], list[Record]] = {}
    for record in records:
        cells.setdefault((record.setting[episodes], record.setting["design"]), []).append(record)
    order = list(LABELS)
    return [
        _summary(n, design, cells[n, design]) for n, design in sorted(cells, key=lambda c: (c[0], order.index(c[1])))
    ]


def _summary(episodes: int, design: str, records: list[Record]) -> Summary:
    rates = {
        name: [r.result[name] for r in records if r.result[name] is not None]
        for name in ("false_positive_rate", "false_negative_rate")
    }
    positive, negative = (mean_of(values) if values else None for values in rates.values())
    missed = {
        r.setting["seed"]: r.result["false_negative_rate"]
        for r in records
        if r.result["false_negative_rate"] is not None
    }
    wrong = sum(r.result["any_false"] for r in records)
    return Summary(design, episodes, len(records), positive, negative, wrong, missed)


def by_episodes(name: str, title: str, records: list[Record]) -> Panel:
    """The paper's figure: α̂ and β̂ against the episodes of one look, with and without configuration."""
    found = summarise(records, "num_episodes")
    gains = {n: _gain(found, n, "none", "paper") for n in sorted({s.episodes for s in found})}
    clear = [n for n, gain in gains.items() if gain.low > 0]
    steady = all(gain.value >= 0 for gain in gains.values())
    verdict: Verdict = (
        "holds" if steady and 2 * len(clear) >= len(gains) else "holds partly" if clear else "does not hold"
    )
    false = {design: sum(s.num_with_false for s in found if s.design == design) for design in ("none", "paper")}
    looks = float(np.mean([r.result["num_rounds"] for r in records if r.setting["design"] == "paper"]))
    shown = "; ".join(f"{gain.words} at n = {n}" for n, gain in gains.items())
    return Panel(
        f"{name}-episodes",
        f"{title}: errors against the episodes of one look",
        "α̂ hardly depends on the number n of episodes; β̂ falls with n, and faster when the environment is configured.",
        verdict,
        f"Configuring lowers β̂ of the same agents by {shown} (95 % intervals), clearly so at {len(clear)} of {len(gains)} "
        f"values of n. A configured run looks {looks:.0f} times on average, so it pays {looks:.0f}·n episodes: the panel at "
        f"equal totals says what that is worth. Agents with a false selection: {false['none']} of "
        f"{_agents(found, 'none')} without, {false['paper']} of {_agents(found, 'paper')} with configuration.",
        draw(found, f"{title}: one look of n episodes", "episodes of one look, n"),
        COLUMNS,
        [s.row for s in found],
        {"summaries": [s.numbers for s in found], "gains": {str(n): g.numbers for n, g in gains.items()}},
    )


def at_totals(name: str, title: str, records: list[Record]) -> Panel:
    """What a user pays for: all designs at equal totals of episodes."""
    found = summarise(records, "budget")
    total = max(s.episodes for s in found)
    last = {s.design: s for s in found if s.episodes == total}
    rates = {d: s.false_negative_rate.value for d, s in last.items() if s.false_negative_rate is not None}
    best = min(rates, key=lambda design: rates[design])
    listed = ", ".join(f"{LABELS[d]} {rate:.3f}" for d, rate in rates.items())
    return Panel(
        f"{name}-totals",
        f"{title}: errors at equal totals of episodes",
        "Which way of configuring misses least when every episode observed is paid for, δ = 0.01 kept over all looks?",
        "our own",
        f"At {total} episodes in total the share missed is: {listed}; least by {LABELS[best]}. The default is D-optimal.",
        draw(found, f"{title}: equal totals", "episodes observed in total"),
        COLUMNS,
        [s.row for s in found],
        {"summaries": [s.numbers for s in found]},
    )


def story(name: str, title: str, records: list[Record]) -> Panel:
    """One agent's rounds as the paper draws them."""
    result, setting = records[0].result, records[0].setting
    world = make_world(setting["world"])
    rounds = [Round.from_dict(one) for one in result["rounds"]]
    truth, selected = set(result["truth"]), set(result["selected"])
    told = Story(world.name, world.parameters, rounds, world.feature_names, tuple(result["truth"]))
    exact = truth == selected
    first = len(set(rounds[0].selected) & truth)
    verdict: Verdict = (
        "holds" if exact else "holds partly" if selected < truth and len(selected) > first else "does not hold"
    )
    return Panel(
        f"{name}-story",
        f"{title}: configuration → identification",
        "Configuring spreads the starts, feature after feature falls, and eventually the correct policy space is found.",
        verdict,
        f"Of {len(truth)} controlled features {first} fall in the first look and {len(selected & truth)} after "
        f"{len(rounds)} looks; {len(selected - truth)} others are selected. "
        "The agent and its first configuration are those of the paper's example.",
        draw_rounds(told),
        ("look", "asked for", "fell", "open"),
        [
            (str(r.number + 1), _few(r.asked_for), _few(r.newly_selected), str(len(r.undecided)))
            for r in rounds
            if r.newly_selected
        ],
        {"rounds": len(rounds), "truth": sorted(truth), "selected": sorted(selected)},
    )


def draw(found: list[Summary], title: str, label: str) -> "Figure":
    """β̂ on the left, α̂ on the right, one line a design with its 95 % band."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 4.0), facecolor="white", layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=12)
    designs = [design for design in LABELS if any(s.design == design for s in found)]
    ticks = sorted({s.episodes for s in found})
    rates = (("false_negative_rate", "controlled features missed, β̂"), ("false_positive_rate", "others selected, α̂"))
    for axes, (rate, what) in zip(figure.subplots(1, 2, width_ratios=(3, 2)), rates, strict=True):
        plain(axes)
        for design in designs:
            points = [
                (s.episodes, getattr(s, rate)) for s in found if s.design == design and getattr(s, rate) is not None
            ]
            x, means = np.array([n for n, _ in points]), [mean for _, mean in points]
            values = np.array([mean.value for mean in means])
            margins = np.array([mean.margin or 0.0 for mean in means])
            axes.plot(x, values, marker="o", color=COLOURS[design], label=LABELS[design], lw=2, ms=5)
            axes.fill_between(
                x, np.maximum(values - margins, 0), values + margins, color=COLOURS[design], alpha=0.13, lw=0
            )
        axes.set_xscale("log")
        axes.set_xticks(ticks, [str(t) for t in ticks])
        axes.minorticks_off()
        axes.set_xlabel(label)
        axes.set_title(what, loc="left", fontsize=10.5)
        axes.set_ylim(0, 1.02 if rate == "false_negative_rate" else max(0.05, axes.get_ylim()[1]))
    figure.axes[0].legend(frameon=False, fontsize=9)
    return figure


def _gain(found: list[Summary], episodes: int, before: str, after: str) -> Mean:
    """How much less is missed, agent by agent."""
    one, other = (next(s for s in found if s.episodes == episodes and s.design == d) for d in (before, after))
    return mean_of([one.missed_by_seed[seed] - other.missed_by_seed[seed] for seed in one.missed_by_seed])


def _agents(found: list[Summary], design: str) -> int:
    return sum(s.num_agents for s in found if s.design == design)


def _words(rate: Mean | None) -> str:
    if rate is None:
        return "—"
    return f"{rate.value:.3f}" + ("" if rate.margin is None else f" ± {rate.margin:.3f}")


def _few(names: tuple[str, ...]) -> str:
    return "—" if not names else ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
