"""One agent's rounds as the paper draws them, and whether they tell what the paper tells of its examples."""

from collections.abc import Sequence

import numpy as np

from policyspace.configuration.round import Round
from policyspace.experiments.records import Record
from policyspace.report.rounds_picture import Story, draw_rounds
from policyspace.results.judging import Part, verdict_of, why
from policyspace.results.panel import Panel
from policyspace.worlds import make_world

ATTEMPTS = 3
"""Of the paper, for each feature: a story of fewer is not finished."""

CLAIMS = {
    "gridworld": "The general trend of the configuration is to spread the initial probability mass across a greater number "
    "of grid cells; eventually the correct policy space is identified, which can hardly be obtained without configuring.",
    "continuous-gridworld": "The mean of the agent's initial position always tracks the first feature yet to be tested; "
    "eventually the tests reject all the features that are accessible by the agent, and only them; configuring was crucial.",
}
CRITERIA = {
    "gridworld": "The starts spread if the effective number of cells, exp(entropy) of the agent's start and of the goal "
    "together, is larger in the median round after the first than in the first.",
    "continuous-gridworld": "The starts track the features if the agent's, or the goal's, mean is nearer to the centre of "
    "the feature asked for than at first in more than half of the rounds that ask for one.",
}
ENDS = (
    "The end is correct if exactly the controlled features are selected; configuring is needed if the first round misses "
    "some of them. The paper tells of one agent, so one is judged, after its three attempts for each feature."
)


def story(name: str, title: str, records: list[Record]) -> Panel:
    """One agent's rounds, judged by the way and by the end."""
    result, setting = records[0].result, records[0].setting
    world = make_world(setting["world"])
    rounds = [Round.from_dict(one) for one in result["rounds"]]
    truth, selected = set(result["truth"]), set(result["selected"])
    parts = [starts(world.name, rounds), *ends(rounds, truth, selected)]
    return Panel(
        f"{name}-story",
        f"{title}: configuration → identification",
        CLAIMS[world.name],
        verdict_of(parts, setting["num_attempts"], ATTEMPTS),
        f"{why(parts)} The agent and its first configuration are those of the paper's example.",
        draw_rounds(Story(world.name, world.parameters, rounds, world.feature_names, tuple(result["truth"]))),
        ("round", "asked for", "newly selected", "open"),
        [
            (str(r.number + 1), _few(r.asked_for), _few(r.newly_selected), str(len(r.undecided)))
            for r in rounds
            if r.newly_selected
        ],
        {"rounds": len(rounds), "truth": sorted(truth), "selected": sorted(selected)},
        f"{CRITERIA[world.name]} {ENDS}",
    )


def ends(rounds: Sequence[Round], truth: set[str], selected: set[str]) -> list[Part]:
    """Whether the end is the truth, and whether configuring was needed to come there."""
    first = set(rounds[0].selected)
    count, others = len(truth), len(selected - truth)
    return [
        Part(
            f"Of {count} controlled features {len(selected & truth)} are selected after {len(rounds)} rounds, and {others} "
            f"{'other is' if others == 1 else 'others are'}",
            selected == truth,
        ),
        Part(f"The first round selects {len(first & truth)} of the {count}", not truth <= first),
    ]


def starts(world: str, rounds: Sequence[Round]) -> Part:
    """Whether the configurations go where the paper says."""
    if len(rounds) < 2:
        return Part("There is no configured round", None)
    if world == "gridworld":
        first, *later = (cells_in_use(r.configuration) for r in rounds)
        middle = float(np.median(later))
        return Part(f"Starts and goals use {first:.1f} cells of 625 at first and {middle:.1f} in the median round after it",
                    middle > first)  # fmt: skip
    asked = [r for r in rounds[1:] if len(r.asked_for) == 1]
    if not asked:
        return Part("No round asks for one feature", None)
    nearer = [
        distance(r.configuration, r.asked_for[0]) < distance(rounds[0].configuration, r.asked_for[0]) for r in asked
    ]
    return Part(f"In {sum(nearer)} of {len(nearer)} configured rounds the start is nearer than at first to the feature "
                "asked for", 2 * sum(nearer) > len(nearer))  # fmt: skip


def cells_in_use(configuration: dict[str, list[float]]) -> float:
    """exp(entropy) of the four independent softmaxes: 1 where start and goal are certain, 625 where they are uniform."""
    entropy = 0.0
    for logits in configuration.values():
        chances = np.exp(np.asarray(logits) - np.max(logits))
        chances /= chances.sum()
        entropy -= float(np.sum(chances * np.log(np.maximum(chances, 1e-300))))
    return float(np.exp(entropy))


def distance(configuration: dict[str, float], feature: str) -> float:
    """From the mean start of the agent, or of the goal, to the centre of a radial feature of it."""
    who, _, i, j = feature.split("_")
    names = ("x", "y") if who == "agent" else ("goal_x", "goal_y")
    centre = np.array([int(i) - 2.0, int(j) - 2.0])
    return float(np.linalg.norm(np.array([configuration[name] for name in names]) - centre))


def _few(names: tuple[str, ...]) -> str:
    return "—" if not names else ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
