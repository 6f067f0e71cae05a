"""How many episodes are needed? Power, sample size, detectable effects, and intervals for what was not found."""

from policyspace.inference.intervals import Interval, profile_intervals
from policyspace.planning.planner import Aim, pilot, plan, plan_likelihood
from policyspace.planning.plans import GroupPlan, Plan
from policyspace.planning.power import noncentrality_quantile, pairs_for_power, rate_for_power
from policyspace.planning.procedures import Prequential, Procedure, Universal, Wilks

__all__ = [
    "Aim",
    "GroupPlan",
    "Interval",
    "Plan",
    "Prequential",
    "Procedure",
    "Universal",
    "Wilks",
    "noncentrality_quantile",
    "pairs_for_power",
    "pilot",
    "plan",
    "plan_likelihood",
    "profile_intervals",
    "rate_for_power",
]
