"""What a study is created with: its world by name, its units, its design, and what is wrong with them."""

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyspace.errors import InputError, nearest
from policyspace.planning.power import check_share

if TYPE_CHECKING:
    from policyspace.configuration.designs import Design
    from policyspace.policies import PolicySpace
    from policyspace.worlds.confmdp import ConfMDP

RULES = ("simplified", "combinatorial")
TESTS = ("auto", "batches", "eprocess")
PENALTIES = {"continuous-gridworld": 1e-6, "minigolf": 0.25}
"""The paper's ζ, where it is not that of the grid world."""


def load_world(spec: str) -> "ConfMDP":
    """One of our worlds by name, or `module:Class` (or a ready-made `module:world`), found from the working folder too."""
    from policyspace.worlds import WORLDS, make_world

    if ":" not in spec:
        if spec not in WORLDS:
            raise InputError(f"there is no world '{spec}', and it is no module:Class: {nearest(spec, WORLDS)}")
        return make_world(spec)
    from policyspace.worlds.confmdp import ConfMDP

    module, _, name = spec.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        found = getattr(import_module(module), name)
        world = found() if isinstance(found, type) else found
    except Exception as error:  # whatever a user's module does
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(
            f"the world '{spec}' cannot be imported ({reason}): run where its module is, or install it."
        ) from error
    if not isinstance(world, ConfMDP):
        raise InputError(
            f"the world '{spec}' must be a policyspace.worlds.confmdp.ConfMDP, found a {type(world).__name__}."
        )
    return world


def space_for(world: "ConfMDP", groups: Any, always: Iterable[str]) -> "PolicySpace":
    """The world's space with the units of the study; a space that knows no such options is asked for none."""
    options: dict[str, Any] = {} if groups == "feature" else {"groups": groups}
    space = world.policy_space(**options)
    known = [group.name for group in space.groups]
    for name in always:
        if name not in known:
            raise InputError(f"there is no unit '{name}' to declare known: {nearest(name, known)}")
    return space.with_always(always)


def not_in_question(world: "ConfMDP", features: Iterable[str] | None) -> list[str]:
    """The features that are not tested, given those that are."""
    if features is None:
        return []
    asked = list(features)
    for name in asked:
        if name not in world.feature_names:
            raise InputError(f"there is no feature '{name}' in '{world.name}': {nearest(name, world.feature_names)}")
    return [name for name in world.feature_names if name not in asked]


def design_for(name: str, world: "ConfMDP") -> "Design":
    """A design by name, with the paper's penalty for the paper's worlds."""
    from policyspace.configuration import DESIGNS, PaperObjective

    if name == "paper":
        return PaperObjective(penalty=PENALTIES.get(world.name, 0.125))
    made: Design = DESIGNS[name]()
    return made


def chosen_test(test: str, space: "PolicySpace", rule: str, paper_rule: bool) -> str:
    """How a study tests: as asked for, or what fits its space.

    Wilks' law finds smaller effects in one batch of a linear policy. It fails for networks, whose e-values need more
    episodes than a batch has: there evidence must add up over batches.
    """
    from policyspace.policies.network import Network

    if test not in TESTS:
        raise InputError(f"there is no test '{test}' of a study: {nearest(test, TESTS)}")
    simple = rule == "simplified" and not paper_rule
    if test == "auto":
        return "eprocess" if isinstance(space, Network) and simple else "batches"
    if test == "eprocess" and not simple:
        what = "the paper's rule" if paper_rule else f"the rule '{rule}'"
        raise InputError(f"the e-process follows one unit at a time, found {what}: leave one of them out.")
    return test


def check_settings(
    significance: float, rule: str, design: str, num_attempts: int, num_episodes: int, budget: int | None, seed: int
) -> None:
    """Everything that can be said about the settings of a study without its world."""
    from policyspace.configuration import DESIGNS

    check_share(significance, "the significance")
    for what, name, valid in (("rule", rule, RULES), ("design", design, tuple(DESIGNS))):
        if name not in valid:
            raise InputError(f"there is no {what} '{name}': {nearest(name, valid)}")
    for what, number, least in (
        ("attempts", num_attempts, 0),
        ("episodes a round", num_episodes, 1),
        ("episodes in the budget", 1 if budget is None else budget, 1),
        ("the seed", seed, 0),
    ):
        if not isinstance(number, int) or number < least:
            raise InputError(f"{what} must be a whole number of at least {least}, found {number!r}: correct it.")
