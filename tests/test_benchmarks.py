"""Benchmarks follow the code that they measure: each of them can at least be started."""

from importlib import import_module
from pathlib import Path

import pytest

import benchmarks

FOLDER = Path(benchmarks.__file__).parent
NAMES = [path.stem for path in sorted(FOLDER.glob("*.py")) if not path.stem.startswith("__")]


@pytest.mark.parametrize("name", [*NAMES, "honesty.__main__"])
def test_every_benchmark_imports(name):
    assert callable(getattr(import_module(f"benchmarks.{name}"), "main", len))
