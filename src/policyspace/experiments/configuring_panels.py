"""Records of an experiment on configuring → α̂ and β̂ with their intervals, figures, and whether the claims hold."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from policyspace.configuration.round import Round
from policyspace.experiments.frames import differences, in_order, means, rates, tidy
from policyspace.experiments.panel import Panel, Verdict
from policyspace.experiments.records import Record
from policyspace.report.estimates import Mean
from policyspace.report.plots import draw_lines, legend, logarithmic
from policyspace.report.rounds_picture import Story, draw_rounds
from policyspace.report.style import AMBER, BLUE, GREEN, GREY, RED, bare, new_figure
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
COLOURS = {"none": GREY, "uniform": BLUE, "paper": RED, "d-optimal": GREEN, "noncentrality": AMBER}
COLUMNS = (
    "design",
    "episodes",
    "agents",
    "β̂, controlled and missed",
    "α̂, not controlled and selected",
    "agents with a false selection",
)
MISSED, WRONG = "false_negative_rate", "false_positive_rate"


def panels(name: str, title: str, records: list[Record]) -> list[Panel]:
    """Every part of which there are records, in the order of the paper."""
    made = {"episodes": by_episodes, "totals": at_totals, "story": story}
    parts = {part: [r for r in records if r.setting["part"] == part] for part in made}
    return [made[part](name, title, found) for part, found in parts.items() if found]


def agents(records: list[Record], episodes: str) -> pl.DataFrame:
    """One row an agent, by number of episodes, which an entry of its setting says, and design."""
    names = (MISSED, WRONG, "any_false", "num_rounds")
    found = tidy(
        records,
        lambda r: [
            {"episodes": r.setting[episodes], "design": r.setting["design"], "seed": r.setting["seed"]}
            | {name: r.result.get(name) for name in names}
        ],
    )
    return in_order(found, "design", LABELS).sort("episodes", maintain_order=True)


def summaries(found: pl.DataFrame) -> list[dict[str, Any]]:
    """What each design found with so many episodes: means over agents; none where no agent has such features."""
    missed, wrong = (means(found, rate, "episodes", "design") for rate in (MISSED, WRONG))
    return [
        {
            "design": design,
            "episodes": episodes,
            "agents": false.num_runs,
            "agents_with_a_false_selection": false.count,
            MISSED: missed.get((episodes, design)),
            WRONG: wrong.get((episodes, design)),
        }
        for (episodes, design), false in rates(found, "any_false", "episodes", "design").items()
    ]


def by_episodes(name: str, title: str, records: list[Record]) -> Panel:
    """The paper's figure: α̂ and β̂ against the episodes of one round, with and without configuration."""
    found = agents(records, "num_episodes")
    gains = differences(found, MISSED, "design", "none", "paper", "episodes")
    clear = [n for n, gain in gains.items() if gain.low > 0]
    steady = all(gain.value >= 0 for gain in gains.values())
    verdict: Verdict = (
        "holds" if steady and 2 * len(clear) >= len(gains) else "holds partly" if clear else "does not hold"
    )
    false = rates(found, "any_false", "design")
    rounds = float(np.mean(found.filter(pl.col("design") == "paper")["num_rounds"].to_list()))
    shown = "; ".join(f"{gain.words} at n = {n}" for n, gain in gains.items())
    return Panel(
        f"{name}-episodes",
        f"{title}: errors against the episodes of one round",
        "α̂ hardly depends on the number n of episodes; β̂ falls with n, and faster when the environment is configured.",
        verdict,
        f"Configuring lowers β̂ of the same agents by {shown} (95 % intervals), clearly so at {len(clear)} of {len(gains)} "
        f"values of n. A configured run has {rounds:.0f} rounds on average, so it pays {rounds:.0f}·n episodes: the "
        f"panel at equal totals says what that is worth. Agents with a false selection: {false['none'].count} of "
        f"{false['none'].num_runs} without, {false['paper'].count} of {false['paper'].num_runs} with configuration.",
        draw(found, f"{title}: one round of n episodes", "episodes of one round, n"),
        COLUMNS,
        _rows(found),
        {"summaries": _numbers(found), "gains": {str(n): gain.numbers for n, gain in gains.items()}},
    )


def at_totals(name: str, title: str, records: list[Record]) -> Panel:
    """What a user pays for: all designs at equal totals of episodes."""
    found = agents(records, "budget")
    total = int(found["episodes"].to_numpy().max())
    missed = means(found.filter(pl.col("episodes") == total), MISSED, "design")
    best = min(missed, key=lambda design: missed[design].value)
    listed = ", ".join(f"{LABELS[design]} {rate.value:.3f}" for design, rate in missed.items())
    return Panel(
        f"{name}-totals",
        f"{title}: errors at equal totals of episodes",
        "Which way of configuring misses least when every episode observed is paid for, δ = 0.01 kept over all rounds?",
        "our own",
        f"At {total} episodes in total the share missed is: {listed}; least by {LABELS[best]}. The default is D-optimal.",
        draw(found, f"{title}: equal totals", "episodes observed in total"),
        COLUMNS,
        _rows(found),
        {"summaries": _numbers(found)},
    )


def story(name: str, title: str, records: list[Record]) -> Panel:
    """One agent's rounds as the paper draws them."""
    result, setting = records[0].result, records[0].setting
    world = make_world(setting["world"])
    rounds = [Round.from_dict(one) for one in result["rounds"]]
    truth, selected = set(result["truth"]), set(result["selected"])
    picture = Story(world.name, world.parameters, rounds, world.feature_names, tuple(result["truth"]))
    first = len(set(rounds[0].selected) & truth)
    more = selected < truth and len(selected) > first
    verdict: Verdict = "holds" if truth == selected else "holds partly" if more else "does not hold"
    return Panel(
        f"{name}-story",
        f"{title}: configuration → identification",
        "Configuring spreads the starts, feature after feature is selected, and eventually the correct policy space is "
        "found.",
        verdict,
        f"Of {len(truth)} controlled features {first} are selected in the first round and {len(selected & truth)} after "
        f"{len(rounds)} rounds; {len(selected - truth)} others are selected. "
        "The agent and its first configuration are those of the paper's example.",
        draw_rounds(picture),
        ("round", "asked for", "newly selected", "open"),
        [
            (str(r.number + 1), _few(r.asked_for), _few(r.newly_selected), str(len(r.undecided)))
            for r in rounds
            if r.newly_selected
        ],
        {"rounds": len(rounds), "truth": sorted(truth), "selected": sorted(selected)},
    )


def draw(found: pl.DataFrame, title: str, label: str) -> "Figure":
    """β̂ on the left, α̂ on the right, one line a design with its 95 % band."""
    figure = new_figure(4.0, title, width=9.6)
    plots = dict(zip((MISSED, WRONG), figure.subplots(1, 2, width_ratios=(3, 2)), strict=True))
    titles = {MISSED: "controlled features missed, β̂", WRONG: "others selected, α̂"}
    for rate, axes in plots.items():
        bare(axes)
        draw_lines(axes, means(found, rate, "design", "episodes"), COLOURS, LABELS, floor=0.0)
        logarithmic(axes, found["episodes"].unique().sort().to_list())
        axes.set_xlabel(label)
        axes.set_title(titles[rate], loc="left", fontsize=10.5)
    plots[MISSED].set_ylim(0, 1.02)
    plots[WRONG].set_ylim(0, max(0.05, plots[WRONG].get_ylim()[1]))
    legend(plots[MISSED])
    return figure


def _rows(found: pl.DataFrame) -> list[tuple[str, ...]]:
    """Under COLUMNS."""
    return [
        (
            LABELS[s["design"]],
            str(s["episodes"]),
            str(s["agents"]),
            *("—" if s[rate] is None else s[rate].rounded(3) for rate in (MISSED, WRONG)),
            f"{s['agents_with_a_false_selection']} of {s['agents']}",
        )
        for s in summaries(found)
    ]


def _numbers(found: pl.DataFrame) -> list[dict[str, Any]]:
    return [
        {name: value.numbers if isinstance(value, Mean) else value for name, value in s.items()}
        for s in summaries(found)
    ]


def _row(round_: Round) -> tuple[str, ...]:
    """A round in which something was newly selected."""
    asked_for, new = _few(round_.asked_for), _few(round_.newly_selected)
    return str(round_.number + 1), asked_for, new, str(len(round_.undecided))


def _few(names: tuple[str, ...]) -> str:
    return "—" if not names else ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
