"""The version of the code that made a record: it moves with what a run of the experiment reaches, and with nothing else."""

import shutil
import sys
from pathlib import Path

import policyspace_paper
import pytest
from policyspace_paper.code_digest import Definition, Sources
from policyspace_paper.execution import RunSize, find_experiment, record_version, sources

import policyspace

FOLDERS = {package.__name__: Path(package.__file__).parent for package in (policyspace, policyspace_paper)}
CHEAP = {
    "theory": {"num_runs": 1},
    "calibration": {"num_runs": 1},
    "gridworld": {"num_episodes": 5, "learning": {"num_steps": 2, "num_episodes": 5}, "design_options": {}},
}


@pytest.mark.parametrize("name", CHEAP)
def test_every_function_that_runs_is_in_the_digest(name):
    """What is read of the source against what the interpreter calls."""
    executed = set()
    experiment = find_experiment(name)
    setting = experiment.cells(RunSize(quick=True))[-1].setting
    changed = {entry: value for entry, value in CHEAP[name].items() if entry in setting}
    sys.setprofile(lambda frame, event, argument: executed.add(frame.f_code))
    try:
        experiment.run(setting | changed)
    finally:
        sys.setprofile(None)
    lines = {}
    for place, statements in sources().reached(Definition(experiment.run.__module__, experiment.run.__name__)).items():
        own = lines.setdefault(str(sources().module(place.module).path), set())
        for one in statements:
            own.update(
                range(min([one.lineno, *(d.lineno for d in getattr(one, "decorator_list", []))]), one.end_lineno + 1)
            )
    called = [code for code in executed if any(Path(code.co_filename).is_relative_to(f) for f in FOLDERS.values())]
    assert len(called) > 20
    missed = [code for code in called if code.co_firstlineno not in lines.get(code.co_filename, ())]
    assert {code.co_name for code in missed} <= {"<module>"}  # a module that is imported on the way


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Both packages, to be changed."""
    folder = tmp_path_factory.mktemp("copy")
    for name, path in FOLDERS.items():
        shutil.copytree(path, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def change(copy):
    """Replaces words in a file of the copy for one test, and gives the digest of the golfers' curves then."""
    before = {}

    def changed(name, old, new):
        path = copy / name
        text = before.setdefault(path, path.read_text(encoding="utf-8"))
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        return Sources({name: copy / name for name in FOLDERS}).digest(Definition("policyspace_paper.minigolf", "run"))

    yield changed
    for path, text in before.items():
        path.write_text(text, encoding="utf-8")


GOLF, WORLD = "policyspace_paper/minigolf.py", "policyspace/worlds/minigolf.py"


def test_a_picture_a_docstring_or_another_module_leaves_the_version(change):
    version = record_version("minigolf-curve").partition("+")[2]
    assert change(GOLF, '"""The best policies found."""', '"""Whatever."""') == version
    assert change(GOLF, "lowest = [", "lowest = list(range(9)) and [") == version, "a picture"
    assert change(GOLF, "EQUAL = 0.1", "EQUAL = 0.2") == version, "a verdict"
    assert change("policyspace_paper/car.py", "DEGREES = 8", "DEGREES = 9") == version, "another experiment"
    assert change("policyspace/inference/e_values.py", "class UniversalTest", "class UniversalTests") == version
    assert change("policyspace/report/figures.py", "WIDTH = 7.2", "WIDTH = 8.2") == version


def test_what_a_run_reaches_changes_it(change):
    version = record_version("minigolf-curve").partition("+")[2]
    found = [
        change(GOLF, "WIDEST = 0.6", "WIDEST = 0.7"),
        change(GOLF, "jax.random.split(key, 3)", "jax.random.split(key, 4)[:3]"),
        change(WORLD, "HOLED_ENERGY =", "HOLED_ENERGY = 2 *"),
        change("policyspace/worlds/agents.py", "def adam_ascent(", "def adam_ascent(_=0, *, "),
    ]
    assert len({version, *found}) == 5
