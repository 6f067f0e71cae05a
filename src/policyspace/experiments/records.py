"""Records of finished cells in one SQLite file: written as they finish, whole or not at all."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from policyspace.data.code_version import code_version
from policyspace.data.input_files import parse_json, size_of
from policyspace.data.limits import check_limit
from policyspace.data.sqlite_tables import check_tables
from policyspace.errors import InputError

SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    experiment TEXT NOT NULL,
    setting TEXT NOT NULL,   -- JSON with sorted keys; the seed is part of it
    version TEXT NOT NULL,
    duration REAL NOT NULL,  -- seconds of processor time
    result TEXT NOT NULL,    -- JSON
    elapsed REAL,            -- seconds on the clock since the record before it
    PRIMARY KEY (experiment, setting)
)
"""

COLUMNS = ("experiment", "setting", "version", "duration", "result")


@dataclass(frozen=True)
class Cell:
    """One run to make: an experiment and a setting, plain data that holds every number the run needs, its seed too."""

    experiment: str
    setting: dict[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        """What makes two cells the same."""
        return self.experiment, json.dumps(self.setting, sort_keys=True)


@dataclass(frozen=True)
class Record:
    """A finished cell."""

    experiment: str
    setting: dict[str, Any]
    version: str
    duration: float
    result: dict[str, Any]
    elapsed: float | None = None  # on the clock since the record before it: less than the duration of cells run at once

    @classmethod
    def checked(cls, experiment: Any, setting: Any, version: Any, duration: Any, result: Any, elapsed: Any) -> Self:
        """From a row of the file, which may hold anything."""
        tables = [parse_json(text) if isinstance(text, str) else None for text in (setting, result)]
        times = [duration, 0.0 if elapsed is None else elapsed]
        if not all(isinstance(table, dict) for table in tables) or not isinstance(version, str):
            raise InputError(f"a record of '{experiment}' is no table of settings and results, or has no version")
        if not all(isinstance(seconds, int | float) and 0 <= seconds < 1e12 for seconds in times):
            raise InputError(f"a record of '{experiment}' must have taken some seconds, found {times[0]!r:.40}")
        return cls(experiment, tables[0], version, duration, tables[1], elapsed)  # type: ignore[arg-type]


class Store:
    """The file of records; each is one transaction, so a killed run loses at most the cells it was at."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                check_limit("MAX_DATABASE_BYTES", size_of(self.path), "the bytes of records")
            self._connection = sqlite3.connect(self.path, timeout=30)
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.execute(SCHEMA)
            check_tables(self._connection, {"records": COLUMNS})
            if "elapsed" not in {row[1] for row in self._connection.execute("PRAGMA table_info(records)")}:
                self._connection.execute("ALTER TABLE records ADD COLUMN elapsed REAL")  # a file of an earlier version
            self._connection.commit()
        except (OSError, sqlite3.Error, UnicodeDecodeError, InputError) as error:
            raise InputError(
                f"{path}: is not a file of records that can be opened ({str(error).rstrip('.')}): choose another --out."
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, cell: Cell, duration: float, result: dict[str, Any], elapsed: float | None = None) -> None:
        """Keep the result of a cell; the same cell again changes nothing."""
        plain = json.dumps(result, sort_keys=True, allow_nan=False)
        with self._transaction():
            self._connection.execute(
                "INSERT OR IGNORE INTO records (experiment, setting, version, duration, result, elapsed) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (*cell.key, code_version(), duration, plain, elapsed),
            )

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells without a record, in their order."""
        with self._reading():
            done = set(self._connection.execute("SELECT experiment, setting FROM records"))
        return [cell for cell in cells if cell.key not in done]

    def records(self, experiment: str) -> list[Record]:
        """The records of an experiment, in the order of their settings: the same whatever order they finished in."""
        with self._reading():
            rows = self._connection.execute(
                "SELECT experiment, setting, version, duration, result, elapsed FROM records "
                "WHERE experiment = ? ORDER BY setting",
                (experiment,),
            ).fetchall()
            return [Record.checked(*row) for row in rows]

    def records_of(self, cells: Iterable[Cell]) -> list[Record]:
        """The records of some cells, by experiment and setting: runs of other scales in the same file stay out."""
        wanted = {cell.key for cell in cells}
        names = dict.fromkeys(experiment for experiment, _ in sorted(wanted))
        found = [record for name in names for record in self.records(name)]
        return [record for record in found if Cell(record.experiment, record.setting).key in wanted]

    def forget(self, cells: Iterable[Cell]) -> None:
        """Delete the records of some cells, and no others."""
        with self._transaction():
            self._connection.executemany(
                "DELETE FROM records WHERE experiment = ? AND setting = ?", [cell.key for cell in cells]
            )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, InputError) as error:
            raise InputError(
                f"{self.path}: a record cannot be read ({str(error).rstrip('.')}): use --fresh, or another --out."
            ) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._connection:
                yield
        except sqlite3.Error as error:
            raise InputError(
                f"{self.path}: a record could not be written ({error}): what was written before is whole; "
                "make room or choose another --out."
            ) from error
