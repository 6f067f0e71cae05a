"""Where the results of commands are saved: refused before the work if that cannot be, written whole or not at all."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyspace.cli.running import typed
from policyspace.cli.screen import show_json, show_saved
from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.shown import Shown

JsonOut = Annotated[
    str | None,
    typer.Option("--json", help="Write the answer as JSON to a file, or to the screen ('-').", metavar="FILE|-"),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Save a page that holds all of it, for any browser: one file, no network.", metavar="FILE.html"
    ),
]


def check_targets(
    pictures: Iterable[Path | None] = (),
    json: str | None = None,
    inputs: Iterable[str | Path | None] = (),
    out: Path | None = None,
    report: Path | None = None,
) -> None:
    """Say before the work that its results could not be saved."""
    from policyspace.data import whole_file

    drawn = [picture for picture in pictures if picture is not None]
    if drawn:
        from policyspace.report.style import format_of

        for picture in drawn:
            format_of(picture)
    if report is not None:
        from policyspace.report.page import page_path

        page_path(report)
    whole_file.check_targets([*drawn, None if json == "-" else json, out, report], inputs)


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Say before the work that a file of this name could not be written."""
    if not path.name.lower().endswith(tuple(suffixes)):
        raise InputError(f"{path}: the name must end in one of {', '.join(suffixes)}: choose another name.")


def deliver(text: Callable[[], str], json: str | None, show: Callable[[], None], *saved: Path | None) -> None:
    """The answer as JSON where that is wanted, and on the screen with what was saved, unless the JSON is there."""
    if json is not None:
        write_json(text(), json)
    if json != "-":
        show()
        show_saved([*saved, json])


def write_json(text: str, target: str) -> None:
    """To the screen for '-', otherwise to a file that appears whole or not at all."""
    if target == "-":
        show_json(text)
        return
    from policyspace.data.whole_file import replacing
    from policyspace.printable import safe_json

    with replacing(target) as out:
        out.write((safe_json(text) + "\n").encode())


def write_report(result: "Shown", target: Path | None) -> None:
    """Save the page of an answer where it is wanted, with the command that makes it again."""
    if target is None:
        return
    said = copy(result)
    object.__setattr__(said, "made_by", typed())
    said.report(target)
