"""The page of a plan: the sentence, power against the number of pairs, the table, and how to make it again."""

from collections.abc import Iterator

from policyspace.planning import Plan
from policyspace.printable import escaped
from policyspace.report import page
from policyspace.report.power_picture import draw_power_for_page


def plan_page(plan: Plan) -> Iterator[str]:
    """The parts of the page."""
    episodes = "" if plan.num_episodes is None else f" in {plan.num_episodes:,} episodes"
    lead = f"Planned from a pilot of {plan.num_pairs:,} pairs of state and action{episodes}, for power {plan.power:g}."
    yield page.header(plan.sentence, escaped(lead), "plan")
    yield from page.banner(escaped(f"Warning: {warning}") for warning in plan.warnings)
    notes = [page.paragraph(note) for note in plan.notes() if not note.startswith("Warning:")]
    words = "Power against the number of pairs, one curve a group; the table has the numbers."
    yield page.section("Power", page.picture(draw_power_for_page(plan), "power", words))
    yield page.section(
        "What is needed", page.table(plan.table(), "Every group, its power now, and what it needs"), *notes
    )
    named = {"test": plan.test, "power": f"{plan.power:g}", "significance": f"{plan.significance:g}"}
    named |= {"confidence": f"{plan.confidence:g}", "parameters": str(plan.num_parameters)}
    named |= {} if plan.given_effect is None else {"effect": f"{plan.given_effect:g}"}
    yield from page.ending(named, plan.made_by, "The same pilot and settings give the same page.")
