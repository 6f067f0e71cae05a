"""Audit: what `identify` finds in an agent's log beside what asking the agent itself finds."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

from policyspace.answer import Identification
from policyspace.asking.answer import AskedAnswer, AskedGroup
from policyspace.display import Answer, TextTable, listed_names, remembering_its_call
from policyspace.errors import InputError, number_of
from policyspace.identification import identify

Agreement = Literal["found", "missed", "false", "no evidence, rightly", "not shown", "no evidence", "not asked"]


@final
@dataclass(frozen=True)
class AuditedGroup:
    """One input as it was asked about and as it was watched."""

    asked: AskedGroup
    used: bool
    """By the log."""
    p_value: float
    """Adjusted for the number of inputs."""

    @property
    def agreement(self) -> Agreement:
        """What the log says, judged by what the agent does when it is asked."""
        if self.asked.verdict == "no evidence" and not self.asked.questions:
            return "not asked"
        if self.asked.verdict == "no evidence":  # which is no proof that the input is not used
            return "not shown" if self.used else "no evidence"
        if self.asked.verdict == "never":
            return "false" if self.used else "no evidence, rightly"
        return "found" if self.used else "missed"


@final
@dataclass(frozen=True)
class Audit(Answer):
    """What watching an agent shows of what asking it shows.

    Examples
    --------
    >>> import policyspace
    >>> from policyspace.asking import audit
    >>> answer = policyspace.ask(lambda seen: int(seen[2] + seen[3] > 0), "CartPole-v1", episodes=5)
    >>> audit(answer).of_agreement("false")
    ()
    """

    page: ClassVar[str] = "policyspace.asking.page:audit_page"
    ruled: ClassVar[bool] = True
    groups: tuple[AuditedGroup, ...]
    asked: AskedAnswer
    watched: Identification
    made_by: str = ""

    def of_agreement(self, agreement: Agreement) -> tuple[str, ...]:
        """The inputs about which the log is right or wrong in this way."""
        return tuple(group.asked.group for group in self.groups if group.agreement == agreement)

    @property
    def sentence(self) -> str:
        """The answer in one plain sentence."""
        found, missed, wrong = (self.of_agreement(one) for one in ("found", "missed", "false"))
        rows = f"{self.watched.data.num_rows} rows"
        total = number_of(len(found) + len(missed), "input")
        parts = [f"Watching {rows} finds {len(found)} of the {total} that the agent reacts to"]
        if self.asked.way == "inside":
            parts.append(
                f"names {listed_names(wrong)}, which it never reacts to"
                if wrong
                else "names none that it never reacts to"
            )
        else:
            named = self.of_agreement("not shown")
            parts.append(
                f"names {listed_names(named)}, which asking did not show"
                if named
                else "names none that asking did not show"
            )
        return " and ".join(parts) + "."

    def table(self) -> TextTable:
        """One row an input: as asked, as watched, and whether they agree."""
        rows = [
            (
                one.asked.group,
                one.asked.verdict,
                "–" if one.asked.effect_any is None else str(one.asked.effect_any),
                "used" if one.used else "no evidence",
                f"{one.p_value:.2g}",
                one.agreement,
            )
            for one in self.groups
        ]
        return TextTable(("input", "asked", "any, %", "watched", "adjusted p", "the log"), rows)

    def notes(self) -> list[str]:
        """What must be read with the table."""
        guarantee = self.watched.guarantee
        words = "No guarantee." if guarantee is None else f"Guarantee: {guarantee.text}"
        return [*self.asked.notes(), f"Watched by the {self.watched.test.name} test. {words}"]

    def to_dict(self) -> dict:
        """Both answers as plain data, and the agreement by input."""
        return {
            "answer": self.sentence,
            "agreement": {group.asked.group: group.agreement for group in self.groups},
            "asked": self.asked.to_dict(),
            "watched": self.watched.to_dict(),
        }


@remembering_its_call
def audit(answer: AskedAnswer, watched: Identification | None = None) -> Audit:
    """Compare what watching the agent shows with what it said when it was asked.

    Parameters
    ----------
    answer : AskedAnswer
        Of `policyspace.ask`.
    watched : Identification, optional
        Of `policyspace.identify`, about the same inputs; by default that of the log of the agent's play.

    Returns
    -------
    Audit
        With the inputs that the log finds, misses, or names falsely.

    Raises
    ------
    InputError
        If there is no log, or both are not about the same inputs.
    """
    if watched is None:
        groups: Any = {name: list(members) for name, members in answer.inputs.items() if len(members) > 1}
        watched = identify(
            answer.log, significance=answer.options.significance, **({"groups": groups} if groups else {})
        )
    found = {one.group: one for one in watched.groups}
    if missing := [group.group for group in answer.groups if group.group not in found]:
        raise InputError(
            f"both answers must be about the same inputs, found {listed_names(missing)} in one alone: give both the same "
            "features and groups."
        )
    rows = [(group, found[group.group]) for group in answer.groups]
    return Audit(
        tuple(AuditedGroup(group, test.rejected, test.adjusted_p_value) for group, test in rows), answer, watched
    )
