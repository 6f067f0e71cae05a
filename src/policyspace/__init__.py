"""policyspace: what does this agent perceive and control?

demonstrations ─► policy space ─► likelihood ─► GLR test ─► identification ─► report
                                                                 │
                    new configuration ◄── design C_I(ω/ω₀) ◄─────┘   (only where the world is configurable)

The names below stand in the order of the data. Importing the package loads nothing heavy: a name is loaded when used.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from policyspace.answer import GroupTest, Identification
    from policyspace.by_subject import identify_by
    from policyspace.configuration import configure
    from policyspace.data.alternatives import LongTable
    from policyspace.data.demonstrations import Demonstrations
    from policyspace.data.readers import read, write
    from policyspace.errors import InputError
    from policyspace.fits import Fit, fit, likelihood_of
    from policyspace.identification import combinatorial, identify, simplified
    from policyspace.inference.glr import Test, likelihood_ratio
    from policyspace.planning import plan, profile_intervals
    from policyspace.policies import BoltzmannLinear, GaussianLinear, PolicySpace
    from policyspace.policies.choice_linear import ChoiceLinear
    from policyspace.policies.custom import CustomPolicy
    from policyspace.policies.network import BoltzmannNetwork, GaussianNetwork
    from policyspace.policies.spec import PolicySpec
    from policyspace.study import Study
    from policyspace.worlds import make_world
    from policyspace.worlds.agents import learn
    from policyspace.worlds.confmdp import ConfMDP, rollout
    from policyspace.worlds.gymnasium_world import GymnasiumWorld
    from policyspace.worlds.trajectories import Trajectories
    from policyspace.worlds.watching import watch

_HOME = {
    "Demonstrations": "data.demonstrations",
    "LongTable": "data.alternatives",
    "read": "data.readers",
    "write": "data.readers",
    "PolicySpace": "policies",
    "PolicySpec": "policies.spec",
    "GaussianLinear": "policies",
    "BoltzmannLinear": "policies",
    "ChoiceLinear": "policies.choice_linear",
    "GaussianNetwork": "policies.network",
    "BoltzmannNetwork": "policies.network",
    "CustomPolicy": "policies.custom",
    "Fit": "fits",
    "fit": "fits",
    "likelihood_of": "fits",
    "Test": "inference.glr",
    "likelihood_ratio": "inference.glr",
    "simplified": "identification",
    "combinatorial": "identification",
    "identify": "identification",
    "identify_by": "by_subject",
    "Identification": "answer",
    "GroupTest": "answer",
    "plan": "planning",
    "profile_intervals": "planning",
    "ConfMDP": "worlds.confmdp",
    "GymnasiumWorld": "worlds.gymnasium_world",
    "Trajectories": "worlds.trajectories",
    "rollout": "worlds.confmdp",
    "make_world": "worlds",
    "learn": "worlds.agents",
    "watch": "worlds.watching",
    "configure": "configuration",
    "Study": "study",
    "InputError": "errors",
}

_MODULES = ("configuration", "planning", "policies", "sklearn", "theory", "worlds")

__all__ = [
    "BoltzmannLinear",
    "BoltzmannNetwork",
    "ChoiceLinear",
    "ConfMDP",
    "CustomPolicy",
    "Demonstrations",
    "Fit",
    "GaussianLinear",
    "GaussianNetwork",
    "GroupTest",
    "GymnasiumWorld",
    "Identification",
    "InputError",
    "LongTable",
    "PolicySpace",
    "PolicySpec",
    "Study",
    "Test",
    "Trajectories",
    "combinatorial",
    "configure",
    "fit",
    "identify",
    "identify_by",
    "learn",
    "likelihood_of",
    "likelihood_ratio",
    "make_world",
    "plan",
    "profile_intervals",
    "read",
    "rollout",
    "simplified",
    "watch",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"policyspace.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'policyspace' has no attribute '{name}'")
    value = getattr(import_module(f"policyspace.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_MODULES])


if "gymnasium" in sys.modules:  # the ids of our worlds are for those who use it; nobody else waits for the import
    import_module("policyspace.worlds")
