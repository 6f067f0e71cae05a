"""Designs without densities: their information against closed forms, their choices against brute force."""

from dataclasses import replace

import gymnasium
import jax
import numpy as np
import pytest

from policyspace import GaussianLinear, GymnasiumWorld, InputError, Trajectories, configure, make_world
from policyspace.study import (
    DesignProblem,
    Information,
    PaperObjective,
    Simulated,
    SpaceFilling,
    default_design,
    design_for,
    expected_information,
    gain,
    information_per_episode,
    information_terms,
)

KEY, STEPS = jax.random.key(2), 5


class Readings(gymnasium.Env):
    """Two independent Normal readings; the deviation of the second is s(ω) = exp(−20 (ω − 0.3)²), `unit` its unit."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)

    def __init__(self, omega=0.9, unit=1.0):
        self.deviation = unit * np.exp(-20 * (omega - 0.3) ** 2)

    def _reading(self):
        return self.np_random.normal(size=2) * [1.0, self.deviation]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._reading(), {}

    def step(self, action):
        self.steps += 1
        return self._reading(), 0.0, self.steps == STEPS, False, {}


WORLD = GymnasiumWorld.of(Readings, {"omega": (0, 1)})
SPACE = GaussianLinear(WORLD.feature_names, WORLD.action_names, covariance=0.25)


def question(world=WORLD, units=(2,), earlier=(), num_episodes=20, key=KEY):
    theta = np.array([0.1, 0.5, 0.0])
    logged = world.simulate(SPACE, theta, world.check_configuration({}), key, 10)
    return DesignProblem(world, SPACE, theta, logged, units, num_episodes, key, earlier)


def test_information_of_a_linear_gaussian_policy_is_its_closed_form():
    """F of an episode is T/σ²·E[φφᵀ] = T/σ²·diag(1, 1, s²)."""
    seen = WORLD.simulate(SPACE, np.zeros(3), {"omega": 0.4}, KEY, 600)
    found = information_per_episode(SPACE, np.zeros(3), seen)
    exact = STEPS / 0.25 * np.diag([1.0, 1.0, np.exp(-40 * 0.01)])
    assert np.allclose(found, exact, atol=4 * STEPS / 0.25 * np.sqrt(2 / seen.num_rows))


def test_information_is_that_of_importance_weights_of_one():
    world = make_world("gridworld", horizon=6)
    space = world.policy_space()
    theta = 0.3 * np.random.default_rng(0).normal(size=space.num_parameters)
    seen = world.simulate(space, theta, world.default_configuration(), KEY, 30)
    terms = jax.jit(information_terms, static_argnums=(0, 1))(world, space, theta, seen)
    weighted, _ = jax.jit(expected_information, static_argnums=0)(world, terms, seen.configuration)
    assert np.allclose(information_per_episode(space, theta, seen), weighted, atol=1e-10)


def test_the_gain_is_the_determinant_by_hand():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(7, 3))
    information, guess = root.T @ root, np.diag([1.0, 2.0, 3.0])
    asked = question(units=(1, 2), num_episodes=4)
    matrix = 4 * information + guess
    by_hand = np.linalg.det(matrix) / matrix[0, 0] / (2.0 * 3.0)
    assert gain(asked, information, guess) == pytest.approx(np.log(by_hand))


@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_the_most_informative_configuration_is_found_in_any_unit(unit):
    """What is told about the second reading grows with s(ω), which is largest at 0.3: brute force on a grid agrees."""
    world = GymnasiumWorld.of(lambda omega=0.9: Readings(omega, unit), {"omega": (0, 1)})
    asked = question(world)
    proposal = Simulated().propose(asked)
    grid = np.linspace(0, 1, 101)
    exact = [
        gain(asked, STEPS / 0.25 * np.diag([1, 1, (unit * np.exp(-20 * (g - 0.3) ** 2)) ** 2]), np.eye(3)) for g in grid
    ]
    assert abs(float(proposal.configuration["omega"]) - grid[int(np.argmax(exact))]) < 0.1
    assert proposal.objective > proposal.values[0] and proposal.path[0].tolist() == [0.9]
    assert Simulated().propose(asked).configuration == proposal.configuration


def test_candidates_are_ranked_as_their_closed_form_ranks_them():
    asked, points = question(), np.linspace(0.05, 0.95, 10)[:, None]
    told = Simulated(num_simulated=40)._simulated(asked, points, 0, [])
    estimated = [gain(asked, one, np.eye(3)) for one in told]
    # s(ω) is symmetric around 0.3; these points are not.
    exact = [np.exp(-40 * (p - 0.3) ** 2) for p in points[:, 0]]
    assert np.argsort(estimated)[-5:].tolist() == np.argsort(exact)[-5:].tolist()


def test_space_filling_takes_the_least_discrepancy_of_brute_force():
    """Centred discrepancy by Hickernell's formula, over the same candidates."""

    def discrepancy(x):
        z = np.abs(x - 0.5)
        n, p = x.shape
        total = (13 / 12) ** p - 2 / n * np.prod(1 + z / 2 - z**2 / 2, axis=1).sum()
        for i in range(n):
            for j in range(n):
                total += np.prod(1 + z[i] / 2 + z[j] / 2 - np.abs(x[i] - x[j]) / 2) / n**2
        return total

    world = GymnasiumWorld.of("CartPole-v1", {"length": (0.3, 1.0), "gravity": (5, 15)})
    asked = DesignProblem(
        world, world.policy_space(), np.zeros(5), Trajectories((), np.zeros((1, 1, 4)), np.zeros((1, 1)), np.zeros((1, 1)),
        np.ones((1, 1), bool), world.check_configuration({})), (1,), 5, KEY, [{"length": 0.5, "gravity": 9.8}],
    )  # fmt: skip
    low, high = np.array([0.3, 5.0]), np.array([1.0, 15.0])
    seen = [np.array([0.5, 9.8])]
    for _ in range(5):
        chosen = np.array([float(v) for v in SpaceFilling().propose(asked).configuration.values()])
        others = low + (high - low) * np.random.default_rng(0).random((50, 2))
        uneven = [discrepancy((np.array([*seen, point]) - low) / (high - low)) for point in [chosen, *others]]
        assert uneven[0] <= np.quantile(uneven, 0.1)
        seen.append(chosen)
        earlier = [dict(zip(("length", "gravity"), point, strict=True)) for point in seen]
        asked = replace(asked, earlier=earlier)


def test_designs_by_densities_are_refused():
    for name in ("d-optimal", "noncentrality", "paper"):
        with pytest.raises(InputError, match=f"the design '{name}' weights trajectories by densities"):
            design_for(name, WORLD)
    for design in (Information(), PaperObjective()):
        with pytest.raises(InputError, match="weights trajectories by densities, which"):
            design.propose(question())
    assert default_design(WORLD).name == "simulated" and default_design(make_world("minigolf")).name == "d-optimal"


def test_the_loop_configures_an_environment_and_finds_what_watching_misses():
    """The second reading is all but constant at ω₀: with equal episodes it shows only where its deviation is large."""
    rng = np.random.default_rng(0)

    def agent(reading):
        return np.array([0.5 * reading[0] + 0.8 * reading[1] + 0.5 * rng.normal()])

    found = {}
    for design in ("simulated", "none"):
        rounds = list(
            configure(
                WORLD, WORLD.observe(agent), KEY, design=design_for(design, WORLD), max_rounds=1, significance=1e-4
            )
        )
        found[design] = rounds[-1].selected
    assert found == {"simulated": ("observation[0]", "observation[1]"), "none": ("observation[0]",)}


class Gaps(Readings):
    """Readings that cannot be had between 0.1 and 0.55, where they would tell most."""

    def __init__(self, omega=0.9):
        super().__init__(omega)
        if 0.1 < omega < 0.55:
            raise ValueError("not there")


class Nowhere(Gaps):
    """Works at the bounds, and then no more."""

    works = True

    def step(self, action):
        if not self.works:
            raise ValueError("nowhere")
        return super().step(action)


def test_a_candidate_that_cannot_be_played_tells_nothing_and_that_is_said():
    world = GymnasiumWorld.of(Gaps, {"omega": (0, 1)})
    proposal = Simulated().propose(question(world))
    omega = float(proposal.configuration["omega"])
    assert not 0.1 < omega < 0.55 and np.isfinite(proposal.values).all() and proposal.objective > proposal.values[0]
    (warning,) = proposal.warnings
    assert "configurations could not be played and were excluded; in one, the environment cannot be made at" in warning
    assert not Simulated().propose(question()).warnings


def test_where_nothing_can_be_played_that_is_the_answer(monkeypatch):
    world = GymnasiumWorld.of(Nowhere, {"omega": (0.6, 1)})
    asked = question(world)
    monkeypatch.setattr(Nowhere, "works", False)
    with pytest.raises(InputError, match=r"in step \(ValueError: nowhere\)"):
        Simulated().propose(asked)
