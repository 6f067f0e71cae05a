"""`policyspace identify --by COL`: each subject alone, and all together."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyspace.cli import screen
from policyspace.cli.saving import deliver

if TYPE_CHECKING:
    from policyspace.cli.options import Source


def show_by(source: "Source", by: str, settings: dict[str, Any], json: str | None, plot: Path | None) -> None:
    """The table on the screen, the picture and the JSON where asked for."""
    from policyspace.by_subject import identify_by

    words = source.said | settings
    own = {name: words.pop(name) for name in ("actions", "subjects", "significance", "correction")}
    found = identify_by(source.file, by, **own, told=words)
    if plot is not None:
        from policyspace.report.style import save
        from policyspace.report.subjects_picture import draw_subjects

        save(draw_subjects(found), plot)
    deliver(found.to_json, json, lambda: screen.show(found, ("pairs",)), plot)
