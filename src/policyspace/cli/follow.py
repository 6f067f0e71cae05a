"""`policyspace identify --follow`: a line after every episode."""

from typing import TYPE_CHECKING

from policyspace.cli.screen import new_console, say

if TYPE_CHECKING:
    from policyspace.cli.options import Source


def show_stream(source: "Source", significance: float, budget: int | None, wait: float | None) -> None:
    """Print where each group stands until all is found, the budget is spent, or the file ends."""
    from policyspace.identification import bound, check_significance
    from policyspace.inference.follow import follow

    check_significance(significance)
    space, _ = bound(source.read(), policy=source.spec)
    # Each look at a network costs seconds: look again when there is a tenth more to see.
    growth = 1.0 if space.column_names else 1.1
    standing, console = None, new_console()
    for standing in follow(source.file, source.read, lambda _: space, significance, budget, wait, look_growth=growth):
        say(console, str(standing))
    if standing is None:
        say(console, "No episode is complete yet.")
        return
    found = ", ".join(standing.controlled) or "no group yet"
    why = "every group is found" if standing.decided else "the budget is spent" if budget else "the file has ended"
    say(console, "")
    say(
        console,
        f"Controlled: {found} ({why} after {standing.num_episodes} episodes; chance of any false 'controlled' "
        f"≤ {significance:g}, whatever the looking).",
    )
