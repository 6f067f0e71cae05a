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
    from policyspace.answer import GroupTest as GroupTest
    from policyspace.answer import Identification as Identification
    from policyspace.by_subject import identify_by as identify_by
    from policyspace.configuration import configure as configure
    from policyspace.data.alternatives import LongTable as LongTable
    from policyspace.data.demonstrations import Demonstrations as Demonstrations
    from policyspace.data.readers import read as read
    from policyspace.data.readers import write as write
    from policyspace.environments.gymnasium_world import GymnasiumWorld as GymnasiumWorld
    from policyspace.environments.watching import watch as watch
    from policyspace.errors import InputError as InputError
    from policyspace.fits import Fit as Fit
    from policyspace.fits import fit as fit
    from policyspace.fits import likelihood_of as likelihood_of
    from policyspace.identification import combinatorial as combinatorial
    from policyspace.identification import identify as identify
    from policyspace.identification import simplified as simplified
    from policyspace.inference.glr import Test as Test
    from policyspace.inference.glr import likelihood_ratio as likelihood_ratio
    from policyspace.planning import plan as plan
    from policyspace.planning import profile_intervals as profile_intervals
    from policyspace.policies import BoltzmannLinear as BoltzmannLinear
    from policyspace.policies import GaussianLinear as GaussianLinear
    from policyspace.policies import PolicySpace as PolicySpace
    from policyspace.policies.choice_linear import ChoiceLinear as ChoiceLinear
    from policyspace.policies.custom import CustomPolicy as CustomPolicy
    from policyspace.policies.network import BoltzmannNetwork as BoltzmannNetwork
    from policyspace.policies.network import GaussianNetwork as GaussianNetwork
    from policyspace.policies.spec import PolicySpec as PolicySpec
    from policyspace.study import Study as Study
    from policyspace.worlds import make_world as make_world
    from policyspace.worlds.agents import learn as learn
    from policyspace.worlds.confmdp import ConfMDP as ConfMDP
    from policyspace.worlds.confmdp import rollout as rollout
    from policyspace.worlds.trajectories import Trajectories as Trajectories

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
    "GymnasiumWorld": "environments.gymnasium_world",
    "Trajectories": "worlds.trajectories",
    "rollout": "worlds.confmdp",
    "make_world": "worlds",
    "learn": "worlds.agents",
    "watch": "environments.watching",
    "configure": "configuration",
    "Study": "study",
    "InputError": "errors",
}

_MODULES = ("configuration", "planning", "policies", "sklearn", "theory", "worlds")

__all__ = [*_HOME]


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
