"""A user's own world in one class, and rollouts in it."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policyspace import ConfMDP, InputError, PolicySpace, rollout
from policyspace.worlds import log_weights

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_world.py"


@pytest.fixture(scope="module")
def rover() -> ConfMDP:
    return runpy.run_path(str(EXAMPLE))["Rover"]()


@pytest.fixture(scope="module")
def space(rover: ConfMDP) -> PolicySpace:
    return rover.policy_space()


def test_an_own_world_is_one_class(rover: ConfMDP, space: PolicySpace) -> None:
    """The closed form of the example: x' = x + ω·a + σε has weights that are ratios of Normal densities."""
    seen = rollout(rover, space, np.array([0.1, -0.5, 0.0]), rover.default_configuration(), jax.random.key(0), 3000)
    log_weight = np.asarray(log_weights(rover, seen, {"gain": 1.04}))
    x, a, mask = np.asarray(seen.states)[..., 0], np.asarray(seen.actions)[..., 0], np.asarray(seen.mask)
    step = x[:, 1:] - x[:, :-1]
    ratio = ((step - a) ** 2 - (step - 1.04 * a) ** 2) / (2 * 0.2**2) * mask
    assert log_weight[:, 1:] == pytest.approx(np.cumsum(ratio, axis=1), abs=1e-9)
    weight = np.exp(log_weight[:, -1])
    assert abs(weight.mean() - 1) < 5 * weight.std() / np.sqrt(3000)
    assert (rover.observation_bounds()[1] == np.inf).all()


def test_a_world_that_promises_normal_numbers_must_move_by_them(rover: ConfMDP) -> None:
    assert rover.num_normals is None
    with pytest.raises(InputError, match="give it a method `move`"):
        rover.move(None, None, None, rover.default_configuration())


def test_the_example_runs_and_answers() -> None:
    out = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    assert out.stdout.strip().endswith("The agent uses 1 of 2: position.")


def test_rollouts_may_be_part_of_a_compiled_function(rover: ConfMDP, space: PolicySpace) -> None:
    omega = rover.default_configuration()

    def mean_return(theta: Any) -> Any:
        return jnp.mean(rollout(rover, space, theta, omega, jax.random.key(0), 100).returns(rover.discount))

    thetas = jnp.array([[0.0, -0.5, 0.0], [0.0, 0.0, 0.0]])
    together = np.asarray(jax.jit(jax.vmap(mean_return))(thetas))
    single = jax.jit(mean_return)
    assert together == pytest.approx([float(single(theta)) for theta in thetas], rel=1e-12)


def test_names_are_known_without_jax() -> None:
    code = "import sys, policyspace.worlds as w; print(list(w.WORLDS)); assert 'jax' not in sys.modules"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    assert "continuous-gridworld" in out.stdout
