"""Tests of a support, selection rules, model checks, and the step from verdicts to an answer."""

from policyspace.runtime import lazy_names

_HOMES = {
    "base": (
        "CORRECTIONS",
        "SupportTest",
        "TestOptions",
        "holm",
    ),
    "betting": (
        "DrawBets",
        "DrawnRows",
        "OnlinePredictor",
        "closed_e_values",
        "e_benjamini_hochberg",
        "log_e_values",
        "randomisation_p_value",
    ),
    "coefficients": (
        "Profile",
        "coefficients_of",
    ),
    "diagnostics": (
        "ModelCheck",
        "check_model",
    ),
    "e_values": (
        "EProcess",
        "Episode",
        "MixtureTest",
        "PredictiveEProcess",
        "SequentialMonitor",
        "UniversalTest",
        "episodes_of",
        "pooled_episodes",
    ),
    "lean.lean_test": ("ScoreTest",),
    "mixed": ("RandomEffects",),
    "parametric": (
        "Bootstrap",
        "RobustWald",
        "WilksTest",
    ),
    "randomised": (
        "RandomisedTest",
        "assigned_rows",
        "columns_of",
        "randomisation_p_values",
        "rows_with_draws",
        "starts_of",
    ),
    "selection": (
        "Lattice",
        "minimal",
        "search_supports",
        "each_group_alone",
        "without_sufficient_child",
    ),
    "test_choice": (
        "TESTS",
        "TestChoice",
        "choose",
        "support_test",
    ),
}

__all__, __getattr__ = lazy_names(__name__, _HOMES)
