"""Demonstrations are validated at birth: what goes in comes out, and bad data is one sentence."""

import pickle
import subprocess
import sys
from datetime import date
from decimal import Decimal

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from policyspace import InputError, Sample
from policyspace.data import Origin

X = np.arange(12.0).reshape(4, 3)
LABELS = ["left", "right", "left", "stay"]


def sentence(error: pytest.ExceptionInfo[InputError]) -> str:
    """The message, which must be one line."""
    text = str(error.value)
    assert text.strip() and "\n" not in text
    return text


# --- arrays -------------------------------------------------------------------------------------------------------


def test_text_actions_become_codes_of_sorted_labels():
    made = Sample.from_arrays(X, LABELS)
    assert made.discrete and made.action_names == ("left", "right", "stay")
    assert made.actions.tolist() == [0, 1, 0, 2] and made.actions.dtype == np.int64
    assert made.names == ("x0", "x1", "x2") and made.features.dtype == np.float64
    assert made.num_rows == 4 and made.num_episodes is None and made.total_weight == 4.0


def test_whole_numbers_sort_as_numbers_and_booleans_as_false_true():
    assert Sample.from_arrays(X, [10, 9, 2, 10]).action_names == ("2", "9", "10")
    assert Sample.from_arrays(X, [True, False, True, True]).action_names == ("False", "True")


def test_floats_are_continuous_and_either_way_can_be_forced():
    floats = Sample.from_arrays(X, [0.0, 1.0, 0.0, 2.0])
    assert not floats.discrete and floats.actions.shape == (4, 1) and floats.action_names == ("action",)
    assert floats.maybe_discrete
    forced = Sample.from_arrays(X, [0.0, 1.0, 0.0, 2.0], discrete=True, reference=1.0)
    assert forced.discrete and forced.action_names == ("0", "2", "1") and not forced.maybe_discrete
    numbers = Sample.from_arrays(X, [0, 1, 0, 2], discrete=False)
    assert not numbers.discrete and numbers.actions[:, 0].tolist() == [0.0, 1.0, 0.0, 2.0]


def test_looks_discrete_needs_few_whole_values_in_one_column():
    assert not Sample.from_arrays(X, [0.0, 0.5, 0.0, 2.0]).maybe_discrete
    assert not Sample.from_arrays(np.ones((11, 1)), np.arange(11.0)).maybe_discrete
    assert Sample.from_arrays(np.ones((11, 1)), np.arange(11.0) % 10).maybe_discrete
    assert not Sample.from_arrays(X, X[:, :2]).maybe_discrete


def test_several_columns_are_continuous():
    made = Sample.from_arrays(X, X[:, :2])
    assert made.actions.shape == (4, 2) and made.action_names == ("action_0", "action_1")
    assert Sample.from_arrays(X, X[:, :2], action_names=["gas", "wheel"]).action_names == ("gas", "wheel")
    assert Sample.from_arrays(X, np.array([[0], [1], [0], [2]])).discrete


def test_action_names_order_labels_or_name_codes():
    ordered = Sample.from_arrays(X, LABELS, action_names=["stay", "left", "right"])
    assert [ordered.action_names[a] for a in ordered.actions] == LABELS
    assert ordered.action_names == ("stay", "left", "right")
    named = Sample.from_arrays(X, [0, 1, 0, 2], action_names=["left", "right", "stay"])
    assert [named.action_names[a] for a in named.actions] == LABELS
    labels = Sample.from_arrays(X, [1, 0, 0, 1], action_names=["1", "0"])
    assert [labels.action_names[a] for a in labels.actions] == ["1", "0", "0", "1"]


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=4, max_size=30), st.sampled_from(["a", "b", "c", "d"]))
def test_reference_moves_last_and_rows_keep_their_labels(labels, reference):
    labels = [*"abcd", *labels]
    made = Sample.from_arrays(np.ones((len(labels), 1)), labels, reference=reference)
    assert made.action_names[-1] == reference
    assert [made.action_names[a] for a in made.actions] == labels
    assert list(made.action_names[:-1]) == sorted(made.action_names[:-1])
    again = made.with_reference("a")
    assert [again.action_names[a] for a in again.actions] == labels and again.action_names[-1] == "a"


@given(st.lists(st.sampled_from([7, 3, 5]), min_size=1, max_size=20), st.sampled_from([int, str, float, bytes]))
def test_episodes_count_from_zero_by_first_appearance(labels, kind):
    given_labels = [str(label).encode() if kind is bytes else kind(label) for label in labels]
    order = list(dict.fromkeys(labels))
    actions = np.arange(len(labels) + 1) % 2
    made = Sample.from_arrays(np.ones((len(labels) + 1, 1)), actions, episodes=[*given_labels, given_labels[0]])
    assert made.episodes is not None
    assert made.episodes.tolist() == [order.index(label) for label in [*labels, labels[0]]]
    assert made.num_episodes == len(order)


def test_arrays_are_copies_that_cannot_be_changed():
    features, weights = X.copy(), np.ones(4)
    made = Sample.from_arrays(features, LABELS, weights=weights, episodes=[0, 0, 1, 1])
    features[0, 0] = weights[0] = 99.0
    assert made.features[0, 0] == 0.0 and made.total_weight == 4.0
    for array in (made.features, made.actions, made.weights, made.episodes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        made.names = ("a",)


def test_pickle_returns_the_same():
    made = Sample.from_arrays(X, LABELS, blocks={"b": ["x0"]}, origin={"ground_truth": ["x0"]})
    again = pickle.loads(pickle.dumps(made))
    assert again.features.tobytes() == made.features.tobytes() and again.blocks == made.blocks
    assert again.origin == Origin(ground_truth=("x0",)) and again.action_names == made.action_names


def test_constructor_takes_codes_and_allows_an_action_that_a_simulated_agent_never_played():
    made = Sample(X, np.array([0, 1, 0, 1]), ("a", "b", "c"), ("left", "right", "stay"))
    assert made.discrete and made.action_names[-1] == "stay"
    assert Sample(X, np.array([0, 3, 0, 1])).action_names == ("0", "1", "2", "3")


def test_rows_of_weight_zero_do_not_count_as_choices():
    with pytest.raises(InputError, match="every row has the action 'left'"):
        Sample.from_arrays(X, LABELS, weights=[1, 0, 2, 0])


def test_constant_and_duplicate_features_and_fewer_rows_than_features_are_for_later_stages():
    made = Sample.from_arrays(np.ones((2, 5)), ["a", "b"])
    assert made.features.shape == (2, 5)


NAN = float("nan")
BAD_ARRAYS = {
    "no rows": ({"features": np.empty((0, 2)), "actions": []}, "at least one row"),
    "no features": ({"features": np.empty((4, 0)), "actions": LABELS}, "at least one feature"),
    "nan": ({"features": [[1, 2], [3, NAN]], "actions": [0, 1], "names": ["a", "b"]}, r"'b'.*nan in row 2"),
    "infinite": ({"features": [[1, 2], [np.inf, 3]], "actions": [0, 1], "names": ["a", "b"]}, r"'a'.*inf in row 2"),
    "missing": ({"features": [[1, None]], "actions": [0]}, "missing value in row 1"),
    "masked": ({"features": np.ma.masked_equal(X, 3.0), "actions": LABELS}, "masked"),
    "ragged": ({"features": [[1, 2], [3]], "actions": [0, 1]}, "ragged"),
    "complex": ({"features": X * 1j, "actions": LABELS}, "complex128"),
    "text": ({"features": [["1", "2"]] * 4, "actions": LABELS}, "must be numbers"),
    "dates": ({"features": np.array(["2024-01-01"] * 4, "M8[D]"), "actions": LABELS}, "datetime64"),
    "decimals": ({"features": [[Decimal(1)]] * 4, "actions": LABELS}, "Decimal"),
    "huge": ({"features": [[10**400]] * 4, "actions": LABELS}, "64-bit"),
    "cube": ({"features": np.ones((2, 2, 2)), "actions": [0, 1]}, "3 dimensions"),
    "scalar": ({"features": 1.0, "actions": [0, 1]}, "0 dimensions"),
    "lengths": ({"features": X, "actions": [0, 1]}, "found 2 and 4"),
    "names": ({"features": X, "actions": LABELS, "names": ["a"]}, "1 names for 3"),
    "twice": ({"features": X, "actions": LABELS, "names": ["a", "b", "a"]}, "'a' twice"),
    "one action": ({"features": X, "actions": ["left"] * 4}, "every row has the action 'left'"),
    "one number": ({"features": X, "actions": [0.5] * 4}, "every row has the action '0.5'"),
    "action nan": ({"features": X, "actions": [0.5, NAN, 1, 2]}, "'action'.*nan in row 2"),
    "action missing": ({"features": X, "actions": ["a", None, "b", "a"]}, "missing value in row 2"),
    "action mixture": ({"features": X, "actions": np.array(["a", 1, "b", 2], object)}, "mixture"),
    "action dates": ({"features": X, "actions": np.array(["2024-01-01"] * 4, "M8[D]")}, "datetime64"),
    "action complex": ({"features": X, "actions": X[:, 0] * 1j}, "complex128"),
    "action half": ({"features": X, "actions": [0.0, 0.5, 1, 2], "discrete": True}, "0.5 in row 2"),
    "action two": ({"features": X, "actions": X[:, :2].astype(int)}, "2 columns"),
    "action many": ({"features": np.ones((200, 1)), "actions": np.arange(200)}, "policy gaussian"),
    "action unknown": (
        {"features": X, "actions": LABELS, "action_names": ["left", "right", "sty"]},
        "did you mean 'sty'",
    ),
    "action unplayed": (
        {"features": X, "actions": LABELS, "action_names": [*LABELS[1:], "up"]},
        "'up' is never played",
    ),
    "code": ({"features": X, "actions": [0, 1, 2, 5], "action_names": ["a", "b", "c"]}, "found 5 in row 4"),
    "reference": ({"features": X, "actions": LABELS, "reference": "rigth"}, "did you mean 'right'"),
    "no reference": ({"features": X, "actions": [0.1, 1, 2, 3], "reference": "a"}, "only discrete actions"),
    "negative": ({"features": X, "actions": LABELS, "weights": [1, 1, -1, 1]}, "found -1.0 in row 3"),
    "weight nan": ({"features": X, "actions": LABELS, "weights": [1, NAN, 1, 1]}, "found nan in row 2"),
    "zeros": ({"features": X, "actions": LABELS, "weights": [0] * 4}, "only zeros"),
    "weight count": ({"features": X, "actions": LABELS, "weights": [1] * 3}, "found 3 and 4"),
    "weight shape": ({"features": X, "actions": LABELS, "weights": np.ones((4, 2))}, "2 columns"),
    "episode count": ({"features": X, "actions": LABELS, "episodes": [1] * 3}, "found 3 and 4"),
    "episode nan": ({"features": X, "actions": LABELS, "episodes": [1, NAN, 2, 2]}, "missing value in row 2"),
    "episode none": ({"features": X, "actions": LABELS, "episodes": [1, 1, None, 2]}, "missing value in row 3"),
    "episode list": ({"features": X, "actions": LABELS, "episodes": np.array([{}, {}, {}, {}])}, "must be labels"),
    "block": ({"features": X, "actions": LABELS, "blocks": {"b": ["y0"]}}, "no feature"),
    "block empty": ({"features": X, "actions": LABELS, "blocks": {"b": []}}, "at least one feature"),
    "block name": ({"features": X, "actions": LABELS, "blocks": {"x0": ["x1"]}}, "name of its own"),
    "block twice": ({"features": X, "actions": LABELS, "blocks": {"b": ["x1"], "c": ["x1"]}}, "'x1' in 'b' and 'c'"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_arrays_are_refused_in_one_sentence(case):
    arguments, match = BAD_ARRAYS[case]
    with pytest.raises(InputError, match=match) as error:
        Sample.from_arrays(**arguments)
    sentence(error)


def test_many_labels_are_kept_when_the_caller_insists_or_each_is_frequent():
    assert len(Sample.from_arrays(np.ones((200, 1)), np.arange(200), discrete=True).action_names) == 200
    assert len(Sample.from_arrays(np.ones((2000, 1)), np.arange(2000) % 150).action_names) == 150


def test_a_stray_huge_code_is_refused_at_once():
    with pytest.raises(InputError, match="action codes must be"):
        Sample(X, np.array([0, 1, 2, 10**15]))


anything = st.one_of(
    st.none(),
    st.integers(),
    st.text(max_size=3),
    hnp.arrays(
        st.one_of(hnp.scalar_dtypes(), st.just(np.dtype(object))),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
    st.lists(
        st.one_of(st.none(), st.floats(), st.integers(), st.booleans(), st.text(max_size=2), st.binary(max_size=2)),
        max_size=4,
    ),
    st.lists(st.lists(st.one_of(st.floats(), st.integers(-3, 3)), max_size=3), max_size=4),
)


@settings(max_examples=400, deadline=None)
@given(anything, anything, anything, anything, st.sampled_from([None, True, False]))
@pytest.mark.filterwarnings("ignore")
def test_any_arrays_give_demonstrations_or_an_input_error(features, actions, episodes, weights, discrete):
    try:
        made = Sample.from_arrays(features, actions, episodes=episodes, weights=weights, discrete=discrete)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert (
            np.isfinite(made.features).all() and np.isfinite(made.actions).all() and len(made.actions) == made.num_rows
        )


# --- tables -------------------------------------------------------------------------------------------------------

TABLE = {
    "speed": [1, 2, 3, 4, 5, 6],
    "lit": [True, False, True, True, False, False],
    "sky": ["sun", "rain", "snow", "sun", "rain", "sun"],
    "move": ["left", "right", "left", "stay", "right", "left"],
    "run": ["b", "b", "a", "a", "c", "b"],
    "mass": [1.0, 0.5, 1.0, 2.0, 1.0, 0.0],
}
FRAMES = {
    "polars": polars.DataFrame(TABLE),
    "lazy": polars.LazyFrame(TABLE),
    "categorical": polars.DataFrame(TABLE).with_columns(polars.col("sky", "move", "run").cast(polars.Categorical)),
    "enum": polars.DataFrame(TABLE).with_columns(polars.col("sky").cast(polars.Enum(["sun", "snow", "rain"]))),
    "pandas": pandas.DataFrame(TABLE),
    "pandas categorical": pandas.DataFrame(TABLE).astype({"sky": "category", "move": "category"}),
    "arrow": polars.DataFrame(TABLE).to_arrow(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_table_gives_the_same(kind):
    made = Sample.from_frame(FRAMES[kind], "move", episodes="run", weights="mass", reference="left")
    assert made.names == ("speed", "lit", "sky=rain", "sky=snow")
    assert made.blocks == {"sky": ("sky=rain", "sky=snow")}
    one_hot = [[float(sky == level) for level in ("rain", "snow")] for sky in TABLE["sky"]]
    assert made.features[:, 2:].tolist() == one_hot
    assert made.features[:, :2].tolist() == [
        [s, float(lit)] for s, lit in zip(TABLE["speed"], TABLE["lit"], strict=True)
    ]
    assert made.action_names == ("right", "stay", "left")
    assert [made.action_names[a] for a in made.actions] == TABLE["move"]
    assert made.episodes is not None and made.episodes.tolist() == [0, 0, 1, 1, 2, 0]
    assert made.weights is not None and made.weights.tolist() == TABLE["mass"]


def test_features_may_be_chosen_and_ordered():
    made = Sample.from_frame(FRAMES["polars"], "move", features=["mass", "speed"])
    assert made.names == ("mass", "speed") and made.features[0].tolist() == [1.0, 1.0]
    assert Sample.from_frame(FRAMES["polars"], "move", features="mass").names == ("mass",)


def test_continuous_action_columns_keep_their_names():
    made = Sample.from_frame(FRAMES["polars"], "mass", features=["speed"])
    assert not made.discrete and made.action_names == ("mass",)
    two = Sample.from_frame(FRAMES["polars"], ["mass", "speed"], features=["lit"])
    assert two.action_names == ("mass", "speed") and two.actions[3].tolist() == [2.0, 4.0]
    whole = Sample.from_frame(FRAMES["polars"], "speed", features=["lit"], discrete=False)
    assert not whole.discrete and whole.action_names == ("speed",)


def test_boolean_action_is_discrete():
    made = Sample.from_frame(FRAMES["polars"], "lit", features=["speed"])
    assert made.action_names == ("False", "True") and made.actions.tolist() == [1, 0, 1, 1, 0, 0]


def test_numbers_written_with_spaces_are_numbers():
    frame = polars.DataFrame({"x": [" 1.5", "2 ", " 3"], "n": [" 1", " 2", "3"], "a": [" 1", " 2", " 1"]})
    made = Sample.from_frame(frame, "a")
    assert made.features.tolist() == [[1.5, 1.0], [2.0, 2.0], [3.0, 3.0]] and made.action_names == ("1", "2")


def test_dates_may_name_episodes_and_narrow_numbers_are_widened():
    frame = polars.DataFrame(
        {
            "day": [date(2024, 1, 2), date(2024, 1, 1), date(2024, 1, 2)],
            "x": polars.Series([1, 2, 3], dtype=polars.Int8),
            "y": polars.Series([0.5, 0.25, 2], dtype=polars.Float32),
            "z": polars.Series([Decimal("0.5"), Decimal("1.5"), Decimal("2")]),
            "a": ["u", "v", "u"],
        }
    )
    made = Sample.from_frame(frame, "a", episodes="day")
    assert made.episodes is not None and made.episodes.tolist() == [0, 1, 0]
    assert made.features.tolist() == [[1, 0.5, 0.5], [2, 0.25, 1.5], [3, 2, 2]]


def table(**columns) -> polars.DataFrame:
    size = len(next(iter(columns.values())))
    return polars.DataFrame({"speed": np.arange(size) + 0.5, "move": ["left", "right"] * (size // 2)} | columns)


BAD_TABLES = {
    "no rows": (polars.DataFrame({"speed": [], "move": []}), {}, "at least one row"),
    "null": (table(x=[1, None, 3, 4]), {}, "'x'.*missing value in row 2"),
    "nan": (table(x=[1.0, 2.0, NAN, 4.0]), {}, "'x'.*missing value in row 3 .'nan'.*missing='drop'"),
    "infinite": (table(x=[1.0, 2.0, 3.0, -np.inf]), {}, "'x'.*-inf in row 4"),
    "null action": (table(x=[1, 2]), {"action": "y"}, "no column 'y'"),
    "unknown": (table(seed=[1, 2]), {"features": ["sped"]}, "did you mean 'speed'"),
    "two roles": (table(x=[1, 2]), {"features": ["speed", "move"]}, "'move' in two"),
    "episode twice": (table(x=[1, 2]), {"episode": "x", "weight": "x"}, "'x' in two"),
    "feature twice": (table(x=[1, 2]), {"features": ["x", "x"]}, "'x' in two"),
    "nothing left": (polars.DataFrame({"move": ["a", "b"]}), {}, "at least one column must be a feature"),
    "no action": (table(x=[1, 2]), {"action": []}, "at least one column"),
    "text among numbers": (
        table(x=["1", "2", "three", "4"]),
        {},
        "'x' has text where numbers belong.*'three' in row 3",
    ),
    "action text": (
        table(a=["1", "2", "n/a", "4"]),
        {"action": "a", "features": ["speed"]},
        "'a' has text.*'n/a' in row 3",
    ),
    "free text": (table(x=["a", "b", "c", "d"]), {}, "4 different texts in 4 rows"),
    "levels": (table(x=[f"v{i % 51}" for i in range(102)]), {}, "51 different texts in 102 rows"),
    "constant": (table(x=["a"] * 4), {}, "'x' is constant, 'a'"),
    "dates": (table(x=[date(2024, 1, 1)] * 2), {"features": ["x"]}, "'x'.*Date"),
    "lists": (table(x=[[1], [2]]), {}, "'x'.*List"),
    "structs": (table(x=[{"u": 1}, {"u": 2}]), {}, "'x'.*Struct"),
    "objects": (table(x=polars.Series([object(), object()], dtype=polars.Object)), {}, "'x'.*Object"),
    "binary": (table(x=[b"a", b"b"]), {}, "'x'.*Binary"),
    "episode list": (table(x=[[1], [2]]), {"episode": "x"}, "'x' must hold labels"),
    "weight text": (table(w=["a", "b"]), {"weight": "w"}, "'w' must be numbers, found text"),
    "action columns": (table(x=[1.0, 2.0]), {"action": ["move", "x"]}, "'move' must be numbers, found text"),
    "discrete half": (table(a=[0.5, 1.0]), {"action": "a", "features": ["speed"], "discrete": True}, "0.5 in row 1"),
    "text as numbers": (table(x=[1, 2]), {"discrete": False}, "must be numbers"),
    "only an index": (polars.DataFrame({"": [1, 2], "move": ["a", "b"]}), {}, "found only log data"),
    "clash": (table(**{"x": ["u", "v", "u", "v"], "x=u": [1, 2, 3, 4]}), {}, "'x=u' twice"),
    "pandas twice": (pandas.DataFrame([[1, 2, "a"], [3, 4, "b"]], columns=["x", "x", "move"]), {}, "'x' twice"),
    "pandas mixture": (pandas.DataFrame({"x": [1, "a"], "move": ["a", "b"]}, dtype=object), {}, "mixture"),
    "pandas missing": (pandas.DataFrame({"x": [1, NAN], "move": ["a", "b"]}), {}, "missing value in row 2"),
    "no table": ({"x": [1, 2], "move": ["a", "b"]}, {}, "found dict"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_refused_in_one_sentence(case):
    frame, arguments, match = BAD_TABLES[case]
    with pytest.raises(InputError, match=match) as error:
        Sample.from_frame(frame, **({"action": "move"} | arguments))
    sentence(error)


def test_importing_demonstrations_imports_no_table_library():
    heavy = ["polars", "pyarrow", "pandas", "jax", "scipy"]
    code = f"import sys, policyspace.data.sample; print([name for name in {heavy} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
