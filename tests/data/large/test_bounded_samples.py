"""Tasks that begin late send back few rows for the samples, and the samples are the same."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from policyspace.data import ColumnRoles, Threads, data_set, files_of, open_log
from policyspace.data.large import layout as samples
from policyspace.data.large import log as scan

NUM, GROUP = 40_000, 500


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Eighty row groups with a rare label, of which a hundred rows a label and three hundred in episodes are kept."""
    monkeypatch.setattr(samples, "MOST_OF_AN_ACTION", 100)
    for module in (samples, scan):
        monkeypatch.setattr(module, "MOST_STRETCHED", 300)
    rng = np.random.default_rng(0)
    label = np.array(["a", "b", "rare"])[np.where(rng.random(NUM) < 0.002, 2, rng.integers(0, 2, NUM))]
    table = pa.table({"x": rng.normal(size=NUM), "label": label, "run": np.arange(NUM) // 20})
    pa.parquet.write_table(table, tmp_path / "log.parquet", row_group_size=GROUP)
    return data_set(files_of(tmp_path / "log.parquet"))


def sampled(log, monkeypatch, workers, bounded=True):
    """Both samples, and how many rows came back for each."""
    sent = []

    def add(self, first, second):
        return first + second

    whole = scan.Scan.__call__

    def counted(self, part):
        facts = whole(self, part)
        sent.append((facts.strata.table.num_rows, facts.stretches.table.num_rows))
        return facts

    with monkeypatch.context() as patched:
        patched.setattr(scan.Scan, "__call__", counted)
        if not bounded:
            patched.setattr(scan.SampleThresholds, "add", add)
        found = open_log(log, ColumnRoles(actions="label", features=["x"], episodes="run"), backend=Threads(workers))
    return found, np.sum(sent, axis=0)


def test_samples_are_the_same_and_fewer_rows_come_back(log, monkeypatch):
    plain, sent = sampled(log, monkeypatch, 1, bounded=False)
    for workers in (1, 3):
        found, fewer = sampled(log, monkeypatch, workers)
        for one, other in ((found, plain), (found.rows.strata, plain.rows.strata)):
            np.testing.assert_array_equal(one.features, other.features)
            np.testing.assert_array_equal(one.actions, other.actions)
        assert (found.rows.strata.actions == 2).sum() == (plain.rows.strata.actions == 2).sum() > 50
        assert (fewer < 0.25 * sent).all(), (fewer, sent)
