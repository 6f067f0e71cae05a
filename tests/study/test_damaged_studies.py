"""A study whose file says something else than what was written: refused when it is opened, in one sentence."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from policyspace_paper.execution import Cell, Store

from policyspace import InputError, Study

NOW = {"always": "assume", "num_attempts": "max_rounds"}
OLDER = sorted((Path(__file__).parent / "older_files").glob("*.sqlite"))
WRONG = [None, True, -1, 5, 0.5, "x", [], {}, [[]], [1], {"a": "x"}, 10**30]
VIEW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x, x FROM c"


@pytest.fixture(params=OLDER, ids=[path.stem for path in OLDER])
def path(request, tmp_path):
    return Path(shutil.copy(request.param, tmp_path / "s.sqlite"))


def change(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)


def entries(path, question):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(question).fetchall()


def opened_or_refused(path):
    """What opening it says, if it is refused."""
    try:
        json.dumps(Study.open(path).status().to_dict(), allow_nan=False)
    except InputError as error:
        assert str(error).startswith(f"{path}: ")
        return str(error)
    return None


@pytest.mark.parametrize("delta", [5, 0, 1, -0.1, True, None, "0.05", 10**400])
def test_a_study_without_a_level_is_refused_when_opened(path, delta):
    change(path, ("UPDATE settings SET value = ? WHERE name = 'significance'", (json.dumps(delta),)))
    with pytest.raises(InputError, match="significance"):
        Study.open(path)


def test_every_setting_missing_or_of_another_type(path):
    good = path.read_bytes()
    needed = {"units", "joint", "significance", "rule", "max_rounds", "num_episodes", "budget", "paper_rule"}
    needed |= {"world", "world_name", "groups", "assume", "design", "initial", "seed"}
    for name, value in entries(path, "SELECT name, value FROM settings"):
        path.write_bytes(good)
        change(path, ("DELETE FROM settings WHERE name = ?", (name,)))
        assert (opened_or_refused(path) is not None) == (NOW.get(name, name) in needed), name
        for wrong in ("", "[" * 5000, "{", "NaN", "1e999", *map(json.dumps, WRONG)):
            path.write_bytes(good)
            change(path, ("UPDATE settings SET value = ? WHERE name = ?", (wrong, name)))
            said = opened_or_refused(path)
            free = NOW.get(name, name) not in needed or name in ("groups", "budget")
            fits = free or type(json.loads(value)) is type(_parsed(wrong))
            assert said is not None or fits, (name, wrong)


def _parsed(text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return InputError


@pytest.mark.parametrize("table", ["rounds", "requests"])
def test_every_entry_of_a_round_missing_or_of_another_type(path, table):
    good = path.read_bytes()
    rows = entries(path, f"SELECT rowid, record FROM {table} ORDER BY number DESC")
    if not rows:
        pytest.skip("nothing was asked and not reported")
    rowid, text = rows[0]
    record, seen = json.loads(text), len(entries(path, "SELECT 1 FROM rounds"))
    if table == "requests" and record["number"] != seen:
        change(path, f"DELETE FROM rounds WHERE number >= {record['number']}")
        good = path.read_bytes()
    assert opened_or_refused(path) is None
    for name in record:
        changed = [{k: v for k, v in record.items() if k != name}, *(record | {name: wrong} for wrong in WRONG)]
        for number, made in enumerate(changed):
            path.write_bytes(good)
            change(path, (f"UPDATE {table} SET record = ? WHERE rowid = ?", (json.dumps(made), rowid)))
            said = opened_or_refused(path)
            assert said is not None or (number and type(made[name]) is type(record[name])) or made[name] is None, made


def test_what_computes_is_refused(path):
    good = path.read_bytes()
    for statements in (
        ("DROP TABLE settings", f"CREATE VIEW settings (name, value) AS {VIEW}"),
        (f"CREATE VIEW other AS {VIEW}",),
        ("CREATE TRIGGER t AFTER INSERT ON rounds BEGIN DELETE FROM settings; END",),
        ("DROP TABLE requests",),
        ("ALTER TABLE rounds RENAME COLUMN digest TO other",),
        ("DROP TABLE requests", "CREATE VIRTUAL TABLE requests USING fts5(number, record)"),
        ("DROP TABLE requests", "CREATE TABLE requests (number INTEGER PRIMARY KEY, record TEXT AS (upper(number)))"),
    ):
        path.write_bytes(good)
        change(path, *statements)
        assert opened_or_refused(path) is not None, statements


def test_data_that_claim_more_than_they_have(path):
    change(path, ("UPDATE rounds SET data = ? WHERE number = 0", (b"PK\x03\x04 nothing",)))
    with pytest.raises(InputError, match="damaged"):
        Study.open(path).demonstrations(0)


def test_records_of_another_kind_are_a_sentence(tmp_path):
    path = tmp_path / "records.sqlite"
    with Store(path) as store:
        store.add(Cell("theory", {"seed": 1}), 1.0, {"error": 0.5})
    good = path.read_bytes()
    for column, wrongs in {
        "setting": ["[", "5", b"\xff", "[" * 5000], "result": ["[1]", "null", "", "{", 5], "version": [b"x"],
        "duration": ["x", -1, 1e300, b"x"], "elapsed": ["x", -1],
    }.items():  # fmt: skip
        for wrong in wrongs:
            path.write_bytes(good)
            change(path, (f"UPDATE records SET {column} = ?", (wrong,)))
            with Store(path) as store, pytest.raises(InputError, match="cannot be read"):
                store.records("theory")
    path.write_bytes(good)
    change(path, "DROP TABLE records", f"CREATE VIEW records AS {VIEW}")
    with pytest.raises(InputError, match="plain tables"):
        Store(path)
