"""`choice ~ cost + time*income`: which columns are used and how, read by formulaic, computed here and never run as code."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, final

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError, nearest

FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "log": np.log, "log1p": np.log1p, "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs, "I": np.positive,
    "center": lambda x: x - x.mean(axis=0), "scale": lambda x: (x - x.mean(axis=0)) / x.std(axis=0),
}  # fmt: skip
"""What may be applied to a column of numbers."""

MOST_POWER = 6

Factor = tuple[str, ...]
"""A column, and what is applied to it from the inside out: ("x", "**2"), ("y", "log")."""


@final
@dataclass(frozen=True)
class Formula:
    """Actions, and terms that are products of factors; an interaction stands after the terms that it is made of."""

    text: str
    actions: tuple[str, ...]
    terms: tuple[tuple[Factor, ...], ...]

    @cached_property
    def columns(self) -> list[str]:
        """The columns of the features, each once."""
        return list(dict.fromkeys(factor[0] for term in self.terms for factor in term))

    @property
    def interactions(self) -> dict[str, list[str]]:
        """For every term the terms that hold it: with these it is tested, for without it they mean nothing."""
        inside = {name_of(term): set(term) for term in self.terms}
        found = {name: [other for other in inside if inside[name] < inside[other]] for name in inside}
        powers = self._powers()
        return {name: found[name] + powers.get(name, []) for name in inside if found[name] or name in powers}

    def _powers(self) -> dict[str, list[str]]:
        """The squares of a column are to it what an interaction is."""
        alone = [term[0] for term in self.terms if len(term) == 1]
        return {
            name_of(((c,),)): [name_of((f,)) for f in alone if f[0] == c and len(f) == 2 and f[1].startswith("**")]
            for c, *done in alone
            if not done and any(f[0] == c and len(f) == 2 and f[1].startswith("**") for f in alone)
        }

    def expand(self, data: Demonstrations) -> Demonstrations:
        """The pairs whose features are the terms, from those whose features are the columns."""
        columns, names, blocks = [], list[str](), dict[str, tuple[str, ...]]()
        for term in self.terms:
            values, inside = np.ones((data.num_pairs, 1)), [""]
            for factor in term:
                own, labels = self._factor(factor, data)
                values = (values[:, :, None] * own[:, None, :]).reshape(data.num_pairs, -1)
                inside = [f"{a}:{b}" if a else b for a in inside for b in labels]
            columns.append(values)
            names += inside
            if inside != [name_of(term)]:
                blocks[name_of(term)] = tuple(inside)
        metadata = dict(data.metadata) | {"formula": self.text, "interactions": self.interactions}
        if sum(len(term) for term in self.terms) > len(self.columns):
            metadata["terms_share_columns"] = True
        return replace(data, features=np.hstack(columns), names=tuple(names), blocks=blocks, metadata=metadata)

    def _factor(self, factor: Factor, data: Demonstrations) -> tuple[np.ndarray, list[str]]:
        """Its columns [n, c] and their names: one of numbers, several of a category."""
        name, *done = factor
        inside = list(data.blocks.get(name, (name,)))
        values = data.features[:, [data.names.index(feature) for feature in inside]]
        if done and name in data.blocks:
            raise InputError(
                f"'{done[0]}' is for numbers, found the categories of '{name}' in '{self.text}': leave it out."
            )
        with np.errstate(all="ignore"):
            for step in done:
                values = values ** int(step[2:]) if step.startswith("**") else FUNCTIONS[step](values)
        if not np.isfinite(values).all():
            row = int(np.argmax(~np.isfinite(values).all(axis=1))) + 1
            raise InputError(f"'{_shown(factor)}' must be finite numbers, found otherwise in row {row}: leave it out.")
        return values, inside if not done else [_shown(factor)]


def parse_formula(text: str) -> Formula:
    """What a formula says; whatever is not a column, +, :, *, a power or one of a few functions is refused."""
    try:
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser
    except ImportError as error:
        raise InputError(
            "formulas are read by formulaic: install it with pip install 'policyspace[formula]'."
        ) from error
    try:
        terms: Any = DefaultFormulaParser().get_terms(text)
        left, right = terms.lhs, terms.rhs
    except (FormulaicError, AttributeError, SyntaxError, ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"a formula is written as 'choice ~ cost + time*income', found '{text}': correct it."
        ) from error
    actions = [_factor_of(factor.expr, text) for term in left for factor in term.factors]
    if not actions or any(len(action) > 1 for action in actions):
        raise InputError(f"the left side of a formula names the action's columns, found '{text}': name them.")
    found = [tuple(_factor_of(factor.expr, text) for factor in term.factors) for term in right if str(term) != "1"]
    if "1" not in [str(term) for term in right]:
        raise InputError(f"a formula keeps its constant, found '{text}': say --no-intercept instead of 0 or -1.")
    if not found:
        raise InputError(f"the right side of a formula must name at least one column, found '{text}': name one.")
    known = {frozenset(term) for term in found}
    for term in found:
        for size in range(1, len(term)):
            for part in combinations(term, size):
                if frozenset(part) not in known:
                    raise InputError(
                        f"'{name_of(term)}' needs '{name_of(part)}' too, found '{text}': write * instead of :."
                    )
    return Formula(text, tuple(action[0] for action in actions), tuple(sorted(found, key=len)))


def name_of(term: tuple[Factor, ...]) -> str:
    """The name of a term's group, such as time:income."""
    return ":".join(_shown(factor) for factor in term)


def _shown(factor: Factor) -> str:
    name = factor[0]
    for step in factor[1:]:
        name = f"{name}{step}" if step.startswith("**") else f"{step}({name})"
    return name


def _factor_of(text: str, formula: str) -> Factor:
    """A plain column, or functions of one."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (text,)  # a name in backticks
    return _steps(tree, text, formula)


def _steps(tree: ast.expr, text: str, formula: str) -> Factor:
    if isinstance(tree, ast.Name):
        return (tree.id,)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow) and isinstance(tree.right, ast.Constant):
        power = tree.right.value
        if isinstance(power, int) and not isinstance(power, bool) and 2 <= power <= MOST_POWER:
            return (*_steps(tree.left, text, formula), f"**{power}")
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and len(tree.args) == 1 and not tree.keywords:
        name = tree.func.id
        if name not in FUNCTIONS:
            raise InputError(f"unknown function '{name}' in the formula '{formula}': {nearest(name, FUNCTIONS)}")
        inner = _steps(tree.args[0], text, formula)
        return inner if name == "I" else (*inner, name)
    if isinstance(tree, ast.BinOp | ast.Call | ast.Constant):
        raise InputError(
            f"a formula holds columns, +, :, *, whole powers up to {MOST_POWER} such as I(x**2), and the functions "
            f"{', '.join(FUNCTIONS)}, found '{text}': write the column itself into the file."
        )
    return (text,)  # a name that only looks like code, such as reaction-time in backticks: looked up, never run
