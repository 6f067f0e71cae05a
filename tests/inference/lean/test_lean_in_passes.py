"""The lean test on a log that is read in passes: what it says of the same rows in memory, and more than its sample does."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.stats import binom

from policyspace import identify
from policyspace.data import ColumnRoles, RowBlock, Threads, data_set, files_of, open_log, tree_sum
from policyspace.data.large import layout as samples
from policyspace.data.large import log as scan
from policyspace.data.large.layout import column_numbers
from policyspace.inference.lean import RowBlocks, Scorer, StepFeatures, WholeClusters
from policyspace.inference.lean import clusters as all_rows
from policyspace.inference.lean import regression as nuisance

NUM, LONG = 6_000, 30
FEATURES = ["x0", "x1", "x2", "colour"]


@pytest.fixture(autouse=True)
def passes(request, monkeypatch):
    """A log that is sampled whole is tested in memory, but for this file."""
    if "as_in_memory_to_the_last_digit" not in request.node.name:
        monkeypatch.setattr(all_rows.InPasses, "is_needed", staticmethod(lambda data: True))


def table_of(seed=0, num=NUM, drift=0.0):
    """Four inputs, one of them a category and one of two values; amounts and labels that use x0 and hardly x1."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num, 3)) + 5.0
    x[:, 2] = rng.random(num) < 0.3
    own = drift * rng.normal(size=num // LONG).repeat(LONG)
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, num)]
    amount = 0.1 * x[:, 0] + own + rng.normal(size=num)
    label = np.array(["go", "stay", "up"])[np.digitize(x[:, 0] + 3 * rng.normal(size=num), [4, 6])]
    return pa.table(
        {f"x{j}": x[:, j] for j in range(3)}
        | {"colour": colour, "amount": amount, "other": rng.normal(size=num), "label": label}
        | {"run": np.arange(num) // LONG}
    )


def stored(table, folder, group=2501):
    """In two files of several row groups each."""
    folder.mkdir(exist_ok=True)
    half = table.num_rows // 2
    for number, part in enumerate((table.slice(0, half), table.slice(half))):
        pa.parquet.write_table(part, folder / f"{number}.parquet", row_group_size=group)
    return folder


def sampled(monkeypatch, most):
    for module in (samples, scan):
        monkeypatch.setattr(module, "MOST_STRETCHED", most)


def opened(folder, action, backend=None, **said):
    return open_log(data_set(files_of(folder)), ColumnRoles(action, FEATURES, **said), backend=backend)


@pytest.mark.parametrize(
    ("action", "said", "rule"),
    [
        ("amount", {"episodes": "run"}, "combinatorial"),
        (["amount", "other"], {"subjects": "run"}, "simplified"),
        ("label", {"episodes": "run"}, "simplified"),
    ],
)
def test_whole_episodes_are_tested_as_in_memory(tmp_path, action, said, rule):
    """Random flips go by the order of clusters, which files number in their own way: so are the episodes ordered here."""
    table = table_of(drift=0.5)
    table = table.take(np.argsort(column_numbers(table["run"]), kind="stable"))
    log = opened(stored(table, tmp_path / "f"), action, **said)
    words = {"test": "lean", "clusters": "episodes", "rule": rule}
    found, expected = identify(log, **words), identify(table, action, features=FEATURES, **said, **words)
    for one, other in zip(found.groups, expected.groups, strict=True):
        for word in ("statistic", "p_value", "adjusted_p_value"):
            np.testing.assert_allclose(getattr(one, word), getattr(other, word), rtol=3e-6, atol=3e-6)
        # Curves that overlap leave weights, and what they say between the values seen, less sure than what they explain.
        np.testing.assert_allclose(one.action_effect, other.action_effect, rtol=1e-3)
    assert found.supports == expected.supports
    assert found.clusters.kind == expected.clusters.kind
    assert f"it looked at all {NUM} rows" in found.test.note


def test_a_sample_chooses_and_all_rows_decide_as_in_memory(tmp_path, monkeypatch):
    """Linear regressions, with steps at fixed places: those of the sample and of all rows are the same, and so the sums."""
    monkeypatch.setattr(nuisance, "ROWS_A_COLUMN", 1e9)
    monkeypatch.setattr(
        Scorer, "_at_quantiles", lambda self, index, fit: StepFeatures(index, np.zeros(1, int), np.zeros(1), np.ones(1))
    )
    table = table_of(seed=3).drop_columns(["colour", "label", "other"])
    words = {"features": ["x0", "x1"], "episodes": "run", "test": "lean", "clusters": "episodes"}
    expected = identify(table, "amount", **words)
    sampled(monkeypatch, 3000)
    monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1")
    found = identify(stored(table, tmp_path / "f"), "amount", **words)
    for answer in (found, expected):
        assert "regressions are linear" in answer.test.note
        assert "200 episodes" in answer.test.note
    np.testing.assert_allclose(
        [t.statistic for t in found.groups], [t.statistic for t in expected.groups], rtol=1e-6, atol=1e-6
    )


class Travelling(Threads):
    """Tasks go through pickle, as to another machine, and what they send back is weighed."""

    def __init__(self):
        super().__init__(1)
        self.most = 0

    def reduce(self, function, parts, add, what):
        def done(part):
            found = pickle.loads(pickle.dumps(function))(part)
            if isinstance(found, tuple):
                self.most = max(self.most, sum(one.size for one in found if isinstance(one, np.ndarray)))
            return found

        return tree_sum(map(done, parts), add)


def test_the_same_bits_for_any_number_of_threads_and_through_pickle(tmp_path):
    folder = stored(table_of(), tmp_path / "f")
    for action in ("amount", "label"):
        backends = (
            [Threads(1), Threads(2), Threads(5), Travelling()] if action == "amount" else [Threads(2), Travelling()]
        )
        answers = [identify(opened(folder, action, one), test="lean").to_dict() for one in backends]
        assert len({json.dumps(answer) for answer in answers}) == 1


def test_what_a_part_sends_back_is_bounded(tmp_path, monkeypatch):
    folder, words = stored(table_of(), tmp_path / "f"), {"test": "lean", "rule": "combinatorial"}
    expected = identify(opened(folder, "amount"), **words)
    monkeypatch.setattr(all_rows, "MOST_NUMBERS", 80_000)
    monkeypatch.setattr(all_rows.InPasses, "most_numbers", 80_000)
    backend = Travelling()
    found = identify(opened(folder, "amount", backend), **words)
    assert 10_000 < backend.most <= 80_000
    assert found.data.out_of_core.passes > expected.data.out_of_core.passes  # more passes
    assert [t.p_value for t in found.groups] == pytest.approx([t.p_value for t in expected.groups], rel=1e-9)


@pytest.mark.parametrize("action", ["amount", "label"])
def test_all_rows_show_what_the_sample_does_not(tmp_path, monkeypatch, action):
    rng = np.random.default_rng(1)
    num = 100_000
    x = rng.normal(size=(num, 2))
    amount = 0.022 * x[:, 0] + rng.normal(size=num)
    table = pa.table({"x0": x[:, 0], "x1": x[:, 1], "amount": amount, "label": np.where(amount > 0, "go", "stay")})
    folder = stored(table, tmp_path / "f", group=30_000)
    sampled(monkeypatch, 12_000)
    monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1")
    words = {"features": ["x0", "x1"], "policy": "any"}
    answer = identify(folder, action, **words)
    assert answer.selected == ("x0",)
    assert f"all {num} rows" in str(answer)
    assert answer.guarantee.sample == ""
    monkeypatch.setenv("POLICYSPACE_MAX_PRODUCTS", "1")
    few = identify(folder, action, **words)
    assert few.selected == ()
    assert f"a sample of 12000 of {num} rows" in few.guarantee.text


@pytest.mark.parametrize("rare", [0.0, 0.5])
def test_values_that_the_sample_does_not_show_leave_the_test_to_the_sample(tmp_path, monkeypatch, rare):
    """A column of one value, or of two, but for an episode of which the sample knows nothing."""
    table = table_of()
    folder = tmp_path / "f"
    sampled(monkeypatch, 3000)
    known = set(opened(stored(table, folder), "amount", episodes="run").episodes.tolist())
    assert len(known) == 100
    log = opened(folder, "amount", episodes="run")
    place = np.searchsorted(log.rows.owners, column_numbers(table["run"]))
    unseen = ~np.isin(table["x1"].to_numpy(), log.features[:, 1])
    where = place == place[unseen][0]
    column = np.where(np.arange(NUM) % 2, rare, 0.0) + where * np.linspace(1, 2, NUM)
    hidden = table.set_column(table.column_names.index("x2"), "x2", pa.array(column))
    answer = identify(opened(stored(hidden, folder), "amount", episodes="run"), test="lean")
    assert "'x2' has values that the sample does not show" in answer.test.note
    assert f"a sample of 3000 of {NUM} rows" in answer.guarantee.text
    assert "x2" not in answer.selected


def test_owners_stay_together_and_clusters_are_about_equal():
    owners = np.sort(np.random.default_rng(0).integers(0, 2**63, 5000).astype(np.uint64))
    rows = np.random.default_rng(1).permutation(np.repeat(owners, 3))
    codes = WholeClusters.of(owners, 1024).codes(RowBlock(np.zeros((len(rows), 1)), rows, owners=rows))
    assert all(len(np.unique(codes[rows == owner])) == 1 for owner in owners[:50])
    assert set(np.bincount(codes)[:-1]) == {15}
    few = WholeClusters.of(owners[:7], 1024)
    assert few.codes(RowBlock(np.zeros((7, 1)), rows[:7], owners=owners[:7])).tolist() == list(range(7))


def test_runs_go_on_from_block_to_block_and_end_with_a_file():
    runs = RowBlocks(100, 64)
    whole = runs.codes(RowBlock(np.zeros((1000, 1)), np.zeros(1000), start=5000))
    halves = [runs.codes(RowBlock(np.zeros((500, 1)), np.zeros(500), start=start)) for start in (5000, 5500)]
    assert np.concatenate(halves).tolist() == whole.tolist()
    assert all(len(set(whole[start : start + 100])) == 1 for start in range(0, 1000, 100))
    assert 5 < len(set(whole)) <= 10


def autoregressive(rng, num, slope):
    series = rng.normal(size=num) * np.sqrt(1 - slope**2)
    series[0] /= np.sqrt(1 - slope**2)
    for t in range(1, num):
        series[t] += slope * series[t - 1]
    return series


@pytest.mark.slow
@pytest.mark.parametrize("named", [False, True])
def test_the_level_is_kept_where_rows_hang_together(tmp_path, monkeypatch, named):
    """An unused input and the noise of the actions both drift (AR .8), beside a used input; ten interleaved episodes.

    There are so many more rows than the sample has that the richest regressions are taken.
    """
    sampled(monkeypatch, 4000)
    false = found = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 11])
        num = 20_000
        own = [np.concatenate([autoregressive(rng, num // 10, 0.8) for _ in range(10)]) for _ in range(2)]
        order = np.arange(num).reshape(10, -1).T.ravel() if named else np.arange(num)
        x = rng.normal(size=num)
        columns = {"used": x, "drift": own[0], "amount": 0.2 * x + 0.15 * x**2 + own[1], "run": np.arange(num) // 2000}
        folder = stored(pa.table({name: column[order] for name, column in columns.items()}), tmp_path / "f")
        said = {"episodes": "run"} if named else {}
        log = open_log(data_set(files_of(folder)), ColumnRoles("amount", ["used", "drift"], **said))
        answer = identify(log, policy="any")
        assert f"all {num} rows" in answer.test.note
        false += "drift" in answer.selected
        found += "used" in answer.selected
    assert false <= binom.ppf(0.999, 60, 0.05)
    assert found == 60


@pytest.mark.parametrize("action", ["amount", "label"])
def test_a_log_that_is_sampled_whole_is_tested_as_in_memory_to_the_last_digit(tmp_path, monkeypatch, action):
    """Also given the place in the log, which needs episodes in their order: this agent learns."""
    table = table_of(seed=8, num=1500)
    amount = table["amount"].to_numpy() + table["x1"].to_numpy() * np.linspace(-1, 1, 1500)
    table = table.set_column(table.schema.get_field_index("amount"), "amount", pa.array(amount))
    words = {"features": FEATURES, "episodes": "run"}
    folder = stored(table, tmp_path / "f")
    expected = identify(folder, action, **words)
    monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1")
    found = identify(folder, action, **words)
    assert found.data.out_of_core and found.selected == expected.selected and found.grade == expected.grade
    assert [one.p_value for one in found.groups] == pytest.approx([one.p_value for one in expected.groups], rel=1e-9)
    assert "the place in the log" in found.test.note or action == "label"


def test_what_other_rows_explain_takes_the_guarantee_of_passes(tmp_path):
    table = table_of(seed=8, num=1500)
    late = np.where(np.arange(1500) % LONG == 0, 0, np.roll(table["x0"].to_numpy() - 5, 1))
    amount = pa.array(table["amount"].to_numpy() + late)
    table = table.set_column(table.schema.get_field_index("amount"), "amount", amount)
    found = identify(opened(stored(table, tmp_path / "f"), "amount", episodes="run"), test="lean")
    assert found.guarantee is None and "up to four rows earlier" in str(found.no_guarantee[0])
