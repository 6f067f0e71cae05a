"""Records survive anything: interruptions, kills, other numbers of workers; the same cells give the same records."""

import random
import subprocess
import sys
import textwrap
import time
from types import ModuleType

import pytest

from policyspace.errors import InputError
from policyspace.experiments.runner import run_cells
from policyspace.experiments.store import Cell, Store

CELLS = [Cell("squares", {"number": n, "seed": 0}) for n in range(40)]

SCRIPT = textwrap.dedent(
    """
    import sys, time
    from types import ModuleType
    from policyspace.experiments.runner import run_cells
    from policyspace.experiments.store import Cell, Store

    squares = ModuleType("policyspace.experiments.squares")
    def run(setting):
        time.sleep(0.02)
        return {"square": setting["number"] ** 2}
    squares.run = run
    sys.modules["policyspace.experiments.squares"] = squares
    with Store(sys.argv[1]) as store:
        print("ready", flush=True)
        run_cells([Cell("squares", {"number": n, "seed": 0}) for n in range(40)], store)
    """
)


@pytest.fixture
def squares(monkeypatch):
    module = ModuleType("policyspace.experiments.squares")
    calls = []

    def run(setting):
        calls.append(setting["number"])
        if setting["number"] == 17 and len(calls) == 18:
            raise KeyboardInterrupt
        return {"square": setting["number"] ** 2}

    module.run = run
    monkeypatch.setitem(sys.modules, "policyspace.experiments.squares", module)
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
        store.add(Cell("b", {"seed": 1}), 0.5, {"x": 2})
        store.add(Cell("b", {"seed": 1}), 0.7, {"x": 3})
        assert [r.result for r in store.records("b")] == [{"x": 2}], "a record is never overwritten"
        store.clear(["a"])
        assert store.records("a") == []
        assert len(store.records("b")) == 1


def test_a_file_that_is_no_store_is_said(tmp_path):
    path = tmp_path / "records.sqlite"
    path.write_text("this is not a database, it is a sentence of some length")
    with pytest.raises(InputError, match="is not a file of records"):
        Store(path)
