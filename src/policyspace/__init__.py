"""policyspace: what does this agent perceive and control?

demonstrations ─► policy space ─► likelihood ─► GLR test ─► identification ─► report
                                                                 │
                    new configuration ◄── design C_I(ω/ω₀) ◄─────┘   (only where the world is configurable)

The names below stand in the order of the data. Importing the package loads nothing heavy: a name is loaded when used.
"""

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from policyspace.answer import GroupResult as GroupResult
    from policyspace.answer import Identification as Identification
    from policyspace.asking.answer import AskedAnswer as AskedAnswer
    from policyspace.asking.comparison import Comparison as Comparison
    from policyspace.asking.comparison import compare as compare
    from policyspace.asking.readings import RandomisedReadings as RandomisedReadings
    from policyspace.asking.ways import ask as ask
    from policyspace.cloning import Clone as Clone
    from policyspace.cloning import clone as clone
    from policyspace.cloning import load_clone as load_clone
    from policyspace.data.columns import LongFormat as LongFormat
    from policyspace.data.examples import load_demo as load_demo
    from policyspace.data.files import read as read
    from policyspace.data.files import write as write
    from policyspace.data.sample import Sample as Sample
    from policyspace.environments.gymnasium_world import GymnasiumWorld as GymnasiumWorld
    from policyspace.environments.watching import watch as watch
    from policyspace.errors import InputError as InputError
    from policyspace.families.base import PolicySpace as PolicySpace
    from policyspace.families.choice import ChoiceLinear as ChoiceLinear
    from policyspace.families.custom import CustomPolicy as CustomPolicy
    from policyspace.families.gaussian import GaussianLinear as GaussianLinear
    from policyspace.families.likelihood import Fit as Fit
    from policyspace.families.negative_binomial import NegativeBinomialLinear as NegativeBinomialLinear
    from policyspace.families.network import GaussianNetwork as GaussianNetwork
    from policyspace.families.network import SoftmaxNetwork as SoftmaxNetwork
    from policyspace.families.ordered import OrderedLinear as OrderedLinear
    from policyspace.families.poisson import PoissonLinear as PoissonLinear
    from policyspace.families.registry import PolicySpec as PolicySpec
    from policyspace.families.registry import fit as fit
    from policyspace.families.registry import likelihood_of as likelihood_of
    from policyspace.families.softmax import SoftmaxLinear as SoftmaxLinear
    from policyspace.identification import combinatorial as combinatorial
    from policyspace.identification import identify as identify
    from policyspace.identification import identify_by as identify_by
    from policyspace.identification import simplified as simplified
    from policyspace.inference.base import TestResult as TestResult
    from policyspace.inference.base import likelihood_ratio as likelihood_ratio
    from policyspace.inference.coefficients import profile_intervals as profile_intervals
    from policyspace.inference.saved_answers import read_answer as read_answer
    from policyspace.planning import plan as plan
    from policyspace.recommending import Recommendation as Recommendation
    from policyspace.recommending import recommend as recommend
    from policyspace.rewards import RecoveredReward as RecoveredReward
    from policyspace.rewards import reward as reward
    from policyspace.study.loop import configure as configure
    from policyspace.study.study import Study as Study
    from policyspace.worlds import make_world as make_world
    from policyspace.worlds.agents import learn as learn
    from policyspace.worlds.base import Trajectories as Trajectories
    from policyspace.worlds.confmdp import ConfMDP as ConfMDP
    from policyspace.worlds.confmdp import rollout as rollout

_HOME = {
    "Sample": "data.sample",
    "LongFormat": "data.columns",
    "read": "data.files",
    "load_demo": "data.examples",
    "write": "data.files",
    "PolicySpace": "families.base",
    "PolicySpec": "families.registry",
    "GaussianLinear": "families.gaussian",
    "SoftmaxLinear": "families.softmax",
    "NegativeBinomialLinear": "families.negative_binomial",
    "OrderedLinear": "families.ordered",
    "PoissonLinear": "families.poisson",
    "ChoiceLinear": "families.choice",
    "GaussianNetwork": "families.network",
    "SoftmaxNetwork": "families.network",
    "CustomPolicy": "families.custom",
    "Fit": "families.likelihood",
    "fit": "families.registry",
    "likelihood_of": "families.registry",
    "TestResult": "inference.base",
    "likelihood_ratio": "inference.base",
    "simplified": "identification",
    "combinatorial": "identification",
    "identify": "identification",
    "identify_by": "identification",
    "Identification": "answer",
    "read_answer": "inference.saved_answers",
    "GroupResult": "answer",
    "plan": "planning",
    "clone": "cloning",
    "load_clone": "cloning",
    "Clone": "cloning",
    "recommend": "recommending",
    "Recommendation": "recommending",
    "reward": "rewards",
    "RecoveredReward": "rewards",
    "profile_intervals": "inference.coefficients",
    "ConfMDP": "worlds.confmdp",
    "GymnasiumWorld": "environments.gymnasium_world",
    "Trajectories": "worlds.base",
    "rollout": "worlds.confmdp",
    "make_world": "worlds",
    "learn": "worlds.agents",
    "watch": "environments.watching",
    "ask": "asking.ways",
    "AskedAnswer": "asking.answer",
    "RandomisedReadings": "asking.readings",
    "compare": "asking.comparison",
    "Comparison": "asking.comparison",
    "configure": "study.loop",
    "Study": "study.study",
    "InputError": "errors",
}

_OLD = {
    "Demonstrations": "Sample",
    "LongTable": "LongFormat",
    "BoltzmannLinear": "SoftmaxLinear",
    "BoltzmannNetwork": "SoftmaxNetwork",
    "Test": "TestResult",
}
"""Names of earlier versions: they still work, with a warning, until the next release."""

_MODULES = ("asking", "families", "planning", "study", "sklearn", "theory", "worlds")

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"policyspace.{name}")
    if name in _OLD:
        warnings.warn(f"policyspace.{name} is now policyspace.{_OLD[name]}.", DeprecationWarning, stacklevel=2)
        return __getattr__(_OLD[name])
    if name not in _HOME:
        raise AttributeError(f"module 'policyspace' has no attribute '{name}'")
    value = getattr(import_module(f"policyspace.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_MODULES])


if "gymnasium" in sys.modules and find_spec("jax"):  # the ids of our worlds are for those who have what they need
    import_module("policyspace.worlds")
