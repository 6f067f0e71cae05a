"""Designs: ways of choosing the next configuration, each with the reasons for its choice."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, final

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
from policyspace.errors import InputError
from policyspace.policies.base import PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.progress import counted
from policyspace.worlds.configurable import Configurable
from policyspace.worlds.confmdp import Array, Configuration, ConfMDP, Key, rollout
from policyspace.worlds.importance import effective_sample_size, largest_weight
from policyspace.worlds.trajectories import Trajectories


@final
@dataclass(frozen=True, eq=False)
class Question:
    """What a design is asked: in which configuration would so many more episodes tell most about these units?"""

    world: Configurable
    space: PolicySpace
    theta: np.ndarray  # an estimate of the agent's θ
    logged: Trajectories  # what was seen of it last
    units: Sequence[int]  # the groups still undecided
    num_episodes: int
    key: Key
    earlier: Sequence[Mapping[str, Any]] = ()  # where the agent has been observed

    @property
    def names(self) -> tuple[str, ...]:
        """The units by name."""
        return tuple(self.space.groups[u].name for u in self.units)

    @property
    def box(self) -> Box:
        """Where ω may be."""
        return Box(self.world)

    @property
    def with_densities(self) -> ConfMDP:
        """The world, which must have densities for trajectories to be weighted."""
        if isinstance(self.world, ConfMDP):
            return self.world
        raise InputError(
            f"this design weights trajectories by densities, which '{self.world.name}' does not have: use the design "
            "'simulated', 'space-filling', 'uniform' or 'none'."
        )


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
    """A way of choosing ω."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def joint(self) -> bool:
        """Whether one configuration serves all undecided units, rather than one at a time."""

    def propose(self, question: Question) -> Proposal:
        """The next configuration."""


@final
@dataclass(frozen=True)
class PaperObjective:
    """C_I(ω/ω₀), climbed from the data at hand (Equation 11).

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

    def propose(self, question: Question) -> Proposal:
        """argmax_ω C_I(ω/ω₀)."""
        world, space, logged = question.with_densities, question.space, question.logged
        indices = jnp.array([i for u in question.units for i in space.groups[u].indices])
        terms = _gradient_terms(world, space, jnp.asarray(question.theta), logged, indices)
        starts = question.box.starts(logged.configuration, 1 if self.last_point else self.num_starts, question.key)
        found = _climb_paper(world, terms, starts, self.penalty, self.learning_rate, self.num_updates)
        points, values, kept = (jax.tree.map(np.asarray, part) for part in found)
        chosen, warnings = _choose(values, kept, logged.num_episodes, self.smallest_share, self.last_point)
        return _proposal(self.name, question, points, values, kept, chosen, warnings)


@final
@dataclass(frozen=True)
class Information:
    """A joint design for all undecided units, from the information expected at ω under π_θ̂.

    "d-optimal" climbs log det of the information about them; "noncentrality" climbs how far the statistic of each would
    move at θ̂. The climb starts from the uniform configuration; every few updates π_θ̂ is simulated anew where it stands, so
    that no weight strays far from one.
    """

    name: Literal["d-optimal", "noncentrality"] = "d-optimal"
    num_simulated: int = 100
    num_stages: int = 6
    num_updates: int = 12
    learning_rate: float = 0.02
    joint: bool = True

    def propose(self, question: Question) -> Proposal:
        """Climb in stages; at each, the sample is simulated at the point that was reached."""
        world, space, box = question.with_densities, question.space, question.box
        masks = np.zeros((len(space.tested), space.num_parameters), dtype=bool)
        for row, u in enumerate(question.units):
            masks[row, list(space.groups[u].indices)] = True
        others = space.free(space.everything) & ~masks.any(axis=0)
        theta, stages = jnp.asarray(question.theta), []
        point = box.vector(world.uniform_configuration(question.key))
        for stage in counted(range(self.num_stages), "choosing a configuration"):
            draw = jax.random.fold_in(question.key, stage)
            sample = rollout(world, space, theta, box.configuration(point), draw, self.num_simulated)
            found = _climb_information(
                world, space, theta, sample, masks, others, float(question.num_episodes), point,
                self.learning_rate, self.num_updates, self.name,
            )  # fmt: skip
            stages.append(found)
            point = found[0][-1]
        points, values, kept = jax.tree.map(lambda *parts: np.concatenate(parts)[None], *stages)
        # Each stage has a sample of its own: the last point is the best known one, not the luckiest.
        return _proposal(self.name, question, points, values, kept, (0, values.shape[1] - 1), [])


@final
@dataclass(frozen=True)
class Uniform:
    """The honest baseline: the world's uniform configuration, whatever was seen."""

    name: str = "uniform"
    joint: bool = True

    def propose(self, question: Question) -> Proposal:
        """The uniform configuration."""
        return without_reasons(self.name, question, question.world.uniform_configuration(question.key))


@final
@dataclass(frozen=True)
class Stay:
    """No configuration at all: watch longer where the data are from."""

    name: str = "none"
    joint: bool = True

    def propose(self, question: Question) -> Proposal:
        """The configuration of the data."""
        return without_reasons(self.name, question, question.logged.configuration)


DESIGNS: Mapping[str, Callable[..., Design]] = {
    "d-optimal": Information,
    "noncentrality": partial(Information, "noncentrality"),
    "paper": PaperObjective,
    "uniform": Uniform,
    "none": Stay,
}


def without_reasons(name: str, question: Question, omega: Configuration) -> Proposal:
    """A configuration that was not chosen for what it would tell."""
    path = np.asarray(question.box.vector(omega))[None]
    plain = {name: np.asarray(value) for name, value in omega.items()}
    return Proposal(plain, name, question.names, 0.0, 0.0, 0.0, float(question.num_episodes), 1.0, path, np.zeros(1))


def _choose(
    values: Array, kept: Terms, num_episodes: int, smallest_share: float, last_point: bool
) -> tuple[tuple[int, int], list[str]]:
    """The point to propose: the best one that the data can speak about, or the last of the first path."""
    share = kept.effective_sample_size / num_episodes
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
        f"(less than {smallest_share:.0%}), and the largest weight is {float(kept.largest_weight[chosen]):.3g}."
    ]


def _proposal(
    design: str,
    question: Question,
    points: np.ndarray,
    values: np.ndarray,
    kept: Terms,
    chosen: tuple[int, int],
    warnings: list[str],
) -> Proposal:
    at = {name: float(getattr(kept, name)[chosen]) for name in Terms._fields}
    omega = {name: np.asarray(value) for name, value in question.box.configuration(points[chosen]).items()}
    path = slice(0, chosen[1] + 1)
    return Proposal(
        omega, design, question.names, float(values[chosen]), at["gain"], at["cost"], at["effective_sample_size"],
        at["largest_weight"], points[chosen[0], path], values[chosen[0], path], warnings,
    )  # fmt: skip


_gradient_terms = jax.jit(gradient_terms, static_argnums=(0, 1))


@partial(jax.jit, static_argnums=(0, 5))
def _climb_paper(
    world: ConfMDP, logged: Logged, starts: Array, penalty: Any, learning_rate: Any, num_updates: int
) -> Any:
    box = Box(world)

    def evaluate(vector: Array) -> tuple[Array, Terms]:
        return paper_objective(world, logged, box.configuration(vector), penalty)

    return climb(evaluate, starts, *box.bounds, num_updates, learning_rate)


@partial(jax.jit, static_argnums=(0, 1, 9, 10))
def _climb_information(
    world: ConfMDP,
    space: PolicySpace,
    theta: Array,
    sample: Trajectories,
    masks: Array,
    others: Array,
    num_episodes: Any,
    start: Array,
    learning_rate: Any,
    num_updates: int,
    criterion: str,
) -> Any:
    box = Box(world)
    logged = information_terms(world, space, theta, sample)

    def evaluate(vector: Array) -> tuple[Array, Terms]:
        information, whole = expected_information(world, logged, box.configuration(vector))
        if criterion == "d-optimal":
            value = log_det_gain(information, masks.any(axis=0), others, num_episodes)
        else:
            value = noncentrality_gain(information, theta, masks, num_episodes)
        return value, Terms(value, jnp.zeros(()), effective_sample_size(whole), largest_weight(whole))

    points, values, kept = climb(evaluate, start[None], *box.bounds, num_updates, learning_rate)
    return points[0], values[0], jax.tree.map(lambda leaf: leaf[0], kept)
