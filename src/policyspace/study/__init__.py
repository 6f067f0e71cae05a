"""Studies in configurable worlds: `Study`, `configure` and the designs, loaded when used."""

from typing import TYPE_CHECKING

from policyspace.runtime import lazy_names, require_configure

if TYPE_CHECKING:
    from policyspace.study.designs import DESIGNS as DESIGNS
    from policyspace.study.designs import DesignProblem as DesignProblem
    from policyspace.study.designs import Information as Information
    from policyspace.study.designs import NoReconfiguration as NoReconfiguration
    from policyspace.study.designs import PaperObjective as PaperObjective
    from policyspace.study.designs import Proposal as Proposal
    from policyspace.study.designs import Uniform as Uniform
    from policyspace.study.loop import ConfiguredRun as ConfiguredRun
    from policyspace.study.loop import Loop as Loop
    from policyspace.study.loop import configure as configure
    from policyspace.study.records import Forecast as Forecast
    from policyspace.study.records import Round as Round
    from policyspace.study.records import RoundPlan as RoundPlan
    from policyspace.study.records import Status as Status
    from policyspace.study.study import Study as Study

require_configure()

_HOMES = {
    "deciding": (
        "DecisionDesign",
        "ReturnTable",
        "possible_supports",
    ),
    "designs": (
        "Box",
        "DESIGNS",
        "DesignProblem",
        "Information",
        "NoReconfiguration",
        "PaperObjective",
        "Proposal",
        "Simulated",
        "SpaceFilling",
        "Uniform",
        "bounded_adam",
        "default_design",
        "expected_information",
        "gain",
        "gradient_terms",
        "information_per_episode",
        "information_terms",
        "log_det_gain",
        "noncentrality_gain",
        "paper_objective",
        "weights_of",
    ),
    "evidence": (
        "History",
        "combined_p_value",
        "estimated_theta",
        "evidence_after",
        "evidence_rows",
        "log_evidence",
        "looked_at",
        "made_of_noise",
        "outcome_of_batch",
        "outcome_with_rounds_before",
        "union_of_supports",
        "without_unplayed_actions",
    ),
    "figures": (
        "draw_evidence_over_rounds",
        "evidence_of_rounds",
    ),
    "forecast": (
        "in_words",
        "needed_episodes",
        "plan_rounds",
        "sizes_of",
    ),
    "page": (
        "ExampleRun",
        "draw_rounds",
        "film_rounds",
    ),
    "records": (
        "Forecast",
        "Round",
        "RoundPlan",
        "Schedule",
        "Status",
        "same_configuration",
    ),
    "store": ("SQLiteStore",),
    "study": (
        "Study",
        "design_for",
        "load_world",
    ),
    "batches": (
        "batch_of",
        "to_trajectories",
    ),
    "loop": (
        "ConfiguredRun",
        "Loop",
        "configure",
    ),
}

__all__, __getattr__ = lazy_names(__name__, _HOMES)
