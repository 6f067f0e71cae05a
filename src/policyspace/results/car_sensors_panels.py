"""Records of the car → how often each rule finds the owned sensors, and what it names wrongly; `car_law`: the law of λ."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

from policyspace.experiments.records import Record
from policyspace.report.estimates import Rate
from policyspace.report.plots import draw_lines, legend_below, logarithmic
from policyspace.report.style import AMBER, BLUE, DASHED, INK, bare, new_figure
from policyspace.results.car_law import TESTS, law_panels
from policyspace.results.frames import difference, groups, rates, tidy
from policyspace.results.judging import FEWEST, Part, above, verdict_of, why
from policyspace.results.literal_settings import settings_panels
from policyspace.results.panel import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Simulated car driving"
DEFAULT = "lean"
"""How `identify` tests the inputs of a network where nobody says otherwise."""
RULES = {"rule_1": "Rule 1 (combinatorial)", "rule_2": "Rule 2 (simplified)"}
COLOURS = {"rule_1": BLUE, "rule_2": AMBER}
BY = ("failed", "num_episodes", "rule", "test")
NEAR = 0.8
"""The share of drivers above which a rule surely finds nearly all of them."""
CLAIM = (
    "With few episodes the simplified rule is ahead; with many the combinatorial rule identifies the policy space in "
    "nearly all runs, while the simplified one may select a wrong set."
)
CRITERIA = (
    "On the same drivers, of those that learned. Few episodes: at the smallest n Rule 2 surely finds the owned set, and no "
    f"other, more often. Many: at the largest n Rule 1 surely does for more than {NEAR:.0%} of the drivers, and surely more "
    "often than Rule 2. Literally, as the paper says neither where its fits begin nor which point of a path they are, the "
    "claim holds if it does in one of those ways. Ours is judged by the lean test, the default for the inputs of a network. "
    f"At least {FEWEST} drivers."
)

Shares = dict[tuple[bool, int, str, str], Rate]
"""How often something is so of drivers, in the order of BY."""


def outcomes(records: list[Record]) -> pl.DataFrame:
    """A row a driver, number of episodes, rule and test; drivers that learned first, then those that failed."""

    def rows(record: Record) -> list[dict[str, Any]]:
        owned = set(record.result["owned"])
        common = {"failed": record.result["failed"], "num_episodes": record.setting["num_episodes"]}
        found = {(r, t): _supports(record.result[t][r]) for t in TESTS if t in record.result for r in RULES}
        return [
            common
            | {
                "procedure": record.setting["procedure"],
                "seed": record.setting["seed"],
                "rule": rule,
                "test": test,
                "correct": int(supports == [owned]),  # the owned set, and no other
                "among": int(owned in supports),  # perhaps beside others (Rule 1)
                # What is in every support is said to be controlled.
                "false": int(not set.intersection(*supports) <= owned),
            }
            for (rule, test), supports in found.items()
        ]

    return tidy(records, rows).sort("failed", "num_episodes", maintain_order=True)


def _supports(answer: list[Any]) -> list[set[str]]:
    """Rule 1 returns several supports, Rule 2 one."""
    several = answer and isinstance(answer[0], list)
    return [set(support) for support in answer] if several else [set(answer)]


def judge(learned: pl.DataFrame, test: str) -> list[Part]:
    """The three parts of the claim, with one way of testing."""
    own = learned.filter(pl.col("test") == test)
    few, many = own["num_episodes"].to_numpy().min(), own["num_episodes"].to_numpy().max()
    ahead = difference(own.filter(pl.col("num_episodes") == few), "correct", "rule", "rule_2", "rule_1")
    behind = difference(own.filter(pl.col("num_episodes") == many), "correct", "rule", "rule_1", "rule_2")
    share = rates(own.filter(pl.col("num_episodes") == many), "correct", "rule")["rule_1"]
    assert ahead is not None and behind is not None  # every driver is judged by both rules
    near = True if share.low > NEAR else False if share.high < NEAR else None
    return [
        Part(f"At n = {few} Rule 2 is ahead of Rule 1 by {ahead.words}", above(ahead)),
        Part(f"At n = {many} Rule 1 finds the owned set alone for {share.words} of the drivers", near),
        Part(f"There it is ahead of Rule 2 by {behind.words}", above(behind) if few != many else None),
    ]


def analyse(records: list[Record]) -> list[Panel]:
    """The paper's figure, the errors behind it, and the law of λ of sensors that are not owned."""
    found = outcomes(records)
    learned = found.filter(~pl.col("failed"))
    learned = found if learned.is_empty() else learned
    drivers = {r.setting["seed"]: r.result["failed"] for r in records}
    counted = f"{sum(drivers.values())} of {len(drivers)} drivers failed to learn"
    tests = list(groups(learned, "test"))
    judged = {test: judge(learned, test) for test in tests}
    best = max(tests, key=lambda test: (test == DEFAULT, sum(part.holds is True for part in judged[test])))
    num_drivers = learned["seed"].n_unique()
    others = "; ".join(f"{TESTS[t][0]}, {verdict_of(judged[t], num_drivers)}" for t in tests if t != best)
    correct, among, false = (rates(found, what, *BY) for what in ("correct", "among", "false"))
    level = records[0].setting["significance"]
    plain = [_plain(key, correct[key], among[key], false[key]) for key in correct]
    panels = [
        Panel(
            "car",
            "Car: the owned sensors identified",
            CLAIM,
            verdict_of(judged[best], num_drivers),
            f"By {TESTS[best][0]}: {why(judged[best])} By the other ways of testing the claim: {others}. {counted}, and are "
            "counted apart.",
            draw(
                rates(learned, "correct", "test", "rule", "num_episodes"), "share of drivers identified exactly", None
            ),
            ("drivers", "test", "rule", "episodes", "identified", "among those returned"),
            [(*_who(key, share), share.words, among[key].words) for key, share in correct.items()],
            {"num_drivers": len(drivers), "num_failed": sum(drivers.values()), "outcomes": plain},
            CRITERIA,
        ),
        Panel(
            "car-false-selections",
            "Car: sensors said to be controlled that are not",
            f"How often does a rule name a sensor that the driver does not have, where at most δ = {level:g} is promised?",
            "our own",
            f"{_errors(learned)} {_broken(learned, level)}",
            draw(rates(learned, "false", "test", "rule", "num_episodes"), "share with a false selection", level),
            ("drivers", "test", "rule", "episodes", "with a false selection"),
            [(*_who(key, share), share.words) for key, share in false.items()],
            {"outcomes": plain, "significance": level},
        ),
    ]
    return [*panels, *law_panels(records, level), *settings_panels("car", "car", records)]


def _errors(learned: pl.DataFrame) -> str:
    """What every test does at the largest number of episodes."""
    most = learned["num_episodes"].to_numpy().max()
    shares = rates(learned.filter(pl.col("num_episodes") == most), "false", "test", "rule")
    said = "; ".join(
        f"{words}: Rule 1 {shares[test, 'rule_1'].words}, Rule 2 {shares[test, 'rule_2'].words}"
        for test, (words, _) in TESTS.items()
        if (test, "rule_1") in shares
    )
    return f"At {most} episodes, {said}."


def _broken(learned: pl.DataFrame, level: float) -> str:
    """Where the share of drivers with a false selection is surely above δ, and where by less than chance explains."""
    shares = rates(learned, "false", "test", "rule", "num_episodes")
    surely, perhaps = _listed(shares, lambda s: s.low > level), _listed(shares, lambda s: s.low <= level < s.value)
    return f"Surely more than δ = {level:g}: {surely}. More, as chance may have it: {perhaps}."


def _listed(shares: dict[tuple[str, str, int], Rate], chosen: Callable[[Rate], bool]) -> str:
    found: dict[tuple[str, str], list[str]] = {}
    for (test, rule, n), share in shares.items():
        if chosen(share):
            found.setdefault((test, rule), []).append(str(n))
    words = [
        f"{TESTS[test][0]}, {RULES[rule].split(' (')[0]}, at n = {', '.join(n)}" for (test, rule), n in found.items()
    ]
    return "; ".join(words) or "nowhere"


def draw(shares: dict[tuple[str, str, int], Rate], label: str, level: float | None) -> "Figure":
    """A plot a test, a line a rule: shares against the number of episodes."""
    tests = list(dict.fromkeys(test for test, _, _ in shares))
    figure = new_figure(3.2, f"Car: {label}", width=2.3 * len(tests) + 1)
    plots = figure.subplots(1, len(tests), sharey=True, squeeze=False)[0]
    for test, axes in zip(tests, plots, strict=True):
        bare(axes)
        own = {(rule, n): share for (other, rule, n), share in shares.items() if other == test}
        draw_lines(axes, own, COLOURS, RULES)
        if level is not None:
            axes.axhline(level, color=INK, linewidth=1, linestyle=DASHED, label=f"promised: at most {level:g}")
        logarithmic(axes, sorted({n for _, n in own}))
        axes.set_title(TESTS[test][0].replace(" from", "\nfrom"), fontsize=9.5)
        axes.set_xlabel("episodes observed")
    plots[0].set_ylim(-0.03, 1.03)
    plots[0].set_ylabel("share of drivers")
    legend_below(plots[0])
    return figure


def _who(key: tuple[bool, int, str, str], share: Rate) -> tuple[str, str, str, str]:
    """The drivers, the test and its rule, the number of episodes."""
    failed, num_episodes, rule, test = key
    drivers = f"{share.num_runs} that {'failed to learn' if failed else 'learned'}"
    return drivers, TESTS[test][0], RULES[rule], str(num_episodes)


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
