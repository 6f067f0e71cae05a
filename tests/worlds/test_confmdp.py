"""Configurations as users write them, trajectories, and a user's own world in one class."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyspace.errors import InputError
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds.configuration_parameters import (
    ConfigurationParameter,
    checked_configuration,
    parse_configuration,
)
from policyspace.worlds.confmdp import ConfMDP, rollout
from policyspace.worlds.importance import effective_sample_size, log_weights, renyi2
from policyspace.worlds.trajectories import Trajectories, concatenate

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_world.py"
PARAMETERS = (
    ConfigurationParameter("row", (5,), -10.0, 10.0, 1.0, "logits"),
    ConfigurationParameter("table", (2, 3), 0.0, 9.0, ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)), "a table"),
    ConfigurationParameter("gain", (), 0.0, 2.0, 0.5, "a number"),
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("gain=1.5", {"gain": 1.5}),
        ("row[2]=5, gain = 1", {"row[2]": 5, "gain": 1}),
        ("row=[1,1,5,1,1],table[1,2]=0.5", {"row": [1, 1, 5, 1, 1], "table[1,2]": 0.5}),
        ("gain=-1e-3", {"gain": -0.001}),
    ],
)
def test_text_is_parsed(text: str, wanted: dict[str, Any]) -> None:
    assert parse_configuration(text) == wanted


def test_a_toml_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "omega.toml"
    path.write_text('gain = 1.5\n"row[2]" = 5\ntable = [[1, 1, 1], [2, 2, 2]]\n')
    given = parse_configuration(str(path))
    assert given == {"gain": 1.5, "row[2]": 5, "table": [[1, 1, 1], [2, 2, 2]]}
    omega = checked_configuration(PARAMETERS, given)
    assert omega["row"].tolist() == [1, 1, 5, 1, 1]
    assert omega["table"].tolist() == [[1, 1, 1], [2, 2, 2]]


@pytest.mark.parametrize("text", ["gain", "gain=", "gain=much", "=3", "gain=1,gain=2", "gain=1,,row[0]=2"])
def test_bad_text_is_told(text: str) -> None:
    with pytest.raises(InputError):
        parse_configuration(text)


def test_bad_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        parse_configuration(str(tmp_path / "none.toml"))
    (tmp_path / "bad.toml").write_text("gain = = 3")
    with pytest.raises(InputError, match="not valid TOML"):
        parse_configuration(tmp_path / "bad.toml")


def test_elements_are_set_after_the_whole() -> None:
    omega = checked_configuration(PARAMETERS, {"row[2]": 5, "row": [0, 0, 0, 0, 0], "table[1, 0]": 7})
    assert omega["row"].tolist() == [0, 0, 5, 0, 0]
    assert omega["table"].tolist() == [[1, 2, 3], [7, 5, 6]]
    assert omega["gain"] == 0.5
    assert omega["row"].dtype == np.float64


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"rwo": 1}, "did you mean 'row'"),
        ({"rwo[1]": 1}, "did you mean 'row'"),
        ({"row[5]": 1}, r"shape \(5,\)"),
        ({"gain[0]": 1}, r"shape \(\)"),
        ({"row": 3}, r"shape \(5,\)"),
        ({"gain": True, "row": [1, 1, 1, 1, float("nan")]}, "finite"),
        ({"gain": 2.5}, "between 0 and 2, found 2.5"),
        ({"gain": None}, "finite"),
        ({"row": [[1], [2, 3]]}, "numbers"),
        ({"gain": {"a": 1}}, "numbers"),
    ],
)
def test_bad_configurations_are_told(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        checked_configuration(PARAMETERS, given)


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
    assert out.stdout.strip().endswith("The agent controls position; no evidence for temperature.")


def test_rollouts_may_be_part_of_a_compiled_function(rover: ConfMDP, space: PolicySpace) -> None:
    omega = rover.default_configuration()

    def mean_return(theta: Any) -> Any:
        return jnp.mean(rollout(rover, space, theta, omega, jax.random.key(0), 100).returns(rover.discount))

    thetas = jnp.array([[0.0, -0.5, 0.0], [0.0, 0.0, 0.0]])
    together = np.asarray(jax.jit(jax.vmap(mean_return))(thetas))
    single = jax.jit(mean_return)
    assert together == pytest.approx([float(single(theta)) for theta in thetas], rel=1e-12)


def test_trajectories_join_only_if_they_share_a_configuration(rover: ConfMDP, space: PolicySpace) -> None:
    theta = np.array([0.0, -0.5, 0.0])
    first, second = (rollout(rover, space, theta, {"gain": 1.0}, jax.random.key(i), 10) for i in (0, 1))
    both = concatenate([first, second])
    assert both.num_episodes == 20
    assert both.num_pairs == first.num_pairs + second.num_pairs
    assert np.array_equal(both.states[10:], second.states)
    assert np.asarray(log_weights(rover, both, {"gain": 1.1}))[:10] == pytest.approx(
        np.asarray(log_weights(rover, first, {"gain": 1.1})), abs=1e-12
    )
    with pytest.raises(InputError, match="different configurations"):
        concatenate([first, rollout(rover, space, theta, {"gain": 1.5}, jax.random.key(0), 10)])
    with pytest.raises(InputError, match="no trajectories"):
        concatenate([])


def test_trajectories_of_other_shapes_are_told() -> None:
    ones = np.ones((4, 6))
    with pytest.raises(InputError, match="need actions of shape"):
        Trajectories(np.ones((4, 7, 2)), np.ones((4, 6, 2)), np.ones((4, 5)), ones, ones.astype(bool), {})


def test_diagnostics_survive_weights_of_zero_and_of_any_size() -> None:
    weights = jnp.array([-jnp.inf, jnp.log(3.0), 0.0, -jnp.inf])
    assert float(renyi2(weights)) == pytest.approx((9 + 1) / 4)
    assert float(effective_sample_size(weights)) == pytest.approx(16 / 10)
    assert float(effective_sample_size(jnp.array([800.0, 800.0, -900.0]))) == pytest.approx(2.0)
    nothing = jnp.full(3, -jnp.inf)
    assert float(renyi2(nothing)) == 0.0
    assert float(effective_sample_size(nothing)) == 0.0


def test_names_are_known_without_jax() -> None:
    code = "import sys, policyspace.worlds as w; print(list(w.WORLDS)); assert 'jax' not in sys.modules"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    assert "continuous-gridworld" in out.stdout


def test_compiled_code_is_kept_in_the_users_cache(tmp_path: Path) -> None:
    code = (
        "from policyspace.policies.jax_setup import jax, jnp, cache_folder;"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0);"
        "jax.jit(lambda x: jnp.sin(x) @ x)(jnp.arange(3.0)); print(cache_folder())"
    )
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin", "HOME": str(tmp_path)}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert out.returncode == 0, out.stderr
    folder = Path(out.stdout.strip())
    assert folder == tmp_path / "policyspace" / "jax"
    assert any(folder.iterdir())
