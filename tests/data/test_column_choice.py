"""Which columns of a table become features: no bookkeeping, patterns, categories, subjects; and what is told about it."""

import datetime

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from policyspace import InputError, Sample, read, write
from policyspace.data import Origin, load_sample
from policyspace.data.columns import is_bookkeeping, looks_like_episodes

N = 60
RNG = np.random.default_rng(3)
SPEED = RNG.normal(size=N)
MOVE = np.where(SPEED + RNG.normal(size=N) > 0, "go", "stop")


def table(**columns) -> polars.DataFrame:
    return polars.DataFrame({"speed": SPEED, "move": MOVE} | columns)


def made(frame, **words) -> Sample:
    return Sample.from_frame(frame, "move", **words)


# --- bookkeeping --------------------------------------------------------------------------------------------------

NAMES = (
    "reward", "Rewards", "DONE", "dones", "terminated", "truncated", "terminal", "terminals", "timeout", "timeouts",
    "next_speed", "timestep", "step", "steps", "episode", "episode_id", "timestamp", "info_lives", "seed", "Unnamed: 0", "",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_the_recorder_are_left_out_by_their_name(name):
    data = made(table(**{name: RNG.normal(size=N)}))
    assert (data.names, data.origin.excluded_columns) == (("speed",), (name,))
    named = made(table(**{name: RNG.normal(size=N)}), features=["speed", name])
    assert named.names == ("speed", name) and not named.origin.excluded_columns


@pytest.mark.parametrize("name", ["doneness", "stepsize", "rewarding", "context_seed", "timer", "speed_next"])
def test_names_that_only_resemble_them_are_sensors(name):
    assert not is_bookkeeping(polars.Series(name, RNG.normal(size=N)))


@pytest.mark.parametrize("first", [0, 1])
def test_a_column_that_numbers_the_rows_is_left_out_whatever_its_name(first):
    assert is_bookkeeping(polars.Series("row", np.arange(N) + first))
    assert not is_bookkeeping(polars.Series("row", np.arange(N)[::-1].copy()))
    assert not is_bookkeeping(polars.Series("height", np.arange(N) + 0.0))
    assert not is_bookkeeping(polars.Series("row", [0, 1, 2]))  # by chance


@pytest.mark.parametrize("name", ["t", "Time"])
def test_a_clock_is_left_out_only_where_it_never_begins_again(name):
    assert is_bookkeeping(polars.Series(name, 0.5 * np.arange(N)))
    assert not is_bookkeeping(polars.Series(name, np.arange(N) % 20))


@pytest.mark.parametrize("kind", ["list", "object", "null"])
@pytest.mark.parametrize("name", ["t", "thing"])
def test_columns_of_types_without_order_are_refused_in_a_sentence(name, kind):
    odd = {
        "list": polars.Series(name, [[1, 2]] * N),
        "object": polars.Series(name, [object() for _ in range(N)], dtype=polars.Object),
        "null": polars.Series(name, [None] * N),
    }
    with pytest.raises(InputError, match=f"column '{name}' must be"):
        made(table().with_columns(odd[kind]))


def test_a_file_written_here_keeps_features_of_such_names(tmp_path):
    data = Sample.from_arrays(np.column_stack([SPEED, np.arange(N)]), MOVE, ["reward", "step"])
    write(data, tmp_path / "log.csv")
    assert read(tmp_path / "log.csv").names == ("reward", "step")
    assert read(tmp_path / "log.csv").origin == Origin()


def test_what_was_left_out_on_reading_is_not_written(tmp_path):
    data = made(table(reward=SPEED))
    write(data, tmp_path / "log.parquet")
    assert data.origin.excluded_columns and read(tmp_path / "log.parquet").origin == Origin()


def test_bookkeeping_is_left_out_of_a_table_beside_an_array_of_actions():
    frame = table(reward=SPEED, run=np.arange(N) // 10).drop("move")
    data = load_sample(frame, MOVE)
    assert data.names == ("speed", "run")
    assert data.origin.excluded_columns == ("reward",)
    assert "'run' looks like episodes" in data.origin.notes[0]
    assert not load_sample(frame, MOVE, episodes=np.arange(N) // 10).origin.notes


# --- patterns -----------------------------------------------------------------------------------------------------


def test_patterns_take_what_matches_and_a_name_comes_before_a_pattern():
    frame = polars.DataFrame(
        {name: RNG.normal(size=N) for name in ("obs_a", "obs_b", "obs_*", "speed")} | {"move": MOVE}
    )
    assert made(frame, features=["obs_*", "speed"]).names == ("obs_*", "speed")  # exactly this column
    plain = frame.drop("obs_*")
    assert made(plain, features=["obs_*", "speed"]).names == ("obs_a", "obs_b", "speed")
    assert made(plain, features="obs_?").names == ("obs_a", "obs_b")
    assert made(plain, features=["*", "obs_b"]).names == ("obs_a", "speed", "obs_b")  # the action has its role already
    with pytest.raises(InputError, match=r"no column matches the pattern 'osb_\*': did you mean 'obs_"):
        made(plain, features=["osb_*"])


# --- episodes and subjects ----------------------------------------------------------------------------------------

EPISODES = {
    "whole numbers": np.arange(N) // 10,
    "text": np.array([f"run {i // 10}" for i in range(N)]),
    "not in order": np.array([7, 3, 9, 1, 5, 2])[np.arange(N) // 10],
    "begins again for each subject": np.arange(N) // 10 % 3,
}
NO_EPISODES = {
    "numbers": SPEED,
    "truths": np.arange(N) >= 30,
    "short runs": np.arange(N) // 2,
    "comes back": np.array([1, 2, 1, 3, 2, 3])[np.arange(N) // 10],
    "constant": np.ones(N),
}


@pytest.mark.parametrize("name", EPISODES)
def test_a_column_that_looks_like_episodes_is_pointed_out_and_stays(name):
    frame = table(run=EPISODES[name])
    data = made(frame)
    assert list(data.origin.notes) == ["column 'run' looks like episodes: declare it with --episodes run."]
    assert "run" in (*data.names, *data.blocks)
    assert made(frame, episodes="run").origin == Origin()
    assert "--episodes episode" in made(table(episode=EPISODES[name])).origin.notes[0]


@pytest.mark.parametrize("name", NO_EPISODES)
def test_other_columns_do_not(name):
    assert not looks_like_episodes(polars.Series("x", NO_EPISODES[name]))


def test_subjects_are_a_column_of_any_labels_or_an_array(tmp_path):
    people = [f"person {i}" for i in range(N)]  # more than a feature may have
    table(who=people).write_csv(tmp_path / "log.csv")
    for data in (made(table(who=people), subjects="who"), read(tmp_path / "log.csv", "move", subject="who")):
        assert data.names == ("speed",)
        assert data.subjects.tolist() == list(range(N))
    assert Sample.from_arrays(SPEED, MOVE, subjects=people).subjects.tolist() == list(range(N))
    with pytest.raises(InputError, match="subjects= names a column, found a value of type list"):
        made(table(), subjects=people)


# --- categories ---------------------------------------------------------------------------------------------------


def one_hot(values, levels):
    return np.column_stack([np.asarray(values) == level for level in levels]).astype(float)


GEAR = np.array([10, 2, 1])[np.arange(N) % 3]
TYPED = {
    "declared": (table(gear=GEAR), {"categorical": ["gear"]}),
    "declared floats": (table(gear=GEAR.astype(float)), {"categorical": "gear"}),
    "declared text": (table(gear=GEAR.astype(str)), {"categorical": ["gear"]}),
    "pandas": (pandas.DataFrame({"speed": SPEED, "move": MOVE, "gear": pandas.Categorical(GEAR)}), {}),
    "arrow": (
        pyarrow.table({"speed": SPEED, "move": MOVE, "gear": pyarrow.array(GEAR).dictionary_encode()}), {}
    ),
    "polars": (table(gear=polars.Series(GEAR.astype(str), dtype=polars.Categorical)), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
def test_numbers_of_a_category_type_or_declared_are_one_hot_in_the_order_of_the_numbers(name):
    frame, words = TYPED[name]
    data = made(frame, **words)
    assert data.blocks == {"gear": ("gear=1", "gear=2")}
    np.testing.assert_array_equal(data.features, np.column_stack([SPEED, one_hot(GEAR, [1, 2])]))


def test_categories_of_other_types_do_not_matter_where_they_name_episodes_or_miss_a_number():
    days = pandas.Categorical(pandas.to_datetime(["2024-01-01"] * 30 + ["2024-01-02"] * 30))
    frame = pandas.DataFrame({"speed": SPEED, "move": MOVE, "day": days})
    assert made(frame, episodes="day").episodes.tolist() == [0] * 30 + [1] * 30
    assert made(frame, features=["speed"]).names == ("speed",)
    gear = pyarrow.array([np.nan, *GEAR[1:].astype(float)], from_pandas=False).dictionary_encode()
    with pytest.raises(InputError, match="'gear' must be complete, found a missing value in row 1"):
        made(pyarrow.table({"speed": SPEED, "move": MOVE, "gear": gear}))


def test_whole_numbers_and_truths_stay_numbers_unless_declared():
    data = made(table(gear=GEAR, open=SPEED > 1))
    assert (data.names, data.blocks) == (("speed", "gear", "open"), {})
    np.testing.assert_array_equal(data.features[:, 2], SPEED > 1)


def test_a_column_that_cannot_be_categories_is_refused():
    with pytest.raises(InputError, match="'speed' has 60 different categories"):
        made(table(), categorical=["speed"])
    with pytest.raises(InputError, match="no column 'spee'"):
        made(table(), categorical=["spee"])
    with pytest.raises(InputError, match="only a column that is used can be categorical, found 'gear'"):
        made(table(gear=GEAR), features=["speed"], categorical=["gear"])
    with pytest.raises(InputError, match="put them in one table"):
        load_sample(SPEED, MOVE, categorical=["x0"])


# --- missing values -----------------------------------------------------------------------------------------------


def csv(gear):
    rows = zip(SPEED, gear, MOVE, strict=True)
    return polars.read_csv(("speed,gear,move\n" + "".join(f"{s},{g},{m}\n" for s, g, m in rows)).encode())


def holed(mark, levels):
    return [mark if i in (4, 7) else levels[i % len(levels)] for i in range(N)]


REST = {"speed": SPEED, "move": MOVE}
HOLES = {
    "csv text": lambda mark: csv(holed(mark, "ab")),
    "csv numbers": lambda mark: csv(holed(mark, range(5))),
    "pandas object": lambda mark: pandas.DataFrame(REST | {"gear": pandas.Series(holed(mark, range(5)), dtype=object)}),
    "arrow dictionary": lambda mark: pyarrow.table(
        REST | {"gear": pyarrow.array(holed(mark, "ab")).dictionary_encode()}
    ),
}


@pytest.mark.parametrize("mark", ["", "NA", "NaN", "nan", "null", "None", " NA "])
@pytest.mark.parametrize("kind", HOLES)
def test_texts_that_say_missing_are_missing_and_no_category(kind, mark):
    frame = HOLES[kind](mark)
    marks = ("", "NA", "NaN", "nan", "null", "None")
    with pytest.raises(
        InputError, match=r"'gear' must be complete, found 2 missing values, the first in row 5.*missing='drop'"
    ):
        made(frame, na=marks)
    data = made(frame, missing="drop", na=marks)
    kept = [i for i in range(N) if i not in (4, 7)]
    np.testing.assert_array_equal(data.features[:, 0], SPEED[kept])
    assert list(data.origin.notes) == ["rows dropped for missing values: 2 of 60 ('gear' misses 2)."]
    if kind in ("csv numbers", "pandas object"):
        np.testing.assert_array_equal(data.features[:, 1], [i % 5 for i in kept])
    else:
        assert data.blocks == {"gear": ("gear=a",)}


def test_labels_episodes_and_numbers_may_miss_values_and_rows_are_dropped_together():
    speed, move, trip = SPEED.copy(), MOVE.astype(object), (np.arange(N) // 20).astype(float)
    speed[3], move[[3, 9]], trip[50] = np.nan, ("NA", None), np.nan
    frame = polars.DataFrame({"speed": speed, "move": move.tolist(), "trip": trip, "idle": [None] * N})
    frame = frame.with_columns(polars.col("move").replace({"NA": None}))
    with pytest.raises(InputError) as error:
        made(frame, features=["speed"], episodes="trip")
    assert "column 'move' must be complete, found 2 missing values, the first in row 4; " in str(error.value)
    assert "column 'trip' must be complete, found a missing value in row 51 ('nan'); column 'speed'" in str(error.value)
    data = made(frame, features=["speed"], episodes="trip", missing="drop")
    kept = [i for i in range(N) if i not in (3, 9, 50)]
    assert data.action_names == ("go", "stop")
    np.testing.assert_array_equal(data.episodes, np.array(kept) // 20)
    np.testing.assert_array_equal(data.features[:, 0], SPEED[kept])
    with pytest.raises(InputError, match="every row misses a value"):
        made(frame, episodes="trip", missing="drop")
    with pytest.raises(InputError, match="an 'error' or a reason to 'drop' their rows, found 'keep'"):
        made(frame, features=["speed"], missing="keep")


def test_none_and_na_are_levels_of_a_table_and_missing_in_a_file(tmp_path):
    frame = polars.DataFrame(REST | {"gear": [("None", "NA", "low")[i % 3] for i in range(N)]})
    assert made(frame).blocks == {"gear": ("gear=NA", "gear=None")}
    assert made(frame.to_pandas()).blocks == {"gear": ("gear=NA", "gear=None")}
    frame.write_csv(tmp_path / "log.csv")
    with pytest.raises(InputError, match="found 40 missing values"):
        read(tmp_path / "log.csv", "move")
    assert read(tmp_path / "log.csv", "move", na=["low"], missing="drop").blocks == {"gear": ("gear=NA",)}
    with pytest.raises(InputError, match="a list such as"):
        made(frame, na="NA")


def test_dates_that_nobody_named_and_covariates_that_somebody_did():
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(N)]
    data = made(polars.DataFrame(REST | {"day": days}))
    assert data.names == ("speed",) and data.origin.excluded_columns == ("day",)
    sorted_by = polars.DataFrame(REST | {"age": np.arange(N) // 12})
    assert "'age' looks like episodes" in made(sorted_by).origin.notes[0]
    assert made(sorted_by, features=["speed", "age"]).origin.notes == ()


def test_whole_numbers_as_text_are_levels():
    frame = polars.DataFrame(REST | {"gear": [("1", "2", "10")[i % 3] for i in range(N)]})
    assert made(frame).blocks == {"gear": ("gear=1", "gear=2")}
    decimals = frame.with_columns(polars.col("gear") + ".5")
    assert made(decimals).names == ("speed", "gear")


def test_a_label_none_that_was_written_here_is_a_label(tmp_path):
    labels = np.array(["None", "NA"])[np.arange(N) % 2]
    for suffix in (".csv", ".parquet", ".npz"):
        write(Sample.from_arrays(SPEED, labels), tmp_path / f"log{suffix}")
        assert read(tmp_path / f"log{suffix}").action_names == ("NA", "None")
