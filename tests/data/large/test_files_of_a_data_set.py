"""Which files a data set is made of, what they say, and the sentences where they do not agree."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from policyspace import InputError
from policyspace.data import ColumnRoles, Threads, data_set, data_set_of, files_of, is_many, open_log, table_of

NUM = 4000


def table(**columns):
    rng = np.random.default_rng(1)
    return pa.table({"a": rng.normal(size=NUM), "b": rng.normal(size=NUM), "act": rng.normal(size=NUM)} | columns)


def opened(source, workers=2, **said):
    return open_log(data_set(files_of(source)), ColumnRoles("act", **said), backend=Threads(workers))


def with_value(place, value, name="b"):
    column = np.random.default_rng(2).normal(size=NUM).tolist()
    column[place] = value
    return table(**{name: pa.array(column, pa.float64())})


def test_files_come_in_the_order_of_their_names_and_hidden_ones_are_left_out(tmp_path):
    for name in ("b.parquet", "a.parquet", "_metadata.parquet", ".x.parquet", "notes.txt"):
        pa.parquet.write_table(table(), tmp_path / name)
    assert [file.path for file in files_of(tmp_path)] == [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    assert [file.path for file in files_of(str(tmp_path / "[ab].parquet"))] == [f.path for f in files_of(tmp_path)]
    listed = [tmp_path / "b.parquet", tmp_path / "a.parquet"]
    assert [file.path for file in files_of(listed)] == list(map(str, listed))


def test_what_names_many_files(tmp_path):
    path = tmp_path / "a[1].parquet"
    pa.parquet.write_table(table(), path)
    assert not is_many(path)  # a file of that name is there, so it is no pattern
    assert is_many(tmp_path)
    assert is_many(str(tmp_path / "*.parquet"))
    assert is_many([path])
    assert not is_many([1.0, 2.0])
    assert not is_many([])


def test_folders_of_keys_are_columns_whole_numbers_where_all_are(tmp_path):
    for year, place in ((2023, "n w"), (2024, "s")):
        folder = tmp_path / f"year={year}" / f"place={place.replace(' ', '%20')}"
        folder.mkdir(parents=True)
        pa.parquet.write_table(table().slice(0, 10), folder / "x.parquet")
    for source in (tmp_path, str(tmp_path / "year=*" / "*" / "*.parquet")):
        frame, _ = data_set(files_of(source)).read()
        assert frame["year"].to_list() == [2023] * 10 + [2024] * 10
        assert frame["place"].unique(maintain_order=True).to_list() == ["n w", "s"]


def test_a_part_gives_the_columns_that_are_asked_for_and_goes_to_another_process(tmp_path):
    import pickle

    pa.parquet.write_table(table(), tmp_path / "x.parquet", row_group_size=1500)
    stored = data_set(files_of(tmp_path / "x.parquet"))
    parts = pickle.loads(pickle.dumps(stored.parts))
    assert [part.first_row for part in parts] == [0, 1500, 3000]
    found = [(start, got.column_names, got.num_rows) for part in parts for start, got in part.tables(["b"])]
    assert found == [(0, ["b"], 1500), (1500, ["b"], 1500), (3000, ["b"], 1000)]
    assert stored.num_rows == NUM


@pytest.mark.parametrize(
    ("value", "words"),
    [(float("nan"), "found a missing value in row 3334"), (None, "found a missing value in row 3334"),
     (float("inf"), "found inf in row 3334"), (1e70, "values of size 1e+70")],
)  # fmt: skip
def test_a_value_that_is_none_is_found_with_its_file_and_row(tmp_path, value, words):
    pa.parquet.write_table(table(), tmp_path / "a.parquet")
    pa.parquet.write_table(with_value(3333, value), tmp_path / "b.parquet", row_group_size=700)
    with pytest.raises(InputError) as error:
        opened(tmp_path)
    assert str(error.value).startswith(f"{tmp_path / 'b.parquet'}: ")
    assert words in str(error.value)
    assert "'b'" in str(error.value)


def test_rows_that_miss_a_value_are_dropped_if_asked_and_counted(tmp_path):
    pa.parquet.write_table(with_value(7, None), tmp_path / "a.parquet", row_group_size=700)
    made = opened(tmp_path, missing="drop")
    assert made.num_rows_total == NUM - 1
    assert list(made.origin.notes) == [f"rows dropped for missing values: 1 of {NUM}."]


@pytest.mark.parametrize(
    ("line", "words"),
    [("1,abc,2", "column 'b' has text where numbers belong: found 'abc' in row 90001"),
     ("1,NA,2", "column 'b' must be complete, found a missing value in row 90001"),
     ("1,inf,2", "column 'b' must be finite numbers, found inf in row 90001"),
     ("1,2,3,4", "every row must have 3 fields as the header has, found 4 in row 90001")],
)  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_text_is_judged_far_behind_its_first_block(tmp_path, line, words, packed):
    rng = np.random.default_rng(3)
    lines = [f"{x:.17g},{y:.17g},{z:.17g}" for x, y, z in rng.normal(size=(100_000, 3))]
    lines[90_000] = line
    text = "\n".join(["a,b,act", *lines]).encode()
    path = tmp_path / ("x.csv.gz" if packed else "x.csv")
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    with pytest.raises(InputError) as error:
        opened(path)
    assert str(error.value).startswith(f"{path}: ")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "NA", "3"], ["1", "NA", "3"]),
        (["+1", "-2"], ["+1", "-2"]),
        ([" 1", " 2"], [" 1", " 2"]),
        (["True", "FALSE"], [True, False]),
        (["0x1", "2"], ["0x1", "2"]),
        (["2024-01-01T10:00", "2024-01-02T10:00"], ["2024-01-01T10:00", "2024-01-02T10:00"]),
        (["01", "2"], [1, 2]),
        (["1", "", "2.5"], [1.0, None, 2.5]),
        (['"x\ny"', '"1,2"'], ["x\ny", "1,2"]),
    ],
)
def test_text_is_of_the_same_types_at_once_and_in_parts(tmp_path, cells, values):
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{cell},0\n" for cell in ["a", *cells]).replace("a,0", "a,b", 1))
    assert data_set(files_of(path)).read()[0]["a"].to_list() == values
    assert table_of(path)[0]["a"].to_list() == values


def test_numbers_that_are_whole_at_first_may_be_broken_later(tmp_path):
    first, later = ("a,act\n" + "".join(f"{i % 5}{dot},{i * 0.1}\n" for i in range(300)) for dot in ("", ".5"))
    (tmp_path / "1.csv").write_text(first)
    (tmp_path / "2.csv").write_text(later)
    assert opened(tmp_path).features[:, 0].max() == 4.5


def test_files_whose_columns_differ_are_refused(tmp_path):
    pa.parquet.write_table(table(), tmp_path / "a.parquet")
    pa.parquet.write_table(table(b=["x"] * NUM), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet: all files must have the same columns, found 'b' with the type"):
        opened(tmp_path)
    pa.parquet.write_table(table().drop_columns("b"), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"found 'b' with the type double in '.*a\.parquet' and no such column here"):
        opened(tmp_path)
    pa.csv.write_csv(table(), tmp_path / "c.csv")
    with pytest.raises(InputError, match=r"all files must be of one kind"):
        opened(tmp_path)


def test_what_is_no_data_set_is_said(tmp_path):
    with pytest.raises(InputError, match="expected a folder with files"):
        files_of(tmp_path)
    with pytest.raises(InputError, match="no file matches this pattern"):
        files_of(str(tmp_path / "*.parquet"))
    with pytest.raises(InputError, match="there is no such file"):
        files_of([tmp_path / "x.parquet"])
    path = tmp_path / "x.parquet"
    pa.parquet.write_table(table(), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"x\.parquet: expected a readable \.parquet file"):
        data_set(files_of(path))
    packed = gzip.compress(b"a,b,act\n" + b"1,2,3\n" * 100_000)
    (tmp_path / "y.csv.gz").write_bytes(packed[:-50])
    with pytest.raises(InputError, match=r"y\.csv\.gz: "):
        opened(tmp_path / "y.csv.gz")


def test_free_text_and_labels_without_end_are_refused(tmp_path):
    texts = [f"u{i}" for i in range(NUM)]
    pa.parquet.write_table(table(b=texts), tmp_path / "a.parquet", row_group_size=30)
    with pytest.raises(InputError, match="column 'b' has more than 50 different values"):
        opened(tmp_path)
    pa.parquet.write_table(table(act=texts), tmp_path / "a.parquet", row_group_size=700)
    with pytest.raises(InputError, match="too many to be labels"):
        opened(tmp_path)


def test_a_small_file_is_no_data_set_and_a_limit_decides(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pa.parquet.write_table(table(), path)
    assert data_set_of(path) is None
    monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", str(NUM * 3 * 8 - 1))
    assert data_set_of(path).num_bytes == NUM * 3 * 8
    monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", str(NUM * 3 * 8))
    assert data_set_of(path) is None


def test_batches_of_arrow_files_and_streams(tmp_path):
    with pa.ipc.new_file(tmp_path / "x.arrow", table().schema) as file:
        file.write_table(table(), 1500)
    with pa.ipc.new_stream(tmp_path / "y.arrow", table().schema) as file:
        file.write_table(table(), 1500)
    one, two = (data_set(files_of(tmp_path / name)) for name in ("x.arrow", "y.arrow"))
    assert len(one.parts) == 3
    assert len(two.parts) == 1
    assert one.read()[0].equals(two.read()[0])
