"""Records of golfers with random features → how often each feature is found, with a putter that stays and with others."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binomtest

from policyspace.experiments.configuring_panels import COLOURS, LABELS, at_totals
from policyspace.experiments.means import INK, plain
from policyspace.experiments.panel import Panel, Verdict
from policyspace.experiments.rates import Rate
from policyspace.experiments.records import Record
from policyspace.worlds.minigolf import Minigolf

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEATURES = dict(zip(Minigolf.feature_names, ("x", "f", "√x", "√f", "√(xf)"), strict=True))
WAYS = {design: LABELS[design] for design in ("none", "paper", "d-optimal")}
NAMED = ("sqrt_x", "sqrt_xf")
"""The features for which the paper says that configuring helps."""

Counts = dict[tuple[str, int, str], Rate]
"""How often a feature was selected, by design, number of episodes a look, and name."""


def analyse(records: list[Record]) -> list[Panel]:
    """The panel of each part that has records."""
    features = [r for r in records if r.setting["part"] == "features"]
    equal = [r for r in records if r.setting["part"] == "totals"]
    return ([features_panel(features)] if features else []) + (
        [at_totals("minigolf-features", "Minigolf", equal)] if equal else []
    )


def counts(records: list[Record], owned: bool) -> Counts:
    """Selections of each feature among the agents that own it, or among those that do not."""
    found: dict[tuple[str, int, str], list[bool]] = {}
    for record in records:
        for name in FEATURES:
            if (name in record.result["truth"]) == owned:
                key = record.setting["design"], record.setting["num_episodes"], name
                found.setdefault(key, []).append(name in record.result["selected"])
    # A rate of truths may be anything; of falsehoods, at most δ over all features.
    nominal = 1.0 if owned else float(records[0].setting["significance"])
    return {key: Rate(sum(hits), len(hits), FEATURES[key[2]], nominal) for key, hits in found.items()}


def gains(records: list[Record], design: str) -> dict[tuple[int, str], tuple[int, int, float]]:
    """For each n and feature: owners that a design found and no configuration did not, the reverse, and the p-value.

    The sign test on the agents that own the feature and were looked at in both ways.
    """
    seen: dict[tuple[int, int, str], dict[str, bool]] = {}
    for record in records:
        for name in record.result["truth"]:
            key = record.setting["num_episodes"], record.setting["seed"], name
            seen.setdefault(key, {})[record.setting["design"]] = name in record.result["selected"]
    found = {}
    for n, name in sorted({(n, name) for n, _, name in seen}):
        pairs = [
            ways for (m, _, other), ways in seen.items() if (m, other) == (n, name) and {"none", design} <= set(ways)
        ]
        won = sum(ways[design] and not ways["none"] for ways in pairs)
        lost = sum(ways["none"] and not ways[design] for ways in pairs)
        p = float(binomtest(won, won + lost, alternative="greater").pvalue) if won + lost else 1.0
        found[n, name] = won, lost, p
    return found


def judge(records: list[Record]) -> tuple[Verdict, str]:
    """Configuring helps with a feature if at some n its owners are found more often, by the sign test at 5 % over all."""
    tests = gains(records, "paper")
    helped = {name for (_, name), (_, _, p) in tests.items() if p <= 0.05 / len(tests)}
    verdict: Verdict = "holds" if helped >= set(NAMED) else "holds partly" if helped else "does not hold"
    listed = ", ".join(label for name, label in FEATURES.items() if name in helped) or "none"
    return verdict, (
        "Features that the paper's configuring finds significantly more often than no configuration at some n (sign test on "
        f"the same agents, 5 % over all features and n): {listed}. {_falsely(counts(records, owned=False))}"
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
    verdict, why = judge(records)
    power, false = counts(records, owned=True), counts(records, owned=False)
    published = bool(records[0].setting["paper_rule"])
    keys = sorted({*power, *false}, key=lambda k: (list(WAYS).index(k[0]), k[1], list(FEATURES).index(k[2])))
    return Panel(
        name="minigolf-features" + ("-as-published" if published else ""),
        title="How often each feature is found, with one putter and with several",
        claim="Configuring the putter helps to find some features, for example √x and √(xf).",
        verdict=verdict,
        why=f"{why} A configured run sees n episodes in each of its looks; equal totals are compared below."
        if not published
        else why,
        figure=draw(power, false, "Minigolf: random features"),
        columns=("configuration", "n", "feature", "selected when owned (95 %)", "selected when not owned (95 %)"),
        rows=[(WAYS[k[0]], str(k[1]), FEATURES[k[2]], _words(power.get(k)), _words(false.get(k))) for k in keys],
        numbers={
            "owned": [_numbers(key, rate) for key, rate in sorted(power.items())],
            "not owned": [_numbers(key, rate) for key, rate in sorted(false.items())],
        },
    )


def _words(rate: Rate | None) -> str:
    return "" if rate is None else rate.words


def _numbers(key: tuple[str, int, str], rate: Rate) -> dict[str, Any]:
    return {"design": key[0], "episodes": key[1], "feature": key[2], "selected": rate.count, "of": rate.num_runs}


def draw(power: Counts, false: Counts, title: str) -> "Figure":
    """A column a feature: above, how often owners are found; below, how often others are selected; one line a design."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.8), facecolor="white", layout="constrained")
    grid = figure.subplots(2, len(FEATURES), sharex=True, sharey="row", height_ratios=(2, 1))
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=11)
    for column, name in enumerate(FEATURES):
        for row, rates in enumerate((power, false)):
            _lines(grid[row, column], {key: rate for key, rate in rates.items() if key[2] == name})
        grid[0, column].set_title(FEATURES[name], fontsize=11, color=INK)
    grid[0, 0].set_ylim(0, 1.04)
    grid[1, 0].set_ylim(0, max(0.1, *(1.2 * rate.value for rate in false.values())) if false else 0.1)
    grid[0, 0].set_ylabel("selected when owned", fontsize=9)
    grid[1, 0].set_ylabel("when not owned", fontsize=9)
    grid[1, len(FEATURES) // 2].set_xlabel("episodes n in each look", fontsize=9)
    shown = {design for design, _, _ in power}
    handles = [grid[0, 0].plot([], [], color=COLOURS[d], linewidth=3)[0] for d in WAYS if d in shown]
    labels = [label for design, label in WAYS.items() if design in shown]
    figure.legend(handles, labels, loc="upper right", ncols=3, frameon=False, fontsize=9)
    return figure


def _lines(axes: "Axes", rates: Counts) -> None:
    plain(axes)
    ticks = sorted({n for _, n, _ in rates})
    for design in WAYS:
        own = sorted(((n, rate) for (d, n, _), rate in rates.items() if d == design), key=lambda point: point[0])
        if not own:
            continue
        n, value = np.array([n for n, _ in own]), np.array([rate.value for _, rate in own])
        low, high = np.array([rate.interval for _, rate in own]).T
        axes.plot(n, value, marker="o", markersize=4, color=COLOURS[design], linewidth=2)
        axes.fill_between(n, low, high, color=COLOURS[design], alpha=0.12, linewidth=0)
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
