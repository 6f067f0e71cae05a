"""Logged rows: tables, files, connectors, and samples in memory or in passes."""

from policyspace.runtime import lazy_names

_HOMES = {
    "columns": (
        "AlternativeColumns",
        "ColumnRoles",
    ),
    "files": (
        "SUFFIXES",
        "table_of",
    ),
    "large.backends": (
        "Threads",
        "backend_of",
        "tree_sum",
    ),
    "large.log": ("open_log",),
    "large.parts": (
        "DataFile",
        "FilePart",
        "data_set",
        "data_set_of",
        "files_of",
        "is_many",
    ),
    "order": (
        "order_p",
        "sort_keys",
        "without_order",
    ),
    "origin": (
        "FormulaRecord",
        "Origin",
    ),
    "request": (
        "ColumnOptions",
        "Request",
        "load_sample",
    ),
    "rows": (
        "BLOCK",
        "ComputeMoments",
        "ExtremeRows",
        "FindExtremeRows",
        "InMemoryRows",
        "RowBlock",
        "Rows",
        "moments_of",
    ),
    "schema": ("Schema",),
    "terms": (
        "parse_formula",
        "with_lags",
        "with_lags_of_inputs",
    ),
    "draws": (
        "DrawRecord",
        "Draws",
        "draws_of",
        "with_assigned",
    ),
    "examples": (
        "IDLE",
        "NUM_MICE",
        "trials",
    ),
}

__all__, __getattr__ = lazy_names(__name__, _HOMES)
