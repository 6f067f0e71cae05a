"""Configuration: choosing the world in which hidden parameters would show (Section 5 and Appendix B)."""

from policyspace.configuration.designs import DESIGNS, DOptimal, NonCentrality, PaperObjective, Proposal, Uniform
from policyspace.configuration.rounds import Round, configure

__all__ = ["DESIGNS", "DOptimal", "NonCentrality", "PaperObjective", "Proposal", "Round", "Uniform", "configure"]
