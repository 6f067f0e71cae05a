"""The experiments by the names that the command line and the records know them by."""

from importlib import import_module
from types import ModuleType

EXPERIMENTS = {
    "gridworld": "configuring_gridworld",
    "gridworld-weights": "gridworld_weights",
    "gridworld-rule-1": "configuring_rule_1",
    "continuous-gridworld": "configuring_continuous_gridworld",
    "minigolf-curve": "minigolf_curve",
    "minigolf-training": "minigolf_training",
    "minigolf-strategies": "minigolf_strategies",
    "minigolf-features": "minigolf_features",
    "car": "car_sensors",
    "imitation": "imitation",
    "agents": "agents_learned",
    "surrogate": "surrogate",
    "calibration": "calibration",
    "theory": "theory_bounds",
}
"""Name → module of this package, in the order of the paper; `scale` says what such a module holds."""


def experiment_module(name: str) -> ModuleType:
    """The module that says what an experiment is."""
    return import_module(f"policyspace.experiments.{EXPERIMENTS[name]}")
