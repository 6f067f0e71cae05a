"""Tries a wheel as a user meets it: installed alone into an empty environment, `policyspace demo` must work.

python release/try_wheel.py dist/policyspace-*.whl
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LARGEST = 1_000_000  # bytes


def try_wheel(wheel: Path) -> None:
    """Checks the size of a wheel, installs it with what it needs, and runs the demo in an empty folder."""
    size = wheel.stat().st_size
    if size > LARGEST:
        sys.exit(f"{wheel}: {size} bytes; at most {LARGEST} were wanted. Look for files that do not belong there.")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder, "env"), with_pip=True)
        programs = Path(folder, "env", "bin")
        subprocess.run([programs / "pip", "install", "--quiet", wheel.resolve()], check=True)
        subprocess.run([programs / "policyspace", "--version"], check=True, cwd=folder)
        subprocess.run([programs / "policyspace", "demo"], check=True, cwd=folder)
    print(f"{wheel.name}: {size / 1e6:.2f} MB, installs alone, and its demo runs.")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try_wheel(Path(sys.argv[1]))
