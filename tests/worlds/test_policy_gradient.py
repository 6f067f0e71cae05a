"""G(PO)MDP: against loops written from the formula, and against the exact gradient of the finite world."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policyspace import (
    GaussianLinear,
    GaussianNetwork,
    PolicySpace,
    SoftmaxLinear,
    SoftmaxNetwork,
    Trajectories,
    make_world,
    rollout,
    worlds,
)
from policyspace.families import Group
from policyspace.worlds import Gridworld, expected_return, policy_gradient
from policyspace.worlds.agents import FEW, Ended, step_gradient

FEATURES = ("x", "y")
gradient_of = jax.jit(policy_gradient, static_argnums=(0, 1, 5))
cumulative_scores = jax.jit(worlds.cumulative_scores, static_argnums=0)


class Cauchy(PolicySpace):
    """A space that says only its density: the score differentiates it."""

    groups = (Group("x", (0,)), Group("y", (1,)))
    fixed = np.zeros(2)

    def log_prob(self, theta, features, actions):
        return -jnp.log1p((actions[..., 0] - features @ theta) ** 2) - jnp.log(jnp.pi)

    def sample(self, key, theta, features):
        return (features @ theta + key.standard_cauchy(features.shape[:-1]))[..., None]


SPACES = (
    SoftmaxLinear(FEATURES, ("a", "b", "c")),
    GaussianLinear(FEATURES, ("u", "v"), covariance=[[0.5, 0.1], [0.1, 0.3]]),
    GaussianNetwork(FEATURES, ("u", "v"), hidden=(3,), covariance=0.4),
    SoftmaxNetwork(FEATURES, ("a", "b"), hidden=(2,)),
    Cauchy(),
)


def by_loops(scores, seen, discount):
    """∇̂J by the formula with loops, from cumulative scores [m, T, d]."""
    scores, rewards = np.asarray(scores), np.asarray(seen.rewards)
    m, horizon, size = scores.shape
    total = np.zeros(size)
    for t in range(horizon):
        reward = discount**t * rewards[:, t]
        for k in range(size):
            squares = sum(scores[i, t, k] ** 2 for i in range(m))
            b = sum(scores[i, t, k] ** 2 * reward[i] for i in range(m)) / squares if squares else 0.0
            total[k] += sum(scores[i, t, k] * (reward[i] - b) for i in range(m)) / m
    return total


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_cumulative_scores_are_sums_of_derivatives_and_stay_after_an_episodes_end(space):
    """On made-up episodes of different lengths; derivatives by JAX, one pair at a time."""
    rng, m, horizon = np.random.default_rng(0), 3, 4
    theta, features = rng.normal(size=space.num_parameters), rng.normal(size=(m, horizon, 2))
    mask = np.arange(horizon) < np.array([[4], [1], [3]])
    actions = space.sample(rng, theta, features)
    scores = np.asarray(cumulative_scores(space, theta, Trajectories(None, features, actions, 0.0 * mask, mask, {})))
    score = jax.jit(jax.grad(space.log_prob))
    for i in range(m):
        expected = np.zeros(space.num_parameters)
        for t in range(horizon):
            if mask[i, t]:
                expected += score(*map(jnp.asarray, (theta, features[i, t], actions[i, t])))
            np.testing.assert_allclose(scores[i, t], expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("name", "options", "spread", "num_episodes"),
    [
        ("continuous-gridworld", {}, 0.15, FEW - 1),  # too few for some to go on alone, which would draw other chances
        ("minigolf", {}, 0.15, FEW - 1),
        ("car", {}, 0.5, FEW - 1),
        ("gridworld", {}, 3.0, 20),  # in this world those that go on alone keep their chances
        ("gridworld", {"intercept": False}, 1.0, 20),
    ],
)
def test_the_gradient_is_its_formula_on_the_episodes_of_a_rollout(name, options, spread, num_episodes):
    world = make_world(name, horizon=12)
    space, omega, key = world.policy_space(**options), world.default_configuration(), jax.random.key(3)
    theta = spread * jax.random.uniform(jax.random.key(4), (space.num_parameters,))
    seen = rollout(world, space, theta, omega, key, num_episodes)
    gradient, mean_return = gradient_of(world, space, theta, omega, key, num_episodes)
    expected = by_loops(cumulative_scores(space, theta, seen), seen, world.discount)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-9)
    assert float(mean_return) == pytest.approx(float(np.mean(seen.returns(world.discount))))


def test_any_policy_that_has_a_density_has_a_gradient_in_the_finite_world():
    """A network in the grid world, whose table of actions is then made from its density."""
    world = Gridworld(horizon=6)
    space, key = SoftmaxNetwork(world.feature_names, world.action_names, (2,)), jax.random.key(1)
    omega = world.default_configuration()
    theta = jax.random.normal(jax.random.key(2), (space.num_parameters,))
    seen = rollout(world, space, theta, omega, key, 20)
    expected = by_loops(cumulative_scores(space, theta, seen), seen, world.discount)
    np.testing.assert_allclose(gradient_of(world, space, theta, omega, key, 20)[0], expected, rtol=1e-9, atol=1e-9)


def test_what_the_ended_leave_behind_is_all_that_later_steps_need():
    rng = np.random.default_rng(0)
    scores, alive = jnp.asarray(rng.normal(size=(7, 40))), np.arange(40) % 4 == 0
    rewards = jnp.asarray(np.where(alive, rng.normal(-2, 1, 40), 0.0))
    gone = scores[:, ~alive]
    ended = Ended(gone.sum(axis=1), (gone**2).sum(axis=1))
    whole = step_gradient(scores, rewards, None)
    np.testing.assert_allclose(step_gradient(scores[:, alive], rewards[alive], ended), whole, rtol=1e-12, atol=1e-12)


def test_constant_rewards_have_no_noise_under_the_baseline():
    """When every episode earns the same at a step, the gradient of that step is exactly zero."""
    scores = jnp.asarray(np.random.default_rng(0).normal(size=(7, 40)))
    np.testing.assert_array_equal(step_gradient(scores, jnp.full(40, -0.7), None), 0.0)
    assert np.abs(scores @ jnp.full(40, -0.7)).max() > 1e-3


def test_mean_gradient_is_the_exact_one_of_the_grid_world():
    """Over 50 batches of 2000 episodes, within five standard errors of ∇_θ J of the 625-state recursion.

    (The baseline is estimated from the same episodes, which costs a bias of order 1/m: it is far below the noise at
    m = 2000.)
    """
    world = Gridworld()
    space, theta = world.policy_space(), jnp.asarray(np.random.default_rng(0).normal(0, 0.5, 51))
    omega = {name: 0.3 * value for name, value in world.random_configuration(jax.random.key(3)).items()}
    keys = jax.random.split(jax.random.key(5), 50)
    estimates, returns = (
        np.asarray(part)
        for part in jax.lax.map(lambda key: policy_gradient(world, space, theta, omega, key, 2000), keys)
    )
    value, exact = jax.jit(jax.value_and_grad(lambda t: expected_return(world, space, t, omega)))(theta)
    for found, wanted in ((estimates, np.asarray(exact)), (returns, float(value))):
        standard_error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
        assert (np.abs(found.mean(axis=0) - wanted) < 5 * standard_error).all()
        assert standard_error.mean() < 0.2 * np.abs(wanted).mean()  # the check has teeth
