"""`make bench`: every benchmark of this folder, one after the other."""

from importlib import import_module
from pathlib import Path

SHARED = {"__init__", "__main__", "table"}

for path in sorted(Path(__file__).parent.glob("*.py")):
    if path.stem not in SHARED:
        import_module(f"benchmarks.{path.stem}").main()
