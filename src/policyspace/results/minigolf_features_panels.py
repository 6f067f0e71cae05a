"""Records of golfers with random features → which of them are found, with one putter and with several."""

from typing import TYPE_CHECKING, Any

import polars as pl
from scipy.stats import binomtest

from policyspace.experiments.records import Record
from policyspace.report.estimates import Rate
from policyspace.report.plots import draw_lines, draw_points, legend_below, logarithmic
from policyspace.report.style import INK, bare, new_figure
from policyspace.results.configuring_panels import COLOURS, LABELS, at_totals
from policyspace.results.frames import groups, paired, rates, tidy
from policyspace.results.judging import FEWEST, Part, verdict_of, why
from policyspace.results.literal_settings import settings_panels
from policyspace.results.panel import Panel
from policyspace.worlds.minigolf import Minigolf

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TITLE = "Minigolf: random features"
FEATURES = dict(zip(Minigolf.feature_names, ("x", "f", "√x", "√f", "√(xf)"), strict=True))
WAYS = {design: LABELS[design] for design in ("none", "paper", "d-optimal")}
NAMED = ("sqrt_x", "sqrt_xf")
"""The features for which the paper says that configuring helps."""
ROOM = 0.1
"""The share of owners that must be missed without configuration for there to be room to improve."""

Counts = dict[tuple[str, int, str], Rate]
"""How often a feature was selected, by design, number of episodes a round, and name."""

Sign = tuple[int, int, int, float]
"""Owners of a feature that one way found and another did not, the reverse, all owners, and the p-value of the sign test."""


def analyse(records: list[Record]) -> list[Panel]:
    """The panel of each part that has records."""
    features = [r for r in records if r.setting["part"] == "features"]
    equal = [r for r in records if r.setting["part"] == "totals"]
    totals = [at_totals("minigolf-features", "Minigolf", equal)] if equal else []
    shown = [features_panel(features)] if features else []
    return shown + totals + settings_panels("minigolf-features", "minigolf", records)


def selections(records: list[Record], owned: bool) -> pl.DataFrame:
    """A row an agent and feature that it owns, or does not own: whether that was selected."""

    def rows(record: Record) -> list[dict[str, Any]]:
        setting = {name: record.setting[name] for name in ("design", "num_episodes", "seed")}
        return [
            setting | {"feature": name, "selected": int(name in record.result["selected"])}
            for name in FEATURES
            if (name in record.result["truth"]) == owned
        ]

    return tidy(records, rows)


def counts(records: list[Record], owned: bool) -> Counts:
    """Selections of each feature among the agents that own it, or among those that do not."""
    return rates(selections(records, owned), "selected", "design", "num_episodes", "feature")


def gains(records: list[Record], design: str) -> dict[tuple[int, str], Sign]:
    """For each n and feature: owners that a design found and no configuration did not, the reverse, all, and the p-value.

    The sign test on the agents that own the feature and were observed in both ways.
    """
    found = selections(records, owned=True)
    both = groups(
        paired(found, "selected", "design", design, "none", "num_episodes", "feature"), "num_episodes", "feature"
    )
    tests = {}
    for key in sorted(groups(found, "num_episodes", "feature")):
        signs = both[key]["difference"].to_list() if key in both else []
        won, lost = signs.count(1), signs.count(-1)
        p = float(binomtest(won, won + lost, alternative="greater").pvalue) if won + lost else 1.0
        tests[key] = won, lost, len(signs), p
    return tests


def judge(records: list[Record]) -> list[Part]:
    """For the features that the paper names, and for any: whether configuring helps where there is room for it."""
    with_room, designs = room(records), {r.setting["design"] for r in records} - {"none"}
    tests = {key: found for design in designs for key, found in gains(records, design).items() if key in with_room}
    named = {name: {n: test for (n, other), test in tests.items() if other == name} for name in FEATURES}
    helped = [name for name, own in named.items() if any(p <= 0.05 / len(tests) for *_, p in own.values())]
    idle = all(_idle(test) for test in tests.values())
    return [_named(name, named[name], name in helped) for name in NAMED] + [
        Part(f"Features that configuring surely helps with: {', '.join(FEATURES[name] for name in helped) or 'none'}",
             True if helped else False if tests and idle else None)
    ]  # fmt: skip


def _idle(test: Sign) -> bool:
    """Whether surely less than ROOM of a feature's owners are found by configuring alone."""
    won, _, num_owners, _ = test
    return Rate(won, num_owners).high < ROOM


def room(records: list[Record]) -> set[tuple[int, str]]:
    """Each n and feature that enough agents own, of whom no configuration misses enough."""
    still = {(n, name): rate for (design, n, name), rate in counts(records, owned=True).items() if design == "none"}
    return {key for key, rate in still.items() if rate.num_runs >= FEWEST and rate.value <= 1 - ROOM}


def _named(name: str, own: dict[int, Sign], helped: bool) -> Part:
    if not own:
        return Part(f"{FEATURES[name]}: at no n is there room to improve", None)
    listed = "; ".join(f"{won} against {lost} agents at n = {n}" for n, (won, lost, *_) in own.items())
    idle = all(_idle(test) for test in own.values())
    return Part(
        f"{FEATURES[name]} is found with configuration alone, against without alone, in {listed}",
        True if helped else False if idle else None,
    )


CRITERIA = (
    f"Only n and features are judged where there is room to improve: at least {FEWEST} agents own the feature, and without "
    f"configuration at least {ROOM:.0%} of them are missed. Configuring helps with a feature if at some such n its owners "
    "are found more often with it, by the sign test on the same agents at 5 % over all that is judged; it does not if "
    f"surely less than {ROOM:.0%} of them are found by it alone at every such n."
)


def _falsely(false: Counts) -> str:
    """Which feature was selected most often where it was not owned."""
    key = max(false, key=lambda key: false[key].value, default=None)
    if key is None or not false[key].count:
        return "No feature was selected that was not owned."
    return (
        f"Selected most often without being owned: {FEATURES[key[2]]} by {WAYS[key[0]]} at n = {key[1]}, in "
        f"{false[key].count} of {false[key].num_runs} agents."
    )


def features_panel(records: list[Record]) -> Panel:
    """Selected when owned and when not, feature by feature."""
    parts, agents = judge(records), len({r.setting["seed"] for r in records})
    power, false = counts(records, owned=True), counts(records, owned=False)
    published = records[0].setting.get("procedure") == "literal"
    keys = sorted({*power, *false}, key=lambda k: (list(WAYS).index(k[0]), k[1], list(FEATURES).index(k[2])))
    more = (
        "" if published else " A configured run sees n episodes in each of its rounds; equal totals are compared below."
    )
    return Panel(
        name="minigolf-features",
        title="How often each feature is found, with one putter and with several",
        claim="Although less visible than in the grid world, for some features, for example √x and √(xf), the environment's "
        "configurability is beneficial.",
        verdict=verdict_of(parts, agents),
        why=f"{why(parts)} {_falsely(false)}{more}",
        figure=draw(power, false, "Minigolf: random features"),
        columns=("configuration", "n", "feature", "selected when owned (95 %)", "selected when not owned (95 %)"),
        rows=[
            (WAYS[k[0]], str(k[1]), FEATURES[k[2]], *(r[k].words if k in r else "" for r in (power, false)))
            for k in keys
        ],
        numbers={"owned": _numbers(power), "not owned": _numbers(false)},
        criteria=CRITERIA,
    )


def _numbers(found: Counts) -> list[dict[str, Any]]:
    return [
        {"design": design, "episodes": n, "feature": name, "selected": rate.count, "of": rate.num_runs}
        for (design, n, name), rate in sorted(found.items(), key=lambda item: item[0])
    ]


def draw(power: Counts, false: Counts, title: str) -> "Figure":
    """A column a feature: above, how often owners are found; below, how often others are selected; one line a design."""
    figure = new_figure(4.8, title, width=10)
    grid = figure.subplots(2, len(FEATURES), sharex=True, sharey="row", height_ratios=(2, 1))
    for column, (feature, label) in enumerate(FEATURES.items()):
        for axes, found in zip(grid[:, column], (power, false), strict=True):
            bare(axes)
            own = {(design, n): rate for (design, n, name), rate in found.items() if name == feature}
            if found is power:
                draw_lines(axes, own, COLOURS, WAYS)
            else:
                draw_points(axes, own, COLOURS)
            logarithmic(axes, sorted({n for _, n in own}))
            axes.set_title(f"{label}, {'' if found is power else 'not '}owned", fontsize=10, color=INK)
    grid[0, 0].set_ylim(-0.04, 1.04)
    top = max((1.05 * rate.high for rate in false.values()), default=0.1)
    grid[1, 0].set_ylim(-0.05 * top, top)  # a mark at zero is seen whole
    for axes in grid[:, 0]:
        axes.set_ylabel("share selected")
    grid[1, len(FEATURES) // 2].set_xlabel("episodes n in each round")
    legend_below(max(grid[0], key=lambda axes: len(axes.get_legend_handles_labels()[1])))  # some features nobody owns
    return figure
