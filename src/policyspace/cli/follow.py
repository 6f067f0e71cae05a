"""`policyspace identify --follow`: a line after every episode."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from policyspace.data.demonstrations import Demonstrations


def show_stream(
    file: Path,
    load: Callable[[], "Demonstrations"],
    settings: dict[str, Any],
    significance: float,
    budget: int | None,
    wait: float | None,
) -> None:
    """Print where each group stands until all is found, the budget is spent, or the file ends."""
    from policyspace.identification import check_significance, space_and_demonstrations
    from policyspace.inference.follow import follow
    from policyspace.policies.network import Network

    check_significance(significance)
    space, _ = space_and_demonstrations(load(), **settings)
    # Each look at a network costs seconds: look again when there is a tenth more to see.
    growth = 1.1 if isinstance(space, Network) else 1.0
    standing = None
    for standing in follow(file, load, lambda _: space, significance, budget, wait, look_growth=growth):
        typer.echo(str(standing))
    if standing is None:
        typer.echo("No episode is complete yet.")
        return
    found = ", ".join(standing.controlled) or "no group yet"
    why = "every group is found" if standing.decided else "the budget is spent" if budget else "the file has ended"
    typer.echo(
        f"\nControlled: {found} ({why} after {standing.num_episodes} episodes; chance of any false 'controlled' "
        f"≤ {significance:g}, whatever the looking)."
    )
