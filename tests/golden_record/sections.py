"""All problems, by the file that holds their answers, and how closely each must be met again."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import checking, environments, identifying, pages, planning, reading, reproducing, simulating


@dataclass(frozen=True)
class Section:
    """Problems whose answers lie in one file."""

    problems: dict[str, Callable[[Path], Any]]
    rtol: float
    atol: float
    slow: bool = False
    quick: bool = False  # whether it is looked at after every small change: `pytest -m quick`


SECTIONS = {
    "identifying": Section(identifying.PROBLEMS, 1e-6, 1e-7, quick=True),
    "networks": Section(identifying.NETWORK_PROBLEMS, 1e-2, 1e-3, quick=True),  # other processors find other peaks
    "checking": Section(checking.PROBLEMS, 1e-6, 1e-7, quick=True),
    "reading": Section(reading.PROBLEMS, 1e-5, 1e-7, quick=True),
    "environments": Section(environments.PROBLEMS, 1e-4, 1e-6, quick=True),
    "environments_slowly": Section(environments.SLOW_PROBLEMS, 1e-4, 1e-6, slow=True),
    "pages": Section(pages.PROBLEMS, 0.0, 0.0, quick=True),
    "experiments": Section(pages.EXPERIMENT_PROBLEMS, 1e-6, 1e-9),
    "command_line": Section(pages.COMMAND_PROBLEMS, 1e-6, 1e-9, quick=True),
    "planning": Section(planning.PROBLEMS, 1e-6, 1e-7, quick=True),
    "simulating": Section(simulating.PROBLEMS, 1e-4, 1e-6),
    "simulating_slowly": Section(simulating.SLOW_PROBLEMS, 1e-4, 1e-6, slow=True),
    "reproducing": Section(reproducing.FAST_PROBLEMS, 1e-4, 1e-6, quick=True),
    "reproducing_slowly": Section(reproducing.SLOW_PROBLEMS, 1e-4, 1e-6, slow=True),
}
