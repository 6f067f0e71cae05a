"""Ask an agent which of its inputs it reacts to: inside, by pairs of questions, or while it plays."""

from policyspace.runtime import lazy_names, require_configure

require_configure()

_HOMES = {
    "agents": (
        "AskedAgent",
        "as_agent",
        "joined",
        "rows_of",
    ),
    "answer": (
        "AskOptions",
        "AskedAnswer",
        "AskedGroup",
        "Cost",
        "Effect",
        "Witness",
        "guarantee_of",
        "verdict_of",
    ),
    "comparison": (
        "Audit",
        "Comparison",
        "TwoAgents",
        "audit",
        "compare",
    ),
    "inputs": ("KNOWN_NAMES", "Inputs"),
    "law": ("Law",),
    "page": ("plot_effects",),
    "paired": (
        "Asker",
        "PairBets",
        "log_pair_e_values",
    ),
    "readings": (
        "OfferedReadings",
        "RandomisedReadings",
    ),
    "states": (
        "Counted",
        "OneAgent",
        "States",
    ),
    "training": ("EvidenceCallback",),
    "ways": (
        "AskForecast",
        "ask",
        "forecast",
    ),
}

__all__, __getattr__ = lazy_names(__name__, _HOMES)
