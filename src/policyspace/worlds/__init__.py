"""The worlds by the names that the command line knows; a world's module, and JAX, are imported when it is made.

Importing this package registers the worlds with Gymnasium.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from policyspace.errors import InputError, nearest
from policyspace.worlds.gymnasium_ids import register_worlds

if TYPE_CHECKING:
    from policyspace.worlds.confmdp import ConfMDP

WORLDS: dict[str, str] = {
    "gridworld": "policyspace.worlds.gridworld:Gridworld",
    "continuous-gridworld": "policyspace.worlds.continuous_gridworld:ContinuousGridworld",
    "minigolf": "policyspace.worlds.minigolf:Minigolf",
    "car": "policyspace.worlds.car:Car",
    "cartpole": "policyspace.worlds.cartpole:CartPole",
}
"""Where each world's class lives, written as `module:class`."""


def world_class(name: str) -> "type[ConfMDP]":
    """The class of a world by its name."""
    if name not in WORLDS:
        raise InputError(f"there is no world '{name}': {nearest(name, WORLDS)}")
    module, _, attribute = WORLDS[name].partition(":")
    found: type[ConfMDP] = getattr(import_module(module), attribute)
    return found


def make_world(name: str, **settings: Any) -> "ConfMDP":
    """A world by its name; settings are the arguments of its class."""
    kind = world_class(name)
    valid = list(getattr(kind, "__dataclass_fields__", {}))
    for setting in settings:
        if setting not in valid:
            raise InputError(f"the world '{name}' has no setting '{setting}': {nearest(setting, valid)}")
    return kind(**settings)


register_worlds()
