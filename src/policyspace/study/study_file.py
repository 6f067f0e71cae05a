"""The one file of a study: SQLite, every change a transaction, arrays compressed and never pickled."""

import hashlib
import io
import json
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from policyspace.data.input_files import parse_json, size_of
from policyspace.data.limits import check_limit
from policyspace.data.npy import read_archive
from policyspace.data.readers import located
from policyspace.data.sqlite_tables import check_tables
from policyspace.data.whole_file import replacing
from policyspace.errors import InputError

APPLICATION = 0x50535459  # "PSTY" in the header of the file: this SQLite file is a study
VERSION = 1
SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE requests (number INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE rounds (
  number INTEGER PRIMARY KEY, told_at TEXT NOT NULL, record TEXT NOT NULL, metadata TEXT NOT NULL,
  digest TEXT NOT NULL UNIQUE, data BLOB NOT NULL
);
"""

TABLES = {
    "settings": ("name", "value"),
    "requests": ("number", "record"),
    "rounds": ("number", "told_at", "record", "metadata", "digest", "data"),
}

DAMAGED = (TypeError, OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What reading an archive of arrays may raise."""

Arrays = dict[str, np.ndarray]


@final
@dataclass(frozen=True)
class StudyStore:
    """The settings, the requests and the rounds of one study; a connection lives no longer than one question."""

    path: Path

    @classmethod
    def create(cls, path: str | Path, settings: Mapping[str, Any]) -> "StudyStore":
        """A new file, which appears whole or not at all; an old one is never replaced."""
        target = _checked(path)
        if target.exists():
            raise InputError(f"{path}: there is a file already: open that study, or choose another name.")
        with closing(sqlite3.connect(":memory:")) as memory:
            memory.executescript(f"PRAGMA application_id={APPLICATION}; PRAGMA user_version={VERSION}; {SCHEMA}")
            rows = [(name, _text(value)) for name, value in settings.items()]
            memory.executemany("INSERT INTO settings VALUES (?, ?)", rows)
            memory.commit()
            content = memory.serialize()
        with replacing(target) as file:
            file.write(content)
        return cls(target)

    @classmethod
    def open(cls, path: str | Path) -> "StudyStore":
        """An existing study, which must be one and not from the future."""
        store = cls(_checked(path))
        if not store.path.is_file():
            what = "a folder" if store.path.is_dir() else "no file"
            raise InputError(f"{path}: expected a study, found {what}: make one with `policyspace study create`.")
        with located(store.path):
            check_limit("MAX_DATABASE_BYTES", size_of(path), "the bytes of a study")
        with store._connected():
            return store

    def settings(self) -> dict[str, Any]:
        """What the study was created with."""
        with self._connected() as connection:
            rows = connection.execute("SELECT name, value FROM settings").fetchall()
        return {str(name): self._parsed(value, f"the setting '{name}'") for name, value in rows}

    def rounds(self) -> list[tuple[dict[str, Any], dict[str, Any], str]]:
        """(record, metadata, time) of every round, in order."""
        with self._connected() as connection:
            rows = connection.execute("SELECT record, metadata, told_at FROM rounds ORDER BY number").fetchall()
        return [
            (self._parsed(record, "a round"), self._parsed(metadata, "what is known of a round"), str(told_at))
            for record, metadata, told_at in rows
        ]

    def data(self, number: int) -> Arrays:
        """The arrays that were reported in a round."""
        with self._connected() as connection:
            row = connection.execute("SELECT data, digest FROM rounds WHERE number = ?", (number,)).fetchone()
        if row is None:
            raise InputError(f"{self.path}: has no round {number}: see `policyspace study status`.")
        try:
            arrays = read_archive(row[0])
            if digest(arrays) != row[1]:
                raise ValueError("they are not those that were reported")
        except DAMAGED as error:
            what = f"{self.path}: the data of round {number} are damaged"
            raise InputError(f"{what}: restore the file from a copy.") from error
        return arrays

    def request(self, number: int) -> dict[str, Any] | None:
        """What was asked for a round, if it was."""
        with self._connected() as connection:
            row = connection.execute("SELECT record FROM requests WHERE number = ?", (number,)).fetchone()
        return None if row is None else self._parsed(row[0], "a request")

    def keep_request(self, number: int, record: Mapping[str, Any]) -> dict[str, Any]:
        """Write down what is asked; if another process was faster, what it wrote holds."""
        with self._connected() as connection:
            connection.execute("INSERT OR IGNORE INTO requests VALUES (?, ?)", (number, _text(record)))
            row = connection.execute("SELECT record FROM requests WHERE number = ?", (number,)).fetchone()
        return self._parsed(row[0], "a request")

    def round_with(self, arrays: Arrays) -> int | None:
        """The round in which these very arrays were reported, if they were."""
        with self._connected() as connection:
            row = connection.execute("SELECT number FROM rounds WHERE digest = ?", (digest(arrays),)).fetchone()
        return None if row is None else int(row[0])

    def tell(
        self, number: int, told_at: str, record: Mapping[str, Any], metadata: Mapping[str, Any], arrays: Arrays
    ) -> None:
        """One transaction: the round is in the study with all that belongs to it, or the study is as it was."""
        row = (number, told_at, _text(record), _text(metadata), digest(arrays), _packed(arrays))
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                count = connection.execute("SELECT count(*) FROM rounds").fetchone()[0]
                if count != number:
                    raise InputError(
                        f"{self.path}: another process reported round {number} meanwhile: tell it as the next one."
                    )
                connection.execute("INSERT INTO rounds VALUES (?, ?, ?, ?, ?, ?)", row)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _parsed(self, text: Any, what: str) -> Any:
        try:
            return parse_json(text)
        except InputError as error:
            raise InputError(f"{self.path}: {what} {error}") from error

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """A connection that writes through to the disk; whatever SQLite complains about becomes one sentence."""
        try:
            # `rw`: a file that is not there is not made.
            uri = f"{self.path.resolve().as_uri()}?mode=rw"
            with closing(sqlite3.connect(uri, uri=True, timeout=30.0, isolation_level=None)) as connection:
                # A rollback journal, not WAL: between two changes the study is this one file and no other.
                connection.execute("PRAGMA journal_mode=DELETE")
                connection.execute("PRAGMA synchronous=FULL")
                with located(self.path):
                    _check_study(connection)
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of a damaged text in the file
            reason = str(error).rstrip(".")
            raise InputError(f"{self.path}: cannot be used as a study ({reason}): check the file.") from error


def _checked(path: str | Path) -> Path:
    """The path of a study, which anybody may have given."""
    if not isinstance(path, str | Path):
        raise InputError(f"a study is kept in a file, found {path!r:.40} as its path: give the name of one.")
    return Path(path)


def _check_study(connection: sqlite3.Connection) -> None:
    """A study, not from the future, with the tables of one."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        raise InputError("is no study: make one with `policyspace study create`.")
    if version > VERSION:
        raise InputError(
            f"is a study of version {version}, this policyspace knows up to {VERSION}: install a newer one."
        )
    check_tables(connection, TABLES)


def rows_of(arrays: Arrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The features, the actions and the episode of every row in the arrays of a round."""
    features, actions = arrays["features"], arrays["actions"]
    if "mask" not in arrays:
        return features, actions, arrays["episodes"]
    return features[arrays["mask"]], actions[arrays["mask"]], np.nonzero(arrays["mask"])[0]


def digest(arrays: Arrays) -> str:
    """SHA-256 of the arrays: their names, types, shapes and numbers."""
    seen = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        seen.update(f"{name} {array.dtype.str} {array.shape};".encode())
        seen.update(array.tobytes())
    return seen.hexdigest()


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _packed(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()
