"""Policy families: the space of policies, its likelihood and fits, and the numerics they share."""

from policyspace.runtime import lazy_names

_HOMES = {
    "base": (
        "Group",
        "INTERCEPT",
    ),
    "covariance": (
        "clustered_covariance",
        "cr2",
        "dependences",
        "detectable_effect",
        "inverse_information",
        "inverse_of",
        "noncentrality_for_power",
        "smallest_eigenvalue",
    ),
    "design": ("DesignMatrix",),
    "likelihood": (
        "ChiSquare",
        "Likelihood",
        "WilksLambda",
        "WorstCaseThreshold",
    ),
    "model_free": ("ModelFree",),
    "network": ("NETWORK",),
    "network_likelihood": ("NetworkLikelihood",),
    "registry": (
        "POLICIES",
        "likelihood_of_rows",
    ),
    "softmax_sums": ("unique_rows",),
}

__all__, __getattr__ = lazy_names(__name__, _HOMES)
