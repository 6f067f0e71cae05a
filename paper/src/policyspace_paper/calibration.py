"""`calibration`: how often tests, degrees of freedom and rules err where the truth is known, against what they promise."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
from scipy.special import chdtri

from policyspace.data.sample import Sample
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace
from policyspace.families.gaussian import GaussianLinear
from policyspace.families.network import GaussianNetwork
from policyspace.families.registry import likelihood_of
from policyspace.families.softmax import SoftmaxLinear
from policyspace.inference.base import TestOptions
from policyspace.inference.e_values import MixtureTest, SequentialMonitor, episodes_of
from policyspace.inference.parametric import WilksTest
from policyspace.inference.selection import each_group_alone
from policyspace.inference.test_choice import support_test
from policyspace.runtime import single_threaded_blas
from policyspace.study.evidence import outcome_of_batch
from policyspace.study.records import Schedule
from policyspace_paper.estimates import Rate, groups, tidy
from policyspace_paper.execution import Experiment, Record, RunSetting, RunSize
from policyspace_paper.panels import Claim, Panel
from policyspace_paper.plots import draw_rates

# -- How often each test errs and how often it finds what is there, by simulation where the truth is known.

Draw = Callable[[np.random.Generator], tuple[PolicySpace, Sample]]
"""One simulated data set."""


@dataclass(frozen=True)
class Scenario:
    """An agent whose controls are known, and how its data are looked at."""

    words: str
    controlled: tuple[str, ...]
    draw: Draw
    peeking: bool = False  # a test after every episode, and the first rejection counts


@dataclass(frozen=True)
class Level:
    """What was measured: in how many runs anything false was found, and the share of the controlled that was found."""

    num_runs: int
    error: float  # the share of runs with any false "controlled"
    power: float


def _choices(weights: np.ndarray, num_episodes: int, length: int) -> Draw:
    """A Boltzmann agent of weights [k, q]; the features that carry no weight are the unused ones."""

    def draw(rng: np.random.Generator) -> tuple[PolicySpace, Sample]:
        k, q = weights.shape
        names, actions = tuple(f"x{j}" for j in range(q)), tuple(f"a{i}" for i in range(k + 1))
        space = SoftmaxLinear(names, actions)
        theta = np.hstack([np.zeros((k, 1)), weights]).ravel()
        features = rng.normal(size=(num_episodes * length, q))
        episodes = np.arange(num_episodes * length) // length
        return space, Sample(features, space.sample(rng, theta, features), names, actions, episodes)

    return draw


def _network(num_pairs: int) -> Draw:
    """Eight tanh units, two of four inputs unused; the same network in every run, other states and actions."""
    names = ("x0", "x1", "x2", "x3")
    space = GaussianNetwork(names, ("a",), (8,), 0.1)
    theta = np.random.default_rng(7).normal(size=space.num_parameters)
    theta[[i for g in space.groups[2:4] for i in g.indices]] = 0.0
    theta[space.layer_indices[1][0]] *= 0.5

    def draw(rng: np.random.Generator) -> tuple[PolicySpace, Sample]:
        features = rng.normal(size=(num_pairs, 4))
        actions = space.sample(rng, theta, features)
        return space, Sample(features, actions, names, ("a",), np.arange(num_pairs) // 20)

    return draw


_LINEAR = np.array([[0.6, -0.3, 0, 0, 0], [0.3, 0.4, 0, 0, 0]])
_GREEDY = np.array([[12.0, -6.0, 0, 0, 0]])
_STREAM = np.array([[0.6, 0, 0]])

SCENARIOS = {
    "linear": Scenario("linear policy, 300 pairs", ("x0", "x1"), _choices(_LINEAR, num_episodes=15, length=20)),
    "linear-long": Scenario("linear policy, 1500 pairs", ("x0", "x1"), _choices(_LINEAR, num_episodes=75, length=20)),
    "separated": Scenario("nearly greedy agent, 48 pairs", ("x0", "x1"), _choices(_GREEDY, num_episodes=8, length=6)),
    "peeking": Scenario(
        "a test after each of 40 episodes", ("x0",), _choices(_STREAM, num_episodes=40, length=10), peeking=True
    ),
    "network": Scenario("network of 8 units, 500 pairs", ("x0", "x1"), _network(500)),
}


def measure(scenario: Scenario, test: Any, num_runs: int, significance: float = 0.05, seed: int = 0) -> Level:
    """Rule 2 in `num_runs` simulated data sets; run r depends on the seed and r alone."""
    errors, found = 0, 0
    for run in range(num_runs):
        space, data = scenario.draw(np.random.default_rng([seed, run]))
        if scenario.peeking:
            names = _peeked(space, data, test, significance)
        else:
            likelihood = likelihood_of(space, data, firth=test == "firth")
            options = TestOptions(test, significance=significance)
            decider = WilksTest(likelihood) if test == "firth" else support_test(likelihood, data, options)
            names = {space.groups[g].name for g in each_group_alone(decider, significance).supports[0]}
        errors += bool(names - set(scenario.controlled))
        found += len(names & set(scenario.controlled))
    return Level(num_runs, errors / num_runs, found / (num_runs * len(scenario.controlled)))


def _peeked(space: PolicySpace, data: Sample, test: str, significance: float) -> set[str]:
    """Everything that is rejected at any look, one look an episode."""
    found: set[str] = set()
    follower = SequentialMonitor(space, significance)
    num_rows = 0
    for episode in episodes_of(data):
        num_rows += len(episode.features)
        if test == "eprocess":
            found |= set(follower.tell(episode).controlled)
            continue
        try:
            first = Sample(data.features[:num_rows], data.actions[:num_rows], data.names, data.action_names)
            likelihood = likelihood_of(space, first)
            verdicts = each_group_alone(
                WilksTest(likelihood) if test == "wilks" else MixtureTest(likelihood), significance
            )
        except InputError:
            continue  # too early to fit anything
        found |= {space.groups[g].name for g in verdicts.supports[0]}
    return found


# -- Batches of data sets: tests in scenarios, degrees of freedom, rules.

RUNS = 1
"""The paper has no such table: `--runs` multiplies the simulated data sets below."""

SIGNIFICANCE = 0.05

TESTS = {
    "linear": {
        "wilks": (10, 100),
        "bootstrap": (8, 10),
        "universal": (4, 50),
        "eprocess": (2, 50),
        "mixture": (4, 100),
    },
    "linear-long": {"wilks": (2, 100), "universal": (2, 100), "eprocess": (3, 20), "mixture": (2, 100)},
    "separated": {
        "wilks": (4, 100),
        "firth": (2, 100),
        "bootstrap": (4, 10),
        "universal": (4, 50),
        "eprocess": (2, 50),
    },
    "peeking": {"wilks": (4, 20), "mixture": (4, 20), "eprocess": (4, 20)},
    "network": {"wilks": (6, 5), "universal": (4, 5), "bootstrap": (7, 2)},
}
"""How many cells of how many data sets, by scenario and test: a cell takes at most half a minute."""

QUICK_TESTS = {
    "linear": {"wilks": (1, 50)},
    "separated": {"wilks": (1, 20), "firth": (1, 20)},
    "peeking": {"wilks": (1, 4), "eprocess": (1, 4)},
}


class RuleOptions(NamedTuple):
    """A rule, in how many rounds that are united, and by whose correction."""

    words: str
    rule: Literal["simplified", "combinatorial"]
    num_rounds: int
    paper_rule: bool


RULES = {
    "simplified": RuleOptions("Rule 2, Holm", "simplified", 1, False),
    "simplified, paper": RuleOptions("Rule 2, the paper's Bonferroni", "simplified", 1, True),
    "combinatorial": RuleOptions("Rule 1, closed testing", "combinatorial", 1, False),
    "combinatorial, paper": RuleOptions("Rule 1, the paper's δ/2ᵈ", "combinatorial", 1, True),
    "simplified, united": RuleOptions("Rule 2, δ split over the rounds", "simplified", 10, False),
    "simplified, united, paper": RuleOptions("Rule 2, the paper's union", "simplified", 10, True),
    "combinatorial, united": RuleOptions("Rule 1, δ split over the rounds", "combinatorial", 10, False),
    "combinatorial, united, paper": RuleOptions("Rule 1, the paper's union", "combinatorial", 10, True),
}
"""One round, and ten: the first and N_conf = 3 for each of the three features that the agent does not control."""

BOLTZMANN_WEIGHTS = np.array([[0.2, 0.8, -0.4, 0.0], [-0.1, 0.3, 0.5, 0.0], [0.0, -0.6, 0.2, 0.0]])
BOLTZMANN_PAIRS = 400
GAUSSIAN_FEATURES, GAUSSIAN_PAIRS, SIZES = 8, 100, (1, 2, 4, 6, 7)


class CalibrationSetting(RunSetting, total=False):
    """A batch of simulated data sets: of a test in a scenario, of degrees of freedom, or of a rule."""

    kind: Literal["test", "degrees", "rule"]
    num_runs: int
    scenario: str
    test: str
    policy: Literal["boltzmann", "gaussian"]
    name: str  # of RULES, whose entries follow
    rule: Literal["simplified", "combinatorial"]
    num_rounds: int
    paper_rule: bool


class CalibrationResult(TypedDict, total=False):
    """In how many data sets anything false was found, and the share of the truth that was found."""

    errors: int
    power: float
    exact: int  # data sets of which exactly the truth was found
    rejections: dict[str, int]  # by hypothesis and degrees of freedom


def settings(size: RunSize) -> Iterable[CalibrationSetting]:
    """Data sets in batches with a seed each; a multiple of them with `runs`. The paper's settings change nothing here."""

    def batches(number: int, num_runs: int, **what: Any) -> Iterable[CalibrationSetting]:
        for seed in range(number * size.num_runs(RUNS, 1)):
            yield {**what, "num_runs": num_runs, "significance": SIGNIFICANCE, "seed": seed}  # type: ignore[typeddict-item]

    for scenario, tests in (QUICK_TESTS if size.quick else TESTS).items():
        for test, (number, num_runs) in tests.items():
            yield from batches(number, num_runs, kind="test", scenario=scenario, test=test)
    for policy in ("boltzmann", "gaussian"):
        yield from batches(*((1, 50) if size.quick else (5, 400)), kind="degrees", policy=policy)
    for name, how in RULES.items():
        costs = how.num_rounds * (4 if how.rule == "combinatorial" else 1)
        options = {"rule": how.rule, "num_rounds": how.num_rounds, "paper_rule": how.paper_rule}
        number, num_runs = (1, max(2, 40 // costs)) if size.quick else (4, max(10, 400 // costs))
        yield from batches(number, num_runs, kind="rule", name=name, **options)


@single_threaded_blas()
def run(setting: CalibrationSetting) -> CalibrationResult:
    """One batch: in how many of its data sets anything false was found, and how much of the truth."""
    num_runs, level, seed = setting["num_runs"], setting["significance"], setting["seed"]
    if setting["kind"] == "test":
        found = measure(SCENARIOS[setting["scenario"]], setting["test"], num_runs, level, seed)
        return {"errors": round(found.error * num_runs), "power": found.power}
    if setting["kind"] == "rule":
        return _rule(setting)
    one = _boltzmann_statistics if setting["policy"] == "boltzmann" else _gaussian_statistics
    counts: dict[str, int] = {}
    for r in range(num_runs):
        for name, statistic, degrees in one(np.random.default_rng([seed, r])):
            counts[name] = counts.get(name, 0) + bool(statistic > chdtri(degrees, level))
    return {"rejections": counts}


def _rule(setting: CalibrationSetting) -> CalibrationResult:
    """Fresh data sets of the linear scenario, united as the rounds of the configuring loop are."""
    scenario = SCENARIOS["linear"]
    truth, errors, found, exact = set(scenario.controlled), 0, 0, 0
    for r in range(setting["num_runs"]):
        rng = np.random.default_rng([setting["seed"], r])
        space = scenario.draw(rng)[0]
        schedule = Schedule.of(
            space,
            joint=True,
            significance=setting["significance"],
            rule=setting["rule"],
            max_rounds=setting["num_rounds"] - 1,
            paper_rule=setting["paper_rule"],
            test="batches",
        )
        united: tuple[str, ...] = ()
        supports: list[list[str]] | None = None
        for _ in range(setting["num_rounds"]):
            outcome = outcome_of_batch(space, schedule, scenario.draw(rng)[1], united, supports)
            united, supports = outcome.selected, outcome.supports or None
        selected = set(united)
        errors += bool(selected - truth)
        found += len(selected & truth)
        exact += selected == truth
    return {"errors": errors, "power": found / (setting["num_runs"] * len(truth)), "exact": exact}


def _boltzmann_statistics(rng: np.random.Generator) -> list[tuple[str, float, int]]:
    """λ of a feature of no weight among four actions, and of one of its three weights, with degrees of freedom to try."""
    names, actions = ("x0", "x1", "x2"), ("up", "down", "left", "right")
    features = rng.normal(size=(BOLTZMANN_PAIRS, 3))
    by_feature = SoftmaxLinear(names, actions)
    actions_taken = by_feature.sample(rng, BOLTZMANN_WEIGHTS.ravel(), features)
    data = Sample(features, actions_taken, names, actions)
    by_weight = SoftmaxLinear(names, actions, groups="parameter")
    feature = _statistic(by_feature, data, next(i for i, g in enumerate(by_feature.groups) if g.name == "x2"))
    weight = _statistic(by_weight, data, next(i for i, g in enumerate(by_weight.groups) if g.indices == (3,)))
    return [("feature, 3", feature, 3), ("feature, 4", feature, 4), ("weight, 1", weight, 1)]


def _statistic(space: SoftmaxLinear, data: Sample, group: int) -> float:
    likelihood = likelihood_of(space, data)
    smaller = likelihood.fit(space.full_support - {group})
    return 2 * (likelihood.full.log_likelihood - smaller.log_likelihood)


def _gaussian_statistics(rng: np.random.Generator) -> list[tuple[str, float, int]]:
    """λ_I of the sets of the first |I| features, of which the agent uses one; d − |I| and the paper's |I| to try."""
    d = GAUSSIAN_FEATURES
    names = tuple(f"x{j}" for j in range(d))
    space = GaussianLinear(names, covariance=1.0, intercept=False)
    features = rng.normal(size=(GAUSSIAN_PAIRS, d))
    actions = features[:, :1] * 0.5 + rng.normal(size=(GAUSSIAN_PAIRS, 1))
    likelihood = likelihood_of(space, Sample(features, actions, names, space.row_names))
    of_all = likelihood.statistics_of_all(list(range(d)))
    return [
        (f"{size}, {words}", float(of_all[2**size - 1]), degrees)
        for size in SIZES
        for words, degrees in (("d − |I|", d - size), ("|I|", size))
    ]


# -- Error rates with exact binomial intervals beside the nominal level.

TEST_NAMES = {
    "wilks": "Wilks' χ²",
    "firth": "Firth's penalty",
    "bootstrap": "bootstrap",
    "universal": "universal inference",
    "eprocess": "e-process",
    "mixture": "mixture e-value",
}
XLABEL = "share of data sets with a false rejection (dashed: nominal)"

Records = list[Record[CalibrationSetting, CalibrationResult]]


@dataclass(frozen=True)
class Measured:
    """A rate of errors, the share of the truth that was found, and what a data set cost."""

    rate: Rate
    power: float
    seconds: float  # a data set
    num_exact: int | None  # data sets of which exactly the truth was found, where that was counted

    @property
    def numbers(self) -> dict[str, object]:
        """As plain data."""
        exact = {} if self.num_exact is None else {"exact": self.num_exact}
        return {**_numbers(self.rate), "power": self.power, **exact}


def measured(records: Records, names: Mapping[Any, str], kind: str, *by: str) -> dict[Any, Measured]:
    """The errors of one kind over all batches that agree in some entries of their settings, in the order of the names."""
    batches = tidy(records, lambda r: [{**r.setting, **r.result, "seconds": r.duration}], kind=kind)
    found = groups(batches, *by)
    made = {}
    for key, name in names.items():
        if key not in found:
            continue
        batch = found[key]
        total = int(batch["num_runs"].sum())
        power = sum((batch["power"] * batch["num_runs"]).to_list()) / total
        rate = Rate(int(batch["errors"].sum()), total, name, batch["significance"][0])
        exact = int(batch["exact"].sum()) if "exact" in batch.columns else None
        made[key] = Measured(rate, power, sum(batch["seconds"].to_list()) / total, exact)
    return made


def measured_tests(records: Records) -> dict[tuple[str, str], Measured]:
    """Every test in every scenario, in the order of SCENARIOS and TEST_NAMES."""
    names = {(scenario, test): name for scenario in SCENARIOS for test, name in TEST_NAMES.items()}
    return measured(records, names, "test", "scenario", "test")


def analyse(records: Records) -> list[Panel]:
    """Tests, degrees of freedom, rules: a panel for each that has records."""
    made = {"test": tests_panel, "degrees": degrees_panel, "rule": rules_panel}
    kinds = {record.setting["kind"] for record in records}
    return [panel(records) for kind, panel in made.items() if kind in kinds]


def tests_panel(records: Records) -> Panel:
    """The error of each test, one data set a time."""
    found = measured_tests(records)
    blocks = [(how.words, [m.rate for (s, _), m in found.items() if s == name]) for name, how in SCENARIOS.items()]
    broken = [
        f"{m.rate.name} ({SCENARIOS[s].words}: {m.rate.value:.2f})" for (s, _), m in found.items() if _fails(m.rate)
    ]
    return Panel(
        "calibration-tests",
        "Which test keeps its level where",
        Claim("Does a test at δ = 0.05 err in at most 5 % of data sets, and what does it still find?"),
        f"Erring too often, by the 95 % interval: {', '.join(broken) or 'none'}; "
        f"the other {len(found) - len(broken)} keep the level.",
        draw_rates(blocks, "Type-I error of Rule 2 by each test", XLABEL),
        ("data", "test", "data sets", "type-I error (95 %)", "power", "verdict"),
        [
            (SCENARIOS[s].words, m.rate.name, str(m.rate.num_runs), m.rate.words, f"{m.power:.2f}", m.rate.verdict)
            for (s, _), m in found.items()
        ],
        {f"{s}, {test}": m.numbers for (s, test), m in found.items()},
    )


def degrees_panel(records: Records) -> Panel:
    """λ of one true hypothesis against χ² with right and wrong degrees of freedom; by size, the right ones first."""
    counts = tidy(
        records,
        lambda r: [{**r.setting, "key": key, "count": count} for key, count in r.result["rejections"].items()],
        kind="degrees",
    )
    found = groups(counts, "policy", "key")
    policies = list(dict.fromkeys(policy for policy, _ in found))
    rates = {}
    for policy, key in sorted(
        found, key=lambda k: (policies.index(k[0]), k[1].split(", ")[0], k[1].endswith(", |I|"), k[1])
    ):
        what, degrees = key.split(", ", 1)
        source = " (the authors' four rows)" if degrees == "4" else ""
        words = f"one {what}, χ² with {degrees}{source}"
        batch, name = (
            found[policy, key],
            f"|I| = {what}, {degrees} degrees of freedom" if policy == "gaussian" else words,
        )
        rates[policy, key] = Rate(
            int(batch["count"].sum()), int(batch["num_runs"].sum()), name, batch["significance"][0]
        )
    blocks = [
        ("four actions: one feature, one weight", [r for key, r in rates.items() if key[0] == "boltzmann"]),
        ("Gaussian policy, d = 8: Rule 1's λ of a set", [r for key, r in rates.items() if key[0] == "gaussian"]),
    ]
    wrong = "; ".join(f"{r.name}: {r.value:.3f}" for r in rates.values() if r.verdict != "as promised")
    return Panel(
        "calibration-degrees",
        "Degrees of freedom",
        Claim("Does λ have the degrees of freedom that it is tested with, of the zeroed scalars, d − |I|?"),
        f"Off the nominal 0.05 by the 95 % interval: {wrong or 'none'}.",
        draw_rates(blocks, "Type-I error of one test, by degrees of freedom", XLABEL),
        ("test", "data sets", "type-I error (95 %)", "verdict"),
        [(r.name, str(r.num_runs), r.words, r.verdict) for r in rates.values()],
        {r.name: _numbers(r) for r in rates.values()},
    )


def rules_panel(records: Records) -> Panel:
    """The rules on one round and on ten. The paper's union fails where its interval lies above δ."""
    found = measured(records, {name: how.words for name, how in RULES.items()}, "rule", "name")
    blocks = [
        ("one round", [m.rate for name, m in found.items() if "united" not in name]),
        ("ten rounds, united", [m.rate for name, m in found.items() if "united" in name]),
    ]
    failing = "; ".join(f"{m.rate.name} errs in {m.rate.value:.0%} of runs" for m in found.values() if _fails(m.rate))
    ours, paper = found.get("combinatorial"), found.get("combinatorial, paper")
    comparison = "Rule 1 was not run by both of its corrections."
    if ours is not None and paper is not None:  # what the paper's split of δ over all supports costs, in power
        comparison = (
            f"on one round closed testing finds {ours.power:.0%} of what is controlled, δ/2ᵈ {paper.power:.0%}."
        )
    return Panel(
        "calibration-rules",
        "Rules, and unions over rounds",
        Claim("The paper unites what is found under every configuration, each tested at the same level: is δ = 0.05 kept?"),
        f"{failing or 'No rule errs too often'}; {comparison}",
        draw_rates(blocks, "Any false selection, by rule", XLABEL),
        ("rule", "runs", "any false selection (95 %)", "power", "exactly the truth", "verdict"),
        [
            (
                m.rate.name, str(m.rate.num_runs), m.rate.words, f"{m.power:.2f}",
                "—" if m.num_exact is None else f"{m.num_exact / m.rate.num_runs:.2f}", m.rate.verdict,
            )
            for m in found.values()
        ],
        {name: m.numbers for name, m in found.items()},
    )  # fmt: skip


def _numbers(rate: Rate) -> dict[str, object]:
    return {"errors": rate.count, "data sets": rate.num_runs, "interval": list(rate.interval)}


def _fails(rate: Rate) -> bool:
    return rate.verdict == "too often"


EXPERIMENT = Experiment("calibration", "Error rates, promised and seen", settings, run, analyse)
