"""Agents: they learn, only inside what they control, and come back from files as they were."""

import json

import numpy as np
import optax
import pytest

from policyspace.errors import InputError
from policyspace.jax_setup import jax, jnp
from policyspace.policies.neural import BoltzmannNetwork
from policyspace.worlds import make_world
from policyspace.worlds.agents import learn, learn_many, plateau, reached, support_of
from policyspace.worlds.exact_gridworld import expected_return
from policyspace.worlds.saved_agents import load_agent, save_agent

WORLD = make_world("gridworld")
SPACE = WORLD.policy_space()
SHORT = {"num_steps": 23, "num_episodes": 50}


@pytest.fixture(scope="module")
def agent():
    return learn(WORLD, SPACE, key=1, **SHORT)


def test_an_agent_learns_as_well_as_with_the_exact_gradient():
    """200 × 250 against the same steps of Adam on the exact ∇J: at least 97 % of what those gain from θ = 0."""
    omega = WORLD.random_configuration(jax.random.key(2))
    learned = learn(WORLD, SPACE, configuration=omega, key=4)

    def value(theta):
        return expected_return(WORLD, SPACE, theta, omega)

    adam = optax.adam(0.1, b1=0.9, b2=0.99)

    def step(_, carry):
        theta, moments = carry
        change, moments = adam.update(-jax.grad(value)(theta), moments)
        return theta + change, moments

    zero = jnp.zeros(51)
    start, best = value(zero), value(jax.jit(lambda: jax.lax.fori_loop(0, 200, step, (zero, adam.init(zero)))[0])())
    assert value(jnp.asarray(learned.theta)) - start > 0.97 * (best - start)
    # The curve is the discounted return that it says: its first value is a sample mean of J(0).
    assert abs(learned.learning_curve[0] - start) < 5 * 20 / np.sqrt(250)
    assert learned.learning_curve.shape == (200,)


def test_uncontrolled_parameters_stay_exactly_fixed():
    space = WORLD.policy_space(fixed={"row_1": 0.25})
    owned = ["row_0", "goal_col_3"]
    agent = learn(WORLD, space, controls=owned, key=0, **SHORT)
    free = space.free(support_of(space, owned))
    assert agent.controls == ("row_0", "goal_col_3")
    np.testing.assert_array_equal(agent.theta[~free], space.fixed[~free])
    assert (agent.theta[free] != 0).all()
    assert (space.fixed == 0.25).sum() == 3


def test_same_key_same_agent_and_another_key_another(agent):
    again, other = learn(WORLD, SPACE, key=1, **SHORT), learn(WORLD, SPACE, key=2, **SHORT)
    np.testing.assert_array_equal(again.theta, agent.theta)
    np.testing.assert_array_equal(again.learning_curve, agent.learning_curve)
    assert not np.array_equal(other.theta, agent.theta)
    assert agent.seed == 1


def test_many_agents_are_the_single_ones():
    controls = [["row_0", "col_0"], WORLD.feature_names]
    omegas = [WORLD.random_configuration(jax.random.key(i)) for i in range(2)]
    many = learn_many(WORLD, SPACE, controls, omegas, [5, 6], **SHORT)
    for each, owned, omega, key in zip(many, controls, omegas, [5, 6], strict=True):
        single = learn(WORLD, SPACE, owned, omega, key, **SHORT)
        assert each.controls == single.controls
        np.testing.assert_allclose(each.theta, single.theta, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(each.learning_curve, single.learning_curve, rtol=1e-9)
        np.testing.assert_array_equal(each.configuration["row"], omega["row"])


def test_compiled_code_is_shared_across_configurations_and_controls(agent):
    from policyspace.worlds import agents

    before = agents._one._cache_size()
    for seed in range(2):
        omega = WORLD.random_configuration(jax.random.key(seed))
        learn(WORLD, SPACE, ["row_0"], omega, seed, num_steps=5 + seed, num_episodes=50, learning_rate=0.2)
    assert agents._one._cache_size() == before


def test_progress_is_told_and_learning_stops_when_told(agent):
    told = []
    stopped = learn(
        WORLD,
        SPACE,
        key=1,
        num_steps=60,
        num_episodes=50,
        stop=reached(-18.0),
        progress=lambda done, wanted, curve: told.append((done, wanted)),
    )
    assert told == [(done, 60) for done in range(10, len(stopped.learning_curve) + 1, 10)]
    assert len(stopped.learning_curve) < 60 and stopped.learning_curve[-10:].mean() >= -18.0
    # Steps are the same however learning is cut.
    shared = min(len(stopped.learning_curve), len(agent.learning_curve))
    np.testing.assert_array_equal(stopped.learning_curve[:shared], agent.learning_curve[:shared])


def test_stopping_rules():
    rising, flat = np.linspace(-20, 0, 300), np.concatenate([np.linspace(-20, 0, 150), np.zeros(150)])
    assert not plateau(50)(rising) and plateau(50)(flat) and not plateau(50)(flat[:140])
    assert reached(-1.0, 5)(rising) and not reached(-1.0, 5)(rising[:200]) and not reached(-99.0, 5)(rising[:4])


def test_a_warm_start_goes_on(agent):
    warm = learn(WORLD, SPACE, key=3, start=agent.theta, **SHORT)
    assert warm.learning_curve[:5].mean() > agent.learning_curve[:5].mean() + 3
    none = learn(WORLD, SPACE, key=3, start=agent.theta, num_steps=0)
    np.testing.assert_array_equal(none.theta, agent.theta)


def test_a_network_learns_in_the_same_world():
    space = BoltzmannNetwork(WORLD.feature_names, WORLD.action_names, hidden=(6,))
    start = np.asarray(space.init(jax.random.key(0), 0.3))
    agent = learn(WORLD, space, key=0, start=start, num_steps=60, num_episodes=100, learning_rate=0.05)
    assert agent.learning_curve[-5:].mean() > agent.learning_curve[:5].mean() + 5


def test_an_interrupt_between_chunks_passes_through():
    def interrupt(done, total, curve):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(WORLD, SPACE, key=1, progress=interrupt, **SHORT)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"controls": ["goalcol_0"]}, "did you mean 'goal_col_0'"),
        ({"configuration": {"rows": [1] * 5}}, "did you mean 'row'"),
        ({"num_episodes": 0}, "1 episode a step"),
        ({"learning_rate": float("nan")}, "positive rate"),
        ({"start": np.zeros(3)}, "51 finite numbers"),
    ],
)
def test_bad_learning_is_refused_in_a_sentence(given, message):
    with pytest.raises(InputError, match=message):
        learn(WORLD, SPACE, **{**SHORT, **given})


def test_divergence_is_an_error_not_an_agent():
    space = make_world("gridworld").policy_space()
    with pytest.raises(InputError, match="diverged"):
        learn(WORLD, space, learning_rate=1e308, **SHORT)


@pytest.mark.parametrize("kind", ["linear", "network", "grouped"])
def test_a_saved_agent_comes_back_exactly(tmp_path, kind):
    space = {
        "linear": SPACE,
        "network": BoltzmannNetwork(WORLD.feature_names, WORLD.action_names, hidden=(3,), activation="relu"),
        "grouped": WORLD.policy_space(groups={"place": ["row_0", "col_0"]}, always=["row_1"], fixed={"col_2": 0.1}),
    }[kind]
    controls = ["place", "goal_row_1"] if kind == "grouped" else ["row_0", "goal_row_1"]
    agent = learn(WORLD, space, controls, WORLD.random_configuration(jax.random.key(0)), 7, 5, 20)
    save_agent(agent, tmp_path / "agent.json")
    back = load_agent(tmp_path / "agent.json", WORLD)
    assert type(back.space) is type(space) and back.space.groups == space.groups
    assert (back.world, back.controls, back.seed, back.support) == (agent.world, agent.controls, 7, agent.support)
    np.testing.assert_array_equal(back.theta, agent.theta)
    np.testing.assert_array_equal(back.space.fixed, space.fixed)
    np.testing.assert_array_equal(back.learning_curve, agent.learning_curve)
    episodes = [a.act(WORLD, WORLD.default_configuration(), jax.random.key(1), 10) for a in (agent, back)]
    np.testing.assert_array_equal(episodes[0].actions, episodes[1].actions)
    save_agent(back, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "agent.json").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.json", "agent.json"]


def test_an_agent_of_another_world_is_refused(tmp_path, agent):
    save_agent(agent, tmp_path / "agent.json")
    content = json.loads((tmp_path / "agent.json").read_text())
    (tmp_path / "agent.json").write_text(json.dumps({**content, "world": "car"}))
    with pytest.raises(InputError, match="learned in the world 'car', not in 'gridworld'"):
        load_agent(tmp_path / "agent.json", WORLD)
    save_agent(agent, tmp_path / "agent.json")
    with pytest.raises(InputError, match="features are not those"):
        load_agent(tmp_path / "agent.json", make_world("gridworld", size=4))


def test_damaged_agent_files_are_refused_in_a_sentence(tmp_path, agent):
    path = tmp_path / "agent.json"
    save_agent(agent, path)
    text, content = path.read_text(), json.loads(path.read_text())
    damaged = [text[: len(text) // 2], "", "[]", "{}", "\x00\xff", '"text"']
    damaged += [json.dumps({k: v for k, v in content.items() if k != name}) for name in content if name != "version"]
    for name in content:
        if name not in ("version", "seed"):
            damaged += [json.dumps({**content, name: other}) for other in (None, 3, "x", [1, "a"], {"a": 1})]
    damaged.append(json.dumps({**content, "theta": [float("nan")] * 51}))
    for bad in damaged:
        path.write_text(bad)
        with pytest.raises(InputError):
            load_agent(path, WORLD)
    with pytest.raises(InputError, match="No such file"):
        load_agent(tmp_path / "nowhere.json")
    with pytest.raises(InputError, match="cannot be written"):
        save_agent(agent, tmp_path / "no" / "folder.json")
