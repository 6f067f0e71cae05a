"""What an experiment is asked for and what it answers: a scale in, panels of the page of results out.

An experiment is a module of this package with TITLE, RUNS (the paper's number of runs) and three pure functions:
`cells(scale)` says which runs to make, `run(setting)` makes one, `analyse(records)` turns those of one procedure into
panels. Panels of one name are the same claim, by the paper's own settings and by ours.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from policyspace.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Verdict = Literal["holds", "holds partly", "does not hold", "too few runs to say", "our own"]
"""Whether a claim of the paper holds in these results; "our own" where the paper makes none."""

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


@dataclass(frozen=True)
class Panel:
    """One figure of the page: what is claimed, what was found, and whether it holds."""

    name: str  # of the figure's file, without ending
    title: str
    claim: str  # the paper's, in a sentence; or the question that a panel of ours answers
    verdict: Verdict
    why: str  # what in the numbers says so, in a sentence or two
    figure: "Figure | None"
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    numbers: dict[str, Any] = field(default_factory=dict)  # what the table shows, as plain data
    criteria: str = ""  # what a verdict is a function of, in words
    procedure: Procedure = "ours"  # by whose settings its records were made

    @property
    def table(self) -> Table:
        """The rows under their columns."""
        return Table(self.columns, self.rows)
