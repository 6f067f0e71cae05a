"""The reproduce command, stopped in every way there is: it goes on where it was and ends with the same records."""

import io
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time

import pytest
from policyspace_paper.execution import EXPERIMENTS, Cell, Store
from policyspace_paper.reproduction import CellProgress, TimeLeft, described, distinguishing
from rich.console import Console

from policyspace.cli import main

# Two experiments under names that the command knows; every process finds them, for Python runs this file as it starts.
KNOWN_EVERYWHERE = textwrap.dedent(
    """
    import sys, time
    from types import ModuleType

    def make(name, title, factor):
        from policyspace_paper.execution import EXPERIMENTS, Experiment
        module = ModuleType(f"policyspace_paper.test_{name}")

        def settings(scale):
            setting = {"literal": scale.as_published, "options": [1, 2], "points": 3 if scale.quick else 30}
            return [{**setting, "seed": seed} for seed in range(scale.num_runs(12, 2))]

        def run(setting):
            time.sleep(0.05)
            return {"value": factor * setting["seed"] + setting["points"]}

        def analyse(records):
            from matplotlib.figure import Figure
            from policyspace_paper.panels import FEWEST, Claim, ClaimPart, Panel
            figure = Figure(figsize=(4, 2))
            values = [r.result["value"] for r in records]
            figure.add_subplot().plot(sorted(values))
            total = sum(values)
            return [Panel(f"{name}-sum", f"Sum of {name}", Claim("It is large.", "By its sum."), f"It is {total}.", figure,
                          ("what", "number"), [("sum [of all]", str(total))], {"sum": total}, [ClaimPart("", True)],
                          FEWEST)]

        module.EXPERIMENT = Experiment(name.replace("_", "-"), title, settings, run, analyse)
        sys.modules[f"policyspace_paper.test_{name}"] = module
        EXPERIMENTS[name.replace("_", "-")] = f"test_{name}:EXPERIMENT"

    make("gridworld", "A discrete world", 10)
    make("continuous_gridworld", "A continuous world", 1000)
    """
)
TOTALS = {
    "gridworld": sum(10 * s + 30 for s in range(12)),
    "continuous-gridworld": sum(1000 * s + 30 for s in range(12)),
}
NAMES = tuple(TOTALS)


@pytest.fixture(autouse=True)
def known_everywhere(tmp_path, monkeypatch):
    folder = tmp_path / "known"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(KNOWN_EVERYWHERE)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.chdir(tmp_path)
    for name in NAMES:  # here, too, until the true ones come back
        monkeypatch.setitem(EXPERIMENTS, name, EXPERIMENTS[name])
    exec(KNOWN_EVERYWHERE, {})


def start(*arguments):
    """In a group of its own, as a terminal starts it."""
    return subprocess.Popen(
        [sys.executable, "-m", "policyspace", "reproduce", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def run(*arguments):
    process = start(*arguments)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    return " ".join(out.split())


@pytest.fixture
def here(monkeypatch, capfd):
    """The command in this process, which has loaded already what it needs."""

    def call(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["policyspace", "reproduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capfd.readouterr()
        assert stop.value.code == code, printed
        return " ".join((printed.err if code else printed.out).split())

    return call


def numbers(folder, column="ours"):
    experiments = json.loads((folder / "results.json").read_text(encoding="utf-8"))["experiments"]
    columns = {name: experiment["columns"][column] for name, experiment in experiments.items()}
    return {name: own["panels"][0]["numbers"]["sum"] for name, own in columns.items()}


def records(folder):
    with Store(folder / "records.sqlite") as store:
        return [(r.setting, r.result) for name in NAMES for r in store.records(name)]


def test_from_nothing_to_the_page(tmp_path, here):
    shown = run(*NAMES, "--jobs", 2, "--out", "made")
    assert len(re.findall(r"gridworld seed \d+: 0\.\d s \(\d+/24, about \d+ s left\)", shown)) == 24
    assert "Sum of gridworld The paper: It is large. holds: It is 1020. what number sum [of all] 1020" in shown
    assert shown.endswith("Page: made/index.html")
    made = tmp_path / "made"
    assert numbers(made) == TOTALS
    page = (made / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 and "policyspace reproduce gridworld<" in page
    assert "7.6 days: 25 runs" in page, "what the authors' code would need, and how that was estimated"
    assert sorted(p.name for p in (made / "figures").iterdir()) == ["continuous_gridworld-sum.svg", "gridworld-sum.svg"]
    before = {path: path.read_bytes() for path in made.rglob("*") if path.suffix in (".html", ".json", ".svg")}
    again = here(*NAMES, "--out", "made", "--resume")
    assert "seed" not in again and "It is 1020." in again, "nothing is run twice, all is shown"
    assert {path: path.read_bytes() for path in before} == before, "the same records, the same bytes"


def test_one_process_gives_the_same(tmp_path, here):
    here("gridworld", "--jobs", 1, "--out", "one")
    here("gridworld", "--jobs", 3, "--out", "three")
    assert records(tmp_path / "one") == records(tmp_path / "three")


def test_ctrl_c_says_what_is_kept_and_how_to_go_on(tmp_path, here):
    process = start(*NAMES, "--jobs", 2, "--out", "made")
    for _ in range(3):
        process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    stopped = time.monotonic()
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - stopped < 5
    assert process.returncode == 130
    told = re.fullmatch(
        r"policyspace: stopped; (\d+) of 24 cells are kept in made/records.sqlite: "
        r"the same command goes on from there\.\n",
        err,
    )
    assert told and 3 <= int(told.group(1)) < 24
    assert len(records(tmp_path / "made")) == int(told.group(1))
    assert f"{told.group(1)} of 24 cells are there already." in here(*NAMES, "--jobs", 1, "--out", "made")
    assert numbers(tmp_path / "made") == TOTALS


def test_killed_at_random_moments_it_ends_with_the_same_records(tmp_path, here):
    rng = random.Random(1)
    for _ in range(3):
        process = start(*NAMES, "--jobs", 2, "--out", "made")
        for _ in range(rng.randrange(1, 6)):
            process.stdout.readline()
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        process.communicate()
    here(*NAMES, "--jobs", 2, "--out", "made")
    here(*NAMES, "--jobs", 1, "--out", "whole")
    assert records(tmp_path / "made") == records(tmp_path / "whole")
    assert numbers(tmp_path / "made") == numbers(tmp_path / "whole") == TOTALS


def test_scales_share_the_records_and_not_the_pages(tmp_path, here):
    made = tmp_path / "made"
    here("gridworld", "--jobs", 1, "--out", "made", "--runs", 3)
    assert numbers(made) == {"gridworld": 30 + 40 + 50}
    here("gridworld", "--jobs", 1, "--out", "made", "--as-published", "--quick")
    assert numbers(made, "literal") == {"gridworld": 3 + 13}
    assert numbers(made) == {"gridworld": 120}
    page = (made / "index.html").read_text(encoding="utf-8")
    assert "A miniature." in page and "policyspace reproduce gridworld --quick --as-published" in page
    assert (made / "figures" / "literal" / "gridworld-sum.svg").is_file()
    assert "3 of 12 cells are there already." in here("gridworld", "--jobs", 1, "--out", "made")
    assert numbers(made) == {"gridworld": TOTALS["gridworld"]}, "three runs of twelve were there"
    here("continuous-gridworld", "--jobs", 1, "--out", "made", "--runs", 1)
    assert numbers(made) == {"gridworld": TOTALS["gridworld"], "continuous-gridworld": 30}, "what was there stays"


def test_fresh_forgets_its_own_records_only(here):
    here("gridworld", "--quick", "--jobs", 1, "--out", "made")
    here("gridworld", "--jobs", 1, "--out", "made")
    assert "(12/12," in here("gridworld", "--jobs", 1, "--out", "made", "--fresh")
    assert "seed" not in here("gridworld", "--quick", "--jobs", 1, "--out", "made")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["gridwrold"], "unknown experiment 'gridwrold': did you mean 'gridworld'?"),
        (["gridworld", "zzz"], f"unknown experiment 'zzz': valid names are '{next(iter(EXPERIMENTS))}'"),
        (["gridworld", "--dask", "tcp://127.0.0.1:9", "--jobs", "2"], "found it together with --dask: leave one out."),
        (["gridworld", "--runs", "0"], "--runs"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence, here):
    told = here(*arguments, code=2)
    assert sentence in told and told.startswith("policyspace: ") and "Traceback" not in told


def test_a_spoilt_file_of_results_is_said(tmp_path, here):
    here("gridworld", "--quick", "--jobs", 1, "--out", "made")
    (tmp_path / "made" / "results.json").write_text("not JSON")
    told = here("gridworld", "--quick", "--jobs", 1, "--out", "made", code=2)
    assert "made/results.json: is not a file of results" in told and "delete it" in told


CELLS = [Cell("a", {"world": "x", "n": n, "o": {"n": n}, "seed": seed}) for n in (10, 1000) for seed in range(4)]


def test_the_time_left_knows_that_settings_cost_differently():
    left = TimeLeft(workers=2)
    for cell in CELLS:
        left.expect(cell)
    assert left.seconds() is None
    for cell in (CELLS[0], CELLS[4]):
        left.learn(cell, cell.setting["n"] / 10)
        left.done(cell)
    assert left.seconds() == pytest.approx((3 * 1 + 3 * 100) / 2)
    other = Cell("b", {"seed": 0})
    left.expect(other)
    assert left.seconds() == pytest.approx((303 + 101 / 2) / 2), "of what is not known yet, the mean of the rest"


def test_a_line_tells_a_cell_from_the_others():
    assert distinguishing(CELLS) == ["n", "seed"]
    assert described(CELLS[5], ["n", "seed"]) == ["n 1000", "seed 1"]
    lists = [Cell("a", {"where": [1, 2], "seed": 0}), Cell("a", {"where": [1] * 40, "seed": 0})]
    assert distinguishing(lists) == ["where"]
    assert described(lists[0], ["where"]) == ["where [1, 2]"]
    assert len(described(lists[1], ["where"])[0]) == len("where ") + 24


def test_a_terminal_shows_a_bar_with_the_time_left(tmp_path):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, highlight=False)
    with Store(tmp_path / "records.sqlite") as store, CellProgress(console, {"a": CELLS}, store, 1) as progress:
        progress.finished(CELLS[0], 200.0)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "a n 10 seed 0: 200.0 s\n" in shown.replace("\r", "")
    assert "1/8" in shown and "about 23 min left" in shown


def test_records_of_other_code_are_told_of_and_made_anew_only_when_asked(tmp_path, here):
    arguments = ("gridworld", "--runs", 3, "--jobs", 1, "--out", tmp_path / "out")
    assert "other code" not in here(*arguments) + here(*arguments)
    with sqlite3.connect(tmp_path / "out" / "records.sqlite") as connection:
        connection.execute("UPDATE records SET version = '0.0.9+00000000' WHERE setting LIKE '%\"seed\": 1%'")
    connection.close()
    assert "1 of the 3 records" in here(*arguments)
    assert "other code" not in here(*arguments, "--fresh")
