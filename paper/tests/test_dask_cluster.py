"""The same cells on a real scheduler with two worker processes, one of which is really killed."""

import signal
import sys
import time

import pytest
from policyspace_paper.execution import Cell, Store, run_cells

from policyspace import InputError

distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
from policyspace_paper.execution import dask_cluster  # noqa: E402

pytestmark = pytest.mark.usefixtures("known_everywhere")


def plain(store):
    return [(r.experiment, r.setting, r.version, r.result) for r in store.records("squares")]


def test_one_of_two_workers_is_killed_and_the_records_are_the_same(tmp_path, scheduler, workers):
    cells = [Cell("squares", {"number": n, "seconds": 0.2, "seed": 0}) for n in range(20)]
    seen = []

    def finished(cell, seconds, result):
        seen.append(cell.setting["number"])
        if len(seen) == 4:
            workers[0].send_signal(signal.SIGKILL)

    with dask_cluster(scheduler[0]) as (executor, num_threads), Store(tmp_path / "cluster.sqlite") as store:
        assert num_threads == 2
        run_cells(cells, store, finished=finished, executor=executor)
        assert workers[0].wait(5) == -signal.SIGKILL, "it was really killed"
        assert store.missing(cells) == []
        found = plain(store)
    assert sorted(seen) == list(range(20)), "each is told of once"
    short = [Cell("squares", {**cell.setting}) for cell in cells]
    with Store(tmp_path / "here.sqlite") as store:
        run_cells(short[:3], store)
        run_cells(short, store, jobs=4)
        assert plain(store) == found


def test_what_goes_wrong_on_a_worker_is_told_here(tmp_path, scheduler, workers):
    with dask_cluster(scheduler[0]) as (executor, _), Store(tmp_path / "records.sqlite") as store:
        with pytest.raises(InputError, match="expected a better number"):
            run_cells([Cell("squares", {"number": 1, "fails": "input", "seed": 0})], store, executor=executor)
        run_cells([Cell("squares", {"threads": True, "seed": 0})], store, executor=executor)
        found = store.records("squares")[0].result
    assert set(found["blas"]) == {1}
    assert found["xla"] == 1


def test_a_scheduler_that_goes_leaves_what_has_finished(tmp_path, scheduler, workers):
    cells = [Cell("squares", {"number": n, "seconds": 0.2, "seed": 0}) for n in range(20)]
    address, process = scheduler

    def finished(cell, seconds, result):
        process.kill()

    with Store(tmp_path / "records.sqlite") as store:
        start = time.monotonic()
        with (
            pytest.raises(InputError, match="the scheduler has gone: what has finished is kept"),
            dask_cluster(address) as (executor, _),
        ):
            run_cells(cells, store, finished=finished, executor=executor)
        assert time.monotonic() - start < 60
        assert 1 <= len(store.records("squares")) < 20


def test_an_address_where_nobody_is(monkeypatch):
    monkeypatch.setattr("policyspace.data.large.backends.TIMEOUT", 1)
    with (
        pytest.raises(InputError, match=r"--dask tcp://127.0.0.1:9: no scheduler answers there .*: check the address"),
        dask_cluster("tcp://127.0.0.1:9"),
    ):
        pass


def test_an_address_that_is_none():
    with (
        pytest.raises(InputError, match="--dask nonsense://x: no scheduler answers there"),
        dask_cluster("nonsense://x"),
    ):
        pass


def test_a_cluster_without_workers(scheduler, monkeypatch):
    monkeypatch.setattr("policyspace.data.large.backends.TIMEOUT", 1)
    with pytest.raises(InputError, match="has no workers: start some"), dask_cluster(scheduler[0]):
        pass


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'policyspace\[dask\]'"), dask_cluster("tcp://127.0.0.1:9"):
        pass
