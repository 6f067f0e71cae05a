"""Records of the car → how often each rule finds the owned sensors, and how often it names one that is not owned."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.experiments.panel import Panel, Verdict
from policyspace.experiments.rates import Share
from policyspace.experiments.records import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = {
    ("rule_1", "wilks"): ("Rule 1 (combinatorial), χ²", "#c0392b", "o-"),
    ("rule_2", "wilks"): ("Rule 2 (simplified), χ²", "#d98e04", "s-"),
    ("rule_1", "universal"): ("Rule 1, universal inference", "#0b6e4f", "o-"),
    ("rule_2", "universal"): ("Rule 2, universal inference", "#2f80c2", "s-"),
}
FEW = 10
"""Drivers below which no verdict rests on anything."""

CLAIM = (
    "With few episodes the simplified rule is ahead; with many the combinatorial rule identifies the policy space in "
    "nearly all runs, while the simplified one may select a wrong set."
)


@dataclass(frozen=True)
class Outcome:
    """What one rule by one test found over some drivers at one number of episodes."""

    rule: str
    test: str
    num_episodes: int
    failed: bool  # of the drivers that failed to learn, or of those that learned
    correct: Share  # the owned set, and no other
    among: Share  # the owned set, perhaps beside others (Rule 1)
    false: Share  # a sensor that is not owned is said to be controlled


def outcomes(records: Sequence[Record]) -> list[Outcome]:
    """One a rule, test and number of episodes; drivers that learned first, then those that failed."""
    found = []
    for failed in (False, True):
        own = [r for r in records if r.result["failed"] is failed]
        for num_episodes in sorted({r.setting["num_episodes"] for r in own}):
            at = [r.result for r in own if r.setting["num_episodes"] == num_episodes]
            found += [
                Outcome(rule, test, num_episodes, failed, *(_share(at, what, rule, test) for what in JUDGES))
                for rule, test in WAYS
            ]
    return found


def _share(results: list[dict[str, Any]], judge: "Judge", rule: str, test: str) -> Share:
    return Share(sum(judge(set(r["owned"]), _supports(r[test][rule])) for r in results), len(results))


def _supports(said: list[Any]) -> list[set[str]]:
    """Rule 1 says several supports, Rule 2 one."""
    several = said and isinstance(said[0], list)
    return [set(support) for support in said] if several else [set(said)]


def _only(owned: set[str], supports: list[set[str]]) -> bool:
    return supports == [owned]


def _among(owned: set[str], supports: list[set[str]]) -> bool:
    return owned in supports


def _false(owned: set[str], supports: list[set[str]]) -> bool:
    """What is in every support is said to be controlled."""
    return not set.intersection(*supports) <= owned


Judge = Callable[[set[str], list[set[str]]], bool]
JUDGES: tuple[Judge, ...] = (_only, _among, _false)


def analyse(records: Sequence[Record]) -> list[Panel]:
    """The paper's figure with both tests, and the errors behind it."""
    found = outcomes(records)
    drivers = {r.setting["seed"]: r.result["failed"] for r in records}
    noise = [r.result["wilks"]["restart_noise"] for r in records]
    learned = [o for o in found if not o.failed] or found
    last = [o for o in learned if o.num_episodes == max(o.num_episodes for o in learned)]
    level = records[0].setting["significance"]
    counted = f"{sum(drivers.values())} of {len(drivers)} drivers failed to learn"
    verdict, why = _verdict(last)
    numbers = {
        "num_drivers": len(drivers),
        "num_failed": sum(drivers.values()),
        "median_restart_noise": float(np.median(noise)),
        "outcomes": [_plain(o) for o in found],
    }
    return [
        Panel(
            "car",
            "Car: the owned sensors identified",
            CLAIM,
            verdict,
            f"{why} {counted}{', and are counted apart' if any(drivers.values()) else ''}.",
            draw(found, "correct", "share of drivers identified exactly", None, counted),
            ("drivers", "rule and test", "episodes", "identified", "among those returned"),
            [(_who(o), WAYS[o.rule, o.test][0], str(o.num_episodes), o.correct.words, o.among.words) for o in found],
            numbers,
        ),
        Panel(
            "car-false-selections",
            "Car: sensors said to be controlled that are not",
            f"How often does a rule name a sensor that the driver does not have, where at most δ = {level:g} is promised?",
            "our own",
            _errors(last, float(np.median(noise))),
            draw(found, "false", "share of drivers with a false selection", level, counted),
            ("drivers", "rule and test", "episodes", "with a false selection"),
            [(_who(o), WAYS[o.rule, o.test][0], str(o.num_episodes), o.false.words) for o in found],
            {"outcomes": numbers["outcomes"], "significance": level},
        ),
    ]  # fmt: skip


def _verdict(last: list[Outcome]) -> tuple[Verdict, str]:
    """Does the combinatorial rule end near 1 (surely above 0.8), and above the simplified one, with the paper's χ²?"""
    share = {(o.rule, o.test): o.correct for o in last}
    first, second = share["rule_1", "wilks"], share["rule_2", "wilks"]
    ours = share["rule_1", "universal"]
    said = (
        f"At {last[0].num_episodes} episodes, with the paper's χ², Rule 1 finds the owned set and no other for "
        f"{first.words} of the drivers, Rule 2 for {second.words}; by universal inference Rule 1 does for {ours.words}."
    )
    if first.interval[0] > 0.8 and first.value > second.value:
        return "holds", said
    better = first.interval[0] > second.interval[1]
    if better or (ours.interval[0] > 0.8 and ours.interval[0] > first.interval[1]):
        with_ours = " What the paper claims of Rule 1 comes true with a test that holds, not with χ²."
        return "holds partly", said + ("" if better else with_ours)
    few = " So few drivers can tell little." if first.num_runs < FEW else ""
    return "does not hold", said + few


def _errors(last: list[Outcome], noise: float) -> str:
    """What both tests do at the largest number of episodes."""
    false = {(o.rule, o.test): o.false for o in last}
    return (
        f"At {last[0].num_episodes} episodes Rule 2 by χ² errs with {false['rule_2', 'wilks'].words} of the drivers, "
        f"Rule 1 with {false['rule_1', 'wilks'].words}: a network is not identifiable, and λ has no χ² law; with other "
        f"random starts it moves by {noise:.0f} in the median. By universal inference the rules err with "
        f"{false['rule_2', 'universal'].words} and {false['rule_1', 'universal'].words}."
    )


def draw(outcomes: list[Outcome], what: str, label: str, level: float | None, note: str) -> "Figure":
    """Shares against the number of episodes: a line for drivers that learned, hollow marks for those that failed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    ways = list(WAYS)
    for place, ((rule, test), (name, colour, style)) in enumerate(WAYS.items()):
        for failed in (False, True):
            own = [o for o in outcomes if (o.rule, o.test, o.failed) == (rule, test, failed)]
            if not own:
                continue
            shares = [getattr(o, what) for o in own]
            # A little apart, so that equal shares and their intervals are all seen.
            x = np.array([o.num_episodes for o in own]) * 1.05 ** (place - (len(ways) - 1) / 2 + 0.4 * failed)
            y = np.array([share.value for share in shares])
            ends = np.abs(np.array([share.interval for share in shares]).T - y)
            if failed and shares[0].num_runs < FEW:
                ends = np.zeros_like(ends)  # nearly all of the axis, which would hide the others
            axes.errorbar(
                x, y, ends, fmt=style[0] if failed else style, color=colour, linewidth=1.8, elinewidth=1, capsize=2,
                alpha=0.55 if failed else 1.0, mfc="white" if failed else colour, label=None if failed else name,
            )  # fmt: skip
    if level is not None:
        axes.axhline(level, color="#1f2933", linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(f"promised: at most δ = {level:g}", (0.01, level), xycoords=("axes fraction", "data"),
                      xytext=(0, 3), textcoords="offset points", fontsize=8.5)  # fmt: skip
    axes.set_xscale("log")
    ticks = sorted({o.num_episodes for o in outcomes})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel(f"episodes observed ({note}{': hollow marks' if any(o.failed for o in outcomes) else ''})")
    axes.set_ylabel(label)
    axes.legend(frameon=False, fontsize=8.5, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    axes.grid(color="#e4e7eb")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def _who(outcome: Outcome) -> str:
    return f"{outcome.correct.num_runs} that {'failed to learn' if outcome.failed else 'learned'}"


def _plain(outcome: Outcome) -> dict[str, Any]:
    """As JSON can hold it, intervals included."""
    shares = {name: getattr(outcome, name) for name in ("correct", "among", "false")}
    plain = {name: [round(x, 4) for x in (share.value, *share.interval)] for name, share in shares.items()}
    return asdict(outcome) | plain | {"num_drivers": outcome.correct.num_runs}
