"""The gradient that is summed while episodes run is that of the episodes kept whole, also when few go on alone."""

import numpy as np
import pytest

from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds import make_world
from policyspace.worlds.confmdp import rollout
from policyspace.worlds.policy_gradient import Ended, one_decision, policy_gradient
from policyspace.worlds.simulated_gradient import FEW, simulated_gradient


@pytest.mark.parametrize("name", ["continuous-gridworld", "minigolf"])
def test_a_handful_of_episodes_gives_the_gradient_of_their_trajectories(name):
    world = make_world(name)
    space, omega, key = world.policy_space(), world.default_configuration(), jax.random.key(3)
    theta = jax.random.uniform(jax.random.key(4), (space.num_parameters,), minval=0.0, maxval=0.15)
    few = FEW - 1  # too few for some to go on alone; a world with a way of its own to simulate would draw others
    kept = rollout(world, space, theta, omega, key, few)
    gradient, mean_return = simulated_gradient(world, space, theta, omega, key, few)
    assert np.abs(gradient).max() > 1e-3
    np.testing.assert_allclose(gradient, policy_gradient(space, theta, kept, world.discount), rtol=1e-9, atol=1e-10)
    assert float(mean_return) == pytest.approx(float(np.mean(kept.returns(world.discount))))


@pytest.mark.parametrize(("intercept", "spread"), [(True, 0.5), (True, 3.0), (False, 1.0)])
def test_a_finite_world_plays_the_episodes_that_it_simulates(intercept, spread):
    world = make_world("gridworld")
    space, omega, key = world.policy_space(intercept=intercept), world.default_configuration(), jax.random.key(7)
    theta = spread * jax.random.normal(jax.random.key(8), (space.num_parameters,))
    kept = rollout(world, space, theta, omega, key, 60)
    gradient, mean_return = simulated_gradient(world, space, theta, omega, key, 60)
    assert np.abs(gradient).max() > 1e-3
    np.testing.assert_allclose(gradient, policy_gradient(space, theta, kept, world.discount), rtol=1e-9, atol=1e-10)
    assert float(mean_return) == pytest.approx(float(np.mean(kept.returns(world.discount))))


def test_what_the_ended_leave_behind_is_all_that_later_steps_need():
    rng = np.random.default_rng(0)
    scores, alive = jnp.asarray(rng.normal(size=(7, 40))), np.arange(40) % 4 == 0
    rewards = jnp.asarray(np.where(alive, rng.normal(-2, 1, 40), 0.0))
    gone = scores[:, ~alive]
    ended = Ended(gone.sum(axis=1), (gone**2).sum(axis=1))
    whole = one_decision(scores, rewards, None, True)
    np.testing.assert_allclose(
        one_decision(scores[:, alive], rewards[alive], None, True, ended), whole, rtol=1e-12, atol=1e-12
    )


def test_episodes_that_go_on_alone_do_not_bend_the_gradient():
    """Its mean over many batches is that of whole trajectories, within five standard errors."""
    world = make_world("gridworld")
    space, omega = world.policy_space(), world.default_configuration()
    theta = 0.5 * jax.random.normal(jax.random.key(1), (space.num_parameters,))
    keys = jax.random.split(jax.random.key(2), 300)
    alone, returns = jax.lax.map(lambda key: simulated_gradient(world, space, theta, omega, key, 60), keys)

    def of_trajectories(key):
        kept = rollout(world, space, theta, omega, key, 60)
        return policy_gradient(space, theta, kept, world.discount), jnp.mean(kept.returns(world.discount))

    whole, whole_returns = jax.lax.map(of_trajectories, jax.random.split(jax.random.key(5), 300))
    for found, wanted in ((alone, whole), (returns, whole_returns)):
        error = np.sqrt((np.var(found, axis=0) + np.var(wanted, axis=0)) / 300)
        assert (np.abs(np.mean(found, axis=0) - np.mean(wanted, axis=0)) <= 5 * error + 1e-12).all()
