"""`gridworld-rule-1`: Rule 1 with configuration, by Algorithm 3 as printed and by ours, on the grid's four coordinates."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from policyspace.configuration import DESIGNS, configure
from policyspace.experiments.configured_run import algorithm, observer, world_and_space
from policyspace.experiments.frames import means, rates, tidy
from policyspace.experiments.literal import LITERAL, procedures
from policyspace.experiments.panel import Panel, Scale
from policyspace.experiments.records import Cell, Record
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.report.plots import draw_lines, logarithmic
from policyspace.report.style import BLUE, GREY, bare, new_figure
from policyspace.worlds.agents import learn
from policyspace.worlds.confmdp import Configuration, ConfMDP, Key

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Discrete grid world: Rule 1 with configuration"
STATED = LITERAL["gridworld"]
RUNS = STATED.runs.value
EPISODES = (30, 100, 300)
COORDINATES = ("row", "col", "goal_row", "goal_col")
"""The units: all features of a coordinate together, so that there are 16 sets to search and to configure for."""
NUM_ATTEMPTS = {"literal": 1, "ours": 3}
"""N_conf for each set, which the paper gives for Rule 2 alone; rounds of our joint design."""
WAYS = {"first": "no configuration", "last": "configured"}
COLOURS = {"first": GREY, "last": BLUE}


def cells(scale: Scale) -> list[Cell]:
    """The same agents by both procedures."""
    literal = {"learning": STATED.learning, "adam": STATED.adam, "design_options": STATED.objective}
    return [
        Cell(
            "gridworld-rule-1",
            {
                "procedure": procedure,
                "num_episodes": n,
                "num_attempts": NUM_ATTEMPTS[procedure],
                "significance": STATED.significance.value,
                "seed": seed,
            }
            | (literal if procedure == "literal" else {"design": "d-optimal"}),
        )
        for procedure in procedures(scale)
        for n in (EPISODES[1:2] if scale.quick else EPISODES)
        for seed in range(scale.num_runs(RUNS, 1))
    ]


@lru_cache
def grouped() -> tuple[ConfMDP, PolicySpace]:
    """The grid world, and its space with a group a coordinate."""
    world = world_and_space("gridworld")[0]
    groups = {
        name: [f for f in world.feature_names if f.rpartition("_")[0] == name and f[-1].isdigit()]
        for name in COORDINATES
    }
    return world, world.policy_space(groups=groups)


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """One agent that sees each coordinate with probability ½: the sets returned after the first round and at the end."""
    world, space = grouped()
    controls, start, key = jax.random.split(jax.random.key(setting["seed"]), 3)
    seen = np.asarray(jax.random.bernoulli(controls, 0.5, (len(COORDINATES),)))
    truth = frozenset(name for name, own in zip(COORDINATES, seen, strict=True) if own)

    def learned(truth: frozenset[str], configuration: Configuration, key: Key) -> np.ndarray:
        return learn(world, space, truth, configuration, key, **setting.get("learning", {})).theta

    observe, initial = observer(world, space, truth, learned), world.random_configuration(start)
    if setting["procedure"] == "literal":
        found = algorithm(setting, world, space, observe, key).combinatorial(initial)
    else:
        rounds = configure(
            world, observe, key, space, "combinatorial", setting["significance"], DESIGNS[setting["design"]](),
            setting["num_episodes"], setting["num_attempts"], None, initial,
        )  # fmt: skip
        found = [one.supports for one in rounds]
    return {
        "truth": [name for name in COORDINATES if name in truth],
        "first": found[0],
        "last": found[-1],
        "num_rounds": len(found),
    }


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
        )
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
    figure.legend(*plots[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure
