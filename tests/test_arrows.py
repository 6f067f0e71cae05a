"""The arrows of import point one way, and what a command does not need it does not load."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import policyspace

ROOT = Path(policyspace.__file__).parent

ORDER = [
    "interrupts", "printable", "errors", "progress", "table", "shown", "data", "policies", "fits", "answer", "inference",
    "identification", "by_subject", "sklearn", "planning", "theory", "worlds", "environments", "configuration", "study",
    "report", "experiments", "results", "cli", "__main__",
]  # fmt: skip
"""The way of the data: a module may import from those before it, never from those after it."""


ASKED_FOR = {
    ("policyspace.shown", "policyspace.report.reports"),
    ("policyspace.answer", "policyspace.report.evidence_picture"),
}
"""The only imports against the order: `answer.report(path)` and `answer.plot()`, when they are called."""


def module_of(path):
    parts = ("policyspace", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def of_types_only(tree):
    """The nodes under `if TYPE_CHECKING`, which never run."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    return {id(inside) for block in blocks for inside in ast.walk(block)}


def imports_of(path):
    """The modules of the package that a file imports, inside functions too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = of_types_only(tree)
    found = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            for alias in node.names:  # a name may be a module of its own
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else node.module)
    return found & MODULES.keys() - {module_of(path)}


IMPORTS = {name: imports_of(path) for name, path in MODULES.items()}
ARROWS = {name: {other for other in found if (name, other) not in ASKED_FOR} for name, found in IMPORTS.items()}


def place(module):
    """The part of the package that a module is in, as its place in the order; the package itself comes first."""
    return ORDER.index(module.split(".")[1]) if "." in module else -1


def test_the_files_are_seen():
    assert {
        "policyspace.identification",
        "policyspace.cli.identify",
        "policyspace.fits.gaussian_fits",
    } <= MODULES.keys()
    assert "policyspace.fits.custom_fits" in ARROWS["policyspace.fits"]  # imported inside a function
    assert set(ORDER) == {name.split(".")[1] for name in MODULES if "." in name}


def test_no_circles():
    """A module that is imported by what it imports is two modules that are one."""
    arrows = {name: found - {"policyspace"} for name, found in ARROWS.items() if name != "policyspace"}
    assert list(TopologicalSorter(arrows).static_order())


def test_arrows_point_one_way():
    wrong = [
        f"{name} → {other}"
        for name, found in ARROWS.items()
        for other in found
        if name != "policyspace" and place(other) > place(name)
    ]
    assert wrong == []


def test_what_is_asked_for_is_imported_by_methods_alone():
    for name, other in ASKED_FOR:
        assert other in IMPORTS[name], f"{name} → {other} is no exception any more"
        tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
        inside = [inner for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for inner in ast.walk(node)]
        found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == other]
        assert found and all(any(node is inner for inner in inside) for node in found)


def test_the_architecture_page_shows_the_same_order():
    page = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip().strip("`/") for line in page.splitlines() if line.startswith("| `")]
    assert rows == [part for part in ORDER if part != "__main__"]


def test_no_two_files_of_one_name():
    """A command may carry the name of what it calls."""
    names = [path.stem for path in MODULES.values() if path.parent.name != "cli"]
    twice = {name for name in names if names.count(name) > 1} - {"__init__", "base"}
    assert twice == set()


def test_nothing_but_the_entry_point_imports_the_command_line():
    users = {name for name, found in ARROWS.items() if any(other.startswith("policyspace.cli") for other in found)}
    assert {name for name in users if not name.startswith("policyspace.cli")} == {"policyspace.__main__"}


def test_every_module_has_an_idea_for_a_name():
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


@pytest.mark.parametrize("arguments", [["--help"], ["identify", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments, tmp_path):
    found = loaded(COMMAND.format(arguments=arguments), tmp_path)
    assert found.isdisjoint({"numpy", "scipy", "polars", "pyarrow", "matplotlib", "jax"})


@pytest.mark.parametrize("rule", ["simplified", "combinatorial"])
def test_identify_never_loads_jax(rule, tmp_path):
    rows = "\n".join(f"{i % 7},{(i * i) % 11},{'ab'[(i * 3 + i // 5) % 2]}" for i in range(60))
    (tmp_path / "log.csv").write_text(f"x,y,move\n{rows}\n")
    arguments = ["identify", "log.csv", "--actions", "move", "--rule", rule]
    found = loaded(COMMAND.format(arguments=arguments), tmp_path)
    assert "numpy" in found
    assert found.isdisjoint({"jax", "jaxlib", "optax", "gymnasium", "matplotlib", "pandas"})
    assert found.isdisjoint({"minari", "h5py", "stable_baselines3", "torch"})


def test_the_package_itself_loads_nothing(tmp_path):
    assert loaded("import policyspace", tmp_path).isdisjoint({"numpy", "scipy", "polars", "jax", "typer"})
