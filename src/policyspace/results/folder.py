"""Records of a finished experiment → its panels, kept as a small JSON, figures, and the page of results.

The page is made from the JSON and the figures alone, so experiments that were run by other commands stay on it.
"""

import json
import math
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from polars.exceptions import PolarsError

from policyspace import __version__
from policyspace.data.whole_file import replacing
from policyspace.errors import InputError
from policyspace.experiments.catalogue import EXPERIMENTS
from policyspace.experiments.records import Record
from policyspace.experiments.scale import Procedure, Scale
from policyspace.report.results_page import PageFiles, write_page
from policyspace.report.style import save
from policyspace.results.authors_time import AUTHORS_TIMES
from policyspace.results.panel import Panel

FILES = PageFiles("index.html", "results.json", "figures")


@dataclass(frozen=True)
class Results:
    """The folder of results: one page, on which what the paper's own settings give stands beside what ours give."""

    folder: Path
    scale: Scale
    order: tuple[str, ...]  # of the experiments on the page

    @property
    def files(self) -> PageFiles:
        """The names of page, numbers and figures."""
        return FILES

    def add(self, name: str, records: list[Record]) -> list[Panel]:
        """Analyse an experiment all of whose cells have finished; save its figures and numbers; write the page anew.

        A column of the page of which there are no records here stays as an earlier command left it.
        """
        module, columns, panels = results_module(name), {}, []
        for procedure, own in self._by_procedure(records).items():
            found = [replace(panel, procedure=procedure) for panel in _analysed(name, module, own)]
            figures = self.folder / FILES.figures_of(procedure)
            figures.mkdir(parents=True, exist_ok=True)
            for panel in found:
                if panel.figure is not None:
                    save(panel.figure, figures / f"{panel.name}.svg")
            columns[procedure] = self._column(name, own, found)
            panels += found
        time = AUTHORS_TIMES.get(name)
        entry = {
            "title": module.TITLE,
            "authors_hours": time and time.hours,
            "authors_measured": time and time.measured,
            "columns": columns,
        }
        self._write(name, entry)
        return panels

    def _by_procedure(self, records: list[Record]) -> dict[Procedure, list[Record]]:
        """Records by the settings that made them: those which do not say are ours."""
        default: Procedure = "literal" if self.scale.as_published else "ours"
        found: dict[Procedure, list[Record]] = {"literal": [], "ours": []}
        for record in records:
            found[record.setting.get("procedure", default)].append(record)
        return {procedure: own for procedure, own in found.items() if own}

    def _column(self, name: str, records: list[Record], panels: list[Panel]) -> dict[str, Any]:
        return {
            "command": self.command(name),
            "quick": self.scale.quick,
            "runs": self.scale.runs,
            "versions": sorted({record.version for record in records}),
            "num_cells": len(records),
            "seconds_of_computing": round(sum(record.duration for record in records), 1),
            "seconds_on_the_clock": _on_the_clock(records),
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
        """Replace the columns of one experiment in the JSON, then make the page anew."""
        path = self.folder / FILES.numbers
        found = _read(path)
        entry["columns"] = found.get(name, {}).get("columns", {}) | entry["columns"]
        found[name] = entry
        known = [known for known in self.order if known in found]
        results = {"version": __version__, "experiments": {known: found[known] for known in known}}
        with replacing(path) as out:
            out.write((json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
        write_page(self.folder, FILES, self.order)


def results_module(name: str) -> ModuleType:
    """The module that shows what came out of an experiment."""
    return import_module(f"policyspace.results.{EXPERIMENTS[name]}_panels")


def _analysed(name: str, module: ModuleType, records: list[Record]) -> list[Panel]:
    try:
        panels: list[Panel] = module.analyse(records)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, PolarsError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise InputError(
            f"the records of '{name}' are not as this version writes them ({reason}): make them anew with --fresh."
        ) from error
    return panels


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
