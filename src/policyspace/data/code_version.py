"""Which code made a record: the package's version, and a digest of the source that records depend on."""

import ast
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import policyspace

NEVER_RUN = ("environments", "study", "report", "results", "cli", "by_subject.py", "sklearn.py")
"""Parts of the package that no experiment runs: whatever changes there leaves a record what it was."""


@cache
def code_version() -> str:
    """As 0.1.0+3f2a9c1b: two that are equal give the same records for the same settings."""
    return f"{policyspace.__version__}+{source_digest(Path(policyspace.__file__).parent)}"


def source_digest(root: Path) -> str:
    """What the modules below a folder do, in eight letters: comments, docstrings and the layout of lines change nothing."""
    digest = sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] in NEVER_RUN:
            continue
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(_meaning(ast.parse(path.read_bytes())).encode())
    return digest.hexdigest()[:8]


def _meaning(node: Any) -> str:
    """A syntax tree as text, without strings that stand alone, which nothing reads.

    `ast.dump` and `ast.unparse` write the same tree in other words in another version of Python. Here what is empty is left
    out, so that fields which only newer ones have say nothing.
    """
    if isinstance(node, list):
        return f"[{','.join(_meaning(one) for one in node if not _is_docstring(one))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
    return f"{type(node).__name__}({','.join(f'{name}={_meaning(value)}' for name, value in fields)})"


def _is_docstring(node: Any) -> bool:
    """Whether this statement is nothing but a string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
