"""Sums over parts: one tree of additions whatever runs them, errors in the order of the parts, and Ctrl-C that is heard."""

import functools
import operator
import signal
import threading
import time

import numpy as np
import pytest

import policyspace
from policyspace import InputError
from policyspace.data import DataFile, FilePart, Threads, backend_of, tree_sum
from policyspace.data.large.layout import BlockSample, hashed_order
from policyspace.runtime import heard_by

distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")

PARTS = [FilePart(DataFile(f"{i}.parquet", ".parquet", 1), i) for i in range(23)]


def noise(part):
    return np.random.default_rng(part.number).normal(size=50) * 10.0 ** (part.number % 7)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 23])
def test_the_tree_keeps_the_order_and_holds_few(count):
    assert tree_sum((f"{i} " for i in range(count)), operator.add) == "".join(f"{i} " for i in range(count))
    depths = tree_sum((0 for _ in range(count)), lambda a, b: max(a, b) + 1)
    assert depths <= int(np.ceil(np.log2(count))) + 1


def test_any_number_of_threads_gives_the_same_bits_as_the_tree_by_hand():
    expected = tree_sum(map(noise, PARTS), operator.add)
    assert not np.array_equal(expected, functools.reduce(operator.add, map(noise, PARTS)))  # the order matters
    for workers in (1, 2, 3, 8):
        np.testing.assert_array_equal(Threads(workers).reduce(noise, PARTS, operator.add, "adding"), expected)


@pytest.mark.parametrize("workers", [1, 4])
def test_the_first_error_is_that_of_the_first_part(workers):
    def failing(part):
        if part.number in (5, 9):
            time.sleep(0.05 * (9 - part.number))
            raise InputError(f"part {part.number}")
        return 0

    with pytest.raises(InputError, match="part 5"):
        Threads(workers).reduce(failing, PARTS, operator.add, "adding")


def test_ctrl_c_ends_the_pass_and_its_threads():
    before, done = threading.active_count(), []

    def interrupted(what, number, total):
        if number == 6:
            raise KeyboardInterrupt

    def slow(part):
        time.sleep(0.01)
        done.append(part.number)
        return 0

    with heard_by(interrupted), pytest.raises(KeyboardInterrupt):
        Threads(2).reduce(slow, PARTS, operator.add, "adding")
    assert len(done) <= 9
    assert threading.active_count() == before


def test_progress_tells_the_pass_and_the_share():
    heard = []
    with heard_by(lambda *said: heard.append(said)):
        Threads(2).reduce(noise, PARTS, operator.add, "pass 2 over 100 rows")
    assert heard[0] == ("pass 2 over 100 rows", 0, 23)
    assert [number for _, number, _ in heard] == list(range(23))


def test_what_is_no_backend_is_refused():
    with pytest.raises(InputError, match="backend= is a client of dask"):
        backend_of(3)


def test_a_sample_of_stretches_does_not_depend_on_the_order_of_additions(monkeypatch):
    import pyarrow

    from policyspace.data.large import layout as samples

    monkeypatch.setattr(samples, "MOST_STRETCHED", 60)
    rng = np.random.default_rng(2)
    numbers = hashed_order(np.sort(rng.integers(0, 40, 400)), 0)
    pieces = [
        BlockSample.of(pyarrow.table({"row": np.arange(s, s + 50)}), numbers[s : s + 50], 60) for s in range(0, 400, 50)
    ]
    distinct, sizes = np.unique(numbers, return_counts=True)
    expected = np.flatnonzero(np.isin(numbers, distinct[np.cumsum(sizes) <= 60]))
    left = functools.reduce(operator.add, pieces)
    right = functools.reduce(lambda total, piece: piece + total, reversed(pieces))
    for found in (left, right, tree_sum(iter(pieces), operator.add)):
        np.testing.assert_array_equal(found.table["row"].to_numpy(), expected)


@pytest.fixture
def log(tmp_path):
    """Forty row groups, and what is said about their columns."""
    import pyarrow
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=20_000) for j in range(3)}
    columns |= {"act": np.where(rng.random(20_000) < 0.4, "go", "stay"), "y": rng.normal(size=20_000)}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet", row_group_size=500)
    return tmp_path / "x.parquet", {"features": ["x0", "x1", "x2"], "test": "wilks"}


@pytest.fixture
def passes(monkeypatch):
    """Whatever its size, a log is read in passes."""
    monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1")


def test_a_cluster_of_which_a_worker_is_killed_gives_the_bits_of_threads(log, passes, scheduler, workers):
    path, said = log
    heard = []

    def kill_one(what, done, total):
        heard.append(done)
        if len(heard) == 60:  # in the second pass
            workers[0].send_signal(signal.SIGKILL)

    here = [policyspace.identify(path, action, **said) for action in ("act", "y")]
    with distributed.Client(scheduler[0]) as client, heard_by(kill_one):
        there = [policyspace.identify(path, action, **said, backend=client) for action in ("act", "y")]
        assert len(client.nthreads()) == 1, "it was really killed"
    for one, other in zip(here, there, strict=True):
        assert one.groups == other.groups
        assert one.fit.parameters == other.parameters
        assert one.data.out_of_core == other.data.out_of_core


def test_a_scheduler_that_goes_ends_in_a_sentence(log, passes, scheduler, workers):
    path, said = log

    def kill_it(what, done, total):
        if done == 9:
            scheduler[1].kill()

    gone = r"the dask cluster did not finish the work \(the scheduler has gone\)"
    with pytest.raises(InputError, match=gone), heard_by(kill_it):
        policyspace.identify(path, "act", **said, backend=scheduler[0])
