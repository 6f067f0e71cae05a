"""The layers of the house: imports point one way, and what is heavy is loaded by what needs it alone."""

import subprocess
import sys
from graphlib import TopologicalSorter

import pytest

from release.house import CONFIGURE, LAYERS, MODULES, imports, lines, named_places

pytestmark = pytest.mark.quick
IMPORTS = imports()

BY_NAME = {
    ("policyspace.display", "policyspace.report.pages:write_report"),  # `answer.report(path)`
    ("policyspace.answer", "policyspace.report.pages:answer_page"),
    ("policyspace.answer", "policyspace.report.figures:effect_axes"),  # `answer.plot()`
    ("policyspace.answer", "policyspace.report.figures:curve_figure"),  # `answer.plot_curves()`
    (
        "policyspace.inference.coefficients",
        "policyspace.report.figures:coefficient_axes",
    ),  # `answer.coefficients().plot()`
    ("policyspace.answer", "policyspace.report.figures:draw_subject_effects"),  # `answer.subjects.plot()`
    ("policyspace.planning", "policyspace.report.pages:plan_page"),
    ("policyspace.cloning", "policyspace.report.use_pages:clone_page"),
    ("policyspace.cloning", "policyspace.report.use_pages:loss_axes"),
    ("policyspace.rewards", "policyspace.report.use_pages:reward_page"),
    ("policyspace.rewards", "policyspace.report.use_pages:weight_axes"),
    ("policyspace.recommending", "policyspace.recommending:recommend_page"),
    ("policyspace.study.records", "policyspace.study.page:rounds_page"),
    ("policyspace.asking.answer", "policyspace.asking.page:asked_page"),
    ("policyspace.asking.comparison", "policyspace.asking.page:audit_page"),
}
"""The only places where a lower layer asks a higher one, by a dotted name and when a user calls for it."""

MOST_MODULES = 133
"""Without the faces of rooms."""

ROOMS_OF_THEIR_OWN = {"asking"}
"""Rooms that were added since; they are counted neither here nor in the lines of the core."""

MOST_LINES = {"core": 27_440, "since": 3_280, "asking": 7_270, "configure": 11_500, "paper": 7_210}
"""They may only fall, unless a feature comes. Aimed at were 20 500 for the core, and 35 000 with configure and paper, for
what stood when that was said; ARCHITECTURE.md says what was tried."""

HEAVY = {"jax", "jaxlib", "optax", "gymnasium", "torch", "stable_baselines3", "matplotlib", "pandas", "sklearn", "h5py"}


def height(module):
    """The place of a module's layer; the package itself is below all."""
    room = MODULES[module].room
    return LAYERS.index(room) if room else -1


def test_every_module_belongs_to_a_layer():
    assert {module.room for module in MODULES.values()} - {""} <= set(LAYERS)
    assert "policyspace.families.custom_likelihood" in IMPORTS["policyspace.families.registry"]  # inside a function


def test_imports_point_one_way():
    found = [f"{a} → {b}" for a, others in IMPORTS.items() for b in others if height(b) > height(a)]
    assert found == []


def test_no_module_imports_itself_through_others():
    arrows = {name: found for name, found in IMPORTS.items() if name != "policyspace"}
    assert list(TopologicalSorter(arrows).static_order())


def test_nothing_imports_the_paper_or_the_command_line():
    def users(package):
        found = {a for a, others in IMPORTS.items() for b in others if f"{b}.".startswith(f"{package}.")}
        return {name for name in found if not name.startswith(package)}

    assert users("policyspace_paper") == set()
    assert {name for name in users("policyspace.cli") if "paper" not in name} == {"policyspace.__main__"}


def test_objects_found_by_name_exist_and_only_these_are_higher_up():
    higher = set()
    for module, place in named_places():
        home, name = place.split(":")
        assert home in MODULES, f"{module}: {place}"
        assert name in MODULES[home].text, f"{module}: {place}"
        if height(home) > height(module) or place.endswith("_page"):
            higher.add((module, place))
    assert higher == BY_NAME


def test_the_house_stays_small():
    counted = [
        name for name, one in MODULES.items() if one.path.name != "__init__.py" and one.room not in ROOMS_OF_THEIR_OWN
    ]
    assert len(counted) <= MOST_MODULES
    found = lines()
    print(f"lines: {dict(found)}")
    assert {part: found[part] for part in MOST_LINES if found[part] > MOST_LINES[part]} == {}


def test_a_room_has_an_idea_for_a_name():
    names = {part for module in MODULES for part in module.split(".")}
    assert names.isdisjoint({"utils", "util", "common", "helpers", "helper", "misc", "tools", "shared"})


def loaded(code, tmp_path):
    """The top-level packages in memory after some code has run in a process of its own."""
    script = f"import sys\n{code}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


COMMAND = """
from policyspace.cli import main
sys.argv = ["policyspace", *{arguments!r}]
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
"""


def test_identify_loads_no_part_of_scipy_that_is_seldom_needed(tmp_path):
    """`scipy.stats` alone takes longer to import than all modules of ours together."""
    assert "scipy" in loaded(
        "import policyspace.identification\nassert {'scipy.stats', 'scipy.optimize'}.isdisjoint(sys.modules)", tmp_path
    )


@pytest.mark.parametrize("arguments", [["--help"], ["identify", "--help"], ["study", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments, tmp_path):
    found = loaded(COMMAND.format(arguments=arguments), tmp_path)
    assert found.isdisjoint(HEAVY | {"numpy", "scipy", "polars", "pyarrow"})


@pytest.mark.parametrize("rule", ["simplified", "combinatorial"])
def test_identify_loads_what_it_needs(rule, tmp_path):
    rows = "\n".join(f"{i % 7},{(i * i) % 11},{'ab'[(i * 3 + i // 5) % 2]}" for i in range(60))
    (tmp_path / "log.csv").write_text(f"x,y,move\n{rows}\n")
    arguments = ["identify", "log.csv", "--actions", "move", "--rule", rule]
    found = loaded(COMMAND.format(arguments=arguments), tmp_path)
    assert "numpy" in found
    assert found.isdisjoint(HEAVY | {"minari"})


def test_the_package_itself_loads_nothing(tmp_path):
    assert loaded("import policyspace", tmp_path).isdisjoint(HEAVY | {"numpy", "scipy", "polars", "typer"})


def test_the_core_imports_nothing_of_the_extras(tmp_path):
    """Every module of the core is imported, whatever it would do later."""
    of_jax = {"families.jax_backend", "families.custom_likelihood", "sklearn"}  # JAX; scikit-learn
    core = sorted(
        name
        for name, module in MODULES.items()
        if module.part in ("core", "since") and module.name.removeprefix("policyspace.") not in of_jax
    )
    assert "policyspace.identification" in core and "policyspace.theory" in core
    assert not any(name.removeprefix("policyspace.").startswith(CONFIGURE) for name in core)
    found = loaded(f"from importlib import import_module\nfor name in {core!r}: import_module(name)", tmp_path)
    assert found.isdisjoint(HEAVY | {"policyspace_paper"})
