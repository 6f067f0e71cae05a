"""Figures and HTML pages of answers and plans."""

from policyspace.runtime import lazy_names

_HOMES = {
    "figures": (
        "AGENT",
        "AMBER",
        "BLUE",
        "COLOURS",
        "DARK",
        "GOAL",
        "GREEN",
        "GREY",
        "INK",
        "PAPER",
        "QUIET",
        "RED",
        "TEXT",
        "draw_effects",
        "draw_curves",
        "draw_subjects",
        "new_figure",
        "new_plot",
        "plot_effects",
        "save",
        "spread_labels",
    ),
    "pages": (
        "inline_svg",
        "page_of",
    ),
}

__all__, __getattr__ = lazy_names(__name__, _HOMES)
