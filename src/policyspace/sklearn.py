"""scikit-learn's way to ask: a feature selector that keeps the columns which the agent is shown to use.

Needs scikit-learn: `pip install 'policyspace[sklearn]'`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self, final

import numpy as np

from policyspace.data.sample import Sample
from policyspace.data.schema import free_name
from policyspace.data.validation import Missing
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace
from policyspace.families.registry import Policy
from policyspace.identification import bind, identify_in, request_of
from policyspace.inference.base import ClusterKind, Correction, TestName, TestOptions

try:
    from sklearn.base import BaseEstimator
    from sklearn.feature_selection import SelectorMixin
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "policyspace.sklearn needs scikit-learn, which is not installed: pip install 'policyspace[sklearn]'."
    ) from error


@final
class PolicySelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Keeps the columns of X that the agent whose actions are y is shown to use.

    The parameters are the settings of `policyspace.identify` and mean the same; rows are said in `fit`. Columns are called
    as in X, or x0, x1, … . The chance of keeping any column that the agent does not use is at most `significance`, under
    the assumptions that `identification_.guarantee` names. `keep_undecided` keeps also the columns of which the
    combinatorial rule says that some are needed, but not which.

    After `fit`, `identification_` is the whole answer; `scores_` and `pvalues_` are the statistic and the adjusted p-value
    of every column's group: a column is kept where its p-value is at most `significance`. Columns in `assume` are kept
    untested, with p-value 0.
    """

    def __init__(
        self,
        *,
        policy: Policy = None,
        hidden: Sequence[int] | None = None,
        covariance: Any = None,
        groups: Any = None,
        assume: Sequence[str] = (),
        fixed: Any = None,
        intercept: bool | None = None,
        reference: Any = None,
        levels: Sequence[Any] | None = None,
        categorical: Sequence[str] | None = None,
        missing: Missing = "error",
        weight_type: Literal["frequency", "sampling"] | None = None,
        exchangeable: bool | None = None,
        rule: Literal["simplified", "combinatorial"] = "simplified",
        significance: float = 0.05,
        correction: Correction = "holm",
        paper_rule: bool = False,
        firth: bool = False,
        test: TestName = "auto",
        seed: int = 0,
        clusters: ClusterKind = "auto",
        keep_undecided: bool = False,
    ) -> None:
        self.policy = policy
        self.hidden = hidden
        self.covariance = covariance
        self.groups = groups
        self.assume = assume
        self.fixed = fixed
        self.intercept = intercept
        self.reference = reference
        self.levels = levels
        self.categorical = categorical
        self.missing = missing
        self.weight_type = weight_type
        self.exchangeable = exchangeable
        self.rule = rule
        self.significance = significance
        self.correction = correction
        self.paper_rule = paper_rule
        self.firth = firth
        self.test = test
        self.seed = seed
        self.clusters = clusters
        self.keep_undecided = keep_undecided

    def fit(self, X: Any, y: Any, groups: Any = None, weights: Any = None, subjects: Any = None) -> Self:
        """Ask which columns of X [n, q] the actions y [n] or [n, k] depend on.

        `groups` [n] says which episode a row is from, as scikit-learn calls what belongs together; `subjects` [n] which
        person or animal; `weights` [n] are frequencies, so that a row of weight 2 is two rows, unless
        `weight_type` is "sampling".
        """
        finite = True if self.missing == "error" else "allow-nan"
        X, y = validate_data(self, X, y, multi_output=True, ensure_min_samples=2, ensure_all_finite=finite)
        if y.dtype.kind == "O":
            type_of_target(y, raise_unknown=True)  # anything but labels is refused in scikit-learn's words
        y = y.ravel() if y.ndim == 2 and y.shape[1] == 1 else y
        names = [str(name) for name in getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])]
        options = TestOptions.of(
            self.test, self.rule, self.significance, self.correction, self.clusters, self.seed, self.paper_rule,
            self.firth,
        )  # fmt: skip
        rows = {"episodes": groups, "weights": weights, "subjects": subjects}
        about_policy = (
            "policy",
            "hidden",
            "covariance",
            "groups",
            "assume",
            "fixed",
            "intercept",
            "reference",
            "levels",
            "exchangeable",
        )
        said = {name: getattr(self, name) for name in about_policy}
        if weights is not None:
            said["weight_type"] = self.weight_type
        if self.categorical is None and self.missing == "error":
            request = request_of(X, y, features=names, **rows, **said)
        else:
            in_table = _in_one_table(X, y, names, rows)
            request = request_of(**in_table, categorical=self.categorical, missing=self.missing, **said)
        space, pairs = bind(request)
        self.identification_ = identify_in(space, pairs, options)
        self._read_answer(_columns_of_groups(space, pairs, names))
        return self

    def _read_answer(self, columns: Mapping[str, list[int]]) -> None:
        """The numbers of the groups, for each of their columns [q]."""
        answer = self.identification_
        self.scores_, self.pvalues_ = np.full(self.n_features_in_, np.inf), np.zeros(self.n_features_in_)
        for one in answer.groups:
            self.scores_[columns[one.group]], self.pvalues_[columns[one.group]] = one.statistic, one.adjusted_p_value
        self._kept = np.zeros(self.n_features_in_, dtype=bool)
        for name in answer.selected + (answer.undecided if self.keep_undecided else ()):
            self._kept[columns.get(name, [])] = True

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "identification_")
        return self._kept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags


def _in_one_table(X: np.ndarray, y: np.ndarray, names: Sequence[str], rows: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of `identify` for one table with a column for everything, which missing values and categories need."""
    import polars

    free = partial(free_name, taken=set(names))
    table = dict(zip(names, X.T, strict=True))
    actions = {free(f"action{j}" if y.ndim == 2 else "action"): column for j, column in enumerate(np.atleast_2d(y.T))}
    given = {word: (free(word), np.asarray(values)) for word, values in rows.items() if values is not None}
    frame = polars.DataFrame(table | actions | dict(given.values()), nan_to_null=True)
    said = {word: name for word, (name, _) in given.items()}
    return {"data": frame, "actions": list(actions) if y.ndim == 2 else next(iter(actions)), "features": names, **said}


def _columns_of_groups(space: PolicySpace, pairs: Sample, names: Sequence[str]) -> dict[str, list[int]]:
    """The columns of X in every group: those of a category are one column."""
    inside = space.group_columns()
    if inside is None:
        raise InputError(
            "a selector keeps or drops columns, so its groups must hold whole columns, found parameters or units of a "
            "network: leave groups out, or give {name: [columns]}."
        )
    origin = {part: name for name, parts in pairs.blocks.items() for part in parts}
    place = {name: j for j, name in enumerate(names)}
    return {
        space.groups[g].name: sorted({place[origin.get(pairs.names[c], pairs.names[c])] for c in columns})
        for g, columns in inside.items()
    }
