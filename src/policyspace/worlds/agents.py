"""Agents that learn in a world, inside the policy space that they control: well, or by G(PO)MDP with Adam."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, final

import numpy as np
import optax

from policyspace.errors import InputError, nearest
from policyspace.policies import PolicySpace, Support
from policyspace.policies.jax_setup import jax, jnp
from policyspace.progress import say_progress
from policyspace.worlds.confmdp import Array, Configuration, ConfMDP, Key, rollout
from policyspace.worlds.policy_gradient import policy_gradient
from policyspace.worlds.trajectories import Trajectories

CHUNK = 10
"""Learning steps that run as one compiled call: between calls progress is told, and Ctrl-C is heard."""

ADAM = optax.scale_by_adam(b1=0.9, b2=0.99)

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
    "gridworld": "policyspace.worlds.exact_gridworld:learn_exactly",
    "continuous-gridworld": "policyspace.worlds.pathwise_learning:learn_pathwise",
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
    """An agent that climbs J_ω(θ) inside Θ_{I*}: θ ← θ + Adam(∇̂J), for `num_steps` or until `stop` says so.

    What is not given is the world's: its policy space, the controls and the configuration of its defaults. If nothing is
    said about the learning, agents of the worlds in `WELL` learn as that says, others by G(PO)MDP with the settings of
    `LEARNING`, from the world's own first weights if it has such. All of which anything is said learn by G(PO)MDP. `start`
    is a θ to go on from, `decay` what is left of the rate at the end. Calls that share world and space objects share the
    compiled code, whatever the controls, the configuration and the numbers.
    """
    space = world.policy_space() if space is None else space
    omega = world.check_configuration(world.default_configuration() if configuration is None else configuration)
    support = support_of(space, world.true_controls if controls is None else controls)
    free, chance = space.free(support), jax.random.key(key) if isinstance(key, int) else key
    if all(said is None for said in (num_steps, num_episodes, learning_rate, start, stop, decay)):
        if _in_own_space(world, space):
            module, _, name = WELL[world.name].partition(":")
            theta, curve = getattr(import_module(module), name)(world, space, free, omega, chance)
            return _agent(world, space, support, theta, omega, curve, key)
        start = world.first_weights(space, omega)
    settings = _settings(world, num_steps, num_episodes, learning_rate, decay)
    theta, curve = _climb(world, space, free, omega, chance, settings, start, stop, progress)
    return _agent(world, space, support, theta, omega, curve, key)


def reached(target: float, window: int = 10) -> Stop:
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
            raise InputError(f"there is no feature '{name}' to control: {nearest(name, space.named(space.everything))}")
        support.append(known[name])
    return frozenset(support) | {i for i, group in enumerate(space.groups) if group.always}


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


class _Learner(NamedTuple):
    """What one step hands to the next."""

    theta: Array
    moments: Any


@partial(jax.jit, static_argnums=(0, 1, 2))
def _advance(
    world: ConfMDP,
    space: PolicySpace,
    num_episodes: int,
    learner: _Learner,
    key: Key,
    free: Array,
    configuration: Configuration,
    rates: Array,
    first: Array,
    count: Array,
) -> tuple[_Learner, Array]:
    """`count` ≤ CHUNK learning steps from step `first` on, and the mean return before each."""

    def step(i: Array, carry: tuple[_Learner, Array]) -> tuple[_Learner, Array]:
        (theta, moments), curve = carry
        # The key of a step depends on its number alone, not on how steps are cut into chunks.
        draw = jax.random.fold_in(key, first + i)
        gradient, mean_return = policy_gradient(world, space, theta, configuration, draw, num_episodes)
        ascent, moments = ADAM.update(jnp.where(free, gradient, 0.0), moments)
        curve = curve.at[i].set(mean_return)
        return _Learner(jnp.where(free, theta + rates[i] * ascent, theta), moments), curve

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
    learner, mask = _Learner(theta, ADAM.init(theta)), jnp.asarray(free)
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
    found = np.asarray(learner.theta)
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
