"""Records of Rule 1 with configuration → how often the true set is returned, alone and among others."""

from typing import TYPE_CHECKING

import polars as pl

from policyspace.experiments.configuring_rule_1 import EPISODES
from policyspace.experiments.records import Record
from policyspace.report.plots import draw_lines, legend_below, logarithmic
from policyspace.report.style import BLUE, GREY, bare, new_figure
from policyspace.results.frames import means, rates, tidy
from policyspace.results.literal_settings import settings_panels
from policyspace.results.panel import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TITLE = "Discrete grid world: Rule 1 with configuration"
WAYS = {"first": "no configuration", "last": "configured"}
COLOURS = {"first": GREY, "last": BLUE}


def outcomes(records: list[Record]) -> pl.DataFrame:
    """A row an agent and way: whether the true set is the only one returned, one of them, and how many there are."""
    return tidy(
        records,
        lambda r: [
            {
                "procedure": r.setting["procedure"],
                "episodes": r.setting["num_episodes"],
                "seed": r.setting["seed"],
                "way": way,
                "alone": [sorted(s) for s in r.result[way]] == [sorted(r.result["truth"])],
                "among": sorted(r.result["truth"]) in [sorted(s) for s in r.result[way]],
                "returned": len(r.result[way]),
                "rounds": r.result["num_rounds"],
            }
            for way in WAYS
        ],
    )


def analyse(records: list[Record]) -> list[Panel]:
    """One panel: how often the true set is returned, alone and among others."""
    found = outcomes(records)
    alone, among = (rates(found, what, "way", "episodes") for what in ("alone", "among"))
    returned, rounds = means(found, "returned", "way", "episodes"), float(found["rounds"].to_numpy().mean())
    most = max(n for _, n in alone)
    united = (
        "Collections are united: a set that was too small for one round stays among those returned."
        if records[0].setting["procedure"] == "literal"
        else "A set must hold one of every round's: those too small for any round are gone."
    )
    return [
        Panel(
            "gridworld-rule-1",
            TITLE,
            "Does Rule 1 find the policy space when the environment is configured (Algorithm 3)?",
            "our own",
            f"At {most} episodes a round and {rounds:.0f} rounds the true set is the only one returned for "
            f"{alone['last', most].words} of the agents and one of them for {among['last', most].words}, of "
            f"{returned['last', most].words} sets; without configuration for {alone['first', most].words} and "
            f"{among['first', most].words}. {united}",
            draw(found),
            ("way", "episodes", "agents", "the true set alone", "among those returned", "sets returned"),
            [
                (WAYS[way], str(n), str(share.num_runs), share.words, among[way, n].words, returned[way, n].words)
                for (way, n), share in alone.items()
            ],
            {
                "outcomes": [
                    {"way": way, "episodes": n, "alone": share.value, "among": among[way, n].value}
                    for (way, n), share in alone.items()
                ]
            },
        ),
        *settings_panels("gridworld-rule-1", "gridworld", records, EPISODES),
    ]


def draw(found: pl.DataFrame) -> "Figure":
    """Left, the true set alone; right, among others."""
    figure = new_figure(3.2, TITLE, width=8)
    titles = {"alone": "the true set alone is returned", "among": "it is among those returned"}
    plots = figure.subplots(1, 2, sharey=True)
    for axes, (what, title) in zip(plots, titles.items(), strict=True):
        bare(axes)
        draw_lines(axes, rates(found, what, "way", "episodes"), COLOURS, WAYS)
        logarithmic(axes, found["episodes"].unique().sort().to_list())
        axes.set_title(title, loc="left", fontsize=10.5)
        axes.set_xlabel("episodes of one round")
    plots[0].set_ylim(-0.03, 1.03)
    plots[0].set_ylabel("share of agents")
    legend_below(plots[0])
    return figure
