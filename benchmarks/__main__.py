"""`make bench`: every benchmark of this folder, one after the other."""

from importlib import import_module
from pathlib import Path

OTHERS = {
    "__init__",
    "__main__",
    "table",
    "calibration",
    "drivers",
    "loops",
    "subjects",
    "counts",
}  # the last four are about errors

for path in sorted(Path(__file__).parent.glob("*.py")):
    if path.stem not in OTHERS:
        import_module(f"benchmarks.{path.stem}").main()
