"""What inverse reinforcement learning loses by a vanishing gradient in coordinates that the agent does not control.

python -m benchmarks.rewards

Agents of the grid world learn exactly, each in the coordinates of its own features (each of 16 with probability ½), for a
reward that weighs reaching the goal against stepping into mud. Their logs give the weights back: by the gradient in the
coordinates of the features that were identified, of the true ones, and of all. Then an agent that controls everything learns
by the recovered reward, and loses return against one that learns by the true reward.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import policyspace
from policyspace.families.jax_backend import jax, jnp
from policyspace.worlds.agents import adam_ascent, support_of
from policyspace.worlds.confmdp import rollout
from policyspace.worlds.gridworld import Gridworld

REWARDS = ("time", "mud")
WORLD = Gridworld()
SPACE = WORLD.policy_space()
MUD = (np.abs(WORLD.states()[:, 0] - WORLD.size // 2) + np.abs(WORLD.states()[:, 1] - WORLD.size // 2)) <= 1
"""The cells in the middle."""


def step_values():
    """What a step into each state adds: −1 unless it is the goal, and −1 in the mud [n⁴, 2]."""
    return jnp.stack(
        [jnp.where(jnp.asarray(WORLD.on_goal()), 0.0, -1.0), jnp.where(jnp.asarray(MUD), -1.0, 0.0)], axis=1
    )


def expected(theta, weights, configuration):
    """The exact discounted return of w·r from the start states."""
    successors = jnp.asarray(WORLD.successors())
    goes_on = jnp.where(jnp.asarray(WORLD.on_goal())[successors], 0.0, 1.0)
    gain, chances = (step_values() @ weights)[successors], WORLD.action_probabilities(SPACE, theta)
    start = jnp.exp(jax.vmap(WORLD.log_initial, (0, None))(jnp.asarray(WORLD.states()), configuration))

    def back_up(value, _):
        return jnp.sum(chances * (gain + WORLD.discount * goes_on * value[successors]), axis=1), None

    value, _ = jax.lax.scan(back_up, jnp.zeros(WORLD.num_states), None, length=WORLD.horizon)
    # An episode that begins on the goal is played all the same.
    return start @ value


@jax.jit
def learned(theta, free, weights, configuration):
    """A policy that climbs the exact return in its own coordinates, and its return."""
    slope = jax.grad(expected)

    def climb(point, _):
        return jnp.where(free, slope(point, weights, configuration), 0.0) - 1e-4 * jnp.where(free, point, 0.0), 0.0

    best, _ = adam_ascent(climb, theta, jnp.geomspace(0.2, 0.02, 600))
    return best, expected(best, weights, configuration)


@dataclass(frozen=True)
class Agent:
    """What it controls, what it is after, and how it plays."""

    controls: tuple[str, ...]
    weights: np.ndarray
    theta: np.ndarray


def agent(seed):
    """A random agent after random weights."""
    rng = np.random.default_rng(seed)
    controls = tuple(name for name in WORLD.feature_names if rng.random() < 0.5)
    mud = rng.uniform(0.2, 0.8)
    weights = np.array([1 - mud, mud])
    free = SPACE.free_mask(support_of(SPACE, controls))
    start = np.where(free, rng.normal(size=SPACE.num_parameters) * 0.3, 0.0)
    theta, _ = learned(start, free, weights, WORLD.default_configuration())
    return Agent(controls, weights, np.asarray(theta))


def logged(one, num_episodes, seed):
    """Its episodes as a sample, and the reward features of every step."""
    seen = rollout(WORLD, SPACE, one.theta, WORLD.default_configuration(), jax.random.key(seed), num_episodes)
    mask = np.asarray(seen.mask)
    after = np.asarray(WORLD.state_index(np.asarray(seen.states)))[:, 1:]
    values = np.asarray(step_values())[after]
    return seen.pairs(WORLD.feature_names, WORLD.action_names), {
        name: values[..., k][mask] for k, name in enumerate(REWARDS)
    }


class Result(NamedTuple):
    """Of one agent and one way: the error of the weights, whether the interval holds the truth, and the lost return."""

    error: float
    covered: bool
    regret: float


def regret(one, weights, seed=0):
    """The true return that an agent in control of everything loses by learning for other weights."""
    everything = np.ones(SPACE.num_parameters, dtype=bool)
    start = 0.3 * np.random.default_rng(seed).normal(size=SPACE.num_parameters)
    omega = WORLD.default_configuration()
    best = learned(start, everything, one.weights, omega)[1]
    by_them = learned(start, everything, np.asarray(weights), omega)[0]
    return float(best - expected(by_them, one.weights, omega))


WAYS = {
    "identified": {},
    "true": None,
    "all": {"answer": "all"},
}
"""The space in whose coordinates the gradient must vanish; of `true` the agent's own."""


def run(seed, num_episodes, bootstrap=100):
    """All ways of one agent."""
    one = agent(seed)
    sample, parts = logged(one, num_episodes, seed)
    found = {}
    for name, words in WAYS.items():
        said = {"answer": list(one.controls)} if words is None else words
        made = policyspace.reward(
            sample, reward_features=parts, discount=WORLD.discount, bootstrap=bootstrap, seed=seed, **said
        )
        mud = made.weights["mud"]
        error = mud.weight - one.weights[1]
        inside = mud.low <= one.weights[1] <= mud.high
        found[name] = Result(error, bool(inside), regret(one, [1 - mud.weight, mud.weight]))
    return found


def main(num_agents=25, sizes=(300, 1000, 3000)):
    """A table: root mean square error of the weight, coverage of its interval, and the regret."""
    print("episodes  coordinates  error of the weight   95 % intervals that hold it   return lost")
    for size in sizes:
        results = [run(seed, size) for seed in range(num_agents)]
        for name in WAYS:
            own = [one[name] for one in results]
            errors = np.array([r.error for r in own])
            print(
                f"{size:>8}  {name:>11}  {np.sqrt((errors**2).mean()):.3f} (mean {errors.mean():+.3f})   "
                f"{np.mean([r.covered for r in own]):.2f}   {np.mean([r.regret for r in own]):.4f} ± "
                f"{np.std([r.regret for r in own], ddof=1) / np.sqrt(num_agents):.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
