"""The pictures of a configured identification: panels for the grid worlds, curves or bars of ω for the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

from policyspace.configuration.round import Round
from policyspace.errors import InputError
from policyspace.report.gridworld_rounds import continuous_gridworld_panel, gridworld_panel
from policyspace.report.omega_rounds import draw_omega
from policyspace.report.style import AGENT, GOAL, GREY, INK, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from policyspace.worlds.configurable import Configurable
    from policyspace.worlds.configuration_parameters import ConfigurationParameter

PANELS: dict[str, Callable[..., None]] = {
    "gridworld": gridworld_panel,
    "continuous-gridworld": continuous_gridworld_panel,
}
WORDS = {"gridworld": "Discrete grid world", "continuous-gridworld": "Continuous grid world"}
"""What worlds are called in a title, where their name would not do."""
NOTE = 0.2
"""The height, in inches, of a line that says which rounds are shown."""
MOST_ROUNDS = 8
"""More panels cannot be read on a page."""


@final
@dataclass(frozen=True)
class Story:
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
        return f"{len(found)} of {len(owned)} controlled features found, {_count(len(false))} falsely"


def draw_rounds(story: Story) -> "Figure":
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
        _arrow(configured)
    figure.text(
        0.025, 1 - 0.2 / height, _title(story), fontsize=7.5 + 3.25 * across, fontweight="bold", color=INK, va="top"
    )
    _legend(figure, story, len(shown))
    return figure


def most_telling(rounds: Sequence[Round], most: int = MOST_ROUNDS) -> list[Round]:
    """The rounds that a page, or a film, can hold: the first, those in which most was newly selected, the last."""
    if len(rounds) <= most:
        return list(rounds)
    inner = sorted(rounds[1:-1], key=lambda r: (-len(r.newly_selected), r.number))[: most - 2]
    return sorted([rounds[0], *inner, rounds[-1]], key=lambda r: r.number)


def _title(story: Story) -> str:
    return f"{story.title}: {story.verdict}"


def _caption(axes: "Axes", what: str, detail: str) -> None:
    axes.text(0.0, -0.045, what, transform=axes.transAxes, fontsize=10, fontweight="bold", color=INK, va="top")
    axes.text(1.0, -0.045, detail, transform=axes.transAxes, fontsize=9, color=QUIET, va="top", ha="right")


def _arrow(axes: "Axes") -> None:
    """From a configuration to its identification."""
    axes.annotate(
        "", xy=(1.125, 0.5), xytext=(1.015, 0.5), xycoords="axes fraction",
        arrowprops={"arrowstyle": "-|>", "color": GREY, "lw": 1.4, "mutation_scale": 13}, annotation_clip=False,
    )  # fmt: skip


def _legend(figure: "Figure", story: Story, num_shown: int) -> None:
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


def _count(number: int) -> str:
    return "none" if number == 0 else str(number)
