"""Configuration: choosing the world in which hidden parameters would show (Section 5 and Appendix B)."""

from policyspace.configuration.designs import DESIGNS, Information, PaperObjective, Proposal, Question, Stay, Uniform
from policyspace.configuration.rounds import Round, configure

__all__ = ["DESIGNS", "Information", "PaperObjective", "Proposal", "Question", "Round", "Stay", "Uniform", "configure"]
