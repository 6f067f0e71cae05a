"""policyspace: what does this agent perceive and control?

demonstrations ─► policy space ─► likelihood ─► GLR test ─► identification ─► report
                                                                 │
                    new configuration ◄── design C_I(ω/ω₀) ◄─────┘   (only where the world is configurable)

The names below stand in the order of the data. Importing the package loads nothing heavy: a name is loaded when used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from policyspace.gymnasium_ids import announce

__version__ = "0.1.0"

if TYPE_CHECKING:
    from policyspace.answer import GroupTest, Identification
    from policyspace.demonstrations import Demonstrations
    from policyspace.errors import InputError
    from policyspace.glr import Test, likelihood_ratio
    from policyspace.identification import combinatorial, identify, simplified
    from policyspace.likelihood import Fit, fit, likelihood_of
    from policyspace.policies import BoltzmannLinear, GaussianLinear, PolicySpace
    from policyspace.readers import read, write
    from policyspace.study import Study

_HOME = {
    "Demonstrations": "demonstrations",
    "read": "readers",
    "write": "readers",
    "PolicySpace": "policies",
    "GaussianLinear": "policies",
    "BoltzmannLinear": "policies",
    "Fit": "likelihood",
    "fit": "likelihood",
    "likelihood_of": "likelihood",
    "Test": "glr",
    "likelihood_ratio": "glr",
    "simplified": "identification",
    "combinatorial": "identification",
    "identify": "identification",
    "Identification": "answer",
    "GroupTest": "answer",
    "Study": "study",
    "InputError": "errors",
}

__all__ = [
    "BoltzmannLinear",
    "Demonstrations",
    "Fit",
    "GaussianLinear",
    "GroupTest",
    "Identification",
    "InputError",
    "PolicySpace",
    "Study",
    "Test",
    "combinatorial",
    "fit",
    "identify",
    "likelihood_of",
    "likelihood_ratio",
    "read",
    "simplified",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'policyspace' has no attribute '{name}'")
    value = getattr(import_module(f"policyspace.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])


announce()
