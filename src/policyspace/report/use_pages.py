"""Figures and pages of clones and rewards."""

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from policyspace.cloning import Clone
from policyspace.display import Shown
from policyspace.errors import escaped, printable
from policyspace.report.figures import (
    GREEN,
    GREY,
    INK,
    bare,
    format_of,
    new_figure,
    save,
    shortened,
)
from policyspace.report.pages import banner, ending, figure_html, header, paragraph, section, settings_list, table
from policyspace.rewards import RecoveredReward

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes


def titled(axes: "Axes", answer: Shown) -> "Axes":
    """The axes with the sentence of an answer above them."""
    title = textwrap.wrap(printable(answer.sentence), 72, max_lines=4, placeholder=" …", break_on_hyphens=False)
    axes.set_title("\n".join(title), loc="left", fontsize=11, color=INK, fontweight="bold", parse_math=False)
    return axes


def given_or_new(axes: "Axes | None", height: float) -> "Axes":
    """The axes, or those of a new figure of pyplot, which notebooks show."""
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(8.2, height), layout="constrained")[1]


# -- Clones: the losses of all ways on held-out episodes.


def plot_losses(made: Clone, path: "str | Path") -> None:
    """Save the picture; the suffix of the file names the format."""
    format_of(path)
    figure = new_figure(_height(made) + 0.7, width=8.2)
    titled(figure.add_subplot(), made)
    _fill_losses(figure.axes[0], made)
    save(figure, path)


def loss_axes(made: Clone, axes: "Axes | None" = None) -> "Axes":
    """The same in given axes, or in those of a new figure."""
    axes = given_or_new(axes, _height(made) + 0.7)
    _fill_losses(axes, made)
    return titled(axes, made)


def _height(made: Clone) -> float:
    return 1.0 + 0.36 * max(len(made.losses), 2)


def _fill_losses(axes: "Axes", made: Clone) -> None:
    """One point a way: how much more it loses than the clone, with two standard errors; the worst may be cut off."""
    losses = made.losses[::-1]
    for place, one in enumerate(losses):
        colour = GREEN if one is made.losses[0] else GREY
        low, high = one.more - 2 * one.error, one.more + 2 * one.error
        axes.plot([low, high], [place, place], color=colour, linewidth=1.6, zorder=2)
        axes.plot([one.more], [place], "o", color=colour, markersize=6, zorder=3)
    near = [one for one in losses if one.name != "no features"]
    ends = [end for one in near for end in (one.more - 2 * one.error, one.more + 2 * one.error)] or [0.0]
    margin = 0.08 * (max(ends) - min(ends)) or 0.01
    axes.set_xlim(min(ends) - margin, max(ends) + margin)
    axes.axvline(0, color=INK, linewidth=1, zorder=1)
    axes.set_yticks(range(len(losses)), [shortened(one.name, 36) for one in losses], fontsize=9.5, color=INK)
    axes.set_ylim(-0.6, max(len(losses), 1) - 0.4)
    axes.set_xlabel("held-out loss beyond that of the clone (lines: two standard errors)", fontsize=9, color=INK)
    bare(axes, grid="x")


def clone_page(made: Clone) -> Iterator[str]:
    """The parts of the page."""
    lead = f"Cloned from {made.num_rows:,} rows" + (
        "" if made.num_episodes is None else f" of {made.num_episodes:,} episodes"
    )
    yield header(made.sentence, escaped(f"{lead}."), "clone")
    yield from banner(escaped(f"Warning: {warning}") for warning in made.warnings)
    if made.losses:
        figure = new_figure(_height(made), width=6.4)
        _fill_losses(figure.add_subplot(), made)
        words = "; ".join(f"{one.name}: {one.loss:.4f}" for one in made.losses)
        yield section(
            "Held-out loss",
            figure_html(figure, "losses", f"Held-out loss of every way. {words}."),
            table(made.table(), "Every way of cloning and its held-out loss"),
        )
    yield section("How it was made", *(paragraph(note) for note in made.notes() if not note.startswith("Warning:")))
    if made.path:
        tried = {f"{penalty:.3g}": f"{loss:.5f}" for penalty, loss in made.path}
        yield section("Penalties that were tried", settings_list(tried))
    weights = made.space.weights_by_row(made.policy.theta)
    settings = {"features": ", ".join(made.feature_names), "uses": ", ".join(made.support)}
    settings |= {
        f"weights of {name or 'all actions'}": ", ".join(f"{w:.4g}" for w in row) for name, row in weights.items()
    }
    yield from ending(settings, made.made_by, "The same data and settings give the same page.")


# -- Rewards: the weights with their intervals.


def plot_weights(found: RecoveredReward, path: "str | Path") -> None:
    """Save the picture; the suffix of the file names the format."""
    format_of(path)
    figure = new_figure(1.9 + 0.36 * len(found.features), width=8.2)
    weight_axes(found, figure.add_subplot())
    save(figure, path)


def weight_axes(found: RecoveredReward, axes: "Axes | None" = None) -> "Axes":
    """The same in given axes, or in those of a new figure."""
    axes = given_or_new(axes, 1.9 + 0.36 * len(found.features))
    _fill_weights(axes, found)
    return titled(axes, found)


def _fill_weights(axes: "Axes", found: RecoveredReward) -> None:
    """One point a reward feature; grey where the log does not tell its weight."""
    untold = {name for one in found.unresolved for name in one}
    features = found.features[::-1]
    for place, one in enumerate(features):
        colour = GREY if one.name in untold else GREEN
        axes.plot([one.low, one.high], [place, place], color=colour, linewidth=1.6, zorder=2)
        axes.plot([one.weight], [place], "o", color=colour, markersize=6, zorder=3)
    axes.axvline(0, color=INK, linewidth=1, zorder=1)
    axes.set_xlim(-1.03 if found.signed else -0.03, 1.03)
    axes.set_yticks(range(len(features)), [shortened(one.name, 36) for one in features], fontsize=9.5, color=INK)
    axes.set_ylim(-0.6, len(features) - 0.4)
    axes.set_xlabel(
        "weight in the reward (lines: 95 % intervals; grey: not determined by this log)", fontsize=9, color=INK
    )
    bare(axes, grid="x")


def reward_page(found: RecoveredReward) -> Iterator[str]:
    """The parts of the page."""
    yield header(found.sentence, escaped(f"Recovered from {found.num_episodes:,} episodes."), "reward")
    yield from banner(escaped(f"Warning: {warning}") for warning in found.warnings)
    figure = new_figure(1.2 + 0.36 * len(found.features), width=6.4)
    _fill_weights(figure.add_subplot(), found)
    words = "; ".join(f"{one.name}: {one.weight:.3f}, {one.low:.3f} to {one.high:.3f}" for one in found.features)
    yield section(
        "Weights",
        figure_html(figure, "weights", f"Weights with intervals. {words}."),
        table(found.table(), "Every reward feature, its weight and its gradient"),
    )
    yield section("How to read it", *(paragraph(note) for note in found.notes() if not note.startswith("Warning:")))
    settings = {
        "discount": f"{found.discount:g}",
        "coordinates": found.coordinates,
        "weights": "signed" if found.signed else "on the simplex",
        "configurations": str(found.num_configurations),
    }
    yield from ending(settings, found.made_by, "The same data and settings give the same page.")
