"""What `--controls` stands for: the features that a simulated agent perceives and controls."""

from typing import TYPE_CHECKING, Any

from policyspace.cli.typed_values import split
from policyspace.errors import InputError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyspace.policies import PolicySpace
    from policyspace.worlds.confmdp import ConfMDP


def owned_in_words(space: "PolicySpace", controls: "Iterable[str]") -> str:
    """What an agent controls; some spaces have parts that every agent controls."""
    constant = any(group.always for group in space.groups)
    return ", ".join(controls) or ("nothing but the constant" if constant else "nothing")


def controls_of(world: "ConfMDP", given: str, key: Any) -> tuple[str, ...]:
    """The features by name, in the world's order; a random choice of them is drawn from the key."""
    if given == "random":
        chosen = world.random_controls(key)
    elif given in ("all", "none"):
        chosen = frozenset(world.feature_names if given == "all" else ())
    else:
        chosen = frozenset(split([given]))
    for name in sorted(chosen):
        if name not in world.feature_names:
            raise InputError(f"there is no feature '{name}' to control: {nearest(name, world.feature_names)}")
    return tuple(name for name in world.feature_names if name in chosen)
