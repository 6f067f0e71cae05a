"""Experiments and their catalogue; the cells that they consist of, the records of finished ones, and what runs them."""

import json
import os
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Required, Self, TypedDict, TypeVar

import policyspace
from policyspace.data.large.backends import cluster_error_message, code_version, connect
from policyspace.errors import InputError
from policyspace.runtime import check_limit
from policyspace.safe_io import check_tables, parse_json, size_of
from policyspace_paper import ONE_THREAD
from policyspace_paper.code_digest import Definition, Sources

if TYPE_CHECKING:
    from policyspace_paper.panels import Panel

Procedure = Literal["literal", "ours"]
"""Whose settings a record was made by: the paper's own, wherever it states them, or our defaults."""


class RunSetting(TypedDict, total=False):
    """What most runs depend on; experiments add what is theirs."""

    procedure: Procedure
    num_episodes: int
    significance: float
    seed: Required[int]


S = TypeVar("S", bound=Mapping[str, Any])
"""What a run depends on, its seed too: a TypedDict of what JSON has."""
M = TypeVar("M", bound=Mapping[str, Any])
"""What a run measured: a TypedDict of what JSON has."""


@dataclass(frozen=True)
class Experiment(Generic[S, M]):
    """An experiment of the paper: which runs it consists of, how one is made, and what their records say.

    Parameters
    ----------
    name : str
        As the command and the records know it.
    title : str
        Its heading on the page of results.
    settings : callable
        Of the runs that a `RunSize` asks for.
    run : callable
        Makes one run: a pure function of its setting, so that it can be made anywhere, and made again.
    analyse : callable
        From records to the panels of the page of results; from the same records always the same panels.

    Examples
    --------
    >>> experiment = find_experiment("theory")
    >>> cells = experiment.cells(RunSize(quick=True))
    >>> len(cells), sorted(experiment.run(cells[0].setting | {"num_runs": 1}))
    (8, ['shares'])
    """

    name: str
    title: str
    settings: "Callable[[RunSize], Iterable[S]]"
    run: Callable[[S], M]
    analyse: "Callable[[list[Record[S, M]]], list[Panel]]"

    def cells(self, size: "RunSize") -> "list[Cell]":
        """The runs that a size asks for."""
        return [Cell(self.name, setting) for setting in self.settings(size)]


EXPERIMENTS = {
    "gridworld": "configuring_results:GRIDWORLD_EXPERIMENT",
    "gridworld-weights": "configuring_results:GRIDWORLD_WEIGHTS",
    "gridworld-rule-1": "configuring_results:GRIDWORLD_RULE_1",
    "continuous-gridworld": "configuring_results:CONTINUOUS_EXPERIMENT",
    "minigolf-curve": "minigolf:CURVE",
    "minigolf-training": "minigolf:TRAINING",
    "minigolf-strategies": "minigolf_designs:STRATEGIES_EXPERIMENT",
    "minigolf-features": "minigolf_designs:FEATURES_EXPERIMENT",
    "car": "car:EXPERIMENT",
    "imitation": "imitation:EXPERIMENT",
    "agents": "surrogate:AGENTS_LEARNED",
    "surrogate": "surrogate:EXPERIMENT",
    "calibration": "calibration:EXPERIMENT",
    "theory": "theory_bounds:EXPERIMENT",
}
"""Name → module of this package and name of the experiment in it, in the order of the paper."""


def find_experiment(name: str) -> Experiment[Any, Any]:
    """The experiment of a name."""
    module, attribute = EXPERIMENTS[name].split(":")
    found: Experiment[Any, Any] = getattr(import_module(f"policyspace_paper.{module}"), attribute)
    return found


# -- Which code made a record.


@cache
def sources() -> Sources:
    """The modules of both packages, parsed once a process."""
    return Sources({"policyspace": Path(policyspace.__file__).parent, "policyspace_paper": Path(__file__).parent})


@cache
def record_version(experiment: str) -> str:
    """As 0.1.0+3f2a9c1b: where two are equal, the same settings of this experiment give the same records.

    The digest covers the definitions that a run refers to, and what these refer to: what shows records is not among them.
    """
    run = find_experiment(experiment).run if experiment in EXPERIMENTS else None
    if run is None or sources().module(run.__module__ or "") is None:  # a function need not have a module
        return code_version()
    return f"{policyspace.__version__}+{sources().digest(Definition(run.__module__, run.__name__))}"


# -- How much of an experiment to run, and by whose settings.


@dataclass(frozen=True)
class RunSize:
    """How much of an experiment to run, and by whose settings."""

    runs: int | None = None  # None: as many as the paper
    quick: bool = False  # a miniature: every figure, few points and runs
    as_published: bool = False  # the paper's literal settings where ours differ

    def num_runs(self, paper: int, quick: int) -> int:
        """The runs of an experiment whose paper has so many and whose miniature has so few."""
        return self.runs if self.runs is not None else quick if self.quick else paper


# -- Records of finished cells in one SQLite file: written as they finish, whole or not at all.

SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    experiment TEXT NOT NULL,
    setting TEXT NOT NULL,   -- JSON with sorted keys; the seed is part of it
    version TEXT NOT NULL,
    duration REAL NOT NULL,  -- seconds of processor time
    result TEXT NOT NULL,    -- JSON
    elapsed REAL,            -- seconds on the clock since the record before it
    PRIMARY KEY (experiment, setting)
)
"""

COLUMNS = ("experiment", "setting", "version", "duration", "result")


@dataclass(frozen=True)
class Cell:
    """One run to make: an experiment and a setting, plain data that holds every number the run needs, its seed too."""

    experiment: str
    setting: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        """What makes two cells the same."""
        return self.experiment, json.dumps(self.setting, sort_keys=True)


@dataclass(frozen=True)
class Record(Generic[S, M]):
    """A finished cell."""

    experiment: str
    setting: S
    version: str
    duration: float
    result: M
    elapsed: float | None = None  # on the clock since the record before it: less than the duration of cells run at once

    @staticmethod
    def checked(
        experiment: str, setting: object, version: object, duration: Any, result: object, elapsed: Any
    ) -> "Record[Any, Any]":
        """From a row of the file, which may hold anything."""
        tables = [parse_json(text) if isinstance(text, str) else None for text in (setting, result)]
        times = [duration, 0.0 if elapsed is None else elapsed]
        if not all(isinstance(table, dict) for table in tables) or not isinstance(version, str):
            raise InputError(f"a record of '{experiment}' is no table of settings and results, or has no version")
        if not all(isinstance(seconds, int | float) and 0 <= seconds < 1e12 for seconds in times):
            raise InputError(f"a record of '{experiment}' must have taken some seconds, found {times[0]!r:.40}")
        return Record(experiment, tables[0], version, duration, tables[1], elapsed)


class Store:
    """The file of records; each is one transaction, so a killed run loses at most the cells it was at."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                check_limit("MAX_DATABASE_BYTES", size_of(self.path), "the bytes of records")
            self._connection = sqlite3.connect(self.path, timeout=30)
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.execute(SCHEMA)
            check_tables(self._connection, {"records": COLUMNS})
            if "elapsed" not in {row[1] for row in self._connection.execute("PRAGMA table_info(records)")}:
                self._connection.execute("ALTER TABLE records ADD COLUMN elapsed REAL")  # a file of an earlier version
            self._connection.commit()
        except (OSError, sqlite3.Error, UnicodeDecodeError, InputError) as error:
            raise InputError(
                f"{path}: is not a file of records that can be opened ({str(error).rstrip('.')}): choose another --out."
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, cell: Cell, duration: float, result: Mapping[str, Any], elapsed: float | None = None) -> None:
        """Keep the result of a cell; the same cell again changes nothing."""
        plain = json.dumps(result, sort_keys=True, allow_nan=False)
        with self._transaction():
            self._connection.execute(
                "INSERT OR IGNORE INTO records (experiment, setting, version, duration, result, elapsed) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (*cell.key, record_version(cell.experiment), duration, plain, elapsed),
            )

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells without a record, in their order."""
        with self._reading():
            done = set(self._connection.execute("SELECT experiment, setting FROM records"))
        return [cell for cell in cells if cell.key not in done]

    def records(self, experiment: str) -> list[Record[Any, Any]]:
        """The records of an experiment, in the order of their settings: the same whatever order they finished in."""
        with self._reading():
            rows = self._connection.execute(
                "SELECT experiment, setting, version, duration, result, elapsed FROM records "
                "WHERE experiment = ? ORDER BY setting",
                (experiment,),
            ).fetchall()
            return [Record.checked(*row) for row in rows]

    def records_of(self, cells: Iterable[Cell]) -> list[Record[Any, Any]]:
        """The records of some cells, by experiment and setting: runs of other scales in the same file stay out."""
        wanted = {cell.key for cell in cells}
        names = dict.fromkeys(experiment for experiment, _ in sorted(wanted))
        found = [record for name in names for record in self.records(name)]
        return [record for record in found if Cell(record.experiment, record.setting).key in wanted]

    def forget(self, cells: Iterable[Cell]) -> None:
        """Delete the records of some cells, and no others."""
        with self._transaction():
            self._connection.executemany(
                "DELETE FROM records WHERE experiment = ? AND setting = ?", [cell.key for cell in cells]
            )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, InputError) as error:
            raise InputError(
                f"{self.path}: a record cannot be read ({str(error).rstrip('.')}): use --fresh, or another --out."
            ) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._connection:
                yield
        except sqlite3.Error as error:
            raise InputError(
                f"{self.path}: a record could not be written ({error}): what was written before is whole; "
                "make room or choose another --out."
            ) from error


# -- The same cells on a dask.distributed cluster: many machines, the same records.


@contextmanager
def dask_cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """The workers as `concurrent.futures` has them, and how many cells can run at once."""
    client = connect(address)
    try:
        yield client.get_executor(pure=False), sum(client.nthreads().values())
    except BaseException as error:
        if suffered := cluster_error_message(error, "cell"):
            raise InputError(
                f"--dask {address}: {suffered}: what has finished is kept; the same command goes on from there."
            ) from error
        raise
    finally:
        client.close()


# -- One cell, run and timed on one core: what every worker does, in whatever process or on whatever machine it is.

Outcome = tuple[Cell, float, Mapping[str, Any]]
"""A finished cell, its seconds of processor time, its result."""


def run_one(cell: Cell) -> Outcome:
    """One cell, and the processor time it took, which other programs on the machine hardly change."""
    start = time.process_time()
    result = find_experiment(cell.experiment).run(cell.setting)
    return cell, time.process_time() - start, result


def run_in_worker(cell: Cell) -> Outcome:
    """One cell on one thread of a worker, whatever BLAS it has loaded already.

    Exceptions are replaced by those that can travel between processes: those of libraries may not be unpickled again.
    """
    from threadpoolctl import threadpool_limits

    if "jax" not in sys.modules:
        os.environ.update(ONE_THREAD)
    try:
        with threadpool_limits(limits=1):
            return run_one(cell)
    except InputError as error:
        raise InputError(str(error)) from None
    except Exception:
        words = f"{cell.experiment} with {cell.key[1]} failed:\n{traceback.format_exc()}"
        raise RuntimeError(words) from None


# -- An executor of worker processes, each at one cell at a time: one that is killed is replaced, and its cell runs again.

MOST_DEATHS = 3
"""So many workers may be killed at one cell before it is given up: most likely it needs more memory than there is."""


@contextmanager
def worker_processes(jobs: int, report: Callable[[str], None]) -> Iterator[Executor]:
    """So many processes; whatever ends the block, Ctrl-C too, ends them at once. `report` hears of workers that died."""
    executor = _Replacing(jobs, report)
    with _environment(ONE_THREAD):
        try:
            yield executor
        finally:
            executor.kill()


class _Own(threading.local):
    """What a thread owns: a pool of one process, and the number of that process."""

    pool: ProcessPoolExecutor | None = None
    worker: int = 0


class _Replacing(ThreadPoolExecutor):
    """Threads that each own a pool of one process.

    A larger pool loses all its workers when one is killed, and does not say which cell killed it.
    """

    def __init__(self, jobs: int, report: Callable[[str], None]) -> None:
        super().__init__(jobs)
        self._report = report
        self._own = _Own()
        self._workers: set[int] = set()
        self._ended = False

    def submit(self, function: Callable[[Cell], Any], cell: Cell) -> Future[Any]:  # type: ignore[override]
        """Run a function of a cell in a process; in another one if that is killed."""
        return super().submit(self._run, function, cell)

    def kill(self) -> None:
        """End all workers, in the middle of a cell too; what has not started never does."""
        self._ended = True
        for process in active_children():
            if process.pid in self._workers:
                process.kill()
        self.shutdown(cancel_futures=True)

    def _run(self, function: Callable[[Cell], Any], cell: Cell) -> Any:
        for death in range(1, MOST_DEATHS + 1):
            try:
                return self._process().submit(function, cell).result()
            except BrokenProcessPool:
                self._workers.discard(self._own.worker)
                self._own.pool = None
                if self._ended:
                    raise
            if death < MOST_DEATHS:
                self._report(f"A worker was killed while it ran {cell.experiment}; another one runs that cell again.")
        raise InputError(
            f"{MOST_DEATHS} workers were killed while they ran {cell.experiment} with {cell.key[1]}, perhaps for want of "
            "memory: what has finished is kept; run the same command again with fewer --jobs to go on."
        )

    def _process(self) -> ProcessPoolExecutor:
        """The process of this thread, started if it has none."""
        if self._own.pool is None:
            self._own.pool = ProcessPoolExecutor(1, get_context("spawn"), _prepare)
            self._own.worker = self._own.pool.submit(os.getpid).result()
            self._workers.add(self._own.worker)
        if self._ended:
            self._own.pool.shutdown()
            raise BrokenProcessPool("all workers are being ended")
        return self._own.pool


def _prepare() -> None:
    """What a worker does first: Ctrl-C, which reaches the whole group, is left to the parent, with which it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed has nobody to answer to: it goes at once, in the middle of a cell too."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Environment variables for the processes that are started inside; afterwards all is as before.

    A worker cannot set them for itself: where the main script imports NumPy, so does the worker, before its first line.
    """
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# -- Running cells: in this process, in several, or on a cluster; records kept as they finish, resumable at any moment.

Finished = Callable[[Cell, float, Mapping[str, Any]], None]
"""Hears of every finished cell: the cell, its seconds, its result."""


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    jobs: int = 1,
    finished: Finished = lambda cell, seconds, result: None,
    report: Callable[[str], None] = lambda sentence: None,
    executor: Executor | None = None,
) -> None:
    """Run what the store does not have yet; a cell depends on its setting alone, so any number of workers gives the same.

    Interrupted anywhere, what has finished is in the store, and the next call goes on from there. One job is this process
    itself; `report` hears of workers that were lost on the way; an `executor`, as of a cluster, takes the place of jobs.
    """
    missing = store.missing(cells)
    here = nullcontext(executor) if executor is not None or jobs == 1 else worker_processes(jobs, report)
    with here as workers:
        before = time.monotonic()
        for cell, seconds, result in map(run_one, missing) if workers is None else _completed(missing, workers):
            now = time.monotonic()
            store.add(cell, seconds, result, now - before)
            before = now
            finished(cell, seconds, result)


def _completed(cells: Sequence[Cell], executor: Executor) -> Iterator[Outcome]:
    """Results as they come; an executor may forget each as soon as it has been taken."""
    futures = {executor.submit(run_in_worker, cell) for cell in cells}
    try:
        for future in as_completed(futures):
            futures.remove(future)
            yield future.result()
    finally:
        for future in futures:
            future.cancel()
