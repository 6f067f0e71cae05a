"""What the experiments on configuring show: error rates by episodes and at equal totals, stories, guesses, Rule 1."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from policyspace.report.figures import AMBER, BLUE, GREEN, GREY, INK, PURPLE, RED
from policyspace.study.page import ExampleRun, draw_rounds
from policyspace.study.records import Round
from policyspace.worlds import make_world
from policyspace_paper.configuring import (
    CONTINUOUS,
    GRIDWORLD,
    RULE_1_EPISODES,
    WEIGHTS_EPISODES,
    AgentResult,
    ConfiguringSetting,
    Rule1Result,
    rule_1_settings,
    run,
    run_rule_1,
    run_weights,
    weights_settings,
)
from policyspace_paper.estimates import (
    Mean,
    Rate,
    difference,
    differences,
    groups,
    in_order,
    mean_share,
    means,
    rates,
    shares,
    tidy,
)
from policyspace_paper.execution import Experiment, Record
from policyspace_paper.panels import FEWEST, Claim, ClaimPart, Panel, above, all_of, judged, within
from policyspace_paper.plots import Plot, draw
from policyspace_paper.printed import settings_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AgentRecord = Record[ConfiguringSetting, AgentResult]

# -- α̂ and β̂ of every agent, as shares of the units that could be missed or wrongly selected.

MISSED, WRONG = "false_negative_rate", "false_positive_rate"
LABELS = {
    "none": "no configuration",
    "flat": "flat start alone",
    "uniform": "uniform configuration",
    "paper": "the paper's objective",
    "flat-paper": "flat start, then the paper's objective",
    "d-optimal": "D-optimal",
    "d-optimal-there": "D-optimal from where the agent is",
    "noncentrality": "non-centrality",
}
OTHER_STARTS: Mapping[tuple[str, bool | None], str] = {
    ("none", True): "flat",
    ("paper", True): "flat-paper",
    ("d-optimal", False): "d-optimal-there",
}
"""What designs are called that begin elsewhere than they do by default, at equal totals."""
COLOURS = {
    "none": GREY, "flat": INK, "uniform": BLUE, "paper": RED, "flat-paper": PURPLE, "d-optimal": GREEN,
    "d-optimal-there": "#7a6c5d", "noncentrality": AMBER,
}  # fmt: skip
COLUMNS = (
    "design",
    "episodes",
    "agents",
    "β̂, controlled and missed",
    "α̂, not controlled and selected",
    "agents with a false selection",
)
AS_GUESSED = "as everywhere else"


def agents(records: Iterable[AgentRecord], episodes: str) -> pl.DataFrame:
    """One row an agent, by number of episodes, which an entry of its setting says, and design.

    `{rate}_of` says how many units a rate is a share of; null where a record does not name them.
    """

    def rows(record: AgentRecord) -> list[dict[str, object]]:
        setting, result = record.setting, record.result
        world = make_world(setting.get("world", "minigolf"))
        owned = len(result["truth"]) if "truth" in result else None
        others = None if owned is None else len(world.feature_names) - owned
        return [
            {
                "episodes": setting[episodes],  # type: ignore[literal-required]
                "design": OTHER_STARTS.get((setting["design"], setting.get("flat_first")), setting["design"]),
                "seed": setting["seed"],
                "guess": setting.get("guess", AS_GUESSED),
                **{name: result.get(name) for name in (MISSED, WRONG, "any_false", "num_rounds")},
                f"{MISSED}_of": owned,
                f"{WRONG}_of": others,
            }
        ]

    return in_order(tidy(records, rows), "design", LABELS).sort("episodes", maintain_order=True)


class Summary(NamedTuple):
    """What a design found with so many episodes: means over agents; none where no agent has such features."""

    design: str
    episodes: int
    agents: int
    agents_with_a_false_selection: int
    false_negative_rate: Mean | None
    false_positive_rate: Mean | None

    @property
    def row(self) -> tuple[str, ...]:
        """Under COLUMNS."""
        false = f"{self.agents_with_a_false_selection} of {self.agents}"
        return LABELS[self.design], str(self.episodes), str(self.agents), *map(_words, self[-2:]), false

    @property
    def numbers(self) -> dict[str, object]:
        """As plain data."""
        return {n: value.numbers if isinstance(value, Mean) else value for n, value in self._asdict().items()}


def summaries(found: pl.DataFrame) -> list[Summary]:
    """Of every design at every number of episodes."""
    missed, wrong = (shares(found, rate, "episodes", "design") for rate in (MISSED, WRONG))
    false = rates(found, "any_false", "episodes", "design")
    return [Summary(d, n, f.num_runs, f.count, missed.get((n, d)), wrong.get((n, d))) for (n, d), f in false.items()]


def _words(mean: Mean | None) -> str:
    return "—" if mean is None else mean.rounded(3)


def draw_errors(found: pl.DataFrame, title: str, xlabel: str) -> "Figure":
    """β̂ on the left, α̂ on the right, a mark a design with its 95 % interval."""

    def near_zero(axes: "Axes") -> None:
        top = max(0.05, axes.get_ylim()[1])
        axes.set_ylim(-0.03 * top, top)  # a mark at zero is seen whole

    missed, wrong = (shares(found, rate, "design", "episodes") for rate in (MISSED, WRONG))
    plots = [
        Plot(missed, "controlled features missed, β̂"),
        Plot(wrong, "others selected, α̂", "points", more=near_zero),
    ]
    return draw(
        title,
        plots,
        COLOURS,
        LABELS,
        height=4.0,
        width=9.6,
        shares=True,
        xlabel=xlabel,
        sharey=False,
        width_ratios=(3, 2),
    )


# -- The claim of Figures 1 and 5: α̂ is flat, β̂ falls, and falls faster with configuration.

FLAT = 0.05
"""A change of α̂ by so much is more than "almost independent"; a gain in β̂ of less is no advantage to speak of."""
ERRORS = Claim(
    "α̂ is almost independent of the number n of episodes, as it is directly controlled by the critical value; β̂ "
    "decreases as n increases, and configuring the environment gives a significant advantage: β̂ decreases faster.",
    f"On the same agents, by intervals that hold for all n at once. α̂ is flat if with and without configuration it changes "
    f"by at most {FLAT:g} from the smallest n to any other; where it changes for no agent at all, it is. β̂ falls if, both "
    "ways, it is lower at the largest n than at the smallest. Configuring helps if β̂ is surely lower with it at half of the "
    "n or more and surely higher at none; it does not if that is nowhere so, and β̂ surely higher somewhere or its gain "
    f"surely below {FLAT:g} everywhere. At least {FEWEST} agents.",
)


def ways(found: pl.DataFrame) -> dict[str, str]:
    """The two ways that the paper compares: no configuration, and the one design that these agents were configured by."""
    designs = found["design"].unique().sort()
    return {name: "without configuration" if name == "none" else "configured" for name in designs}


def judge(found: pl.DataFrame) -> list[ClaimPart]:
    """The three parts of the claim."""
    first, last = found["episodes"].to_numpy().min(), found["episodes"].to_numpy().max()
    changes = list(_from_first(found, WRONG).values())
    falls = {design: change for (design, n), change in _from_first(found, MISSED).items() if n == last}
    flat, fall = ClaimPart("α̂ is known at one n only", None), ClaimPart("β̂ is known at one n only", None)
    if changes:
        largest = max(changes, key=lambda change: abs(change.value))
        flat = ClaimPart(
            f"From one n to another α̂ changes by {largest.rounded(3)} at most",
            all_of(within(change, FLAT) for change in changes),
        )
    if falls:
        said = " and ".join(f"{change.rounded(3)} {ways(found)[design]}" for design, change in falls.items())
        fall = ClaimPart(
            f"From n = {first} to {last} β̂ changes by {said}",
            all_of(above(Mean(-change.value, change.margin, 0)) for change in falls.values()),
        )
    return [flat, fall, _helps(found)]


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


def _helps(found: pl.DataFrame) -> ClaimPart:
    gains = gains_of(found)
    if not gains:
        return ClaimPart("No agent was seen both ways", None)
    clear = [n for n, gain in gains.items() if gain.low > 0]
    worse = [n for n, gain in gains.items() if gain.high < 0]
    idle = all(gain.high < FLAT for gain in gains.values())
    shown = "; ".join(f"{gain.rounded(3)} at n = {n}" for n, gain in gains.items())
    return ClaimPart(
        f"Configuring lowers β̂ of the same agents by {shown}, clearly so at {len(clear)} of {len(gains)} n",
        judged(2 * len(clear) >= len(gains) and not worse, not clear and (bool(worse) or idle)),
    )


def gains_of(found: pl.DataFrame) -> dict[int, Mean]:
    """How much lower β̂ of the same agents is with configuration, at every n, by intervals that hold for all n at once."""
    level = 1 - 0.05 / found["episodes"].n_unique()
    designs = [design for design in ways(found) if design != "none"]
    return differences(found, MISSED, "design", "none", designs[0], "episodes", level) if designs else {}


def by_episodes(name: str, title: str, records: list[AgentRecord]) -> Panel:
    """The paper's figure: α̂ and β̂ against the episodes of one round, with and without configuration."""
    found = agents(records, "num_episodes")
    false = rates(found, "any_false", "design")
    paid = "There are no configured runs."
    configured = found.filter(pl.col("design") != "none")
    if not configured.is_empty():
        rounds = float(np.mean(configured["num_rounds"].to_list()))
        paid = f"A configured run has {rounds:.0f} rounds on average, so it pays {rounds:.0f}·n episodes."
    errors = ", ".join(f"{rate.count} of {rate.num_runs} {ways(found)[design]}" for design, rate in false.items())
    return Panel(
        f"{name}-episodes",
        f"{title}: errors against the episodes of one round",
        ERRORS,
        f"{paid} Runs with a false selection: {errors}.",
        draw_errors(found, f"{title}: rounds of n episodes", "episodes of one round, n"),
        COLUMNS,
        [summary.row for summary in summaries(found)],
        {
            "summaries": [summary.numbers for summary in summaries(found)],
            "gains": {str(n): gain.numbers for n, gain in gains_of(found).items()},
        },
        judge(found),
        min(rate.num_runs for rate in rates(found, "any_false", "design", "episodes").values()),
    )


def at_totals(name: str, title: str, records: Sequence[Record[Any, Any]]) -> Panel:
    """What a user pays for: all designs at equal totals of episodes."""
    found = agents(records, "budget")
    total = int(found["episodes"].to_numpy().max())
    missed = means(found.filter(pl.col("episodes") == total), MISSED, "design")
    best = min(missed, key=lambda design: missed[design].value)
    listed = ", ".join(f"{LABELS[design]} {rate.value:.3f}" for design, rate in missed.items())
    return Panel(
        f"{name}-totals",
        f"{title}: errors at equal totals of episodes",
        Claim(
            "Which way of configuring misses least when every episode observed is paid for, δ = 0.01 kept over all rounds?"
        ),
        f"At {total} episodes in total the share missed is: {listed}; least by {LABELS[best]}. The default is D-optimal."
        + _start_and_design(found),
        draw_errors(found, f"{title}: equal totals", "episodes observed in total"),
        COLUMNS,
        [summary.row for summary in summaries(found)],
        {"summaries": [summary.numbers for summary in summaries(found)]},
    )


def _start_and_design(found: pl.DataFrame) -> str:
    """How much of what the default gains over watching is the flat first configuration, and how much the design."""
    if "flat" not in found["design"].unique():
        return ""
    told = []
    for total in found["episodes"].unique().sort():
        own = found.filter(pl.col("episodes") == total)
        pairs = (("none", "d-optimal"), ("none", "flat"), ("flat", "d-optimal"))
        gains = [difference(own, MISSED, "design", one, other) for one, other in pairs]
        if all(gain is not None for gain in gains):
            whole, start, design = (gain.rounded(3) for gain in gains if gain is not None)
            told.append(f"at {total} episodes {whole}, of which {start} is the flat start, {design} the design")
    return f" What the default gains over watching: {'; '.join(told)}." if told else ""


# -- Stories: rounds as the paper draws them, and whether agents of its examples go the way that it tells.

ALWAYS = 0.9
"""The share of rounds above which something is always so."""

ENDS = (
    "The end is correct if exactly the controlled features are selected; configuring is needed if the first round misses "
    f"some of them. Each is shown if it is surely so for more than half of the agents, all of the paper's example, and "
    f"contradicted if surely for less. At least {FEWEST} agents."
)
STORIES = {
    "gridworld": Claim(
        "The general trend of the configuration is to spread the initial probability mass across a greater number of grid "
        "cells; eventually the correct policy space is identified, which can hardly be obtained without configuring.",
        "The starts spread if the effective number of cells, exp(entropy) of the agent's start and of the goal "
        f"together, is larger in the median round after the first than in the first. {ENDS}",
    ),
    "continuous-gridworld": Claim(
        "The mean of the agent's initial position always tracks the first feature yet to be tested; eventually the tests "
        "reject all the features that are accessible by the agent, and only them; configuring was crucial.",
        "A start tracks a feature if the agent's, or the goal's, mean is nearer to the centre of the feature asked for than "
        "at first. “Always” is a share: of the rounds that ask for one feature, as a mean over agents, surely more than "
        f"{ALWAYS:.0%}; it is contradicted if surely less. {ENDS}",
    ),
}
STORY_WAYS = {"gridworld": "starts and goals spread over more cells than at first"}


def story(name: str, title: str, records: list[AgentRecord]) -> Panel:
    """The agents of the paper's example, judged by the way and by the end; the rounds of the first are drawn."""
    drawn = min(records, key=lambda record: record.setting["seed"])
    world = make_world(drawn.setting["world"])
    rounds = kept_rounds(drawn)
    first = " ".join(part.words + "." for part in (starts(world.name, rounds), end(drawn)))
    return Panel(
        f"{name}-story",
        f"{title}: configuration → identification",
        STORIES[world.name],
        f"Of the first agent, which is drawn: {first} What it controls and where it begins are those of the paper's "
        "example.",
        draw_rounds(ExampleRun(world.name, world.parameters, rounds, world.feature_names, tuple(drawn.result["truth"]))),
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
        judge_stories(world.name, records),
        len(records),
    )  # fmt: skip


def kept_rounds(record: AgentRecord) -> list[Round]:
    """What was observed and found, round by round."""
    return [Round.from_dict(one) for one in record.result["rounds"]]


def judge_stories(world: str, records: list[AgentRecord]) -> list[ClaimPart]:
    """How many agents go the way that the paper tells, come to its end, and need configuring for it."""
    seen = [(record, kept_rounds(record)) for record in records]
    parts, told = [], dict[str, list[bool | None]]()
    if world == "gridworld":
        told[STORY_WAYS[world]] = [starts(world, rounds).holds for _, rounds in seen]
    else:
        parts.append(always([tracked(rounds) for _, rounds in seen]))
    told |= {
        "exactly the controlled features are selected in the end": [end(record).holds for record, _ in seen],
        "the first round misses some of them": [not set(r.result["truth"]) <= set(one[0].selected) for r, one in seen],
    }
    for words, found in told.items():
        known = [one for one in found if one is not None]
        share = Rate(sum(known), len(known)) if known else None
        if share is None:
            parts.append(ClaimPart(f"There is no agent of whom it could be said that {words}", None))
        else:
            most = judged(share.low > 0.5, share.high < 0.5)
            parts.append(ClaimPart(f"For {share.count} of {share.num_runs} agents {words}", most))
    return parts


def tracked(rounds: Sequence[Round]) -> list[bool]:
    """Whether the start is nearer than at first to the feature asked for, in every round that asks for one."""
    return [
        distance(r.configuration, r.asked_for[0]) < distance(rounds[0].configuration, r.asked_for[0])
        for r in rounds[1:]
        if len(r.asked_for) == 1
    ]


def always(found: Sequence[Sequence[bool]]) -> ClaimPart:
    """In what share of the rounds the starts track the features, as a mean over agents; whether that is "always"."""
    known = [one for one in found if one]
    if not known:
        return ClaimPart("No round asks for one feature", None)
    share = mean_share([float(np.mean(one)) for one in known])
    count, rounds = sum(map(sum, known)), sum(map(len, known))
    words = (
        f"In {count} of {rounds} rounds of {len(known)} agents the start is nearer than at first to the feature asked "
        f"for, a share of {share.words}"
    )
    return ClaimPart(words, judged(share.low > ALWAYS, share.high < ALWAYS))


def end(record: AgentRecord) -> ClaimPart:
    """Whether the end is the truth."""
    truth, selected = set(record.result["truth"]), set(record.result["selected"])
    others = len(selected - truth)
    return ClaimPart(
        f"Of {len(truth)} controlled features {len(selected & truth)} are selected after "
        f"{len(record.result['rounds'])} rounds, and {others} {'other is' if others == 1 else 'others are'}",
        selected == truth,
    )


def starts(world: str, rounds: Sequence[Round]) -> ClaimPart:
    """Whether the configurations go where the paper says."""
    if len(rounds) < 2:
        return ClaimPart("There is no configured round", None)
    if world == "gridworld":
        first, *later = (cells_in_use(r.configuration) for r in rounds)
        middle = float(np.median(later))
        words = f"Starts and goals use {first:.1f} cells of 625 at first and {middle:.1f} in the median round after it"
        return ClaimPart(words, middle > first)
    nearer = tracked(rounds)
    if not nearer:
        return ClaimPart("No round asks for one feature", None)
    words = f"In {sum(nearer)} of {len(nearer)} configured rounds the start is nearer than at first to the feature asked for"
    return ClaimPart(words, sum(nearer) > ALWAYS * len(nearer))


def cells_in_use(configuration: Mapping[str, ArrayLike]) -> float:
    """exp(entropy) of the four independent softmaxes: 1 where start and goal are certain, 625 where they are uniform."""
    entropy = 0.0
    for logits in configuration.values():
        chances = np.exp(np.asarray(logits) - np.max(logits))
        chances /= chances.sum()
        entropy -= float(np.sum(chances * np.log(np.maximum(chances, 1e-300))))
    return float(np.exp(entropy))


def distance(configuration: Mapping[str, ArrayLike], feature: str) -> float:
    """From the mean start of the agent, or of the goal, to the centre of a radial feature of it."""
    who, _, i, j = feature.split("_")
    names = ("x", "y") if who == "agent" else ("goal_x", "goal_y")
    centre = np.array([int(i) - 2.0, int(j) - 2.0])
    return float(np.linalg.norm(np.array([configuration[name] for name in names]) - centre))


def _few(names: tuple[str, ...]) -> str:
    return "—" if not names else ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


# -- The literal procedure with one of its guesses changed: whether what it finds hangs on the guess.


def guesses_panels(name: str, title: str, records: list[AgentRecord]) -> list[Panel]:
    """One panel, if there are records of other guesses: α̂ and β̂ of the same agents by each."""
    other = [r for r in records if r.setting["part"] == "guesses"]
    if not other:
        return []
    n, seeds = other[0].setting["num_episodes"], {r.setting["seed"] for r in other}
    same = [
        r for r in records
        if r.setting["part"] == "episodes" and r.setting["num_episodes"] == n and r.setting["seed"] in seeds
    ]  # fmt: skip
    way = pl.when(pl.col("design") == "none").then(pl.lit("none")).otherwise(pl.lit("configured"))
    whole = agents(same + other, "num_episodes").with_columns(way=way)
    stories = [r for r in records if r.setting["part"] in ("story", "story-guesses")]
    found = groups(whole, "guess")
    gains = {guess: difference(own, MISSED, "way", "none", "configured") for guess, own in found.items()}
    told = "; ".join(f"{guess}, {gain.rounded(2)}" for guess, gain in gains.items() if gain is not None)
    rows = []
    for guess, own in found.items():
        by_way = [shares(own, rate, "way") for rate in (MISSED, WRONG)]
        errors = [_words(known.get(way)) for known in by_way for way in ("none", "configured")]
        rows.append((guess, str(len(seeds)), *errors, _words(gains[guess])))
    return [
        Panel(
            f"{name}-guesses",
            f"{title}: other guesses where the paper is silent",
            Claim("Do the literal results hang on settings that the paper does not state?"),
            f"At n = {n}, on {len(seeds)} agents, configuring lowers β̂ by: {told}.",
            None,
            (
                "guess", "agents", "β̂ without configuration", "β̂ configured", "α̂ without configuration",
                "α̂ configured", "gain in β̂",
            ),
            rows,
            {guess: None if gain is None else gain.numbers for guess, gain in gains.items()},
        ),
        *_story_guesses(name, title, stories),
    ]  # fmt: skip


def _story_guesses(name: str, title: str, records: list[AgentRecord]) -> list[Panel]:
    """The paper's example by each guess, if there are records of others: how far the agents go the way that it tells."""
    by_guess: dict[str, list[AgentRecord]] = {}
    for record in records:
        by_guess.setdefault(record.setting.get("guess", AS_GUESSED), []).append(record)
    if len(by_guess) < 2:
        return []
    told = {guess: judge_stories(name, own) for guess, own in by_guess.items()}
    return [
        Panel(
            f"{name}-story-guesses",
            f"{title}: the paper's example by other guesses",
            Claim("Does the story hang on rates that the paper does not state?"),
            " ".join(f"By the guess “{guess}”: {own[0].words}." for guess, own in told.items()),
            None,
            ("guess", "agents", "the configurations", "the end", "the need"),
            [(guess, str(len(by_guess[guess])), *(part.words for part in own)) for guess, own in told.items()],
        )
    ]


# -- The panels of both grid worlds, and of the discrete one weight by weight.

GOAL_FEATURES = 25


def analyse(name: str, title: str, records: list[AgentRecord]) -> list[Panel]:
    """Every part of which there are records, in the order of the paper."""
    made = {"episodes": by_episodes, "totals": at_totals, "story": story}
    parts = {part: [r for r in records if r.setting["part"] == part] for part in made}
    shown = [made[part](name, title, found) for part, found in parts.items() if found]
    if name == CONTINUOUS.experiment and parts["episodes"]:
        shown[0] = replace(shown[0], remark=shown[0].remark + _where_too_many(parts["episodes"]))
    return shown + guesses_panels(name, title, records) + settings_panels(name, name, records)


def _where_too_many(records: list[AgentRecord]) -> str:
    """Why others are selected where there are few more episodes than features of the goal, if they are."""
    wrong = {n: mean.value for n, mean in means(agents(records, "num_episodes"), WRONG, "episodes").items()}
    worst = max(wrong, key=lambda n: wrong[n], default=0)
    if not GOAL_FEATURES < worst < 3 * GOAL_FEATURES or wrong[worst] <= FLAT:
        return ""
    return (
        f" Others are selected most at n = {worst}: the {GOAL_FEATURES} features of the goal stay the same within an "
        "episode, so that with few more episodes than that they are nearly an intercept for each of them; a place is the "
        "sum of the actions before it, and λ of what is not controlled is then larger than χ² says. Agents that learn "
        "better have it, too."
    )


def analyse_weights(records: list[AgentRecord]) -> list[Panel]:
    """The paper's figure, by single weights."""
    shown = by_episodes("gridworld-weights", GRIDWORLD_WEIGHTS.title, records)
    return [shown, *settings_panels("gridworld-weights", "gridworld", records, WEIGHTS_EPISODES)]


# -- Rule 1 with configuration: how often the true set is returned, alone and among others.

WAYS = {"first": "no configuration", "last": "configured"}


def analyse_rule_1(records: list[Record[ConfiguringSetting, Rule1Result]]) -> list[Panel]:
    """A row an agent and way: whether the true set is the only one returned, one of them, and how many there are."""

    def rows(record: Record[ConfiguringSetting, Rule1Result]) -> Iterable[dict[str, object]]:
        truth, common = sorted(record.result["truth"]), {"episodes": record.setting["num_episodes"]}
        for way, sets in (("first", record.result["first"]), ("last", record.result["last"])):
            returned = [sorted(one) for one in sets]
            yield common | {
                "way": way, "alone": returned == [truth], "among": truth in returned, "returned": len(returned),
                "rounds": record.result["num_rounds"],
            }  # fmt: skip

    found, title = tidy(records, rows), GRIDWORLD_RULE_1.title
    alone, among = (rates(found, what, "way", "episodes") for what in ("alone", "among"))
    returned, rounds = means(found, "returned", "way", "episodes"), float(found["rounds"].to_numpy().mean())
    most = max(n for _, n in alone)
    united = (
        "Collections are united: a set that was too small for one round stays among those returned."
        if records[0].setting["procedure"] == "literal"
        else "A set must hold one of every round's: those too small for any round are gone."
    )
    plots = [Plot(alone, "the true set alone is returned"), Plot(among, "it is among those returned")]
    return [
        Panel(
            "gridworld-rule-1",
            title,
            Claim(
                "Does Rule 1 find the policy space when the environment is configured (Algorithm 3)? Its four units are "
                "groups of ours: all weights of the agent's row (4 features of 3 weights each), of its column, of the "
                "goal's row and of the goal's column, each of which an agent sees with probability ½. Of 16 features "
                "there would be 65 536 sets to configure for."
            ),
            f"At {most} episodes a round and {rounds:.0f} rounds the true set is the only one returned for "
            f"{alone['last', most].words} of the agents and one of them for {among['last', most].words}, of "
            f"{returned['last', most].words} sets; without configuration for {alone['first', most].words} and "
            f"{among['first', most].words}. {united}",
            draw(
                title,
                plots,
                {"first": GREY, "last": BLUE},
                WAYS,
                height=3.2,
                width=8,
                shares=True,
                xlabel="episodes of one round",
                ylabel="share of agents",
            ),
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
        *settings_panels("gridworld-rule-1", "gridworld", records, RULE_1_EPISODES),
    ]


def _of_world(settings: Any, title: str) -> Experiment[ConfiguringSetting, AgentResult]:
    name = settings.experiment
    return Experiment(name, title, settings.settings, run, partial(analyse, name, title))


GRIDWORLD_EXPERIMENT = _of_world(GRIDWORLD, "Discrete grid world")
CONTINUOUS_EXPERIMENT = _of_world(CONTINUOUS, "Continuous grid world")
GRIDWORLD_WEIGHTS = Experiment(
    "gridworld-weights", "Discrete grid world, weight by weight", weights_settings, run_weights, analyse_weights
)
GRIDWORLD_RULE_1 = Experiment(
    "gridworld-rule-1", "Discrete grid world: Rule 1 with configuration", rule_1_settings, run_rule_1, analyse_rule_1
)
