"""Records survive anything: interruptions, kills, other numbers of workers; the same cells give the same records."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from types import ModuleType

import psutil
import pytest
from policyspace_paper.execution import EXPERIMENTS, Cell, Experiment, Store, run_cells

from policyspace import InputError

CELLS = [Cell("squares", {"number": n, "seed": 0}) for n in range(40)]

SCRIPT = textwrap.dedent(
    """
    import sys, time
    from types import ModuleType
    from policyspace_paper.execution import EXPERIMENTS, Cell, Experiment, Store, run_cells

    squares = ModuleType("policyspace_paper.squares")
    def run(setting):
        time.sleep(0.02)
        return {"square": setting["number"] ** 2}
    squares.EXPERIMENT = Experiment("squares", "Squares", lambda scale: [], run, lambda records: [])
    sys.modules["policyspace_paper.squares"] = squares
    EXPERIMENTS["squares"] = "squares:EXPERIMENT"
    with Store(sys.argv[1]) as store:
        print("ready", flush=True)
        run_cells([Cell("squares", {"number": n, "seed": 0}) for n in range(40)], store)
    """
)


@pytest.fixture
def squares(monkeypatch):
    module = ModuleType("policyspace_paper.squares")
    calls = []

    def run(setting):
        calls.append(setting["number"])
        if setting["number"] == 17 and len(calls) == 18:
            raise KeyboardInterrupt
        return {"square": setting["number"] ** 2}

    module.EXPERIMENT = Experiment("squares", "Squares", lambda scale: [], run, lambda records: [])
    monkeypatch.setitem(sys.modules, "policyspace_paper.squares", module)
    monkeypatch.setitem(EXPERIMENTS, "squares", "squares:EXPERIMENT")
    return calls


def results(path):
    with Store(path) as store:
        return [(r.setting, r.result) for r in store.records("squares")]


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, squares):
    path = tmp_path / "records.sqlite"
    with Store(path) as store, pytest.raises(KeyboardInterrupt):
        run_cells(CELLS, store)
    assert len(results(path)) == 17
    with Store(path) as store:
        run_cells(CELLS, store)
        assert store.missing(CELLS) == []
    assert squares == [*range(18), *range(17, 40)]
    assert {s["number"]: r["square"] for s, r in results(path)} == {n: n * n for n in range(40)}


def test_killed_at_random_moments_it_ends_with_the_same_records(tmp_path, squares):
    path = tmp_path / "records.sqlite"
    rng = random.Random(4)
    for _ in range(4):
        worker = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.PIPE, text=True)
        assert worker.stdout.readline().strip() == "ready"
        time.sleep(rng.uniform(0.01, 0.2))
        worker.kill()
        worker.wait()
        found = results(path)
        assert all(r == {"square": s["number"] ** 2} for s, r in found)
    subprocess.run([sys.executable, "-c", SCRIPT, str(path)], check=True, capture_output=True)
    whole = tmp_path / "whole.sqlite"
    with Store(whole) as store:
        squares.extend([None] * 40)  # no interruption this time
        run_cells(CELLS, store)
    assert results(path) == results(whole)


def test_fresh_forgets_only_what_is_asked(tmp_path):
    with Store(tmp_path / "records.sqlite") as store:
        store.add(Cell("a", {"seed": 1}), 0.5, {"x": 1})
        store.add(Cell("a", {"seed": 2}), 0.5, {"x": 1})
        store.add(Cell("b", {"seed": 1}), 0.5, {"x": 2})
        store.add(Cell("b", {"seed": 1}), 0.7, {"x": 3})
        assert [r.result for r in store.records("b")] == [{"x": 2}], "a record is never overwritten"
        store.forget([Cell("a", {"seed": 1})])
        assert [r.setting for r in store.records("a")] == [{"seed": 2}]
        assert len(store.records("b")) == 1


def test_records_of_other_scales_stay_out(tmp_path):
    with Store(tmp_path / "records.sqlite") as store:
        for seed in range(5):
            store.add(Cell("a", {"seed": seed, "quick": seed > 2}), 0.5, {"x": seed})
        wanted = [Cell("a", {"quick": False, "seed": seed}) for seed in (2, 0, 7)]
        assert [r.result["x"] for r in store.records_of(wanted)] == [0, 2]


def test_a_file_of_an_earlier_version_is_gone_on_with(tmp_path):
    path = tmp_path / "records.sqlite"
    old = sqlite3.connect(path)
    old.execute(
        "CREATE TABLE records (experiment TEXT NOT NULL, setting TEXT NOT NULL, version TEXT NOT NULL, "
        "duration REAL NOT NULL, result TEXT NOT NULL, PRIMARY KEY (experiment, setting))"
    )
    old.execute("INSERT INTO records VALUES ('a', '{\"seed\": 1}', '0.0.9', 2.5, '{\"x\": 1}')")
    old.commit()
    old.close()
    with Store(path) as store:
        store.add(Cell("a", {"seed": 2}), 0.5, {"x": 2}, 0.25)
        assert [(r.version == "0.0.9", r.duration, r.elapsed) for r in store.records("a")] == [
            (True, 2.5, None),
            (False, 0.5, 0.25),
        ]


def test_a_file_that_is_no_store_is_said(tmp_path):
    path = tmp_path / "records.sqlite"
    path.write_text("this is not a database, it is a sentence of some length")
    with pytest.raises(InputError, match="is not a file of records"):
        Store(path)


def test_several_workers_give_the_same_records(tmp_path, known_everywhere):
    cells = CELLS[:12]
    told = []
    for jobs in (1, 3):
        with Store(tmp_path / f"{jobs}.sqlite") as store:
            run_cells(cells, store, jobs, report=told.append)
    assert results(tmp_path / "1.sqlite") == results(tmp_path / "3.sqlite")
    assert len(results(tmp_path / "3.sqlite")) == 12
    assert told == []


def test_the_clock_is_kept_too(tmp_path, known_everywhere):
    """Two workers that sleep at the same time: together about half as long on the clock as one after the other."""
    cells = [Cell("squares", {"number": n, "seconds": 0.5, "seed": 0}) for n in range(6)]
    with Store(tmp_path / "records.sqlite") as store:
        start = time.monotonic()
        run_cells(cells, store, 2)
        passed = time.monotonic() - start
        records = store.records("squares")
    assert all(0 <= r.duration < 0.5 for r in records), "a cell that sleeps takes no processor time"
    clock = sum(r.elapsed for r in records)
    assert 1.5 <= clock <= passed
    assert clock > passed - 1, "all that passed is some cell's"


def test_a_killed_worker_costs_one_cell_and_one_sentence(tmp_path, known_everywhere):
    lethal = tmp_path / "times"
    lethal.write_text("2")
    cells = [Cell("squares", {"number": n, "seed": 0} | ({"lethal": str(lethal)} if n == 3 else {})) for n in range(8)]
    told = []
    with Store(tmp_path / "records.sqlite") as store:
        run_cells(cells, store, 2, report=told.append)
        assert store.missing(cells) == []
    assert {s["number"]: r["square"] for s, r in results(tmp_path / "records.sqlite")} == {n: n * n for n in range(8)}
    assert told == ["A worker was killed while it ran squares; another one runs that cell again."] * 2


def test_a_cell_that_kills_every_worker_ends_the_run_with_a_sentence(tmp_path, known_everywhere):
    lethal = tmp_path / "times"
    lethal.write_text("3")
    cells = [*CELLS[:2], Cell("squares", {"number": 9, "lethal": str(lethal), "seed": 0})]
    with Store(tmp_path / "records.sqlite") as store:
        with pytest.raises(InputError, match=r"3 workers were killed .* what has finished is kept"):
            run_cells(cells, store, 2)
        assert store.missing(cells) == cells[2:]
        run_cells(cells, store, 2)
        assert store.missing(cells) == []


@pytest.mark.parametrize(("kind", "error"), [("input", InputError), ("defect", RuntimeError)])
def test_what_goes_wrong_in_a_worker_is_told_here(tmp_path, known_everywhere, kind, error):
    cells = [Cell("squares", {"number": 1, "fails": kind, "seed": 5})]
    words = (
        "expected a better number" if kind == "input" else r'squares with .*"seed": 5.* failed:(.|\n)*ZeroDivisionError'
    )
    with Store(tmp_path / "records.sqlite") as store, pytest.raises(error, match=words):
        run_cells(cells, store, 2)


NUMPY_FIRST = """
import json, sys
import numpy  # before anything can be set: a worker imports this script too
from policyspace_paper.execution import run_cells
from policyspace_paper.execution import Cell, Store

if __name__ == "__main__":
    with Store(sys.argv[1]) as store:
        run_cells([Cell("squares", {"threads": True, "seed": 0})], store, 2)
        print(json.dumps(store.records("squares")[0].result))
"""


def test_a_worker_has_one_thread(tmp_path, known_everywhere):
    script = tmp_path / "script.py"
    script.write_text(NUMPY_FIRST)
    many = {k: v for k, v in os.environ.items() if not k.endswith(("_NUM_THREADS", "NPROC"))}
    command = [sys.executable, str(script), str(tmp_path / "records.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, env=many, check=True)
    found = json.loads(done.stdout)
    assert found["blas"] and set(found["blas"]) == {1}
    assert found["xla"] == 1


ORPHANS = """
import sys
from policyspace_paper.execution import run_cells
from policyspace_paper.execution import Cell, Store

if __name__ == "__main__":
    cells = [Cell("squares", {"number": n, "pid": True, "seed": 0}) for n in range(2)]
    cells += [Cell("squares", {"number": n, "seconds": 60, "seed": 0}) for n in (2, 3)]
    with Store(sys.argv[1]) as store:
        run_cells(cells, store, 2, lambda cell, seconds, result: print(result["pid"], flush=True))
"""


def test_workers_end_with_their_parent(tmp_path, known_everywhere):
    """Killed -9, the parent cannot end them: they see that it has gone, in the middle of a cell too."""
    script = tmp_path / "script.py"
    script.write_text(ORPHANS)
    parent = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "records.sqlite")], stdout=subprocess.PIPE, text=True
    )
    workers = {int(parent.stdout.readline()) for _ in range(2)}
    time.sleep(0.3)  # now they sleep
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in workers)


def alive(pid):
    """Not even a zombie, which an init that does not reap leaves behind."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
