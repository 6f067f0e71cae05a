"""`minigolf-features` and `minigolf-strategies`: what configuring the putter finds, and what that is worth (Figure 2)."""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypedDict, cast

import numpy as np
import polars as pl
from scipy.stats import binomtest

from policyspace.families.jax_backend import jax
from policyspace.identification import simplified
from policyspace.report.figures import BLUE, GREEN, GREY, INK, QUIET, RED, bare, new_figure
from policyspace.worlds.base import Configuration, Key
from policyspace.worlds.confmdp import rollout
from policyspace.worlds.minigolf import AGENT_A2, Minigolf
from policyspace_paper.configuring import (
    DEFAULT,
    STILL,
    AgentResult,
    RoundsSetting,
    Way,
    observed_agent,
    rounds_at,
)
from policyspace_paper.configuring_results import COLOURS as DESIGN_COLOURS
from policyspace_paper.configuring_results import LABELS, at_totals
from policyspace_paper.estimates import Mean, Rate, groups, mean_of, means, paired, rates, tidy
from policyspace_paper.execution import Experiment, Record, RunSetting, RunSize
from policyspace_paper.minigolf import (
    AS_PUBLISHED,
    BY_STAGES,
    EQUAL,
    LENGTHS,
    OURS,
    PUBLISHED,
    RUNS,
    GolfLearning,
    best_learned,
    best_returns,
    by_deviation,
    deviation_of,
    golf,
    learned,
    learnings,
    mean_return,
)
from policyspace_paper.panels import FEWEST, Claim, ClaimPart, Panel, judged
from policyspace_paper.plots import Plot, draw
from policyspace_paper.printed import (
    LITERAL,
    ObjectiveOptions,
    in_closed_form,
    one_out,
    procedures,
    rule_2,
    settings_panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# -- Golfers with random features, seen with one putter and with several (Appendix, Minigolf).

STATED = LITERAL["minigolf"]
EPISODES = STATED.num_episodes.value
TOTALS = (12, 40, 120)
TOTALS_RUNS = 40
JOINT: ObjectiveOptions = {"penalty": 0.25, "num_updates": 100, "joint": True}
"""ζ and the updates of C_I, which asks for all undecided features together at equal totals."""


class FeaturesSetting(RoundsSetting):
    """A golfer, and how it is observed and configured for."""

    learning: GolfLearning


FeaturesRecord = Record[FeaturesSetting, AgentResult]


def settings(size: RunSize) -> Iterable[FeaturesSetting]:
    """Ways of configuring at equal numbers of episodes a round, as the paper compares them, and at equal totals."""
    significance = STATED.significance.value
    literal: Way = {"design": "paper", "design_options": STATED.objective, "num_attempts": 1 if size.quick else 10}
    for procedure in procedures(size):
        printed = procedure == "literal"
        common = {"learning": BY_STAGES[OURS], "significance": significance}
        if printed:
            common |= {"learning": AS_PUBLISHED[PUBLISHED], "adam": STATED.adam}
        for n in (40,) if size.quick else EPISODES:
            for way in (STILL, literal if printed else DEFAULT):
                for seed in range(size.num_runs(STATED.runs.value, 2)):
                    setting = {
                        "procedure": procedure,
                        "part": "features",
                        "num_episodes": n,
                        **way,
                        **common,
                        "seed": seed,
                    }
                    yield cast(FeaturesSetting, setting)
    if not size.as_published:
        for total in (40,) if size.quick else TOTALS:
            for design in ("none", "uniform", "paper", "d-optimal"):
                way = {
                    "design": design,
                    "design_options": JOINT if design == "paper" else {},
                    **rounds_at(total, design),
                }
                for seed in range(size.num_runs(TOTALS_RUNS, 2)):
                    setting = {"procedure": "ours", "part": "totals", **way, **common, "seed": seed}
                    yield cast(FeaturesSetting, setting)


def run(setting: FeaturesSetting) -> AgentResult:
    """A golfer with random features, seen first with a random putter, then with those that the design asks for.

    Each feature is owned with probability ½, the constant always; the golfer learns anew with every putter.
    """
    learning = setting["learning"]

    def with_putter(truth: frozenset[str], configuration: Configuration, key: Key) -> np.ndarray:
        return learned(learning, sorted(truth), float(configuration["putter_length"]), key)

    return observed_agent(setting, *golf(deviation_of(learning)), with_putter)


# -- Which of the features are found.

FEATURES = dict(zip(Minigolf.feature_names, ("x", "f", "√x", "√f", "√(xf)"), strict=True))
WAYS = {design: LABELS[design] for design in ("none", "paper", "d-optimal")}
NAMED = ("sqrt_x", "sqrt_xf")
"""The features for which the paper says that configuring helps."""
ROOM = 0.1
"""The share of owners that must be missed without configuration for there to be room to improve."""
CLAIM = Claim(
    "Although less visible than in the grid world, for some features, for example √x and √(xf), the environment's "
    "configurability is beneficial.",
    f"Only n and features are judged where there is room to improve: at least {FEWEST} agents own the feature, and without "
    f"configuration at least {ROOM:.0%} of them are missed. Configuring helps with a feature if at some such n its owners "
    "are found more often with it, by the sign test on the same agents at 5 % over all that is judged; it does not if "
    f"surely less than {ROOM:.0%} of them are found by it alone at every such n.",
)

Counts = dict[tuple[str, int, str], Rate]
"""How often a feature was selected, by design, number of episodes a round, and name."""


class SignTest(NamedTuple):
    """Owners of a feature that one way found and another did not, the reverse, all owners, and the p-value."""

    won: int
    lost: int
    num_owners: int
    p_value: float

    @property
    def idle(self) -> bool:
        """Whether surely less than ROOM of the owners are found by configuring alone."""
        return Rate(self.won, self.num_owners).high < ROOM


def analyse(records: list[FeaturesRecord]) -> list[Panel]:
    """The panel of each part that has records."""
    features = [r for r in records if r.setting["part"] == "features"]
    equal = [r for r in records if r.setting["part"] == "totals"]
    totals = [at_totals("minigolf-features", "Minigolf", equal)] if equal else []
    shown = [features_panel(features)] if features else []
    return shown + totals + settings_panels("minigolf-features", "minigolf", records)


def selections(records: list[FeaturesRecord], owned: bool) -> pl.DataFrame:
    """A row an agent and feature that it owns, or does not own: whether that was selected."""

    def rows(record: FeaturesRecord) -> Iterable[dict[str, object]]:
        setting, result = record.setting, record.result
        common = {"design": setting["design"], "num_episodes": setting["num_episodes"], "seed": setting["seed"]}
        for name in FEATURES:
            if (name in result["truth"]) == owned:
                yield common | {"feature": name, "selected": int(name in result["selected"])}

    return tidy(records, rows)


def counts(records: list[FeaturesRecord], owned: bool) -> Counts:
    """Selections of each feature among the agents that own it, or among those that do not."""
    return rates(selections(records, owned), "selected", "design", "num_episodes", "feature")


def gains(records: list[FeaturesRecord], design: str) -> dict[tuple[int, str], SignTest]:
    """For each n and feature the sign test on the agents that own it: found by a design, or without configuration alone."""
    found, by = selections(records, owned=True), ("num_episodes", "feature")
    both = groups(paired(found, "selected", "design", design, "none", *by), *by)
    tests = {}
    for key in sorted(groups(found, *by)):
        signs = both[key]["difference"].to_list() if key in both else []
        won, lost = signs.count(1), signs.count(-1)
        p = float(binomtest(won, won + lost, alternative="greater").pvalue) if won + lost else 1.0
        tests[key] = SignTest(won, lost, len(signs), p)
    return tests


def room(records: list[FeaturesRecord]) -> set[tuple[int, str]]:
    """Each n and feature that enough agents own, of whom no configuration misses enough."""
    still = {(n, name): rate for (design, n, name), rate in counts(records, owned=True).items() if design == "none"}
    return {key for key, rate in still.items() if rate.num_runs >= FEWEST and rate.value <= 1 - ROOM}


def judge(records: list[FeaturesRecord]) -> list[ClaimPart]:
    """For the features that the paper names, and for any: whether configuring helps where there is room for it."""
    with_room, designs = room(records), {r.setting["design"] for r in records} - {"none"}
    tests = {key: found for design in designs for key, found in gains(records, design).items() if key in with_room}
    named = {name: {n: test for (n, other), test in tests.items() if other == name} for name in FEATURES}
    helped = [name for name, own in named.items() if any(test.p_value <= 0.05 / len(tests) for test in own.values())]
    parts = []
    for name in NAMED:
        if own := named[name]:
            listed = "; ".join(f"{test.won} against {test.lost} agents at n = {n}" for n, test in own.items())
            words = f"{FEATURES[name]} is found with configuration alone, against without alone, in {listed}"
            parts.append(ClaimPart(words, judged(name in helped, all(test.idle for test in own.values()))))
        else:
            parts.append(ClaimPart(f"{FEATURES[name]}: at no n is there room to improve", None))
    words = f"Features that configuring surely helps with: {', '.join(FEATURES[name] for name in helped) or 'none'}"
    idle = bool(tests) and all(test.idle for test in tests.values())
    return [*parts, ClaimPart(words, judged(bool(helped), idle))]


def features_panel(records: list[FeaturesRecord]) -> Panel:
    """Selected when owned and when not, feature by feature."""
    power, false = counts(records, owned=True), counts(records, owned=False)
    keys = sorted({*power, *false}, key=lambda k: (list(WAYS).index(k[0]), k[1], list(FEATURES).index(k[2])))
    worst = max(false, key=lambda key: false[key].value, default=None)
    falsely = "No feature was selected that was not owned."
    if worst is not None and false[worst].count:
        falsely = (
            f"Selected most often without being owned: {FEATURES[worst[2]]} by {WAYS[worst[0]]} at n = {worst[1]}, in "
            f"{false[worst].count} of {false[worst].num_runs} agents."
        )
    more = " A configured run sees n episodes in each of its rounds; equal totals are compared below."

    def numbers(found: Counts) -> list[dict[str, object]]:
        return [
            {"design": design, "episodes": n, "feature": name, "selected": rate.count, "of": rate.num_runs}
            for (design, n, name), rate in sorted(found.items(), key=lambda item: item[0])
        ]

    return Panel(
        "minigolf-features",
        "How often each feature is found, with one putter and with several",
        CLAIM,
        falsely + ("" if records[0].setting.get("procedure") == "literal" else more),
        draw_features(power, false),
        ("configuration", "n", "feature", "selected when owned (95 %)", "selected when not owned (95 %)"),
        [
            (WAYS[k[0]], str(k[1]), FEATURES[k[2]], *(r[k].words if k in r else "" for r in (power, false)))
            for k in keys
        ],
        {"owned": numbers(power), "not owned": numbers(false)},
        judge(records),
        len({r.setting["seed"] for r in records}),
    )


def draw_features(power: Counts, false: Counts) -> "Figure":
    """A column a feature: above, how often owners are found; below, how often others are selected; one line a design."""
    top = max((1.05 * rate.high for rate in false.values()), default=0.1)
    middle = list(FEATURES)[len(FEATURES) // 2]

    def below(axes: "Axes", feature: str) -> None:
        axes.set_ylim(-0.05 * top, top)  # a mark at zero is seen whole
        axes.set_xlabel("episodes n in each round" if feature == middle else "")

    def of(found: Counts, feature: str) -> dict[tuple[str, int], Rate]:
        return {(design, n): rate for (design, n, name), rate in found.items() if name == feature}

    plots = [Plot(of(power, name), f"{label}, owned") for name, label in FEATURES.items()] + [
        Plot(of(false, name), f"{label}, not owned", "points", more=partial(below, feature=name))
        for name, label in FEATURES.items()
    ]
    return draw(
        "Minigolf: random features", plots, DESIGN_COLOURS, WAYS, height=4.8, width=10, rows=2, ylabel="share selected",
        finish=lambda axes: axes.set_ylim(-0.04, 1.04), sharex=True, sharey="row", height_ratios=(2, 1),
    )  # fmt: skip


# -- What an agent blind to the friction returns with a putter chosen for it (Figure 2, right).

STRATEGIES_RUNS = 100

FEW_LENGTHS = [1.5, 2.0, 3.0, 5.0, 11.5]
STRATEGIES = {
    "uniform": "(i) at random",
    "full": "(ii) best for A₁, that sees all",
    "identified": "(iii) best for what was identified",
    "oracle": "(iv) best for A₂, by an oracle",
}


class StrategiesSetting(RunSetting):
    """An agent that is observed, and the curves over putters that tell which of them is best for a space."""

    observed_learning: GolfLearning
    learning: GolfLearning  # with the putter that is chosen, and along the curves
    putter_lengths: list[float]
    curve_seeds: list[int]
    curve_episodes: int
    num_observed: int


class StrategiesResult(TypedDict):
    """What was identified; the putter of each strategy, and what it returned."""

    selected: list[str]
    putter_lengths: dict[str, float]
    returns: dict[str, float]


StrategiesRecord = Record[StrategiesSetting, StrategiesResult]


def strategies_settings(size: RunSize) -> Iterable[StrategiesSetting]:
    """One agent a cell: A₂ with a seed and a σ_π."""
    for procedure, observed, learning in learnings(size):
        for seed in range(size.num_runs(STRATEGIES_RUNS, 4)):
            yield {
                "procedure": procedure,
                "observed_learning": observed,
                "learning": learning,
                "putter_lengths": FEW_LENGTHS if size.quick else LENGTHS,
                # The very learnings of `minigolf-curve`; those of the paper differ so much that all of them are wanted.
                "curve_seeds": list(range(1 if size.quick else RUNS[procedure] if procedure == "literal" else 2)),
                "curve_episodes": 20_000 if procedure == "ours" and not size.quick else 2000,
                "num_observed": 100,
                "significance": 0.01,
                "num_episodes": 4000 if size.quick else 10_000,
                "seed": seed,
            }


def run_strategies(setting: StrategiesSetting) -> StrategiesResult:
    """A₂ is observed with a putter drawn uniformly, each strategy chooses one, and A₂ learns with that anew."""
    start, learning_key, acting, anew, measuring = jax.random.split(jax.random.key(setting["seed"]), 5)
    learning, num_episodes = setting["learning"], setting["num_episodes"]
    world, space = golf(deviation_of(learning))
    drawn = float(world.random_configuration(start)["putter_length"])
    theta = learned(setting["observed_learning"], AGENT_A2, drawn, learning_key)
    seen = rollout(world, space, theta, {"putter_length": drawn}, acting, setting["num_observed"])
    pairs = seen.pairs(world.feature_names, world.action_names)
    if setting["procedure"] == "literal":  # Rule 2 as it is printed
        statistics, _ = in_closed_form(space)(pairs, one_out(space))
        found = rule_2(space, statistics, setting["significance"])
    else:
        found = list(simplified(space, pairs, setting["significance"]).selected)
    selected = set(found) & set(world.feature_names)
    lengths = {
        "uniform": drawn,
        "full": _best_length(setting, Minigolf.feature_names),
        "identified": _best_length(setting, selected),
        "oracle": _best_length(setting, AGENT_A2),
    }
    choosing, measured = jax.random.split(measuring)
    returns = {}  # the same putter is the same learning: strategies that agree are compared without noise between them
    for length in set(lengths.values()):
        theta = best_learned(learning, AGENT_A2, length, (anew, choosing), num_episodes)
        returns[length] = mean_return(deviation_of(learning), theta, length, measured, num_episodes)
    return {
        "selected": sorted(selected),
        "putter_lengths": lengths,
        "returns": {strategy: returns[length] for strategy, length in lengths.items()},
    }


def _best_length(setting: StrategiesSetting, controls: Iterable[str]) -> float:
    """The putter whose best policy inside a space returns most: a function of the space and the setting alone.

    By the mean of curves that `minigolf-curve` has, too, as one learning differs from the next.
    """
    how = setting["learning"], setting["putter_lengths"], setting["curve_seeds"], setting["curve_episodes"]
    return _best_of(json.dumps(how), tuple(sorted(controls)))


@lru_cache
def _best_of(how: str, controls: tuple[str, ...]) -> float:
    learning, lengths, seeds, num_episodes = json.loads(how)
    curves = [best_returns(learning, controls, lengths, jax.random.key(seed), num_episodes) for seed in seeds]
    return float(lengths[int(np.argmax(np.mean(curves, axis=0)))])


# -- What each way of choosing returns, and whether the identified space pays.

COLOURS = {"uniform": GREY, "full": RED, "identified": GREEN, "oracle": BLUE}

COMPARABLE, NOTABLE = 0.2, 0.5
"""Parts of what is at stake: a loss of less is none to speak of, a gain of more is notable."""
STRATEGIES_CLAIM = Claim(
    "The performance of the identification procedure (iii) is comparable with that of the oracle (iv) and notably "
    "higher than the performance when employing an incorrect policy space (ii).",
    "The yardstick is what is at stake: the strokes from the wrong space (ii) to the oracle (iv), on the same agents, which "
    "must surely be above 0, or nothing can be told. (iii) is comparable with (iv) if it surely loses at most "
    f"{COMPARABLE:.0%} of that, and is not if it surely loses more. (iii) is notably higher than (ii) if it surely gains "
    f"more than {NOTABLE:.0%} of it, and surely at least {EQUAL:g} strokes; it is not if it surely gains less than either. "
    f"At least {FEWEST} runs.",
)


def analyse_strategies(records: list[StrategiesRecord]) -> list[Panel]:
    """One panel for each σ_π."""
    made = [_panel(deviation, own) for deviation, own in by_deviation(records)]
    return made + settings_panels("minigolf-strategies", "minigolf", records, ())


def outcomes(records: list[StrategiesRecord]) -> pl.DataFrame:
    """A row a run and strategy: the putter that was chosen, and what it returned."""

    def rows(record: StrategiesRecord) -> Iterable[dict[str, object]]:
        lengths, returns = record.result["putter_lengths"], record.result["returns"]
        for name in STRATEGIES:
            yield {"strategy": name, "seed": record.setting["seed"], "length": lengths[name], "return": returns[name]}

    return tidy(records, rows)


def judge_strategies(found: pl.DataFrame) -> list[ClaimPart]:
    """Both halves of the claim, by differences on the same agents, in parts of what is at stake for each of them."""
    stakes, losses, gains = (
        paired(found, "return", "strategy", one, other).sort("seed")["difference"]
        for one, other in (("oracle", "full"), ("oracle", "identified"), ("identified", "full"))
    )
    excesses, surpluses = losses - COMPARABLE * stakes, gains - NOTABLE * stakes
    stake, lost, gained, excess, beyond = (
        mean_of(own.to_list()) for own in (stakes, losses, gains, excesses, surpluses)
    )
    there_is = stake.low > 0
    notably = judged(beyond.low > 0 and gained.low >= EQUAL, beyond.high <= 0 or gained.high < EQUAL)
    return [
        ClaimPart(
            f"At stake are {stake.words} strokes, from the wrong space to the oracle; the identified space returns "
            f"{lost.words} less than the oracle",
            judged(excess.high <= 0, excess.low > 0) if there_is else None,
        ),
        ClaimPart(f"It returns {gained.words} more than the wrong space", notably if there_is else None),
    ]


def _panel(deviation: float, records: list[StrategiesRecord]) -> Panel:
    found = outcomes(records)
    returns = means(found, "return", "strategy")
    lengths = {name: own["length"].to_list() for name, own in groups(found, "strategy").items()}
    exact = sum(set(r.result["selected"]) == AGENT_A2 for r in records)

    def chosen(lengths: Sequence[float]) -> str:  # one length, or the median and the range of several
        low, middle, high = np.min(lengths), np.median(lengths), np.max(lengths)
        return f"{middle:.3g}" if low == high else f"{middle:.3g} ({low:.3g}–{high:.3g})"

    return Panel(
        f"minigolf-strategies-{deviation:g}",
        f"A₂'s return with a putter chosen in four ways, σ = {deviation:g}",
        STRATEGIES_CLAIM,
        f"From {records[0].setting['num_observed']} episodes, A₂'s features were identified exactly in {exact} of "
        f"{len(records)} runs.",
        draw_strategies(found, returns, f"Minigolf, σ = {deviation:g}: A₂'s return by choice of putter"),
        ("strategy", "runs", "mean return (95 %)", "putter lengths"),
        [(words, str(len(records)), returns[name].words, chosen(lengths[name])) for name, words in STRATEGIES.items()],
        {
            "policy_deviation": deviation,
            "identified_exactly": exact,
            **{name: {**returns[name].numbers, "putter_length": float(np.mean(lengths[name]))} for name in STRATEGIES},
        },
        judge_strategies(found),
        len(records),
    )


def draw_strategies(found: pl.DataFrame, averages: dict[str, Mean], title: str) -> "Figure":
    """Left, where the runs lie; right, their means with 95 % intervals, on the scale of the putters that were chosen."""
    figure = new_figure(3.3, title, width=9.6)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    chosen = [mean for name, mean in averages.items() if name != "uniform"]
    ends = [mean.value + side * (mean.margin or 0.0) for mean in chosen for side in (-1, 1)]
    for y, (name, own) in enumerate(groups(found, "strategy").items()):
        values, mean, colour = own["return"].to_list(), averages[name], COLOURS[name]
        for share, width in ((0.9, 5), (0.5, 13)):  # a bar that nine of ten runs lie in, thick where half of them do
            bar = np.quantile(values, [0.5 - share / 2, 0.5 + share / 2])
            left.plot(bar, [y, y], color=colour, alpha=0.4, linewidth=width, solid_capstyle="butt", zorder=2)
        left.plot(np.median(values), y, "|", color=colour, markersize=17, markeredgewidth=2, zorder=3)
        if mean.value < min(ends):
            right.annotate("← off this scale", (0, y), xycoords=("axes fraction", "data"), xytext=(2, 0),
                           textcoords="offset points", va="center", fontsize=9, color=QUIET)  # fmt: skip
        else:
            right.errorbar(
                mean.value, y, xerr=mean.margin, fmt="o", color=colour, markersize=5, elinewidth=2, capsize=5
            )
        right.annotate(
            mean.words, (1, y), xycoords=("axes fraction", "data"), xytext=(8, 0), textcoords="offset points",
            va="center", fontsize=9.5, color=INK, annotation_clip=False,
        )  # fmt: skip
    room = 0.1 * (max(ends) - min(ends)) or 1.0
    right.set_xlim(min(ends) - room, max(ends) + room)
    left.set_yticks(range(len(STRATEGIES)), list(STRATEGIES.values()))
    left.set_ylim(len(STRATEGIES) - 0.5, -0.5)
    left.set_xlabel("return of a run (bars: nine of ten, thick: half; line: the median)")
    right.set_xlabel("mean return")
    for axes, words in ((left, "where the runs lie"), (right, "their means, with 95 % intervals")):
        bare(axes)
        axes.set_title(words, loc="left", fontsize=10.5, color=INK)
    return figure


FEATURES_EXPERIMENT = Experiment("minigolf-features", "Minigolf: random features", settings, run, analyse)
STRATEGIES_EXPERIMENT = Experiment(
    "minigolf-strategies", "Minigolf: choosing the putter by what was identified", strategies_settings, run_strategies,
    analyse_strategies,
)  # fmt: skip
