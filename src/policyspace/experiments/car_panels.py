"""Records of the car → how often each rule finds the owned sensors, and how often it names one that is not owned."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from policyspace.experiments.frames import rates, tidy
from policyspace.experiments.panel import Panel, Verdict
from policyspace.experiments.records import Record
from policyspace.report.estimates import Mean, Rate
from policyspace.report.plots import draw_whiskers, legend, logarithmic
from policyspace.report.style import AMBER, BLUE, DASHED, GREEN, INK, PURPLE, RED, new_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = {
    ("rule_1", "wilks"): ("Rule 1 (combinatorial), χ²", RED, "o-"),
    ("rule_2", "wilks"): ("Rule 2 (simplified), χ²", AMBER, "s-"),
    ("rule_1", "universal"): ("Rule 1, universal inference", GREEN, "o-"),
    ("rule_2", "universal"): ("Rule 2, universal inference", BLUE, "s-"),
    ("rule_1", "lean"): ("Rule 1, lean test", INK, "o-"),
    ("rule_2", "lean"): ("Rule 2, lean test", PURPLE, "s-"),
}
BY = ("failed", "num_episodes", "rule", "test")
FEW = 10
"""Drivers below which no verdict rests on anything."""

CLAIM = (
    "With few episodes the simplified rule is ahead; with many the combinatorial rule identifies the policy space in "
    "nearly all runs, while the simplified one may select a wrong set."
)

Shares = dict[tuple[bool, int, str, str], Rate]
"""How often something is so of drivers, in the order of BY."""


def outcomes(records: list[Record]) -> pl.DataFrame:
    """A row a driver, number of episodes, rule and test; drivers that learned first, then those that failed."""

    def rows(record: Record) -> list[dict[str, Any]]:
        owned = set(record.result["owned"])
        settings = {"failed": record.result["failed"], "num_episodes": record.setting["num_episodes"]}
        found = {way: _supports(record.result[way[1]][way[0]]) for way in WAYS}
        return [
            settings
            | {
                "rule": rule,
                "test": test,
                "correct": supports == [owned],  # the owned set, and no other
                "among": owned in supports,  # perhaps beside others (Rule 1)
                # What is in every support is said to be controlled.
                "false": not set.intersection(*supports) <= owned,
            }
            for (rule, test), supports in found.items()
        ]

    return tidy(records, rows).sort("failed", "num_episodes", maintain_order=True)


def _supports(answer: list[Any]) -> list[set[str]]:
    """Rule 1 returns several supports, Rule 2 one."""
    several = answer and isinstance(answer[0], list)
    return [set(support) for support in answer] if several else [set(answer)]


def analyse(records: list[Record]) -> list[Panel]:
    """The paper's figure with both tests, and the errors behind it."""
    found = outcomes(records)
    correct, among, false = (rates(found, what, *BY) for what in ("correct", "among", "false"))
    drivers = {r.setting["seed"]: r.result["failed"] for r in records}
    noise = float(np.median([r.result["wilks"]["restart_noise"] for r in records]))
    level = records[0].setting["significance"]
    counted = f"{sum(drivers.values())} of {len(drivers)} drivers failed to learn"
    verdict, why = _verdict(*_last(correct))
    plain = [_plain(key, correct[key], among[key], false[key]) for key in correct]
    numbers = {"num_drivers": len(drivers), "num_failed": sum(drivers.values()), "median_restart_noise": noise}
    return [
        Panel(
            "car",
            "Car: the owned sensors identified",
            CLAIM,
            verdict,
            f"{why} {counted}{', and are counted apart' if any(drivers.values()) else ''}.",
            draw(correct, "share of drivers identified exactly", None, counted),
            ("drivers", "rule and test", "episodes", "identified", "among those returned"),
            [(*_who(key, share), share.words, among[key].words) for key, share in correct.items()],
            numbers | {"outcomes": plain},
        ),
        Panel(
            "car-false-selections",
            "Car: sensors said to be controlled that are not",
            f"How often does a rule name a sensor that the driver does not have, where at most δ = {level:g} is promised?",
            "our own",
            _errors(*_last(false), noise),
            draw(false, "share of drivers with a false selection", level, counted),
            ("drivers", "rule and test", "episodes", "with a false selection"),
            [(*_who(key, share), share.words) for key, share in false.items()],
            {"outcomes": plain, "significance": level},
        ),
    ]


def _last(shares: Shares) -> tuple[int, dict[tuple[str, str], Rate]]:
    """The largest number of episodes, and the shares there by rule and test; of drivers that learned, if any did."""
    learned = {key: share for key, share in shares.items() if not key[0]} or shares
    most = max(n for _, n, _, _ in learned)
    return most, {(rule, test): share for (_, n, rule, test), share in learned.items() if n == most}


def _verdict(num_episodes: int, last: dict[tuple[str, str], Rate]) -> tuple[Verdict, str]:
    """Does the combinatorial rule end near 1 (surely above 0.8), and above the simplified one, with the paper's χ²?"""
    first, second, ours = last["rule_1", "wilks"], last["rule_2", "wilks"], last["rule_1", "lean"]
    universal = last["rule_1", "universal"]
    words = (
        f"At {num_episodes} episodes, with the paper's χ², Rule 1 finds the owned set and no other for "
        f"{first.words} of the drivers, Rule 2 for {second.words}; by universal inference Rule 1 does for "
        f"{universal.words}, by the lean test for {ours.words}."
    )
    if first.low > 0.8 and first.value > second.value:
        return "holds", words
    better = first.low > second.high
    if better or (ours.low > 0.8 and ours.low > first.high):
        with_ours = " What the paper claims of Rule 1 comes true with a test that holds, not with χ²."
        return "holds partly", words + ("" if better else with_ours)
    few = " So few drivers can tell little." if first.num_runs < FEW else ""
    return "does not hold", words + few


def _errors(num_episodes: int, last: dict[tuple[str, str], Rate], noise: float) -> str:
    """What both tests do at the largest number of episodes."""
    return (
        f"At {num_episodes} episodes Rule 2 by χ² errs with {last['rule_2', 'wilks'].words} of the drivers, "
        f"Rule 1 with {last['rule_1', 'wilks'].words}: a network is not identifiable, and λ has no χ² law; with other "
        f"random starts it moves by {noise:.0f} in the median. By universal inference the rules err with "
        f"{last['rule_2', 'universal'].words} and {last['rule_1', 'universal'].words}, by the lean test with "
        f"{last['rule_2', 'lean'].words} and {last['rule_1', 'lean'].words}."
    )


def draw(shares: Shares, label: str, level: float | None, note: str) -> "Figure":
    """Shares against the number of episodes: a line for drivers that learned, hollow marks for those that failed."""
    figure, axes = new_plot(4.4, "")
    for place, ((rule, test), (name, colour, style)) in enumerate(WAYS.items()):
        for failed in (False, True):
            # A little apart, so that equal shares and their intervals are all seen.
            aside = 1.05 ** (place - (len(WAYS) - 1) / 2 + 0.4 * failed)
            points = [
                (n * aside, _drawn(share, failed))
                for (other, n, *way), share in shares.items()
                if (other, *way) == (failed, rule, test)
            ]
            if points:
                options = {"mfc": "white", "alpha": 0.55} if failed else {"linewidth": 1.8}
                named, marks = (None, style[0]) if failed else (name, style)
                draw_whiskers(axes, points, colour, named, marks, elinewidth=1, capsize=2, **options)
    if level is not None:
        axes.axhline(level, color=INK, linewidth=1, linestyle=DASHED)
        axes.annotate(f"promised: at most δ = {level:g}", (0.01, level), xycoords=("axes fraction", "data"),
                      xytext=(0, 3), textcoords="offset points", fontsize=8.5)  # fmt: skip
    logarithmic(axes, sorted({n for _, n, _, _ in shares}))
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel(f"episodes observed ({note}{': hollow marks' if any(failed for failed, *_ in shares) else ''})")
    axes.set_ylabel(label)
    legend(axes, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def _drawn(share: Rate, failed: bool) -> Rate | Mean:
    """Without the interval where that takes nearly all of the axis, and would hide the others."""
    return Mean(share.value, None, share.num_runs) if failed and share.num_runs < FEW else share


def _who(key: tuple[bool, int, str, str], share: Rate) -> tuple[str, str, str]:
    """The drivers, the rule and its test, the number of episodes."""
    failed, num_episodes, *way = key
    drivers = f"{share.num_runs} that {'failed to learn' if failed else 'learned'}"
    return drivers, WAYS[way[0], way[1]][0], str(num_episodes)


def _plain(key: tuple[bool, int, str, str], correct: Rate, among: Rate, false: Rate) -> dict[str, Any]:
    """As JSON can hold it, intervals included."""
    failed, num_episodes, rule, test = key
    shares = {"correct": correct, "among": among, "false": false}
    return {
        "rule": rule,
        "test": test,
        "num_episodes": num_episodes,
        "failed": failed,
        **{name: [round(x, 4) for x in (share.value, share.low, share.high)] for name, share in shares.items()},
        "num_drivers": correct.num_runs,
    }
