"""`policyspace identify --by COL`: each subject alone, and all together."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from policyspace.cli.options import Source


def show_by(source: "Source", by: str, settings: dict[str, Any], json: str | None, plot: Path | None) -> None:
    """The table on the screen, the picture and the JSON where asked for."""
    from policyspace.by_subject import identify_by
    from policyspace.cli import options, screen

    words = source.words | {"policy": source.spec, "lags": source.lags, "weights_are": source.weights_are} | settings
    own = {name: words.pop(name) for name in ("actions", "subjects", "significance", "correction")}
    found = identify_by(source.file, by, **own, told=words)
    if plot is not None:
        from policyspace.report.subjects_picture import plot_subjects

        plot_subjects(found, plot)
    if json is not None:
        options.write_json(found.to_json(), json)
    if json != "-":
        screen.show(found.sentence, found.table(), found.notes(), ("pairs",))
        for path in [plot, json]:
            if path is not None:
                typer.echo(f"Saved {path}")
