"""The registry of worlds, and their Gymnasium ids."""

from typing import TYPE_CHECKING, Any

from policyspace.data.validation import explain_arguments
from policyspace.errors import InputError, nearest
from policyspace.runtime import known_world, lazy_names, object_at, require_configure

if TYPE_CHECKING:
    from policyspace.worlds.confmdp import ConfMDP


# -- The paper's worlds under their Gymnasium ids, registered when `policyspace.worlds` is imported, as Gymnasium asks.

IDS = {
    "policyspace/Gridworld-v0": "gridworld",
    "policyspace/ContinuousGridworld-v0": "continuous-gridworld",
    "policyspace/Minigolf-v0": "minigolf",
    "policyspace/Car-v0": "car",
}
"""The world behind each id."""


def register_worlds() -> None:
    """Tell Gymnasium the ids."""
    from gymnasium.envs.registration import register

    for name, world in IDS.items():
        register(name, entry_point="policyspace.worlds.gymnasium_env:WorldEnv", kwargs={"world": world})


# -- The worlds by the names that the command line knows; a world's module, and JAX, are imported when it is made.


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
    known_world(name)
    found: type[ConfMDP] = object_at(WORLDS[name])
    return found


@explain_arguments
def make_world(name: str, **settings: Any) -> "ConfMDP":
    """A world by its name.

    Parameters
    ----------
    name : str
        One of `policyspace.worlds.WORLDS`.
    **settings
        The arguments of its class.

    Returns
    -------
    ConfMDP
        The world.

    Raises
    ------
    InputError
        If there is no such world, or it has no such setting.

    Examples
    --------
    >>> import policyspace
    >>> policyspace.make_world("minigolf").feature_names
    ('x', 'f', 'sqrt_x', 'sqrt_f', 'sqrt_xf')
    """
    kind = world_class(name)
    valid = list(getattr(kind, "__dataclass_fields__", {}))
    for setting in settings:
        if setting not in valid:
            raise InputError(f"the world '{name}' has no setting '{setting}': {nearest(setting, valid)}")
    return kind(**settings)


require_configure()
register_worlds()

_HOMES = {
    "agents": (
        "Returns",
        "cumulative_scores",
        "load_agent",
        "plateau",
        "policy_gradient",
        "returns_of",
        "save_agent",
        "stop_at_return",
        "support_of",
    ),
    "base": (
        "CannotBePlayed",
        "ConfigurationParameter",
        "checked_configuration",
        "parse_configuration",
    ),
    "car": ("Car",),
    "cartpole": ("CartPole",),
    "confmdp": (
        "effective_sample_size",
        "largest_weight",
        "log_weights",
        "renyi2",
    ),
    "continuous_gridworld": ("ContinuousGridworld",),
    "gridworld": (
        "Gridworld",
        "expected_return",
        "start_probabilities",
        "visitation",
    ),
    "gymnasium_env": ("WorldEnv",),
    "minigolf": (
        "AGENT_A2",
        "HOLED_ENERGY",
        "Minigolf",
        "deceleration",
    ),
}

_, __getattr__ = lazy_names(__name__, _HOMES)
