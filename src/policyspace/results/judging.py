"""From the parts of a claim, each judged by stated criteria, to one verdict on all of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from policyspace.report.estimates import Mean
from policyspace.results.panel import Verdict

FEWEST = 10
"""Runs below which nothing is judged: intervals of fewer are so wide, or so lucky, that a verdict would rest on nothing."""


@dataclass(frozen=True)
class Part:
    """One part of a claim: what was seen, and whether that shows it, contradicts it, or cannot tell (None)."""

    words: str
    holds: bool | None

    @property
    def sentence(self) -> str:
        """What was seen, and what that says."""
        said = {True: "shown", False: "contradicted", None: "cannot be told"}[self.holds]
        return f"{self.words} ({said})."


def verdict_of(parts: Iterable[Part], num_runs: int, fewest: int = FEWEST) -> Verdict:
    """Holds where every part is shown, does not where none is and one is contradicted, else partly.

    With too few runs, or where no part can be told, it is too early to say anything.
    """
    found = [part.holds for part in parts]
    if num_runs < fewest or all(holds is None for holds in found):
        return "too few runs to say"
    if all(found):
        return "holds"
    return "holds partly" if any(found) else "does not hold"


def why(parts: Iterable[Part]) -> str:
    """Part after part."""
    return " ".join(part.sentence for part in parts)


def above(difference: Mean, least: float = 0.0) -> bool | None:
    """Whether a mean is larger than so much: surely, surely not, or not to be told from its interval."""
    return True if difference.low > least else False if difference.high <= least else None


def within(difference: Mean, most: float) -> bool | None:
    """Whether a mean is surely between −most and most, surely not, or neither."""
    if -most <= difference.low and difference.high <= most:
        return True
    return False if difference.low > most or difference.high < -most else None


def all_of(parts: Iterable[bool | None]) -> bool | None:
    """True if all are; false if any is false; else it cannot be told."""
    found = list(parts)
    return False if False in found else None if None in found or not found else True
