"""The answer: what the agent controls, every number behind it, and the words for it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from policyspace.errors import InputError
from policyspace.fits.base import Fit
from policyspace.shown import Answer, listed_names, plain_data
from policyspace.table import Table

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.axes import Axes

    from policyspace.inference.coefficients import Coefficients

COLUMNS = ("group", "λ", "df", "p", "adjusted p", "verdict", "effect")


@dataclass(frozen=True)
class Assumption:
    """Something that a promise rests on, and whether the data contradict it."""

    name: str
    held: bool | None  # None: it could not be checked
    measure: float | None  # the number behind it, mostly a p-value
    words: str


@dataclass(frozen=True)
class GroupTest:
    """What the data say about one group; `adjusted_p_value` is already compared with the family-wise significance."""

    group: str
    statistic: float
    degrees_of_freedom: int
    p_value: float
    adjusted_p_value: float
    rejected: bool  # the hypothesis "not controlled"
    verdict: str  # "controlled", "undecided" or "no evidence"
    effect: float  # ‖θ̂_g‖, the size of the estimated weights; infinite under separation
    detectable_effect: float  # the smallest ‖θ_g‖ that would have been found with power 0.8
    evidence: float = float("nan")  # E, where the test is an e-value
    behavioural_effect: float = float("nan")  # change of the action when the others' guess replaces the group


@dataclass(frozen=True)
class Identification(Answer):
    """The supports that explain the agent, by name, and all that led to them."""

    ruled: ClassVar[bool] = True
    rule: str
    supports: list[list[str]]
    core: list[str]
    undecided: list[str]
    tests: list[GroupTest]
    fit: Fit
    num_pairs: int
    num_parameters: int
    num_episodes: int | None
    identifiable: bool
    smallest_eigenvalue: float
    separated: bool
    exhaustive: bool
    warnings: list[str]
    settings: dict[str, Any]
    parameters: dict[str, list[float]] = field(default_factory=dict)  # θ̂ by row of the weights
    truth: list[str] | None = None
    promise: str | None = None  # what is promised and under which assumptions; None where nothing is
    assumptions: list[Assumption] = field(default_factory=list)
    dependence: str = "rows"  # what was taken as independent: rows, blocks, episodes or subjects
    left_out: list[str] = field(default_factory=list)  # columns of the file that were not taken as features
    made_by: str = ""  # the call or the command that makes it again
    coefficient_maker: "Callable[..., Coefficients] | None" = field(default=None, repr=False, compare=False)

    @property
    def test(self) -> str:
        """The test that decided."""
        return str(self.settings["test"])

    @property
    def test_reason(self) -> str:
        """Why that test."""
        return str(self.settings["test_reason"])

    @property
    def support(self) -> list[str]:
        """The one support, where it is unique."""
        if len(self.supports) != 1:
            found = "; ".join("{" + ", ".join(support) + "}" for support in self.supports[:5])
            raise InputError(f"the data leave {len(self.supports)} supports ({found}): use .supports, or observe more.")
        return self.supports[0]

    @property
    def log_likelihood(self) -> float:
        """log L(θ̂) of the full fit, a sum over pairs."""
        return self.fit.log_likelihood

    def coefficients(
        self, interval: Literal["wald", "profile"] = "wald", errors: Literal["auto", "model", "clustered"] = "auto"
    ) -> "Coefficients":
        """Every weight with its standard error, interval, odds ratio and p-value, and how well the policy fits.

        Standard errors are those of the model, or by cluster: by default where subjects or sampling weights were named.
        """
        if self.coefficient_maker is None:
            raise InputError("this answer has no coefficients: they are for linear policies, identified from data.")
        return self.coefficient_maker(interval=interval, errors=errors)

    def __getstate__(self) -> dict[str, Any]:
        """What may be sent to another process: all but the data behind the coefficients."""
        return vars(self) | {"coefficient_maker": None}

    @property
    def sentence(self) -> str:
        """The answer in one plain sentence."""
        if self.settings.get("withheld"):
            return "No verdict: these fits are not reproducible enough for the χ² law."
        rest = [t.group for t in self.tests if t.verdict == "no evidence"]
        declared = [name for name in self.core if name in self.settings.get("always", ())]
        found = [name for name in self.core if name not in declared]
        verb, none = ("uses", "used") if self.settings.get("about_features") else ("controls", "controlled")
        habit = [name for name in found if name in self.settings.get("habit", ())]
        parts = [f"The agent {verb} {listed_names(found)}" if found else f"No group is shown to be {none}"]
        if self.settings.get("habit"):
            beyond = [name for name in found if name not in habit]
            parts = [
                f"Beyond its habit the agent {verb} {listed_names(beyond)}"
                if beyond
                else f"Nothing but habit is shown to be {none}"
            ]
            parts += [f"of its own past it {verb} {listed_names(habit)}"] if habit else []
        if declared:
            parts[0] += f", beside {listed_names(declared)} as declared"
        if self.undecided and self.exhaustive:
            too = "needed too" if self.core else "needed"
            parts.append(f"at least one of {listed_names(self.undecided)} is {too}, but the data do not say which")
        elif self.undecided:
            parts.append(f"not settled: {listed_names(self.undecided)}")
        if rest:
            parts.append(f"no evidence for {listed_names(rest)}")
        return "; ".join(parts) + "."

    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns; the second is λ, or what the test shows instead."""
        return tuple(self.settings.get("statistic", name) if name == "λ" else name for name in COLUMNS)

    def rows(self) -> list[tuple[str, ...]]:
        """The table as text, one tuple a group, in the order of COLUMNS."""
        return [
            (
                t.group,
                f"{t.statistic:.2f}",
                str(t.degrees_of_freedom),
                _probability(t.p_value),
                _probability(t.adjusted_p_value),
                self.verdict_in_words(t) + self._mark(t),
                _change(t, self.settings["discrete"]) if self.test == "lean" else _effect(t),
            )
            for t in self.tests
        ]

    def verdict_in_words(self, test: GroupTest) -> str:
        """Features are used, parameters are controlled."""
        return "used" if test.verdict == "controlled" and self.settings.get("about_features") else test.verdict

    def table(self) -> Table:
        """The rows under their columns."""
        return Table(self.columns(), self.rows())

    def _mark(self, test: GroupTest) -> str:
        """Where the truth is known, whether the verdict is right."""
        if self.truth is None:
            return ""
        return " ✓" if (test.group in self.truth) == (test.verdict == "controlled") else " ✗"

    def notes(self) -> list[str]:
        """What must be read with the table: the promise, the supports, the truth, the warnings."""
        parameters = f", {self.num_parameters} parameters" if self.num_parameters else ""
        lines = [f"{self.num_pairs} pairs{parameters}, {self.rule} rule.", self._test_in_words()]
        lines.append(f"Promise: {self.promise}" if self.promise else f"No promise is made: {self._why_no_promise()}")
        if known := self.settings.get("offset"):
            named = [f"{column} of {action}" for action, column in known.items()] if isinstance(known, dict) else known
            lines.append(f"Offset, added with weight 1 and not tested: {', '.join(named)}.")
        lines += [self.settings["reading"]] if "reading" in self.settings else []
        if len(self.supports) > 1:
            shown = [f"{{{', '.join(support)}}}" for support in self.supports[:10]]
            more = f" and {len(self.supports) - 10} more" if len(self.supports) > 10 else ""
            lines.append(f"Minimal supports that explain the data: {' or '.join(shown)}{more}.")
        if not self.exhaustive and not self.settings.get("withheld"):
            lines.append(
                "Not exhaustive: too many supports to try them all; one minimal support is shown, others may exist."
            )
        if self.left_out:
            names = ", ".join(f"'{name}'" for name in self.left_out)
            lines.append(f"Left out as bookkeeping, not tested: {names}. To include a column, name it with --features.")
        if self.truth is not None:
            right = sum(self._mark(t) == " ✓" for t in self.tests)
            lines.append(f"The file knows the truth: {right} of {len(self.tests)} verdicts are right.")
        return lines + [f"Warning: {warning}" for warning in self.warnings]

    def _test_in_words(self) -> str:
        """Which test decided, what its column shows, and why it was chosen."""
        settings = self.settings
        words = f"Test: {settings['test_note']}"
        return words + (
            f". Chosen because {settings['test_reason']}." if settings["test_reason"] != "as asked for" else "."
        )

    @property
    def contradicted(self) -> str:
        """What the data contradict of all that the test assumes, in words; empty if nothing."""
        return "; ".join(a.words for a in self.assumptions if a.held is False and a.name in self.settings["assumes"])

    def _why_no_promise(self) -> str:
        advice = "" if self.test in ("lean", "robust") else " Use --test auto or --test lean."
        return f"{self.contradicted or 'the fits are not reproducible enough'}.{advice}"

    @overload
    def to_frame(self, pandas: Literal[False] = False) -> "polars.DataFrame": ...

    @overload
    def to_frame(self, pandas: Literal[True]) -> "pandas.DataFrame": ...

    def to_frame(self, pandas: bool = False) -> "polars.DataFrame | pandas.DataFrame":
        """One row a group with the fields of `GroupTest`, in polars or, if asked, in pandas."""
        columns = {name: [getattr(test, name) for test in self.tests] for name in GroupTest.__dataclass_fields__}
        if not pandas:
            from polars import DataFrame

            return DataFrame(columns)
        try:
            from pandas import DataFrame as PandasFrame
        except ImportError as error:
            raise InputError(
                "to_frame(pandas=True) needs pandas, which is not installed: pip install pandas, or leave it out."
            ) from error
        return PandasFrame(columns)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the evidence for every group into the axes, or into those of a new figure of pyplot; return them."""
        from policyspace.report.evidence_picture import evidence_axes  # as `report`: asked for by who holds the answer

        return evidence_axes(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; numbers that JSON cannot hold (an infinite effect) become null."""
        return {
            "answer": self.sentence,
            "rule": self.rule,
            "supports": self.supports,
            "core": self.core,
            "undecided": self.undecided,
            "tests": [plain_data(vars(test)) for test in self.tests],
            "log_likelihood": plain_data(self.log_likelihood),
            "num_pairs": self.num_pairs,
            "num_episodes": self.num_episodes,
            "num_parameters": self.num_parameters,
            "identifiable": self.identifiable,
            "smallest_eigenvalue": self.smallest_eigenvalue,
            "separated": self.separated,
            "exhaustive": self.exhaustive,
            "converged": self.fit.converged,
            "parameters": plain_data(self.parameters),
            "truth": self.truth,
            "warnings": self.warnings,
            "test": self.test,
            "test_reason": self.test_reason,
            "promise": self.promise,
            "assumptions": [vars(assumption) for assumption in self.assumptions],
            "dependence": self.dependence,
            "left_out": self.left_out,
            "settings": self.settings,
            "version": self.settings["version"],
        }


def _probability(p: float) -> str:
    return f"{p:.4f}" if p >= 1e-4 else (f"{p:.1e}" if p > 0 else "< 1e-300")


def _change(test: GroupTest, discrete: bool) -> str:
    """How much the agent's action hangs on the group: in standard deviations, or the share of decisions that change."""
    change = test.behavioural_effect
    if change != change:
        return "not determined"
    return f"{100 * change:.0f} %" if discrete else f"{change:.2f} sd"


def _effect(test: GroupTest) -> str:
    if test.effect == float("inf"):
        return "diverges"
    size = f"{test.effect:.3g}"
    if test.verdict == "controlled" or test.detectable_effect != test.detectable_effect:
        return size
    if test.detectable_effect == float("inf"):
        return "not determined"  # its weights may be traded for those of other groups
    return f"{size} (shows from {test.detectable_effect:.2g})"
