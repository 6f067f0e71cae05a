"""The policy 'any': columns in groups and nothing else, so that its answer is that of the lean test itself."""

import math

import numpy as np
import pytest

from policyspace import InputError, Sample, identify, likelihood_of
from policyspace.families import ModelFree
from policyspace.inference import ScoreTest

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 4))
FORCE = X[:, 0] * X[:, 1] + 0.5 * RNG.normal(size=300)
NAMES = ("a", "b", "c", "d")


def test_groups_hold_columns_and_no_parameters():
    space = ModelFree(NAMES, groups={"pair": ["d", "a"]}, assume=["c"])
    assert [(group.name, group.assumed) for group in space.groups] == [("pair", False), ("b", False), ("c", True)]
    assert space.group_columns() == {0: (0, 3), 1: (1,), 2: (2,)}
    assert (space.num_parameters, space.tested) == (0, (0, 1))
    blocked = ModelFree(("a=u", "a=v", "b"), blocks={"a": ("a=u", "a=v")})
    assert blocked.group_columns() == {0: (0, 1), 1: (2,)}


def test_it_waits_for_its_data_and_is_no_model():
    data = Sample.from_arrays(X, FORCE, NAMES)
    space = ModelFree(assume=["a"]).bind(data)
    assert space.feature_names == NAMES
    assert space.mean(np.zeros(0), X) is None
    for call in (space.sample, space.log_prob):
        with pytest.raises(InputError, match="'any' is no model"):
            call(np.random.default_rng(0), np.zeros(0), X)
    with pytest.raises(InputError, match="planning are for linear policies"):
        space.as_linear("theory and planning")
    with pytest.raises(InputError, match="no parameters, found the groups 'hidden'"):
        ModelFree(NAMES, groups="hidden")


def test_nothing_is_fitted():
    data = Sample.from_arrays(X, FORCE, NAMES)
    likelihood = likelihood_of(ModelFree(NAMES), data)
    assert math.isnan(likelihood.full.log_likelihood)
    assert (likelihood.full.theta.size, likelihood.information().shape) == (0, (0, 0))
    with pytest.raises(InputError, match="must be the same, in the same order"):
        likelihood_of(ModelFree(NAMES[::-1]), data)


def test_the_answer_is_that_of_the_lean_test():
    direct = ScoreTest(X, FORCE, [(0, 3), (1,), (2,)], assume=[2]).local_p_values([frozenset({1}), frozenset({0})])
    made = identify(X, FORCE, features=NAMES, policy="any", groups={"pair": ["a", "d"]}, assume=["c"])
    assert [test.group for test in made.groups] == ["pair", "b"]
    assert [test.p_value for test in made.groups] == direct
    assert made.support == ("pair", "b", "c")
    assert identify(X, FORCE, features=NAMES, policy=ModelFree()).selected == ("a", "b")
