"""`identify`, `identify_by`, and the two selection rules as functions."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack, cast, final

import numpy as np

from policyspace.answer import Identification
from policyspace.data.columns import DataTable as DataTable
from policyspace.data.files import table_of
from policyspace.data.order import without_order
from policyspace.data.request import ColumnOptions, Request
from policyspace.data.sample import Sample
from policyspace.data.validation import explain_arguments, translate_keywords
from policyspace.display import Answer, TextTable, remembering_its_call
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace, recorded_policy
from policyspace.families.likelihood import Likelihood
from policyspace.families.network import Network, NetworkGroups
from policyspace.families.registry import Policy, PolicySpec, likelihood_of
from policyspace.inference.base import ClusterKind, Correction, RuleName, TestName, TestOptions
from policyspace.inference.conclusions import conclude
from policyspace.inference.diagnostics import ModelCheck, check_model, unchecked
from policyspace.inference.lean.lean_test import LeanTest
from policyspace.inference.selection import apply_withholding, each_group_alone, search_supports
from policyspace.inference.test_choice import choose, support_test
from policyspace.runtime import single_threaded_blas

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars


# -- From data to answer: `identify` in one call, `simplified` and `combinatorial` for a space and its demonstrations.


class SourceOptions(ColumnOptions, total=False):
    """What `identify`, `plan` and `assess` may be told about the data and the policy, in the same words."""

    policy: Policy
    """A name ("any" is no model), a space such as `GaussianNetwork(hidden=(8,))`, or a `PolicySpec`."""
    hidden: "Sequence[int] | None"
    """The widths of a network's hidden layers."""
    covariance: Any
    """Of a Gaussian policy: a number, numbers, a matrix, or "estimate" (default)."""
    groups: NetworkGroups | None
    """What is tested as one: "feature" (default), "parameter", "action" (one of its components), or {name: [features]}."""
    assume: "Sequence[str]"
    """Groups that are known to be used, and are not tested."""
    fixed: Any
    """The values of parameters where a group is not used; by default 0."""
    intercept: bool | None
    """Whether there is a constant feature."""
    levels: "Sequence[Any] | None"
    """Of an ordered policy: the actions from the lowest to the highest."""
    backend: Any
    """Who reads files that do not fit in memory: a dask client, or the threads of this machine."""


@explain_arguments
@remembering_its_call
@translate_keywords
def identify(
    data: Any,
    actions: Any = None,
    *,
    test: TestName = "auto",
    rule: RuleName = "simplified",
    significance: float = 0.05,
    correction: Correction | Literal["paper"] = "holm",
    clusters: ClusterKind = "auto",
    seed: int = 0,
    paper_rule: bool = False,
    firth: bool = False,
    **source: Unpack[SourceOptions],
) -> Identification:
    """Test which features an agent's logged actions depend on, or which parameters of its policy it controls.

    Fits a policy, checks its assumptions, tests one hypothesis a group ("not used"), and bounds the probability of any
    false "used".

    Parameters
    ----------
    data : array_like of shape (n_rows, n_features), table, path, pattern, list of paths or Sample
        The states; a polars or pandas table or a file also holds the actions. What is too large for memory is read in
        passes.
    actions : array_like of shape (n_rows,) or (n_rows, n_actions), or names of columns, optional
        Text, booleans and integers are discrete actions, other numbers continuous.
    test : {"auto", "wilks", "firth", "lean", "robust", "mixed", "bootstrap", "universal", "eprocess", "mixture"}
        "auto": the likelihood-ratio test if the data pass all model checks, else a test with fewer assumptions.
    rule : {"simplified", "combinatorial"}
        One test a group; or all minimal sets of groups that explain the actions, by closed testing.
    significance : float
        The accepted probability of any false "used".
    correction : {"holm", "bonferroni", "bh", "paper"}
        For the number of tests. "bh" bounds the expected share of false ones instead; "paper" splits as the paper does.
    clusters : {"auto", "rows", "blocks", "episodes"}
        What the test `lean` takes as independent of each other; by default what the data show. "blocks" are runs of rows
        as long as the data show, never single rows.
    seed : int
        Of whatever is drawn.
    paper_rule, firth : bool
        Other words for `correction="paper"` and `test="firth"`.
    **source
        Which columns are what, see `ColumnOptions`, and what is said about the policy, see `SourceOptions`.

    Returns
    -------
    Identification
        A verdict, a p-value and an effect for each group, and what they rest on.

    Raises
    ------
    InputError
        If data or options are invalid or contradict each other.

    Examples
    --------
    >>> import numpy as np, policyspace
    >>> states = np.random.default_rng(0).normal(size=(300, 2))
    >>> actions = states[:, 0] + np.random.default_rng(1).normal(size=300)
    >>> policyspace.identify(states, actions, features=["speed", "noise"]).selected
    ('speed',)
    """
    options = TestOptions.of(test, rule, significance, correction, clusters, seed, paper_rule, firth)
    return identify_in(*bind(request_of(data, actions, **source)), options)


def request_of(data: Any, actions: Any = None, **source: Unpack[SourceOptions]) -> Request:
    """All that is said about data and policy as one object."""
    words: dict[str, Any] = dict(source)
    spec = PolicySpec(**{field.name: words.pop(field.name) for field in fields(PolicySpec) if field.name in words})
    return Request.of(data, actions, spec, **words)


def bind(request: Request, stated: bool = False) -> tuple[PolicySpace, Sample]:
    """The policy space and the rows that a request stands for; a space that nobody stated is a guess, unless `stated`."""
    sample, spec = request.sample(), request.policy or PolicySpec()
    draws = sample.origin.draws
    if draws is not None and spec.groups is None and not isinstance(spec.policy, PolicySpace | PolicySpec):
        known = {*sample.names, *sample.blocks}
        together = {group: features for group, features in draws.groups.items() if known.issuperset(features)}
        spec = replace(spec, groups=together)
    sample = with_rows_that_weigh(sample)
    sample = with_features_that_vary(sample, spec)

    def noise_of(network: Network) -> np.ndarray:
        from policyspace.families.network_likelihood import residual_covariance  # only networks need it

        names, actions = network.feature_names, network.action_names
        return residual_covariance(names, actions, network.hidden, sample.features, sample.actions)

    space = spec.bind(sample).with_noise(noise_of)
    if sample.origin.formula is not None:
        space = space.with_interactions(sample.origin.formula.interactions)
    if not space.tested:
        raise InputError("every group is assumed: nothing is left to test, so assume fewer.")
    return (space if stated or spec.stated or recorded_policy(sample) else space.as_guess()), sample


def with_rows_that_weigh(sample: Sample) -> Sample:
    """The rows whose weight is not 0; without weights, if all rows weigh the same as themselves."""
    if sample.weights is None:
        return sample
    weights = sample.weights
    if sample.in_memory and not weights.all():
        sample = sample.take(np.flatnonzero(weights))
    counted = sample.origin.weight_type is None and bool((weights[weights > 0] == 1).all())
    return replace(sample, weights=None) if counted else sample


def with_features_that_vary(sample: Sample, spec: PolicySpec) -> Sample:
    """Without features of one value, which no test looks at: the intercept stands for them already.

    They stay where something is said of single columns, or of a policy without an intercept: then they have a meaning.
    """
    of_columns = isinstance(spec.groups, Mapping) or spec.fixed is not None or len(spec.assume) > 0
    of_data = sample.origin.formula is not None or sample.origin.draws is not None or bool(recorded_policy(sample))
    whole = isinstance(spec.policy, PolicySpace | PolicySpec) or spec.policy == "choice"
    if of_columns or of_data or whole or spec.intercept is False or not sample.in_memory:
        return sample
    features, levels = sample.features, {name for block in sample.blocks.values() for name in block}
    still = (features == features[0]).all(axis=0) & ~np.isin(sample.names, list(levels))
    if not still.any():
        return sample
    if still.all():
        raise InputError(
            "every feature has one value in all rows, so that nothing can be said of any: record rows in which they vary."
        )
    kept = tuple(name for name, one in zip(sample.names, still, strict=True) if not one)
    gone = tuple(name for name in sample.names if name not in kept)
    return replace(
        sample, features=features[:, ~still], names=kept, origin=replace(sample.origin, constant_features=gone)
    )


def identify_in(
    space: PolicySpace, sample: Sample, options: TestOptions | None = None, check_model: bool = True
) -> Identification:
    """The answer for a space and its rows; without `check_model` the agent is taken to be one of the space."""
    with single_threaded_blas():
        likelihood = likelihood_of(space, sample)
    return identify_by_likelihood(likelihood, sample, options or TestOptions(), check_model)


@single_threaded_blas()
def identify_by_likelihood(
    likelihood: Likelihood, sample: Sample, options: TestOptions, check: bool = True
) -> Identification:
    """The same from a likelihood that is already made."""
    if options.rule == "combinatorial" and likelihood.space.interactions:
        raise InputError(
            "the combinatorial rule takes every set of terms, also an interaction without what it is made of, found a "
            "formula with interactions or powers: use the simplified rule, or a formula without them."
        )
    if likelihood.penalised:
        options = replace(options, test="firth")
    first = likelihood

    @cache
    def lean() -> LeanTest:
        return cast(LeanTest, support_test(first, sample, replace(options, test="lean")))

    @cache
    def checked(of_form: bool = True) -> ModelCheck:
        if not check:
            return unchecked("the agent is taken to be one of the policy space")
        return check_model(first, sample, of_form)

    choice = choose(options, likelihood, sample, lean, checked)
    likelihood = likelihood.with_penalty() if choice.name == "firth" else likelihood
    decider = lean() if choice.name == "lean" else support_test(likelihood, sample, replace(options, test=choice.name))
    found = (
        each_group_alone(decider, options.significance, options.one_by_one)
        if options.rule == "simplified"
        else search_supports(decider, options.significance, options.of_paper)
    )
    verdicts = apply_withholding(decider, options.significance, found)
    answer = conclude(sample, likelihood, decider, verdicts, checked("form" in decider.assumes), options, choice)
    if options.test != "auto" or not check or not _order_matters(answer, likelihood.space, sample):
        return answer
    other = identify_in(first.space, without_order(sample), options)
    then = other.sentence[:1].lower() + other.sentence[1:]
    words = (
        "rows depend on their neighbours; if their order means nothing, as in a table of people, say so (exchangeable=True, "
        f"--rows-are exchangeable): then {then}"
    )
    return replace(answer, warnings=(*answer.warnings, words))


MOST_WITHOUT_ORDER = 20_000
"""Rows beyond which nobody waits for an answer that was not asked for."""


def _order_matters(answer: Identification, space: PolicySpace, sample: Sample) -> bool:
    """Whether rows of which nobody said that they have an order depend on their neighbours."""
    origin = sample.origin
    named = sample.episodes is not None or sample.subjects is not None or sample.weights is not None
    a_log = origin.environment or origin.agent or origin.world or origin.lagged_actions or origin.lags_of_inputs
    if (
        named
        or a_log
        or not space.guess
        or not sample.in_memory
        or origin.exchangeable
        or sample.num_rows > MOST_WITHOUT_ORDER
    ):
        return False
    dependent = any(one.name == "independent rows" and one.status == "violated" for one in answer.assumptions)
    return dependent or answer.clusters.kind == "blocks"


@explain_arguments
def simplified(
    space: PolicySpace,
    demonstrations: Sample,
    significance: float = 0.05,
    correction: Correction = "holm",
    firth: bool = False,
    test: TestName = "auto",
    seed: int = 0,
    clusters: ClusterKind = "auto",
    checked: bool = True,
) -> Identification:
    """Rule 2: one test a group, Î = {i : λ_i > c}; family-wise error ≤ `significance` by Holm or Bonferroni.

    Parameters
    ----------
    space : PolicySpace
        The policies that the agent is taken to be one of.
    demonstrations : Sample
        The rows.
    significance : float
        The accepted probability of any false "used".
    correction : {"holm", "bonferroni", "bh"}
        For the number of tests.
    firth : bool
        Another word for `test="firth"`.
    test, seed
        As in `identify`.
    clusters : {"auto", "rows", "blocks", "episodes"}
        What the test `lean` takes as independent of each other.
    checked : bool
        Whether the data are asked if they contradict the space; else the agent is taken to be one of it.

    Returns
    -------
    Identification
        A verdict, a p-value and an effect for each group.

    Raises
    ------
    InputError
        If the space does not fit the data, or the words contradict each other.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> states = np.random.default_rng(0).normal(size=(300, 2))
    >>> actions = states[:, 0] + np.random.default_rng(1).normal(size=300)
    >>> sample = policyspace.Sample(states, actions, names=["speed", "noise"])
    >>> policyspace.simplified(policyspace.GaussianLinear(sample.names), sample).selected
    ('speed',)
    """
    options = TestOptions.of(test, "simplified", significance, correction, clusters, seed, firth=firth)
    return identify_in(space, demonstrations, options, checked)


@explain_arguments
def combinatorial(
    space: PolicySpace,
    demonstrations: Sample,
    significance: float = 0.05,
    paper_rule: bool = False,
    firth: bool = False,
    test: TestName = "auto",
    seed: int = 0,
    clusters: ClusterKind = "auto",
    checked: bool = True,
) -> Identification:
    """Rule 1: all minimal supports, by closed testing or as the paper does.

    Parameters
    ----------
    space : PolicySpace
        The policies that the agent is taken to be one of.
    demonstrations : Sample
        The rows.
    significance : float
        The accepted probability of any false "used".
    paper_rule : bool
        Whether every support is tested at δ/2^d, with a check of its children, in place of closed testing.
    firth : bool
        Another word for `test="firth"`.
    test, seed
        As in `identify`.
    clusters : {"auto", "rows", "blocks", "episodes"}
        What the test `lean` takes as independent of each other.
    checked : bool
        Whether the data are asked if they contradict the space; else the agent is taken to be one of it.

    Returns
    -------
    Identification
        A verdict, a p-value and an effect for each group.

    Raises
    ------
    InputError
        If the space does not fit the data, or the words contradict each other.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> states = np.random.default_rng(0).normal(size=(300, 2))
    >>> actions = states[:, 0] + np.random.default_rng(1).normal(size=300)
    >>> sample = policyspace.Sample(states, actions, names=["speed", "noise"])
    >>> policyspace.combinatorial(policyspace.GaussianLinear(sample.names), sample).supports
    (('speed',),)
    """
    options = TestOptions.of(test, "combinatorial", significance, "holm", clusters, seed, paper_rule, firth)
    return identify_in(space, demonstrations, options, checked)


# -- Each subject, session or condition alone, all of them beside each other, and all together.

MOST = 500
"""Subjects that are identified one by one: a column with more values is more likely something else."""

BROKEN = "rows of other values between"
"""The name of a column that is made here."""


@final
@dataclass(frozen=True)
class BySubject(Answer):
    """The answers by name; of some nothing can be said, in `refused` stands why; `pooled` is the answer of all together.

    Each subject is tested at `significance` divided by their number, so that the chance of any false "used" in the whole
    table is at most `significance`; the pooled answer has a guarantee of its own.
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
        return list(dict.fromkeys(one.group for answer in answers for one in answer.groups))

    def users(self, group: str) -> list[str]:
        """The subjects that are shown to use a group."""
        return [name for name, answer in self.answers.items() if group in answer.selected]

    @property
    def sentence(self) -> str:
        """Of how many subjects each group is shown to be used."""
        shown = [f"{group} by {len(self.users(group))}" for group in self.groups]
        return f"Of {len(self.answers)} values of {self.by}, used: {', '.join(shown)}."

    def table(self) -> TextTable:
        """One row a subject, one column a group, then what the answer rests on; the last row is all together."""
        rows = [[name, *self._cells(self.answers[name])] for name in self.answers]
        if self.pooled is not None:
            rows.append(["all together", *self._cells(self.pooled)])
        return TextTable((self.by, "rows", *self.groups, "test", "guarantee"), rows)

    def _cells(self, answer: Identification) -> list[str]:
        found = {one.group: one for one in answer.groups}
        cells = [
            f"{found[g].verdict} ({_short(found[g].adjusted_p_value)})" if g in found else "–" for g in self.groups
        ]
        return [str(answer.data.num_rows), *cells, answer.test.name, "yes" if answer.guarantee else "no"]

    def notes(self) -> list[str]:
        """What must be read with the table."""
        share = f"{self.significance:g}/{len(self.answers) + len(self.refused)}"
        lines = [
            f"In brackets p-values adjusted for the groups of their row; each {self.by} is tested at {share}, so that the "
            f"chance of any false 'used' in all rows above the last is at most {self.significance:g}, where guaranteed."
        ]
        if self.pooled is not None:
            guarantee = self.pooled.guarantee
            lines.append(
                f"No guarantee for all together: {self.pooled.why_no_guarantee}."
                if guarantee is None
                else f"Guarantee for all together: {guarantee.text}"
            )
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


class IdentifyOptions(SourceOptions, total=False):
    """Every word of `identify` beside data and actions."""

    test: TestName
    rule: RuleName
    significance: float
    correction: Correction | Literal["paper"]
    clusters: ClusterKind
    seed: int
    paper_rule: bool
    firth: bool


@explain_arguments
@translate_keywords
def identify_by(
    data: Any,
    by: str,
    actions: Any = None,
    *,
    told: Mapping[str, Any] | None = None,
    **options: Unpack[IdentifyOptions],
) -> BySubject:
    """`identify` for each value of one column alone, and for all rows together.

    All rows together are tested by cluster: by the column `subjects`, or by `by` itself.

    Parameters
    ----------
    data : table or path
        States, actions and the column `by`.
    by : str
        The column whose values are compared: subjects, sessions, conditions.
    actions : str or list of str, optional
        The columns of actions.
    told : dict, optional
        Other words of `identify`, as a table.
    **options
        The words of `identify`; `significance` bounds the error over all values together.

    Returns
    -------
    BySubject
        An answer for each value, and one for all rows.

    Raises
    ------
    InputError
        If the column has fewer than 2 or more than 500 values, or no value could be tested.

    Examples
    --------
    >>> from policyspace.data import trials
    >>> found = identify_by(trials(), "mouse", "choice", features=["contrast", "tone"], episodes="session", lags=1)
    >>> len(found.users("contrast"))
    10
    """
    words: dict[str, Any] = {"actions": actions, **options, **(told or {})}
    testing = {name: words.pop(name) for name in signature(TestOptions.of).parameters if name in words}
    return identify_each(request_of(data, **words), by, TestOptions.of(**testing))


def identify_each(request: Request, by: str, options: TestOptions) -> BySubject:
    """The answers for each value of a column, of which each is tested at a share of δ, and for all rows together."""
    if options.correction == "bh":
        raise InputError(
            "many subjects are tested at a share of δ each, which the correction 'bh' does not bound: use 'holm'."
        )
    frame, roles = (
        table_of(request.data) if isinstance(request.data, str | Path) else (DataTable.of(request.data).frame, None)
    )
    if roles is not None and request.actions is None and request.columns.get("formula") is None:
        known: dict[str, Any] = {"features": list(roles.features), "episodes": roles.episode, "weights": roles.weight}
        known["subjects"] = roles.subject
        known |= {word: value for word, value in request.columns.items() if value is not None}
        request = replace(request, actions=list(roles.action)).with_columns(**known)
    episodes, subjects = request.columns.get("episodes"), request.columns.get("subjects")
    parts = _parts(frame, by)
    _check_roles(frame, by, request)
    share = replace(options, significance=options.significance / len(parts))
    answers, refused = dict[str, Identification](), dict[str, str]()
    for value, part in parts.items():
        clusters = subjects if subjects not in (None, by) and part[subjects].n_unique() > 1 else None
        useless = [name for name in (by, subjects) if name not in (None, clusters, episodes)]
        rows = replace(request, data=part.drop(useless, strict=False)).with_columns(subjects=clusters)
        try:
            answers[value] = identify_in(*bind(rows), share)
        except InputError as error:
            refused[value] = str(error)
    if not answers:
        raise InputError(f"no value of '{by}' could be tested alone: {next(iter(refused.values()))}")
    together = frame if subjects in (None, by) or by == episodes else frame.drop(by)
    everyone = replace(request, data=together).with_columns(subjects=subjects or by)
    try:
        return BySubject(by, options.significance, answers, refused, identify_in(*bind(everyone), options))
    except InputError as error:
        return BySubject(by, options.significance, answers, refused, None, str(error))


def _parts(frame: "polars.DataFrame", by: str) -> dict[str, "polars.DataFrame"]:
    """The rows of each value of a column, in the order in which the values first appear."""
    import polars

    DataTable(frame).only([by])
    if frame[by].dtype.is_nested() or frame[by].dtype in (polars.Object, polars.Duration):
        raise InputError(f"column '{by}' must hold labels, found the type {frame[by].dtype}: name another with --by.")
    labels = frame[by].cast(str)
    if labels.null_count():
        raise InputError(f"column '{by}' must be complete, found {labels.null_count()} missing values: fill them.")
    values = labels.unique(maintain_order=True).to_list()
    if not 2 <= len(values) <= MOST:
        raise InputError(f"2 to {MOST} values of '{by}' can be compared, found {len(values)}: choose another column.")
    return {value: frame.filter(labels == value) for value in values}


def _check_roles(frame: "polars.DataFrame", by: str, request: Request) -> None:
    """What is compared plays no other role, and with lags the rows of one value follow each other."""
    said = request.columns
    for word, names in (
        ("actions", request.actions),
        ("features", said.get("features")),
        ("weights", said.get("weights")),
    ):
        if by == names or (isinstance(names, list | tuple) and by in names):
            raise InputError(f"column '{by}' says what is compared, found it among the {word} too: leave it out there.")
    subjects = said.get("subjects")
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


def _short(p: float) -> str:
    return f"{p:.3f}" if p >= 1e-3 else f"{p:.0e}"
