"""Where inputs go in: each target makes one case from a random generator, most of them broken in one place."""

import base64
import functools
import gzip
import io
import json
import random
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz import independent_fit
from tests.fuzz.case import Case
from tests.fuzz.mutations import CELLS, NUMBERS, TEXTS, VALUES, bytes_of, value_of

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".feather", ".npz")
OLDER = Path(__file__).parents[1] / "study" / "older_files"


@functools.cache
def tables() -> dict[str, bytes]:
    """The same small log in every format, with its roles (`log`) and, where that is possible, without (`plain`)."""
    import polars

    from policyspace import Sample, write

    rng = np.random.default_rng(0)
    states = rng.normal(size=(30, 2))
    moves = np.where(states[:, 0] + rng.normal(size=30) > 0, "go", "stop")
    data = Sample.from_arrays(states, moves, ["x", "y"], episodes=np.arange(30) // 5)
    frame = polars.DataFrame({"x": states[:, 0], "y": states[:, 1], "move": moves, "e": np.arange(30) // 5})
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in SUFFIXES:
            write(data, Path(folder) / f"log{suffix}")
            found[f"log{suffix}"] = (Path(folder) / f"log{suffix}").read_bytes()
    found["plain.csv"] = frame.write_csv().encode()
    found["plain.csv.gz"] = gzip.compress(found["plain.csv"], mtime=0)
    for suffix, put in ((".parquet", frame.write_parquet), (".arrow", frame.write_ipc)):
        out = io.BytesIO()
        put(out)
        found[f"plain{suffix}"] = out.getvalue()
    out = io.BytesIO()
    np.savez_compressed(out, features=states, actions=moves)
    found["plain.npz"] = out.getvalue()
    return found


def table_bytes(rng: random.Random) -> Case:
    name = rng.choice(list(tables()))
    options = ["--actions", "move"] if name.startswith("plain") and not name.endswith(".npz") else []
    command = rng.choice([["identify", name, "--test", "wilks"], ["plan", name], ["identify", name]])
    return Case([*command, *options, "--json", "-"], {name: bytes_of(rng, tables()[name])})


def table_cells(rng: random.Random) -> Case:
    """Rows of numbers with some cells, names or separators that are not."""
    width, height = rng.randrange(1, 5), rng.choice([1, 2, 3, 8, 20])
    names = [
        rng.choice(["x", "y", "z", "step", "", "[b]x", "x", *TEXTS]) if rng.random() < 0.2 else f"c{j}"
        for j in range(width)
    ]
    rows = [[f"{rng.gauss(0, 1):.3f}" for _ in range(width)] + [rng.choice(["go", "stop"])] for _ in range(height)]
    for _ in range(rng.choice([0, 1, 1, 2, 5])):
        row = rng.choice(rows)
        row[rng.randrange(len(row))] = rng.choice(CELLS)
    if rng.random() < 0.1:
        rng.choice(rows).append("1")
    mark = rng.choice([",", ",", ",", ",", ";", "\t"])
    text = rng.choice(["\n", "\n", "\n", "\r\n", "\r"]).join(mark.join(row) for row in [[*names, "move"], *rows])
    action = rng.choice(["move", "move", "move", "c0", "x"])
    return Case(["identify", "t.csv", "--actions", action, *_options(rng), "--json", "-"], {"t.csv": text.encode()})


def columns(rng: random.Random) -> Case:
    """Columns of any Arrow type, in any role."""
    import pyarrow
    import pyarrow.feather
    import pyarrow.parquet

    n = 24
    made = {
        "x": pyarrow.array([rng.gauss(0, 1) for _ in range(n)]),
        "move": pyarrow.array([rng.choice("ab") for _ in range(n)]),
    }
    made["y"] = _column(rng, n)
    role = rng.choice(["--features", "--actions", "--episodes", "--weights", "--categorical", "--subjects", "none"])
    options = (
        []
        if role == "none"
        else ["--features", "x,y"]
        if role in ("--features", "--categorical")
        else ["--features", "x"]
    )
    options += ["--actions", "y" if role == "--actions" else "move"]
    options += [role, "y"] if role in ("--episodes", "--weights", "--categorical", "--subjects") else []
    out, suffix = io.BytesIO(), rng.choice([".parquet", ".feather"])
    table = pyarrow.table(made)
    try:
        (pyarrow.parquet.write_table if suffix == ".parquet" else pyarrow.feather.write_feather)(table, out)
    except pyarrow.ArrowException:
        return table_bytes(rng)
    return Case(["identify", f"t{suffix}", *options, *_options(rng), "--json", "-"], {f"t{suffix}": out.getvalue()})


def _column(rng: random.Random, n: int) -> Any:
    import pyarrow as pa

    kinds: list[Any] = [
        pa.int8(), pa.uint64(), pa.int64(), pa.float16(), pa.float32(), pa.bool_(), pa.string(), pa.large_string(),
        pa.binary(), pa.date32(), pa.time64("us"), pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.duration("ms"),
        pa.decimal128(38, 4), pa.decimal256(70, 4), pa.list_(pa.int64()), pa.struct([("a", pa.float64())]),
        pa.map_(pa.string(), pa.int64()), pa.null(), pa.dictionary(pa.int8(), pa.string()), pa.string_view(),
        pa.dictionary(pa.int8(), pa.float64()), pa.month_day_nano_interval(), pa.list_(pa.float64(), 2), pa.binary(4),
    ]  # fmt: skip
    kind = rng.choice(kinds)
    for values in ([rng.randrange(-3, 90) for _ in range(n)], [str(rng.randrange(4)) for _ in range(n)], [[1, 2]] * n,
                   [{"a": 1.5}] * n, [[("k", 1)]] * n, [(1, 2, 3)] * n, [b"abcd"] * n, [None] * n):  # fmt: skip
        if rng.random() < 0.1:
            values = [None, *values[1:]]
        try:
            return pa.array(values).cast(kind) if rng.random() < 0.5 else pa.array(values, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
    return pa.nulls(n)


FLAGS = ["--no-intercept", "--firth", "--paper-rule"]
CHOICES = {
    "--rule": ["simplified", "combinatorial", "x"],
    "--correction": ["holm", "bonferroni", "bh", "[b]"],
    "--test": ["auto", "wilks", "firth", "lean", "eprocess", "mixture", "universal", ""],
    "--policy": ["gaussian", "boltzmann", "any", "network", "x"],
    "--significance": ["0.05", "0", "1", "nan", "inf", "-1", "1e-300", "0.999999", "x"],
    "--seed": ["0", "-1", "9223372036854775807", "9223372036854775808", "1" + "0" * 40, "x", "1.5"],
    "--covariance": ["1", "0", "-1", "nan", "inf", "1e308", "1e-320", "1,2", "1,,", "estimate", "x.json", ""],
    "--groups": ["feature", "parameter", "hidden", "output", "none.toml", "."],
    "--hidden": ["1", "0", "-1", "1000000000", "9" * 30, "1,1,1", ",", "x"],
    "--features": ["x", "x,y", "*", "x*", "[", ",", '"', "x,x", "\0", "c0"],
    "--assume": ["x", "y", "x,y", "q", ""],
    "--reference": ["go", "stop", "x", "", "0"],
    "--missing": ["drop", "error", "x"],
    "--clusters": ["auto", "rows", "blocks", "episodes", "x"],
    "--categorical": ["x", "move", "y", "q"],
    "--weights": ["x", "y", "e", "move"],
    "--subjects": ["e", "x", "move"],
    "--episodes": ["e", "x", "move", "q"],
}


def _options(rng: random.Random, most: int = 2) -> list[str]:
    found: list[str] = []
    for _ in range(rng.randrange(most + 1)):
        if rng.random() < 0.2:
            found.append(rng.choice(FLAGS))
            continue
        name = rng.choice(list(CHOICES))
        found += [name, rng.choice(CHOICES[name]) if rng.random() < 0.9 else str(rng.choice([*TEXTS, *NUMBERS[:15]]))]
    return found


def options(rng: random.Random) -> Case:
    """A good table, and options that may be anything."""
    command = rng.choice(["identify", "identify", "identify", "plan", "theory"])
    extra = _options(rng, 4)
    if command == "plan":
        name = rng.choice(["--power", "--effect", "--confidence", "--test"])
        extra = [name, str(rng.choice([*NUMBERS[:15], "x", "nan", "wilks", "universal"]))]
    return Case(
        [command, "plain.csv", "--actions", "move", *extra, "--json", "-"], {"plain.csv": tables()["plain.csv"]}
    )


TOML = [
    'assume = ["x"]\n[groups]\np = ["x", "y"]\n[fixed]\nx = 0.5\n', "[groups]\np = ['x']\n", "[fixed]\nx = 1e300\n",
    "row = [1.0, 1.0, 1.0, 1.0, 1.0]\n", '"row[2]" = 2.5\n', "[fixed]\nx = inf\n", "a = [[[[1]]]]\n", "a.b.c.d = 1\n",
]  # fmt: skip


def toml(rng: random.Random) -> Case:
    """Groups and configurations; some of them nested or long without end."""
    content = bytes_of(rng, rng.choice(TOML).encode())
    if rng.random() < 0.05:
        content = rng.choice(
            ["a = " + "[" * 9000, "a = " + "{a=" * 9000, ".".join("a" * 9000) + " = 1", "x = " + "9" * 9000]
        ).encode()
    if rng.random() < 0.5:
        return Case(["api", "configuration"], {"ω.toml": content})
    files = {"plain.csv": tables()["plain.csv"], "g.toml": content}
    return Case(
        ["identify", "plain.csv", "--actions", "move", "--features", "x,y", "--groups", "g.toml", "--json", "-"], files
    )


def configuration(rng: random.Random) -> Case:
    text = rng.choice(
        ["row[2]=5, col=[1,1,5,1,1]", "row=1", "row=[1,2]", "q=1", "row[9]=1", "row=1e999", "=", "row[0]=" + "9" * 400]
    )
    return Case(["api", "configuration"], {"text.txt": bytes_of(rng, text.encode())})


def covariance(rng: random.Random) -> Case:
    out = io.BytesIO()
    np.save(out, np.eye(2))
    good = {"c.json": b"[[1, 0], [0, 1]]", "c.csv": b"1,0\n0,1\n", "c.npy": out.getvalue()}
    name = rng.choice(list(good))
    if name == "c.json" and rng.random() < 0.5:
        content = json.dumps(value_of(rng, [[1, 0], [0, 1]])).encode()
    else:
        content = bytes_of(rng, good[name])
    files = {"plain.csv": tables()["plain.csv"], name: content}
    return Case(
        ["identify", "plain.csv", "--actions", "x,y", "--features", "e", "--covariance", name, "--json", "-"], files
    )


@functools.cache
def studies() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(OLDER.glob("*.sqlite"))}


def study(rng: random.Random) -> Case:
    """A study with a byte, a field, a row or a table that is not as it was written."""
    content = rng.choice(list(studies().values()))
    content = bytes_of(rng, content) if rng.random() < 0.25 else _changed(rng, content, "s.sqlite")
    command = rng.choice([["study", "status", "s.sqlite", "--json", "-"], ["study", "status", "s.sqlite"]])
    return Case(command, {"s.sqlite": content})


def ask(rng: random.Random) -> Case:
    """What is asked after the damage; a round that has been asked for already needs no design."""
    content = _changed(rng, rng.choice(list(studies().values())), "s.sqlite")
    return Case(["study", "ask", "s.sqlite", "--json", "-"], {"s.sqlite": content})


@functools.cache
def recorded() -> bytes:
    from policyspace_paper.execution import Cell, Store

    with tempfile.TemporaryDirectory() as folder:
        with Store(Path(folder) / "records.sqlite") as store:
            for seed in range(4):
                store.add(Cell("theory", {"seed": seed, "n": 10}), 1.5, {"error": 0.25, "rows": [1, 2, seed]}, 2.0)
        return (Path(folder) / "records.sqlite").read_bytes()


def records(rng: random.Random) -> Case:
    content = bytes_of(rng, recorded()) if rng.random() < 0.3 else _changed(rng, recorded(), "records.sqlite")
    return Case(["api", "records"], {"records.sqlite": content})


VIEW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {columns} FROM c"


def _changed(rng: random.Random, content: bytes, name: str) -> bytes:
    """The same SQLite file with one change in what it says."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as connection, connection:
            tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            table = rng.choice(tables)
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            kind = rng.random()
            if kind < 0.03:
                connection.execute(f"DROP TABLE {table}")
                if rng.random() < 0.5:
                    connection.execute(
                        f"CREATE VIEW {table} AS " + VIEW.format(columns=", ".join(f"x AS {c}" for c in columns))
                    )
            elif kind < 0.05:
                connection.execute(f"ALTER TABLE {table} RENAME COLUMN {rng.choice(columns)} TO other")
            elif kind < 0.07:
                connection.execute(f"PRAGMA user_version={rng.choice([0, 2, 99])}")
            elif kind < 0.2:
                connection.execute(f"DELETE FROM {table} WHERE rowid = {rng.randrange(1, 20)}")
            else:
                _change_cell(rng, connection, table, columns)
        return path.read_bytes()


def _change_cell(rng: random.Random, connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
    rows = connection.execute(f"SELECT rowid, * FROM {table}").fetchall()
    if not rows:
        return
    row, place = rng.choice(rows), rng.randrange(len(columns))
    value: Any = row[1 + place]
    if isinstance(value, str) and value[:1] in '[{"0123456789tfn' and rng.random() < 0.85:
        value = json.dumps(value_of(rng, json.loads(value))) if _is_json(value) else value + rng.choice(TEXTS)
    elif isinstance(value, bytes):
        value = bytes_of(rng, value)
    else:
        value = rng.choice([None, 5, -1, 2.5, "x", b"\0\xff", "[" * 5000, "", "null", "1e999"])
    with_value = f"UPDATE OR IGNORE {table} SET {columns[place]} = ? WHERE rowid = ?"
    try:
        connection.execute(with_value, (value, row[0]))
    except (sqlite3.Error, OverflowError):
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row[0],))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@functools.cache
def saved_agent() -> bytes:
    import jax

    from policyspace import learn, make_world
    from policyspace.worlds import save_agent

    world = make_world("gridworld")
    with tempfile.TemporaryDirectory() as folder:
        save_agent(learn(world, None, ("row_0",), None, jax.random.key(0), num_steps=1), Path(folder) / "a.json")
        return (Path(folder) / "a.json").read_bytes()


def agents(rng: random.Random) -> Case:
    if rng.random() < 0.2:
        content = bytes_of(rng, saved_agent())
    else:
        content = json.dumps(value_of(rng, json.loads(saved_agent()))).encode()
    return Case(["api", "agent"], {"agent.json": content})


def follow(rng: random.Random) -> Case:
    """A stream whose last row, header, episode or label is not what it was."""
    content = tables()["plain.csv"]
    if rng.random() < 0.8:
        lines = content.split(b"\n")
        row = rng.randrange(len(lines))
        lines[row] = rng.choice(
            [lines[row][: len(lines[row]) // 2], b"", lines[row] + b",1", b"1,2,turn,0", b"\0", b"1,2,go,-5", lines[0]]
        )
        content = b"\n".join(lines[: rng.choice([len(lines), row + 1, 12])])
    budget = rng.choice([[], ["--budget", "2"], ["--budget", "1" + "0" * 30], ["--budget", "0"], ["--wait", "nan"]])
    return Case(
        ["identify", "t.csv", "--actions", "move", "--features", "x", "--episodes", "e", "--follow", *budget],
        {"t.csv": content},
    )


def api(rng: random.Random) -> Case:
    """Lists and numbers that are no good arrays, and arguments that are no good arguments."""
    states = [[rng.gauss(0, 1), rng.gauss(0, 1)] for _ in range(20)]
    actions: list[Any] = (
        [rng.choice(["a", "b"]) for _ in range(20)] if rng.random() < 0.5 else [rng.gauss(0, 1) for _ in range(20)]
    )
    said: dict[str, Any] = {"data": states, "actions": actions, "test": "wilks"}
    if rng.random() < 0.7:
        said = value_of(rng, said)
    if isinstance(said, dict):
        for _ in range(rng.randrange(3)):
            name = rng.choice(sorted(ARGUMENTS - {"data", "actions"}))
            said[name] = rng.choice([*VALUES, [1.0] * 20, list(range(20)), ["x0", "x1"], {"x0": 1.0}])
    if not isinstance(said, dict) or "data" not in said or not said.keys() <= ARGUMENTS:
        return options(rng)
    return Case(["api", "identify"], {"call.json": json.dumps(said).encode()})


ARGUMENTS = {
    "data", "actions", "features", "episodes", "weights", "policy", "hidden", "covariance", "groups", "assume", "fixed",
    "seed", "reference", "rule", "significance", "correction", "test", "clusters", "intercept", "missing",
}  # fmt: skip


def fit(rng: random.Random) -> Case:
    said = independent_fit.make(np.random.default_rng(rng.getrandbits(64)))
    return Case(["api", "fit"], {"call.json": json.dumps(said).encode()})


@functools.cache
def of_other_tools() -> dict[str, dict[str, bytes]]:
    """The files of one honest source of each kind."""
    import h5py
    import pyarrow
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    states, moves, out = rng.normal(size=(40, 2)), rng.integers(0, 2, 40), io.BytesIO()
    with h5py.File(out, "w") as file:
        file["observations"], file["actions"], file["terminals"] = states, moves, np.arange(40) % 10 == 9
    episodes = io.BytesIO()
    with h5py.File(episodes, "w") as file:
        for i in range(2):
            one = file.create_group(f"episode_{i}")
            one.attrs["id"], one.attrs["total_steps"] = i, 10
            one["observations"], one["actions"] = rng.normal(size=(11, 2)), rng.integers(0, 2, 10)
            one["rewards"], one["terminations"], one["truncations"] = (
                np.zeros(10),
                np.zeros(10, bool),
                np.zeros(10, bool),
            )
    box = {"type": "Box", "dtype": "float64", "shape": [2], "low": [-9, -9], "high": [9, 9]}
    said = {
        "minari_version": "0.5.4", "total_episodes": 2, "total_steps": 20, "data_format": "hdf5",
        "dataset_id": "walk-v1", "observation_space": json.dumps(box),
        "action_space": json.dumps({"type": "Discrete", "dtype": "int64", "start": 0, "n": 2}),
    }  # fmt: skip
    table = io.BytesIO()
    columns = {"observation.state": states.tolist(), "action": [[float(move)] for move in moves]}
    columns |= {"episode_index": np.arange(40) // 10, "frame_index": np.arange(40) % 10}
    pyarrow.parquet.write_table(pyarrow.table(columns), table)
    features = {name: {"dtype": "float32", "shape": [2]} for name in columns}
    return {
        "t.hdf5": {"t.hdf5": out.getvalue()},
        "robot": {
            "robot/meta/info.json": json.dumps({"features": features}).encode(),
            "robot/data/a.parquet": table.getvalue(),
        },
        "walk": {"walk/data/main_data.hdf5": episodes.getvalue(), "walk/data/metadata.json": json.dumps(said).encode()},
    }


def sources(rng: random.Random) -> Case:
    """HDF5, a folder of LeRobot, a dataset of Minari, with a broken file."""
    name = rng.choice(list(of_other_tools()))
    files = dict(of_other_tools()[name])
    broken = rng.choice(list(files))
    if broken.endswith(".json") and rng.random() < 0.7:
        files[broken] = json.dumps(value_of(rng, json.loads(files[broken]))).encode()
    else:
        files[broken] = bytes_of(rng, files[broken])
    return Case(["identify", name, "--test", "wilks", "--json", "-"], files)


@functools.cache
def model() -> bytes:
    import warnings

    from stable_baselines3 import PPO

    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu").save(Path(folder) / "model.zip")
        return (Path(folder) / "model.zip").read_bytes()


def models(rng: random.Random) -> Case:
    """A model of stable-baselines3 of which a byte, an entry, a pickle or the weights are broken."""
    if rng.random() < 0.3:
        return Case(["api", "model"], {"model.zip": bytes_of(rng, model())})
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(model())) as old, zipfile.ZipFile(out, "w") as new:
        broken = rng.choice(["data", "data", "data", "policy.pth"])
        for name in old.namelist():
            content = old.read(name)
            if name == broken == "data":
                said = json.loads(content)
                place = rng.choice([one for one, value in said.items() if isinstance(value, dict)])
                if ":serialized:" in said[place] and rng.random() < 0.6:
                    damaged = bytes_of(rng, base64.b64decode(said[place][":serialized:"]))
                    said[place] = {":serialized:": base64.b64encode(damaged).decode()}
                else:
                    said = value_of(rng, said)
                content = json.dumps(said).encode()
            elif name == broken:
                content = bytes_of(rng, content)
            new.writestr(name, content)
    return Case(["api", "model"], {"model.zip": out.getvalue()})


def kinds(rng: random.Random) -> Case:
    """An argument of a public function that is of another kind."""
    return Case(["api", "odd"], {"call.json": json.dumps({"seed": rng.getrandbits(32)}).encode()})


TARGETS: dict[Callable[[random.Random], Case], int] = {
    table_bytes: 16, table_cells: 14, columns: 6, options: 7, toml: 6, configuration: 8, covariance: 5, study: 10, ask: 1,
    records: 10, agents: 10, follow: 2, api: 11, fit: 3,
    sources: 1, models: 4, kinds: 6,
}  # fmt: skip
"""How often each target is drawn."""


def draw(rng: random.Random) -> tuple[str, Case]:
    """A case, and the name of its target."""
    (target,) = rng.choices(list(TARGETS), list(TARGETS.values()))
    return target.__name__, target(rng)
