"""Configuration: choosing the world in which hidden parameters would show (Section 5 and Appendix B).

A name is loaded when it is used: where a study stands can be read without a simulator.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policyspace.configuration.designs import (
        DESIGNS,
        Information,
        PaperObjective,
        Proposal,
        Question,
        Stay,
        Uniform,
    )
    from policyspace.configuration.loop import ConfiguredRun, Loop, configure
    from policyspace.configuration.round import Round

__all__ = [
    "DESIGNS", "ConfiguredRun", "Information", "Loop", "PaperObjective", "Proposal", "Question", "Round", "Stay", "Uniform",
    "configure",
]  # fmt: skip

_HOME = {"Round": "round", "Loop": "loop", "ConfiguredRun": "loop", "configure": "loop"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'policyspace.configuration' has no attribute '{name}'")
    return getattr(import_module(f"policyspace.configuration.{_HOME.get(name, 'designs')}"), name)
