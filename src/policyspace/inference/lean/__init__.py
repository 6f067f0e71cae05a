"""The assumption-lean test: does the agent use an input, whatever its policy looks like?"""

from policyspace.inference.lean.lean_test import LeanResult, LeanTest

__all__ = ["LeanResult", "LeanTest"]
