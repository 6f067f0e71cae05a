"""`car`: which sensors a driver sees, by both rules, with the paper's χ² and with tests that hold (Section 6.3)."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl

from policyspace.data.sample import Sample
from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax
from policyspace.families.likelihood import ChiSquare
from policyspace.families.network import GaussianNetwork
from policyspace.families.network_likelihood import NetworkLikelihood
from policyspace.inference.base import SupportTest
from policyspace.inference.e_values import UniversalTest
from policyspace.inference.lean.lean_test import LeanTest
from policyspace.inference.parametric import WilksTest
from policyspace.inference.selection import Verdicts, each_group_alone, search_supports
from policyspace.report.figures import AMBER, BLUE, DASHED, GREEN, INK, PURPLE, RED, WIDTH
from policyspace.worlds.agents import learn
from policyspace_paper.configuring import world_and_space
from policyspace_paper.estimates import Rate, difference, groups, rates, tidy
from policyspace_paper.execution import Experiment, Record, RunSetting, RunSize
from policyspace_paper.panels import FEWEST, Claim, ClaimPart, Panel, above, judged, verdict_of
from policyspace_paper.plots import Plot, draw, spaced_ticks
from policyspace_paper.printed import (
    LITERAL,
    AdamOptions,
    RulesResult,
    adam_fits,
    all_of,
    both_rules,
    network_likelihood,
    procedures,
    settings_panels,
)
from policyspace_paper.surrogate import LEARNED, reached

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# -- One driver, its first n episodes, and what both rules say of them.

CAR = LITERAL["car"]
EPISODES = CAR.num_episodes.value


class CarSetting(RunSetting):
    """A driver, and how many of its episodes are seen; in the literal procedure it holds `AdamOptions`, too."""

    learning_rate: float


class TestedDriver(RulesResult, total=False):
    """What both rules say by one test, with p-values and, of likelihood ratios, how they were found."""

    p_values: dict[str, float]
    restart_noise: float
    num_fits: int


CarResult = Mapping[str, Any]
"""How well the driver drives, what it owns, and a `TestedDriver` for each of TESTS that was made."""
CarRecord = Record[CarSetting, CarResult]


def settings(size: RunSize) -> Iterable[CarSetting]:
    """The same drivers by both procedures; the cells of one driver follow each other, so that it learns once."""
    for seed in range(size.num_runs(CAR.runs.value, 1)):
        for procedure in procedures(size):
            for num_episodes in (10,) if size.quick else EPISODES:
                setting: CarSetting = {
                    "procedure": procedure,
                    "num_episodes": num_episodes,
                    "learning_rate": CAR.learning_rate.value,
                    "significance": CAR.significance.value,
                    "seed": seed,
                }
                yield cast(CarSetting, {**setting, **(CAR.adam or {})}) if procedure == "literal" else setting


def run(setting: CarSetting) -> CarResult:
    """One driver by each test of a procedure."""
    level = setting["significance"]
    world, space = world_and_space("car")
    seen, how = driver(setting["seed"], setting["learning_rate"])
    assert seen.episodes is not None
    data = seen.take(np.flatnonzero(seen.episodes < setting["num_episodes"]))
    space = cast(GaussianNetwork, space)
    owned = sorted(world.true_controls, key=world.feature_names.index)
    found = {**how, "owned": owned, "num_pairs": data.num_rows}
    if setting["procedure"] == "literal":
        return found | by_adam(space, data, cast(AdamOptions, setting), level, setting["seed"])
    likelihood = NetworkLikelihood(space, data.features, data.actions, None)
    return found | {
        "wilks": by_wilks(likelihood, level),
        "universal": by_rules(UniversalTest(likelihood, data, level, setting["seed"]), level),
        "lean": by_rules(LeanTest(space, data, level, setting["seed"]), level),
    }


def by_adam(
    space: GaussianNetwork, data: Sample, adam: AdamOptions, significance: float, seed: int
) -> dict[str, RulesResult]:
    """The paper's rules on the paper's fits: the last and the best point of each path, from small and large starts."""
    evaluate = network_likelihood(space, data.features, data.actions)
    found = {}
    for spread in adam["spreads"]:
        fits = adam_fits(space, evaluate, all_of(space), adam["rate"], adam["num_steps"], spread, seed)
        for point, values in (("last", fits.last), ("best", fits.best)):
            found[f"adam-{point}-{spread:g}"] = both_rules(space, 2 * (values[-1] - values), significance)
    return found


def by_wilks(likelihood: NetworkLikelihood, significance: float) -> TestedDriver:
    """The paper's rules: Rule 1 at χ²_{m,1−δ/2^d} with a check of the children, Rule 2 at χ²_{m,1−δ/d}.

    `identify` withholds these verdicts where λ moves with the random starts as it does for the car: what the paper would
    have answered is what is asked here.
    """
    test = WilksTest(likelihood)
    rule_2 = each_group_alone(test, significance, "bonferroni")
    noise = likelihood.restart_noise  # of one-out fits: those of Rule 1 start from more places, and lift the former
    rule_1 = search_supports(test, significance, paper_rule=True)
    found = _recorded(likelihood.space, rule_1, rule_2)
    return {**found, "restart_noise": round(float(noise), 3), "num_fits": likelihood.num_fits}


def by_rules(test: SupportTest, significance: float) -> TestedDriver:
    """Rule 1 by closed testing and Rule 2 by Holm, as `identify` runs them with this test."""
    return _recorded(test.space, search_supports(test, significance), each_group_alone(test, significance))


def _recorded(space: PolicySpace, rule_1: Verdicts, rule_2: Verdicts) -> TestedDriver:
    """Supports without what is always controlled."""
    names = {g: space.groups[g].name for g in space.tested}
    one, several = (
        [[name for name in space.named(support) if name in names.values()] for support in found.supports]
        for found in (rule_2, rule_1)
    )
    return {
        "rule_1": several,
        "rule_2": one[0],
        "statistics": {names[g]: round(float(test.statistic), 3) for g, test in rule_2.tests.items()},
        "p_values": {names[g]: test.p_value for g, test in rule_2.tests.items()},
    }


@lru_cache(maxsize=2)
def driver(seed: int, learning_rate: float) -> tuple[Sample, dict[str, float]]:
    """All episodes of a driver that are ever used, and how well it drives in them."""
    world, space = world_and_space("car")
    learning, acting = jax.random.split(jax.random.key(seed))
    agent = learn(world, space, key=learning, learning_rate=learning_rate)
    episodes = agent.act(world, agent.configuration, acting, max(EPISODES))
    arrived = float(reached("car", episodes).mean())
    how = {
        "failed": arrived < LEARNED,
        "arrived": round(arrived, 4),
        "mean_return": round(float(np.mean(episodes.returns(world.discount))), 4),
    }
    return episodes.pairs(world.feature_names, world.action_names), how


# -- How often each rule finds the owned sensors, and what it names wrongly.

TESTS = {
    "adam-best-0.01": ("χ², Adam's best point from U(±0.01)", BLUE),
    "adam-last-0.01": ("χ², Adam's last point from U(±0.01)", GREEN),
    "adam-best-1": ("χ², Adam's best point from U(±1)", AMBER),
    "adam-last-1": ("χ², Adam's last point from U(±1)", PURPLE),
    "wilks": ("χ², full maximisation", RED),
    "universal": ("universal inference", GREEN),
    "lean": ("lean test", BLUE),
}
"""How sensors are tested: by the paper's own fits, by the highest peak that is found, and by tests that need no χ²."""
DEFAULT = "lean"
"""How `identify` tests the inputs of a network where nobody says otherwise."""
RULES = {"rule_1": "Rule 1 (combinatorial)", "rule_2": "Rule 2 (simplified)"}
COLOURS = {"rule_1": BLUE, "rule_2": AMBER}
BY = ("failed", "num_episodes", "rule", "test")
NEAR = 0.8
"""The share of drivers above which a rule surely finds nearly all of them."""
CLAIM = Claim(
    "With few episodes the simplified rule is ahead; with many the combinatorial rule identifies the policy space in "
    "nearly all runs, while the simplified one may select a wrong set.",
    "On the same drivers, of those that learned. Few episodes: at the smallest n Rule 2 surely finds the owned set, and no "
    f"other, more often. Many: at the largest n Rule 1 surely does for more than {NEAR:.0%} of the drivers, and surely more "
    "often than Rule 2. Literally, as the paper says neither where its fits begin nor which point of a path they are, there "
    "are four readings; the claim holds if it does in all of them, and partly if in some. Ours is judged by the lean test, "
    f"the default for the inputs of a network. At least {FEWEST} drivers.",
)


def outcomes(records: list[CarRecord]) -> pl.DataFrame:
    """A row a driver, number of episodes, rule and test; drivers that learned first, then those that failed."""

    def rows(record: CarRecord) -> Iterable[dict[str, object]]:
        owned = set(record.result["owned"])
        for test, rule in ((t, r) for t in TESTS if t in record.result for r in RULES):
            answer = record.result[test][rule]  # Rule 1 returns several supports, Rule 2 one
            supports = [set(one) for one in (answer if rule == "rule_1" else [answer])]
            yield {
                "failed": record.result["failed"],
                "num_episodes": record.setting["num_episodes"],
                "seed": record.setting["seed"],
                "rule": rule,
                "test": test,
                "correct": int(supports == [owned]),  # the owned set, and no other
                "among": int(owned in supports),  # perhaps beside others (Rule 1)
                # What is in every support is said to be controlled.
                "false": int(not set.intersection(*supports) <= owned),
            }

    return tidy(records, rows).sort("failed", "num_episodes", maintain_order=True)


def judge(learned: pl.DataFrame, test: str) -> list[ClaimPart]:
    """The three parts of the claim, with one way of testing."""
    own = learned.filter(pl.col("test") == test)
    few, many = own["num_episodes"].to_numpy().min(), own["num_episodes"].to_numpy().max()
    ahead = difference(own.filter(pl.col("num_episodes") == few), "correct", "rule", "rule_2", "rule_1")
    behind = difference(own.filter(pl.col("num_episodes") == many), "correct", "rule", "rule_1", "rule_2")
    share = rates(own.filter(pl.col("num_episodes") == many), "correct", "rule")["rule_1"]
    assert ahead is not None and behind is not None  # every driver is judged by both rules
    near = judged(share.low > NEAR, share.high < NEAR)
    return [
        ClaimPart(f"By {TESTS[test][0]}: At n = {few} Rule 2 is ahead of Rule 1 by {ahead.words}", above(ahead)),
        ClaimPart(f"At n = {many} Rule 1 finds the owned set alone for {share.words} of the drivers", near),
        ClaimPart(f"There it is ahead of Rule 2 by {behind.words}", above(behind) if few != many else None),
    ]


def analyse(records: list[CarRecord]) -> list[Panel]:
    """The paper's figure, the errors behind it, and the law of λ of sensors that are not owned."""
    found = outcomes(records)
    learned = found.filter(~pl.col("failed"))
    learned = found if learned.is_empty() else learned
    drivers = {r.setting["seed"]: r.result["failed"] for r in records}
    parts = {test: judge(learned, test) for test in learned["test"].unique(maintain_order=True)}
    best = max(parts, key=lambda test: (test == DEFAULT, sum(part.holds is True for part in parts[test])))
    num_drivers = learned["seed"].n_unique()
    judging, in_how_many = parts[best], ""
    if DEFAULT not in parts:  # several readings of the paper: all count, the best of them is told
        judging = judging + [ClaimPart("", part.holds) for test, own in parts.items() if test != best for part in own]
        holding = sum(verdict_of(own, num_drivers) == "holds" for own in parts.values())
        in_how_many = f"it holds in {holding} of {len(parts)} readings"
    others = "; ".join(f"{TESTS[t][0]}, {verdict_of(own, num_drivers)}" for t, own in parts.items() if t != best)
    correct, among, false = (rates(found, what, *BY) for what in ("correct", "among", "false"))
    level = records[0].setting["significance"]
    outcome = [
        {
            "rule": rule,
            "test": test,
            "num_episodes": n,
            "failed": failed,
            **{
                name: [round(x, 4) for x in (share.value, share.low, share.high)]
                for name, share in (("correct", rate), ("among", among[key]), ("false", false[key]))
            },
            "num_drivers": rate.num_runs,
        }
        for key, rate in correct.items()
        for failed, n, rule, test in [key]
    ]
    panels = [
        Panel(
            "car",
            "Car: the owned sensors identified",
            CLAIM,
            f"By the other ways of testing the claim: {others}. "
            f"{sum(drivers.values())} of {len(drivers)} drivers failed to learn, and are counted apart.",
            draw_shares(learned, "correct", "share of drivers identified exactly"),
            ("drivers", "test", "rule", "episodes", "identified", "among those returned"),
            [(*_who(key, share), share.words, among[key].words) for key, share in correct.items()],
            {"num_drivers": len(drivers), "num_failed": sum(drivers.values()), "outcomes": outcome},
            judging,
            num_drivers,
            in_how_many=in_how_many,
        ),
        Panel(
            "car-false-selections",
            "Car: sensors said to be controlled that are not",
            Claim(
                "How often does a rule name a sensor that the driver does not have, where at most "
                f"δ = {level:g} is promised?"
            ),
            _errors(learned, level),
            draw_shares(learned, "false", "share with a false selection", level),
            ("drivers", "test", "rule", "episodes", "with a false selection"),
            [(*_who(key, share), share.words) for key, share in false.items()],
            {"outcomes": outcome, "significance": level},
        ),
    ]
    return [*panels, *law_panels(records, level), *settings_panels("car", "car", records)]


def _who(key: tuple[bool, int, str, str], share: Rate) -> tuple[str, str, str, str]:
    """The drivers, the test and its rule, the number of episodes."""
    failed, num_episodes, rule, test = key
    drivers = f"{share.num_runs} that {'failed to learn' if failed else 'learned'}"
    return drivers, TESTS[test][0], RULES[rule], str(num_episodes)


def _errors(learned: pl.DataFrame, level: float) -> str:
    """What every test does at the largest number of episodes; where false selections are surely or perhaps too many."""
    shares = rates(learned, "false", "test", "rule", "num_episodes")
    most = max(n for _, _, n in shares)
    said = "; ".join(
        f"{words}: Rule 1 {shares[test, 'rule_1', most].words}, Rule 2 {shares[test, 'rule_2', most].words}"
        for test, (words, _) in TESTS.items()
        if (test, "rule_1", most) in shares
    )

    def listed(chosen: Callable[[Rate], bool]) -> str:
        found: dict[tuple[str, str], list[str]] = {}
        for (test, rule, n), share in shares.items():
            if chosen(share):
                found.setdefault((test, rule), []).append(str(n))
        words = (
            f"{TESTS[t][0]}, {RULES[rule].split(' (')[0]}, at n = {', '.join(n)}" for (t, rule), n in found.items()
        )
        return "; ".join(words) or "nowhere"

    surely, perhaps = listed(lambda s: s.low > level), listed(lambda s: s.low <= level < s.value)
    return (
        f"At {most} episodes, {said}. Surely more than δ = {level:g}: {surely}. More, as chance may have it: {perhaps}."
    )


def draw_shares(learned: pl.DataFrame, what: str, label: str, level: float | None = None) -> "Figure":
    """A plot a test, a line a rule: shares against the number of episodes."""

    def promised(axes: "Axes") -> None:
        if level is not None:
            axes.axhline(level, color=INK, linewidth=1, linestyle=DASHED, label=f"promised: at most {level:g}")

    plots = [
        Plot(rates(own, what, "rule", "num_episodes"), TESTS[test][0].replace(" from", "\nfrom"), more=promised)
        for test, own in groups(learned, "test").items()
    ]
    return draw(
        f"Car: {label}", plots, COLOURS, RULES, height=3.2, width=2.3 * len(plots) + 1, shares=True,
        xlabel="episodes observed", ylabel="share of drivers",
    )  # fmt: skip


# -- The law of λ of sensors that are not owned, by each way of fitting a network.

DEGREES = 8
"""Weights that leave one sensor."""


def not_owned(records: list[CarRecord]) -> pl.DataFrame:
    """A row a driver that learned, number of episodes, χ² test and sensor that is not owned: its λ, all others in."""

    def rows(record: CarRecord) -> Iterable[dict[str, object]]:
        for test in (name for name in TESTS if name in record.result and TESTS[name][0].startswith("χ²")):
            for sensor, value in record.result[test]["statistics"].items():
                if sensor not in record.result["owned"]:
                    yield {"num_episodes": record.setting["num_episodes"], "test": test, "statistic": float(value)}

    return tidy([r for r in records if not r.result["failed"]], rows)


def law_panels(records: list[CarRecord], level: float) -> list[Panel]:
    """λ of sensors that are not owned against χ²_8, which Wilks' theorem promises where a policy is identifiable."""
    statistics = not_owned(records)
    if statistics.is_empty():
        return []
    critical = ChiSquare().critical(level / 5, DEGREES)
    rows = []
    for (n, test), own in groups(statistics.sort("num_episodes", maintain_order=True), "num_episodes", "test").items():
        values = own["statistic"].to_numpy()
        above_it, negative = Rate(int((values > critical).sum()), len(values)), int((values < 0).sum())
        median = float(np.median(values))
        rows.append((n, test, median, f"{median:.1f}".replace("-", "−"), above_it, negative))
    most = max(n for n, *_ in rows)
    said = "; ".join(
        f"{TESTS[test][0]}: {share.words} above it, median {shown}, {negative} of {share.num_runs} negative"
        for n, test, _, shown, share, negative in rows
        if n == most
    )
    when = (
        "A network is not identifiable: full maximisation goes on to peaks that explain noise, and λ is then no longer "
        "to be compared with χ²."
        if "wilks" in statistics["test"]
        else "So few steps of Adam end before the weights of such a sensor have explained the noise, and λ stays small, or "
        "is negative where the larger set ended lower: on a network χ² works by early stopping, as far as it does; where "
        "it does not, the panel above says."
    )
    return [
        Panel(
            "car-law",
            "Car: the law of λ of sensors that are not owned",
            Claim(
                f"Does λ follow χ² with {DEGREES} degrees of freedom where a sensor is not owned, so that it is above "
                f"{critical:.1f} for a share δ/5 = {level / 5:g} of them?"
            ),
            f"At {most} episodes, {said}; the median of χ² is 7.3. {when}",
            draw_law(statistics, critical),
            ("test", "episodes", "sensors", "median of λ", f"above {critical:.1f}", "negative"),
            [
                (TESTS[test][0], str(n), str(share.num_runs), shown, share.words, str(negative))
                for n, test, _, shown, share, negative in rows
            ],
            {
                "critical": critical,
                "laws": [
                    {"test": test, "num_episodes": n, "median": median, "above": share.value, "negative": negative}
                    for n, test, median, _, share, negative in rows
                ],
            },
        )
    ]


def draw_law(statistics: pl.DataFrame, critical: float) -> "Figure":
    """A plot a test and number of episodes: quantiles of λ against those of χ²; on the diagonal they have the same law."""
    sizes, tests = statistics["num_episodes"].unique().sort().to_list(), statistics["test"].unique(maintain_order=True)
    line, found = np.linspace(0, 26, 50), groups(statistics, "test", "num_episodes")

    def quantiles(axes: "Axes", test: str, n: int) -> None:
        axes.plot(line, line, color=INK, linewidth=1, label=f"χ² with {DEGREES} degrees of freedom")
        axes.axhline(critical, color=INK, linewidth=1, linestyle=DASHED, label=f"critical value, {critical:.1f}")
        values = np.sort(found[test, n]["statistic"].to_numpy())
        expected = [ChiSquare().critical(1 - (i + 0.5) / len(values), DEGREES) for i in range(len(values))]
        axes.plot(expected, values, ".-", color=TESTS[test][1], markersize=4, linewidth=1.2)

    def scaled(axes: "Axes") -> None:
        axes.set_yscale("symlog", linthresh=30, linscale=3)  # of all, which share it
        spaced_ticks(axes, (0, 10, 20, 100, 1000, 10000, -100, -10000, 30, -20, -1000))

    plots = []
    for test, n in product(tests, sizes):
        title = f"{TESTS[test][0].removeprefix('χ², ')}, {n} episodes".replace(" from", "\nfrom")
        plots.append(Plot({}, title, more=partial(quantiles, test=test, n=n)))
    return draw(
        "Car: λ of sensors that are not owned, against its law", plots, {}, height=1.3 + 1.9 * len(tests),
        width=max(WIDTH, 2.6 * len(sizes) + 1), rows=len(tests), xscale="linear", xlabel="quantile of χ²",
        ylabel="quantile of λ",  finish=scaled, sharex=True,
    )  # fmt: skip


EXPERIMENT = Experiment("car", "Simulated car driving", settings, run, analyse)
