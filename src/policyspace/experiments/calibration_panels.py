"""Records of simulated data sets → error rates with exact binomial intervals beside the nominal level."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from policyspace.experiments.panel import Panel
from policyspace.experiments.rates import Rate, draw_rates
from policyspace.experiments.records import Record

SCENARIOS = {
    "linear": "linear policy, 300 pairs",
    "linear-long": "linear policy, 1500 pairs",
    "separated": "nearly greedy agent, 48 pairs",
    "peeking": "a look after each of 40 episodes",
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
    "combinatorial, paper": "Rule 1, the paper's δ/2^d",
    "simplified, united": "Rule 2, δ split over the looks",
    "simplified, united, paper": "Rule 2, the paper's union",
    "combinatorial, united": "Rule 1, δ split over the looks",
    "combinatorial, united, paper": "Rule 1, the paper's union",
}
LABEL = "share of data sets with a false rejection (dashed: nominal)"


@dataclass(frozen=True)
class Measured:
    """A rate of errors, the share of the truth that was found, and what a data set cost."""

    rate: Rate
    power: float
    seconds: float  # a data set
    exact: Rate | None = None  # how often exactly the truth was found; it may always be


def analyse(records: list[Record]) -> list[Panel]:
    """Tests, degrees of freedom, rules: a panel for each that has records."""
    made = (tests_panel(records), degrees_panel(records), rules_panel(records))
    return [panel for panel in made if panel is not None]


def measured_tests(records: Iterable[Record]) -> dict[tuple[str, str], Measured]:
    """Every test in every scenario, in the order of SCENARIOS and TESTS, over all batches."""
    of = _batches(records, "test", lambda setting: (setting["scenario"], setting["test"]))
    order = [(scenario, test) for scenario in SCENARIOS for test in TESTS]
    return {key: _measured(TESTS[key[1]], of[key]) for key in order if key in of}


def tests_panel(records: list[Record]) -> Panel | None:
    """The error of each test, one data set a time."""
    found = measured_tests(records)
    if not found:
        return None
    by_scenario: dict[str, list[tuple[str, Measured]]] = {}
    for (scenario, test), measured in found.items():
        by_scenario.setdefault(scenario, []).append((test, measured))
    blocks = [(SCENARIOS[scenario], [m.rate for _, m in rows]) for scenario, rows in by_scenario.items()]
    broken = [f"{TESTS[test]} ({SCENARIOS[s]}: {m.rate.value:.2f})" for (s, test), m in found.items() if _fails(m.rate)]
    others = [m.rate for m in found.values() if not _fails(m.rate)]
    return Panel(
        "calibration-tests",
        "Which test keeps its level where",
        "Does a test at δ = 0.05 err in at most 5 % of data sets, and what does it still find?",
        "our own",
        f"Erring too often, by the 95 % interval: {', '.join(broken) or 'none'}; the other {len(others)} keep the level.",
        draw_rates(blocks, "Type-I error of Rule 2 by each test", LABEL),
        ("data", "test", "data sets", "type-I error (95 %)", "power", "verdict"),
        [
            (SCENARIOS[s], TESTS[test], str(m.rate.num_runs), m.rate.words, f"{m.power:.2f}", m.rate.verdict)
            for (s, test), m in found.items()
        ],
        {f"{s}, {test}": _numbers(m) for (s, test), m in found.items()},
    )


def degrees_panel(records: list[Record]) -> Panel | None:
    """λ of one true hypothesis against χ² with right and wrong degrees of freedom."""
    rates = _degrees(records)
    if not rates:
        return None
    blocks = [
        ("four actions: one feature, one weight", [r for key, r in rates.items() if key[0] == "boltzmann"]),
        ("Gaussian policy, d = 8: Rule 1's λ_I", [r for key, r in rates.items() if key[0] == "gaussian"]),
    ]
    wrong = [r for r in rates.values() if r.verdict != "as promised"]
    words = "; ".join(f"{r.name}: {r.value:.3f}" for r in wrong)
    return Panel(
        "calibration-degrees",
        "Degrees of freedom",
        "Does λ have the degrees of freedom that it is tested with, of the zeroed scalars, d − |I|?",
        "our own",
        f"Off the nominal 0.05 by the 95 % interval: {words or 'none'}.",
        draw_rates([(h, r) for h, r in blocks if r], "Type-I error of one test, by degrees of freedom", LABEL),
        ("test", "data sets", "type-I error (95 %)", "verdict"),
        [(r.name, str(r.num_runs), r.words, r.verdict) for r in rates.values()],
        {r.name: {"errors": r.count, "data sets": r.num_runs, "interval": list(r.interval)} for r in rates.values()},
    )


def rules_panel(records: list[Record]) -> Panel | None:
    """The rules on one look and on ten. The paper's union fails where its interval lies above δ."""
    of = _batches(records, "rule", lambda setting: setting["name"])
    found = {name: _measured(words, of[name]) for name, words in RULES.items() if name in of}
    if not found:
        return None
    blocks = [
        ("one look", [m.rate for name, m in found.items() if "united" not in name]),
        ("ten looks, united", [m.rate for name, m in found.items() if "united" in name]),
    ]
    failing = [m.rate for m in found.values() if _fails(m.rate)]
    words = "; ".join(f"{r.name} errs in {r.value:.0%} of runs" for r in failing)
    return Panel(
        "calibration-rules",
        "Rules, and unions over looks",
        "The paper unites what is found under every configuration, each tested at the same level: is δ = 0.05 kept?",
        "our own",
        f"{words or 'No rule errs too often'}; " + _comparison(found),
        draw_rates([(h, r) for h, r in blocks if r], "Any false selection, by rule", LABEL),
        ("rule", "runs", "any false selection (95 %)", "power", "exactly the truth", "verdict"),
        [
            (m.rate.name, str(m.rate.num_runs), m.rate.words, f"{m.power:.2f}", _share(m.exact), m.rate.verdict)
            for m in found.values()
        ],
        {name: _numbers(m) for name, m in found.items()},
    )


def _comparison(found: dict[str, Measured]) -> str:
    """What the paper's split of δ over all supports costs Rule 1, in power."""
    ours, paper = found.get("combinatorial"), found.get("combinatorial, paper")
    if ours is None or paper is None:
        return "Rule 1 was not run by both of its corrections."
    return f"on one look closed testing finds {ours.power:.0%} of what is controlled, δ/2^d {paper.power:.0%}."


def _degrees(records: list[Record]) -> dict[tuple[str, str], Rate]:
    rates: dict[tuple[str, str], Rate] = {}
    for policy, batch in _batches(records, "degrees", lambda setting: setting["policy"]).items():
        total = sum(r.setting["num_runs"] for r in batch)
        for key in _in_order(batch[0].result["rejections"]):
            count = sum(r.result["rejections"][key] for r in batch)
            rates[policy, key] = Rate(count, total, _words(policy, key), batch[0].setting["significance"])
    return rates


def _in_order(rejections: dict[str, int]) -> list[str]:
    """By size, the right degrees of freedom first: records come back with their keys sorted."""
    return sorted(rejections, key=lambda key: (key.split(", ")[0], key.endswith(", |I|"), key))


def _words(policy: str, key: str) -> str:
    what, degrees = key.split(", ", 1)
    if policy == "gaussian":
        return f"|I| = {what}, {degrees} degrees of freedom"
    source = " (the authors' four rows)" if degrees == "4" else ""
    return f"one {what}, χ² with {degrees}{source}"


def _batches(records: Iterable[Record], kind: str, key_of: Any) -> dict[Any, list[Record]]:
    found: dict[Any, list[Record]] = {}
    for record in records:
        if record.setting["kind"] == kind:
            found.setdefault(key_of(record.setting), []).append(record)
    return found


def _measured(name: str, batches: list[Record]) -> Measured:
    total = sum(r.setting["num_runs"] for r in batches)
    nominal = batches[0].setting["significance"]
    power = sum(r.result["power"] * r.setting["num_runs"] for r in batches) / total
    exact = None
    if "exact" in batches[0].result:
        exact = Rate(sum(r.result["exact"] for r in batches), total, name, 1.0)
    errors = Rate(sum(r.result["errors"] for r in batches), total, name, nominal)
    return Measured(errors, power, sum(r.duration for r in batches) / total, exact)


def _numbers(m: Measured) -> dict[str, Any]:
    exact = {} if m.exact is None else {"exact": m.exact.count}
    interval = list(m.rate.interval)
    return {"errors": m.rate.count, "data sets": m.rate.num_runs, "interval": interval, "power": m.power, **exact}


def _fails(rate: Rate) -> bool:
    return rate.verdict == "too often"


def _share(rate: Rate | None) -> str:
    return "—" if rate is None else f"{rate.value:.2f}"
