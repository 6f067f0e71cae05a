"""The miniature of the paper's experiments, by the command line in a process of its own."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from .simulating import tables

CHEAP = ("theory",)
OTHERS = (
    "minigolf-strategies",
    "gridworld",
    "continuous-gridworld",
    "minigolf-curve",
    "minigolf-features",
    "car",
    "imitation",
    "calibration",
)


def reproduced(name: str, folder: Path) -> dict[str, Any]:
    """The numbers and verdicts of all panels of an experiment, and the names in its files."""
    command = [sys.executable, "-m", "policyspace", "reproduce", name, "--quick", "--jobs", "1", "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    written = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    experiment = written["experiments"][name]
    columns = experiment["columns"]
    one = next(iter(columns.values()))
    return {
        "names of the fields": [list(written), list(experiment), list(one), list(one["panels"][0])],
        **panels(name, folder),
        "tables": tables(folder / "records.sqlite"),
        "figures": sorted(path.name for path in (folder / "figures").iterdir()),
    }


def panels(name: str, folder: Path) -> dict[str, Any]:
    """How many cells an experiment has, and the numbers and verdicts of its panels."""
    columns = json.loads((folder / "results.json").read_text(encoding="utf-8"))["experiments"][name]["columns"]
    return {
        "cells": {name: column["num_cells"] for name, column in columns.items()},
        "panels": {
            f"{name}: {p['name']}": {"verdict": p["verdict"], "numbers": p["numbers"]}
            for name, column in columns.items()
            for p in column["panels"]
        },
    }


FAST_PROBLEMS = {name: partial(reproduced, name) for name in CHEAP}
SLOW_PROBLEMS = {name: partial(reproduced, name) for name in OTHERS}
