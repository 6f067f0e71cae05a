"""A log that is read in passes gives the answer that it gives in memory, whatever its files and the number of threads."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import policyspace
from policyspace import InputError, Sample, identify, plan
from policyspace.cli import app
from policyspace.data import ColumnRoles, Threads, data_set, files_of, open_log

NUM = 24_000
GAUSSIAN, BOLTZMANN = 1e-7, 1e-6


def rows(seed=0, num=NUM):
    """Four inputs and a category, an amount and a label that use some of them, counts and episodes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num, 4))
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, num)]
    score = np.column_stack([0.06 * x[:, 0] + 0.05 * (colour == "red"), 0.04 * x[:, 1], np.zeros(num)])
    label = np.array(["stay", "go", "up"])[(score + rng.gumbel(size=score.shape)).argmax(axis=1)]
    return {f"x{j}": x[:, j] for j in range(4)} | {
        "colour": colour,
        "label": label,
        "amount": 0.03 * x[:, 2] + rng.normal(size=num),
        "count": rng.integers(1, 4, num),
        "run": np.arange(num) // 40,
    }


TABLE = pa.table(rows())
INPUTS = ["x0", "x1", "x2", "x3", "colour"]


@pytest.fixture
def in_passes(monkeypatch):
    """Every data set is too large to be read at once."""
    monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1")


def parquet(folder, table=TABLE):
    pa.parquet.write_table(table, folder / "log.parquet", row_group_size=7001)
    return folder / "log.parquet"


def parts_of(table, write, folder, suffix):
    folder.mkdir()
    for i in range(3):
        write(table.slice(i * 8000, 8000), folder / f"{i}{suffix}")
    return folder


def text(folder, packed):
    path = folder / "log.csv"
    pa.csv.write_csv(TABLE, path)
    if packed:
        path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
        return path.with_suffix(".csv.gz")
    return path


SOURCES = {
    "row groups": parquet,
    "folder": lambda folder: parts_of(TABLE, pa.parquet.write_table, folder / "f", ".parquet"),
    "pattern": lambda folder: str(parts_of(TABLE, pa.parquet.write_table, folder / "f", ".pq") / "*.pq"),
    "list": lambda folder: sorted(parts_of(TABLE, pa.feather.write_feather, folder / "f", ".feather").iterdir()),
    "csv": lambda folder: text(folder, packed=False),
    "csv.gz": lambda folder: text(folder, packed=True),
    "folder of csv": lambda folder: parts_of(TABLE, pa.csv.write_csv, folder / "f", ".csv"),
}


def statistics(answer):
    return np.array([test.statistic for test in answer.groups])


def close(one, other, tolerance):
    """The same table, statistic by statistic."""
    assert [t.group for t in one.groups] == [t.group for t in other.groups]
    assert [t.verdict for t in one.groups] == [t.verdict for t in other.groups]
    assert one.test.name == other.test.name == "wilks"
    np.testing.assert_allclose(statistics(one), statistics(other), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.fit.log_likelihood, other.fit.log_likelihood, rtol=1e-12)
    assert (one.data.num_rows, one.data.num_episodes, one.supports) == (
        other.data.num_rows,
        other.data.num_episodes,
        other.supports,
    )


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_file_gives_the_answer_of_memory(tmp_path, monkeypatch, kind):
    source = SOURCES[kind](tmp_path)
    for action, said, tolerance in (
        ("label", {"weights": "count"}, BOLTZMANN),
        ("amount", {"episodes": "run"}, GAUSSIAN),
    ):
        words = {"features": INPUTS, "test": "wilks"} | said
        expected = identify(TABLE, action, **words)
        at_once = identify(source, action, **words)
        assert at_once.data.out_of_core is None
        monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1")
        found = identify(source, action, **words)
        monkeypatch.delenv("POLICYSPACE_MAX_BYTES_AT_ONCE")
        assert found.data.out_of_core.rows_total == NUM
        close(at_once, expected, 1e-9)
        close(found, expected, tolerance)


def test_folders_of_keys_are_features_too(tmp_path, in_passes):
    for key, value in enumerate(("red", "green", "blue")):
        folder = tmp_path / f"shade={value}" / f"number={key}"
        folder.mkdir(parents=True)
        chosen = TABLE.filter(pa.compute.equal(TABLE["colour"], value)).drop_columns("colour")
        pa.parquet.write_table(chosen, folder / "x.parquet")
    answer = identify(tmp_path, "label", features=["x0", "x1", "shade"], test="wilks")
    expected = identify(
        TABLE.rename_columns({"colour": "shade"}), "label", features=["x0", "x1", "shade"], test="wilks"
    )
    close(answer, expected, BOLTZMANN)
    assert identify(tmp_path, "amount", features=["x0", "number"], test="wilks").data.features == (
        "x0",
        "number",
    )


@pytest.mark.parametrize("rule", ["simplified", "combinatorial"])
def test_both_rules_with_groups_always_fixed_reference_and_no_intercept(tmp_path, monkeypatch, rule):
    path = parquet(tmp_path)
    cases = [
        ("label", {"groups": {"pair": ["x0", "x1"]}, "reference": "go"}, BOLTZMANN),
        ("label", {"assume": ["colour"], "intercept": False}, BOLTZMANN),
        ("amount", {"covariance": [[1.0]], "fixed": {"x2": 0.03}}, GAUSSIAN),
        ("amount", {"groups": "parameter", "intercept": False}, GAUSSIAN),
    ]
    for action, said, tolerance in cases:
        words = {"features": INPUTS, "rule": rule, "test": "wilks"} | said
        expected = identify(path, action, **words)
        monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1")
        close(identify(path, action, **words), expected, tolerance)
        monkeypatch.delenv("POLICYSPACE_MAX_BYTES_AT_ONCE")


def test_single_precision_is_read_as_the_numbers_that_it_holds(tmp_path, in_passes):
    short = pa.table(
        {
            n: c.cast("float32") if c.type == pa.float64() else c
            for n, c in zip(TABLE.column_names, TABLE.columns, strict=True)
        }
    )
    path = parquet(tmp_path, short)
    exact = pa.table(
        {name: short[name].cast("float64") if name[0] in "xa" else short[name] for name in short.column_names}
    )
    for action, tolerance in (("label", BOLTZMANN), ("amount", GAUSSIAN)):
        found = identify(path, action, features=INPUTS, test="wilks")
        close(found, identify(exact, action, features=INPUTS, test="wilks"), tolerance)


def test_numbers_as_categories_and_labels_in_the_order_of_memory(tmp_path, monkeypatch):
    rng = np.random.default_rng(4)
    table = pa.table(
        {
            "site": rng.integers(8, 12, NUM),
            "kind": pa.array(rng.choice(["b", "a"], NUM)).dictionary_encode(),
            "on": rng.random(NUM) < 0.5,
            "x": pa.array([f" {v:.6f}" for v in rng.normal(size=NUM)]),
            "act": rng.choice([10, 9, 2], NUM),
        }
    )
    path = parquet(tmp_path, table)
    words = {"categorical": ["site"], "test": "wilks"}
    expected = identify(path, "act", **words)
    monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1")
    found = identify(path, "act", **words)
    close(found, expected, BOLTZMANN)
    assert (found.data.features, found.policy.groups) == (expected.data.features, expected.policy.groups)
    assert found.data.actions == ("2", "9", "10")
    assert found.data.features == ("site=8", "site=9", "site=10", "kind=a", "on", "x")


def test_a_file_written_here_needs_no_words(tmp_path, monkeypatch):
    data = Sample.from_frame(TABLE, "label", INPUTS, "run", "count", reference="go")
    for name in ("log.parquet", "log.csv", "log.csv.gz", "log.feather"):
        policyspace.write(data, tmp_path / name)
        expected = identify(tmp_path / name, test="wilks")
        monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1")
        found = identify(tmp_path / name, test="wilks")
        monkeypatch.delenv("POLICYSPACE_MAX_BYTES_AT_ONCE")
        close(found, expected, BOLTZMANN)
        assert found.data.actions == ("stay", "up", "go")
        assert found.policy.groups == ("x0", "x1", "x2", "x3", "colour")


def test_labels_and_levels_that_come_late_are_there(tmp_path, in_passes):
    late = rows(5)
    late["label"] = np.where(np.arange(NUM) % 4000 == 3999, "zap", late["label"])
    late["colour"] = np.where(np.arange(NUM) > 20_000, "violet", late["colour"])
    late["label"][:10_000] = np.where(late["label"][:10_000] == "zap", "go", late["label"][:10_000])
    found = identify(parquet(tmp_path, pa.table(late)), "label", features=INPUTS, test="wilks")
    close(found, identify(pa.table(late), "label", features=INPUTS, test="wilks"), BOLTZMANN)
    assert found.data.actions == ("go", "stay", "up", "zap")


def test_a_large_mean_costs_no_digits(tmp_path, in_passes):
    moved = {name: values + 1e6 if name in ("x0", "x2") else values for name, values in rows().items()}
    found = identify(parquet(tmp_path, pa.table(moved)), "amount", features=INPUTS, test="wilks")
    expected = identify(pa.table(moved), "amount", features=INPUTS, test="wilks")
    np.testing.assert_allclose(statistics(found), statistics(expected), rtol=GAUSSIAN, atol=GAUSSIAN)


def test_the_same_bits_for_any_number_of_threads(tmp_path):
    stored = data_set(files_of(parts_of(TABLE, pa.parquet.write_table, tmp_path / "f", ".parquet")))
    for action in ("label", "amount"):
        logs = [
            open_log(stored, ColumnRoles(action, INPUTS, "run", "count"), backend=Threads(workers))
            for workers in (1, 2, 5)
        ]
        answers = [identify(log, test="wilks") for log in logs]
        assert len({json.dumps(answer.to_dict()) for answer in answers}) == 1
        for log in logs[1:]:
            np.testing.assert_array_equal(log.features, logs[0].features)


def test_what_looks_at_all_rows_and_what_at_a_sample_is_said(tmp_path, in_passes, monkeypatch):
    from policyspace.data.large import layout as samples
    from policyspace.data.large import log as scan

    for module in (samples, scan):
        monkeypatch.setattr(module, "MOST_STRETCHED", 6000)
    bent = rows(6)
    bent["amount"] = bent["x0"] ** 2 + bent["amount"]
    path = parquet(tmp_path, pa.table(bent))
    found = identify(path, "amount", features=INPUTS)
    assert found.test.name == "lean"
    assert found.selected == ("x0", "x2")
    assert "it looked at all 24000 rows, by a sample of 6000 of which" in str(found)
    assert found.guarantee.sample == "" and "a sample of" not in found.guarantee.text
    monkeypatch.setenv("POLICYSPACE_MAX_PRODUCTS", "1000")
    answer = identify(path, "amount", features=INPUTS)
    assert answer.test.name == "lean"
    assert answer.selected == ("x0",)  # the use of x2 is too small for the sample
    assert "more than POLICYSPACE_MAX_PRODUCTS" in answer.test.note
    sample = "a sample of 6000 of 24000 rows"
    for words in (answer.guarantee.text, str(answer)):
        assert sample in words
    assert any("of 24000 rows" in assumption.message for assumption in answer.assumptions)
    straight = identify(path, "amount", features=INPUTS, test="wilks")
    assert f"the model checks looked at {sample}" in str(straight)
    assert straight.guarantee is None or sample not in straight.guarantee.text


def test_whole_episodes_and_subjects_are_sampled(tmp_path, monkeypatch):
    from policyspace.data.large import layout as samples
    from policyspace.data.large import log as scan

    for module in (samples, scan):
        monkeypatch.setattr(module, "MOST_STRETCHED", 5000)
    path = parquet(tmp_path)
    for said in ({"episodes": "run"}, {"subjects": "run"}):
        log = open_log(data_set(files_of(path)), ColumnRoles("amount", ["x0", "x1"], **said))
        codes = log.episodes if log.subjects is None else log.subjects
        assert 4900 < log.num_rows <= 5000
        assert (np.bincount(codes) == 40).all()
        assert log.num_episodes == (NUM // 40 if "episodes" in said else None)
    log = open_log(data_set(files_of(path)), ColumnRoles("amount", ["x0", "x1"]))
    whole = TABLE["x0"].to_numpy()
    starts = np.flatnonzero(np.isin(whole, log.features[::1000, 0]))
    np.testing.assert_array_equal(np.concatenate([whole[s : s + 1000] for s in starts])[:3000], log.features[:3000, 0])


def test_rows_of_every_action_weigh_what_there_is(tmp_path, monkeypatch):
    from policyspace.data.large import layout as samples

    monkeypatch.setattr(samples, "MOST_OF_AN_ACTION", 300)
    rare = rows(7)
    rare["label"] = np.where(np.arange(NUM) % 3000 == 0, "zap", rare["label"])
    log = open_log(data_set(files_of(parquet(tmp_path, pa.table(rare)))), ColumnRoles("label", INPUTS))
    strata, (names, counts) = log.rows.strata, np.unique(rare["label"], return_counts=True)
    assert strata.action_names == tuple(names)
    assert np.bincount(strata.actions).tolist() == [300, 300, 300, 8]
    np.testing.assert_allclose(np.bincount(strata.actions, strata.weights), counts)


def test_robust_takes_the_sample_and_any_policy_is_tested(tmp_path, in_passes):
    path = parquet(tmp_path)
    robust = identify(path, "amount", features=INPUTS, subjects="run", test="robust")
    expected = identify(TABLE, "amount", features=INPUTS, subjects="run", test="robust")
    np.testing.assert_allclose(statistics(robust), statistics(expected), rtol=1e-9)  # the sample holds all rows here
    assert identify(path, "amount", features=INPUTS, policy="any").test.name == "lean"
    assert identify(path, "label", features=INPUTS, test="mixture").groups


def test_coefficients_and_plans(tmp_path, monkeypatch):
    path = parquet(tmp_path)
    for action in ("label", "amount"):
        expected, plan_expected = (
            identify(path, action, features=INPUTS, test="wilks"),
            plan(path, action, features=INPUTS),
        )
        monkeypatch.setenv("POLICYSPACE_MAX_BYTES_AT_ONCE", "1")
        found, planned = identify(path, action, features=INPUTS, test="wilks"), plan(path, action, features=INPUTS)
        monkeypatch.delenv("POLICYSPACE_MAX_BYTES_AT_ONCE")
        here, there = found.coefficients(), expected.coefficients()
        for one, other in zip(here.rows, there.rows, strict=True):
            for word in ("estimate", "standard_error", "lower", "upper", "p_value"):
                np.testing.assert_allclose(getattr(one, word), getattr(other, word), rtol=1e-6, atol=1e-9)
        for word in ("num_rows", "num_parameters", "log_likelihood", "null_log_likelihood", "aic", "bic", "mcfadden"):
            np.testing.assert_allclose(getattr(here.fit, word), getattr(there.fit, word), rtol=1e-9)
        assert f"of {NUM} of {NUM} rows" in str(here)
        assert planned.num_rows == plan_expected.num_rows == NUM
        for one, other in zip(planned.groups, plan_expected.groups, strict=True):
            np.testing.assert_allclose(one.rows.value, other.rows.value, rtol=1e-5)
            np.testing.assert_allclose(one.minimum_detectable_effect, other.minimum_detectable_effect, rtol=1e-5)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [({"test": "bootstrap"}, "the test 'bootstrap' needs all rows in memory, found 24000"),
     ({"test": "universal"}, "the test 'universal' needs all rows in memory, found 24000"),
     ({"test": "eprocess"}, "the test 'eprocess' needs all rows in memory, found 24000"),
     ({"firth": True}, "needs all rows in memory, found 24000"),
     ({"policy": "network"}, "needs all rows in memory, found 24000"),
     ({"lags": 1}, "need all rows in memory, found 24000"),
     ({"weights": "count", "weight_type": "sampling"}, "need all rows in memory, found 24000")],
)  # fmt: skip
def test_what_needs_all_rows_in_memory_is_refused_with_their_number(tmp_path, in_passes, words, sentence):
    with pytest.raises(InputError, match=sentence):
        identify(parquet(tmp_path), "label", features=INPUTS, **words)


def test_what_reads_no_passes_says_so(tmp_path, in_passes):
    path = parquet(tmp_path)
    with pytest.raises(InputError, match="formula needs all rows in memory"):
        identify(path, formula="amount ~ x0 + x1")
    with pytest.raises(InputError, match="this needs all rows in memory"):
        policyspace.data.request.load_sample(path, "amount", INPUTS)
    with pytest.raises(InputError, match="the paper's bounds need all rows in memory, found 24000"):
        policyspace.theory.assess(path, "amount", features=INPUTS, covariance=[[1.0]])


class Counted:
    """How many rows a pass sees."""

    def __call__(self, block):
        return (len(block),)


def test_rows_without_an_episode_are_dropped_from_every_pass(tmp_path):
    run = [None if i % 7 == 0 else i // 40 for i in range(NUM)]
    table = TABLE.set_column(TABLE.column_names.index("run"), "run", pa.array(run))
    log = open_log(data_set(files_of(parquet(tmp_path, table))), ColumnRoles("amount", ["x0"], "run", missing="drop"))
    assert log.rows.total(Counted()) == (log.rows.num_rows,) == (NUM - -(-NUM // 7),)


def test_separated_data_are_said_to_be(tmp_path, in_passes):
    table = rows(8)
    table["label"] = np.where(table["x0"] > 0, "go", "stay")
    answer = identify(parquet(tmp_path, pa.table(table)), "label", features=INPUTS)
    assert answer.fit.separated
    assert answer.test.name == "lean"  # Firth's test, which memory allows, needs all rows
    assert answer.guarantee is None
    assert "x0" in answer.selected


def test_collinear_columns_are_named(tmp_path, in_passes):
    table = rows(9)
    table["x3"] = table["x0"] - table["x1"]
    for action in ("label", "amount"):
        found = identify(parquet(tmp_path, pa.table(table)), action, features=INPUTS, test="wilks")
        expected = identify(pa.table(table), action, features=INPUTS, test="wilks")
        assert not found.fit.identifiable
        assert found.warnings == expected.warnings


def test_the_command_takes_folders_and_patterns(tmp_path, in_passes):
    from typer.testing import CliRunner

    folder = parts_of(TABLE, pa.parquet.write_table, tmp_path / "f", ".parquet")
    expected = identify(folder, "label", features=INPUTS, test="wilks").sentence
    for source in (folder, folder / "*.parquet"):
        said = ["identify", str(source), "--actions", "label", "--features", ",".join(INPUTS), "--test", "wilks"]
        result = CliRunner().invoke(app, said)
        assert result.exit_code == 0, result.output
        assert expected in " ".join(result.output.split())
        assert f"\n{NUM} rows, " in result.output


MEASURED = """
import sys
import policyspace
policyspace.identify(sys.argv[1], sys.argv[2], features=[f"x{j}" for j in range(4)], test="wilks")
assert "pandas" not in sys.modules, "pandas costs 60 MB"
lines = open("/proc/self/status").read().splitlines()  # what `getrusage` says may be the peak of this test
print(next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.parametrize("action", ["label", "amount"])
def test_memory_does_not_grow_with_rows(tmp_path, action):
    """Peak memory of eight times as many rows: 8 columns of 2.4 million rows would take 150 MB more."""
    peaks = []
    for copies in (25, 200):
        path = tmp_path / f"{copies}.parquet"
        with pa.parquet.ParquetWriter(path, TABLE.schema) as writer:
            for _ in range(copies):
                writer.write_table(TABLE)
        settings = os.environ | {"POLICYSPACE_MAX_BYTES_AT_ONCE": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, str(path), action],
            capture_output=True,
            text=True,
            env=settings,
            check=True,
        )
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] + 60
