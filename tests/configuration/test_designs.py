"""Designs respect the bounds, repeat themselves for a seed, and say when the data cannot speak."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policyspace import make_world, rollout
from policyspace.study import (
    DESIGNS,
    Box,
    DesignProblem,
    Information,
    PaperObjective,
    bounded_adam,
    expected_information,
    information_terms,
    log_det_gain,
)

KEY = jax.random.key(5)


@pytest.fixture(scope="module")
def grid():
    world = make_world("gridworld", horizon=10)
    space = world.policy_space()
    theta = 0.5 * jax.random.normal(KEY, (space.num_parameters,))
    seen = rollout(world, space, theta, world.random_configuration(KEY), KEY, 100)
    return world, space, np.asarray(theta), seen


def test_climbing_finds_the_top_of_a_parabola_and_stops_at_the_bounds():
    def parabola(x):
        return -jnp.sum((x - jnp.array([0.3, 5.0])) ** 2), x

    starts = jnp.array([[0.0, 0.0], [1.0, -1.0]])
    points, values, _ = bounded_adam(parabola, starts, jnp.array([-2.0, -2.0]), jnp.array([2.0, 2.0]), 400, 0.05)
    assert np.allclose(points[:, -1], [[0.3, 2.0]] * 2, atol=1e-3)
    assert np.all(np.asarray(points) <= 2.0)
    assert np.all(np.asarray(values[:, -1]) > np.asarray(values[:, 0]))


def test_a_configuration_and_its_vector_are_the_same(grid):
    world, *_ = grid
    omega = world.random_configuration(jax.random.key(1))
    back = Box(world).configuration(Box(world).vector(omega))
    assert all(np.array_equal(back[name], omega[name]) for name in omega)


@pytest.mark.parametrize("name", list(DESIGNS))
def test_every_design_proposes_a_valid_configuration_and_repeats_itself(grid, name):
    world, space, theta, seen = grid
    design = DESIGNS[name]()
    units = list(space.tested)[:1] if not design.joint else list(space.tested)[:5]
    first, second = (design.propose(DesignProblem(world, space, theta, seen, units, 100, KEY)) for _ in range(2))
    world.check_configuration(first.configuration)
    assert all(np.array_equal(first.configuration[n], second.configuration[n]) for n in first.configuration)
    assert first.units == tuple(space.groups[u].name for u in units)
    assert len(first.path) == len(first.values)
    assert first.objective == pytest.approx(first.gain - first.cost)


def test_the_paper_objective_climbs_and_trusts_only_what_the_data_can_speak_about(grid):
    world, space, theta, seen = grid
    unit = [space.tested[2]]
    found = PaperObjective(penalty=0.0, learning_rate=0.1, smallest_share=0.3).propose(
        DesignProblem(world, space, theta, seen, unit, 100, KEY)
    )
    assert found.objective >= found.values[0]
    assert found.effective_sample_size >= 0.3 * seen.num_episodes
    assert not found.warnings


def test_a_proposal_that_the_data_cannot_speak_about_says_so(grid):
    world, space, theta, seen = grid
    bold = PaperObjective(penalty=0.0, learning_rate=1.0, num_updates=30, smallest_share=0.5, last_point=True)
    found = bold.propose(DesignProblem(world, space, theta, seen, [space.tested[2]], 100, KEY))
    assert found.effective_sample_size < 50
    assert "hardly speak" in found.warnings[0]


def test_the_d_optimal_design_brings_more_information_than_where_it_started(grid):
    world, space, theta, seen = grid
    units = list(space.tested)
    found = Information().propose(DesignProblem(world, space, theta, seen, units, 100, KEY))
    masks = np.zeros(space.num_parameters, bool)
    for u in units:
        masks[list(space.groups[u].indices)] = True

    @jax.jit
    def gain(omega):
        fresh = rollout(world, space, jnp.asarray(theta), omega, jax.random.key(77), 400)
        information, _ = expected_information(world, information_terms(world, space, jnp.asarray(theta), fresh), omega)
        return log_det_gain(information, jnp.asarray(masks), jnp.asarray(~masks), 100.0)

    assert gain(world.check_configuration(found.configuration)) > gain(seen.configuration) + 10
