"""The house in numbers: lines by room, and what a reader would trip over.

python release/house.py            (or `make house`)
python release/house.py core-tests (the test files that need the core alone, for `make test-core`)

Read from the source alone, by the standard library: nothing is imported. `tests/test_layers.py` and `tests/test_shape.py`
hold these numbers to their ceilings.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"policyspace": ROOT / "src/policyspace", "policyspace_paper": ROOT / "paper/src/policyspace_paper"}

LAYERS = (
    "errors", "runtime", "safe_io", "data", "families", "worlds", "display", "answer", "identified", "inference",
    "identification", "planning", "theory", "cloning", "rewards", "report", "environments", "asking", "study",
    "recommending", "sklearn", "cli", "__main__", "policyspace_paper",
)  # fmt: skip
"""A room imports from those before it, never from those after it."""

CONFIGURE = (
    "worlds",
    "environments",
    "study",
    "cli/configure",
    "cli/study",
    "cli/worlds",
    "recommending",
    "cli/recommend",
)
"""Rooms, and commands, that need the extra [configure]."""

OF_ASKING = ("inference/betting", "inference/randomised", "data/draws")
"""What asking rests on, below it: logs keep its draws, and `identify` tests them."""

PUBLIC = (
    "policyspace", "families", "planning", "study", "sklearn", "theory", "worlds", "cli", "errors", "asking",
    "data", "inference", "inference.lean", "report", "environments", "cloning", "identified", "rewards", "recommending",
)  # fmt: skip
"""Modules that users import, and the faces of the rooms: what tests may import."""

SHORT = 10
"""Lines of a helper that hides nothing."""


@dataclass(frozen=True)
class Module:
    """A file of one of the two packages."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        """Its source."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text)

    @property
    def num_lines(self) -> int:
        """As `wc -l` counts them."""
        return self.text.count("\n")

    @property
    def room(self) -> str:
        """The layer that it belongs to; the package `policyspace` itself belongs to none."""
        package, _, rest = self.name.partition(".")
        return package if package == "policyspace_paper" else rest.split(".")[0]

    @property
    def part(self) -> str:
        """Core, configure, asking or paper."""
        place = self.name.partition(".")[2].replace(".", "/")
        if self.room in ("policyspace_paper", "asking") or place in ("cli/ask", *OF_ASKING):
            return "paper" if self.room == "policyspace_paper" else "asking"
        return "configure" if any(f"{place}/".startswith(f"{room}/") for room in CONFIGURE) else "core"


def _name(package: str, path: Path) -> str:
    parts = (package, *path.relative_to(PACKAGES[package]).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    module.name: module
    for package, folder in PACKAGES.items()
    for path in sorted(folder.rglob("*.py"))
    for module in [Module(_name(package, path), path)]
}


def skipped(tree: ast.Module) -> set[int]:
    """The nodes under `if TYPE_CHECKING`, which never run."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    return {id(inside) for block in blocks for statement in block.body for inside in ast.walk(statement)}


def imported(tree: ast.Module) -> set[str]:
    """The modules of ours that a file imports when it runs, inside functions too."""
    types, found = skipped(tree), set()
    for node in ast.walk(tree):
        if id(node) in types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}  # a name may be a module of its own
            found |= {name if name in MODULES else node.module for name in inner}
    return found & MODULES.keys()


def imports() -> dict[str, set[str]]:
    """What each module imports of ours; everybody may import `policyspace`, for its version."""
    return {name: imported(module.tree) - {name, "policyspace"} for name, module in MODULES.items()}


PLACE = re.compile(r"policyspace(?:_paper)?(?:\.\w+)+:\w+")


def named_places() -> set[tuple[str, str]]:
    """(module, "module:name"): objects that code finds by a dotted name, as lower rooms ask for higher ones."""
    return {
        (module.name, node.value)
        for module in MODULES.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACE.fullmatch(node.value)
    }


def _defined(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """The names that a module defines at its top."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node


def _used(tree: ast.AST) -> Counter[str]:
    """How often names are read: as names, attributes, imports, and in annotations that are text."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            found[node.id] += 1
        elif isinstance(node, ast.Attribute):
            found[node.attr] += 1
        elif isinstance(node, ast.ImportFrom | ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            found.update(re.findall(r"\w+", node.value))
    return found


def lines() -> Counter[str]:
    """Of core, configure, paper, and what asks agents."""
    found: Counter[str] = Counter()
    for module in MODULES.values():
        found[module.part] += module.num_lines
    return found


def bags() -> list[str]:
    """Where `dict[str, Any]` stands."""
    return [module.name for module in MODULES.values() for _ in re.findall(r"dict\[str, Any\]", module.text)]


def homonyms() -> list[str]:
    """Class names that mean two things."""
    places = defaultdict(list)
    for module in MODULES.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.name)
    return [f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1]


def dead() -> list[str]:
    """Names of modules that nothing uses: private ones in their module, public ones anywhere, tests and pages included."""
    anywhere: Counter[str] = Counter()
    for folder in ("src", "paper", "tests", "benchmarks", "examples"):
        for path in (ROOT / folder).rglob("*.py"):
            anywhere.update(_used(ast.parse(path.read_text(encoding="utf-8"))))
    for path in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("**/pyproject.toml"),
        *ROOT.glob("examples/*"),
    ]:
        if path.is_file() and path.suffix in (".md", ".toml", ".ipynb"):
            anywhere.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    found = []
    for module in MODULES.values():
        own = _used(module.tree)
        for name, node in _defined(module.tree):
            if name.startswith("__") or getattr(node, "decorator_list", None):
                continue
            recursive = _used(node)[name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else 0
            uses = own[name] - recursive if name.startswith("_") else anywhere[name] - recursive
            if uses <= 0:
                found.append(f"{module.name}.{name}")
    return found


def one_use_helpers() -> list[str]:
    """Private functions of at most ten lines, at the top of a module, that are called once.

    One that calls itself, or is handed on as a value (a callback, an entry of a table), cannot stand where it is used.
    """
    found = []
    for module in MODULES.values():
        used = _used(module.tree)
        called = {id(node.func) for node in ast.walk(module.tree) if isinstance(node, ast.Call)}
        handed_on = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name) and id(node) not in called}
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.name.startswith("__"):
                short = (node.end_lineno or 0) - node.lineno + 1 <= SHORT
                if short and used[node.name] == 1 and node.name not in handed_on and not node.decorator_list:
                    found.append(f"{module.name}.{node.name}")
    return found


def _families() -> dict[str, str]:
    """The classes that are families, likelihoods or their sums over rows, and the module of each."""
    classes = {
        node.name: (module.name, {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases})
        for module in MODULES.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"PolicySpace", "Likelihood"}
    while more := {name for name, (_, bases) in classes.items() if bases & found} - found:
        found |= more
    return {name: classes[name][0] for name in found - {"PolicySpace", "Likelihood"} if name in classes}


def family_checks() -> list[str]:
    """Where isinstance asks which family something is, outside the file of that family."""
    families, found = _families(), []
    for module in MODULES.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                kinds = {inner.id for inner in ast.walk(node.args[1]) if isinstance(inner, ast.Name)}
                found += [f"{module.name}: {kind}" for kind in kinds & families.keys() if families[kind] != module.name]
    return sorted(found)


def discrete_checks() -> list[str]:
    """Where `.discrete` is asked outside the families."""
    return [
        module.name
        for module in MODULES.values()
        if module.room != "families"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr == "discrete"
    ]


def inner_imports() -> dict[str, set[str]]:
    """The test modules that import modules of `policyspace` which users do not."""
    public = {name if name == "policyspace" else f"policyspace.{name}" for name in PUBLIC}
    found = {}
    for folder in ("tests", "paper/tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            modules = imported(ast.parse(path.read_text(encoding="utf-8")))
            inner = {name for name in modules if name.startswith("policyspace.")} - public
            if inner:
                found[path.relative_to(ROOT).as_posix()] = inner
    return found


CORE_LIBRARIES = {"numpy", "scipy", "threadpoolctl", "polars", "pyarrow", "typer", "rich", "matplotlib", "PIL"}
"""What `pip install policyspace` brings, as it is imported."""

TEST_LIBRARIES = {"pytest", "hypothesis"}

BEYOND_CORE = ("policyspace.families.jax_backend", "policyspace.families.custom_likelihood", "policyspace.sklearn")
"""Modules among the core's that need JAX or scikit-learn."""


def core_tests() -> list[str]:
    """The test files that need the core alone: neither they nor the helpers that they import ask for more."""
    helpers = {path.stem: path for path in sorted((ROOT / "tests").rglob("*.py"))}
    home = homes()

    def beyond(path: Path, seen: frozenset[Path]) -> set[str]:
        if path in seen:
            return set()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules, found = imported(tree), set()
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom):
                if node.module == "policyspace":
                    modules |= {f"policyspace.{home[name]}" for name in names if name in home}
                names = [node.module] if node.module else names
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "policyspace" and node.attr in home:
                modules.add(f"policyspace.{home[node.attr]}")
            for name in names:
                top, last = name.partition(".")[0], name.rpartition(".")[2]
                inside = top == "tests" or bool(getattr(node, "level", 0)) or top in helpers
                if inside and (last in helpers or top in helpers):
                    found |= beyond(helpers.get(last, helpers.get(top, path)), seen | {path})
                elif top not in sys.stdlib_module_names | TEST_LIBRARIES | CORE_LIBRARIES | {"policyspace", "tests"}:
                    found.add(top)
        return found | {name for name in modules if MODULES[name].part != "core" or name in BEYOND_CORE}

    tests = [*sorted((ROOT / "tests").rglob("test_*.py"))]
    return [path.relative_to(ROOT).as_posix() for path in tests if not beyond(path, frozenset())]


def homes() -> dict[str, str]:
    """The module of each public name, as `policyspace/__init__.py` says."""
    tree = MODULES["policyspace"].tree
    home = next(node.value for name, node in _defined(tree) if name == "_HOME")  # type: ignore[attr-defined]
    found: dict[str, str] = ast.literal_eval(home)
    return found


def without_numpydoc() -> list[str]:
    """Public functions and classes whose docstring lacks `Parameters` or `Returns` where there are any, or `Examples`."""
    found = []
    for name, place in homes().items():
        module = MODULES[f"policyspace.{place}"]
        node = next((node for defined, node in _defined(module.tree) if defined == name), None)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            text = ast.get_docstring(node) or ""
            needed = ["Examples"]
            if isinstance(node, ast.FunctionDef):
                needed += ["Parameters"] * bool(node.args.args or node.args.kwonlyargs)
                needed += ["Returns"] * (node.returns is not None and ast.unparse(node.returns) != "None")
            if any(f"{section}\n---" not in text for section in needed):
                found.append(f"{module.name}.{name}")
    return found


COUNTS = {
    "dict[str, Any]": bags,
    "class names with two meanings": homonyms,
    "names that nothing uses": dead,
    f"private helpers of at most {SHORT} lines called once": one_use_helpers,
    "isinstance of a family outside its file": family_checks,
    ".discrete outside families": discrete_checks,
    "public objects without numpydoc and example": without_numpydoc,
    "test modules that import inner modules": lambda: list(inner_imports()),
    "inner modules that tests import": lambda: sorted(set().union(*inner_imports().values())),
}


def main() -> None:
    """Print the table."""
    rooms: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for module in MODULES.values():
        rooms[module.room or "policyspace"] += module.num_lines
        files[module.room or "policyspace"] += 1
    print(f"{'room':<20}{'modules':>8}{'lines':>8}")
    for room in ("policyspace", *LAYERS):
        if files[room]:
            print(f"{room:<20}{files[room]:>8}{rooms[room]:>8}")
    print(f"{'all':<20}{len(MODULES):>8}{rooms.total():>8}")
    print("\n" + ", ".join(f"{part} {count}" for part, count in lines().items()) + " lines\n")
    for name, count in COUNTS.items():
        print(f"{len(count()):>5}  {name}")


if __name__ == "__main__":
    if sys.argv[1:] == ["core-tests"]:
        print(*core_tests(), sep="\n")
    else:
        main()
