"""Each subject, session or condition alone, all of them beside each other, and all together."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from policyspace.answer import Identification
from policyspace.data.columns import Table as DataTable
from policyspace.data.readers import table_of
from policyspace.data.vocabulary import one_vocabulary
from policyspace.errors import InputError
from policyspace.identification import identify
from policyspace.inference.corrections import check_significance
from policyspace.shown import Answer
from policyspace.table import Table

if TYPE_CHECKING:
    import polars

MOST = 500
"""Subjects that are identified one by one: a column with more values is more likely something else."""

BROKEN = "rows of other values between"
"""The name of a column that is made here."""

Told = dict[str, Any]


@final
@dataclass(frozen=True)
class BySubject(Answer):
    """The answers by name; of some nothing can be said, in `refused` stands why; `pooled` is the answer of all together.

    Each subject is tested at `significance` divided by their number, so that the chance of any false "used" in the whole
    table is at most `significance`; the pooled answer has a promise of its own.
    """

    ruled: ClassVar[bool] = True
    by: str
    significance: float
    answers: dict[str, Identification]
    refused: dict[str, str]
    pooled: Identification | None
    pooled_refused: str = ""

    @property
    def names(self) -> list[str]:
        """All subjects, in the order of the data."""
        return sorted({**self.answers, **self.refused}, key=[*self.answers, *self.refused].index)

    @property
    def groups(self) -> list[str]:
        """All groups that were tested, in the order in which they first appear."""
        answers = [*([self.pooled] if self.pooled else []), *self.answers.values()]
        return list(dict.fromkeys(test.group for answer in answers for test in answer.tests))

    def users(self, group: str) -> list[str]:
        """The subjects that are shown to use a group."""
        return [name for name, answer in self.answers.items() if group in answer.core]

    @property
    def sentence(self) -> str:
        """Of how many subjects each group is shown to be used."""
        shown = [f"{group} by {len(self.users(group))}" for group in self.groups]
        return f"Of {len(self.answers)} values of {self.by}, used: {', '.join(shown)}."

    def table(self) -> Table:
        """One row a subject, one column a group, then what the answer rests on; the last row is all together."""
        rows = [[name, *self._cells(self.answers[name])] for name in self.answers]
        if self.pooled is not None:
            rows.append(["all together", *self._cells(self.pooled)])
        return Table((self.by, "pairs", *self.groups, "test", "promise"), rows)

    def _cells(self, answer: Identification) -> list[str]:
        tests = {test.group: test for test in answer.tests}
        cells = [
            f"{answer.verdict_in_words(tests[g])} ({_short(tests[g].adjusted_p_value)})" if g in tests else "–"
            for g in self.groups
        ]
        return [str(answer.num_pairs), *cells, answer.test, "yes" if answer.promise else "no"]

    def notes(self) -> list[str]:
        """What must be read with the table."""
        share = f"{self.significance:g}/{len(self.answers) + len(self.refused)}"
        lines = [
            f"In brackets p-values adjusted for the groups of their row; each {self.by} is tested at {share}, so that the "
            f"chance of any false 'used' in all rows above the last is at most {self.significance:g}, where promised."
        ]
        if self.pooled is not None:
            promise = self.pooled.promise or "none is made; identify all rows alone to read why."
            lines.append(f"Promise of all together: {promise}")
        elif self.pooled_refused:
            lines.append(f"Not tested all together: {self.pooled_refused}")
        return lines + [f"Warning: {self.by} {name} was not tested: {why}" for name, why in self.refused.items()]

    def to_dict(self) -> dict[str, Any]:
        """Every answer as plain data."""
        return {
            "answer": self.sentence,
            "by": self.by,
            "significance": self.significance,
            "answers": {name: answer.to_dict() for name, answer in self.answers.items()},
            "refused": self.refused,
            "pooled": None if self.pooled is None else self.pooled.to_dict(),
        }


@one_vocabulary
def identify_by(
    data: Any,
    by: str,
    actions: Any = None,
    *,
    subjects: str | None = None,
    significance: float = 0.05,
    correction: Literal["holm", "bonferroni"] = "holm",
    told: Told | None = None,
) -> BySubject:
    """`identify` for each value of the column `by` of a table or a file alone, and for all rows together.

    All rows together are tested by cluster: by the column `subjects`, or by `by` itself. `told` is what else `identify`
    takes.
    """
    check_significance(significance)
    if correction not in ("holm", "bonferroni"):
        raise InputError(
            f"many subjects are tested at a share of δ each, which the correction '{correction}' does not bound: use 'holm'."
        )
    said: Told = {"actions": actions, "correction": correction, **(told or {})}
    frame, roles = table_of(data) if isinstance(data, str | Path) else (DataTable.of(data).frame, None)
    if roles is not None and said["actions"] is None and said.get("formula") is None:
        known = {"actions": list(roles.action), "features": list(roles.features), "episodes": roles.episode}
        known["weights"] = roles.weight
        said |= {word: value for word, value in known.items() if said.get(word) is None}
        subjects = roles.subject if subjects is None else subjects
    parts = _parts(frame, by)
    _check_roles(frame, by, subjects, said)
    answers, refused = dict[str, Identification](), dict[str, str]()
    for value, part in parts.items():
        clusters = subjects if subjects not in (None, by) and part[subjects].n_unique() > 1 else None
        useless = [name for name in (by, subjects) if name not in (None, clusters, said.get("episodes"))]
        rows = part.drop(useless, strict=False)
        found = _tried(identify, rows, subjects=clusters, significance=significance / len(parts), **said)
        if isinstance(found, str):
            refused[value] = found
        else:
            answers[value] = found
    if not answers:
        raise InputError(f"no value of '{by}' could be tested alone: {next(iter(refused.values()))}")
    together = frame if subjects in (None, by) or by == said.get("episodes") else frame.drop(by)
    pooled = _tried(identify, together, subjects=subjects or by, significance=significance, **said)
    if isinstance(pooled, str):
        return BySubject(by, significance, answers, refused, None, pooled)
    return BySubject(by, significance, answers, refused, pooled)


def _parts(frame: "polars.DataFrame", by: str) -> dict[str, "polars.DataFrame"]:
    """The rows of each value of a column, in the order in which the values first appear."""
    DataTable(frame).only([by])
    labels = frame[by].cast(str)
    if labels.null_count():
        raise InputError(f"column '{by}' must be complete, found {labels.null_count()} missing values: fill them.")
    values = labels.unique(maintain_order=True).to_list()
    if not 2 <= len(values) <= MOST:
        raise InputError(f"2 to {MOST} values of '{by}' can be compared, found {len(values)}: choose another column.")
    return {value: frame.filter(labels == value) for value in values}


def _check_roles(frame: "polars.DataFrame", by: str, subjects: str | None, said: Told) -> None:
    """What is compared plays no other role, and with lags the rows of one value follow each other."""
    for word in ("actions", "features", "weights"):
        if by == said.get(word) or (isinstance(said.get(word), list | tuple) and by in said[word]):
            raise InputError(f"column '{by}' says what is compared, found it among the {word} too: leave it out there.")
    if subjects is not None:
        DataTable(frame).only([subjects])
    if not said.get("lags") or subjects in (None, by):
        return
    from polars import col

    within = [name for name in dict.fromkeys((subjects, said.get("episodes"))) if name in frame.columns]
    runs = frame.group_by(within).agg((col(by).rle_id().max() + 1 > col(by).n_unique()).alias(BROKEN))
    if runs[BROKEN].any():
        raise InputError(
            f"the action before must be of the same {by}, found rows of other values between: leave the lags out, or "
            f"make the rows of one {by} that follow each other an episode (--episodes)."
        )


def _tried(ask: Callable[..., Identification], *data: Any, **said: Any) -> Identification | str:
    """The answer, or why there is none."""
    try:
        return ask(*data, **said)
    except InputError as error:
        return str(error)


def _short(p: float) -> str:
    return f"{p:.3f}" if p >= 1e-3 else f"{p:.0e}"
