"""Policy spaces: the sets of policies in which an agent is sought."""

from policyspace.policies.base import ExponentialFamily, PolicySpace
from policyspace.policies.boltzmann import BoltzmannLinear
from policyspace.policies.gaussian import GaussianLinear
from policyspace.policies.groups import INTERCEPT, Group, Groups, Support

__all__ = [
    "INTERCEPT",
    "BoltzmannLinear",
    "ExponentialFamily",
    "GaussianLinear",
    "Group",
    "Groups",
    "PolicySpace",
    "Support",
]
