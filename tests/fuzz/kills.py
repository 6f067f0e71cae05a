"""Processes killed at random moments: afterwards every file opens, and the same command comes to the same answer."""

import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import chdir, closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHAIN = 4
"""Kills before a command is let be."""

STUDY = Path(__file__).parents[1] / "study" / "older_files" / "study-batches.sqlite"


@dataclass
class Work:
    """A command, and what its files say once it is done."""

    arguments: list[str]
    answer: Callable[[], Any]
    share: float  # of all kills
    before: Callable[[], None] = lambda: None
    seconds: float = 1.0  # that it takes, by the first run
    expected: Any = None


@dataclass
class Killed:
    """How many were killed, by command, and what was wrong after it."""

    kills: Counter = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        shown = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        return [f"{self.kills.total()} kills ({shown}), {len(self.wrong)} wrong", *self.wrong]


def kill_many(count: int, seed: int, only: str | None = None) -> Killed:
    """So many kills, of one command or shared out over all that write."""
    rng, found = random.Random(seed), Killed()
    if not count:
        return found
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(folder) / "compiled"))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        shared = Path(folder) / "shared"
        shared.mkdir()
        with chdir(shared):
            if only in (None, "ask", "tell") and defer(_forked(_make_study)) != 0:
                raise RuntimeError(f"no study could be made: {Path('.out').read_text()[-800:]}")
        for name, work in _works(shared).items():
            if only not in (None, name):
                continue
            share = 1.0 if only else work.share
            home = Path(folder) / name
            home.mkdir()
            with chdir(home):
                _first(work)
                while (left := max(1, round(count * share)) - found.kills[name]) > 0:
                    _kill_chain(name, work, rng, found, min(left, CHAIN))
                print(f"{found.kills[name]} kills of {name}, {len(found.wrong)} wrong so far", flush=True)
    return found


def _works(shared: Path) -> dict[str, Work]:
    study = lambda: shutil.copy(shared / "s.sqlite", "s.sqlite")  # noqa: E731
    batch = lambda: (study(), shutil.copy(shared / "new.csv", "new.csv"))  # noqa: E731
    simulated = ["--learning-steps", "0", "--episodes", "8"]
    return {
        "identify": Work(
            ["identify", "log.csv", "--actions", "a", "--json", "o.json", "--plot", "o.svg"],
            _json("o.json"),
            0.25,
            _log,
        ),
        "simulate": Work(
            ["simulate", "gridworld", *simulated, "--out", "o.csv", "--save-agent", "o.json"],
            lambda: [Path("o.csv").read_text(), _json("o.json")()],
            0.2,
        ),
        "ask": Work(["study", "ask", "s.sqlite", "--out", "o.toml"], lambda: Path("o.toml").read_text(), 0.2, study),
        "tell": Work(["study", "tell", "s.sqlite", "new.csv"], _rounds, 0.2, batch),
        "configure": Work(
            ["configure", "gridworld", *simulated, "--max-rounds", "1", "--design", "uniform", "--out", "out"],
            _json("out/rounds.json"),
            0.05,
        ),
        "reproduce": Work(
            ["reproduce", "theory", "--quick", "--runs", "1", "--jobs", "1", "--out", "out"], _recorded, 0.05
        ),
    }


def _make_study() -> None:
    """A study of one round, and a second batch for it."""
    from policyspace import Study, write

    seen = Study.open(STUDY)
    made = Study.create("s.sqlite", seen.settings["world"], design="uniform")
    made.tell(seen.demonstrations(0))
    write(seen.demonstrations(1), "new.csv")


def _first(work: Work) -> None:
    """Without a kill, twice: the second time everything is compiled, and says how long the command takes."""
    for _ in range(2):
        _clean()
        work.before()
        began = time.monotonic()
        code = defer(_start(work))
        work.seconds = time.monotonic() - began
        if code != 0:
            raise RuntimeError(f"{' '.join(work.arguments)} ends with {code}: {Path('.out').read_text()[-800:]}")
    work.expected = work.answer()


def _kill_chain(name: str, work: Work, rng: random.Random, found: Killed, most: int) -> None:
    """The same command killed up to `most` times, each time where the kill before it left the files; then let be."""
    _clean()
    work.before()
    try:
        for _ in range(most):
            child = _start(work)
            time.sleep(rng.uniform(0, work.seconds))
            if os.waitpid(child, os.WNOHANG)[0]:
                break  # it was faster, and nothing was killed
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            found.kills[name] += 1
            _check_files()
        code = defer(_start(work))
        told_before = code == 2 and "reported before" in Path(".out").read_text()
        if code != 0 and not told_before:
            found.wrong.append(f"{name}: after a kill it ends with {code}: {Path('.out').read_text()[-300:]}")
        elif work.answer() != work.expected:
            found.wrong.append(f"{name}: after a kill the answer is another one")
    except Exception as error:
        found.wrong.append(f"{name}: after a kill {error!r:.300}")


def _start(work: Work) -> int:
    """A child that runs the command; it has its modules already, so that kills fall into the work."""
    import jax  # noqa: F401  # imported, never used: a process that has begun to compute must not be forked
    import matplotlib.figure  # noqa: F401
    import polars  # noqa: F401

    import policyspace.cli
    from policyspace.report import new_figure  # noqa: F401

    def run() -> None:
        sys.argv = ["policyspace", *work.arguments]
        policyspace.cli.main()

    return _forked(run)


def _forked(run: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    code: Any = 1
    try:
        with Path(".out").open("w") as out, redirect_stdout(out), redirect_stderr(out):
            run()
            code = 0
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        Path(".out").write_text(traceback.format_exc())
    finally:
        os._exit(code if isinstance(code, int) else 1)


def defer(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _clean() -> None:
    for path in Path().iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _check_files() -> None:
    """Whatever has its final name is whole."""
    for path in Path().rglob("*"):
        if path.name.startswith("."):
            continue
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".svg" and not path.read_text().rstrip().endswith("</svg>"):
            raise AssertionError(f"{path} is cut off")
        elif path.suffix == ".sqlite":
            with closing(sqlite3.connect(path)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), path


def _log() -> None:
    rng = random.Random(0)
    rows = [(rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(60)]
    Path("log.csv").write_text("x,y,a\n" + "".join(f"{x},{y},{x + rng.gauss(0, 1)}\n" for x, y in rows))


def _json(name: str) -> Callable[[], Any]:
    return lambda: json.loads(Path(name).read_text())


def _rounds() -> Any:
    with closing(sqlite3.connect("s.sqlite")) as connection:
        return connection.execute("SELECT number, record, digest FROM rounds ORDER BY number").fetchall()


def _recorded() -> Any:
    with closing(sqlite3.connect("out/records.sqlite")) as connection:
        rows = connection.execute(
            "SELECT experiment, setting, result FROM records ORDER BY experiment, setting"
        ).fetchall()
    experiments = json.loads(Path("out/results.json").read_text())["experiments"]
    return rows, {name: entry["panels"] for name, entry in experiments.items()}  # the rest says how long it took
