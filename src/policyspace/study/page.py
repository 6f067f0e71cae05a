"""The page and the animation of a study."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from policyspace.display import TextTable
from policyspace.errors import InputError, escaped, number_of
from policyspace.report import pages as page
from policyspace.report.figures import AGENT, FAINT, GOAL, GREEN, GREY, INK, QUIET, with_names_as_names
from policyspace.safe_io import replacing
from policyspace.study.figures import configuration_in_words, continuous_gridworld_panel, draw_omega, gridworld_panel
from policyspace.study.records import Round, Rounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from policyspace.worlds.base import Configurable, ConfigurationParameter


# -- The pictures of a configured identification: panels for the grid worlds, curves or bars of ω for the others.

PANELS: dict[str, Callable[..., None]] = {
    "gridworld": gridworld_panel,
    "continuous-gridworld": continuous_gridworld_panel,
}
WORDS = {"gridworld": "Discrete grid world", "continuous-gridworld": "Continuous grid world"}
"""What worlds are called in a title, where their name would not do."""
NOTE = 0.2
"""The height, in inches, of a line that says which rounds are shown."""
MOST_ROUNDS_SHOWN = 8
"""More panels cannot be read on a page."""


@final
@dataclass(frozen=True)
class ExampleRun:
    """What the pictures show: the rounds of one agent in one world, and the truth where it is known."""

    world: str
    parameters: tuple["ConfigurationParameter", ...]
    rounds: list[Round]
    units: tuple[str, ...]  # what is tested, in the order of the policy space
    truth: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.rounds:
            raise InputError("there is nothing to draw yet, found no rounds: report the first one.")

    @classmethod
    def of(
        cls, world: "Configurable", rounds: list[Round], units: tuple[str, ...], truth: Sequence[str] | None
    ) -> Self:
        """The story of some rounds in a world."""
        return cls(world.name, tuple(world.parameters), rounds, units, None if truth is None else tuple(truth))

    @property
    def title(self) -> str:
        """The world in words."""
        return WORDS.get(self.world, self.world)

    @property
    def panel(self) -> Callable[..., None] | None:
        """How a round is drawn in this world; a grid world whose units are not its features has no such picture."""
        plain = all(unit.rsplit("_", 1)[-1].isdigit() for unit in self.units)
        return PANELS.get(self.world) if plain else None

    def open_before(self, record: Round) -> set[str]:
        """The units that were open when a round began."""
        return {*record.undecided, *record.newly_selected}

    @property
    def verdict(self) -> str:
        """The end of the story in a few words."""
        last = self.rounds[-1]
        if self.truth is None:
            return f"{len(last.selected)} features shown to be controlled, {len(last.undecided)} undecided"
        owned = set(self.truth) & set(self.units)
        found, false = owned & set(last.selected), set(last.selected) - set(self.truth)
        return f"{len(found)} of {len(owned)} controlled features found, {len(false) or 'none'} falsely"


def draw_rounds(story: ExampleRun) -> "Figure":
    """Configuration → identification, round after round, or ω over the rounds where the world has no panels."""
    if story.panel is None:
        return draw_omega(story.parameters, story.rounds, story.units, story.truth, _title(story))
    from matplotlib.figure import Figure

    shown = most_telling(story.rounds)
    across = min(len(shown), 2)
    down = -(-len(shown) // 2)
    foot = 0.72 + (NOTE if len(shown) < len(story.rounds) or across == 1 else 0.0)
    figure = Figure(figsize=(0.5 + 5.4 * across, 2.86 * down + 0.4 + foot), facecolor="white")
    height = figure.get_figheight()
    grid = figure.add_gridspec(
        down, 2 * across, left=0.025, right=0.975, top=1 - 0.6 / height, bottom=foot / height, hspace=0.17, wspace=0.14
    )
    for i, record in enumerate(shown):
        row, first = divmod(i, 2)
        configured = figure.add_subplot(grid[row, 2 * first])
        identified = figure.add_subplot(grid[row, 2 * first + 1])
        before, new = story.open_before(record), set(record.newly_selected)
        alone = set(record.asked_for) if len(record.asked_for) == 1 else set()
        story.panel(configured, record.configuration, before, set(), alone)
        story.panel(identified, record.configuration, before - new, new, set())
        _caption(configured, f"{record.number + 1}  configuration", f"{record.num_episodes} episodes")
        _caption(identified, "identification", f"{len(new)} new, {len(record.undecided)} open")
        configured.annotate(
            "", xy=(1.125, 0.5), xytext=(1.015, 0.5), xycoords="axes fraction",
            arrowprops={"arrowstyle": "-|>", "color": GREY, "lw": 1.4, "mutation_scale": 13}, annotation_clip=False,
        )  # fmt: skip
    figure.text(
        0.025, 1 - 0.2 / height, _title(story), fontsize=7.5 + 3.25 * across, fontweight="bold", color=INK, va="top"
    )
    _legend(figure, story, len(shown))
    return figure


def most_telling(rounds: Sequence[Round], most: int = MOST_ROUNDS_SHOWN) -> list[Round]:
    """The rounds that a page, or a film, can hold: the first, those in which most was newly selected, the last."""
    if len(rounds) <= most:
        return list(rounds)
    inner = sorted(rounds[1:-1], key=lambda r: (-len(r.newly_selected), r.number))[: most - 2]
    return sorted([rounds[0], *inner, rounds[-1]], key=lambda r: r.number)


def _title(story: ExampleRun) -> str:
    return f"{story.title}: {story.verdict}"


def _caption(axes: "Axes", what: str, detail: str) -> None:
    axes.text(0.0, -0.045, what, transform=axes.transAxes, fontsize=10, fontweight="bold", color=INK, va="top")
    axes.text(1.0, -0.045, detail, transform=axes.transAxes, fontsize=9, color=QUIET, va="top", ha="right")


def _legend(figure: "Figure", story: ExampleRun, num_shown: int) -> None:
    """What the colours mean, on one line at the foot; below it, which rounds are shown where not all are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    line, halo = Line2D([], [], color=INK, lw=2.4), Line2D([], [], color=INK, lw=8, alpha=0.22, solid_capstyle="round")
    handles: dict[str, Any] = {
        "agent's start": Patch(fc=AGENT, alpha=0.45),
        "goal": Patch(fc=GOAL, alpha=0.45),
        "feature still open": line,
        **({"asked for alone": (halo, line)} if any(len(r.asked_for) == 1 for r in story.rounds) else {}),
        "shown to be controlled in this round": Line2D([], [], color=INK, lw=1.2, ls=(0, (1, 2))),
    }
    height, all_shown = figure.get_figheight(), num_shown == len(story.rounds)
    figure.legend(
        list(handles.values()), list(handles), loc="lower left", bbox_to_anchor=(0.018, 0 if all_shown else NOTE / height),
        ncols=5 if len(story.rounds) > 1 else 2, frameon=False, fontsize=9.5, labelcolor=INK, handlelength=1.6,
        columnspacing=1.8,
    )  # fmt: skip
    if not all_shown:
        note = f"{num_shown} of {len(story.rounds)} rounds shown: the first, those that show most, the last"
        figure.text(0.025, 0.12 / height, note, fontsize=9, color=QUIET, style="italic")


# -- The page of a study or a configured run: the answer so far, the rounds in pictures and words, and what comes next.

SETTINGS = ("rule", "significance", "num_rounds", "num_episodes", "budget", "test", "paper_rule")


def rounds_page(study: Rounds) -> Iterator[str]:
    """The parts of the page."""
    status, world = study.status(), study.world
    most = number_of(status.schedule.num_rounds, "round")
    lead = f"{status.total_episodes:,} episodes in {len(status.rounds)} of at most {most}"
    yield page.header(status.sentence, escaped(f"{lead}, in the world {world.name}."), "configured rounds")
    yield from page.banner(escaped(f"Warning: {warning}") for r in status.rounds for warning in r.warnings)
    if status.rounds:
        story = ExampleRun.of(world, status.rounds, status.schedule.units, status.truth)
        told = f"Round after round, {story.verdict}; the table below says the same in words."
        table = page.table(study.table(), "What every round has shown")
        yield page.section("The rounds", page.figure_html(draw_rounds(story), "rounds", told), table)
        where = [(r, configuration_in_words(world.name, r.configuration)) for r in status.rounds]
        told_where = [page.paragraph(f"Round {r.number + 1}, {r.where}: {words}.") for r, words in where]
        yield page.section("Where the agent was observed", *told_where)
        yield from _last_tests(status.rounds[-1])
    yield page.section("What is guaranteed, and what comes next", *map(page.paragraph, study.notes()))
    named = {name: getattr(status.schedule, name) for name in SETTINGS}
    named |= {name: status.settings[name] for name in ("world", "design", "seed") if name in status.settings}
    settings = {name.replace("_", " "): _cell(value) for name, value in named.items() if value is not None}
    yield from page.ending(settings, study.made_by, "The same rounds give the same page.")


def _last_tests(record: Round) -> Iterator[str]:
    """The numbers of the last round's tests."""
    if not record.tests:
        return
    columns = [
        name
        for name, value in max(record.tests, key=len).items()  # units that were not tested have fewer entries
        if not isinstance(value, list | dict | bool) and any(row.get(name) is not None for row in record.tests)
    ]
    rows = [[_cell(row.get(name)) for name in columns] for row in record.tests]
    names = [name.replace("_", " ") for name in columns]
    yield page.section("The tests of the last round", page.table(TextTable(names, rows), "Tests of the last round"))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# -- A configured identification as an animation: configuration, identification, configuration, …

CONFIGURED, IDENTIFIED, END = 1100, 1500, 4000
"""How long frames stay, in milliseconds."""
MOST_ROUNDS = 24
"""A longer film is not watched to its end."""


def film_rounds(story: ExampleRun, path: str | Path) -> None:
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


def _frame(story: ExampleRun, record: Round, identified: bool) -> np.ndarray:
    """One image [height, width, 3] of bytes."""
    figure = _panel_frame(story, record, identified) if story.panel else _omega_frame(story, record)
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(100)
    canvas = FigureCanvasAgg(with_names_as_names(figure))
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def _omega_frame(story: ExampleRun, record: Round) -> Any:
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


def _panel_frame(story: ExampleRun, record: Round, identified: bool) -> Any:
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


def _describe_round(figure: Any, story: ExampleRun, record: Round, identified: bool) -> None:
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


def _progress(figure: Any, story: ExampleRun, record: Round, identified: bool) -> None:
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
