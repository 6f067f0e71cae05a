"""Records of simulated data sets → error rates with exact binomial intervals beside the nominal level."""

from dataclasses import dataclass
from typing import Any

from policyspace.experiments.records import Record
from policyspace.report.estimates import Rate
from policyspace.report.plots import draw_rates
from policyspace.results.frames import groups, tidy
from policyspace.results.panel import Panel

TITLE = "Error rates, promised and seen"
SCENARIOS = {
    "linear": "linear policy, 300 pairs",
    "linear-long": "linear policy, 1500 pairs",
    "separated": "nearly greedy agent, 48 pairs",
    "peeking": "a test after each of 40 episodes",
    "network": "network of 8 units, 500 pairs",
}
TESTS = {
    "wilks": "Wilks' χ²",
    "firth": "Firth's penalty",
    "bootstrap": "bootstrap",
    "universal": "universal inference",
    "eprocess": "e-process",
    "mixture": "mixture e-value",
}
RULES = {
    "simplified": "Rule 2, Holm",
    "simplified, paper": "Rule 2, the paper's Bonferroni",
    "combinatorial": "Rule 1, closed testing",
    "combinatorial, paper": "Rule 1, the paper's δ/2ᵈ",
    "simplified, united": "Rule 2, δ split over the rounds",
    "simplified, united, paper": "Rule 2, the paper's union",
    "combinatorial, united": "Rule 1, δ split over the rounds",
    "combinatorial, united, paper": "Rule 1, the paper's union",
}
LABEL = "share of data sets with a false rejection (dashed: nominal)"


@dataclass(frozen=True)
class Measured:
    """A rate of errors, the share of the truth that was found, and what a data set cost."""

    rate: Rate
    power: float
    seconds: float  # a data set
    num_exact: int | None  # data sets of which exactly the truth was found, where that was counted

    @property
    def exact(self) -> str:
        """The share of data sets of which exactly the truth was found."""
        return "—" if self.num_exact is None else f"{self.num_exact / self.rate.num_runs:.2f}"

    @property
    def numbers(self) -> dict[str, Any]:
        """As plain data."""
        exact = {} if self.num_exact is None else {"exact": self.num_exact}
        return _numbers(self.rate) | {"power": self.power} | exact


def measured(records: list[Record], names: dict[Any, str], kind: str, *by: str) -> dict[Any, Measured]:
    """The errors of one kind over all batches that agree in some entries of their settings, in the order of the names."""
    batches = tidy(records, lambda r: [r.setting | r.result | {"seconds": r.duration}], kind=kind)
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


def measured_tests(records: list[Record]) -> dict[tuple[str, str], Measured]:
    """Every test in every scenario, in the order of SCENARIOS and TESTS."""
    names = {(scenario, test): name for scenario in SCENARIOS for test, name in TESTS.items()}
    return measured(records, names, "test", "scenario", "test")


def analyse(records: list[Record]) -> list[Panel]:
    """Tests, degrees of freedom, rules: a panel for each that has records."""
    made = {"test": tests_panel, "degrees": degrees_panel, "rule": rules_panel}
    kinds = {record.setting["kind"] for record in records}
    return [panel(records) for kind, panel in made.items() if kind in kinds]


def tests_panel(records: list[Record]) -> Panel:
    """The error of each test, one data set a time."""
    found = measured_tests(records)
    blocks = [(words, [m.rate for (s, _), m in found.items() if s == name]) for name, words in SCENARIOS.items()]
    broken = [f"{m.rate.name} ({SCENARIOS[s]}: {m.rate.value:.2f})" for (s, _), m in found.items() if _fails(m.rate)]
    return Panel(
        "calibration-tests",
        "Which test keeps its level where",
        "Does a test at δ = 0.05 err in at most 5 % of data sets, and what does it still find?",
        "our own",
        f"Erring too often, by the 95 % interval: {', '.join(broken) or 'none'}; "
        f"the other {len(found) - len(broken)} keep the level.",
        draw_rates(blocks, "Type-I error of Rule 2 by each test", LABEL),
        ("data", "test", "data sets", "type-I error (95 %)", "power", "verdict"),
        [
            (SCENARIOS[s], m.rate.name, str(m.rate.num_runs), m.rate.words, f"{m.power:.2f}", m.rate.verdict)
            for (s, _), m in found.items()
        ],
        {f"{s}, {test}": m.numbers for (s, test), m in found.items()},
    )


def degrees_panel(records: list[Record]) -> Panel:
    """λ of one true hypothesis against χ² with right and wrong degrees of freedom."""
    rates = _degrees(records)
    blocks = [
        ("four actions: one feature, one weight", [r for key, r in rates.items() if key[0] == "boltzmann"]),
        ("Gaussian policy, d = 8: Rule 1's λ of a set", [r for key, r in rates.items() if key[0] == "gaussian"]),
    ]
    wrong = "; ".join(f"{r.name}: {r.value:.3f}" for r in rates.values() if r.verdict != "as promised")
    return Panel(
        "calibration-degrees",
        "Degrees of freedom",
        "Does λ have the degrees of freedom that it is tested with, of the zeroed scalars, d − |I|?",
        "our own",
        f"Off the nominal 0.05 by the 95 % interval: {wrong or 'none'}.",
        draw_rates(blocks, "Type-I error of one test, by degrees of freedom", LABEL),
        ("test", "data sets", "type-I error (95 %)", "verdict"),
        [(r.name, str(r.num_runs), r.words, r.verdict) for r in rates.values()],
        {r.name: _numbers(r) for r in rates.values()},
    )


def rules_panel(records: list[Record]) -> Panel:
    """The rules on one round and on ten. The paper's union fails where its interval lies above δ."""
    found = measured(records, RULES, "rule", "name")
    blocks = [
        ("one round", [m.rate for name, m in found.items() if "united" not in name]),
        ("ten rounds, united", [m.rate for name, m in found.items() if "united" in name]),
    ]
    failing = "; ".join(f"{m.rate.name} errs in {m.rate.value:.0%} of runs" for m in found.values() if _fails(m.rate))
    return Panel(
        "calibration-rules",
        "Rules, and unions over rounds",
        "The paper unites what is found under every configuration, each tested at the same level: is δ = 0.05 kept?",
        "our own",
        f"{failing or 'No rule errs too often'}; " + _comparison(found),
        draw_rates(blocks, "Any false selection, by rule", LABEL),
        ("rule", "runs", "any false selection (95 %)", "power", "exactly the truth", "verdict"),
        [
            (m.rate.name, str(m.rate.num_runs), m.rate.words, f"{m.power:.2f}", m.exact, m.rate.verdict)
            for m in found.values()
        ],
        {name: m.numbers for name, m in found.items()},
    )


def _comparison(found: dict[str, Measured]) -> str:
    """What the paper's split of δ over all supports costs Rule 1, in power."""
    ours, paper = found.get("combinatorial"), found.get("combinatorial, paper")
    if ours is None or paper is None:
        return "Rule 1 was not run by both of its corrections."
    return f"on one round closed testing finds {ours.power:.0%} of what is controlled, δ/2ᵈ {paper.power:.0%}."


def _degrees(records: list[Record]) -> dict[tuple[str, str], Rate]:
    """By policy, hypothesis and degrees of freedom; by size, the right degrees of freedom first."""
    counts = tidy(
        records,
        lambda r: [r.setting | {"key": key, "count": count} for key, count in r.result["rejections"].items()],
        kind="degrees",
    )
    rates = {
        (policy, key): Rate(
            int(batch["count"].sum()), int(batch["num_runs"].sum()), _hypothesis(policy, key), batch["significance"][0]
        )
        for (policy, key), batch in groups(counts, "policy", "key").items()
    }
    policies = list(dict.fromkeys(policy for policy, _ in rates))
    in_order = sorted(rates, key=lambda k: (policies.index(k[0]), k[1].split(", ")[0], k[1].endswith(", |I|"), k[1]))
    return {key: rates[key] for key in in_order}


def _hypothesis(policy: str, key: str) -> str:
    what, degrees = key.split(", ", 1)
    if policy == "gaussian":
        return f"|I| = {what}, {degrees} degrees of freedom"
    source = " (the authors' four rows)" if degrees == "4" else ""
    return f"one {what}, χ² with {degrees}{source}"


def _numbers(rate: Rate) -> dict[str, Any]:
    return {"errors": rate.count, "data sets": rate.num_runs, "interval": list(rate.interval)}


def _fails(rate: Rate) -> bool:
    return rate.verdict == "too often"
