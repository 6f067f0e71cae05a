"""Tries wheels as users meet them: each set alone in an empty environment, from the folder that `make release` fills.

python release/try_wheels.py dist

Three environments: the core; the core with the extra [configure]; both distributions.
"""

import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

LARGEST = 1_000_000  # bytes of one wheel


@dataclass(frozen=True)
class Trial:
    """What is installed, what must run there, and what must be refused in one sentence."""

    name: str
    installed: tuple[str, ...]
    runs: tuple[str, ...]
    refused: dict[str, str]
    absent: tuple[str, ...] = ()


def trials(core: Path, paper: Path) -> list[Trial]:
    """The three environments."""
    needs_extra = "pip install 'policyspace[configure]'"
    return [
        Trial(
            "core",
            (str(core),),
            ("--version", "demo", "identify policyspace-demo.csv --report page.html --plot picture.svg"),
            {"worlds": needs_extra, "reproduce": "pip install policyspace-paper"},
            absent=("jax", "gymnasium", "optax", "torch"),
        ),
        Trial(
            "core with [configure]",
            (f"{core}[configure]",),
            ("worlds", "simulate minigolf --episodes 20 --out golf.csv", "identify golf.csv"),
            {"reproduce": "pip install policyspace-paper"},
        ),
        Trial("both", (str(core), str(paper)), ("demo", "reproduce --help"), {}),
    ]


def attempt(trial: Trial, folder: Path) -> None:
    """Install, run, and be refused."""
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / "bin"
    quietly = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    quietly.pop("PYTHONPATH", None)
    subprocess.run([programs / "pip", "install", "--quiet", *trial.installed], check=True, env=quietly)
    for command in trial.runs:
        subprocess.run(
            [programs / "policyspace", *command.split()], check=True, cwd=folder, env=quietly, stdout=subprocess.DEVNULL
        )
    for command, sentence in trial.refused.items():
        done = subprocess.run(
            [programs / "policyspace", command], cwd=folder, env=quietly, capture_output=True, text=True
        )
        if done.returncode != 2 or sentence not in " ".join(done.stderr.split()) or "Traceback" in done.stderr:
            sys.exit(f"policyspace {command} ({trial.name}): expected '{sentence}', found\n{done.stderr}")
    for library in trial.absent:
        found = subprocess.run([programs / "python", "-c", f"import {library}"], capture_output=True, env=quietly)
        if not found.returncode:
            sys.exit(f"{trial.name}: {library} was installed; it belongs to an extra.")
    print(f"{trial.name}: installs alone; {', '.join(trial.runs)}.", flush=True)


def main(dist: Path) -> None:
    """All environments, one after the other."""
    core, paper = (next(dist.glob(f"{name}-*.whl")).resolve() for name in ("policyspace", "policyspace_paper"))
    for wheel in (core, paper):
        if wheel.stat().st_size > LARGEST:
            sys.exit(
                f"{wheel}: {wheel.stat().st_size} bytes, at most {LARGEST}. Look for files that do not belong there."
            )
    for trial in trials(core, paper):
        with tempfile.TemporaryDirectory() as folder:
            attempt(trial, Path(folder))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
