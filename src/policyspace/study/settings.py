"""What a study names: its world, its units and its design, found or refused with a sentence."""

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyspace.errors import InputError, nearest

if TYPE_CHECKING:
    from policyspace.configuration.designs import Design
    from policyspace.policies import PolicySpace
    from policyspace.worlds.confmdp import ConfMDP

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

    if name not in DESIGNS:
        raise InputError(f"there is no design '{name}': {nearest(name, DESIGNS)}")
    if name == "paper":
        return PaperObjective(penalty=PENALTIES.get(world.name, 0.125))
    made: Design = DESIGNS[name]()
    return made
