"""Records of simulated data sets → how loose the bounds are, and sample sizes proven, planned and seen."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from policyspace.experiments.panel import Panel
from policyspace.experiments.rates import Rate
from policyspace.experiments.records import Record
from policyspace.experiments.theory_figures import draw_looseness, draw_powers, draw_sizes

QUANTITIES = {
    "score": "‖g(θ̂)‖",
    "parameters": "‖θ̂ − θ*‖",
    "expected": "ℓ(θ̂) − ℓ(θ*)",
    "empirical": "ℓ̂(θ*) − ℓ̂(θ̂)",
}
FAMILIES = {"gaussian": "Gaussian", "boltzmann": "Boltzmann"}


@dataclass(frozen=True)
class Looseness:
    """One bound that holds with probability 1 − δ: how often it was broken, and how far it lies above what it bounds."""

    family: str
    num_pairs: int
    quantity: str
    broken: Rate
    factor: float  # the bound divided by the 1 − δ quantile of what it bounds


@dataclass(frozen=True)
class Size:
    """Rule 2 at one number of pairs: P(Î ≠ I*) simulated, foretold by the non-central χ² and bounded by Theorem 4.2."""

    family: str
    num_pairs: int
    wrong: Rate
    foretold: float
    bound: float
    planned_pairs: float
    proven_pairs: float
    wrong_when_proven: float  # P(Î ≠ I*) at that many pairs, by the law of λ
    found: dict[str, tuple[Rate, float]]  # of each feature: how often it was found, and how often foretold


def analyse(records: list[Record]) -> list[Panel]:
    """Concentration, sample sizes, power: a panel for each that has records."""
    loose, sizes = looseness(records), sample_sizes(records)
    panels = [concentration_panel(loose)] if loose else []
    return [*panels, sizes_panel(sizes), power_panel(sizes)] if sizes else panels


def looseness(records: list[Record]) -> list[Looseness]:
    """Every bound of Theorem 4.1 and Lemma A.3, by family and number of pairs."""
    found = []
    for (family, n), batch in _grouped(records, "concentration", "num_pairs"):
        delta = batch[0].setting["significance"]
        for quantity in QUANTITIES:
            shares = np.concatenate([r.result["shares"][quantity] for r in batch])
            broken = Rate(int((shares > 1).sum()), len(shares), f"{FAMILIES[family]}, {n}", delta)
            found.append(Looseness(family, n, quantity, broken, float(1 / np.quantile(shares, 1 - delta))))
    return found


def sample_sizes(records: list[Record]) -> list[Size]:
    """Every simulated number of pairs, by family."""
    found = []
    for (family, _), batch in _grouped(records, "correctness", "factor"):
        first, total = batch[0].result, sum(r.setting["num_runs"] for r in batch)
        delta, n = batch[0].setting["significance"], first["num_pairs"]
        exact = sum(r.result["exact"] for r in batch)
        right = [p if name in first["controlled"] else 1 - p for name, p in first["predicted"].items()]
        hits = {
            name: (Rate(sum(r.result["found"][name] for r in batch), total, name, p), p)
            for name, p in first["predicted"].items()
        }
        found.append(
            Size(
                family, n, Rate(total - exact, total, f"{FAMILIES[family]}, {n}", delta),
                1 - float(np.prod(right)),  # as if the tests of different features were independent, which they nearly are
                first["bound"], first["planned_pairs"], first["proven_pairs"], first["wrong_when_proven"], hits,
            )
        )  # fmt: skip
    return found


def pairs_seen(sizes: list[Size], wanted: float) -> float | None:
    """The n at which the simulated P(Î ≠ I*) falls to the wanted one, by a line in log n between two sizes."""
    ordered = sorted(sizes, key=lambda s: s.num_pairs)
    for before, after in pairwise(ordered):
        high, low = before.wrong.value, after.wrong.value
        if high > wanted >= low:
            share = (high - wanted) / (high - low)
            return float(np.exp((1 - share) * np.log(before.num_pairs) + share * np.log(after.num_pairs)))
    return float(ordered[0].num_pairs) if ordered[0].wrong.value <= wanted else None


def concentration_panel(found: list[Looseness]) -> Panel:
    """Holds where no bound is broken more often than δ, by the 95 % interval; partly where some are; else it does not."""
    bad = [f for f in found if f.broken.verdict == "too often"]
    least, most = min(f.factor for f in found), max(f.factor for f in found)
    broken = sum(f.broken.count for f in found)
    return Panel(
        "theory-concentration",
        "How loose Theorem 4.1 is",
        "With probability 1 − δ the maximum-likelihood fit is as near to the truth as Theorem 4.1 says.",
        "holds" if not bad else "holds partly" if len(bad) < len(found) else "does not hold",
        f"At δ = {found[0].broken.nominal:g} the {len(found)} bounds were broken {broken} times in "
        f"{sum(f.broken.num_runs for f in found)}; they lie {_number(least)} to {_number(most)} times above the "
        "quantile that they bound.",
        draw_looseness(found, QUANTITIES, FAMILIES),
        ("policy", "pairs", "bounded", "broken (95 %)", "bound / quantile"),
        [
            (FAMILIES[f.family], str(f.num_pairs), QUANTITIES[f.quantity], f.broken.words, _number(f.factor))
            for f in found
        ],
        {f"{f.family}, {f.num_pairs}, {f.quantity}": {"broken": f.broken.count, "factor": f.factor} for f in found},
    )


def sizes_panel(sizes: list[Size]) -> Panel:
    """Holds where P(Î ≠ I*) is at most δ at the n that is proven, and no simulated one lies above its bound."""
    contradicted = [s for s in sizes if s.wrong.interval[0] > s.bound or s.wrong_when_proven > s.wrong.nominal]
    void, worst = sum(s.bound >= 1 for s in sizes), max(1e-300, *(s.wrong_when_proven for s in sizes))
    words, numbers = [], {}
    for family, title in FAMILIES.items():
        own = [s for s in sizes if s.family == family]
        if not own:
            continue
        seen, planned, proven = pairs_seen(own, own[0].wrong.nominal), own[0].planned_pairs, own[0].proven_pairs
        numbers[family] = {"seen": seen, "planned": planned, "proven": proven}
        enough = f"{_number(seen)} pairs do" if seen else "no number of pairs that was tried does"
        words.append(f"{title}: in simulation {enough}, planned are {_number(planned)}, proven {_number(proven)}")
    return Panel(
        "theory-sizes",
        "Sample sizes: proven, planned, seen",
        "From some number of pairs on Rule 2 finds exactly what is controlled with probability 1 − δ (Theorem 4.2).",
        "does not hold" if contradicted else "holds",
        f"{'; '.join(words)}. At the proven n the chance of an error is below {worst:.0e}; at {void} of the {len(sizes)} "
        "simulated sizes the bound is above 1 and says nothing.",
        draw_sizes(sizes, FAMILIES),
        ("policy", "pairs", "Î ≠ I* (95 %)", "foretold by χ²", "Theorem 4.2"),
        [
            (FAMILIES[s.family], str(s.num_pairs), s.wrong.words, f"{s.foretold:.3f}", f"≤ {_number(s.bound)}")
            for s in sizes
        ],
        {"pairs": numbers, "contradicted": len(contradicted)},
    )


def power_panel(sizes: list[Size]) -> Panel:
    """How many intervals of the simulated power hold the foretold one: 95 % would, were planning exact."""
    rows = [(s, rate, p) for s in sizes for rate, p in s.found.values()]
    inside = sum(rate.verdict == "as promised" for _, rate, _ in rows)
    off = max(abs(rate.value - p) for _, rate, p in rows)
    return Panel(
        "theory-power",
        "Power as planned",
        "Does the non-central χ² that planning uses foretell how often each feature is found?",
        "our own",
        f"{inside} of {len(rows)} intervals hold what was foretold; the largest difference is {off:.3f}.",
        draw_powers(sizes, FAMILIES),
        ("policy", "pairs", "feature", "found (95 %)", "foretold"),
        [(FAMILIES[s.family], str(s.num_pairs), rate.name, rate.words, f"{p:.3f}") for s, rate, p in rows],
        {"inside": inside, "of": len(rows), "largest difference": off},
    )


def _grouped(records: list[Record], kind: str, by: str) -> list[tuple[tuple[str, Any], list[Record]]]:
    """Batches of one kind by family and one more setting, in the order of FAMILIES and of that setting."""
    found: dict[tuple[str, Any], list[Record]] = {}
    for record in records:
        if record.setting["kind"] == kind:
            found.setdefault((record.setting["family"], record.setting[by]), []).append(record)
    order = list(FAMILIES)
    return sorted(found.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))


def _number(value: float) -> str:
    return f"{value:.0f}" if 10 <= value < 1e5 else f"{value:.2g}"
