"""What `configure` and `study` share: the options of their rounds, and how a round is shown."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyspace.cli.bundled import option
from policyspace.cli.options import Significance, Text
from policyspace.cli.screen import say
from policyspace.printable import number_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from policyspace.configuration.round import Round
    from policyspace.configuration.schedule import Schedule

MOST_SUPPORTS = 5
"""More would not be read; `--json` has them all."""


@dataclass(frozen=True)
class RoundOptions:
    """How many rounds, of how many episodes, and how they are tested: named as in a schedule."""

    significance: Significance = 0.05
    rule: str = option("simplified", "One test a unit, or all supports.", "simplified|combinatorial")
    attempts: int | None = option(
        None,
        "How often to configure; for every unit, with the paper's design.",
        min=0,
        show_default="3, or as often as the budget pays for",
    )
    episodes: int | None = option(
        None, "Episodes of a round.", "N", min=1, show_default="100, or a share of the budget"
    )
    budget: int | None = option(None, "Episodes of all rounds together, shared out.", "N", min=1)
    paper_rule: bool = option(False, "The paper's union, every round at full δ: no promise for all rounds.")
    test: str = option(
        "auto",
        "combined: p-values of all rounds together. batches: each round alone, at a share of δ. eprocess: after "
        "every episode; auto takes it for networks.",
        "auto|combined|batches|eprocess",
    )


@dataclass(frozen=True)
class DesignOptions:
    """How configurations are chosen, and from which chance."""

    design: Text = option(
        None,
        "How the next configuration is chosen: for all undecided units at once, as the paper for one at a time, "
        "simulated, filling the space, uniform, or not at all; in an environment one of the last four, by default "
        "simulated, elsewhere d-optimal.",
        "d-optimal|noncentrality|paper|simulated|space-filling|uniform|none",
    )
    seed: int = option(0, "Same seed, same rounds.", "S", min=0)


def show_plan(console: "Console", world: Any, space: Any, schedule: "Schedule", initial: "Mapping[str, Any]") -> None:
    """How the budget of a schedule is shared out, why, and where the first round is."""
    from policyspace.configuration.plan import plan_rounds

    for sentence in plan_rounds(world, space, schedule.budget or 0, schedule.sequential, initial).sentences:
        say(console, sentence)


def level_in_words(schedule: "Schedule", number: int) -> str:
    """At which level a round, counted from 0, is tested."""
    level = schedule.level_of(number)
    if schedule.sequential:
        return f"followed after every episode until E ≥ {1 / level:.4g}"
    if schedule.combined and number:
        return f"tested with the rounds before at δ = {level:.3g}"
    return f"tested at δ = {level:.3g}"


def show_round(
    console: "Console",
    world: str,
    schedule: "Schedule",
    result: "Round",
    truth: "Sequence[str] | None",
    initial: "Mapping[str, Any]",
) -> None:
    """Where, for how long, what was found, and what is open; where the truth is known, whether that is right."""
    from policyspace.report.configuration_words import configuration_in_words

    where = _first_place(world, result, initial) if result.design is None else result.how
    most = f" of at most {schedule.num_rounds}" if result.number < schedule.num_rounds else ""
    say(console, "")
    say(console, f"Round {result.number + 1}{most}: {where}", style="bold cyan")
    say(console, f"  {configuration_in_words(world, result.configuration)}")
    units = number_of(_num_tested(schedule, result), "unit")
    tested = f"{units} {level_in_words(schedule, result.number)}" if result.was_tested else "not tested"
    say(console, f"  {number_of(result.num_episodes, 'episode')}; {tested}")
    found = _evidence(result, truth) if schedule.sequential else [_marked(n, truth) for n in result.newly_selected]
    if found:
        say(console, f"  newly selected: {', '.join(found)}", style="green")
    else:
        say(console, "  nothing newly selected", style="dim")
    if result.undecided:
        evidence = {row["group"]: _so_far(row) for row in result.tests}
        say(console, f"  open: {', '.join(name + evidence.get(name, '') for name in result.undecided)}", style="dim")
    if schedule.rule == "combinatorial" and result.supports:
        supports = [[name for name in support if name in schedule.units] for support in result.supports]
        say(console, f"  supports that explain all rounds so far: {_listed(supports)}")
    for warning in result.warnings:
        say(console, f"  Warning: {warning}", style="yellow")


def _first_place(world: str, result: "Round", initial: "Mapping[str, Any]") -> str:
    """Where a round was that nothing was designed for: the first at ω₀, others wherever somebody went."""
    from policyspace.configuration.round import same_configuration
    from policyspace.report.configuration_words import is_flat

    if result.number or not same_configuration(result.configuration, initial):
        return "where the data were collected"
    return "at the flat configuration" if is_flat(world, initial) else "where it is"


def _num_tested(schedule: "Schedule", result: "Round") -> int:
    """How many units a round has tested; the combinatorial rule and the paper's test those selected before, too."""
    if schedule.rule == "combinatorial" or schedule.paper_rule:
        return sum(row["group"] in schedule.units for row in result.tests)
    return len(result.undecided) + len(result.newly_selected)


def _listed(supports: list[list[str]]) -> str:
    """Supports one after the other, as many as can be read."""
    shown = "; ".join(", ".join(support) or "nothing" for support in supports[:MOST_SUPPORTS])
    return shown if len(supports) <= MOST_SUPPORTS else f"{shown}; and {len(supports) - MOST_SUPPORTS} more"


def _so_far(row: dict[str, Any]) -> str:
    """The evidence for an open unit, where rounds add up and there is some."""
    if "e_value" in row:
        return f" (E = {row['e_value']:.2g})"
    p = row.get("adjusted_p_value", 1.0) if "combined_p_value" in row else 1.0
    return f" (p = {p:.2g})" if p < 1 else ""


def _evidence(result: "Round", truth: "Sequence[str] | None") -> list[str]:
    """When units were found, in the order in which they were."""
    rows: list[dict[str, Any]] = [row for row in result.tests if row["group"] in result.newly_selected]
    rows.sort(key=lambda row: row["decided_at"])
    return [f"{_marked(row['group'], truth)} after episode {row['decided_at']}" for row in rows]


def _marked(name: str, truth: "Sequence[str] | None") -> str:
    """The truth beside a verdict."""
    return name if truth is None else f"{name} {'✓' if name in truth else '✗'}"
