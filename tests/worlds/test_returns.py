"""Returns without trajectories: the law is that of rollouts, and a closed form's, whatever the number of cores."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from policyspace.errors import InputError
from policyspace.policies import GaussianLinear, PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds import make_world
from policyspace.worlds.configuration_parameters import ConfigurationParameter
from policyspace.worlds.confmdp import ConfMDP, rollout
from policyspace.worlds.returns import BLOCK, simulate_returns


@dataclass(frozen=True)
class Lottery(ConfMDP):
    """An episode ends with probability 0.2 after each step, and pays 1 a step."""

    horizon: int = 7
    discount: float = 0.9

    name = "lottery"
    feature_names = ("ticket",)
    action_names = ("hope",)
    parameters = (ConfigurationParameter("luck", (), 0.0, 1.0, 0.5, "of no consequence"),)

    def initial(self, key: Any, configuration: Any) -> Any:
        return {"ticket": jax.random.uniform(key), "step": jnp.zeros((), int)}

    def transition(self, key: Any, state: Any, action: Any, configuration: Any) -> Any:
        return {"ticket": jax.random.uniform(key), "step": state["step"] + 1}

    def reward(self, state: Any, action: Any, next_state: Any) -> Any:
        return jnp.ones(())

    def terminal(self, state: Any) -> Any:
        return state["ticket"] < 0.2

    def log_initial(self, state: Any, configuration: Any) -> Any:
        return jnp.zeros(())

    def log_transition(self, state: Any, action: Any, next_state: Any, configuration: Any) -> Any:
        return jnp.zeros(())

    def features(self, state: Any) -> Any:
        return state["ticket"][None]

    def policy_space(self, **options: Any) -> PolicySpace:
        return GaussianLinear(self.feature_names, self.action_names, covariance=1.0, **options)


LOTTERY = Lottery()
SPACE = LOTTERY.policy_space()


def lottery(num_episodes: int, seed: int = 0) -> Any:
    omega = LOTTERY.default_configuration()
    return simulate_returns(LOTTERY, SPACE, np.zeros(2), omega, jax.random.key(seed), num_episodes, discount=0.9)


def test_lengths_follow_the_closed_form_and_returns_follow_lengths() -> None:
    num_episodes = 2 * BLOCK + 1  # the blocks do not divide it
    returns, lengths = lottery(num_episodes)
    assert lengths.shape == returns.shape == (num_episodes,)
    chances = np.append(0.2 * 0.8 ** np.arange(6), 0.8**6)
    counts = np.bincount(lengths, minlength=8)
    assert counts[0] == 0
    assert stats.chisquare(counts[1:], num_episodes * chances).pvalue > 1e-4
    assert returns == pytest.approx((1 - 0.9**lengths) / (1 - 0.9), rel=1e-12)
    # Independent of their number, too: the first of a block, which start together, and its last, which ended slots play.
    early, late = lengths[:1000], lengths[BLOCK * 2 // 3 - 1000 : BLOCK * 2 // 3]
    assert abs(early.mean() - late.mean()) < 5 * np.sqrt((early.var() + late.var()) / 1000)
    assert abs(np.corrcoef(lengths[:-1], lengths[1:])[0, 1]) < 5 / np.sqrt(num_episodes)


@pytest.mark.parametrize("num_episodes", [1, 3, 1001])
def test_any_number_of_episodes(num_episodes: int) -> None:
    returns, lengths = lottery(num_episodes)
    assert returns.shape == lengths.shape == (num_episodes,)
    assert (lengths >= 1).all()
    assert (lengths <= 7).all()


def test_the_number_of_cores_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    many = lottery(2 * BLOCK, seed=3)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    one, other = lottery(2 * BLOCK, seed=3), lottery(2 * BLOCK, seed=4)
    assert np.array_equal(many.lengths, one.lengths)
    assert np.array_equal(many.returns, one.returns)
    assert not np.array_equal(one.lengths, other.lengths)


@pytest.mark.parametrize("name", ["gridworld", "minigolf", "car"])
def test_the_law_is_that_of_rollouts(name: str) -> None:
    world = make_world(name, **({"horizon": 80} if name == "car" else {}))
    space, omega = world.policy_space(), world.default_configuration()
    theta = np.random.default_rng(0).normal(0, 0.1, space.num_parameters)
    if name == "minigolf":
        theta = np.array([0.1, 0.02, 0.3, 0.02, 0.1, 0.1])
    if name == "car":
        theta[space.layer_indices[-1][1]] = [0.6, -0.1]  # type: ignore[attr-defined]
    seen = rollout(world, space, theta, omega, jax.random.key(0), 3000)
    found = simulate_returns(world, space, theta, omega, jax.random.key(1), 3000, world.discount)
    for new, old in ((found.returns, seen.returns(world.discount)), (found.lengths, seen.lengths)):
        new, old = np.round(new, 9), np.round(np.asarray(old), 9)  # sums in another order are equal, too
        assert abs(new.mean() - old.mean()) <= 5 * np.sqrt((new.var() + old.var()) / 3000)
        assert stats.ks_2samp(new, old).pvalue > 1e-4


def test_no_episodes_are_told() -> None:
    with pytest.raises(InputError, match="one episode or more"):
        lottery(0)
