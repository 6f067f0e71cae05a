"""SQLite files that come from outside: plain tables with known columns, and nothing in them that computes."""

import sqlite3
from collections.abc import Mapping, Sequence

from policyspace.data.limits import limit
from policyspace.errors import InputError


def check_tables(connection: sqlite3.Connection, wanted: Mapping[str, Sequence[str]]) -> None:
    """The tables by name, each with its columns; a view may never end, and a trigger may change what is written."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(limit("MAX_UNPACKED_BYTES"), 2**31 - 1))
    connection.execute("PRAGMA trusted_schema=OFF")
    tables = set()
    for kind, name, text in connection.execute("SELECT type, name, sql FROM sqlite_schema"):
        made_by_table = kind == "index" and text is None
        if not made_by_table and (kind != "table" or not str(text).upper().startswith("CREATE TABLE")):
            raise InputError(f"must hold plain tables only, found the {kind} '{name}': do not use this file.")
        if kind == "table":
            tables.add(name)
    for name, columns in wanted.items():
        if name not in tables:
            raise InputError(f"must hold the table '{name}', found none: restore the file from a copy.")
        found = {row[1]: row[6] for row in connection.execute(f"PRAGMA table_xinfo({name})")}
        for column in columns:
            if found.get(column) != 0:  # anything else is a column that is computed
                raise InputError(f"must have the column '{column}' in '{name}', found none: restore it from a copy.")
