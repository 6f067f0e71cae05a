"""C_I(ω/ω₀) and the information of a configuration, against the exact grid world, finite differences and simulation."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policyspace import make_world, rollout, study, worlds
from policyspace.study import Box, log_det_gain, noncentrality_gain
from policyspace.worlds import expected_return

KEY = jax.random.key(20)

# As designs use them: compiled as a whole, not operation by operation.
weights_of, paper_objective, expected_information, cumulative_scores = (
    jax.jit(function, static_argnums=0)
    for function in (
        study.weights_of,
        study.paper_objective,
        study.expected_information,
        worlds.cumulative_scores,
    )
)
gradient_terms, information_terms = (
    jax.jit(function, static_argnums=(0, 1)) for function in (study.gradient_terms, study.information_terms)
)


@cache
def agent(name, num_episodes, **settings):
    world = make_world(name, **settings)
    space = world.policy_space()
    theta = 0.3 * jax.random.normal(jax.random.fold_in(KEY, 1), (space.num_parameters,))
    if name == "minigolf":
        theta = jnp.zeros(space.num_parameters).at[0].set(0.4)
    seen = rollout(world, space, theta, world.default_configuration(), jax.random.fold_in(KEY, 2), num_episodes)
    return world, space, theta, seen


def nearby(world, share):
    low, high = Box(world).bounds
    vector = Box(world).vector(world.default_configuration())
    noise = jax.random.uniform(jax.random.fold_in(KEY, 3), vector.shape, minval=-share, maxval=share)
    return Box(world).configuration(jnp.clip(vector + noise * (high - low), low, high))


@pytest.mark.parametrize("name", ["gridworld", "continuous-gridworld", "minigolf"])
def test_at_the_configuration_of_the_data_it_is_the_on_distribution_objective(name):
    world, space, theta, seen = agent(name, 200)
    indices = jnp.array(space.groups[space.tested[0]].indices)
    terms = gradient_terms(world, space, theta, seen, indices)
    value, kept = paper_objective(world, terms, seen.configuration, 0.25)
    rewards = seen.rewards * world.discount ** np.arange(world.horizon)
    scores = np.asarray(cumulative_scores(space, theta, seen))[:, :, indices]
    plain = sum(scores[:, t].T @ rewards[:, t] for t in range(world.horizon)) / 200
    assert kept.gain == pytest.approx(float(jnp.sum(plain**2)), rel=1e-12)
    assert kept.cost == pytest.approx(0.25 / np.sqrt(200), rel=1e-12)
    assert value == pytest.approx(float(kept.gain - kept.cost), rel=1e-12)
    assert float(kept.effective_sample_size) == pytest.approx(200, rel=1e-12)
    assert float(kept.largest_weight) == 1.0


@pytest.mark.parametrize("name", ["gridworld", "minigolf"])
def test_the_derivative_in_the_configuration_matches_finite_differences(name):
    world, space, theta, seen = agent(name, 200)
    box = Box(world)
    indices = jnp.array(space.groups[space.tested[1]].indices)
    terms = gradient_terms(world, space, theta, seen, indices)

    @jax.jit
    def value(vector):
        return paper_objective(world, terms, box.configuration(vector), 0.1)[0]

    point = box.vector(nearby(world, 0.02))
    slope = np.asarray(jax.jit(jax.grad(value))(point))
    for i in range(min(len(point), 6)):
        h = 1e-5 * max(1.0, abs(float(point[i])))
        numeric = (value(point.at[i].add(h)) - value(point.at[i].add(-h))) / (2 * h)
        assert slope[i] == pytest.approx(float(numeric), rel=2e-4, abs=1e-7 * np.abs(slope).max())


def test_the_off_distribution_gradient_is_the_exact_one_of_the_grid_world():
    """Over many episodes ∇̂J_{ω/ω₀} approaches the exact gradient at ω, computed over the 625 states."""
    world, space, theta, seen = agent("gridworld", 10_000, horizon=6)
    omega = nearby(world, 0.04)
    indices = jnp.arange(space.num_parameters)
    terms = gradient_terms(world, space, theta, seen, indices)
    _, steps = weights_of(world, seen, omega)
    per_episode = np.asarray(jnp.exp(steps) * terms.per_step[:, 0])
    exact = np.asarray(jax.jit(jax.grad(lambda t: expected_return(world, space, t, omega)))(theta))
    error = per_episode.mean(axis=0) - exact
    spread = per_episode.std(axis=0) / np.sqrt(len(per_episode))
    assert np.all(np.abs(error) < 5.5 * spread + 1e-12)
    unweighted = np.asarray(terms.per_step[:, 0]).mean(axis=0) - exact
    assert np.linalg.norm(error) < np.linalg.norm(unweighted), (
        "without weights it would be the gradient of another world"
    )


def test_the_divergence_is_the_exact_one_of_the_grid_world():
    """d₂(ω‖ω₀) = Σ_s μ_ω(s)²/μ_{ω₀}(s), a product of four sums."""
    world, _, _, seen = agent("gridworld", 20_000, horizon=2)
    omega = nearby(world, 0.03)
    whole, _ = weights_of(world, seen, omega)
    squares = np.exp(2 * np.asarray(whole))
    exact = 1.0
    for parameter in world.parameters:
        new, old = (jax.nn.softmax(c[parameter.name]) for c in (omega, seen.configuration))
        exact *= float(jnp.sum(new**2 / old))
    assert abs(squares.mean() - exact) < 5 * squares.std() / np.sqrt(len(squares))


@pytest.mark.parametrize("name", ["gridworld", "minigolf"])
def test_weighted_information_matches_simulation_at_the_new_configuration(name):
    world, space, theta, seen = agent(name, 2000, horizon=6)
    omega = nearby(world, 0.01)
    weighted, _ = expected_information(world, information_terms(world, space, theta, seen), omega)
    there = rollout(world, space, theta, omega, jax.random.fold_in(KEY, 9), 2000)
    simulated, whole = expected_information(world, information_terms(world, space, theta, there), omega)
    assert np.allclose(np.asarray(whole), 0.0, atol=1e-12)
    scale = np.sqrt(np.outer(np.diag(simulated), np.diag(simulated)))
    assert np.abs(np.asarray(weighted - simulated) / scale).max() < 0.2


def test_information_is_the_fisher_information_of_the_space():
    world, space, theta, seen = agent("gridworld", 200)
    total, _ = expected_information(world, information_terms(world, space, theta, seen), seen.configuration)
    mask = np.asarray(seen.mask)
    fisher = space.fisher(np.asarray(theta), np.asarray(seen.features)[mask])
    assert np.allclose(total, fisher * mask.sum() / 200, atol=1e-9)


def test_log_det_gain_is_that_of_the_schur_complement():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((8, 6))
    information = root.T @ root / 8
    units, others = np.array([1, 0, 0, 1, 0, 0], bool), np.array([0, 1, 0, 0, 1, 0], bool)
    matrix = 50 * information + np.eye(6)
    a, b = np.flatnonzero(units), np.flatnonzero(others)
    schur = matrix[np.ix_(a, a)] - matrix[np.ix_(a, b)] @ np.linalg.solve(matrix[np.ix_(b, b)], matrix[np.ix_(b, a)])
    found = log_det_gain(jnp.asarray(information), jnp.asarray(units), jnp.asarray(others), 50.0)
    assert float(found) == pytest.approx(np.linalg.slogdet(schur)[1], rel=1e-10)


def test_noncentrality_gain_is_that_of_each_unit():
    rng = np.random.default_rng(1)
    root = rng.standard_normal((9, 5))
    information, theta = root.T @ root / 9, rng.standard_normal(5)
    masks = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]], bool)
    inverse = np.linalg.inv(30 * information + np.eye(5))
    expected = 0.0
    for indices in ([0, 1], [2]):
        block = inverse[np.ix_(indices, indices)]
        expected += np.log1p(theta[indices] @ np.linalg.solve(block, theta[indices]))
    found = noncentrality_gain(jnp.asarray(information), jnp.asarray(theta), jnp.asarray(masks), 30.0)
    assert float(found) == pytest.approx(expected, rel=1e-9)
