"""The worlds of policyspace as Gymnasium environments, rendered."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import gymnasium
import numpy as np
from gymnasium import spaces

from policyspace.errors import InputError
from policyspace.families.jax_backend import jax
from policyspace.safe_io import replacing
from policyspace.worlds import make_world
from policyspace.worlds.base import Array, Configuration, Key, Trajectories, parse_configuration
from policyspace.worlds.confmdp import ConfMDP, State

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# -- Any configurable world as a Gymnasium environment.


@final
class WorldEnv(gymnasium.Env):  # type: ignore[misc]
    """A thin shell around a `ConfMDP`: observations are the numbers of the state, float64; `info` has the features.

    Continuous actions come in [−1, 1], which is stretched to the world's `action_bounds` (the same, but for minigolf).
    `configuration` (a table of names, or text such as `bend=50`) sets ω for good, `reset(options={"configuration": …})`
    for the episodes from then on. Other keywords are the settings of the world.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's own convention)

    def __init__(
        self,
        world: str | ConfMDP,
        configuration: Mapping[str, Any] | str | None = None,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise InputError(f"worlds render as 'rgb_array' or not at all, found the render mode '{render_mode}'.")
        self.world = make_world(world, **settings) if isinstance(world, str) else world
        self.render_mode = render_mode
        self.configuration = self._configuration(configuration)
        low, high = self.world.observation_bounds()
        self.observation_space = spaces.Box(low, high, dtype=np.float64)
        if self.world.action_bounds is None:
            self.action_space = spaces.Discrete(len(self.world.action_names))
        else:
            self.action_space = spaces.Box(-1.0, 1.0, shape=(len(self.world.action_names),), dtype=np.float64)
        self._path: list[np.ndarray] = []

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start an episode, s_0 ~ μ_ω."""
        super().reset(seed=seed)
        if options and "configuration" in options:
            self.configuration = self._configuration(options["configuration"])
        self._key = jax.random.key(int(self.np_random.integers(2**63)))
        self._key, key = jax.random.split(self._key)
        self._state = _start(self.world, key, self.configuration)
        self._path = [_numbers(self._state)]
        return self._path[-1].copy(), self._info()

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """One step s' ~ p_ω(·|s, a); an episode that reaches the horizon is truncated."""
        self._key, key = jax.random.split(self._key)
        action = np.asarray(action)
        if self.world.action_bounds is not None:  # from Gymnasium's units to the world's
            low, high = self.world.action_bounds
            action = low + (action.astype(np.float64) + 1.0) / 2.0 * (high - low)
        self._state, reward, end = _advance(self.world, key, self._state, action, self.configuration)
        self._path.append(_numbers(self._state))
        late = len(self._path) > self.world.horizon
        return self._path[-1].copy(), float(reward), bool(end), late and not bool(end), self._info()

    def render(self) -> np.ndarray | None:
        """A picture of the episode so far [height, width, 3]."""
        if self.render_mode is None:
            return None

        return picture(self.world, np.stack(self._path), self.configuration)

    def _info(self) -> dict[str, np.ndarray]:
        return {"features": np.asarray(_features(self.world, self._state))}

    def _configuration(self, given: Mapping[str, Any] | str | None) -> Configuration:
        return self.world.check_configuration(parse_configuration(given) if isinstance(given, str) else given or {})


def _numbers(state: State) -> np.ndarray:
    """All numbers of a state in one row."""
    return np.concatenate([np.asarray(leaf, dtype=np.float64).ravel() for leaf in jax.tree.leaves(state)])


def _move(
    world: ConfMDP, key: Key, state: State, action: Array, configuration: Configuration
) -> tuple[State, Array, Array]:
    following = world.transition(key, state, action, configuration)
    return following, world.reward(state, action, following), world.terminal(following)


_compile = partial(jax.jit, static_argnums=0)
_start = _compile(lambda world, key, configuration: world.initial(key, configuration))
_features = _compile(lambda world, state: world.features(state))
_advance = _compile(_move)


# -- Pictures of an episode in each world: what the agent has done so far, and what the configuration makes likely.

INK, AGENT, GOAL, FAINT, PAPER = "#1f2933", "#2563a8", "#d9730d", "#c9d1d9", "#fbfaf7"
ASPHALT, GRASS, GREEN = "#8a939c", "#e4ecd8", "#a9cf93"


def picture(world: ConfMDP, path: np.ndarray, configuration: Configuration) -> np.ndarray:
    """The states of an episode so far [t+1, s] as an image [height, width, 3] of bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    draw, size = PICTURES.get(world.name, (_timeline, (6.0, 4.0)))
    figure = Figure(figsize=size, dpi=110, facecolor=PAPER, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot(facecolor=PAPER)
    draw(axes, world, np.asarray(path, dtype=np.float64), {k: np.asarray(v) for k, v in configuration.items()})
    numbers = [f"{name} {float(value):.4g}" for name, value in configuration.items() if np.ndim(value) == 0]
    title = [f"{world.name} · step {len(path) - 1} of {world.horizon}"] + [" · ".join(numbers)] * bool(numbers)
    axes.set_title("\n".join(title), loc="left", fontsize=10, color=INK)
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def _bare(axes: "Axes") -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.set_aspect("equal")


def _gridworld(axes: "Axes", world: Any, path: np.ndarray, omega: Configuration) -> None:
    """Cells tinted by where the configuration lets the agent (blue) and the goal (orange) start."""
    _bare(axes)
    chance = {name: np.exp(logits) / np.exp(logits).sum() for name, logits in omega.items()}
    image = np.ones((world.size, world.size, 3))
    for colour, rows, cols in ((AGENT, "row", "col"), (GOAL, "goal_row", "goal_col")):
        tint = np.outer(chance[rows], chance[cols])[..., None] ** 0.5
        image *= 1 - 0.55 * tint * (1 - np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]))
    axes.imshow(image, extent=(-0.5, world.size - 0.5, world.size - 0.5, -0.5))
    for line in np.arange(-0.5, world.size):
        axes.axhline(line, color=FAINT, lw=1)
        axes.axvline(line, color=FAINT, lw=1)
    row, col, goal_row, goal_col = path[-1]
    # Steps against a wall, and cells seen again, are drawn side by side so that the way can be followed.
    shift = 0.16 * np.sin(np.arange(len(path))[::-1, None] * [1.7, 2.3])
    axes.plot(
        path[:, 1] + shift[:, 0], path[:, 0] + shift[:, 1], color=AGENT, lw=1.6, alpha=0.45, solid_joinstyle="round"
    )
    axes.plot(goal_col, goal_row, marker="*", ms=30, color=GOAL, mec="white", mew=1.5)
    axes.plot(col, row, marker="o", ms=20, color=AGENT, mec="white", mew=2)


def _continuous_gridworld(axes: "Axes", world: Any, path: np.ndarray, omega: Configuration) -> None:
    """The goal's disc, the centres of the features, and the two starts' Normals."""
    from matplotlib.patches import Circle, Rectangle

    _bare(axes)
    h = world.half_width
    axes.add_patch(Rectangle((-h, -h), 2 * h, 2 * h, fc="white", ec=INK, lw=1.5))
    axes.plot(*world.centres.T, ".", color=FAINT, ms=5)
    for colour, x, y, variance in ((AGENT, "x", "y", 0), (GOAL, "goal_x", "goal_y", 1)):
        for scale in (1, 2):
            radius = scale * np.sqrt(world.variances[variance])
            axes.add_patch(Circle((float(omega[x]), float(omega[y])), radius, fc=colour, alpha=0.09, lw=0))
    axes.add_patch(Circle((path[-1, 2], path[-1, 3]), world.radius, fc=GOAL, alpha=0.28, lw=0))
    axes.plot(path[-1, 2], path[-1, 3], marker="*", ms=18, color=GOAL, mec="white", mew=1)
    axes.plot(path[:, 0], path[:, 1], "-o", color=AGENT, lw=1.6, ms=3, alpha=0.7)
    axes.plot(path[-1, 0], path[-1, 1], marker="o", ms=13, color=AGENT, mec="white", mew=2)
    axes.set(xlim=(-h - 0.1, h + 0.1), ylim=(-h - 0.1, h + 0.1))


def _minigolf(axes: "Axes", world: Any, path: np.ndarray, omega: Configuration) -> None:
    """The green from the side of the hole; strokes as arcs, the ball where it lies."""
    from matplotlib.patches import Arc, Rectangle

    from policyspace.worlds.minigolf import HOLED_ENERGY, deceleration

    _bare(axes)
    axes.set_aspect("auto")
    left = min(-2.0, float(path[:, 0].min()) - 1.0)
    axes.add_patch(Rectangle((left, -1.2), 21 - left, 1.2, fc=GREEN, lw=0))
    axes.add_patch(Rectangle((-0.25, -0.45), 0.5, 0.45, fc=INK, lw=0))
    axes.plot([0, 0], [-0.45, 2.6], color=INK, lw=1.8)
    axes.fill([0, 1.3, 0], [2.6, 2.2, 1.8], color=GOAL)
    for start, end in zip(path[:-1, 0], path[1:, 0], strict=True):
        if start > end:
            axes.add_patch(
                Arc(((start + end) / 2, 0.1), start - end, 1.6, theta1=0, theta2=180, ec=AGENT, lw=1.4, alpha=0.6)
            )
    axes.plot(path[:-1, 0], np.full(len(path) - 1, 0.12), "o", color=AGENT, alpha=0.3, ms=7)
    x, friction = path[-1, :2]
    holed = -2 * deceleration(friction) * x <= HOLED_ENERGY and x <= 0
    axes.plot(0.0 if holed else x, -0.25 if holed else 0.12, "o", ms=12, color="white", mec=INK, mew=1.5, zorder=5)
    says = "holed" if holed else ("too fast" if x <= 0 else f"{x:.1f} to go")
    axes.text(20.8, 2.3, f"friction {friction:.2f}\n{says}", ha="right", va="top", color=INK, fontsize=11)
    axes.set(xlim=(left, 21), ylim=(-1.2, 3.0))


def _car(axes: "Axes", world: Any, path: np.ndarray, omega: Configuration) -> None:
    """The road from above, driven from left to right; rays as long as their sensors say."""
    from policyspace.worlds.car import (
        ANGLE,
        BODY_RADIUS,
        CORNER_ANGLES,
        CRASHED,
        HALF_ROAD,
        RANGE,
        SENSOR_ANGLES,
        SENSORS,
    )

    _bare(axes)
    t = np.linspace(0, 1, 200)
    middle = 2 * t * (1 - t) * float(omega["bend"])
    axes.set_facecolor(GRASS)
    axes.fill_between(500 * t, -middle - HALF_ROAD, -middle + HALF_ROAD, color=ASPHALT, lw=0)
    for shift in (-HALF_ROAD, HALF_ROAD):
        axes.plot(500 * t, -middle + shift, color="white", lw=2.5)
    axes.plot(500 * t, -middle, color="white", lw=1.2, ls=(0, (8, 8)))
    axes.plot(path[:, 1], -path[:, 0], color=AGENT, lw=2)
    x, y, angle = path[-1, 0], path[-1, 1], path[-1, ANGLE]
    for ray, seen, name in zip(SENSOR_ANGLES, path[-1, SENSORS], world.feature_names[1:], strict=True):
        end = (y + RANGE * seen * np.cos(angle + ray), -x + RANGE * seen * np.sin(angle + ray))
        axes.plot([y, end[0]], [-x, end[1]], color=GOAL if name in world.true_controls else INK, lw=1.4, alpha=0.8)
        axes.plot(*end, "o", ms=4, color=GOAL if name in world.true_controls else INK)
    corners = angle + CORNER_ANGLES
    colour = "#b3261e" if path[-1, CRASHED] else AGENT
    axes.fill(
        y + BODY_RADIUS * np.cos(corners),
        -x + BODY_RADIUS * np.sin(corners),
        color=colour,
        ec="white",
        lw=1.5,
        zorder=5,
    )
    low, high = -middle.max() - HALF_ROAD, -middle.min() + HALF_ROAD
    axes.set(xlim=(-20, 520), ylim=(low - 25, high + 25))
    axes.spines[:].set_visible(False)


def _cartpole(axes: "Axes", world: Any, path: np.ndarray, omega: Configuration) -> None:
    """The cart on its rail and the pole in its length."""
    from matplotlib.patches import Rectangle

    _bare(axes)
    x = path[-1, 0]
    length = 2 * float(omega["pole_half_length"])
    axes.plot([-2.4, 2.4], [0, 0], color=INK, lw=2)
    for before in path[-12:-1:3]:
        axes.plot(*_pole(before, length), color=GOAL, lw=5, alpha=0.12, solid_capstyle="round")
    axes.add_patch(Rectangle((x - 0.25, -0.13), 0.5, 0.26, fc=AGENT, ec="white", lw=1.5, zorder=3))
    axes.plot(*_pole(path[-1], length), color=GOAL, lw=6, solid_capstyle="round", zorder=4)
    axes.plot(x, 0.13, "o", color="white", ms=4, zorder=5)
    axes.set(xlim=(-2.6, 2.6), ylim=(-0.4, max(1.4, length + 0.4)))


def _pole(state: np.ndarray, length: float) -> tuple[list[float], list[float]]:
    return [state[0], state[0] + length * np.sin(state[2])], [0.13, 0.13 + length * np.cos(state[2])]


def _timeline(axes: "Axes", world: ConfMDP, path: np.ndarray, omega: Configuration) -> None:
    """For a world without a picture of its own: its state's numbers over time."""
    for column in range(path.shape[1]):
        axes.plot(path[:, column], lw=1.6, label=f"state {column}")
    axes.set_xlabel("step")
    axes.legend(frameon=False, fontsize=8)


PICTURES: dict[str, tuple[Callable[..., None], tuple[float, float]]] = {
    "gridworld": (_gridworld, (4.4, 4.6)),
    "continuous-gridworld": (_continuous_gridworld, (4.8, 5.0)),
    "minigolf": (_minigolf, (7.2, 2.9)),
    "car": (_car, (8.0, 3.6)),
    "cartpole": (_cartpole, (6.4, 3.4)),
}
"""How each world is drawn, and how large."""


# -- An episode as a film, or as a strip of pictures.

FRAMES = {".gif": 60, ".png": 6}
"""How many moments of an episode are shown, at most: a film stays small, a strip can be read."""


def draw_episode(world: ConfMDP, trajectories: Trajectories, path: str | Path) -> None:
    """The first episode, from its start to its end, as a GIF or a strip in a PNG; whole, or not at all."""
    from PIL import Image

    suffix = Path(path).suffix.lower()
    if suffix not in FRAMES:
        raise InputError(f"{path}: the name must end in .gif or .png: choose another name.")
    # The states of the first episode up to its end [t+1, s], all numbers of a state in one row.
    length = int(trajectories.lengths[0]) + 1
    leaves = [np.asarray(leaf, dtype=np.float64)[0, :length] for leaf in jax.tree.leaves(trajectories.states)]
    states = np.concatenate([leaf.reshape(length, -1) for leaf in leaves], axis=1)
    moments = np.linspace(0, len(states) - 1, min(len(states), FRAMES[suffix])).round().astype(int)
    frames = [picture(world, states[: t + 1], trajectories.configuration) for t in moments]
    with replacing(path) as file:
        if suffix == ".gif":
            first, *rest = [Image.fromarray(frame) for frame in frames]
            durations = [120] * len(rest) + [1500]  # the end stays a while
            first.save(file, format="GIF", save_all=True, append_images=rest, duration=durations, loop=0)
        else:
            # Pictures side by side; wide ones in rows of two.
            height, width = frames[0].shape[:2]
            columns = len(frames) if width < 1.5 * height else min(2, len(frames))
            blanks = [np.full_like(frames[0], 255)] * (-len(frames) % columns)
            rows = [np.concatenate((frames + blanks)[i : i + columns], axis=1) for i in range(0, len(frames), columns)]
            Image.fromarray(np.concatenate(rows, axis=0)).save(file, format="PNG")
