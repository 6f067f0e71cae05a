"""Every value that a study keeps is sealed: one byte that changes is an error, which names the round."""

import random
import re
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import jax
import pytest
from typer.testing import CliRunner

from policyspace import InputError, Study, make_world
from policyspace.cli import app
from tests.some_episodes import some_episodes

GRID = make_world("gridworld")
SPACE = GRID.policy_space()
OLDER = sorted((Path(__file__).parent / "older_files").glob("*.sqlite"))


def log(seed):
    """Five episodes of a policy that uses nothing."""
    omega = GRID.default_configuration()
    return some_episodes(GRID, SPACE, SPACE.fixed, omega, jax.random.key(seed), 5)


@pytest.fixture(scope="module")
def three_rounds(tmp_path_factory):
    path = tmp_path_factory.mktemp("studies") / "s.sqlite"
    study = Study.create(path, "gridworld", episodes=5, max_rounds=3, design="none")
    for seed in range(3):
        study.ask()
        study.tell(log(seed))
    study.ask()
    return path


def changed(path, table, row, column, value):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))


def cells(path):
    """(table, rowid, column, value) of all that is kept."""
    found = []
    with closing(sqlite3.connect(path)) as connection:
        for table in ("settings", "requests", "rounds", "seals"):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for row in connection.execute(f"SELECT rowid, * FROM {table}"):
                found += [(table, row[0], column, value) for column, value in zip(columns, row[1:], strict=True)]
    return found


def damaged(rng, value):
    """One byte of it is another."""
    if isinstance(value, int):
        return value + rng.choice([1, -1, 256])
    content = bytearray(value if isinstance(value, bytes) else value.encode())
    content[rng.randrange(len(content))] ^= rng.randrange(1, 256)
    if isinstance(value, bytes):
        return bytes(content)
    return content.decode("utf-8", "replace")


def test_no_changed_value_passes(three_rounds, tmp_path):
    rng, path, passed, tried = random.Random(0), tmp_path / "s.sqlite", [], 0
    everything = cells(three_rounds)
    for table, row, column, value in [*everything, *rng.choices(everything, k=150)]:
        other = damaged(rng, value)
        shutil.copy(three_rounds, path)
        try:
            changed(path, table, row, column, other)
        except sqlite3.IntegrityError:  # a number that is taken
            continue
        tried += 1
        try:
            Study.open(path)
            passed.append((table, row, column))
        except InputError as error:
            said = str(error)
            assert said.startswith(f"{path}: ") and "\n" not in said
            if table == "rounds" and column != "number":
                assert f"round {row + 1} " in said, said
    assert tried > 200 and passed == []


def test_no_changed_byte_of_a_value_on_the_disk_passes(three_rounds, tmp_path):
    """Bytes of the file itself, where the values are."""
    rng, path = random.Random(1), tmp_path / "s.sqlite"
    whole = three_rounds.read_bytes()
    with closing(sqlite3.connect(three_rounds)) as connection:
        texts = [t.encode() for row in connection.execute("SELECT record, metadata, digest FROM rounds") for t in row]
        texts += [value.encode() for (value,) in connection.execute("SELECT value FROM settings")]
        texts += [value.encode() for (value,) in connection.execute("SELECT digest FROM seals")]
    places = [m.start() + rng.randrange(len(t)) for t in texts if len(t) > 3 for m in re.finditer(re.escape(t), whole)]
    assert len(places) >= 10
    for place in places:
        content = bytearray(whole)
        content[place] ^= rng.randrange(1, 256)
        path.write_bytes(content)
        with pytest.raises(InputError):
            Study.open(path)


def test_rows_that_are_missing_or_too_many(three_rounds, tmp_path):
    path = tmp_path / "s.sqlite"
    for statement in (
        "DELETE FROM rounds WHERE number = 2",
        "DELETE FROM rounds WHERE number = 0",
        "DELETE FROM requests WHERE number = 1",
        "DELETE FROM seals WHERE number = 3",
        "DELETE FROM seals WHERE number = (SELECT max(number) FROM seals)",
        "DELETE FROM seals",
        "DROP TABLE seals",
        "DELETE FROM settings WHERE name = 'seed'",
        "INSERT INTO requests SELECT 9, record FROM requests WHERE number = 0",
        "INSERT INTO rounds SELECT 3, told_at, record, metadata, 'other', data FROM rounds WHERE number = 2",
        "UPDATE rounds SET number = 7 WHERE number = 2",
        "PRAGMA user_version = 99",
    ):
        shutil.copy(three_rounds, path)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)
        with pytest.raises(InputError):
            Study.open(path)


def test_a_version_that_is_changed_does_not_open_the_seals(three_rounds, tmp_path):
    shutil.copy(three_rounds, tmp_path / "s.sqlite")
    changed(tmp_path / "s.sqlite", "rounds", 1, "told_at", "yesterday")
    with closing(sqlite3.connect(tmp_path / "s.sqlite")) as connection, connection:
        connection.execute("PRAGMA user_version = 1")
    with pytest.raises(InputError, match="round 2 or its seal is not as it was written"):
        Study.open(tmp_path / "s.sqlite")


def test_verify_says_what_holds(three_rounds, tmp_path):
    run = CliRunner().invoke
    said = run(app, ["study", "verify", str(three_rounds)])
    assert said.exit_code == 0 and "3 rounds with their data are as they were written" in said.output
    assert re.search(r"Last seal: [0-9a-f]{64}", said.output)
    old = shutil.copy(OLDER[0], tmp_path / "old.sqlite")
    said = run(app, ["study", "verify", str(old)])
    assert said.exit_code == 0 and "the file is older than seals" in said.output


def test_of_two_tellers_the_second_hears_the_round_as_it_is_shown(tmp_path):
    """Rounds are counted from 1 on the screen and in pictures."""
    path = tmp_path / "s.sqlite"
    Study.create(path, "gridworld", episodes=5, max_rounds=3, design="none")
    logs = [log(0), log(1)]
    both = [Study.open(path) for _ in logs]
    ready, said = threading.Barrier(2), []
    insert = type(both[0]._store).tell

    def together(store, *row):
        ready.wait(30)
        insert(store, *row)

    def tell(study, seen):
        try:
            study.tell(seen)
        except InputError as error:
            said.append(str(error))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(both[0]._store), "tell", together)
        threads = [threading.Thread(target=tell, args=one) for one in zip(both, logs, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert said == [f"{path}: another process reported round 1 meanwhile: tell it as the next one."]
    assert len(Study.open(path).status().rounds) == 1
