"""The answer of an identification: a verdict for each group, every number behind it, and what is guaranteed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum, auto
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final, overload

from policyspace.display import Answer, Renamed, TextTable, frame_of, listed_names, plain_data
from policyspace.errors import InputError, nearest, printable
from policyspace.runtime import object_at

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from policyspace.inference.coefficients import CoefficientTable
    from policyspace.inference.effects import EffectCurve

# -- Why: every reason that an answer names, its sentence in one table, and the values that fill it in.


class Reason(StrEnum):
    """Why a test was chosen, a verdict withheld, a guarantee missing or a warning given; and what a guarantee assumes.

    The value is the code that files and JSON hold; the sentence is `MESSAGES[reason]`.

    Examples
    --------
    >>> Reason("few_rows")
    <Reason.FEW_ROWS: 'few_rows'>
    """

    STATED = auto()
    """What a file of an earlier version says."""
    # why this test
    AS_REQUESTED = auto()
    SPACE_STATED = auto()
    NO_SPACE_STATED = auto()
    ABOUT_GROUPS = auto()
    EXCHANGEABLE = auto()
    TOO_FEW_ROWS = auto()
    NO_MODEL = auto()
    NOT_IDENTIFIABLE = auto()
    READINGS_DRAWN = auto()
    READINGS_ASSIGNED = auto()
    RANDOM_EFFECTS = auto()
    SUBJECTS = auto()
    CLUSTERED = auto()
    SAMPLING_WEIGHTS = auto()
    COUNTED_STATES = auto()
    DISPERSED_COUNTS = auto()
    SEPARATION = auto()
    SEPARATION_OUT_OF_CORE = auto()
    FEW_ROWS = auto()
    # why no guarantee
    ASSUMPTION_VIOLATED = auto()
    NO_CHANCE = auto()
    OTHER_CAUSES = auto()
    MEMORY = auto()
    RESTARTS_DIFFER = auto()
    OTHER_TESTS = auto()
    # what a reader must know
    SPACE_VIOLATED = auto()
    SEPARATED_FIT = auto()
    NOT_CONVERGED = auto()
    CORRECTION_UNUSED = auto()
    # what a guarantee assumes
    POLICY_FAMILY = auto()
    POLICY_MEAN = auto()
    LOGGED_CAUSES = auto()
    LARGE_SAMPLE = auto()
    SHORT_MEMORY = auto()
    INDEPENDENT_ROWS = auto()
    INDEPENDENT_SCORES = auto()
    INDEPENDENT_CLUSTERS = auto()
    RANDOM_WEIGHTS = auto()
    FLEXIBLE_REGRESSIONS = auto()
    ASKED_WITHOUT_TRACE = auto()
    DELIVERED_READINGS = auto()
    DRAWN_AS_STATED = auto()
    FIXED_NUMBER = auto()


MESSAGES: Mapping[Reason, str] = {
    Reason.STATED: "{message}",
    Reason.AS_REQUESTED: "as requested",
    Reason.SPACE_STATED: "the policy space was stated, and this is its test",
    Reason.NO_SPACE_STATED: "no policy space was stated, and this test needs none",
    Reason.EXCHANGEABLE: "the order of rows means nothing, and the data do not contradict a linear policy",
    Reason.ABOUT_GROUPS: "no test without a policy model is about these groups",
    Reason.TOO_FEW_ROWS: "{message}, so that a linear policy is assumed",
    Reason.NO_MODEL: "no policy model is assumed",
    Reason.NOT_IDENTIFIABLE: "the parameters are not identifiable, so that λ has no χ² distribution; "
    "the test 'lean' tests inputs without a policy model, 'bootstrap' finds smaller effects but takes longer",
    Reason.READINGS_DRAWN: "readings were drawn at random, and the draws are recorded",
    Reason.READINGS_ASSIGNED: "the experimenter drew what was shown, in a way that is known",
    Reason.RANDOM_EFFECTS: "subjects may differ in their weights, and this test says what subjects like these do on "
    "average",
    Reason.SUBJECTS: "rows of one subject belong together, and this test takes subjects as clusters",
    Reason.CLUSTERED: "rows of one subject belong together, and this test has a covariance by cluster",
    Reason.SAMPLING_WEIGHTS: "rows have sampling weights, and this test has a covariance by cluster",
    Reason.COUNTED_STATES: "rows are counts of {states} states, decisions in one state may be alike, and this test has a "
    "covariance by state",
    Reason.DISPERSED_COUNTS: "the counts spread otherwise than a Poisson distribution says, and this test takes their "
    "spread from the rows",
    Reason.SEPARATION: "the actions are predicted perfectly, so that no finite parameter is most likely (separation)",
    Reason.SEPARATION_OUT_OF_CORE: "no finite parameter is most likely (separation), and Firth's test needs all rows in "
    "memory",
    Reason.FEW_ROWS: "{rows:g} rows are few for {parameters} parameters",
    Reason.ASSUMPTION_VIOLATED: "{message}",
    Reason.NO_CHANCE: "{message}; if its policy is linear, say so (policy='boltzmann', --policy boltzmann)",
    Reason.OTHER_CAUSES: "{message}",
    Reason.MEMORY: "the agent has a memory, so that what looks like use of an input may be use of what it remembers; test "
    "inputs together with their past (lags_of_inputs=4, --lags-of-inputs 4)",
    Reason.RESTARTS_DIFFER: "with other random starts λ moves by up to {noise:.1f}, and its critical value is "
    "{critical:.1f}: use the test 'universal' or 'bootstrap'",
    Reason.OTHER_TESTS: "use the test 'lean' (test='lean', --test lean)",
    Reason.SPACE_VIOLATED: "the data contradict the stated policy space, on which the guarantee rests: {message}",
    Reason.SEPARATED_FIT: "the actions are predicted perfectly, so that no finite parameter is most likely (separation); "
    "diverging: {diverging}; {remedy}",
    Reason.NOT_CONVERGED: "the full fit did not converge: its numbers may be wrong.",
    Reason.CORRECTION_UNUSED: "the correction '{correction}' was not used: it is for the simplified rule, and the "
    "combinatorial rule has its own.",
    Reason.POLICY_FAMILY: "a {family} policy",
    Reason.POLICY_MEAN: "a {family} mean of the actions",
    Reason.LOGGED_CAUSES: "that every cause of the action that is related to these inputs is logged",
    Reason.LARGE_SAMPLE: "a large sample",
    Reason.SHORT_MEMORY: "a memory of at most {rows} rows",
    Reason.INDEPENDENT_ROWS: "conditionally independent rows",
    Reason.INDEPENDENT_SCORES: "independent score contributions of the rows",
    Reason.INDEPENDENT_CLUSTERS: "independent {clusters}",
    Reason.RANDOM_WEIGHTS: "a {family} policy with random weights of each subject",
    Reason.FLEXIBLE_REGRESSIONS: "sufficiently flexible regressions",
    Reason.ASKED_WITHOUT_TRACE: "being asked leaves no trace in the agent",
    Reason.DELIVERED_READINGS: "the agent gets only the readings that were delivered",
    Reason.DRAWN_AS_STATED: "the columns were drawn as was said, and rows are in the order of time",
    Reason.FIXED_NUMBER: "the number of rows did not depend on them",
}
"""The only place of these sentences."""


@final
@dataclass(frozen=True)
class Note:
    """A reason and what fills in its sentence; files and JSON hold the code, the values and the text."""

    reason: Reason
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, reason: Reason, source: object) -> Self:
        """The note whose values are the attributes of an object that its sentence names."""
        names = [name for _, name, _, _ in Formatter().parse(MESSAGES[reason]) if name]
        return cls(reason, {name: getattr(source, name) for name in names})

    @property
    def text(self) -> str:
        """The sentence."""
        return MESSAGES[self.reason].format(**self.values)

    def __str__(self) -> str:
        return self.text


# -- What is guaranteed, and how strong the evidence behind it is.


class Grade(StrEnum):
    """How strong the evidence of an answer is, strongest first.

    Examples
    --------
    >>> Grade("model-free") is Grade.MODEL_FREE
    True
    """

    SHOWN = "shown"
    """A witness that anyone can check: the agent was seen to react."""
    EXACT = "exact"
    """A randomisation of our own: no assumption about the agent."""
    MODEL_FREE = "model-free"
    """From a log, asymptotically, under named assumptions, without a model of the policy."""
    MODEL_BASED = "model-based"
    """From a log, if the policy is of the given family."""
    SUGGESTED = "suggested"
    """Nothing is guaranteed."""


CORRECTIONS_IN_WORDS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini–Hochberg"}


@final
@dataclass(frozen=True)
class Guarantee:
    """What an answer guarantees, and on what that rests.

    Examples
    --------
    >>> conditions = (Note(Reason.POLICY_FAMILY, {"family": "softmax-linear"}), Note(Reason.INDEPENDENT_ROWS))
    >>> print(Guarantee("fwer", 0.05, "likelihood-ratio test", "holm", conditions, True, Grade.MODEL_BASED).text)
    P(any false 'used') ≤ 5 % (likelihood-ratio test, Holm), assuming a softmax-linear policy and conditionally \
independent rows. Model checks: passed.
    """

    quantity: Literal["fwer", "fdr"]
    """Family-wise error rate: the chance of any false positive. False discovery rate: their expected share."""
    level: float
    """What the quantity is at most."""
    test: str
    """The name of the test, as in a sentence."""
    correction: str
    """For the number of groups tested; empty where none is needed."""
    conditions: tuple[Note, ...]
    """What it assumes; none, if it holds for any agent and any data."""
    checked: bool | None
    """Whether the data were checked against the conditions, and passed; None where no model is checked."""
    grade: Grade
    verdict: str = "used"
    """The verdict of which false ones are rare."""
    sample: str = ""
    """The part of the data that the test looked at, if not all."""
    violated: tuple[str, ...] = ()
    """What the data contradict of a policy space that was stated."""

    @property
    def text(self) -> str:
        """The guarantee in one sentence, and whether it was checked."""
        error = f"P(any false '{self.verdict}')"
        if self.quantity == "fdr":
            error = f"E[share of false '{self.verdict}']"
        names = [self.test, CORRECTIONS_IN_WORDS.get(self.correction, self.correction), self.sample]
        by = ", ".join(name for name in names if name)
        words = [condition.text for condition in self.conditions]
        assuming = f", assuming {listed_names(words)}" if words else ""
        checks = "" if self.checked is None else f" Checks: {'passed' if self.checked else 'not all made'}."
        if self.violated:
            checks = f" Checks: the data contradict {listed_names(self.violated)} (see the warnings)."
        if self.grade is Grade.MODEL_BASED:
            checks = checks.replace("Checks", "Model checks")
        return f"{error} ≤ {100 * self.level:.4g} % ({by}){assuming}.{checks}"


# -- The parts of an identification.

GroupVerdict = Literal["used", "controlled", "undecided", "no evidence"]
"""Features are used, parameters are controlled."""

Status = Literal["held", "violated", "unchecked"]

Covariance = Literal["estimate"] | tuple[tuple[float, ...], ...]


@final
@dataclass(frozen=True)
class GroupResult(Renamed):
    """The test of one group, its verdict, and how large its influence is.

    Parameters
    ----------
    group : str
        Its name.
    verdict : {"used", "controlled", "undecided", "no evidence"}
        Features are used, parameters are controlled.
    statistic, degrees_of_freedom, p_value
        λ, or what the test has in its place.
    adjusted_p_value : float
        For the number of groups: it is compared with the significance itself.
    rejected : bool
        Whether the hypothesis "not used" is.
    coefficient_norm : float
        ‖θ̂_g‖, the size of the estimated weights; infinite under separation.
    minimum_detectable_effect : float
        The smallest ‖θ_g‖ that is found with power 0.8.
    evidence : float
        E, where the test is an e-value: its mean is at most 1 under the hypothesis.
    action_effect : float
        How much the action changes when what the other features predict replaces the group: the share of decisions, or
        standard deviations of the action; without what the noise of the fit adds.
    effect_low, effect_high : float
        The ends of its 95 % interval.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> states = np.random.default_rng(0).normal(size=(300, 2))
    >>> actions = states[:, 0] + np.random.default_rng(1).normal(size=300)
    >>> first = policyspace.identify(states, actions, features=["speed", "noise"]).groups[0]
    >>> first.group, first.verdict, round(first.coefficient_norm, 1)
    ('speed', 'used', 0.9)
    """

    renamed: ClassVar = {
        "effect": "coefficient_norm",
        "detectable_effect": "minimum_detectable_effect",
        "behavioural_effect": "action_effect",
    }
    group: str
    verdict: GroupVerdict
    statistic: float
    degrees_of_freedom: int
    p_value: float
    adjusted_p_value: float
    rejected: bool
    coefficient_norm: float = math.nan
    minimum_detectable_effect: float = math.nan
    evidence: float = math.nan
    action_effect: float = math.nan
    effect_low: float = math.nan
    effect_high: float = math.nan


@final
@dataclass(frozen=True)
class TestUsed:
    """The test that decided, and why it was chosen."""

    __test__ = False  # not a test of this project, whatever pytest thinks of the name

    name: str
    reason: Note
    note: str
    """What a reader must know of its p-values."""
    statistic: str
    """What the number in the table is."""
    null_distribution: str
    seed: int = 0
    assumes: tuple[str, ...] = ()
    """The assumptions that it needs, by name."""
    on_sample: bool = False
    """Whether it looked at a sample of the rows only."""


@final
@dataclass(frozen=True)
class PolicyRecord:
    """The policy space in which the agent was identified."""

    family: str
    """The name of its class."""
    groups: tuple[str, ...]
    """What was tested."""
    assumed_groups: tuple[str, ...] = ()
    stated: bool = False
    """Whether somebody said that the agent's policy is one of it."""
    """What was taken as used, and not tested."""
    tested: Literal["features", "parameters"] = "features"
    """What the groups are groups of."""
    covariance: Covariance | None = None
    intercept: bool | None = None
    hidden: tuple[int, ...] = ()
    fixed: tuple[float, ...] = ()
    """The values of all parameters where their groups are not used; empty: 0."""
    offset: tuple[str, ...] = ()
    """Columns that are added with weight 1."""


@final
@dataclass(frozen=True)
class OutOfCore:
    """How a log that does not fit in memory was read."""

    passes: int
    rows_total: int
    rows_sampled: int


@final
@dataclass(frozen=True)
class DataSummary:
    """The rows that were looked at, and what was made of their columns."""

    num_rows: int
    num_episodes: int | None
    features: tuple[str, ...]
    actions: tuple[str, ...]
    action_type: str
    """Discrete, continuous or count."""
    lagged_actions: tuple[str, ...] = ()
    """The groups of features that are earlier actions."""
    formula: str | None = None
    weight_type: str | None = None
    excluded_columns: tuple[str, ...] = ()
    """Columns of the table that were not taken as features."""
    has_memory: bool = False
    """Whether the agent is known to remember earlier inputs, of which not enough are features."""
    can_be_asked: str = ""
    """How to ask the agent that was watched, if so."""
    out_of_core: OutOfCore | None = None


@final
@dataclass(frozen=True)
class FitSummary:
    """The most likely policy of the space; without a model of the policy it has no parameters."""

    log_likelihood: float
    num_parameters: int
    parameters: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """θ̂ by row of the weights; infinite where no finite value is most likely."""
    identifiable: bool = True
    smallest_eigenvalue: float = 0.0
    """Of the Fisher information of a row."""
    separated: bool = False
    converged: bool = True


@final
@dataclass(frozen=True)
class AssumptionCheck:
    """One assumption, and whether the data contradict it."""

    name: str
    status: Status
    p_value: float | None
    message: str

    @classmethod
    def of(cls, name: str, held: bool | None, message: str, p_value: float | None = None) -> Self:
        """From whether it held; None: it could not be checked."""
        status: Status = "unchecked" if held is None else "held" if held else "violated"
        return cls(name, status, p_value, message)


MOST_COUNTED = 200
"""Subjects beyond which nobody asks how many of them use a feature, which takes a fit a feature."""


@final
@dataclass(frozen=True)
class SubjectEffects:
    """What subjects differ in: of every weight its average, its spread between subjects, and each subject's own.

    Parameters
    ----------
    names : tuple of str
        The subjects.
    parameters, groups : tuple of str
        The weights, and the group that each belongs to.
    average, standard_error : tuple of float
        Of subjects like these.
    spread : tuple of float
        The standard deviation between subjects; 0 where the weight is the same for all.
    share_of_sign : tuple of float
        The estimated share of subjects like these whose weight has the sign of the average; nothing is guaranteed of it.
    weights, margins : tuple of tuple of float
        One entry a subject: its weights, shrunken towards the average, and their standard errors.
    at_least : mapping of str to int
        By how many of these subjects a group is used at least; only groups of which the rows of a subject do not contradict
        that they are independent decisions.
    significance : float
        The chance that any of these bounds is too large.

    Examples
    --------
    >>> from policyspace import identify
    >>> from policyspace.data import trials
    >>> words = {"features": ["contrast", "tone"], "subjects": "mouse", "episodes": "session", "lags": 1}
    >>> found = identify(trials(), "choice", **words).subjects
    >>> found.at_least["contrast"], len(found.names)
    (10, 12)
    """

    names: tuple[str, ...]
    parameters: tuple[str, ...]
    groups: tuple[str, ...]
    average: tuple[float, ...]
    standard_error: tuple[float, ...]
    spread: tuple[float, ...]
    share_of_sign: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]
    margins: tuple[tuple[float, ...], ...]
    at_least: Mapping[str, int] = field(default_factory=dict)
    significance: float = 0.05

    def table(self) -> TextTable:
        """One row a subject, one column a weight with 1.96 standard errors; first what subjects like these do."""
        rows = [("average", self.average, self.standard_error)]
        rows += [*zip(self.names, self.weights, self.margins, strict=True)]
        cells = [(name, *(f"{w:.3g} ± {1.96 * m:.2g}" for w, m in zip(ws, ms, strict=True))) for name, ws, ms in rows]
        return TextTable(("subject", *self.parameters), cells)

    def notes(self) -> list[str]:
        """A line a group: its weights on average, how they differ, and by how many subjects it is used at least."""
        lines, size = [], len(self.names)
        for group in dict.fromkeys(self.groups):
            inside = [i for i, owner in enumerate(self.groups) if owner == group]
            parts = [self._in_words(i, alone=len(inside) == 1) for i in inside[:3]]
            parts += [f"and {len(inside) - 3} more weights"] if len(inside) > 3 else []
            if (count := self.at_least.get(group)) is not None:
                parts.append(
                    f"used by at least {count} of {size}" if count else f"no number of the {size} is shown to use it"
                )
            lines.append(f"Subjects, {group}: {'; '.join(parts)}.")
        if self.at_least:
            chance = f"The chance that any 'at least' is too large is at most {100 * self.significance:.4g} %"
            lines.append(f"{chance}, if rows of a subject are independent decisions too.")
        elif size <= MOST_COUNTED:
            lines.append(
                "By how many subjects a feature is used is not said where their decisions resemble the ones before; past "
                "actions as features (lags=1, --lags 1) may explain that."
            )
        return lines

    def _in_words(self, i: int, alone: bool) -> str:
        name = "" if alone else f"{self.parameters[i]} "
        average, error = self.average[i], self.standard_error[i]
        if not self.spread[i]:
            return f"{name}{average:.3g} (standard error {error:.2g}) for all"
        words = f"{name}{average:.3g} (standard error {error:.2g}) on average, sd {self.spread[i]:.2g} between subjects"
        if abs(average) <= 2 * error:
            return words
        return f"{words}, about {100 * self.share_of_sign[i]:.0f} % {'above' if average > 0 else 'below'} 0"

    def plot(self) -> "Figure":
        """Draw the weights of all subjects with their intervals, one panel a weight."""
        figure: Figure = object_at("policyspace.report.figures:draw_subject_effects")(self)
        return figure


@final
@dataclass(frozen=True)
class ClusterSummary:
    """What was taken as independent of each other."""

    kind: str
    """Rows, blocks, episodes or subjects."""
    count: int | None = None
    block_length: int | None = None


# -- The answer of an identification.


@final
@dataclass(frozen=True, repr=False)
class Identification(Renamed, Answer):
    """Which groups an agent uses, and all that led to the verdicts.

    Parameters
    ----------
    selected, undecided : tuple of str
        The groups in every support that explains the data, and those in some.
    supports : tuple of tuple of str
        The minimal sets of groups that explain the data.
    groups : tuple of GroupResult
        The test of each group.
    test : TestUsed
        The test that decided, and why.
    policy : PolicyRecord
        The policy space in which the agent was identified.
    data : DataSummary
        The rows, and what was made of their columns.
    fit : FitSummary
        The most likely policy.
    guarantee : Guarantee, optional
        What is guaranteed, under which conditions; None if nothing is.
    no_guarantee : tuple of Note
        Why not.
    assumptions : tuple of AssumptionCheck
        What the test and the policy space assume, and whether the data contradict it.
    clusters : ClusterSummary
        What was taken as independent of each other.
    rule : {"simplified", "combinatorial"}
        One test a group, or all supports.
    significance, correction
        The accepted probability of any false "used", and how it is divided among the groups.
    exhaustive : bool
        Whether all supports were searched.
    warnings : tuple of str
        What must be read with the answer.
    ground_truth : tuple of str, optional
        The groups that are really used, where that is known.
    version, made_by : str
        Of policyspace; the call or the command that makes the answer again.
    subjects : SubjectEffects, optional
        How subjects differ, where they have random weights (the test `mixed`).
    coefficient_maker, curve_maker : callable, optional
        Make the table of coefficients, and the curves.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> states = np.random.default_rng(0).normal(size=(300, 2))
    >>> actions = states[:, 0] + np.random.default_rng(1).normal(size=300)
    >>> answer = policyspace.identify(states, actions, features=["speed", "noise"])
    >>> answer.selected, answer.groups[1].verdict, answer.grade
    (('speed',), 'no evidence', <Grade.MODEL_FREE: 'model-free'>)
    """

    page: ClassVar[str] = "policyspace.report.pages:answer_page"
    ruled: ClassVar[bool] = True
    renamed: ClassVar = {
        "core": "selected",
        "tests": "groups",
        "promise": "guarantee",
        "truth": "ground_truth",
        "test_reason": "test.reason",
        "dependence": "clusters.kind",
        "left_out": "data.excluded_columns",
        "num_pairs": "data.num_rows",
        "num_rows": "data.num_rows",
        "num_episodes": "data.num_episodes",
        "num_parameters": "fit.num_parameters",
        "parameters": "fit.parameters",
        "identifiable": "fit.identifiable",
        "smallest_eigenvalue": "fit.smallest_eigenvalue",
        "separated": "fit.separated",
        "log_likelihood": "fit.log_likelihood",
    }
    selected: tuple[str, ...]
    undecided: tuple[str, ...]
    supports: tuple[tuple[str, ...], ...]
    groups: tuple[GroupResult, ...]
    test: TestUsed
    policy: PolicyRecord
    data: DataSummary
    fit: FitSummary
    guarantee: Guarantee | None
    no_guarantee: tuple[Note, ...]
    assumptions: tuple[AssumptionCheck, ...]
    clusters: ClusterSummary
    rule: str
    significance: float
    correction: str
    exhaustive: bool
    warnings: tuple[str, ...] = ()
    ground_truth: tuple[str, ...] | None = None
    version: str = ""
    subjects: SubjectEffects | None = None
    made_by: str = field(default="", compare=False)
    coefficient_maker: "Callable[..., CoefficientTable] | None" = field(default=None, repr=False, compare=False)
    curve_maker: "Callable[[], tuple[EffectCurve, ...]] | None" = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        shown = f"{self.sentence[:150]}…" if len(self.sentence) > 151 else self.sentence
        return f"<Identification ({self.grade}, {self.data.num_rows} rows): {printable(shown)}>"

    @property
    def grade(self) -> Grade:
        """How strong the evidence is."""
        return Grade.SUGGESTED if self.guarantee is None else self.guarantee.grade

    @property
    def support(self) -> tuple[str, ...]:
        """The one support, where it is unique."""
        if len(self.supports) != 1:
            found = "; ".join("{" + ", ".join(support) + "}" for support in self.supports[:5])
            raise InputError(f"the data leave {len(self.supports)} supports ({found}): use .supports, or observe more.")
        return self.supports[0]

    @property
    def withheld(self) -> bool:
        """Whether no verdict is given, because fits differ between random starts."""
        return any(note.reason is Reason.RESTARTS_DIFFER for note in self.no_guarantee)

    def group(self, name: str) -> GroupResult:
        """The result of one group."""
        found = {group.group: group for group in self.groups}
        if name not in found:
            raise InputError(f"there is no tested group '{name}': {nearest(name, found)}")
        return found[name]

    def coefficients(
        self, interval: Literal["wald", "profile"] = "wald", errors: Literal["auto", "model", "clustered"] = "auto"
    ) -> "CoefficientTable":
        """Every weight with its standard error, interval, odds ratio and p-value, and how well the policy fits.

        Standard errors are those of the model, or by cluster: by default where subjects or sampling weights were named.
        """
        if self.coefficient_maker is None:
            raise InputError("this answer has no coefficients: they are for linear policies, identified from data.")
        return self.coefficient_maker(interval=interval, errors=errors)

    def curves(self) -> "tuple[EffectCurve, ...]":
        """What the agent does on average while one feature changes and the others stay as logged, with 95 % intervals.

        One curve for each feature of each tested group. Where the lean test decided it is that of its regressions, else that
        of the most likely policy.
        """
        found = () if self.curve_maker is None else self.curve_maker()
        if not found:
            raise InputError("this answer has no curves: they are for groups of features, identified from data.")
        return found

    @property
    def has_curves(self) -> bool:
        """Whether `curves` has any."""
        return self.curve_maker is not None and bool(self.curve_maker())

    def __getstate__(self) -> dict[str, object]:
        """What may be sent to another process: all but the data behind the coefficients and the curves."""
        return vars(self) | {"coefficient_maker": None, "curve_maker": None}

    @property
    def sentence(self) -> str:
        """The answer in one plain sentence."""
        if self.withheld:
            return "No verdict: the fits are not reproducible enough for the χ² distribution."
        assumed = [name for name in self.selected if name in self.policy.assumed_groups]
        found = [name for name in self.selected if name not in assumed]
        verb, none = ("uses", "used") if self.policy.tested == "features" else ("controls", "controlled")
        agent = "The log suggests that the agent" if self.grade is Grade.SUGGESTED else "The agent"
        num = len(self.groups)
        parts = [
            f"{agent} {verb} {f'{len(found)} of {num}: ' * (num > 1)}{listed_names(found)}"
            if found
            else f"{f'None of {num} is' if num > 1 else f'{self.groups[0].group} is not'} shown to be {none}"
        ]
        if past := self.data.lagged_actions:
            states = [name for name in found if name not in past]
            own = [name for name in found if name in past]
            parts = [
                f"Beyond its own past actions {agent[0].lower()}{agent[1:]} {verb} {listed_names(states)}"
                if states
                else f"Nothing but its own past actions is shown to be {none}"
            ]
            parts += [f"of its past actions it {verb} {listed_names(own)}"] if own else []
        if found and self.data.has_memory and self.grade is Grade.SUGGESTED:
            parts[0] += ", or what it remembers"
        if assumed:
            parts[0] += f", beside {listed_names(assumed)} (assumed)"
        if self.undecided and self.exhaustive:
            too = "needed too" if self.selected else "needed"
            parts.append(f"at least one of {listed_names(self.undecided)} is {too}, but the data do not say which")
        elif self.undecided:
            parts.append(f"undecided: {listed_names(self.undecided)}")
        return "; ".join(parts) + "."

    @property
    def by_effect(self) -> tuple[GroupResult, ...]:
        """The groups as tables and pictures show them: what is used first, then what is undecided, by effect."""
        verdicts = ("used", "controlled", "undecided", "no evidence")

        def place(one: GroupResult) -> tuple[int, float, float]:
            effect = -math.inf if math.isnan(one.action_effect) else one.action_effect
            return verdicts.index(one.verdict), -effect, one.p_value

        return tuple(sorted(self.groups, key=place))

    def table(self) -> TextTable:
        """One row a group, by verdict and effect; of more than twelve without evidence those with the largest effects."""
        return self.table_of_groups(MOST_UNUSED)

    def table_of_groups(self, most_unused: int | None = None) -> TextTable:
        """The same with all groups, or with at most so many without evidence."""
        effects = any(not math.isnan(one.action_effect) for one in self.groups)
        shown = self.by_effect
        unused = [one for one in shown if one.verdict == "no evidence"]
        folded = unused[FEW_UNUSED:] if most_unused is not None and len(unused) > most_unused else []
        columns = ["group", "verdict", *(["effect", "95 % interval"] if effects else []), "adjusted p"]
        rows = [
            (
                one.group,
                one.verdict + self._mark(one),
                *([self.effect_in_words(one), self.interval_in_words(one)] if effects else []),
                _probability(one.adjusted_p_value),
                f"{one.statistic:.2f}",
                str(one.degrees_of_freedom),
            )
            for one in shown[: len(shown) - len(folded)]
        ]
        if folded:
            least = _probability(min(one.adjusted_p_value for one in folded))
            most = [f"≤ {self.effect_in_words(folded[0])}", ""] if effects else []
            rows.append((f"and {len(folded)} others", "no evidence", *most, f"≥ {least}", "", ""))
        return TextTable([*columns, self.test.statistic, "df"], rows)

    def effect_in_words(self, one: GroupResult) -> str:
        """How much the action changes without a group: a share of the decisions, or standard deviations."""
        if math.isnan(one.action_effect):
            return "unknown"
        return self._with_unit(self._amount(one.action_effect))

    def interval_in_words(self, one: GroupResult) -> str:
        """The interval of the same."""
        if math.isnan(one.effect_low):
            return "–"
        return self._with_unit(f"{self._amount(one.effect_low)} to {self._amount(one.effect_high)}")

    def _amount(self, effect: float) -> str:
        """A number of two digits, of a percentage where actions are discrete."""
        if self.data.action_type != "discrete":
            return f"{effect:.2f}"
        return f"{100 * effect:.0f}" if effect >= 0.0995 or effect < 0.0005 else f"{100 * effect:.1f}"

    def _with_unit(self, words: str) -> str:
        return f"{words} {'%' if self.data.action_type == 'discrete' else 'sd'}"

    def _mark(self, one: GroupResult) -> str:
        """Where the ground truth is known, whether the verdict is right."""
        if self.ground_truth is None:
            return ""
        return " ✓" if (one.group in self.ground_truth) == (one.group in self.selected) else " ✗"

    def notes(self) -> list[str]:
        """What must be read with the table: the guarantee, the supports, the ground truth, the warnings."""
        parameters = f", {self.fit.num_parameters} parameters" if self.fit.num_parameters else ""
        lines = [f"{self.data.num_rows} rows{parameters}, {self.rule} rule."]
        chosen = self.test.reason.reason is not Reason.AS_REQUESTED
        lines.append(f"Test: {self.test.note}." + (f" Chosen automatically: {self.test.reason}." if chosen else ""))
        if self.guarantee is not None:
            lines.append(f"Guarantee: {self.guarantee.text}")
        else:
            lines.append(f"No guarantee: {self.why_no_guarantee}.")
        lines.append(f"Grade of the evidence: {self.grade}.")
        if self.data.can_be_asked:
            lines.append(f"Ask the agent itself, which assumes less: {self.data.can_be_asked}")
        if self.policy.offset:
            lines.append(f"Offset, added with weight 1 and not tested: {', '.join(self.policy.offset)}.")
        if (log := self.data.out_of_core) is not None:
            looked = "the test and the model checks" if self.test.on_sample else "the model checks"
            sample = f"a sample of {log.rows_sampled} of {log.rows_total} rows"
            lines.append(f"Read in {log.passes} pass{'es' * (log.passes > 1)}; {looked} looked at {sample}.")
        if len(self.supports) > 1:
            shown = [f"{{{', '.join(support)}}}" for support in self.supports[:10]]
            more = f" and {len(self.supports) - 10} more" if len(self.supports) > 10 else ""
            lines.append(f"Minimal supports that explain the data: {' or '.join(shown)}{more}.")
        if not self.exhaustive and not self.withheld:
            lines.append("The search was not exhaustive: this support is minimal, others may exist.")
        if self.data.excluded_columns:
            names = ", ".join(f"'{name}'" for name in self.data.excluded_columns)
            lines.append(f"Excluded columns: {names}. To include a column, name it with --features.")
        if self.ground_truth is not None:
            right = sum(self._mark(one) == " ✓" for one in self.groups)
            lines.append(f"Against the ground truth: {right} of {len(self.groups)} verdicts are right.")
        lines += [] if self.subjects is None else self.subjects.notes()
        return lines + [f"Warning: {warning}" for warning in self.warnings]

    @property
    def why_no_guarantee(self) -> str:
        """The reasons in words; empty where there is a guarantee."""
        return "; ".join(map(str, self.no_guarantee))

    @overload
    def to_frame(self, pandas: Literal[False] = False) -> "polars.DataFrame": ...

    @overload
    def to_frame(self, pandas: Literal[True]) -> "pandas.DataFrame": ...

    def to_frame(self, pandas: bool = False) -> "polars.DataFrame | pandas.DataFrame":
        """One row a group with the fields of `GroupResult`, in polars or, if asked, in pandas."""
        columns = {one.name: [getattr(group, one.name) for group in self.groups] for one in fields(GroupResult)}
        return frame_of(columns, pandas)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the effect of every group with its interval into the axes, or into those of a new figure; return them."""
        axes: Axes = object_at("policyspace.report.figures:effect_axes")(self, ax)
        return axes

    def plot_curves(self, features: Sequence[str] | None = None) -> "Figure":
        """Draw what the agent does while one feature changes (see `curves`), in a new figure of pyplot; return it.

        Parameters
        ----------
        features : sequence of str, optional
            Which; by default those with the largest effects, six at most.

        Returns
        -------
        matplotlib.figure.Figure
            One panel for each feature.
        """
        figure: Figure = object_at("policyspace.report.figures:curve_figure")(self, features)
        return figure

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, field by field; numbers that JSON cannot hold (an infinite norm) become null."""
        found = {"format": FORMAT, "answer": self.sentence, **plain_data(self)}
        return found if self.subjects is not None else {name: found[name] for name in found if name != "subjects"}


MOST_UNUSED, FEW_UNUSED = 12, 4
"""Of more groups without evidence than the first, a table shows the second number, and folds the others into one row."""

FORMAT = 2
"""Of the JSON of an identification; format 1 has no such entry."""


def _probability(p: float) -> str:
    return f"{p:.4f}" if p >= 1e-4 else (f"{p:.1e}" if p > 0 else "< 1e-300")
