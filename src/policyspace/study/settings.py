"""What a study names: its world, its units and its design, found or refused with a sentence."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from policyspace.configuration.schedule import Schedule
from policyspace.configuration.stored import (
    check_entries,
    is_count,
    is_list_of,
    is_names,
    is_number,
    is_setting,
    is_table_of,
    is_text,
    or_nothing,
)
from policyspace.data.limits import check_seed
from policyspace.errors import InputError, nearest, reason_of

if TYPE_CHECKING:
    from policyspace.configuration.designs import Design
    from policyspace.environments.gymnasium_world import GymnasiumWorld
    from policyspace.policies import PolicySpace
    from policyspace.worlds.configurable import Configurable
    from policyspace.worlds.confmdp import ConfMDP

PENALTIES = {"continuous-gridworld": 1e-6, "minigolf": 0.25}
"""The paper's ζ, where it is not that of the grid world."""

SETTINGS = {
    "world": or_nothing(is_text),
    "world_name": is_text,
    "groups": lambda groups: is_text(groups) or is_table_of(is_names)(groups),
    "always": is_names,
    "design": is_text,
    "initial": is_table_of(is_setting),
    "seed": lambda seed: type(seed) is int,
}
"""What a study was created with, beside its schedule."""


def load_world(spec: str) -> "ConfMDP":
    """One of our worlds by name, or `module:Class` (or a ready-made `module:world`), found from the working folder too."""
    from policyspace.worlds import WORLDS, make_world

    if ":" not in spec:
        if spec not in WORLDS:
            raise InputError(f"there is no world '{spec}', and it is no module:Class: {nearest(spec, WORLDS)}")
        return make_world(spec)
    from policyspace.environments.own_code import imported
    from policyspace.worlds.confmdp import ConfMDP

    found = imported(spec, "the world")
    try:
        world = found() if isinstance(found, type) else found
    except Exception as error:  # whatever a user's class does
        raise InputError(f"the world '{spec}' cannot be made ({reason_of(error)}): correct it.") from error
    if not isinstance(world, ConfMDP):
        raise InputError(
            f"the world '{spec}' must be a policyspace.worlds.confmdp.ConfMDP, found a {type(world).__name__}."
        )
    return world


def world_of(world: Any, env: Any = None, parameters: Mapping[str, Sequence[float]] | None = None) -> "Configurable":
    """The world that is meant: by name, a world itself, or an environment with its parameters; exactly one of these."""
    if (world is None) == (env is None):
        raise InputError(
            "say what the study is about: a world, or an environment (env) with its parameters; one of them."
        )
    if env is not None:
        from policyspace.environments.gymnasium_world import GymnasiumWorld

        return GymnasiumWorld.of(env, parameters or {})
    if parameters is not None:
        raise InputError("parameters belong to an environment (env), found a world, which has its own: leave them out.")
    if isinstance(world, str):
        return load_world(world)
    return playable(world)


def playable(world: Any) -> "GymnasiumWorld":
    """A world that is a Gymnasium environment; the others are known by name, so that a file can say which they are."""
    from policyspace.environments.gymnasium_world import GymnasiumWorld

    if isinstance(world, GymnasiumWorld):
        return world
    found = getattr(world, "name", type(world).__name__)
    raise InputError(
        f"expected a Gymnasium environment, found '{found}': name our worlds, and simulate agents in them."
    )


def settings_of_environment(world: "Configurable") -> dict[str, Any] | None:
    """What a study's file says about an environment; None of our worlds, which have names."""
    from policyspace.environments.gymnasium_world import GymnasiumWorld

    return world.facts.to_dict() if isinstance(world, GymnasiumWorld) else None


def check_settings(settings: Mapping[str, Any]) -> None:
    """What a file says that a study was created with, entry by entry."""
    check_entries(settings, SETTINGS, "the settings")
    check_seed(settings["seed"])
    Schedule.from_settings(settings)
    if settings.get("environment") is not None:
        check_environment(settings["environment"])
    elif settings["world"] is None:
        raise InputError("the settings must name a world or an environment, found neither: the file is damaged.")


def check_own_world(settings: Mapping[str, Any], named: str | None) -> None:
    """A world that is named when a study is opened must be the one that the study is about."""
    about = settings["world"]
    if named is None or named == about:
        return
    if about is None:
        where = f"is about the environment '{settings['world_name']}', found the world '{named}' named"
        raise InputError(f"{where}: leave the world (--world, world=) out.")
    raise InputError(f"is about the world '{about}', found '{named}' named instead: name that, or no world.")


def check_environment(stored: Any) -> None:
    """What a file says about an environment, entry by entry."""
    bounds = or_nothing(lambda value: is_list_of(is_number)(value) and len(value) == 2)
    facts = {"name": is_text, "ways": is_table_of(is_text), "feature_names": is_names, "action_names": is_names}
    check_entries(stored, facts | {"action_bounds": bounds, "parameters": is_list_of(_is_parameter)}, "the environment")
    if not is_list_of(is_text)(stored.get("own_names", [])):
        raise InputError("the environment's own names must be texts, found others: the file is damaged.")
    if stored.keys() - facts.keys() - {"action_bounds", "parameters", "own_names"}:
        raise InputError("the environment has entries that are not known: the file is damaged.")


def _is_parameter(value: Any) -> bool:
    checks = {
        "name": is_text, "shape": is_list_of(is_count), "low": is_number, "high": is_number, "default": is_setting,
        "description": is_text,
    }  # fmt: skip
    return isinstance(value, dict) and value.keys() == checks.keys() and all(checks[k](v) for k, v in value.items())


def stored_environment(settings: Mapping[str, Any], env: Any = None) -> "GymnasiumWorld":
    """The environment that the settings of a study are about, with the function that makes it where that is given."""
    from policyspace.environments.gymnasium_world import Facts, GymnasiumWorld

    stored = settings.get("environment")
    if stored is None:
        raise InputError(f"the study is about the world '{settings.get('world_name')}', no environment: leave env out.")
    check_environment(stored)
    return GymnasiumWorld.from_facts(Facts.from_dict(stored), env)


def space_for(world: "Configurable", groups: Any, always: Iterable[str]) -> "PolicySpace":
    """The world's space with the units of the study; a space that knows no such options is asked for none."""
    options: dict[str, Any] = {} if groups == "feature" else {"groups": groups}
    space = world.policy_space(**options)
    known = [group.name for group in space.groups]
    for name in always:
        if name not in known:
            raise InputError(f"there is no unit '{name}' to declare known: {nearest(name, known)}")
    return space.with_always(always)


def not_in_question(world: "Configurable", features: Iterable[str] | None) -> list[str]:
    """The features that are not tested, given those that are."""
    if features is None:
        return []
    asked = list(features)
    known = [group.name for group in world.policy_space().groups if not group.always]
    for name in asked:
        if name not in known:
            raise InputError(f"there is no feature '{name}' in '{world.name}': {nearest(name, known)}")
    return [name for name in known if name not in asked]


def default_design(world: "Configurable") -> str:
    """The design of a study that names none."""
    from policyspace.worlds.confmdp import ConfMDP

    return "d-optimal" if isinstance(world, ConfMDP) else "simulated"


def design_for(name: str, world: "Configurable") -> "Design":
    """A design by name, with the paper's penalty for the paper's worlds."""
    from policyspace.configuration import DESIGNS, PaperObjective
    from policyspace.configuration.simulated import ANYWHERE
    from policyspace.worlds.confmdp import ConfMDP

    known = {**DESIGNS, **ANYWHERE}
    if name not in known:
        raise InputError(f"there is no design '{name}': {nearest(name, known)}")
    if name not in ANYWHERE and not isinstance(world, ConfMDP):
        raise InputError(
            f"the design '{name}' weights trajectories by densities, which '{world.name}' does not have: use "
            f"{', '.join(ANYWHERE)}."
        )
    if name == "paper":
        return PaperObjective(penalty=PENALTIES.get(world.name, 0.125))
    made: Design = known[name]()
    return made
