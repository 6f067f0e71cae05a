"""G(PO)MDP: against loops written from the formula, and against the exact gradient of the finite world."""

import numpy as np
import pytest

from policyspace.policies import BoltzmannLinear, GaussianLinear, PolicySpace
from policyspace.policies.groups import Group
from policyspace.policies.jax_setup import jax, jnp
from policyspace.policies.network import BoltzmannNetwork, GaussianNetwork
from policyspace.worlds.confmdp import rollout
from policyspace.worlds.exact_gridworld import expected_return
from policyspace.worlds.gridworld import Gridworld
from policyspace.worlds.importance import log_weights
from policyspace.worlds.policy_gradient import cumulative_scores, gradient_from_scores, policy_gradient
from policyspace.worlds.trajectories import Trajectories

FEATURES = ("x", "y")


class Cauchy(PolicySpace):
    """A space that says only its density: the estimator differentiates it."""

    groups = (Group("x", (0,)), Group("y", (1,)))
    fixed = np.zeros(2)

    def log_prob(self, theta, features, actions):
        return -jnp.log1p((actions[..., 0] - features @ theta) ** 2) - jnp.log(jnp.pi)

    def sample(self, key, theta, features):
        return (features @ theta + key.standard_cauchy(features.shape[:-1]))[..., None]


SPACES = (
    BoltzmannLinear(FEATURES, ("a", "b", "c")),
    GaussianLinear(FEATURES, ("u", "v"), covariance=[[0.5, 0.1], [0.1, 0.3]]),
    GaussianNetwork(FEATURES, ("u", "v"), hidden=(3,), covariance=0.4),
    BoltzmannNetwork(FEATURES, ("a", "b"), hidden=(2,)),
    Cauchy(),
)


def episodes(space, m=6, horizon=4, seed=0):
    """Made-up episodes of different lengths, θ, and log weights [m, T+1]."""
    rng = np.random.default_rng(seed)
    theta, features = rng.normal(size=space.num_parameters), rng.normal(size=(m, horizon, 2))
    mask = np.arange(horizon) < rng.integers(1, horizon + 1, size=m)[:, None]
    rewards = np.where(mask, rng.normal(size=(m, horizon)), 0.0)
    steps = np.where(np.column_stack([np.ones(m, bool), mask]), rng.normal(0, 0.3, (m, horizon + 1)), 0.0)
    actions = space.sample(rng, theta, features)
    return theta, Trajectories(None, features, actions, rewards, mask, {}), np.cumsum(steps, axis=1)


def by_loops(space, theta, given, discount, log_weight, baseline):
    """The formula with loops; the score by automatic differentiation, one pair at a time."""
    m, horizon = given.mask.shape
    score = jax.jit(jax.grad(space.log_prob))
    total = np.zeros(space.num_parameters)
    scores = np.zeros((m, space.num_parameters))
    for t in range(horizon):
        for i in range(m):
            if given.mask[i, t]:
                scores[i] += score(*map(jnp.asarray, (theta, given.features[i, t], given.actions[i, t])))
        w = np.exp(log_weight[:, t + 1])
        reward = discount**t * given.rewards[:, t]
        for k in range(space.num_parameters):
            squares = sum((w[i] * scores[i, k]) ** 2 for i in range(m))
            b = sum((w[i] * scores[i, k]) ** 2 * reward[i] for i in range(m)) / squares if baseline and squares else 0.0
            total[k] += sum(w[i] * scores[i, k] * (reward[i] - b) for i in range(m)) / m
    return total


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("baseline", [True, False])
def test_estimator_is_its_formula(space, baseline):
    theta, given, weights = episodes(space)
    for log_weight in (None, weights):
        expected = by_loops(space, theta, given, 0.9, weights * (log_weight is not None), baseline)
        found = policy_gradient(space, theta, given, 0.9, log_weight, baseline)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
        scores = cumulative_scores(space, theta, given)
        found = gradient_from_scores(scores, given, 0.9, log_weight, baseline)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_weights_of_one_change_nothing():
    theta, given, weights = episodes(SPACES[0], m=40, horizon=9)
    plain = policy_gradient(SPACES[0], theta, given, 0.95)
    np.testing.assert_array_equal(policy_gradient(SPACES[0], theta, given, 0.95, 0 * weights), plain)


def test_scores_stay_after_an_episodes_end():
    theta, given, _ = episodes(SPACES[1])
    scores = np.asarray(cumulative_scores(SPACES[1], theta, given))
    for i, length in enumerate(given.lengths):
        np.testing.assert_array_equal(
            scores[i, length:], np.broadcast_to(scores[i, length - 1], scores[i, length:].shape)
        )


def test_constant_rewards_have_no_noise_under_the_baseline():
    """When every episode earns the same at a step, the gradient of that step is exactly zero, weighted or not."""
    theta, given, weights = episodes(SPACES[0], m=30)
    same = Trajectories(None, given.features, given.actions, np.ones_like(given.rewards), np.ones_like(given.mask), {})
    for log_weight in (None, weights):
        np.testing.assert_allclose(policy_gradient(SPACES[0], theta, same, 0.9, log_weight), 0.0, atol=1e-13)
        assert np.abs(policy_gradient(SPACES[0], theta, same, 0.9, log_weight, baseline=False)).max() > 1e-3


def test_gradient_is_differentiable_in_the_log_weights():
    """∂‖∇̂J‖²/∂ log w against central differences: what the search for a new configuration climbs."""
    theta, given, weights = episodes(SPACES[0])

    def objective(shift):
        return jnp.sum(policy_gradient(SPACES[0], theta, given, 0.9, weights * shift) ** 2)

    step = 1e-5
    expected = (objective(1.0 + step) - objective(1.0 - step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(objective)(1.0), expected, rtol=1e-7)


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("baseline", [True, False])
def test_mean_gradient_is_the_exact_one_of_the_grid_world(moved, baseline):
    """Over 50 batches of 2000 episodes, within five standard errors of ∇_θ J of the 625-state recursion.

    In the world of the episodes, and in another configuration through their weights. (The baseline is estimated from
    the same episodes, which costs a bias of order 1/m: it is far below the noise at m = 2000.)
    """
    world = Gridworld()
    space, theta = world.policy_space(), jnp.asarray(np.random.default_rng(0).normal(0, 0.5, 51))
    collected = {name: 0.3 * value for name, value in world.random_configuration(jax.random.key(3)).items()}
    target = world.default_configuration() if moved else collected

    def one(key):
        batch = rollout(world, space, theta, collected, key, 2000)
        weights = log_weights(world, batch, target) if moved else None
        return policy_gradient(space, theta, batch, world.discount, weights, baseline)

    estimates = np.asarray(jax.lax.map(one, jax.random.split(jax.random.key(5), 50)))
    exact = np.asarray(jax.grad(lambda t: expected_return(world, space, t, target))(theta))
    standard_error = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    assert (np.abs(estimates.mean(axis=0) - exact) < 5 * standard_error).all()
    assert standard_error.mean() < 0.2 * np.abs(exact).mean()  # the check has teeth
