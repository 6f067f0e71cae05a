"""A configuration in words, for the person who sets up the world."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def configuration_in_words(world: str, configuration: Mapping[str, Any]) -> str:
    """One line: what the configuration of a world, given by its name, makes likely, or its numbers."""
    describe = {"gridworld": _gridworld, "continuous-gridworld": _continuous_gridworld}.get(world, _numbers)
    return describe(configuration)


def is_flat(world: str, configuration: Mapping[str, Any]) -> bool:
    """Whether this is the configuration that plays no favourites, in a world that has such a one."""
    return world == "gridworld" and all(np.ptp(logits) == 0 for logits in configuration.values())


def chances(logits: Any) -> np.ndarray:
    """The softmax of logits."""
    odds = np.exp(np.asarray(logits) - np.max(logits))
    return odds / odds.sum()


def _gridworld(configuration: Mapping[str, Any]) -> str:
    row, col, goal_row, goal_col = (chances(configuration[n]) for n in ("row", "col", "goal_row", "goal_col"))
    return (
        f"the agent starts in {_levels('row', row)} and {_levels('column', col)}; "
        f"the goal lies in {_levels('row', goal_row)} and {_levels('column', goal_col)}"
    )


def _levels(what: str, chance: np.ndarray) -> str:
    """The levels that are likelier than chance, likeliest first."""
    if np.ptp(chance) < 0.5 / len(chance):
        return f"any {what}"
    likely = [int(level) for level in np.argsort(-chance, kind="stable") if chance[level] > 1 / len(chance)]
    if len(likely) == 1:
        return f"{what} {likely[0]} ({chance[likely[0]]:.0%})"
    names = ", ".join(str(level) for level in likely[:-1]) + f" or {likely[-1]}"
    return f"{what} {names} ({chance[likely].sum():.0%})"


def _continuous_gridworld(configuration: Mapping[str, Any]) -> str:
    x, y, goal_x, goal_y = (_signed(configuration[n]) for n in ("x", "y", "goal_x", "goal_y"))
    return f"the agent starts around ({x}, {y}); the goal lies around ({goal_x}, {goal_y})"


def _signed(value: Any) -> str:
    return f"{float(value):.2f}".replace("-", "−")


def _numbers(configuration: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in configuration.items())


def _number(value: Any) -> str:
    array = np.asarray(value)
    return f"{float(array):.4g}" if array.ndim == 0 else "[" + ", ".join(_number(part) for part in array) + "]"
