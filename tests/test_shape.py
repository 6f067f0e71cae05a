"""The shape of the code: short functions, few arguments, and families that answer for themselves."""

import ast
from pathlib import Path

import policyspace

ROOT = Path(policyspace.__file__).parent
TREES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))}

FAMILIES = {
    "GaussianLinear", "BoltzmannLinear", "GaussianNetwork", "BoltzmannNetwork", "Network", "CustomPolicy", "AnyPolicy",
    "ExponentialFamily", "GaussianLikelihood", "BoltzmannLikelihood", "NetworkLikelihood", "FirthLikelihood",
    "CustomLikelihood", "LinearLikelihood", "ChoiceLinear", "ChoiceLikelihood", "GaussianRows", "BoltzmannRows",
}  # fmt: skip
ASKED = {
    ("fits/firth.py", "BoltzmannLikelihood"),  # the penalty is of this family alone, and says so
    ("fits/fisher.py", "LinearLikelihood"),  # ranks of columns are a matter of linear policies
    ("fits/levenberg.py", "GaussianRows"),  # its own file's other half
    ("fits/network_fits.py", "BoltzmannNetwork"),  # its own family
    ("fits/network_fits.py", "GaussianRows"),
    ("inference/mixture.py", "LinearLikelihood"),  # refuses all others with a sentence
    ("experiments/car_sensors.py", "GaussianNetwork"),  # narrows the type of what the car's world returns
}
"""Where a family is asked by isinstance all the same, and why."""


def functions():
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name}:{node.name}", node


def test_no_function_is_longer_than_sixty_lines():
    long = {name: size for name, node in functions() if (size := node.end_lineno - node.lineno + 1) > 60}
    assert long == {}


def test_no_function_takes_more_than_twelve_arguments_but_identify_and_its_command():
    def count(node):
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        return len([one for one in given if one.arg not in ("self", "cls")])

    many = {name for name, node in functions() if count(node) > 12}
    assert many <= {"identification.py:identify", "cli/identify.py:identify", "sklearn.py:__init__"}


def test_families_are_not_asked_outside_their_own_files():
    asked = set()
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                kinds = {inner.id for inner in ast.walk(node.args[1]) if isinstance(inner, ast.Name)}
                asked |= {(name, kind) for kind in kinds & FAMILIES}
    assert asked == ASKED
