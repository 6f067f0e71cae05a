"""The SQLite file of a study, its validation, and the detection of data that were reported before."""

import hashlib
import io
import json
import sqlite3
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias, final

import numpy as np
from scipy.stats import binom

from policyspace.data.files import located
from policyspace.errors import InputError, reason_of
from policyspace.runtime import check_limit
from policyspace.safe_io import JSON, built, check_tables, conforms, parse_json, read_archive, replacing, size_of

# -- The one file of a study: SQLite, every change a transaction, arrays compressed and never pickled.

APPLICATION = 0x50535459  # "PSTY" in the header of the file: this SQLite file is a study
VERSION = 2
"""Files of version 1 have no seals."""

SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE requests (number INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE rounds (
  number INTEGER PRIMARY KEY, told_at TEXT NOT NULL, record TEXT NOT NULL, metadata TEXT NOT NULL,
  digest TEXT NOT NULL UNIQUE, data BLOB NOT NULL
);
CREATE TABLE seals (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, of INTEGER NOT NULL, digest TEXT NOT NULL);
"""

TABLES = {
    "settings": ("name", "value"),
    "requests": ("number", "record"),
    "rounds": ("number", "told_at", "record", "metadata", "digest", "data"),
}

OLDER = {"always": "assume", "num_attempts": "max_rounds"}
"""Settings as files of earlier versions name them, and what they are called now."""

SEALS = {"seals": ("number", "kind", "of", "digest")}

SEALED = {
    "settings": "SELECT name, value FROM settings ORDER BY rowid",
    "request": "SELECT number, record FROM requests WHERE number = ?",
    "round": "SELECT number, told_at, record, metadata, digest, data FROM rounds WHERE number = ?",
}
"""What a seal is of, by its kind."""

DAMAGED = (TypeError, OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What reading an archive of arrays may raise."""

Arrays = dict[str, np.ndarray]


class StoredRound(NamedTuple):
    """A round as its file says it; whoever reads it checks it."""

    record: Mapping[str, JSON]
    metadata: Mapping[str, JSON]  # what the data said of themselves
    told_at: str


_held: ContextVar[tuple[Path, sqlite3.Connection] | None] = ContextVar("_held", default=None)
"""The study that is open in this thread, and its connection."""


@final
@dataclass(frozen=True)
class SQLiteStore:
    """The settings, the requests and the rounds of one study; a connection lives no longer than one call."""

    path: Path

    @classmethod
    def create(cls, path: str | Path, settings: Mapping[str, Any]) -> "SQLiteStore":
        """A new file, which appears whole or not at all; an old one is never replaced."""
        target = _checked(path)
        if target.exists():
            raise InputError(f"{path}: there is a file already: open that study, or choose another name.")
        with closing(sqlite3.connect(":memory:")) as memory:
            memory.executescript(f"PRAGMA application_id={APPLICATION}; PRAGMA user_version={VERSION}; {SCHEMA}")
            rows = [(name, _text(value)) for name, value in settings.items()]
            memory.executemany("INSERT INTO settings VALUES (?, ?)", rows)
            _seal(memory, "settings", 0)
            memory.commit()
            content = memory.serialize()
        with replacing(target) as file:
            file.write(content)
        return cls(target)

    @classmethod
    def open(cls, path: str | Path) -> "SQLiteStore":
        """An existing study, which must be one and not from the future."""
        store = cls(_checked(path))
        if not store.path.is_file():
            what = "a folder" if store.path.is_dir() else "no file"
            raise InputError(f"{path}: expected a study, found {what}: make one with `policyspace study create`.")
        with located(store.path):
            check_limit("MAX_DATABASE_BYTES", size_of(path), "the bytes of a study")
        store.verify()
        return store

    def verify(self) -> str | None:
        """Check that all that is kept is as it was written: the last seal, or None in a file of before there were any.

        A seal is the SHA-256 of the one before it and of what it is about, so that none can be changed alone.
        """
        with self._connected() as connection, located(self.path):
            connection.execute("BEGIN")  # one state of the file, whoever writes meanwhile
            last = _check_seals(connection) if _is_sealed(connection) else None
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                raise InputError(f"is damaged ({reason_of(ValueError(found))}): restore the file from a copy.")
        return last

    def settings(self) -> dict[str, JSON]:
        """What the study was created with."""
        with self._connected() as connection:
            rows = connection.execute("SELECT name, value FROM settings").fetchall()
        return {OLDER.get(name, str(name)): self._parsed(value, f"the setting '{name}'") for name, value in rows}

    def rounds(self) -> list[StoredRound]:
        """Every round, in order."""
        with self._connected() as connection:
            rows = connection.execute("SELECT record, metadata, told_at FROM rounds ORDER BY number").fetchall()
        return [
            StoredRound(
                self._parsed(record, "a round"), self._parsed(metadata, "what is known of a round"), str(told_at)
            )
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
            what = f"{self.path}: the data of round {number + 1} are damaged"
            raise InputError(f"{what}: restore the file from a copy.") from error
        return arrays

    def request(self, number: int) -> Mapping[str, JSON] | None:
        """What was asked for a round, if it was."""
        with self._connected() as connection:
            row = connection.execute("SELECT record FROM requests WHERE number = ?", (number,)).fetchone()
        return None if row is None else self._parsed(row[0], "a request")

    def keep_request(self, number: int, record: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Write down what is asked; if another process was faster, what it wrote holds."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            kept = connection.execute("INSERT OR IGNORE INTO requests VALUES (?, ?)", (number, _text(record))).rowcount
            if kept and _is_sealed(connection):
                _seal(connection, "request", number)
            connection.execute("COMMIT")
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
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
        row = (number, told_at, _text(record), _text(metadata), digest(arrays), buffer.getvalue())
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                count = connection.execute("SELECT count(*) FROM rounds").fetchone()[0]
                if count != number:
                    raise InputError(
                        f"{self.path}: another process reported round {number + 1} meanwhile: tell it as the next one."
                    )
                connection.execute("INSERT INTO rounds VALUES (?, ?, ?, ?, ?, ?)", row)
                if _is_sealed(connection):
                    _seal(connection, "round", number)
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
    def opened(self) -> Iterator[None]:
        """One connection for all that is read and written inside."""
        with self._connected() as connection:
            before = _held.set((self.path, connection))
            try:
                yield
            finally:
                _held.reset(before)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """A connection that writes through to the disk; whatever SQLite complains about becomes one sentence."""
        held = _held.get()
        if held is not None and held[0] == self.path:
            yield held[1]
            return
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
    check_tables(connection, {**TABLES, **SEALS} if version > 1 else TABLES)


def _is_sealed(connection: sqlite3.Connection) -> bool:
    """By the table, whatever version the file says it is of."""
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'seals'").fetchone()[0])


def _seal(connection: sqlite3.Connection, kind: str, of: int) -> None:
    """A seal of what has just been written."""
    row = connection.execute("SELECT number, digest FROM seals ORDER BY number DESC LIMIT 1").fetchone()
    number, before = row or (-1, "")
    seal = (number + 1, kind, of, _digest_of(connection, before, kind, of))
    connection.execute("INSERT INTO seals VALUES (?, ?, ?, ?)", seal)


def _digest_of(connection: sqlite3.Connection, before: str, kind: str, of: int) -> str:
    """SHA-256 of the seal before it, of what it is of, and of every value there, with its type and its length."""
    seen = hashlib.sha256(f"{before} {kind} {of};".encode())
    for row in connection.execute(SEALED[kind], (of,) if "?" in SEALED[kind] else ()):
        for value in row:
            content = value if isinstance(value, bytes) else str(value).encode()
            seen.update(f"{type(value).__name__} {len(content)};".encode() + content)
    return seen.hexdigest()


def _check_seals(connection: sqlite3.Connection) -> str:
    """The last seal, where all of them hold and nothing is without one."""
    before, sealed = "", Counter[str]()
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    seals = connection.execute("SELECT number, kind, of, digest FROM seals ORDER BY number").fetchall()
    for expected, (number, kind, of, digest) in enumerate(seals):
        if kind not in SEALED or type(of) is not int:
            raise InputError(f"its seal {expected} is damaged: restore the file from a copy.")
        about = {"settings": "the settings", "request": f"what was asked for round {of + 1}"}.get(
            kind, f"round {of + 1}"
        )
        try:
            whole = number == expected and digest == _digest_of(connection, before, kind, of)
        except (sqlite3.Error, ValueError) as error:
            raise InputError(f"{about} cannot be read ({reason_of(error)}): restore the file from a copy.") from error
        if not whole:
            raise InputError(f"{about} or its seal is not as it was written: restore the file from a copy.")
        before = digest
        sealed[kind] += 1
    for kind, table in (("request", "requests"), ("round", "rounds")):
        found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        if found != sealed[kind] or sealed["settings"] != 1:
            raise InputError(
                f"holds {found} {table}, of which {sealed[kind]} are sealed: restore the file from a copy."
            )
    return before


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


# -- What a file says about rounds, checked before it is believed: every entry there, of its type, and within its range.

MOST = 10**9
"""Rounds or episodes that anyone plans."""


def is_setting(value: Any) -> bool:
    """A number, or lists of numbers: the value of one entry of ω."""
    return conforms(value, float) or (isinstance(value, list) and all(map(is_setting, value)))


Count = Annotated[int, lambda value: type(value) is int and 0 <= value <= MOST]
"""A whole number, not negative, that one can count to."""

Share = Annotated[float, lambda value: conforms(value, float) and 0 < value < 1]
"""A probability strictly between 0 and 1."""

Unbounded = Annotated[float, lambda value: value is None or conforms(value, float)]
"""A number; an infinite one is written as nothing."""

Names = Annotated[tuple[str, ...], lambda value: conforms(value, list[str]) and len(set(value)) == len(value)]
"""Different texts."""

Setting: TypeAlias = Annotated[float | Sequence["Setting"], is_setting]
"""One entry of ω as plain data: a number, or lists of numbers."""


def checked_entries(
    kinds: Mapping[str, Any], given: Any, what: str, optional: Collection[str] = ()
) -> Mapping[str, Any]:
    """The entries of a table as their type hints say, or one sentence about the first that is missing or of no such type."""
    if not isinstance(given, dict):
        raise InputError(f"{what} must be a table, found {given!r:.40}: the file is damaged.")
    found = {}
    for name, kind in kinds.items():
        if name not in given:
            if name in optional:
                continue
            raise InputError(f"{what} must have the entry '{name}', found none: the file is damaged.")
        value = given[name]
        if not conforms(value, kind):
            shown = "a number that large" if isinstance(value, int) and abs(value) > MOST**2 else f"{value!r:.60}"
            raise InputError(f"{what} cannot have '{name}' = {shown}: the file is damaged.")
        found[name] = built(value, kind)
    return found


# -- Episodes that were reported before, told from those that only look like them by chance.

CHANCE = 1e-6
"""So rarely does chance put as many episodes into two reports as are refused."""
FEWEST = 6
"""Episodes that are enough where they are all of a report: of equally likely ones, however many there are, chance
repeats six less than once in 2000 times."""


def check_new(arrays: Arrays, earlier: Iterable[Arrays]) -> None:
    """Refuse a report that holds episodes of an earlier one, or is held by it.

    Short episodes come twice by chance, and an agent that never wavers repeats whole ones from equal starts; but then they
    come twice within a report, too. Of the episodes that occur exactly twice in two reports, chance puts at most about a
    half into different ones, if episodes are independent: one that occurs λ times in one report on average and μ times in
    the other occurs once in each with the chance λμ·e^−(λ+μ), and twice in one of them with ½(λ² + μ²)·e^−(λ+μ), which is
    no less. So the number of those in both is compared with fair coins, whatever the world, the agent and its
    configurations are. Where several begin alike and go on otherwise, the same starts were used again on purpose, and
    nothing is refused.
    """
    new, begun = _episodes(arrays)
    for number, other in enumerate(earlier, 1):
        old, begun_before = _episodes(other)
        twice = [episode for episode, count in (new + old).items() if count == 2]
        shared = sum(new[episode] == 1 for episode in twice)
        whole = shared == len(twice) == min(new.total(), old.total()) >= FEWEST
        starts = [{begun[e] for e in new if e not in old}, {begun_before[e] for e in old if e not in new}]
        if (whole or binom.sf(shared - 1, len(twice), 0.5) <= CHANCE) and len(starts[0] & starts[1]) <= 1:
            raise InputError(
                f"{shared} of these {new.total()} episodes were reported before, in round {number}: tell only new ones."
            )


def _episodes(arrays: Arrays) -> tuple[Counter[bytes], dict[bytes, bytes]]:
    """How often each episode occurs, as its rows in whatever order, and the observation that it begins with."""
    features, actions, episodes = rows_of(arrays)
    columns = [features, actions.reshape(len(actions), -1), *([arrays["weights"]] if "weights" in arrays else [])]
    table = np.column_stack(columns) + 0.0  # so that no zero is negative
    _, first, number = np.unique(episodes, return_index=True, return_inverse=True)
    order = np.lexsort((*table.T, number))
    parts = np.split(table[order], np.flatnonzero(np.diff(number[order])) + 1)
    found = [part.tobytes() for part in parts]
    begun = [row.tobytes() for row in table[first, : features.shape[1]]]
    return Counter(found), dict(zip(found, begun, strict=True))
