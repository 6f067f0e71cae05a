"""A configured identification as an animation: configuration, identification, configuration, …"""

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from policyspace.configuration.round import Round
from policyspace.data.whole_file import replacing
from policyspace.errors import InputError
from policyspace.report.configuration_words import configuration_in_words
from policyspace.report.omega_rounds import draw_omega
from policyspace.report.rounds_picture import Story, most_telling
from policyspace.report.style import AGENT, FAINT, GOAL, GREEN, INK, QUIET, with_names_as_names

CONFIGURED, IDENTIFIED, END = 1100, 1500, 4000
"""How long frames stay, in milliseconds."""
MOST_ROUNDS = 24
"""A longer film is not watched to its end."""


def film_rounds(story: Story, path: str | Path) -> None:
    """Save the animation (GIF): two frames a round, or one where the world has no panels; whole, or not at all."""
    from PIL import Image

    if Path(path).suffix.lower() != ".gif":
        raise InputError(f"{path}: an animation is saved as .gif: rename it.")
    frames, durations = [], []
    for record in most_telling(story.rounds, MOST_ROUNDS):
        for identified in (False, True) if story.panel else (True,):
            frames.append(Image.fromarray(_frame(story, record, identified)))
            durations.append(IDENTIFIED if identified else CONFIGURED)
    durations[-1] = END
    # One palette for the whole film, so that colours do not flicker; dithered, so that clouds have no bands.
    several = [frames[i] for i in sorted({0, 1 % len(frames), len(frames) // 2, len(frames) - 1})]
    palette = Image.fromarray(np.concatenate([np.asarray(frame) for frame in several])).quantize(colors=255, kmeans=2)
    first, *rest = [frame.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG) for frame in frames]
    with replacing(path) as file:
        first.save(file, format="GIF", save_all=True, append_images=rest, duration=durations, loop=0)


def _frame(story: Story, record: Round, identified: bool) -> np.ndarray:
    """One image [height, width, 3] of bytes."""
    figure = _panel_frame(story, record, identified) if story.panel else _omega_frame(story, record)
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(100)
    canvas = FigureCanvasAgg(with_names_as_names(figure))
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def _omega_frame(story: Story, record: Round) -> Any:
    """The curve or the bars up to this round, in the frame of the whole."""
    seen = [r for r in story.rounds if r.number <= record.number]
    figure = draw_omega(
        story.parameters, seen, story.units, story.truth, f"{story.title}: round {len(seen)} of {len(story.rounds)}"
    )
    full = draw_omega(story.parameters, story.rounds, story.units, story.truth, "")
    figure.set_size_inches(*full.get_size_inches())
    for axes in figure.axes:
        axes.set_xlim(0.5, len(story.rounds) + 0.5)
    return figure


def _panel_frame(story: Story, record: Round, identified: bool) -> Any:
    """The panel on the left; on the right the round in words and how far the identification has come."""
    from matplotlib.figure import Figure

    assert story.panel is not None
    figure = Figure(figsize=(9.6, 5.4), facecolor="white")
    axes = figure.add_axes((0.02, 0.035, 0.525, 0.93))
    before, new = story.open_before(record), set(record.newly_selected)
    alone = set(record.asked_for) if len(record.asked_for) == 1 else set()
    if identified:
        story.panel(axes, record.configuration, before - new, new, set())
    else:
        story.panel(axes, record.configuration, before, set(), alone)
    _describe_round(figure, story, record, identified)
    _progress(figure, story, record, identified)
    return figure


def _describe_round(figure: Any, story: Story, record: Round, identified: bool) -> None:
    left, y = 0.585, 0.93
    figure.text(left, y, f"Round {record.number + 1}", fontsize=22, fontweight="bold", color=INK, va="top")
    figure.text(
        left, y - 0.095, "identification" if identified else "configuration", fontsize=14, color=QUIET, va="top"
    )
    said = configuration_in_words(story.world, record.configuration)
    lines = textwrap.wrap(said[0].upper() + said[1:] + ".", 46)
    figure.text(left, y - 0.185, "\n".join(lines), fontsize=11, color=INK, va="top", linespacing=1.4)
    if identified:
        new = ", ".join(record.newly_selected) or "nothing"
        shown = textwrap.wrap(f"{record.num_episodes} episodes show: {new}", 46, max_lines=5, placeholder=" …")
        figure.text(left, 0.5, "\n".join(shown), fontsize=11, color=GREEN if record.newly_selected else QUIET, va="top",
                    linespacing=1.4)  # fmt: skip
    if identified and record is story.rounds[-1]:
        end = textwrap.wrap(story.verdict + ".", 40)
        figure.text(left, 0.245, "\n".join(end), fontsize=13, fontweight="bold", color=INK, va="top")


def _progress(figure: Any, story: Story, record: Round, identified: bool) -> None:
    """Two bars that fill as features are shown: the agent's, blue, and the goal's, red."""
    axes = figure.add_axes((0.585, 0.045, 0.385, 0.065))
    shown = set(record.selected) if identified else set(record.selected) - set(record.newly_selected)
    for i, (colour, goal) in enumerate(((AGENT, False), (GOAL, True))):
        mine = [u for u in story.units if u.startswith("goal") == goal]
        for j, unit in enumerate(mine):
            x, width = j / len(mine), 0.82 / len(mine)
            axes.barh(-i, width, left=x, height=0.6, color=colour if unit in shown else FAINT, lw=0)
    axes.set(xlim=(0, 1), ylim=(-1.5, 0.5))
    axes.axis("off")
    figure.text(0.585, 0.125, f"{len(shown)} of {len(story.units)} shown to be controlled", fontsize=9.5, color=QUIET)
