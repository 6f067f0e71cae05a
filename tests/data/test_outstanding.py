"""Rows far out, found by the spread of some rows, are those that looking at every row finds."""

import numpy as np
import pytest

from policyspace.data import ExtremeRows, FindExtremeRows, InMemoryRows, RowBlock
from policyspace.data.rows import FAR, SUSPECT

NUM, WIDTH = 50_000, 4


def log(spread_of_first, rare=20):
    """Normal columns, some rows of which lie far out, and whose first rows spread otherwise."""
    rng = np.random.default_rng(3)
    x = rng.normal(5.0, 2.0, (NUM, WIDTH))
    x[:1000] = 5.0 + (x[:1000] - 5.0) * spread_of_first
    x[rng.integers(1000, NUM, rare), rng.integers(0, WIDTH, rare)] += 40.0
    return x, rng.integers(0, 3, NUM)


def found_in_blocks(far, x, actions):
    parts = [far(RowBlock(x[i : i + 777], actions[i : i + 777]))[0] for i in range(0, NUM, 777)]
    return sum(parts[1:], parts[0])


@pytest.mark.parametrize(("spread_of_first", "enough"), [(1.0, True), (0.5, True), (3.0, False), (0.0, False)])
def test_rows_found_by_the_first_rows_are_those_of_all(spread_of_first, enough):
    x, actions = log(spread_of_first)
    first, known = InMemoryRows(x[:1000], actions[:1000]), InMemoryRows(x[::7], actions[::7])
    by, other = FindExtremeRows.of(first, np.full(WIDTH, 5.0), SUSPECT), FindExtremeRows.of(known, np.full(WIDTH, 5.0))
    again = ExtremeRows(by, found_in_blocks(by, x, actions)).again(other)
    assert (again is not None) == enough
    if again is not None:
        distance = np.abs((x - x[::7].mean(axis=0)) / x[::7].std(axis=0)).max(axis=1)
        expected = x[np.argsort(-distance)[: (distance > FAR).sum()]]
        np.testing.assert_allclose(again.block.features, expected)


def test_a_log_whose_first_rows_have_none_is_read_once_less(tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet

    from policyspace import identify

    monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1")
    said, statistics = [], []
    for name, place in (("late", NUM - 5), ("early", 5)):
        x, _ = log(1.0, rare=0)
        x[place, 0] += 60.0
        action = (x[:, 1] + 5 * np.random.default_rng(0).logistic(size=NUM) > 5).astype(int)
        table = pa.table({f"x{j}": x[:, j] for j in range(WIDTH)} | {"label": action})
        pa.parquet.write_table(table, tmp_path / f"{name}.parquet")
        answer = identify(tmp_path / f"{name}.parquet", "label", test="wilks")
        whole = identify(x, action, test="wilks")
        said.append(answer.data.out_of_core.passes)
        statistics.append([(a.statistic, b.statistic) for a, b in zip(answer.groups, whole.groups, strict=True)])
    assert said[0] == said[1] - 1
    for streamed, exact in np.vstack(statistics):
        assert streamed == pytest.approx(exact, rel=1e-6, abs=1e-6)
