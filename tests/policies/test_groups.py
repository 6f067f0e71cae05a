"""Groups: a partition of θ, whatever way it is asked for; bad ones are said in words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyspace import GaussianLinear, InputError, SoftmaxLinear, identify
from policyspace.families import INTERCEPT

ACTIONS = ("n", "e", "s")


def table(space):
    return {group.name: group.indices for group in space.groups}


def test_a_feature_has_one_parameter_an_action_and_the_intercept_is_always_free():
    space = SoftmaxLinear(("x", "y"), ACTIONS)
    assert table(space) == {INTERCEPT: (0, 3), "x": (1, 4), "y": (2, 5)}
    assert [group.assumed for group in space.groups] == [True, False, False]
    assert space.tested == (1, 2)


def test_single_parameters_are_named_by_feature_and_action():
    space = SoftmaxLinear(("x", "y"), ACTIONS, groups="parameter", intercept=False)
    assert table(space) == {"x[n]": (0,), "x[e]": (2,), "y[n]": (1,), "y[e]": (3,)}
    assert table(GaussianLinear(("x", "y"), groups="parameter")) == {INTERCEPT: (0,), "x": (1,), "y": (2,)}


def test_a_category_is_one_group():
    space = GaussianLinear(("x", "c=a", "c=b"), ("u", "v"), 1.0, blocks={"c": ("c=a", "c=b")})
    assert table(space) == {INTERCEPT: (0, 4), "x": (1, 5), "c": (2, 3, 6, 7)}


def test_named_groups_take_features_parameters_and_categories_and_leave_the_rest_alone():
    space = SoftmaxLinear(
        ("x", "y", "z", "c=a", "c=b"),
        ACTIONS,
        groups={"both": ["x", "c"], "part": ["y[n]"]},
        blocks={"c": ("c=a", "c=b")},
    )
    assert table(space) == {INTERCEPT: (0, 6), "both": (1, 4, 5, 7, 10, 11), "part": (2,), "y": (8,), "z": (3, 9)}


@given(
    q=st.integers(1, 5),
    k=st.integers(1, 3),
    intercept=st.booleans(),
    by=st.sampled_from(["feature", "parameter", "named"]),
    data=st.data(),
)
def test_groups_partition_the_parameters(q, k, intercept, by, data):
    names = tuple(f"f{j}" for j in range(q))
    groups = by
    if by == "named":
        inside = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        groups = {"mine": inside}
    space = GaussianLinear(names, tuple(f"a{i}" for i in range(k)), 1.0, groups=groups, intercept=intercept)
    together = sorted(i for group in space.groups for i in group.indices)
    assert together == list(range(k * (q + intercept))) == list(range(space.num_parameters))


def test_free_is_the_mask_of_a_support():
    space = SoftmaxLinear(("x", "y", "z"), ACTIONS, assume=("z",))
    np.testing.assert_array_equal(space.free_mask(frozenset({1})), [1, 1, 0, 1, 1, 1, 0, 1])
    assert space.named(frozenset({1})) == ["x", "z"]
    assert space.tested == (1, 2)
    assert space.free_mask(space.full_support).all()


def test_always_may_name_features_groups_and_parameters():
    by_group = SoftmaxLinear(("x", "y"), ACTIONS, groups={"g": ["x", "y"]}, assume=("g",))
    assert by_group.tested == ()
    by_parameter = SoftmaxLinear(("x", "y"), ACTIONS, groups="parameter", assume=("x[n]",))
    assert [by_parameter.groups[g].name for g in by_parameter.tested] == ["x[e]", "y[n]", "y[e]"]
    by_feature = SoftmaxLinear(("x", "y"), ACTIONS, groups="parameter", assume=("x",))
    assert [by_feature.groups[g].name for g in by_feature.tested] == ["y[n]", "y[e]"]


def test_fixed_values_by_number_by_name_and_by_parameter():
    names = ("x", "y")
    np.testing.assert_array_equal(SoftmaxLinear(names, ACTIONS, fixed={"y": 2.0}).fixed, [0, 0, 2, 0, 0, 2])
    np.testing.assert_array_equal(SoftmaxLinear(names, ACTIONS, fixed={"y[e]": 2.0}).fixed, [0, 0, 0, 0, 0, 2])
    np.testing.assert_array_equal(SoftmaxLinear(names, ACTIONS, fixed=np.arange(6.0)).fixed, np.arange(6))
    grouped = SoftmaxLinear(names, ACTIONS, groups={"g": ["x", "y"]}, fixed={"g": -1.0})
    np.testing.assert_array_equal(grouped.fixed, [0, -1, -1, 0, -1, -1])


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"groups": {"g": ["x", "nope"]}}, "nope"),
        ({"groups": {"g": ["x"], "h": ["x", "y"]}}, "share a parameter"),
        ({"groups": {"g": ["x"], "h": ["x[n]"]}}, "share a parameter"),
        ({"groups": {"g": []}}, "empty"),
        ({"groups": {"g": "xy"}}, "list of names"),
        ({"groups": {"y": ["x"]}}, "rename"),
        ({"groups": "features"}, "'feature', 'parameter'"),
        ({"assume": ("speed",)}, "speed"),
        ({"groups": {"g": ["x", "y"]}, "assume": ("x",)}, "in part only"),
        ({"fixed": [1.0, 2.0]}, "6 numbers"),
        ({"fixed": {"q": 1.0}}, "'q'"),
        ({"fixed": np.inf}, "finite"),
        ({"blocks": {"x": ("y",)}}, "occurs twice"),
    ],
)
def test_bad_groups_are_said_in_words(settings, found):
    with pytest.raises(InputError, match=found):
        SoftmaxLinear(("x", "y"), ACTIONS, **settings)


def test_the_intercepts_name_is_taken():
    with pytest.raises(InputError, match="rename"):
        GaussianLinear(("x", INTERCEPT))
    with pytest.raises(InputError, match="occurs twice"):
        GaussianLinear(("x", "x"))


def test_groups_by_action_are_the_rows_of_the_weights():
    """Actuation: whether a component of the action is moved by any feature, against two fits by least squares."""
    space = GaussianLinear(("a", "b"), ("push", "turn"), np.eye(2), groups="action")
    assert {g.name: g.indices for g in space.groups if g.name != "intercept"} == {"push": (1, 2), "turn": (4, 5)}
    rng = np.random.default_rng(5)
    x = rng.normal(size=(80, 2))
    actions = np.column_stack([x @ [0.4, 0.1], np.zeros(80)]) + rng.normal(size=(80, 2))
    answer = identify(x, actions, features=["a", "b"], policy=space)
    design = np.column_stack([np.ones(80), x])
    for row, group in enumerate(answer.groups):
        y = actions[:, row]
        left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        assert group.statistic == pytest.approx(np.sum((y - y.mean()) ** 2) - np.sum(left**2))
    assert [g.group for g in answer.groups] == ["push", "turn"]
    boltzmann = SoftmaxLinear(("a", "b"), ("left", "right", "stay"), groups="action")
    assert [g.name for g in boltzmann.groups] == ["intercept", "left", "right"]


def test_groups_by_action_with_an_estimated_covariance_are_a_sentence():
    rng = np.random.default_rng(5)
    x, actions = rng.normal(size=(80, 2)), rng.normal(size=(80, 2))
    for groups in ("action", "parameter"):
        with pytest.raises(InputError, match="give the covariance, or group by feature"):
            identify(x, actions, features=["a", "b"], policy="gaussian", groups=groups)
