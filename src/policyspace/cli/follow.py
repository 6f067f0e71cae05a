"""`policyspace identify --follow`: a line after every episode."""

from typing import TYPE_CHECKING

from policyspace.cli.screen import new_console, say

if TYPE_CHECKING:
    from policyspace.cli.options import Source


def show_stream(
    source: "Source", significance: float, budget: int | None, wait: float | None, labels: list[str]
) -> None:
    """Print where each group stands until all is found, the budget is spent, or the file ends."""
    from policyspace.identification import bound, read_pairs
    from policyspace.inference.corrections import check_significance
    from policyspace.inference.follow import follow

    check_significance(significance)
    standing, console, errors = None, new_console(), new_console(stderr=True)
    stream = follow(
        source.file,
        lambda path: read_pairs(path, **source.said)[1],
        lambda data: bound(data, policy=source.spec)[0],
        significance,
        budget,
        wait,
        labels=labels,
        notice=lambda sentence: say(errors, f"Note: {sentence}", style="yellow"),
    )
    for standing in stream:
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
