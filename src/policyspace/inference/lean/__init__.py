"""The assumption-lean test: residuals of the action and of an input, given the other inputs, are compared."""

from policyspace.runtime import lazy_names

_HOMES = {
    "clusters": (
        "InMemory",
        "ListedClusters",
        "RowBlocks",
        "WholeClusters",
        "autocorrelations",
        "candidate_block_lengths",
        "check_serial_correlation",
        "choose_clustering",
        "fewest_clusters",
    ),
    "lean_test": (
        "GaussianMixtureEValue",
        "LeanTest",
        "ScoreTest",
        "log_evidence",
        "sign_flip_p_value",
    ),
    "regression": (
        "folds",
        "held_out_error",
        "largest_basis",
        "min_rows",
        "past_determines",
    ),
    "rows": (
        "Basis",
        "Bumps",
        "InputTransform",
        "LeanRows",
        "Linear",
        "Products",
        "Waves",
        "checked_rows",
        "sample_of_episodes",
    ),
    "scores": (
        "Projector",
        "Scorer",
        "StepFeatures",
        "moments",
    ),
}

__all__, __getattr__ = lazy_names(__name__, _HOMES)
