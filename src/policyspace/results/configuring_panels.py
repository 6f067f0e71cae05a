"""Records of an experiment on configuring → α̂ and β̂ with their intervals, figures, and whether the claims hold."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from policyspace.experiments.records import Record
from policyspace.report.estimates import Mean
from policyspace.report.plots import SHARES, draw_lines, draw_points, legend_below, logarithmic
from policyspace.report.style import AMBER, BLUE, GREEN, GREY, RED, bare, new_figure
from policyspace.results.error_rates import MISSED, WRONG, units_of
from policyspace.results.frames import difference, differences, in_order, means, rates, shares, tidy
from policyspace.results.guesses import guesses_panels
from policyspace.results.judging import FEWEST, Part, above, all_of, verdict_of, why, within
from policyspace.results.literal_settings import settings_panels
from policyspace.results.panel import Panel
from policyspace.results.stories import story

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "none": "no configuration",
    "uniform": "uniform configuration",
    "paper": "the paper's objective",
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


def panels(name: str, title: str, records: list[Record]) -> list[Panel]:
    """Every part of which there are records, in the order of the paper."""
    made = {"episodes": by_episodes, "totals": at_totals, "story": story}
    parts = {part: [r for r in records if r.setting["part"] == part] for part in made}
    shown = [made[part](name, title, found) for part, found in parts.items() if found]
    return shown + guesses_panels(name, title, records) + settings_panels(name, name, records)


def agents(records: list[Record], episodes: str) -> pl.DataFrame:
    """One row an agent, by number of episodes, which an entry of its setting says, and design."""
    names = (MISSED, WRONG, "any_false", "num_rounds")
    found = tidy(
        records,
        lambda r: [
            {"episodes": r.setting[episodes], "design": r.setting["design"], "seed": r.setting["seed"]}
            | {name: r.result.get(name) for name in names}
            | units_of(r)
        ],
    )
    return in_order(found, "design", LABELS).sort("episodes", maintain_order=True)


def summaries(found: pl.DataFrame) -> list[dict[str, Any]]:
    """What each design found with so many episodes: means over agents; none where no agent has such features."""
    missed, wrong = (shares(found, rate, "episodes", "design") for rate in (MISSED, WRONG))
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


CLAIM = (
    "α̂ is almost independent of the number n of episodes, as it is directly controlled by the critical value; β̂ "
    "decreases as n increases, and configuring the environment gives a significant advantage: β̂ decreases faster."
)
FLAT = 0.05
"""A change of α̂ by so much is more than "almost independent"; a gain in β̂ of less is no advantage to speak of."""
CRITERIA = (
    f"On the same agents, by intervals that hold for all n at once. α̂ is flat if with and without configuration it changes "
    f"by at most {FLAT:g} from the smallest n to any other; where it changes for no agent at all, it is. β̂ falls if, both "
    "ways, it is lower at the largest n than at the smallest. Configuring helps if β̂ is surely lower with it at half of the "
    "n or more and surely higher at none; it does not if that is nowhere so, and β̂ surely higher somewhere or its gain "
    f"surely below {FLAT:g} everywhere. At least {FEWEST} agents."
)


def judge(found: pl.DataFrame) -> list[Part]:
    """The three parts of the claim."""
    return [_flat(found), _falls(found), _helps(found)]


def ways(found: pl.DataFrame) -> dict[str, str]:
    """The two ways that the paper compares: no configuration, and the one design that these agents were configured by."""
    return {
        name: "without configuration" if name == "none" else "configured" for name in found["design"].unique().sort()
    }


def _flat(found: pl.DataFrame) -> Part:
    changes = _from_first(found, WRONG)
    if not changes:
        return Part("α̂ is known at one n only", None)
    largest = max(changes.values(), key=lambda change: abs(change.value))
    return Part(f"From one n to another α̂ changes by {largest.rounded(3)} at most",
                all_of(within(change, FLAT) for change in changes.values()))  # fmt: skip


def _falls(found: pl.DataFrame) -> Part:
    last = found["episodes"].to_numpy().max()
    falls = {design: change for (design, n), change in _from_first(found, MISSED).items() if n == last}
    if not falls:
        return Part("β̂ is known at one n only", None)
    said = " and ".join(f"{change.rounded(3)} {ways(found)[design]}" for design, change in falls.items())
    first = found["episodes"].to_numpy().min()
    return Part(f"From n = {first} to {last} β̂ changes by {said}",
                all_of(above(Mean(-change.value, change.margin, 0)) for change in falls.values()))  # fmt: skip


def _from_first(found: pl.DataFrame, rate: str) -> dict[tuple[str, int], Mean]:
    """How a rate of the same agents changes from the smallest n to every other, with and without configuration."""
    sizes = found["episodes"].unique().sort().to_list()
    level = 1 - 0.05 / max(1, 2 * (len(sizes) - 1))
    changes = {
        (design, n): difference(found.filter(pl.col("design") == design), rate, "episodes", n, sizes[0], level)
        for design in ways(found)
        for n in sizes[1:]
    }
    return {key: change for key, change in changes.items() if change is not None}


def _helps(found: pl.DataFrame) -> Part:
    gains = gains_of(found)
    if not gains:
        return Part("No agent was seen both ways", None)
    clear = [n for n, gain in gains.items() if gain.low > 0]
    worse = [n for n, gain in gains.items() if gain.high < 0]
    idle = all(gain.high < FLAT for gain in gains.values())
    shown = "; ".join(f"{gain.rounded(3)} at n = {n}" for n, gain in gains.items())
    helps = 2 * len(clear) >= len(gains) and not worse
    return Part(f"Configuring lowers β̂ of the same agents by {shown}, clearly so at {len(clear)} of {len(gains)} n",
                True if helps else False if not clear and (worse or idle) else None)  # fmt: skip


def gains_of(found: pl.DataFrame) -> dict[int, Mean]:
    """How much lower β̂ of the same agents is with configuration, at every n, by intervals that hold for all n at once."""
    level = 1 - 0.05 / found["episodes"].n_unique()
    designs = [design for design in ways(found) if design != "none"]
    return differences(found, MISSED, "design", "none", designs[0], "episodes", level) if designs else {}


def by_episodes(name: str, title: str, records: list[Record]) -> Panel:
    """The paper's figure: α̂ and β̂ against the episodes of one round, with and without configuration."""
    found = agents(records, "num_episodes")
    parts, gains = judge(found), gains_of(found)
    return Panel(
        f"{name}-episodes",
        f"{title}: errors against the episodes of one round",
        CLAIM,
        verdict_of(parts, min(rate.num_runs for rate in rates(found, "any_false", "design", "episodes").values())),
        f"{why(parts)} {_paid(found)}",
        draw(found, f"{title}: rounds of n episodes", "episodes of one round, n"),
        COLUMNS,
        _rows(found),
        {"summaries": _numbers(found), "gains": {str(n): gain.numbers for n, gain in gains.items()}},
        CRITERIA,
    )


def _paid(found: pl.DataFrame) -> str:
    """What configured runs pay, and how many runs select falsely."""
    false, named = rates(found, "any_false", "design"), ways(found)
    errors = ", ".join(f"{rate.count} of {rate.num_runs} {named[design]}" for design, rate in false.items())
    configured = found.filter(pl.col("design") != "none")
    if configured.is_empty():
        return f"There are no configured runs. Runs with a false selection: {errors}."
    rounds = float(np.mean(configured["num_rounds"].to_list()))
    return (
        f"A configured run has {rounds:.0f} rounds on average, so it pays {rounds:.0f}·n episodes. Runs with a false "
        f"selection: {errors}."
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


def draw(found: pl.DataFrame, title: str, label: str) -> "Figure":
    """β̂ on the left, α̂ on the right, a mark a design with its 95 % interval."""
    figure = new_figure(4.0, title, width=9.6)
    plots = dict(zip((MISSED, WRONG), figure.subplots(1, 2, width_ratios=(3, 2)), strict=True))
    titles = {MISSED: "controlled features missed, β̂", WRONG: "others selected, α̂"}
    missed, wrong = (shares(found, rate, "design", "episodes") for rate in plots)
    draw_lines(plots[MISSED], missed, COLOURS, LABELS, within=SHARES)
    draw_points(plots[WRONG], wrong, COLOURS, within=SHARES)
    for rate, axes in plots.items():
        bare(axes)
        logarithmic(axes, found["episodes"].unique().sort().to_list())
        axes.set_xlabel(label)
        axes.set_title(titles[rate], loc="left", fontsize=10.5)
    plots[MISSED].set_ylim(-0.03, 1.03)  # a mark at zero is seen whole
    top = max(0.05, plots[WRONG].get_ylim()[1])
    plots[WRONG].set_ylim(-0.03 * top, top)
    legend_below(plots[MISSED])
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
