"""Designs: ways of choosing the next configuration, each with the reasons for its choice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, final

import numpy as np

from policyspace.configuration.climb import Box, climb
from policyspace.configuration.objective import (
    Logged,
    Terms,
    expected_information,
    gradient_terms,
    information_terms,
    log_det_gain,
    noncentrality_gain,
    paper_objective,
)
from policyspace.confmdp import Array, Configuration, ConfMDP, Key, rollout
from policyspace.importance import effective_sample_size, largest_weight
from policyspace.jax_setup import jax, jnp
from policyspace.policies.base import PolicySpace
from policyspace.trajectories import Trajectories


@final
@dataclass(frozen=True)
class Proposal:
    """The next ω, what it is for, and why: the objective with its two terms along the path that led to it."""

    configuration: dict[str, np.ndarray]
    design: str
    units: tuple[str, ...]
    objective: float
    gain: float
    cost: float
    effective_sample_size: float
    largest_weight: float
    path: np.ndarray  # [U+1, p]
    values: np.ndarray  # [U+1]
    warnings: list[str] = field(default_factory=list)


class Design(Protocol):
    """A way of choosing ω from trajectories of the agent, an estimate of its θ, and the units still undecided."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def joint(self) -> bool:
        """Whether one configuration serves all undecided units, rather than one at a time."""

    def propose(
        self,
        world: ConfMDP,
        space: PolicySpace,
        theta: np.ndarray,
        logged: Trajectories,
        units: Sequence[int],
        num_episodes: int,
        key: Key,
    ) -> Proposal:
        """The configuration in which `num_episodes` more episodes would tell most about the units."""


@final
@dataclass(frozen=True)
class PaperObjective:
    """C_I(ω/ω₀), climbed from the data at hand (Equation 6).

    By default the best point of all paths whose effective sample size is at least `smallest_share` of the episodes;
    `last_point` takes the end of the first path whatever it is worth, as the paper does, and says so.
    """

    penalty: float = 0.125
    num_updates: int = 150
    learning_rate: float = 0.01
    num_starts: int = 4
    smallest_share: float = 0.05
    last_point: bool = False
    name: str = "paper"
    joint: bool = False

    def propose(
        self,
        world: ConfMDP,
        space: PolicySpace,
        theta: np.ndarray,
        logged: Trajectories,
        units: Sequence[int],
        num_episodes: int,
        key: Key,
    ) -> Proposal:
        """argmax_ω C_I(ω/ω₀)."""
        box = Box(world)
        indices = np.array([i for u in units for i in space.groups[u].indices])
        terms = _gradient_terms(world, space, jnp.asarray(theta), logged, jnp.asarray(indices))
        starts = box.starts(logged.configuration, 1 if self.last_point else self.num_starts, key)
        low, high = box.bounds
        points, values, kept = _climb_paper(
            world, terms, starts, low, high, self.penalty, self.learning_rate, self.num_updates
        )
        chosen, warnings = _choose(values, kept, logged.num_episodes, self.smallest_share, self.last_point)
        names = tuple(space.groups[u].name for u in units)
        return _proposal(self.name, names, box, np.asarray(points), np.asarray(values), kept, chosen, warnings)


@final
@dataclass(frozen=True)
class DOptimal:
    """The joint design: log det of the information about all undecided units, expected at ω under π_θ̂.

    With `simulate`, fresh rollouts of π_θ̂ at the current ω take the place of the data every few updates, so that no
    weight strays far from one; without, the data at hand are weighted.
    """

    simulate: bool = True
    num_simulated: int = 100
    num_stages: int = 6
    num_updates: int = 12
    learning_rate: float = 0.2
    smallest_share: float = 0.05
    name: str = "d-optimal"
    joint: bool = True
    criterion: str = "log det"

    def propose(
        self,
        world: ConfMDP,
        space: PolicySpace,
        theta: np.ndarray,
        logged: Trajectories,
        units: Sequence[int],
        num_episodes: int,
        key: Key,
    ) -> Proposal:
        """argmax_ω log det F_ω(θ̂) of the undecided units."""
        return _staged(self, world, space, theta, logged, units, num_episodes, key)


@final
@dataclass(frozen=True)
class NonCentrality:
    """The joint design of expected non-centrality: how far each undecided unit's statistic would move at θ̂."""

    simulate: bool = True
    num_simulated: int = 100
    num_stages: int = 6
    num_updates: int = 12
    learning_rate: float = 0.2
    smallest_share: float = 0.05
    name: str = "noncentrality"
    joint: bool = True
    criterion: str = "non-centrality"

    def propose(
        self,
        world: ConfMDP,
        space: PolicySpace,
        theta: np.ndarray,
        logged: Trajectories,
        units: Sequence[int],
        num_episodes: int,
        key: Key,
    ) -> Proposal:
        """argmax_ω Σ_u log(1 + non-centrality of u)."""
        return _staged(self, world, space, theta, logged, units, num_episodes, key)


@final
@dataclass(frozen=True)
class Uniform:
    """The honest baseline: the world's uniform configuration, whatever was seen."""

    name: str = "uniform"
    joint: bool = True

    def propose(
        self,
        world: ConfMDP,
        space: PolicySpace,
        theta: np.ndarray,
        logged: Trajectories,
        units: Sequence[int],
        num_episodes: int,
        key: Key,
    ) -> Proposal:
        """The uniform configuration."""
        box, names = Box(world), tuple(space.groups[u].name for u in units)
        omega = world.uniform_configuration(key)
        path = np.asarray(box.vector(omega))[None]
        plain = {name: np.asarray(value) for name, value in omega.items()}
        return Proposal(plain, self.name, names, 0.0, 0.0, 0.0, float(num_episodes), 1.0, path, np.zeros(1))


@final
@dataclass(frozen=True)
class Stay:
    """No configuration at all: watch longer at ω₀."""

    name: str = "none"
    joint: bool = True

    def propose(
        self,
        world: ConfMDP,
        space: PolicySpace,
        theta: np.ndarray,
        logged: Trajectories,
        units: Sequence[int],
        num_episodes: int,
        key: Key,
    ) -> Proposal:
        """The configuration of the data."""
        box, names = Box(world), tuple(space.groups[u].name for u in units)
        plain = {name: np.asarray(value) for name, value in logged.configuration.items()}
        path = np.asarray(box.vector(logged.configuration))[None]
        return Proposal(plain, self.name, names, 0.0, 0.0, 0.0, float(logged.num_episodes), 1.0, path, np.zeros(1))


DESIGNS: Mapping[str, type] = {
    "d-optimal": DOptimal,
    "noncentrality": NonCentrality,
    "paper": PaperObjective,
    "uniform": Uniform,
    "none": Stay,
}


def _staged(
    design: DOptimal | NonCentrality,
    world: ConfMDP,
    space: PolicySpace,
    theta: np.ndarray,
    logged: Trajectories,
    units: Sequence[int],
    num_episodes: int,
    key: Key,
) -> Proposal:
    """Climb in stages; at each, the sample is simulated anew at the point that was reached (or stays the data)."""
    box = Box(world)
    low, high = box.bounds
    masks = np.zeros((len(space.tested), space.num_parameters), dtype=bool)
    for row, u in enumerate(units):
        masks[row, list(space.groups[u].indices)] = True
    others = space.free(space.everything) & ~masks.any(axis=0)
    point, points, values, kept = box.vector(logged.configuration), [], [], []
    theta = jnp.asarray(theta)
    for stage in range(design.num_stages if design.simulate else 1):
        sample = logged
        if design.simulate:
            sample = rollout(
                world, space, theta, box.configuration(point), jax.random.fold_in(key, stage), design.num_simulated
            )
        updates = design.num_updates if design.simulate else design.num_updates * design.num_stages
        path, value, terms = _climb_information(
            world, space, theta, sample, masks, others, float(num_episodes), point, low, high,
            design.learning_rate, updates, design.criterion,
        )  # fmt: skip
        points.append(np.asarray(path))
        values.append(np.asarray(value))
        kept.append(terms)
        point = path[-1]
    joined = jax.tree.map(lambda *parts: np.concatenate([np.asarray(part) for part in parts])[None], *kept)
    all_points, all_values = np.concatenate(points)[None], np.concatenate(values)[None]
    names = tuple(space.groups[u].name for u in units)
    if design.simulate:
        # Each stage has a sample of its own: the last point is the best known one, not the luckiest.
        chosen: tuple[int, int] = (0, all_values.shape[1] - 1)
        warnings: list[str] = []
    else:
        chosen, warnings = _choose(all_values, joined, logged.num_episodes, design.smallest_share, False)
    return _proposal(design.name, names, box, all_points, all_values, joined, chosen, warnings)


def _choose(
    values: Array, kept: Terms, num_episodes: int, smallest_share: float, last_point: bool
) -> tuple[tuple[int, int], list[str]]:
    """The point to propose: the best one that the data can speak about, or the last of the first path."""
    share = np.asarray(kept.effective_sample_size) / num_episodes
    values = np.asarray(values)
    if last_point:
        chosen = (0, values.shape[1] - 1)
    else:
        open_ = np.where((share >= smallest_share) & np.isfinite(values), values, -np.inf)
        best = int(np.argmax(open_))
        chosen = (best // values.shape[1], best % values.shape[1])
    found = float(share[chosen])
    if found >= smallest_share:
        return chosen, []
    return chosen, [
        f"the data can hardly speak about this configuration: they are worth {found:.1%} of their episodes there "
        f"(less than {smallest_share:.0%}), and the largest weight is {float(np.asarray(kept.largest_weight)[chosen]):.3g}."
    ]


def _proposal(
    design: str,
    names: tuple[str, ...],
    box: Box,
    points: np.ndarray,
    values: np.ndarray,
    kept: Terms,
    chosen: tuple[int, int],
    warnings: list[str],
) -> Proposal:
    at = {name: float(np.asarray(getattr(kept, name))[chosen]) for name in Terms._fields}
    omega = {name: np.asarray(value) for name, value in box.configuration(points[chosen]).items()}
    path = slice(0, chosen[1] + 1)
    return Proposal(
        omega, design, names, float(values[chosen]), at["gain"], at["cost"], at["effective_sample_size"],
        at["largest_weight"], points[chosen[0], path], values[chosen[0], path], warnings,
    )  # fmt: skip


_gradient_terms = jax.jit(gradient_terms, static_argnums=(0, 1))


@partial(jax.jit, static_argnums=(0, 7))
def _climb_paper(
    world: ConfMDP,
    logged: Logged,
    starts: Array,
    low: Array,
    high: Array,
    penalty: Any,
    learning_rate: Any,
    num_updates: int,
) -> Any:
    box = Box(world)

    def evaluate(vector: Array) -> tuple[Array, Terms]:
        return paper_objective(world, logged, box.configuration(vector), penalty)

    return climb(evaluate, starts, low, high, num_updates, learning_rate)


@partial(jax.jit, static_argnums=(0, 1, 11, 12))
def _climb_information(
    world: ConfMDP,
    space: PolicySpace,
    theta: Array,
    sample: Trajectories,
    masks: Array,
    others: Array,
    num_episodes: Any,
    start: Array,
    low: Array,
    high: Array,
    learning_rate: Any,
    num_updates: int,
    criterion: str,
) -> Any:
    box = Box(world)
    logged = information_terms(world, space, theta, sample)

    def evaluate(vector: Array) -> tuple[Array, Terms]:
        information, whole = expected_information(world, logged, box.configuration(vector))
        if criterion == "log det":
            value = log_det_gain(information, masks.any(axis=0), others, num_episodes)
        else:
            value = noncentrality_gain(information, theta, masks, num_episodes)
        return value, Terms(value, jnp.zeros(()), effective_sample_size(whole), largest_weight(whole))

    points, values, kept = climb(evaluate, start[None], low, high, num_updates, learning_rate)
    return points[0], values[0], jax.tree.map(lambda leaf: leaf[0], kept)


def plain(configuration: Configuration) -> dict[str, Any]:
    """ω as lists and numbers, for files and screens."""
    return {name: np.asarray(value).tolist() for name, value in configuration.items()}
