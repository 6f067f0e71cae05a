"""What inverse reinforcement learning loses by a vanishing gradient in coordinates that the agent does not control.

python -m benchmarks.rewards [gridworld|minigolf|cart …]

Agents learn, each in the coordinates of its own features, for a reward of two parts: in the grid world time against mud
(exactly, each of 16 features with probability ½), in minigolf strokes against lost balls (as its agents do), in a
Gymnasium environment nearness against effort (the optimum is known). Their logs give the weights back: by the gradient in
the coordinates of the features that were identified, of the true ones, and of all. Then an agent that controls everything
learns by the recovered reward, and loses return against one that learns by the true reward.
"""

import sys
from dataclasses import dataclass
from typing import NamedTuple

import gymnasium
import numpy as np
from scipy.optimize import minimize

import policyspace
from policyspace.families.jax_backend import jax, jnp
from policyspace.worlds.agents import adam_ascent, support_of
from policyspace.worlds.confmdp import rollout
from policyspace.worlds.gridworld import Gridworld
from policyspace.worlds.minigolf import HOLED_ENERGY, Minigolf, deceleration

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


def recovered(sample, parts, weights, controls, lost, seed, **words):
    """All ways of one agent: the error of the second weight, whether its interval holds the truth, and the lost return."""
    found = {}
    for name, more in WAYS.items():
        said = {"answer": list(controls)} if more is None else more
        made = policyspace.reward(sample, reward_features=parts, seed=seed, **said, **words)
        one = made.weights[list(parts)[1]]
        inside = one.low <= weights[1] <= one.high
        found[name] = Result(one.weight - weights[1], bool(inside), lost([1 - one.weight, one.weight]))
    return found


def run(seed, num_episodes):
    """An agent of the grid world."""
    one = agent(seed)
    sample, parts = logged(one, num_episodes, seed)
    return recovered(sample, parts, one.weights, one.controls, lambda w: regret(one, w), seed, discount=WORLD.discount)


# -- Golfers: an agent of the paper's minigolf, for strokes against lost balls.


@dataclass(frozen=True)
class WeighedMinigolf(Minigolf):
    """With weights of a stroke that is short, −1, and of a ball that is lost, −10."""

    weights: tuple[float, float] = (0.5, 0.5)

    def reward(self, state, action, next_state):
        """Their sum."""
        short, lost = self.parts(next_state[0], next_state[1])
        return self.weights[0] * short + self.weights[1] * lost

    @staticmethod
    def parts(x, f):
        """Of the state after a stroke."""
        lost = (x <= 0) & (-2.0 * deceleration(f) * x > HOLED_ENERGY)
        return jnp.where(x > 0, -1.0, 0.0), jnp.where(lost, -10.0, 0.0)


def golfer(seed, num_episodes):
    """A golfer who sees the distance alone is watched; another one learns by the recovered reward with all features."""
    care = np.random.default_rng(seed).uniform(0.2, 0.8)
    weights, controls = (1 - care, care), ("x", "sqrt_x")
    world = WeighedMinigolf(weights=weights, policy_deviation=0.1)
    omega = world.default_configuration()
    watched = policyspace.learn(world, None, controls, omega, key=seed)
    seen = watched.act(world, omega, jax.random.key(seed), num_episodes)
    mask, states = np.asarray(seen.mask), np.asarray(seen.states)[:, 1:]
    parts = dict(
        zip(
            ("short", "lost"),
            (np.asarray(part)[mask] for part in world.parts(states[..., 0], states[..., 1])),
            strict=True,
        )
    )

    def worth(w):
        learned_by = policyspace.learn(
            WeighedMinigolf(weights=tuple(w), policy_deviation=0.1), None, world.feature_names, omega, key=seed
        )
        return float(learned_by.act(world, omega, jax.random.key(seed + 1), 4000).returns(world.discount).mean())

    best = worth(weights)
    return recovered(
        seen.pairs(world.feature_names, world.action_names), parts, weights, controls, lambda w: best - worth(w), seed,
        discount=world.discount, policy=world.policy_space(),
    )  # fmt: skip


# -- A Gymnasium environment whose optimum is known: a cart in the wind, near the middle against effort.

STEPS, NOISE, DISCOUNT = 20, 0.5, 0.95
MOVES = np.array([[1.0, 0.3, 0.0], [0.0, 0.9, 0.3], [0.0, 0.0, 1.0]])  # of position, velocity and wind
PUSH = np.array([0.0, 0.3, 0.0])


class Cart(gymnasium.Env):
    """The wind of an episode is seen, and this driver does not look at it."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,))
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))

    def reset(self, *, seed=None, options=None):
        """Anywhere, at rest or not."""
        super().reset(seed=seed)
        self.at, self.step_number = self.np_random.normal(size=3) * [1.0, 0.5, 0.5], 0
        return self.at.copy(), {}

    def step(self, action):
        """Linear, with a little noise."""
        self.at = MOVES @ self.at + PUSH * float(action[0]) + [0.0, 0.05 * self.np_random.normal(), 0.0]
        self.step_number += 1
        return self.at.copy(), 0.0, False, self.step_number == STEPS, {}


def cart_return(gains, weights):
    """The exact discounted return of a = gains·s + noise: second moments, step by step."""
    closed, moment, total = MOVES + np.outer(PUSH, gains), np.diag([1.0, 0.25, 0.25]), 0.0
    for t in range(STEPS):
        effort = gains @ moment @ gains + NOISE**2
        moment = closed @ moment @ closed.T + NOISE**2 * np.outer(PUSH, PUSH) + np.diag([0.0, 0.05**2, 0.0])
        total -= DISCOUNT**t * (weights[0] * moment[0, 0] + weights[1] * effort)
    return total


def cart_gains(weights, seen):
    """The best gains on what is seen of the state."""
    found = minimize(
        lambda g: -cart_return(np.where(seen, np.pad(g, (0, 3 - len(g))), 0.0), weights), np.zeros(sum(seen))
    )
    return np.pad(found.x, (0, 3 - len(found.x)))


def cart(seed, num_episodes):
    """A driver who does not look at the wind; another one who does learns by the recovered reward."""
    effort = np.random.default_rng(seed).uniform(0.2, 0.8)
    weights, rng = np.array([1 - effort, effort]), np.random.default_rng(seed)
    gains = cart_gains(weights, [True, True, False])
    names = ["position", "velocity", "wind"]
    log = policyspace.watch(
        Cart(), lambda seen: np.array([gains @ seen + NOISE * rng.normal()]), num_episodes, seed=seed, features=names
    )
    after = (log.features @ MOVES.T)[:, 0]  # where the cart is next does not hang on this push
    parts = {"near": -(after**2), "effort": -(log.actions[:, 0] ** 2)}
    every = [True, True, True]
    best = cart_return(cart_gains(weights, every), weights)
    return recovered(
        log, parts, weights, names[:2], lambda w: best - cart_return(cart_gains(np.array(w), every), weights), seed,
        discount=DISCOUNT, policy="gaussian",
    )  # fmt: skip


WORLDS = {"gridworld": (run, 25, (1000, 300)), "minigolf": (golfer, 6, (1000,)), "cart": (cart, 25, (100, 400))}
"""Who is watched, how many of them, and for how many episodes."""


def main(names, first=5000):
    """A table: root mean square error of the weight, coverage of its interval, and the lost return."""
    print("world  episodes  coordinates  error of the weight   95 % intervals that hold it   return lost")
    for world in names or WORLDS:
        one_run, num_agents, sizes = WORLDS[world]
        for size in sizes:
            results = [one_run(seed, size) for seed in range(first, first + num_agents)]
            for name in WAYS:
                own = [one[name] for one in results]
                errors, lost = np.array([r.error for r in own]), np.array([r.regret for r in own])
                print(
                    f"{world}  {size:>5}  {name:>11}  {np.sqrt((errors**2).mean()):.3f} (mean {errors.mean():+.3f})   "
                    f"{sum(r.covered for r in own)} of {num_agents}   {lost.mean():.4f} ± "
                    f"{lost.std(ddof=1) / np.sqrt(num_agents):.4f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:])
