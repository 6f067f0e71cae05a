"""Files: what is written is read back bit for bit, and a bad file is one sentence that names it."""

import gzip
import json
import os
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from policyspace import InputError, Sample, read, write
from policyspace.data import SUFFIXES, Origin, Schema

FUZZ = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def assert_same(found: Sample, expected: Sample) -> None:
    for name in ("features", "actions", "episodes", "weights", "subjects"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        if one is not None:  # bits, so that −0.0 is not 0.0
            assert one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes(), name
    for name in ("names", "action_names", "blocks", "origin"):
        assert getattr(found, name) == getattr(expected, name), name


@pytest.fixture
def discrete() -> Sample:
    rng = np.random.default_rng(0)
    return Sample.from_arrays(
        rng.normal(size=(40, 3)),
        rng.permutation(np.arange(40) % 3).astype(str),
        features=["speed", "sky=rain", "sky=snow"],
        episodes=np.arange(40) // 10,
        weights=rng.random(40),
        reference="1",
        blocks={"sky": ["sky=rain", "sky=snow"]},
        origin={"ground_truth": ["speed"], "configuration": {"wind": [0.1, -2.0]}},
    )


@pytest.fixture
def continuous() -> Sample:
    rng = np.random.default_rng(1)
    return Sample.from_arrays(rng.normal(size=(30, 2)), rng.normal(size=(30, 2)), action_names=["gas", "wheel"])


# --- round trips --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".CSV"])
def test_round_trip_is_exact_and_needs_no_arguments(suffix, tmp_path, discrete, continuous):
    for made in (discrete, continuous):
        path = tmp_path / f"log{suffix}"
        write(made, path)
        assert_same(read(path), made)
        assert_same(read(str(path)), made)
        assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_subjects_survive_and_a_file_without_them_does_not_mention_them(suffix, tmp_path, discrete):
    path = tmp_path / f"log{suffix}"
    told = replace(discrete, subjects=np.array(["ann", "bob"])[np.arange(40) // 20])
    write(told, path)
    assert_same(read(path), told)
    assert read(path).subjects.tolist() == [0] * 20 + [1] * 20
    assert Schema.of(told).subject == "subject"
    assert "subject" not in json.loads(Schema.of(discrete).to_json())


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow", ".npz"])
def test_same_data_same_bytes(suffix, tmp_path, discrete):
    write(discrete, tmp_path / f"one{suffix}")
    write(discrete, tmp_path / f"two{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def demonstrations(draw) -> Sample:
    n, q = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    names = draw(st.lists(text, min_size=q, max_size=q, unique=True))
    features = draw(hnp.arrays(np.float64, (n, q), elements=finite))
    if draw(st.booleans()):
        action_names = draw(st.lists(text, min_size=2, max_size=4, unique=True))
        actions = draw(hnp.arrays(np.int64, n, elements=st.integers(0, len(action_names) - 1)))
    else:
        action_names = draw(st.lists(text, min_size=1, max_size=3, unique=True))
        actions = draw(hnp.arrays(np.float64, (n, len(action_names)), elements=finite))
    assume(not (actions == actions[0]).all())
    weights = draw(st.none() | hnp.arrays(np.float64, n, elements=st.floats(1e-300, 1e300)))
    episodes = draw(st.none() | hnp.arrays(np.int64, n))
    block = draw(text)
    blocks = {} if block in names else draw(st.sampled_from([{}, {block: tuple(names[: max(q - 1, 1)])}]))
    origin = Origin.of(draw(st.dictionaries(text, json_values, max_size=3)))
    return Sample(features, actions, tuple(names), tuple(action_names), episodes, weights, blocks, origin)


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet", ".feather", ".npz"])
@settings(FUZZ, max_examples=80)
@given(made=demonstrations())
def test_any_demonstrations_survive_a_round_trip(suffix, tmp_path, made):
    write(made, tmp_path / f"log{suffix}")
    assert_same(read(tmp_path / f"log{suffix}"), made)


def test_random_bit_patterns_survive_csv(tmp_path):
    bits = np.random.default_rng(2).integers(0, 2**64, size=20_000, dtype=np.uint64).view(np.float64)
    values = np.append(bits[np.isfinite(bits)], [0.0, -0.0, 5e-324, 1e16, 1e22, 2.0**53 + 2])
    made = Sample.from_arrays(values, values[::-1].copy())
    write(made, tmp_path / "log.csv")
    assert_same(read(tmp_path / "log.csv"), made)


def test_files_are_plain_tables_for_other_tools(tmp_path, discrete):
    labels = [discrete.action_names[a] for a in discrete.actions]
    write(discrete, tmp_path / "log.csv")
    other = pandas.read_csv(tmp_path / "log.csv", comment="#", dtype={"action": str})
    assert other["action"].tolist() == labels and np.allclose(other["speed"], discrete.features[:, 0], rtol=1e-15)
    write(discrete, tmp_path / "log.parquet")
    frame = polars.read_parquet(tmp_path / "log.parquet")
    assert frame["action"].to_list() == labels and frame["weight"].to_list() == discrete.weights.tolist()
    write(discrete, tmp_path / "log.arrow")
    assert pyarrow.feather.read_table(tmp_path / "log.arrow")["episode"].to_pylist() == discrete.episodes.tolist()


def test_an_action_that_was_never_played_survives(tmp_path):
    made = Sample(np.ones((3, 1)), np.array([0, 1, 0]), ("x",), ("left", "right", "stay"))
    for suffix in (".csv", ".parquet", ".npz"):
        write(made, tmp_path / f"log{suffix}")
        assert_same(read(tmp_path / f"log{suffix}"), made)


# --- arguments come before what the file says ----------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".npz"])
def test_arguments_override_the_header(suffix, tmp_path, discrete):
    path = tmp_path / f"log{suffix}"
    write(discrete, path)
    other = read(path, reference="0")
    assert other.action_names[-1] == "0" and other.origin == discrete.origin
    assert [other.action_names[a] for a in other.actions] == [discrete.action_names[a] for a in discrete.actions]
    fewer = read(path, features=["speed", "sky=snow"])
    assert fewer.names == ("speed", "sky=snow") and fewer.blocks == {"sky": ("sky=snow",)}
    assert fewer.action_names == discrete.action_names
    moved = read(path, actions="speed")
    assert not moved.discrete and moved.names == ("sky=rain", "sky=snow") and moved.action_names == ("speed",)
    assert moved.actions[:, 0].tolist() == discrete.features[:, 0].tolist() and moved.blocks == discrete.blocks
    numbers = read(path, discrete=False)
    assert numbers.actions[:, 0].tolist() == [float(discrete.action_names[a]) for a in discrete.actions]
    unweighted = read(path, features=["weight"])
    assert unweighted.weights is None and unweighted.features[:, 0].tolist() == discrete.weights.tolist()
    swapped = read(path, weights="episode")
    assert swapped.episodes is None and swapped.weights.tolist() == discrete.episodes.tolist()
    with pytest.raises(InputError, match=r"did you mean 'speed'"):
        read(path, features=["sped"])


# --- files written by others ----------------------------------------------------------------------------------------

LOG = {"speed": [0.5, 1.5, 2.5, 3.5], "sky": ["sun", "rain", "sun", "rain"], "move": ["l", "r", "s", "l"]}


def write_plain(path: Path) -> None:
    frame = polars.DataFrame(LOG)
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".arrow":
        frame.write_ipc(path)
    elif path.suffix == ".feather":
        pandas.DataFrame(LOG).to_feather(path)
    elif path.suffix == ".ipc":
        frame.write_ipc_stream(path)
    elif path.suffix == ".npz":
        np.savez(path, **{name: np.array(values) for name, values in LOG.items()})
    elif path.suffix == ".tsv":
        frame.write_csv(path, separator="\t")
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    else:
        path.write_text("\ufeff" + frame.write_csv(line_terminator="\r\n") + "\r\n\r\n", encoding="utf-8", newline="")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".feather", ".ipc", ".npz"])
def test_tables_of_other_tools_read_the_same(suffix, tmp_path):
    path = tmp_path / f"log{suffix}"
    write_plain(path)
    assert_same(read(path, "move", reference="l"), Sample.from_frame(polars.DataFrame(LOG), "move", reference="l"))
    with pytest.raises(InputError, match=r"--actions; the columns are 'speed', 'sky', 'move'"):
        read(path)
    with pytest.raises(InputError, match=r"no column 'mov': did you mean 'move'\?"):
        read(path, "mov")


def test_csv_types_are_inferred_from_every_row(tmp_path):
    path = tmp_path / "log.csv"
    rows = ["1,a"] * 3000 + ["2.5,b"]
    path.write_text("x,move\n" + "\n".join(rows))
    assert read(path, "move").features[-1, 0] == 2.5
    path.write_text("x,move\n" + "\n".join([*rows, "oops,a"]))
    with pytest.raises(InputError, match=r"'x' has text where numbers belong: found 'oops' in row 3002"):
        read(path, "move")


@pytest.mark.parametrize("name", ["features", "observations", "states"])
def test_npz_with_arrays_by_role(name, tmp_path):
    path, x = tmp_path / "log.npz", np.arange(8.0).reshape(4, 2)
    np.savez(
        path, **{name: x.astype(">f8"), "actions": np.array([2, 0, 1, 0], ">i4"), "rewards": np.ones(4), "seed": 3}
    )
    plain = read(path)
    assert plain.names == ("x0", "x1") and plain.action_names == ("0", "1", "2") and plain.weights is None
    assert plain.features.tolist() == x.tolist() and plain.actions.tolist() == [2, 0, 1, 0]
    assert read(path, weights="rewards").total_weight == 4.0
    arrays = {name: x.astype(np.float32), "actions": x[:, ::-1], "names": np.array(["a", "b"])}
    np.savez(path, **arrays, episodes=np.array([5, 5, 1, 1]), weights=np.arange(4))
    full = read(path, features=["b"])
    assert full.names == ("b",) and full.action_names == ("actions_0", "actions_1")
    assert full.episodes.tolist() == [0, 0, 1, 1] and full.total_weight == 6.0
    assert full.actions.tolist() == x[:, ::-1].tolist()


# --- what cannot be read ----------------------------------------------------------------------------------------------


def refused(path: Path, match: str, **arguments) -> None:
    with pytest.raises(InputError, match=match) as error:
        read(path, **arguments)
    assert path.name in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_empty_and_folder(suffix, tmp_path):
    path = tmp_path / f"log{suffix}"
    refused(path, "no such file")
    path.write_bytes(b"")
    refused(path, "empty")
    path.unlink()
    path.mkdir()
    refused(path, "folder")


def test_unknown_suffix_and_paths_that_cannot_be(tmp_path):
    for name in ("log.pkl", "log.gz"):
        (tmp_path / name).write_bytes(b"x")
    refused(tmp_path / "log.pkl", r"must end in one of \.csv")
    refused(tmp_path / "log.gz", "must end in one of")
    with pytest.raises(InputError):
        read("a\0b.csv")
    with pytest.raises(InputError):
        read("a" * 5000 + ".csv")


BAD_CSV = {
    "more fields": ("x,move\n1,a\n2,b,c\n", "2 fields as the header has, found 3 in row 2"),
    "fewer fields": ("x,move\n1,a\n2\n", "missing value in row 2"),
    "blank line": ("x,move\n1,a\n\n2,b\n", "missing value in row 2"),
    "twice": ("x,x,move\n1,2,a\n3,4,b\n", "'x' twice in the header"),
    "only a header": ("x,move\n", "at least one row"),
    "blank": ("\n\n", "header"),
    "semicolons": ("x;move\n1;a\n2;b\n", "separated by ',', found ';'"),
    "latin": ("x,move\n1,é\n2,b\n".encode("latin-1"), "UTF-8, found other bytes in line 2"),
    "utf-16": ("x,move\n1,a\n2,b\n".encode("utf-16"), "UTF-8"),
    "only an index": (",move\n0,a\n1,b\n", "found only log data"),
    "nan": ("x,move\n1,a\nNaN,b\n", "'x' must be complete, found a missing value in row 2"),
    "NA": ("x,move\n1,a\nNA,b\n3,a\n", "'x' must be complete, found a missing value in row 2:"),
    "dashes": ("x,move\n1,a\n--,b\n3,a\n", "found '--' in row 2"),
    "lines in text": ('x,move\n"a\nb",a\n"a\nb",b\n"a\nb",b\n', r"'x' is constant, 'a\\nb'"),
    "returns only": ("x,move\r1,a\r2,b\r", "readable"),
    "one action": ("x,move\n1,a\n2,a\n", "every row has the action 'a'"),
    "header cut off": ('# policyspace: {"version": 1', "cut off"),
    "header no json": ("# policyspace: {]\nx,move\n1,a\n2,b\n", "must be JSON"),
    "header empty": ("# policyspace: {}\nx,move\n1,a\n2,b\n", "damaged"),
    "header list": ("# policyspace: [1]\nx,move\n1,a\n2,b\n", "damaged"),
    "header newer": ('# policyspace: {"version": 3}\nx,move\n1,a\n2,b\n', "version 3, known is 2"),
    "header deep": (f"# policyspace: {'[' * 100_000}\nx,move\n1,a\n", "must be JSON"),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_csv(case, tmp_path):
    content, match = BAD_CSV[case]
    path = tmp_path / "log.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(path, match, actions="move")


def test_edited_csv_of_ours(tmp_path, discrete):
    path = tmp_path / "log.csv"
    write(discrete, path)
    lines = path.read_text().splitlines()

    def refuse(changed: list[str], match: str) -> None:
        path.write_text("\n".join(changed) + "\n")
        refused(path, match)

    refuse(lines[:-1], "states 40 rows, found 39")
    last = lines[-1].split(",")
    refuse([*lines[:-1], ",".join([*last[:3], "7", *last[4:]])], "the action '7' in row 40 is not among")
    refuse([*lines[:-1], ",".join(["fast", *last[1:]])], "fast")
    refuse([lines[0], lines[1].replace("speed", "velocity"), *lines[2:]], "speed")
    path.write_text("\n".join(lines))
    refused(path, "cut off")


def header(version=2, **changes) -> str:
    fields = {
        "version": version,
        "action": ["action"],
        "features": ["x"],
        "episode": None,
        "weight": None,
        "action_names": ["a", "b"],
        "blocks": {},
        "rows": None,
    }
    fields |= {"discrete": True, "metadata": {}} if version == 1 else {"kind": "discrete", "origin": {}}
    return json.dumps(fields | changes)


BAD_HEADERS = [
    {"action": "action"},
    {"action": []},
    {"action": ["action", "x"]},
    {"features": None},
    {"features": [1]},
    {"features": []},
    {"features": ["y"]},
    {"features": ["x", "x"]},
    {"features": ["action"]},
    {"episode": 3},
    {"episode": "e"},
    {"weight": "w"},
    {"subject": 3},
    {"subject": "s"},
    {"version": 1, "discrete": 1},
    {"version": 1, "discrete": False},
    {"version": 1, "counts": True, "discrete": None},
    {"kind": "many"},
    {"kind": "continuous"},
    {"action_names": ["a", "c"]},
    {"action_names": ["a", "a", "b"]},
    {"blocks": []},
    {"blocks": {"b": 1}},
    {"blocks": {"x": ["x"]}},
    {"version": 1, "metadata": None},
    {"origin": None},
    {"origin": []},
    {"rows": "3"},
    {"version": "1"},
    {"version": 3},
    {"surprise": 1},
]


@pytest.mark.parametrize("changes", BAD_HEADERS, ids=str)
def test_hostile_headers(changes, tmp_path):
    table = pyarrow.table({"x": [1.0, 2.0], "action": ["a", "b"]})

    def files(text: str) -> list[Path]:
        pyarrow.parquet.write_table(table.replace_schema_metadata({"policyspace": text}), tmp_path / "log.parquet")
        np.savez(tmp_path / "log.npz", features=[[1.0], [2.0]], actions=np.array([0, 1]), policyspace=text)
        return [tmp_path / "log.parquet", tmp_path / "log.npz"]

    for path in files(header()):
        assert read(path).action_names == ("a", "b")
    parquet, npz = files(header(**changes))
    refused(parquet, ".")
    if changes != {"action_names": ["a", "c"]} and changes != {"features": ["y"]}:  # names are only in the header there
        refused(npz, ".")


def test_bad_npz(tmp_path):
    path = tmp_path / "log.npz"

    def refuse(match: str, arguments: dict | None = None, **arrays) -> None:
        np.savez(path, **arrays)
        refused(path, match, **(arguments or {}))

    x, a = np.ones((4, 2)), np.array([0, 1, 0, 1])
    refuse("'actions' holds pickled objects", features=x, actions=np.array([None, {}, 1, 2], dtype=object))
    refuse("same length", features=x, actions=a[:3])
    refuse("same length", features=x, actions=a, weights=np.ones(3))
    refuse("columns a, found the shape", features=x, actions=a, names=["a"])
    refuse("'a' twice", features=x, actions=a, names=["a", "a"])
    refuse("'actions' twice", features=x, actions=a, names=["a", "actions"])
    refuse("found neither", features=x)
    refuse("found neither", seed=np.array(3))
    refuse("complex", features=x * 1j, actions=a)
    refuse("datetime64", features=x, actions=np.array(["2024-01-01"] * 4, "M8[D]"))
    refuse("shape", features=x, actions=np.ones((4, 2, 2)))
    refuse("--actions; the columns are 'x', 'a'", x=np.ones(4), a=a)
    refuse("same length", {"action": "a"}, x=np.ones(4), a=a[:3])
    refuse("names the array 'features'", actions=a, policyspace=header())
    refuse("codes from 0 to 1", features=x[:, :1], actions=a + 1, policyspace=header())
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "hello")
    refused(path, "'notes.txt', which is none")
    with path.open("wb") as file:
        np.save(file, x)
    refused(path, r"readable \.npz file")


def test_npz_of_absurd_size_is_refused(tmp_path):
    path = tmp_path / "log.npz"
    shape = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000, 2), }"
    shape += b" " * (117 - len(shape)) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("features.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(shape)) + shape + b"\0" * 64)
    refused(path, "'features' claims 16000000000000000 bytes")


def test_bad_tables_in_binary_files_name_column_and_row(tmp_path):
    path = tmp_path / "log.parquet"
    polars.DataFrame({"x": [1.0, None], "move": ["a", "b"]}).write_parquet(path)
    refused(path, "'x'.*missing value in row 2", actions="move")
    pandas.DataFrame({"x": [1.0, 2.0], "move": ["a", "b"]}, index=[5, 9]).to_parquet(path)
    assert read(path, actions="move").origin == Origin(excluded_columns=("__index_level_0__",))
    twice = pyarrow.Table.from_arrays([pyarrow.array([1, 2])] * 2, names=["x", "x"])
    pyarrow.feather.write_feather(twice, tmp_path / "log.feather")
    refused(tmp_path / "log.feather", "'x' twice", actions="x")


def outcome(path: Path, **arguments) -> Sample | None:
    """Demonstrations or an InputError of one line that names the file: nothing else may come out."""
    try:
        return read(path, **arguments)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error)
        return None


edit = st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=4), st.integers(0, 8))  # where, put in, take out
MAGIC = {".parquet": b"PAR1", ".arrow": b"ARROW1\0\0", ".npz": b"PK\x03\x04", ".csv.gz": b"\x1f\x8b\x08\0"}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".npz"])
@settings(FUZZ, max_examples=60)
@given(noise=st.binary(min_size=1, max_size=200), dressed=st.booleans())
def test_random_bytes(suffix, tmp_path, noise, dressed):
    path = tmp_path / f"log{suffix}"
    path.write_bytes((MAGIC.get(suffix, b"x,move\n") + noise + MAGIC.get(suffix, b"")) if dressed else noise)
    outcome(path, actions="move")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow", ".npz"])
def test_a_file_that_is_cut_off_anywhere_is_refused(suffix, tmp_path, discrete):
    path = tmp_path / f"log{suffix}"
    write(discrete, path)
    whole = path.read_bytes()
    for end in {*range(1, len(whole), 37), *range(1, 20), *range(len(whole) - 20, len(whole))}:
        path.write_bytes(whole[:end])
        assert outcome(path) is None, end


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow", ".npz"])
@settings(FUZZ, max_examples=60)
@given(
    edits=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=4), st.integers(0, 8)), min_size=1, max_size=4
    )
)
def test_a_damaged_file_gives_demonstrations_or_an_input_error(suffix, tmp_path, discrete, edits):
    path = tmp_path / f"log{suffix}"
    write(discrete, path)
    data = path.read_bytes()
    for place, inserted, removed in edits:
        at = int(place * len(data))
        data = data[:at] + inserted + data[at + removed :]
    path.write_bytes(data)
    outcome(path)


usual = ["", "1", "2", "0.5", "-1e3", "NaN", "inf", "true", "left", "right", " 7", '"', '"a,b"', "é", "2024-01-01"]
messy = st.sampled_from(usual) | st.text(max_size=3)
column_kinds = st.sampled_from(
    [
        messy,
        finite.map(repr),
        st.integers(-3, 3).map(str),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["true", "false"]),
    ]
)


@st.composite
def csv_tables(draw) -> str:
    """Columns of one kind each, or of anything, under a header that is right most of the time."""
    head = draw(st.just(["x", "move"]) | st.lists(st.sampled_from(["x", "move", "y", "", "#"]), min_size=1, max_size=3))
    kinds = [draw(column_kinds) for _ in range(draw(st.just(len(head)) | st.integers(1, 3)))]
    rows = [[draw(kind) for kind in kinds] for _ in range(draw(st.integers(0, 8)))]
    return "\n".join(",".join(row) for row in [head, *rows])


@settings(FUZZ, max_examples=300)
@given(table=csv_tables(), discrete=st.sampled_from([None, True, False]))
def test_random_csv_tables(tmp_path, table, discrete):
    path = tmp_path / "log.csv"
    path.write_text(table, encoding="utf-8", errors="surrogatepass", newline="")
    made = outcome(path, actions="move", discrete=discrete)
    if made is not None:
        again = tmp_path / "again.csv"
        write(made, again)
        assert_same(read(again), replace(made, origin=Origin()))  # what was said on reading is not written


@settings(FUZZ, max_examples=60)
@given(
    x=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=8),
    flags=st.lists(st.booleans(), min_size=8, max_size=8),
    labels=st.lists(st.sampled_from(["left", "right", "up"]), min_size=8, max_size=8),
)
def test_clean_random_csv_tables_are_read_as_python_reads_them(tmp_path, x, flags, labels):
    n = len(x)
    assume(len(set(labels[:n])) > 1)
    path = tmp_path / "log.csv"
    lines = [f"{value!r},{str(flag).lower()},{label}" for value, flag, label in zip(x, flags, labels, strict=False)]
    path.write_text("\n".join(["x,lit,move", *lines]))
    made = read(path, "move")
    assert made.features[:, 0].tobytes() == np.array(x).tobytes()
    assert made.features[:, 1].tolist() == [float(flag) for flag in flags[:n]]
    assert [made.action_names[a] for a in made.actions] == labels[:n]


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".npz"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
def test_an_interrupted_write_leaves_the_old_file(suffix, failure, tmp_path, discrete, continuous, monkeypatch):
    path = tmp_path / f"log{suffix}"
    write(discrete, path)
    before = path.read_bytes()

    def interrupted(descriptor: int) -> None:
        raise failure("no space left")

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt if failure is KeyboardInterrupt else InputError):
        write(continuous, path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_link_stays_a_link_and_permissions_follow_the_umask(tmp_path, continuous):
    target, link = tmp_path / "real.csv", tmp_path / "link.csv"
    old = os.umask(0o027)
    try:
        write(continuous, target)
    finally:
        os.umask(old)
    link.symlink_to(target)
    write(continuous, link)
    assert link.is_symlink() and target.stat().st_mode & 0o777 == 0o640
    assert_same(read(target), continuous)


def test_what_cannot_be_written_is_told(tmp_path, continuous):
    def refuse(made: Sample, path: Path, match: str) -> None:
        with pytest.raises(InputError, match=match) as error:
            write(made, path)
        assert str(path) in str(error.value) and "\n" not in str(error.value)

    refuse(continuous, tmp_path / "log.pkl", "must end in one of")
    refuse(continuous, tmp_path / "nowhere" / "log.csv", "there is no folder")
    (tmp_path / "folder.csv").mkdir()
    refuse(continuous, tmp_path / "folder.csv", "folder")
    with_object = Sample.from_arrays([1.0, 2.0], ["a", "b"], origin={"x": object()})
    refuse(with_object, tmp_path / "log.npz", "JSON")
    surrogate = Sample.from_arrays([1.0, 2.0], ["a", "b"], features=["\ud800"])
    for suffix in (".csv", ".parquet", ".arrow"):
        refuse(surrogate, tmp_path / f"log{suffix}", ".")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.csv"]
