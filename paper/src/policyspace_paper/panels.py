"""Claims as data: what the paper says and by which criteria it is judged, the parts of a claim, and the panel of a page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from policyspace.display import TextTable
from policyspace_paper.estimates import Mean
from policyspace_paper.execution import Procedure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Verdict = Literal["holds", "holds partly", "does not hold", "too few runs to say", "our own"]
"""Whether a claim of the paper holds in these results; "our own" where the paper makes none."""

FEWEST = 10
"""Runs below which nothing is judged: intervals of fewer are so wide, or so lucky, that a verdict would rest on nothing."""


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how that is judged; a claim without criteria is a question of ours, which has no verdict."""

    statement: str
    criteria: str = ""  # what a verdict is a function of, in words
    fewest: int = FEWEST
    stated: bool = True  # whether the paper says how it was run, so that it can be run literally


@dataclass(frozen=True)
class ClaimPart:
    """One part of a claim: what was seen, and whether that shows it, contradicts it, or cannot tell (None)."""

    words: str
    holds: bool | None

    @property
    def sentence(self) -> str:
        """What was seen, and what that says."""
        said = {True: "shown", False: "contradicted", None: "cannot be told"}[self.holds]
        return f"{self.words} ({said})."


@dataclass(frozen=True)
class Panel:
    """One figure of the page: what is claimed, what was found, and whether it holds."""

    name: str  # of the figure's file, without ending
    title: str
    claim: Claim
    remark: str  # what the numbers say beside the parts of the claim, in a sentence or two
    figure: "Figure | None"
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: Mapping[str, object] = field(default_factory=dict)  # what the table shows, as plain data
    parts: Sequence[ClaimPart] = ()
    num_runs: int = 0  # that the verdict rests on
    procedure: Procedure = "ours"  # by whose settings its records were made
    in_how_many: str = ""  # of several readings of the paper the claim holds, where there are several

    @property
    def verdict(self) -> Verdict:
        """What the parts come to, by the criteria."""
        return verdict_of(self.parts, self.num_runs, self.claim.fewest) if self.claim.criteria else "our own"

    @property
    def why(self) -> str:
        """Part after part, and the remark."""
        return " ".join([*(part.sentence for part in self.parts if part.words), self.remark])

    @property
    def table(self) -> TextTable:
        """The rows under their columns."""
        return TextTable(self.columns, self.rows)


def verdict_of(parts: Iterable[ClaimPart], num_runs: int, fewest: int = FEWEST) -> Verdict:
    """Holds where every part is shown, does not where none is and one is contradicted, else partly.

    With too few runs, or where no part can be told, it is too early to say anything.
    """
    found = [part.holds for part in parts]
    if num_runs < fewest or all(holds is None for holds in found):
        return "too few runs to say"
    if all(found):
        return "holds"
    return "holds partly" if any(found) else "does not hold"


def judged(shown: bool, contradicted: bool) -> bool | None:
    """Whether a part of a claim is shown, contradicted, or cannot be told."""
    return True if shown else False if contradicted else None


def above(difference: Mean, least: float = 0.0) -> bool | None:
    """Whether a mean is larger than so much: surely, surely not, or not to be told from its interval."""
    return judged(difference.low > least, difference.high <= least)


def within(difference: Mean, most: float) -> bool | None:
    """Whether a mean is surely between −most and most, surely not, or neither."""
    inside = -most <= difference.low and difference.high <= most
    return judged(inside, difference.low > most or difference.high < -most)


def all_of(parts: Iterable[bool | None]) -> bool | None:
    """True if all are; false if any is false; else it cannot be told."""
    found = list(parts)
    return False if False in found else None if None in found or not found else True
