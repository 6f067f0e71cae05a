"""Records of a finished experiment → its panels, kept as a small JSON, figures, and the page of results.

The page is made from the JSON and the figures alone, so experiments that were run by other commands stay on it.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polars.exceptions import PolarsError

from policyspace import __version__
from policyspace.data.whole_file import replacing
from policyspace.errors import InputError
from policyspace.experiments.catalogue import experiment_module
from policyspace.experiments.panel import Panel, Scale
from policyspace.experiments.records import Record
from policyspace.report.results_page import PageFiles, write_page
from policyspace.report.style import save

OURS = PageFiles("index.html", "results.json", "figures")
AS_PUBLISHED = PageFiles("as-published.html", "results-as-published.json", "figures/as-published")


@dataclass(frozen=True)
class Results:
    """The folder of results; by our settings or by the paper's, each with its own page."""

    folder: Path
    scale: Scale
    order: tuple[str, ...]  # of the experiments on the page

    @property
    def files(self) -> PageFiles:
        """The names of page, numbers and figures."""
        return AS_PUBLISHED if self.scale.as_published else OURS

    def add(self, name: str, records: list[Record]) -> list[Panel]:
        """Analyse an experiment all of whose cells have finished; save its figures and numbers; write the page anew."""
        module = experiment_module(name)
        try:
            panels: list[Panel] = module.analyse(records)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, PolarsError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
            raise InputError(
                f"the records of '{name}' are not as this version writes them ({reason}): make them anew with --fresh."
            ) from error
        figures = self.folder / self.files.figures
        figures.mkdir(parents=True, exist_ok=True)
        for panel in panels:
            if panel.figure is not None:
                save(panel.figure, figures / f"{panel.name}.svg")
        self._write(name, self._entry(name, records, panels))
        return panels

    def _entry(self, name: str, records: list[Record], panels: list[Panel]) -> dict[str, Any]:
        module = experiment_module(name)
        return {
            "title": module.TITLE,
            "command": self.command(name),
            "quick": self.scale.quick,
            "runs": self.scale.runs,
            "versions": sorted({record.version for record in records}),
            "num_cells": len(records),
            "seconds_of_computing": round(sum(record.duration for record in records), 1),
            "seconds_on_the_clock": _on_the_clock(records),
            "authors_hours": module.AUTHORS_HOURS,
            "panels": [_plain(vars(panel) | {"figure": panel.figure is not None}) for panel in panels],
        }

    def command(self, name: str) -> str:
        """What remakes the panels of an experiment."""
        options = [
            *(["--quick"] if self.scale.quick else []),
            *([f"--runs {self.scale.runs}"] if self.scale.runs is not None else []),
            *(["--as-published"] if self.scale.as_published else []),
        ]
        return " ".join(["policyspace reproduce", name, *options])

    def _write(self, name: str, entry: dict[str, Any]) -> None:
        """Replace one experiment in the JSON, then make both pages anew, for each links to the other."""
        path = self.folder / self.files.numbers
        found = {**_read(path), name: entry}
        known = [known for known in self.order if known in found]
        results = {"version": __version__, "experiments": {known: found[known] for known in known}}
        with replacing(path) as out:
            out.write((json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
        for files in (OURS, AS_PUBLISHED):
            if (self.folder / files.numbers).exists():
                other = AS_PUBLISHED if files is OURS else OURS
                write_page(self.folder, files, other, self.order)


def _read(path: Path) -> dict[str, Any]:
    """The experiments of an earlier command."""
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))["experiments"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: is not a file of results ({error}): delete it; the records remake it in seconds."
        ) from error


def _on_the_clock(records: list[Record]) -> float | None:
    """The time that passed while these cells ran, however many ran at once; unknown if it is of any of them."""
    known = [record.elapsed for record in records if record.elapsed is not None]
    return round(sum(known), 1) if len(known) == len(records) else None


def _plain(value: Any) -> Any:
    """Numbers as JSON has them: no arrays, and null for what is not a number."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inside) for inside in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
