"""Agents that learn by policy gradient (G(PO)MDP), and their files."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import optax

from policyspace import __version__
from policyspace.data.validation import explain_arguments
from policyspace.errors import InputError, nearest
from policyspace.families.base import PolicySpace, Support
from policyspace.families.jax_backend import jax, jnp
from policyspace.families.registry import FAMILIES, recorded_space
from policyspace.runtime import check_seed, say_progress
from policyspace.safe_io import parse_json, replacing, settings_text
from policyspace.worlds.base import Array, Configuration, Key, Trajectories
from policyspace.worlds.confmdp import ConfMDP, State, rollout

# -- Adam, by which everything here that is not maximised by Newton's method climbs.


class AdamState(NamedTuple):
    """Where an ascent stands, and Adam's two moments of the gradients so far."""

    point: Array
    moments: Any


def adam_start(point: Array) -> AdamState:
    """An ascent before its first step."""
    return AdamState(point, optax.scale_by_adam().init(point))


def adam_step(state: AdamState, gradient: Array, rate: Any, b2: float = 0.99) -> AdamState:
    """θ ← θ + rate · m̂/(√v̂ + ε), with β₁ = 0.9; where the gradient has always been zero, θ stays as it is."""
    ascent, moments = optax.scale_by_adam(b1=0.9, b2=b2).update(gradient, state.moments)
    return AdamState(state.point + rate * ascent, moments)


def adam_ascent(
    slope: Callable[[Array, Any], tuple[Array, Any]],
    start: Array,
    rates: Array,
    steps: Any = None,
    b2: float = 0.99,
    project: Callable[[Array], Array] = lambda point: point,
) -> tuple[Array, Any]:
    """The last point of an ascent with one step a rate, and what was kept of each step.

    `slope(point, step)` gives the gradient and what is kept, `step` being a row of `steps`; `project` brings a point back
    to where it may be.
    """

    def step(state: AdamState, now: Any) -> tuple[AdamState, Any]:
        rate, given = now
        gradient, kept = slope(state.point, given)
        state = adam_step(state, gradient, rate, b2)
        return state._replace(point=project(state.point)), kept

    (last, _), kept = jax.lax.scan(step, adam_start(start), (rates, steps))
    return last, kept


# -- G(PO)MDP: the gradient of the expected return, summed step by step while an agent's episodes run; nothing is kept.

FEW = 5
"""A fifth of the episodes go on alone: fewer would be worth little, for a step has costs of its own."""


class EpisodeBatch(NamedTuple):
    """Where a batch of episodes stands before step t."""

    t: Array
    states: State  # along the last axis
    alive: Array  # [m]
    scores: Array  # S_t of each episode [d, m]
    gradient: Array  # [d], of the steps so far, summed over episodes
    total_return: Array  # the discounted rewards so far, summed over episodes


class Ended(NamedTuple):
    """What episodes that have ended add to the sums of every later step."""

    scores: Array  # Σ S [d]
    squares: Array  # Σ S² [d]


def policy_gradient(
    world: ConfMDP, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
) -> tuple[Array, Array]:
    """∇̂J(θ) = (1/m) Σ_i Σ_t S_{i,t} ⊙ (γ^t r_{i,t} − b_t) [d] and the mean return, from m fresh episodes of π_θ at ω.

    The episodes are those of `rollout`, but for the chance of the few that go on alone.
    """
    episodes = world.begin(space, theta, configuration, key, num_episodes)
    size, few = space.num_parameters, num_episodes // FEW

    def step(running: EpisodeBatch, chances: Array, ended: Ended | None) -> EpisodeBatch:
        t, states, alive, scores, gradient, total_return = running
        happened = episodes.step(chances[t], states)
        left, right = space.score_factors(theta, happened.features.T, happened.actions)
        left = jnp.where(alive[:, None], left, 0.0)
        scores = scores + (left.T[:, None, :] * right.T[None, :, :]).reshape(scores.shape)
        rewards = jnp.where(alive, world.discount**t * happened.rewards, 0.0)
        gradient = gradient + step_gradient(scores, rewards, ended)
        states = jax.tree.map(lambda new, old: jnp.where(alive, new, old), happened.states, states)
        return EpisodeBatch(t + 1, states, alive & ~happened.ended, scores, gradient, total_return + jnp.sum(rewards))

    def more_than(number: int) -> Any:
        return lambda running: (running.t < world.horizon) & (jnp.sum(running.alive) > number)

    scores, alive = jnp.zeros((size, num_episodes)), jnp.ones(num_episodes, bool)
    running = EpisodeBatch(jnp.zeros((), int), episodes.states, alive, scores, jnp.zeros(size), jnp.zeros(()))
    running = jax.lax.while_loop(more_than(few), lambda running: step(running, episodes.chances, None), running)
    if few:
        running, chances, ended = _few_left(running, episodes.chances, few)
        running = jax.lax.while_loop(more_than(0), lambda running: step(running, chances, ended), running)
    return running.gradient / num_episodes, running.total_return / num_episodes


def step_gradient(scores: Array, rewards: Array, ended: Ended | None) -> Array:
    """Σ_i S ⊙ (γ^t r − b) [d] of one step t, from scores [d, m] and γ^t r [m]; b = Σ S² γ^t r / Σ S²."""
    # A constant makes no difference under the baseline: without it, equal rewards give no gradient, not its rounding.
    constant, rewards = rewards[0], rewards - rewards[0]
    # XLA adds rows up one number after the other, but multiplies them by a vector several numbers at a time.
    squares, ones = scores * scores, jnp.ones_like(rewards)
    total, power = scores @ ones, squares @ ones
    gain, paired = scores @ rewards, squares @ rewards
    if ended is not None:  # their reward is 0
        total, power = total + ended.scores, power + ended.squares
        gain, paired = gain - constant * ended.scores, paired - constant * ended.squares
    # A parameter without any score yet has no baseline, and needs none.
    b = jnp.where(power > 0, paired, 0.0) / jnp.where(power > 0, power, 1.0)
    return gain - b * total


def cumulative_scores(space: PolicySpace, theta: Array, trajectories: Trajectories) -> Array:
    """S_{i,t} = Σ_{j≤t} ∇log π_θ(a_{i,j}|s_{i,j}) [m, T, d]; after an episode's end it stays what it was."""
    features, actions, mask = map(jnp.asarray, (trajectories.features, trajectories.actions, trajectories.mask))
    left, right = space.score_factors(jnp.asarray(theta), features, actions)
    scores = jnp.where(mask[..., None], left, 0.0)[..., :, None] * right[..., None, :]
    return jnp.cumsum(scores.reshape(*scores.shape[:2], -1), axis=1)


def _few_left(running: EpisodeBatch, chances: Array, few: int) -> tuple[EpisodeBatch, Array, Ended]:
    """The few episodes that go on, the chances of their steps, and what the others leave behind."""
    kept = jnp.argsort(~running.alive, stable=True)[:few]
    scores = running.scores[:, kept]
    squares = running.scores * running.scores
    ended = Ended(
        jnp.sum(running.scores, axis=1) - jnp.sum(scores, axis=1),
        jnp.sum(squares, axis=1) - jnp.sum(scores * scores, axis=1),
    )
    states = jax.tree.map(lambda leaf: leaf[..., kept], running.states)
    # Keys serve any number of episodes; random bits belong to one each.
    of_all = jnp.issubdtype(chances.dtype, jax.dtypes.prng_key)
    remaining = running._replace(states=states, alive=running.alive[kept], scores=scores)
    return remaining, chances if of_all else chances[:, kept], ended


# -- Agents that learn in a world, inside the policy space that they control: well, or by G(PO)MDP with Adam.

CHUNK = 10
"""Learning steps that run as one compiled call: between calls progress is told, and Ctrl-C is heard."""

Stop = Callable[[np.ndarray], bool]
"""Whether the learning curve so far is reason enough to stop."""
Progress = Callable[[int, int, np.ndarray], None]
"""Told after every chunk: the steps done, the steps wanted, the learning curve so far."""


@final
@dataclass(frozen=True)
class Learning:
    """How agents of a world learn: steps, episodes a step, Adam's rate, and the interval of the starting weights.

    The rate goes from `learning_rate` at the first step down a straight line to the part `decay` of it at the last.
    """

    num_steps: int
    num_episodes: int
    learning_rate: float
    start: tuple[float, float] = (0.0, 0.0)
    decay: float = 1.0


WELL = {
    "gridworld": "policyspace.worlds.gridworld:learn_exactly",
    "continuous-gridworld": "policyspace.worlds.continuous_gridworld:learn_pathwise",
}
"""Where agents of a world learn better than G(PO)MDP lets them, by what a simulator knows and an agent does not."""

PHASES = ("continuous-gridworld",)
"""Those of them whose learning curves have a number for each phase that was kept, and the first, not for each step."""

LEARNING = {
    "gridworld": Learning(200, 250, 0.1),
    "continuous-gridworld": Learning(300, 100, 0.01, decay=0.1),  # at 100 steps and the rate 0.1 it hardly learns
    "minigolf": Learning(5000, 500, 0.002, (0.0, 0.1), decay=0.0),  # what it takes to come near the best return
    "car": Learning(100, 50, 0.03, (-0.01, 0.01)),
}
"""G(PO)MDP by the paper's settings, and where it gives none or they do not learn, ours."""
OTHER_WORLDS = Learning(200, 250, 0.05, (-0.01, 0.01))


@final
@dataclass(frozen=True, eq=False)
class Agent:
    """π_θ as it was learned in a world at ω; parameters outside `controls` are exactly at their fixed values."""

    world: str
    space: PolicySpace
    controls: tuple[str, ...]  # the groups that it controls, the paper's I*, by name
    theta: np.ndarray  # [d]
    configuration: dict[str, np.ndarray]
    learning_curve: np.ndarray  # the mean discounted return before each learning step, or after each phase
    seed: int | None = None
    returns: dict[str, float] | None = None  # its return, the best known one in its space, and the distance

    @property
    def support(self) -> Support:
        """I* as indices of groups."""
        return support_of(self.space, self.controls)

    def act(self, world: ConfMDP, configuration: Configuration, key: Key, num_episodes: int) -> Trajectories:
        """Episodes of the agent in its world at ω."""
        return rollout(world, self.space, self.theta, configuration, key, num_episodes)


@explain_arguments
def learn(
    world: ConfMDP,
    space: PolicySpace | None = None,
    controls: Iterable[str] | None = None,
    configuration: Mapping[str, Any] | None = None,
    key: Key | int = 0,
    num_steps: int | None = None,
    num_episodes: int | None = None,
    learning_rate: float | None = None,
    start: np.ndarray | None = None,
    stop: Stop | None = None,
    progress: Progress | None = None,
    decay: float | None = None,
) -> Agent:
    """An agent that climbs J_ω(θ) inside Θ_{I*}: θ ← θ + Adam(∇̂J).

    If nothing is said about the learning, agents of the worlds in `WELL` learn as that says, others by G(PO)MDP with the
    settings of `LEARNING`, from the world's own first weights if it has such. All of which anything is said learn by
    G(PO)MDP. Calls that share world and space objects share the compiled code, whatever the controls, the configuration
    and the numbers.

    Parameters
    ----------
    world : ConfMDP
        Where it learns.
    space : PolicySpace, optional
        Its policies; by default the world's.
    controls : iterable of str, optional
        The features that it may use; by default the world's.
    configuration : mapping, optional
        ω; by default the world's.
    key : int or jax.random.key
        What chance is drawn from.
    num_steps, num_episodes : int, optional
        How many steps of Adam, and episodes a step.
    learning_rate, decay : float, optional
        The rate, and what is left of it at the end.
    start : array of shape (d,), optional
        A θ to go on from.
    stop : callable, optional
        Told the returns of all steps so far, says whether that is enough: `plateau`, `stop_at_return`.
    progress : callable, optional
        Told the number of steps that are done and wanted.

    Returns
    -------
    Agent
        θ, the features that it controls, and its returns while it learned.

    Raises
    ------
    InputError
        If there is no such feature, or ω is out of its bounds.

    Examples
    --------
    >>> import policyspace
    >>> world = policyspace.make_world("gridworld")
    >>> agent = policyspace.learn(world, controls=world.feature_names[:2], num_steps=2, num_episodes=5)
    >>> len(agent.learning_curve), agent.controls == world.feature_names[:2]
    (2, True)
    """
    space = world.policy_space() if space is None else space
    omega = world.check_configuration(world.default_configuration() if configuration is None else configuration)
    support = support_of(space, world.true_controls if controls is None else controls)
    free, chance = space.free_mask(support), jax.random.key(key) if isinstance(key, int) else key
    if all(said is None for said in (num_steps, num_episodes, learning_rate, start, stop, decay)):
        if _in_own_space(world, space):
            module, _, name = WELL[world.name].partition(":")
            theta, curve = getattr(import_module(module), name)(world, space, free, omega, chance)
            return _agent(world, space, support, theta, omega, curve, key)
        start = world.first_weights(space, omega)
    settings = _settings(world, num_steps, num_episodes, learning_rate, decay)
    theta, curve = _climb(world, space, free, omega, chance, settings, start, stop, progress)
    return _agent(world, space, support, theta, omega, curve, key)


def stop_at_return(target: float, window: int = 10) -> Stop:
    """Stop once the mean return of the last `window` steps is at least `target`."""
    return lambda curve: len(curve) >= window and float(curve[-window:].mean()) >= target


def plateau(patience: int = 50, tolerance: float = 0.01) -> Stop:
    """Stop once `patience` steps gain no more than the part `tolerance` of everything gained before them."""

    def flat(curve: np.ndarray) -> bool:
        if len(curve) < 3 * patience:
            return False
        first, before, now = (
            float(part.mean()) for part in (curve[:10], curve[-2 * patience : -patience], curve[-patience:])
        )
        return now - before <= tolerance * max(before - first, 0.0)

    return flat


def support_of(space: PolicySpace, names: Iterable[str]) -> Support:
    """The support I that names stand for; an unknown name is an error that tells the nearest one."""
    known = {group.name: i for i, group in enumerate(space.groups)}
    support = []
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no feature '{name}' to control: {nearest(name, space.named(space.full_support))}"
            )
        support.append(known[name])
    return frozenset(support) | {i for i, group in enumerate(space.groups) if group.assumed}


def _in_own_space(world: ConfMDP, space: PolicySpace) -> bool:
    """Whether agents of this world and this space have a better way to learn than G(PO)MDP."""
    if world.name not in WELL:
        return False
    own = world.policy_space()
    return space.describe() == own.describe() and tuple(space.feature_names) == tuple(own.feature_names)


def _agent(
    world: ConfMDP,
    space: PolicySpace,
    support: Support,
    theta: np.ndarray,
    omega: Configuration,
    curve: np.ndarray,
    key: Key | int,
) -> Agent:
    """The agent that has learned."""
    configuration = {name: np.asarray(value) for name, value in omega.items()}
    seed = key if isinstance(key, int) else None
    return Agent(world.name, space, tuple(space.named(support)), theta, configuration, curve, seed)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _advance(
    world: ConfMDP,
    space: PolicySpace,
    num_episodes: int,
    learner: AdamState,
    key: Key,
    free: Array,
    configuration: Configuration,
    rates: Array,
    first: Array,
    count: Array,
) -> tuple[AdamState, Array]:
    """`count` ≤ CHUNK learning steps from step `first` on, and the mean return before each."""

    def step(i: Array, carry: tuple[AdamState, Array]) -> tuple[AdamState, Array]:
        state, curve = carry
        # The key of a step depends on its number alone, not on how steps are cut into chunks.
        draw = jax.random.fold_in(key, first + i)
        gradient, mean_return = policy_gradient(world, space, state.point, configuration, draw, num_episodes)
        return adam_step(state, jnp.where(free, gradient, 0.0), rates[i]), curve.at[i].set(mean_return)

    return jax.lax.fori_loop(0, count, step, (learner, jnp.zeros(CHUNK)))


def _climb(
    world: ConfMDP,
    space: PolicySpace,
    free: np.ndarray,
    omega: Configuration,
    key: Key,
    settings: Learning,
    start: np.ndarray | None,
    stop: Stop | None,
    progress: Progress | None,
) -> tuple[np.ndarray, np.ndarray]:
    """θ by G(PO)MDP, and the mean return before each step: the loop over chunks."""
    starting, stepping = jax.random.split(key)
    theta = jnp.asarray(np.where(free, _start(space, settings, start, starting), space.fixed))
    learner, mask = adam_start(theta), jnp.asarray(free)
    curve, done = np.zeros(0), 0
    while done < settings.num_steps and not (stop is not None and stop(curve)):
        count = min(CHUNK, settings.num_steps - done)
        progressed = np.arange(done, done + CHUNK) / max(settings.num_steps - 1, 1)
        rates = settings.learning_rate * (1.0 + (settings.decay - 1.0) * progressed)
        episodes = settings.num_episodes
        learner, returns = _advance(world, space, episodes, learner, stepping, mask, omega, rates, done, count)
        curve = np.concatenate([curve, np.asarray(returns)[:count]])
        done += count
        say_progress(f"learning, return {curve[-10:].mean():.4g}", done, settings.num_steps)
        if progress is not None:
            progress(done, settings.num_steps, curve)
    found = np.asarray(learner.point)
    if not np.isfinite(found).all():
        raise InputError(f"learning diverged at the rate {settings.learning_rate:g}: choose a smaller one.")
    return found, curve


def _start(space: PolicySpace, settings: Learning, start: np.ndarray | None, key: Key) -> np.ndarray:
    """Starting weights [d]: those given, or uniform on the interval of the settings."""
    shape = (space.num_parameters,)
    if start is None:
        return np.asarray(jax.random.uniform(key, shape, jnp.float64, *settings.start))
    given = np.asarray(start, dtype=np.float64)
    if given.shape != shape or not np.isfinite(given).all():
        raise InputError(f"an agent starts from {shape[0]} finite numbers, found an array of shape {given.shape}.")
    return given


def _settings(
    world: ConfMDP,
    num_steps: int | None,
    num_episodes: int | None,
    learning_rate: float | None,
    decay: float | None = None,
) -> Learning:
    usual = LEARNING.get(world.name, OTHER_WORLDS)
    settings = Learning(
        usual.num_steps if num_steps is None else num_steps,
        usual.num_episodes if num_episodes is None else num_episodes,
        usual.learning_rate if learning_rate is None else learning_rate,
        usual.start,
        usual.decay if decay is None else decay,
    )
    if settings.num_steps < 0 or settings.num_episodes < 1 or not 0 < settings.learning_rate < np.inf:
        raise InputError(
            "learning needs 0 steps or more, 1 episode a step or more and a positive rate, found "
            f"{settings.num_steps} steps, {settings.num_episodes} episodes and the rate {settings.learning_rate}."
        )
    return settings


# -- How far an agent is from the best policy known inside what it controls, measured on the same episodes.

NUM_OTHERS = 2
"""Agents that learn for comparison: as their world's agents do, from other chances."""
LONGER = {"car": 600}
"""Where agents do not learn to the end by default, one that does instead, in so many steps."""
NUM_EPISODES = 4000
"""That J is the mean of."""
FAR = 0.25
"""The share of what can be learned, beyond which an agent that lacks it is said to."""


class Returns(NamedTuple):
    """J of an agent and of the best policy known in its space, and how far the first is below the second."""

    agent: float
    best_known: float
    unlearned: float  # J of an agent whose weights are all at their fixed values
    standard_error: float  # of the agent's J
    distance_error: float  # of the distance: all act in the same episodes

    @property
    def distance(self) -> float:
        """How much better the best known policy is; zero if it is the agent's."""
        return self.best_known - self.agent

    @property
    def learned(self) -> float:
        """The share of what can be learned that the agent has: all of it, where the rest is no more than chance."""
        if self.distance <= 2.0 * self.distance_error:
            return 1.0
        return max(0.0, 1.0 - self.distance / max(self.best_known - self.unlearned, self.distance))

    @property
    def far(self) -> bool:
        """Whether the agent is far from the best known policy."""
        return self.learned < 1.0 - FAR

    def to_dict(self) -> dict[str, float]:
        """As a file keeps it."""
        return {"agent": self.agent, "best_known": self.best_known, "distance": self.distance}


def returns_of(agent: Agent, world: ConfMDP, key: Key) -> Returns:
    """The mean discounted return of an agent at its ω, and that of the best of itself and others that learned there.

    The others control the same and learn as agents of the world do; or one learns longer, as LONGER says. All are measured
    on as many episodes, from the same random numbers.
    """
    steps = LONGER.get(world.name)
    fresh, acting = jax.random.split(key)
    keys = [jax.random.fold_in(fresh, number) for number in range(NUM_OTHERS if steps is None else 1)]
    others = [
        learn(world, agent.space, agent.controls, agent.configuration, own, num_steps=steps).theta for own in keys
    ]
    omega = world.check_configuration(agent.configuration)
    own, *rivals, nothing = (
        rollout(world, agent.space, theta, omega, acting, NUM_EPISODES).returns(world.discount)
        for theta in (agent.theta, *others, agent.space.fixed)
    )
    best = max((own, *rivals), key=lambda returns: float(np.mean(returns)))
    values = [float(np.mean(returns)) for returns in (own, best, nothing)]
    errors = [float(np.std(returns) / np.sqrt(NUM_EPISODES)) for returns in (own, best - own)]
    return Returns(*values, *errors)


# -- Agents in files: one JSON text, readable by people and by any language, never pickled.

FORMAT = "policyspace agent 1"


def save_agent(agent: Agent, path: str | Path) -> None:
    """An agent into a file: the whole file appears at once, or nothing changes."""
    space = agent.space
    said = space.describe()
    if said["family"] not in FAMILIES or said.get("covariance") == "estimate":
        raise InputError(
            f"a space that can be written to a file is one of {', '.join(FAMILIES)}, with a known covariance, found a "
            f"{type(space).__name__}."
        )
    content = {
        "format": FORMAT,
        "version": __version__,
        "world": agent.world,
        "controls": list(agent.controls),
        "configuration": {name: np.asarray(value).tolist() for name, value in agent.configuration.items()},
        "seed": agent.seed,
        "returns": agent.returns,
        "policy": said,
        "features": list(space.feature_names),
        "actions": list(space.action_names),
        "groups": [{"name": g.name, "indices": list(g.indices), "assumed": g.assumed} for g in space.groups],
        "fixed": space.fixed.tolist(),
        "theta": agent.theta.tolist(),
        "learning_curve": agent.learning_curve.tolist(),
    }
    with replacing(path) as file:
        file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def load_agent(path: str | Path, world: ConfMDP | None = None) -> Agent:
    """The agent in a file; with `world`, it must be one that learned there."""
    path = Path(path)
    try:
        content = parse_json(settings_text(path))
    except InputError as error:
        reason = str(error).rstrip(".")
        raise InputError(f"'{path}' is not a saved agent ({reason}): write one with --save-agent.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"'{path}' is not a saved agent ('{FORMAT}'): write one with --save-agent.")
    if world is not None and content.get("world") != world.name:
        raise InputError(
            f"the agent in '{path}' learned in the world '{content.get('world')}', not in '{world.name}': "
            "simulate it there, or load another agent."
        )
    try:
        agent = _agent_of_file(content)
        _check(agent, world)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        reason = str(error).rstrip(".") if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise InputError(f"the agent file '{path}' is damaged ({reason}): save the agent again.") from error
    return agent


def _agent_of_file(content: Mapping[str, Any]) -> Agent:
    """An agent from what its file says."""
    space = recorded_space(
        content["policy"], content["features"], content["actions"], content["groups"], content["fixed"]
    )
    return Agent(
        world=content["world"],
        space=space,
        controls=tuple(content["controls"]),
        theta=np.asarray(content["theta"], dtype=np.float64),
        configuration={name: np.asarray(v, dtype=np.float64) for name, v in content["configuration"].items()},
        learning_curve=np.asarray(content["learning_curve"], dtype=np.float64),
        seed=content["seed"],
        returns=content.get("returns"),
    )


def _check(agent: Agent, world: ConfMDP | None) -> None:
    """What the parts of an agent must agree on."""
    check_seed(0 if agent.seed is None else agent.seed)
    space, size = agent.space, agent.space.num_parameters
    support = support_of(space, agent.controls)
    if sorted(i for group in space.groups for i in group.indices) != list(range(size)):
        raise ValueError("its groups are no partition of its parameters")
    if agent.theta.shape != (size,) or not np.isfinite(agent.theta).all():
        raise ValueError(f"it needs {size} finite parameters")
    if not np.array_equal(agent.theta[~space.free_mask(support)], space.fixed[~space.free_mask(support)]):
        raise ValueError("it moves parameters that it does not control")
    if agent.learning_curve.ndim != 1 or not np.isfinite(agent.learning_curve).all():
        raise ValueError("its learning curve is not a list of finite numbers")
    if agent.returns is not None and not (
        set(agent.returns) == {"agent", "best_known", "distance"} and np.isfinite([*agent.returns.values()]).all()
    ):
        raise ValueError("its returns are not those of the agent and of the best policy known")
    if world is not None:
        if tuple(space.feature_names) != tuple(world.feature_names):
            raise ValueError(f"its features are not those of this {world.name}")
        if tuple(space.action_names) != tuple(world.action_names):
            raise ValueError(f"its actions are not those of this {world.name}")
        world.check_configuration(agent.configuration)
