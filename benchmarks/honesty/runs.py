"""One run: a scenario of one seed, asked by one test; and the file that keeps finished runs."""

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_limits

import policyspace
from benchmarks.honesty import SCENARIOS
from benchmarks.honesty.peer import NoAnswer, found_by_statsmodels
from benchmarks.honesty.scenario import Scenario
from policyspace.data.large.backends import code_version
from policyspace.data.sample import Sample
from policyspace.errors import InputError

SIGNIFICANCE = 0.05
PEER = "statsmodels"
COLUMNS = ("auto", "lean", "wilks", "universal", PEER)


class Task(NamedTuple):
    """Which scenario, which test, which seed."""

    cell: str
    column: str
    seed: int


@dataclass(frozen=True)
class Run:
    """What came out."""

    cell: str
    column: str
    seed: int
    found: list[str]
    used: list[str]
    promised: bool  # a bound on the error was stated
    seconds: float  # of processor time
    refused: str = ""  # why there was no answer
    version: str = ""  # of the code; empty in records of before it was kept

    @property
    def task(self) -> Task:
        """What was asked for."""
        return Task(self.cell, self.column, self.seed)

    @property
    def any_false(self) -> bool:
        """Was an input found that the agent does not use?"""
        return not set(self.found) <= set(self.used)


def run(task: Task) -> Run:
    """Simulate and ask; no answer at all counts as nothing found and nothing promised."""
    return asked_of(SCENARIOS[task.cell](task.seed), task)


def asked_of(scenario: Scenario, task: Task) -> Run:
    """Ask a log; whose scenario it is, the task says."""
    start = time.process_time()
    refused = ""
    with threadpool_limits(1):
        try:
            found, promised = _asked(scenario, task.column)
        except (InputError, NoAnswer) as error:
            found, promised, refused = [], False, str(error)
    seconds = round(time.process_time() - start, 4)
    return Run(*task, found, sorted(scenario.used), promised, seconds, refused, _version())


@cache
def _version() -> str:
    """Read once a process: the package does not change under a run."""
    return code_version()


def _asked(scenario: Scenario, column: str) -> tuple[list[str], bool]:
    """The inputs found, and whether a promise comes with them; statsmodels promises whenever it has p-values."""
    if column == PEER:
        return found_by_statsmodels(scenario, SIGNIFICANCE), True
    data = Sample.from_arrays(scenario.features, scenario.actions, scenario.names, episodes=scenario.episodes)
    answer = policyspace.identify(
        replace(data, subjects=scenario.subjects),
        test=column,  # type: ignore[arg-type]
        significance=SIGNIFICANCE,
    )
    return list(answer.selected), answer.guarantee is not None


class Records:
    """Finished runs as lines of JSON; an interrupted write costs the last line only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole, encoding="utf-8")
        self.runs = {run.task: run for run in (Run(**json.loads(line)) for line in whole.splitlines())}

    def missing(self, tasks: Iterable[Task]) -> list[Task]:
        """What is still to be run."""
        return [task for task in tasks if task not in self.runs]

    def add(self, run: Run) -> None:
        """Keep a run, in memory and on disk."""
        self.runs[run.task] = run
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(run), ensure_ascii=False) + "\n")
