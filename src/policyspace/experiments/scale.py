"""How much of an experiment to run, and by whose settings.

An experiment is a module of this package with RUNS (the paper's number of runs) and two pure functions: `cells(scale)`
says which runs to make, `run(setting)` makes one. What came out is shown by NAME_panels of `policyspace.results`.
"""

from dataclasses import dataclass
from typing import Literal

Procedure = Literal["literal", "ours"]
"""Whose settings a record was made by: the paper's own, wherever it states them, or our defaults."""


@dataclass(frozen=True)
class Scale:
    """How much of an experiment to run, and by whose settings."""

    runs: int | None = None  # None: as many as the paper
    quick: bool = False  # a miniature: every figure, few points and runs
    as_published: bool = False  # the paper's literal settings where ours differ

    def num_runs(self, paper: int, quick: int) -> int:
        """The runs of an experiment whose paper has so many and whose miniature has so few."""
        return self.runs if self.runs is not None else quick if self.quick else paper
