"""Which definitions an experiment reaches, and a digest of what they do: what a record says of the code that made it."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from policyspace.data.large.backends import meaning

NEVER_RUN = tuple(f"policyspace.{room}" for room in ("report", "cli", "sklearn", "asking", "environments"))
"""Rooms that answers ask for pages, pictures and agents of others when a user calls for them; no experiment does."""

PLACE = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>\w+)")
"""How registries write a definition, as module:name."""


class Definition(NamedTuple):
    """A name at the top level of a module, or "" for all that runs when it is imported."""

    module: str
    name: str


@dataclass(frozen=True)
class Sources:
    """The modules of some packages, by the folders that hold them.

    Examples
    --------
    >>> import policyspace
    >>> sources = Sources({"policyspace": Path(policyspace.__file__).parent})
    >>> found = sources.reached(Definition("policyspace.identification", "identify"))
    >>> Definition("policyspace.data.sample", "Sample") in found
    True
    """

    folders: Mapping[str, Path]
    _parsed: dict[str, "Module | None"] = field(default_factory=dict)

    def module(self, name: str) -> "Module | None":
        """A module of these packages, or none."""
        if name not in self._parsed:
            root, *inside = name.split(".")
            path = self.folders[root].joinpath(*inside) if root in self.folders else None
            files = () if path is None else (path / "__init__.py", path.with_suffix(".py"))
            file = next((one for one in files if one.is_file()), None)
            package = name if file is not None and file.name == "__init__.py" else name.rpartition(".")[0]
            self._parsed[name] = None if file is None else Module(name, package, file, ast.parse(file.read_bytes()))
        return self._parsed[name]

    def reached(self, *starts: Definition) -> dict[Definition, list[ast.stmt]]:
        """All definitions that these refer to, and those that they refer to, with their statements.

        A class is one definition with all its methods. What a name refers to is read, not run, so more is reached than runs.
        """
        found: dict[Definition, list[ast.stmt]] = {}
        waiting = list(starts)
        while waiting:
            place = waiting.pop()
            module = self.module(place.module)
            if module is None or place in found or place.module.startswith(NEVER_RUN):
                continue
            found[place] = module.statements.get(place.name, [])
            if place.name:
                waiting.append(Definition(place.module, ""))
            waiting += [one for statement in found[place] for one in self._referred(module, statement)]
        return {place: statements for place, statements in found.items() if statements}

    def digest(self, *starts: Definition) -> str:
        """What all those definitions do, in eight letters: comments, docstrings and the layout of lines change nothing."""
        found = self.reached(*starts)
        text = sha256()
        for place in sorted(found):
            text.update(f"{place.module}:{place.name}={meaning(found[place])}".encode())
        return text.hexdigest()[:8]

    def _referred(self, module: "Module", statement: ast.stmt) -> Iterator[Definition]:
        inside = {name: place for node in ast.walk(statement) for name, place in module.bindings(node).items()}
        for node in _running(statement):
            match node:
                case ast.ImportFrom() | ast.Import():
                    for place in module.bindings(node).values():
                        yield from self._resolved(place)
                case ast.Name(id=name):
                    yield from self._named(module, name, inside)
                case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                    owner = inside.get(name) or module.imported.get(name)
                    if owner is not None and (home := self._submodule(owner)):
                        yield from self._resolved(Definition(home, attribute))
                case ast.Constant(value=str(text)) if written := PLACE.fullmatch(text):
                    for home in (written["module"], f"{module.package}.{written['module']}"):
                        yield from self._resolved(Definition(home, written["name"]))

    def _named(self, module: "Module", name: str, inside: Mapping[str, Definition]) -> Iterator[Definition]:
        place = inside.get(name) or module.imported.get(name)
        if place is not None:
            yield from self._resolved(place)
        elif name in module.statements:
            yield Definition(module.name, name)

    def _resolved(self, place: Definition) -> Iterator[Definition]:
        """Where an imported name is defined: in its module, in one that this has it from, or as a module."""
        module = self.module(place.module)
        if module is None or place.module.startswith(NEVER_RUN):
            return
        if home := self._submodule(place):
            yield Definition(home, "")
        elif place.name in module.statements or not place.name:
            yield place
        elif place.name in module.imported:
            yield from self._resolved(module.imported[place.name])
        elif module.package == module.name:  # a package that imports its names when they are asked for
            home = getattr(getattr(import_module(place.module), place.name, None), "__module__", place.module)
            if home != place.module:
                yield from self._resolved(Definition(home, place.name))

    def _submodule(self, place: Definition) -> str:
        """The module that a name is bound to; "" where it is bound to something else."""
        whole = f"{place.module}.{place.name}" if place.name else place.module
        return whole if self.module(whole) is not None else ""


@dataclass(frozen=True)
class Module:
    """A parsed module: its definitions, and where its imported names come from."""

    name: str
    package: str
    path: Path
    tree: ast.Module

    @cached_property
    def statements(self) -> dict[str, list[ast.stmt]]:
        """By name, the statements that define it; under "" those that run when the module is imported and define nothing."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in _top_level(self.tree.body):
            for name in _defined(statement):
                found.setdefault(name, []).append(statement)
        return found

    @cached_property
    def imported(self) -> dict[str, Definition]:
        """By name, where it comes from."""
        return {name: place for one in _top_level(self.tree.body) for name, place in self.bindings(one).items()}

    def bindings(self, node: ast.AST) -> dict[str, Definition]:
        """What an import binds."""
        match node:
            case ast.ImportFrom(module=str(home), names=names, level=0):
                return {one.asname or one.name: Definition(home, one.name) for one in names}
            case ast.Import(names=names):
                bound = {one.asname or one.name.partition(".")[0]: one for one in names}
                return {name: Definition(one.name if one.asname else name, "") for name, one in bound.items()}
        return {}


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module; of conditions those that run, which imports for type checkers are not."""
    for statement in body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            yield from _top_level(statement.orelse)
        else:
            yield statement


def _defined(statement: ast.stmt) -> list[str]:
    """The names that a statement defines; "" if it does something else."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)] or [""]
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Import() | ast.ImportFrom():
            return []
        case ast.Expr(value=ast.Constant()):
            return []
    return ["", *(n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))]


def _running(statement: ast.AST) -> Iterator[ast.AST]:
    """What may run of a statement: all of it but the types of arguments and results."""
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        hints = {"annotation", "returns"} if isinstance(node, ast.arg | ast.FunctionDef) else set[str]()
        for name, value in ast.iter_fields(node):
            if name not in hints:
                waiting += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST)]
