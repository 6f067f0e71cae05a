"""All problems, by the file that holds their answers, and how closely each must be met again."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import identifying, planning, reproducing, simulating


@dataclass(frozen=True)
class Section:
    """Problems whose answers lie in one file."""

    problems: dict[str, Callable[[Path], Any]]
    rtol: float
    atol: float
    slow: bool = False


SECTIONS = {
    "identifying": Section(identifying.PROBLEMS, 1e-6, 1e-7),
    "networks": Section(identifying.NETWORK_PROBLEMS, 1e-4, 1e-5),
    "planning": Section(planning.PROBLEMS, 1e-6, 1e-7),
    "simulating": Section(simulating.PROBLEMS, 1e-4, 1e-6),
    "simulating_slowly": Section(simulating.SLOW_PROBLEMS, 1e-4, 1e-6, slow=True),
    "reproducing": Section(reproducing.FAST_PROBLEMS, 1e-4, 1e-6),
    "reproducing_slowly": Section(reproducing.SLOW_PROBLEMS, 1e-4, 1e-6, slow=True),
}
