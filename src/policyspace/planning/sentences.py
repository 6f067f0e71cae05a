"""The words for a plan: a sentence, a table, and what must be read with it."""

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policyspace.planning.planner import Estimate, Plan

COLUMNS = ("group", "λ", "effect", "power now", "pairs", "episodes", "shows from", "|θ| below")
PROMISES = {
    "wilks": "λ at δ = {significance:g} over {tests} tests (Bonferroni; Holm finds at least as much)",
    "universal": "universal inference at δ = {significance:g} over all supports at once",
    "eprocess": "the anytime-valid e-process at δ = {significance:g}, one look at the end",
}


def plan_sentence(plan: "Plan") -> str:
    """How far the data are, and how many more are needed for the groups that show something."""
    seen = [g for g in plan.groups if g.pairs.value < math.inf]
    if not seen:
        return "The pilot shows no effect that more pairs could confirm; read what would have shown instead."
    done = [g for g in seen if g.pairs.value <= plan.num_pairs]
    open_ = [g for g in seen if g.pairs.value > plan.num_pairs]
    parts = []
    if done:
        parts.append(
            f"{_listed([g.group for g in done])}: {_count(plan.num_pairs)} pairs are enough for power {plan.power:g}"
        )
    if open_:
        most = max(open_, key=lambda g: g.pairs.value)
        episodes = "" if most.episodes is None else f" (about {_count(most.episodes.value)} episodes)"
        parts.append(f"{_listed([g.group for g in open_])}: {_count(most.pairs.value)} pairs{episodes} are needed")
    rest = [g.group for g in plan.groups if g.pairs.value == math.inf]
    if rest:
        parts.append(f"{_listed(rest)}: no effect to plan for")
    return "; ".join(parts) + "."


def plan_rows(plan: "Plan") -> list[tuple[str, ...]]:
    """One tuple a group, in the order of COLUMNS; ranges are what the pilot leaves open."""
    return [
        (
            g.group,
            f"{g.statistic:.2f}",
            _size(g.effect, "diverges"),
            _power_range(g.power_now),
            _range(g.pairs),
            "" if g.episodes is None else _range(g.episodes),
            _size(g.detectable_effect, "—"),
            _size(g.effect_bound, "no bound"),
        )
        for g in plan.groups
    ]


def plan_notes(plan: "Plan") -> list[str]:
    """What the numbers mean."""
    episodes = "" if plan.num_episodes is None else f" in {_count(plan.num_episodes)} episodes"
    promise = PROMISES[plan.test].format(significance=plan.significance, tests=len(plan.groups))
    source = (
        f"effects as the pilot shows them, in brackets what it leaves open with confidence {plan.confidence:g}"
        if plan.given_effect is None
        else f"for an effect ‖θ‖ = {plan.given_effect:g} in the direction that shows least"
    )
    return [
        f"{_count(plan.num_pairs)} pairs{episodes}, {plan.num_parameters} parameters; {promise}.",
        f"Pairs and episodes are totals for power {plan.power:g}; {source}.",
        f"'shows from': the smallest ‖θ‖ that this data would show with power {plan.power:g}; '|θ| below': every weight of "
        f"the group is smaller, with confidence {1 - plan.significance:g} each.",
        *(f"Warning: {warning}" for warning in plan.warnings),
    ]


def as_number(value: Any) -> Any:
    """Plain data for JSON, in which infinities and NaN are null."""
    if isinstance(value, dict):
        return {name: as_number(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [as_number(inside) for inside in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str | None) else float(value)


def _count(number: float) -> str:
    if number == math.inf:
        return "∞"
    return f"{number:,.0f}".replace(",", " ") if number < 1e7 else f"{number:.2g}"


def _range(estimate: "Estimate") -> str:
    if estimate.low == estimate.high:
        return _count(estimate.value)
    return f"{_count(estimate.value)} ({_count(estimate.low)}–{_count(estimate.high)})"


def _power_range(estimate: "Estimate") -> str:
    if estimate.low == estimate.high:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} ({estimate.low:.2f}–{estimate.high:.2f})"


def _size(value: float, otherwise: str) -> str:
    return f"{value:.3g}" if value < math.inf else otherwise


def _listed(names: list[str]) -> str:
    if len(names) > 12:
        return ", ".join(names[:10]) + f" and {len(names) - 10} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
