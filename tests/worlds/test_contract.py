"""What every world promises, checked on all of them in the same way; a new world is one more line of CASES."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policyspace import ConfMDP, InputError, Trajectories, make_world, rollout
from policyspace.worlds import WORLDS, effective_sample_size, largest_weight, log_weights, renyi2

EPISODES = 4000


@dataclass(frozen=True)
class Case:
    """A world, an agent that does something there, and configurations near the default's whose law it dominates."""

    name: str
    theta: Any  # of the world's own policy space
    nearby: tuple[dict[str, Any], ...]
    settings: dict[str, Any] = field(default_factory=dict)


def grid_agent(space: Any) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 1, space.num_parameters)


def slow_driver(space: Any) -> np.ndarray:
    theta = np.zeros(space.num_parameters)
    theta[space.layer_indices[-1][1]] = [0.6, -0.1]
    return theta


CASES = (
    Case("gridworld", grid_agent, ({"row[2]": 1.7}, {"goal_col": [1.0, 0.5, 2.0, 1.0, 1.2], "col[0]": 2.0})),
    Case("continuous-gridworld", lambda s: grid_agent(s) / 3, ({"x": -0.8}, {"y": -1.3, "goal_x": 1.3, "goal_y": 0.8})),
    Case(
        "minigolf",
        lambda s: np.array([0.1, 0.02, 0.3, 0.02, 0.1, 0.1]),
        ({"putter_length": 5.01}, {"putter_length": 4.98}),
    ),
    # In fifteen steps the car cannot reach a border, so that no ω makes another's crashes impossible.
    Case("car", slow_driver, ({"bend": 101.0}, {"bend": 97.0}), {"horizon": 15}),
    Case(
        "cartpole",
        lambda s: np.array([0.0, 0.5, 0.5, 10.0, 3.0]),
        ({"pole_mass": 0.11}, {"gravity": 10.0, "cart_mass": 1.005}),
        {"horizon": 100},
    ),
)


@dataclass(frozen=True)
class Seen:
    case: Case
    world: ConfMDP
    space: Any
    theta: np.ndarray
    trajectories: Trajectories


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def seen(request: pytest.FixtureRequest) -> Seen:
    case = request.param
    world = make_world(case.name, **case.settings)
    space = world.policy_space()
    theta = case.theta(space)
    omega = world.default_configuration()
    return Seen(case, world, space, theta, rollout(world, space, theta, omega, jax.random.key(0), EPISODES))


def test_every_world_has_a_case() -> None:
    assert {case.name for case in CASES} == set(WORLDS)


def test_shapes_and_names(seen: Seen) -> None:
    world, tau = seen.world, seen.trajectories
    m, steps, q = EPISODES, world.horizon, len(world.feature_names)
    assert world.name == seen.case.name
    assert tau.num_episodes == m
    assert tau.features.shape == (m, steps, q)
    assert tau.rewards.shape == tau.mask.shape == (m, steps)
    assert tau.actions.shape == ((m, steps) if world.action_bounds is None else (m, steps, len(world.action_names)))
    assert all(leaf.shape[:2] == (m, steps + 1) for leaf in jax.tree.leaves(tau.states))
    assert tau.features.dtype == tau.rewards.dtype == np.float64
    assert len(set(world.feature_names)) == q
    assert world.true_controls <= set(world.feature_names)
    assert {group.name for group in seen.space.groups if not group.assumed} == set(world.feature_names)
    assert seen.space.num_parameters == len(seen.theta)


def test_features_are_those_of_the_state(seen: Seen) -> None:
    states = jax.tree.map(lambda leaf: leaf[:50, :-1], seen.trajectories.states)
    wanted = np.asarray(jax.jit(jax.vmap(jax.vmap(seen.world.features)))(states))
    assert np.asarray(seen.trajectories.features[:50]) == pytest.approx(wanted, abs=1e-12)
    assert np.isfinite(wanted).all()


def test_many_samples_at_once_are_the_single_ones(seen: Seen) -> None:
    """A world that moves by given Normal numbers does the same for one sample and for many along the last axis."""
    world, tau, omega = seen.world, seen.trajectories, seen.world.default_configuration()
    assert world.num_normals is not None  # all of these do; for one that does not, see test_confmdp.py
    noise = jax.random.normal(jax.random.key(4), (world.num_normals, 200))
    states, actions = np.asarray(tau.states)[:200, 0].T, np.asarray(tau.actions)[:200, 0].T

    def step(noise: Any, state: Any, action: Any) -> Any:
        moved = world.move(noise, state, action, omega)
        return moved, world.reward(state, action, moved), world.terminal(moved), world.features(moved)

    together = jax.jit(step)(noise, states, actions)
    single = jax.jit(jax.vmap(step, -1, -1))(noise, states, actions)
    for found, wanted in zip(together, single, strict=True):
        assert np.asarray(found) == pytest.approx(np.asarray(wanted), rel=1e-12, abs=1e-12)


def test_ended_episodes_are_frozen(seen: Seen) -> None:
    tau = seen.trajectories
    mask, rewards = np.asarray(tau.mask), np.asarray(tau.rewards)
    assert mask[:, 0].all()
    assert not (mask[:, 1:] & ~mask[:, :-1]).any()
    assert np.all(rewards[~mask] == 0)
    for leaf in jax.tree.leaves(tau.states):
        states = np.asarray(leaf)
        assert np.array_equal(states[:, 1:][~mask], states[:, :-1][~mask])
    ends = np.asarray(jax.jit(jax.vmap(jax.vmap(seen.world.terminal)))(jax.tree.map(lambda s: s[:, 1:], tau.states)))
    assert np.array_equal(mask[:, 1:], mask[:, :-1] & ~ends[:, :-1])


def test_the_same_key_gives_the_same_bytes(seen: Seen) -> None:
    arguments = (seen.world, seen.space, seen.theta, seen.world.default_configuration())
    again = rollout(*arguments, jax.random.key(0), EPISODES)
    other = rollout(*arguments, jax.random.key(1), EPISODES)
    for name in ("features", "actions", "rewards", "mask"):
        assert np.asarray(getattr(again, name)).tobytes() == np.asarray(getattr(seen.trajectories, name)).tobytes()
    assert not np.array_equal(other.actions, again.actions)


def test_an_equal_world_does_not_compile_again(seen: Seen, caplog: pytest.LogCaptureFixture) -> None:
    world = make_world(seen.case.name, **seen.case.settings)
    arguments = (world, seen.space, seen.theta, world.default_configuration(), jax.random.key(5))
    with jax.log_compiles():
        rollout(*arguments, EPISODES)
        assert caplog.messages == []
        rollout(*arguments, EPISODES + 1)
    assert any("ompil" in message for message in caplog.messages)


def test_weights_are_one_at_the_same_configuration(seen: Seen) -> None:
    weights = log_weights(seen.world, seen.trajectories, seen.world.default_configuration())
    assert weights.shape == (EPISODES, seen.world.horizon + 1)
    assert np.all(np.asarray(weights) == 0.0)
    assert float(renyi2(weights)) == 1.0
    assert float(effective_sample_size(weights)) == EPISODES
    assert float(largest_weight(weights)) == 1.0


@pytest.mark.parametrize("which", [0, 1])
def test_weights_have_mean_one(seen: Seen, which: int) -> None:
    omega = seen.world.check_configuration(seen.case.nearby[which])
    log_weight = log_weights(seen.world, seen.trajectories, omega)
    weight = np.exp(np.asarray(log_weight))
    for t in {0, 1, 2, seen.world.horizon // 2, seen.world.horizon}:
        error = weight[:, t].std() / np.sqrt(EPISODES)
        assert abs(weight[:, t].mean() - 1.0) <= 5 * error
    assert weight[:, -1].std() > 0
    assert float(renyi2(log_weight)) == pytest.approx(np.mean(weight[:, -1] ** 2), rel=1e-12)
    whole = weight[:, -1]
    assert float(effective_sample_size(log_weight)) == pytest.approx(whole.sum() ** 2 / np.sum(whole**2), rel=1e-12)
    assert float(largest_weight(log_weight)) == pytest.approx(whole.max(), rel=1e-12)


@pytest.mark.parametrize("which", [0, 1])
def test_weighted_episodes_are_those_of_the_other_configuration(seen: Seen, which: int) -> None:
    """E_{ω₀}[w h(τ)] = E_ω[h(τ)] for what an episode felt like: its features summed over time."""
    omega = seen.world.check_configuration(seen.case.nearby[which])
    there = rollout(seen.world, seen.space, seen.theta, omega, jax.random.key(11), EPISODES)
    weight = np.exp(np.asarray(log_weights(seen.world, seen.trajectories, omega)[:, -1]))

    def felt(tau: Trajectories) -> np.ndarray:
        return np.sum(np.asarray(tau.features) * np.asarray(tau.mask)[..., None], axis=1)

    # Centred by the other configuration's mean, so that the weights' own noise does not drown the difference.
    direct = felt(there)
    weighted = weight[:, None] * (felt(seen.trajectories) - direct.mean(axis=0))
    error = np.sqrt(weighted.var(axis=0) + direct.var(axis=0)) / np.sqrt(EPISODES)
    assert np.all(np.abs(weighted.mean(axis=0)) <= 5 * error + 1e-12)


def test_weights_are_differentiable(seen: Seen) -> None:
    few = jax.tree.map(lambda leaf: leaf[:64], seen.trajectories.states)
    tau = seen.trajectories
    short = Trajectories(few, tau.features[:64], tau.actions[:64], tau.rewards[:64], tau.mask[:64], tau.configuration)
    omega = seen.world.check_configuration(seen.case.nearby[1])

    def total(configuration: Any) -> Any:
        return jnp.sum(log_weights(seen.world, short, configuration)[:, -1])

    slopes = jax.jit(jax.value_and_grad(total))
    gradient = slopes(omega)[1]
    for name, slope in gradient.items():
        slope = np.asarray(slope)
        assert np.isfinite(slope).all()
        direction = np.ones(slope.shape) if slope.ndim == 0 else np.arange(slope.size, dtype=float).reshape(slope.shape)
        up, down = (float(slopes(omega | {name: omega[name] + h * direction})[0]) for h in (1e-6, -1e-6))
        assert np.sum(slope * direction) == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-4)


def test_random_configurations_and_controls_are_valid(seen: Seen) -> None:
    keys = jax.random.split(jax.random.key(2), 40)
    for key in keys[:2]:
        omega = seen.world.random_configuration(key)
        checked = seen.world.check_configuration({name: np.asarray(value) for name, value in omega.items()})
        assert all(np.array_equal(checked[name], omega[name]) for name in checked)
    owned = [seen.world.random_controls(key) for key in keys]
    share = np.mean([len(controls) for controls in owned]) / len(seen.world.feature_names)
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(40 * len(seen.world.feature_names))
    assert set().union(*owned) == set(seen.world.feature_names)


def test_bad_configurations_are_told_in_a_sentence(seen: Seen) -> None:
    world, first = seen.world, seen.world.parameters[0]
    with pytest.raises(InputError, match=f"did you mean '{first.name}'"):
        world.check_configuration({first.name + "x": 1.0})
    with pytest.raises(InputError, match="must lie between"):
        world.check_configuration({first.name: np.full(first.shape, first.high + 1)})
    with pytest.raises(InputError, match="finite"):
        world.check_configuration({first.name: np.full(first.shape, np.nan)})
    with pytest.raises(InputError, match="shape"):
        world.check_configuration({first.name: np.zeros((*first.shape, 2))})
    with pytest.raises(InputError, match="numbers"):
        world.check_configuration({first.name: "much"})


def test_pairs_are_the_living_steps(seen: Seen) -> None:
    world, tau = seen.world, seen.trajectories
    data = tau.pairs(world.feature_names, world.action_names)
    mask = np.asarray(tau.mask)
    assert data.num_rows == tau.num_rows == mask.sum()
    assert np.array_equal(data.features, np.asarray(tau.features)[mask])
    assert data.episodes is not None
    assert np.array_equal(np.bincount(data.episodes), tau.lengths)


def test_returns_are_discounted_sums(seen: Seen) -> None:
    rewards = np.asarray(seen.trajectories.rewards)
    wanted = [sum(seen.world.discount**t * r for t, r in enumerate(row)) for row in rewards[:20]]
    assert np.asarray(seen.trajectories.returns(seen.world.discount))[:20] == pytest.approx(wanted, rel=1e-12)


def test_unknown_worlds_and_settings() -> None:
    with pytest.raises(InputError, match="did you mean 'gridworld'"):
        make_world("gridwrld")
    with pytest.raises(InputError, match="did you mean 'horizon'"):
        make_world("car", horizn=3)
