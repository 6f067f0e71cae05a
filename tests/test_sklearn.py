"""The selector for scikit-learn: its own checks, the same answer as `identify`, and its place among other estimators."""

import subprocess
import sys
from inspect import get_annotations, signature
from typing import get_args

import numpy as np
import pandas
import polars
import pytest
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from policyspace import InputError, identify, identify_by
from policyspace.sklearn import PolicySelector

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 4))
FORCE = X[:, 0] - 0.7 * X[:, 2] + RNG.normal(size=300)
MOVE = np.where(X[:, 1] + RNG.logistic(size=300) > 0, "left", "right")
EPISODES = np.repeat(np.arange(30), 10)
NAMES = ["speed", "angle", "wind", "a & b"]


@parametrize_with_checks(
    [
        PolicySelector(),
        PolicySelector(rule="combinatorial", keep_undecided=True),
        PolicySelector(missing="drop"),
        PolicySelector(test="wilks", correction="bonferroni", intercept=True),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_it_has_all_settings_of_identify():
    of_rows = {"features", "episodes", "weights", "subjects"}
    of_rows |= {
        "formula",
        "lags",
        "lags_of_inputs",
        "assigned",
        "offset",
        "trials",
        "na",
        "backend",
    }  # other columns than those of X, and files
    own = set(PolicySelector().get_params())
    (options,) = get_args(get_annotations(identify_by)["options"])  # every word of `identify`
    assert own == set(options.__annotations__) - of_rows | {"keep_undecided"}
    assert {"groups", "weights", "subjects"} <= set(signature(PolicySelector.fit).parameters)
    defaults = {name: p.default for name, p in signature(identify).parameters.items() if name in own}
    assert PolicySelector().get_params().items() >= defaults.items()


@pytest.mark.parametrize("rule", ["simplified", "combinatorial"])
@pytest.mark.parametrize("actions", [FORCE, MOVE, np.column_stack([FORCE, FORCE + RNG.normal(size=300)])])
@pytest.mark.parametrize("test", ["auto", "wilks", "lean"])
def test_the_answer_is_that_of_identify(rule, actions, test):
    selector = PolicySelector(rule=rule, test=test, significance=0.1).fit(X, actions, groups=EPISODES)
    answer = identify(X, actions, episodes=EPISODES, rule=rule, test=test, significance=0.1)
    assert selector.identification_.to_dict() == answer.to_dict()
    kept = [name in answer.selected for name in ("x0", "x1", "x2", "x3")]
    assert selector.get_support().tolist() == kept
    assert selector.pvalues_.tolist() == [test.adjusted_p_value for test in answer.groups]
    assert selector.scores_.tolist() == [test.statistic for test in answer.groups]
    assert np.array_equal(selector.transform(X), X[:, kept])
    assert np.array_equal(selector.inverse_transform(X[:, kept]), np.where(kept, X, 0.0))


def test_names_and_frames():
    frame = pandas.DataFrame(X, columns=NAMES)
    selector = PolicySelector().fit(frame, FORCE)
    assert selector.get_feature_names_out().tolist() == ["speed", "wind"]
    assert selector.identification_.selected == ("speed", "wind")
    shown = selector.set_output(transform="pandas").transform(frame)
    assert isinstance(shown, pandas.DataFrame) and list(shown.columns) == ["speed", "wind"]
    shown = PolicySelector().set_output(transform="polars").fit_transform(polars.DataFrame(X, NAMES), FORCE)
    assert isinstance(shown, polars.DataFrame) and shown.columns == ["speed", "wind"]


def test_columns_of_a_group_go_together():
    selector = PolicySelector(groups={"motion": ["x0", "x1"], "rest": ["x3"]}, assume=["x2"]).fit(X, FORCE)
    assert selector.get_support().tolist() == [True, True, True, False]
    assert selector.pvalues_[0] == selector.pvalues_[1] < 0.05 < selector.pvalues_[3]
    assert selector.pvalues_[2] == 0.0


def test_groups_that_are_no_columns_are_refused():
    with pytest.raises(InputError, match="whole columns"):
        PolicySelector(groups="parameter").fit(X, RNG.integers(0, 3, 300))
    with pytest.raises(NotFittedError):
        PolicySelector().get_support()


def test_what_is_not_decided_is_kept_if_wanted():
    twins = np.column_stack([X[:, 0], X[:, 0], X[:, 3]])
    narrow = PolicySelector(rule="combinatorial", test="wilks").fit(twins, FORCE)
    wide = PolicySelector(rule="combinatorial", test="wilks", keep_undecided=True).fit(twins, FORCE)
    assert narrow.get_support().tolist() == [False, False, False]
    assert wide.get_support().tolist() == [True, True, False]


def test_categories_are_one_column():
    """Against the same table as `identify` reads it."""
    gear = RNG.integers(0, 4, 300)
    force = np.array([0.0, 2.0, -1.0, 0.5])[gear] + RNG.normal(size=300)
    table = np.column_stack([X[:, 0], gear])
    selector = PolicySelector(categorical=["x1"]).fit(table, force, groups=EPISODES)
    frame = polars.DataFrame(table, ["x0", "x1"]).with_columns(a=force, e=EPISODES)
    answer = identify(frame, "a", features=["x0", "x1"], episodes="e", categorical=["x1"])
    assert selector.get_support().tolist() == [False, True]
    assert selector.pvalues_.tolist() == [test.adjusted_p_value for test in answer.groups]


def test_missing_rows_are_dropped_where_that_is_said():
    holes = X.copy()
    holes[::7, 1] = np.nan
    whole = ~np.isnan(holes[:, 1])
    dropped = PolicySelector(missing="drop", test="wilks").fit(holes, FORCE, groups=EPISODES)
    direct = PolicySelector(test="wilks").fit(X[whole], FORCE[whole], groups=EPISODES[whole])
    assert dropped.pvalues_.tolist() == direct.pvalues_.tolist()
    with pytest.raises(ValueError, match="NaN"):
        PolicySelector().fit(holes, FORCE)


def test_weights_are_counts():
    counts = RNG.integers(1, 4, 300)
    weighted = PolicySelector(test="wilks").fit(X, MOVE, weights=counts)
    repeated = PolicySelector(test="wilks").fit(np.repeat(X, counts, 0), np.repeat(MOVE, counts))
    assert weighted.pvalues_ == pytest.approx(repeated.pvalues_, rel=1e-6)


def test_in_a_pipeline_and_a_column_transformer():
    pipe = make_pipeline(StandardScaler(), PolicySelector(), LinearRegression())
    pipe.fit(X, FORCE, policyselector__groups=EPISODES)
    assert pipe[-1].coef_.shape == (2,)
    assert pipe[:-1].get_feature_names_out(NAMES).tolist() == ["speed", "wind"]
    columns = ColumnTransformer([("used", PolicySelector(), ["speed", "angle"]), ("as it is", "passthrough", ["wind"])])
    out = columns.set_output(transform="pandas").fit_transform(pandas.DataFrame(X, columns=NAMES), FORCE)
    assert list(out.columns) == ["used__speed", "as it is__wind"]


def test_episodes_are_routed_through_cross_validation():
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(PolicySelector(test="wilks").set_fit_request(groups=True), LogisticRegression())
        folds = {"cv": GroupKFold(3), "params": {"groups": EPISODES}}
        assert cross_val_score(pipe, X, MOVE, **folds).min() > 0.5
        fitted = cross_validate(pipe, X, MOVE, return_estimator=True, **folds)["estimator"]
    answers = [one[0].identification_ for one in fitted]
    assert [answer.data.num_episodes for answer in answers] == [20, 20, 20], (
        "whole episodes, of the training rows alone"
    )
    assert [answer.data.num_rows for answer in answers] == [200, 200, 200]


def test_settings_are_searched():
    pipe = make_pipeline(PolicySelector(test="wilks"), LinearRegression())
    search = GridSearchCV(pipe, {"policyselector__significance": [1e-25, 0.05]}, cv=3).fit(X, FORCE)
    assert search.best_params_ == {"policyselector__significance": 0.05}


def test_without_scikit_learn_one_sentence_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import policyspace; policyspace.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'policyspace[sklearn]'" in done.stderr.splitlines()[-1]
