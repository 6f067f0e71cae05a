"""What the records of an experiment say: panels of the page of results.

A module NAME_panels of this package shows the experiment NAME: TITLE, and `analyse(records)`, which turns the records of
one procedure into panels. Panels of one name are the same claim, by the paper's own settings and by ours.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from policyspace.experiments.scale import Procedure
from policyspace.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Verdict = Literal["holds", "holds partly", "does not hold", "too few runs to say", "our own"]
"""Whether a claim of the paper holds in these results; "our own" where the paper makes none."""


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
    stated: bool = True  # whether the paper says how its claim was run, so that it can be run literally

    @property
    def table(self) -> Table:
        """The rows under their columns."""
        return Table(self.columns, self.rows)
