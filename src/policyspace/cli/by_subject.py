"""`policyspace identify --by COL`: each subject alone, and all together."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.cli.options import Source


def show_by(
    source: "Source", by: str, settings: dict[str, Any], of_one: dict[str, Any], json: str | None, plot: Path | None
) -> None:
    """The table on the screen, the picture and the JSON where asked for; options `of_one` answer are refused."""
    for option in (option for option, value in of_one.items() if value is not None):
        raise InputError(f"{option} is of one answer, found --by too: leave one out.")
    from policyspace.by_subject import identify_by
    from policyspace.cli import options, screen

    words = source.words | {"policy": source.spec, "lags": source.lags, "weights_are": source.weights_are} | settings
    words["offset"] = source.known
    own = {name: words.pop(name) for name in ("actions", "subjects", "significance", "correction")}
    found = identify_by(source.file, by, **own, told=words)
    if plot is not None:
        from policyspace.report.subjects_picture import plot_subjects

        plot_subjects(found, plot)
    if json is not None:
        options.write_json(found.to_json(), json)
    if json != "-":
        screen.show(found.sentence, found.table(), found.notes(), ("pairs",))
        screen.show_saved([plot, json])
