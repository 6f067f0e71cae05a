"""Experimental designs: which configuration to observe next, and the objectives behind it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, final

import numpy as np
from scipy.stats import qmc

from policyspace.errors import InputError
from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax, jnp
from policyspace.runtime import counted
from policyspace.worlds.agents import adam_ascent, cumulative_scores
from policyspace.worlds.base import Array, CannotBePlayed, Configurable, Configuration, Key, Trajectories, generator
from policyspace.worlds.confmdp import ConfMDP, effective_sample_size, largest_weight, log_weights, renyi2, rollout

# -- Climbing an objective of ω inside its bounds, from several starts, keeping the path.


@dataclass(frozen=True)
class Box:
    """ω as a vector [p] between bounds, entry after entry of the world's parameters."""

    world: Configurable

    def vector(self, configuration: Configuration) -> Array:
        """ω → [p]."""
        return jnp.concatenate(
            [jnp.ravel(jnp.asarray(configuration[p.name], dtype=float)) for p in self.world.parameters]
        )

    def configuration(self, vector: Array) -> Configuration:
        """[p] → ω."""
        parts, start = {}, 0
        for p in self.world.parameters:
            size = int(np.prod(p.shape, dtype=int))
            parts[p.name] = vector[start : start + size].reshape(p.shape)
            start += size
        return parts

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) [p]."""
        sizes = [int(np.prod(p.shape, dtype=int)) for p in self.world.parameters]
        low, high = ([getattr(p, side) for p in self.world.parameters] for side in ("low", "high"))
        return np.repeat(np.array(low, float), sizes), np.repeat(np.array(high, float), sizes)

    def starts(self, configuration: Configuration, count: int, key: Any, spread: float = 0.1) -> Array:
        """ω itself and `count` − 1 points around it, `spread` of the box away, inside the bounds [count, p]."""
        low, high = self.bounds
        centre = self.vector(configuration)
        noise = jax.random.uniform(key, (count - 1, len(low)), minval=-1.0, maxval=1.0)
        return jnp.concatenate([centre[None], jnp.clip(centre + spread * (high - low) * noise, low, high)])


Evaluate = Callable[[Array], tuple[Array, Any]]
"""An objective at ω [p]: its value, and what else is worth keeping of it."""


def bounded_adam(
    evaluate: Evaluate, starts: Array, low: Array, high: Array, num_updates: int, learning_rate: Any
) -> Any:
    """Projected Adam ascent from every start: points [S, U+1, p], values [S, U+1] and what `evaluate` keeps."""
    gradient = jax.value_and_grad(evaluate, has_aux=True)

    def slope(point: Array, _: None) -> Any:
        (value, kept), found = gradient(point)
        # Where the objective has no slope to offer (not finite), the climber stays.
        return jnp.where(jnp.isfinite(found), found, 0.0), (point, value, kept)

    def from_one(start: Array) -> Any:
        rates = jnp.full(num_updates, learning_rate)
        last, path = adam_ascent(slope, start, rates, b2=0.999, project=lambda point: jnp.clip(point, low, high))
        value, kept = evaluate(last)
        return jax.tree.map(lambda a, b: jnp.concatenate([a, jnp.asarray(b)[None]]), path, (last, value, kept))

    return jax.lax.map(from_one, starts)


# -- What a configuration is worth: the paper's C_I(ω/ω₀), and the information it would bring.


class ObjectiveTerms(NamedTuple):
    """The two terms of an objective, and how far the data at hand can be trusted about it."""

    gain: Array
    cost: Array
    effective_sample_size: Array
    largest_weight: Array


class Logged(NamedTuple):
    """What an objective needs of trajectories of π_θ under ω₀: sums over an episode where only its start is weighted."""

    trajectories: Trajectories
    per_step: Array  # [m, T or 1, …], what each step adds


def weights_of(world: ConfMDP, trajectories: Trajectories, configuration: Configuration) -> tuple[Array, Array]:
    """log w of whole trajectories [m], and of everything up to s_{t+1} [m, T], or [m, 1] if only starts are configured."""
    if world.configures_transitions:
        cumulative = log_weights(world, trajectories, configuration)
        return cumulative[:, -1], cumulative[:, 1:]
    first = jax.tree.map(lambda leaf: leaf[:, 0], trajectories.states)
    both = jax.tree.map(lambda a, b: jnp.stack([a, b]), configuration, trajectories.configuration)
    density = jax.vmap(jax.vmap(world.log_initial, (0, None)), (None, 0))(first, both)
    whole = density[0] - density[1]
    return whole, whole[:, None]


def gradient_terms(
    world: ConfMDP, space: PolicySpace, theta: Array, trajectories: Trajectories, indices: Array
) -> Logged:
    """γ^t r_t Σ_{j≤t} ∇_I log π_θ(a_j|s_j) of every step: the G(PO)MDP gradient is their weighted mean (Appendix B)."""
    scores = cumulative_scores(space, theta, trajectories)[:, :, indices]
    discounted = trajectories.rewards * world.discount ** jnp.arange(trajectories.rewards.shape[1])
    per_step = scores * discounted[..., None]
    return Logged(trajectories, per_step if world.configures_transitions else per_step.sum(axis=1, keepdims=True))


def paper_objective(
    world: ConfMDP, logged: Logged, configuration: Configuration, penalty: Array
) -> tuple[Array, ObjectiveTerms]:
    """C_I(ω/ω₀) = ‖∇̂J_{ω/ω₀}(θ̂)|_I‖² − ζ √(d̂₂(ω‖ω₀)/m) (Equation 11), I the tested parameters."""
    whole, steps = weights_of(world, logged.trajectories, configuration)
    gradient = jnp.einsum("mt,mtc->c", jnp.exp(steps), logged.per_step) / whole.shape[0]
    gain, cost = jnp.sum(gradient**2), penalty * jnp.sqrt(renyi2(whole) / whole.shape[0])
    return gain - cost, ObjectiveTerms(gain, cost, effective_sample_size(whole), largest_weight(whole))


def information_terms(world: ConfMDP, space: PolicySpace, theta: Array, trajectories: Trajectories) -> Logged:
    """F(θ, s_t) of every step as a root [m, T, k, d], or summed over each episode [m, 1, d, d]: F̂ is a weighted sum."""
    root = space.information_root(theta, jnp.asarray(trajectories.features), jnp.asarray(trajectories.actions))
    root = jnp.where(trajectories.mask[..., None, None], root, 0.0)
    if world.configures_transitions:
        return Logged(trajectories, root)
    return Logged(trajectories, jnp.einsum("mtkd,mtke->mde", root, root)[:, None])


def expected_information(world: ConfMDP, logged: Logged, configuration: Configuration) -> tuple[Array, Array]:
    """E_ω[Σ_t F(θ̂, s_t)] of one episode [d, d] by importance weighting, and the log weights of whole trajectories [m]."""
    trajectories = logged.trajectories
    if not world.configures_transitions:
        whole, _ = weights_of(world, trajectories, configuration)
        return jnp.einsum("m,mde->de", jnp.exp(whole), logged.per_step[:, 0]) / whole.shape[0], whole
    cumulative = log_weights(world, trajectories, configuration)
    # The state at step t depends on ω through the start and the first t transitions.
    weight = jnp.exp(cumulative[:, :-1])
    information = jnp.einsum("mt,mtkd,mtke->de", weight, logged.per_step, logged.per_step, optimize=True)
    return information / weight.shape[0], cumulative[:, -1]


def log_det_gain(information: Array, units: Array, others: Array, num_episodes: Array) -> Array:
    """log det of what m episodes tell about the tested units beyond the others, log det(mF + 1) − log det(mF + 1)|others.

    `units` and `others` are masks [d]; the unit matrix is the information of a guess that weights are of order one.
    """
    matrix = num_episodes * information + jnp.eye(len(units))
    return _log_determinant(matrix, units | others) - _log_determinant(matrix, others)


def noncentrality_gain(information: Array, theta: Array, masks: Array, num_episodes: Array) -> Array:
    """Σ_u log(1 + n·θ̂_uᵀ([F⁻¹]_uu)⁻¹θ̂_u): how far m episodes move the statistic of each unit (masks [units, d])."""
    inverse = jnp.linalg.inv(num_episodes * information + jnp.eye(len(theta)))

    def one(mask: Array) -> Array:
        block = jnp.where(mask[:, None] & mask[None, :], inverse, jnp.eye(len(theta)))
        effect = jnp.where(mask, theta, 0.0)
        return jnp.log1p(effect @ jnp.linalg.solve(block, effect))

    return jnp.sum(jax.vmap(one)(masks))


def _log_determinant(matrix: Array, chosen: Array) -> Array:
    """log det of the rows and columns chosen by a mask."""
    return jnp.linalg.slogdet(jnp.where(chosen[:, None] & chosen[None, :], matrix, jnp.eye(len(chosen))))[1]


# -- What episodes tell about a policy's parameters, without densities of the world: the mean over the episodes seen.


def information_per_episode(space: PolicySpace, theta: np.ndarray, seen: Trajectories) -> np.ndarray:
    """E[Σ_t F(θ, s_t)] of an episode, where the episodes come from [d, d]."""
    mask = np.asarray(seen.mask, dtype=bool)
    features, actions = np.asarray(seen.features)[mask], np.asarray(seen.actions)[mask]
    root = np.asarray(space.information_root(np.asarray(theta), features[None], actions[None]))
    rows = root.reshape(-1, root.shape[-1])
    information: np.ndarray = rows.T @ rows / len(mask)
    return information


# -- Designs: ways of choosing the next configuration, each with the reasons for its choice.


@final
@dataclass(frozen=True, eq=False)
class DesignProblem:
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

    def propose(self, question: DesignProblem) -> Proposal:
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

    def propose(self, question: DesignProblem) -> Proposal:
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

    def propose(self, question: DesignProblem) -> Proposal:
        """Climb in stages; at each, the sample is simulated at the point that was reached."""
        world, space, box = question.with_densities, question.space, question.box
        masks = np.zeros((len(space.tested), space.num_parameters), dtype=bool)
        for row, u in enumerate(question.units):
            masks[row, list(space.groups[u].indices)] = True
        others = space.free_mask(space.full_support) & ~masks.any(axis=0)
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

    def propose(self, question: DesignProblem) -> Proposal:
        """The uniform configuration."""
        return without_reasons(self.name, question, question.world.uniform_configuration(question.key))


@final
@dataclass(frozen=True)
class NoReconfiguration:
    """No configuration at all: watch longer where the data are from."""

    name: str = "none"
    joint: bool = True

    def propose(self, question: DesignProblem) -> Proposal:
        """The configuration of the data."""
        return without_reasons(self.name, question, question.logged.configuration)


DESIGNS: Mapping[str, Callable[..., Design]] = {
    "d-optimal": Information,
    "noncentrality": partial(Information, "noncentrality"),
    "paper": PaperObjective,
    "uniform": Uniform,
    "none": NoReconfiguration,
}


def without_reasons(name: str, question: DesignProblem, omega: Configuration) -> Proposal:
    """A configuration that was not chosen for what it would tell."""
    path = np.asarray(question.box.vector(omega))[None]
    plain = {name: np.asarray(value) for name, value in omega.items()}
    return Proposal(plain, name, question.names, 0.0, 0.0, 0.0, float(question.num_episodes), 1.0, path, np.zeros(1))


def _choose(
    values: Array, kept: ObjectiveTerms, num_episodes: int, smallest_share: float, last_point: bool
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
    question: DesignProblem,
    points: np.ndarray,
    values: np.ndarray,
    kept: ObjectiveTerms,
    chosen: tuple[int, int],
    warnings: list[str],
) -> Proposal:
    at = {name: float(getattr(kept, name)[chosen]) for name in ObjectiveTerms._fields}
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

    def evaluate(vector: Array) -> tuple[Array, ObjectiveTerms]:
        return paper_objective(world, logged, box.configuration(vector), penalty)

    return bounded_adam(evaluate, starts, *box.bounds, num_updates, learning_rate)


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

    def evaluate(vector: Array) -> tuple[Array, ObjectiveTerms]:
        information, whole = expected_information(world, logged, box.configuration(vector))
        if criterion == "d-optimal":
            value = log_det_gain(information, masks.any(axis=0), others, num_episodes)
        else:
            value = noncentrality_gain(information, theta, masks, num_episodes)
        return value, ObjectiveTerms(value, jnp.zeros(()), effective_sample_size(whole), largest_weight(whole))

    points, values, kept = bounded_adam(evaluate, start[None], *box.bounds, num_updates, learning_rate)
    return points[0], values[0], jax.tree.map(lambda leaf: leaf[0], kept)


# -- Designs for any world that can be played: they need episodes or nothing, and no densities.


@final
@dataclass(frozen=True)
class SpaceFilling:
    """Fills the box of configurations evenly: the point of a Sobol sequence that, with all earlier ones, does it best.

    Evenness is the centred L²-discrepancy of the points, the smaller the better.
    """

    num_candidates: int = 64
    name: str = "space-filling"
    joint: bool = True

    def propose(self, question: DesignProblem) -> Proposal:
        """argmin over candidates of the discrepancy of the earlier configurations and the candidate."""
        low, high = question.box.bounds
        before = [np.asarray(question.box.vector(dict(omega))) for omega in question.earlier]
        seen = np.clip((np.reshape(before, (-1, len(low))) - low) / (high - low), 0.0, 1.0)
        candidates = sobol(len(low), self.num_candidates, generator(question.key))
        uneven = [qmc.discrepancy(np.vstack([seen, point])) for point in candidates]
        point = low + (high - low) * candidates[int(np.argmin(uneven))]
        return without_reasons(self.name, question, question.box.configuration(point))


@final
@dataclass(frozen=True)
class Simulated:
    """Where the estimated policy, simulated in candidate configurations, would tell most about the undecided units.

    The first candidates fill the box, and where the data come from is one of them; those of the next stages lie around the
    best, twice as close each time. All candidates of a stage are simulated with the same random numbers. The best is
    simulated anew in every stage and judged by all its episodes, so that luck does not keep it. A candidate that cannot
    be played tells nothing.
    """

    num_candidates: int = 16
    num_stages: int = 3
    num_simulated: int = 8  # episodes of a candidate in a stage
    name: str = "simulated"
    joint: bool = True

    def propose(self, question: DesignProblem) -> Proposal:
        """argmax over candidates of log det of what m episodes tell about the undecided units beyond the others."""
        low, high = question.box.bounds
        rng = generator(question.key)
        home = np.asarray(question.box.vector(question.logged.configuration), dtype=np.float64)
        unit = (home - low) / (high - low)
        points = np.vstack([unit, sobol(len(low), self.num_candidates, rng)])
        failed: list[CannotBePlayed] = []
        told = self._simulated(question, points, 0, failed)
        if len(failed) == len(points):
            raise failed[-1]
        # A guess worth one typical episode, so that the unit in which a feature is measured does not matter.
        typical = np.mean([np.diag(one) for one in told], axis=0)
        guess = np.diag(np.where(typical > 0, typical, 1.0))
        before = value = gain(question, told[0], guess)
        values, path, evaluations = [before], [home], 0
        for stage in range(1, self.num_stages + 1):
            gains = [gain(question, one, guess) for one in told]
            best = int(np.argmax(gains))
            unit, known, value = points[best], told[best], gains[best]
            evaluations = evaluations + 1 if best == 0 else 1
            values.append(value)
            path.append(low + (high - low) * unit)
            if stage == self.num_stages:
                break
            nearby = unit + (sobol(len(low), self.num_candidates, rng) - 0.5) / 2**stage
            points = np.vstack([unit, np.clip(nearby, 0.0, 1.0)])
            told = self._simulated(question, points, stage, failed)
            told[0] = (evaluations * known + told[0]) / (evaluations + 1)
        omega = {name: np.asarray(entry) for name, entry in question.box.configuration(path[-1]).items()}
        left_out = f"{len(failed)} of the simulated configurations could not be played and were excluded; in one, "
        return Proposal(
            omega, self.name, question.names, value, value, 0.0, float(self.num_simulated), 1.0, np.array(path),
            np.array(values), [f"{left_out}{failed[0]}"] if failed else [],
        )  # fmt: skip

    def _simulated(
        self, question: DesignProblem, points: np.ndarray, stage: int, failed: list[CannotBePlayed]
    ) -> list[np.ndarray]:
        """F̂ of one episode at every point [d, d], under common random numbers; zero where there is none."""
        low, high = question.box.bounds
        key = jax.random.fold_in(question.key, stage)
        told = []
        for point in points:
            omega = question.box.configuration(low + (high - low) * point)
            try:
                seen = question.world.simulate(question.space, question.theta, omega, key, self.num_simulated)
                told.append(information_per_episode(question.space, question.theta, seen))
            except CannotBePlayed as error:
                failed.append(error)
                told.append(np.zeros(2 * (question.space.num_parameters,)))
        return told


ANYWHERE: Mapping[str, Callable[..., Design]] = {
    "simulated": Simulated,
    "space-filling": SpaceFilling,
    "uniform": Uniform,
    "none": NoReconfiguration,
}
"""The designs that every world allows."""


def default_design(world: Configurable) -> Design:
    """The joint design that fits a world: by densities where there are some."""
    return Information() if isinstance(world, ConfMDP) else Simulated()


def gain(question: DesignProblem, information: np.ndarray, guess: np.ndarray) -> float:
    """log det(mF + G) − log det(mF + G)|others over the parameters of the undecided units, G the information of a guess."""
    space = question.space
    units = np.zeros(space.num_parameters, dtype=bool)
    for u in question.units:
        units[list(space.groups[u].indices)] = True
    free = space.free_mask(space.full_support)
    matrix = question.num_episodes * information + guess
    return max(0.0, _log_det(matrix, free) - _log_det(matrix, free & ~units) - _log_det(guess, units))


def sobol(dimension: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """The first points of a scrambled Sobol sequence in the unit cube [count, p]; a power of two of them is balanced."""
    points: np.ndarray = qmc.Sobol(dimension, rng=rng).random(count)
    return points


def _log_det(matrix: np.ndarray, chosen: np.ndarray) -> float:
    return float(np.linalg.slogdet(matrix[np.ix_(chosen, chosen)])[1])
