"""Rounds as the paper draws them, and whether agents of its examples go the way that it tells."""

from collections.abc import Sequence

import numpy as np

from policyspace.configuration.round import Round
from policyspace.experiments.records import Record
from policyspace.report.estimates import Rate
from policyspace.report.rounds_picture import Story, draw_rounds
from policyspace.results.judging import FEWEST, Part, verdict_of, why
from policyspace.results.panel import Panel
from policyspace.worlds import make_world

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
WAYS = {
    "gridworld": "starts and goals spread over more cells than at first",
    "continuous-gridworld": "the starts come nearer to the features asked for",
}
ENDS = (
    "The end is correct if exactly the controlled features are selected; configuring is needed if the first round misses "
    f"some of them. Each is shown if it is surely so for more than half of the agents, all of the paper's example, and "
    f"contradicted if surely for less. At least {FEWEST} agents."
)


def story(name: str, title: str, records: list[Record]) -> Panel:
    """The agents of the paper's example, judged by the way and by the end; the rounds of the first are drawn."""
    drawn = min(records, key=lambda record: record.setting["seed"])
    world = make_world(drawn.setting["world"])
    rounds = rounds_of(drawn)
    parts = judge(world.name, records)
    first = " ".join(part.words + "." for part in (starts(world.name, rounds), end(drawn)))
    return Panel(
        f"{name}-story",
        f"{title}: configuration → identification",
        CLAIMS[world.name],
        verdict_of(parts, len(records)),
        f"{why(parts)} Of the first agent, which is drawn: {first} What it controls and where it begins are those of the "
        "paper's example.",
        draw_rounds(Story(world.name, world.parameters, rounds, world.feature_names, tuple(drawn.result["truth"]))),
        ("round", "asked for", "newly selected", "open"),
        [
            (str(r.number + 1), _few(r.asked_for), _few(r.newly_selected), str(len(r.undecided)))
            for r in rounds
            if r.newly_selected
        ],
        {
            "agents": [
                {"seed": r.setting["seed"], "rounds": len(r.result["rounds"]), "truth": sorted(r.result["truth"]),
                 "selected": sorted(r.result["selected"])}
                for r in records
            ]
        },
        f"{CRITERIA[world.name]} {ENDS}",
    )  # fmt: skip


def rounds_of(record: Record) -> list[Round]:
    """What was observed and found, round by round."""
    return [Round.from_dict(one) for one in record.result["rounds"]]


def judge(world: str, records: list[Record]) -> list[Part]:
    """How many agents go the way that the paper tells, come to its end, and need configuring for it."""
    way = [starts(world, rounds_of(record)).holds for record in records]
    missed: list[bool | None] = [not set(r.result["truth"]) <= set(rounds_of(r)[0].selected) for r in records]
    told: dict[str, list[bool | None]] = {
        WAYS[world]: way,
        "exactly the controlled features are selected in the end": [end(record).holds for record in records],
        "the first round misses some of them": missed,
    }
    return [_most(words, [one for one in found if one is not None]) for words, found in told.items()]


def _most(words: str, found: list[bool]) -> Part:
    if not found:
        return Part(f"There is no agent of whom it could be said that {words}", None)
    share = Rate(sum(found), len(found))
    shown = True if share.low > 0.5 else False if share.high < 0.5 else None
    return Part(f"For {share.count} of {share.num_runs} agents {words}", shown)


def end(record: Record) -> Part:
    """Whether the end is the truth."""
    truth, selected = set(record.result["truth"]), set(record.result["selected"])
    others = len(selected - truth)
    return Part(
        f"Of {len(truth)} controlled features {len(selected & truth)} are selected after "
        f"{len(record.result['rounds'])} rounds, and {others} {'other is' if others == 1 else 'others are'}",
        selected == truth,
    )


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
