"""Agents: they learn, only inside what they control, and come back from files as they were."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from policyspace import InputError, SoftmaxNetwork, learn, make_world, worlds
from policyspace.worlds import agents as best_known
from policyspace.worlds import load_agent, plateau, returns_of, save_agent, stop_at_return, support_of

expected_return = jax.jit(worlds.expected_return, static_argnums=(0, 1))
WORLD = make_world("gridworld")
SPACE = WORLD.policy_space()
SHORT = {"num_steps": 23, "num_episodes": 50}


@pytest.fixture(scope="module")
def agent():
    return learn(WORLD, SPACE, key=1, **SHORT)


def test_an_agent_learns_as_well_as_with_the_exact_gradient():
    """200 × 250 against the same steps of Adam on the exact ∇J: at least 97 % of what those gain from θ = 0."""
    omega = WORLD.random_configuration(jax.random.key(2))
    learned = learn(WORLD, SPACE, configuration=omega, key=4, num_steps=200)

    def value(theta):
        return expected_return(WORLD, SPACE, theta, omega)

    adam = optax.adam(0.1, b1=0.9, b2=0.99)

    def step(_, carry):
        theta, moments = carry
        change, moments = adam.update(-jax.grad(value)(theta), moments)
        return theta + change, moments

    zero = jnp.zeros(51)
    climbed = jax.jit(lambda: jax.lax.fori_loop(0, 200, step, (zero, adam.init(zero)))[0])()
    start, best, found = np.asarray(jax.jit(jax.vmap(value))(jnp.stack([zero, climbed, jnp.asarray(learned.theta)])))
    assert found - start > 0.97 * (best - start)
    # The curve is the discounted return that it says: its first value is a sample mean of J(0).
    assert abs(learned.learning_curve[0] - start) < 5 * 20 / np.sqrt(250)
    assert learned.learning_curve.shape == (200,)


def test_uncontrolled_parameters_stay_exactly_fixed():
    space = WORLD.policy_space(fixed={"row_1": 0.25})
    owned = ["row_0", "goal_col_3"]
    agent = learn(WORLD, space, controls=owned, key=0, **SHORT)
    free = space.free_mask(support_of(space, owned))
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


def test_compiled_code_is_shared_across_configurations_and_controls(agent):
    from policyspace.worlds import agents

    before = agents._advance._cache_size()
    for seed in range(2):
        omega = WORLD.random_configuration(jax.random.key(seed))
        learn(WORLD, SPACE, ["row_0"], omega, seed, num_steps=5 + seed, num_episodes=50, learning_rate=0.2)
    assert agents._advance._cache_size() == before


def test_progress_is_told_and_learning_stops_when_told(agent):
    told = []
    stopped = learn(
        WORLD,
        SPACE,
        key=1,
        num_steps=60,
        num_episodes=50,
        stop=stop_at_return(-18.0),
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
    assert (
        stop_at_return(-1.0, 5)(rising)
        and not stop_at_return(-1.0, 5)(rising[:200])
        and not stop_at_return(-99.0, 5)(rising[:4])
    )


def test_a_warm_start_goes_on(agent):
    warm = learn(WORLD, SPACE, key=3, start=agent.theta, **SHORT)
    assert warm.learning_curve[:5].mean() > agent.learning_curve[:5].mean() + 3
    none = learn(WORLD, SPACE, key=3, start=agent.theta, num_steps=0)
    np.testing.assert_array_equal(none.theta, agent.theta)


def test_a_network_learns_in_the_same_world():
    space = SoftmaxNetwork(WORLD.feature_names, WORLD.action_names, hidden=(6,))
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
        "network": SoftmaxNetwork(WORLD.feature_names, WORLD.action_names, hidden=(3,), activation="relu"),
        "grouped": WORLD.policy_space(groups={"place": ["row_0", "col_0"]}, assume=["row_1"], fixed={"col_2": 0.1}),
    }[kind]
    controls = ["place", "goal_row_1"] if kind == "grouped" else ["row_0", "goal_row_1"]
    omega, start = WORLD.random_configuration(jax.random.key(0)), np.linspace(-1, 1, space.num_parameters)
    agent = learn(WORLD, space, controls, omega, 7, 5 if kind == "linear" else 0, 50, start=start)
    save_agent(agent, tmp_path / "agent.json")
    back = load_agent(tmp_path / "agent.json", WORLD)
    assert type(back.space) is type(space) and back.space.groups == space.groups
    assert (back.world, back.controls, back.seed, back.support) == (agent.world, agent.controls, 7, agent.support)
    np.testing.assert_array_equal(back.theta, agent.theta)
    np.testing.assert_array_equal(back.space.fixed, space.fixed)
    np.testing.assert_array_equal(back.learning_curve, agent.learning_curve)
    features, codes = np.random.default_rng(0).normal(size=(9, 16)), np.arange(9) % 4
    densities = [np.asarray(a.space.log_prob(a.theta, features, codes)) for a in (agent, back)]
    np.testing.assert_array_equal(*densities)
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
    damaged += [
        json.dumps({k: v for k, v in content.items() if k != name})
        for name in content
        if name not in ("version", "returns")
    ]
    for name in content:
        if name not in ("version", "seed"):
            others = (3, "x", [1, "a"], {"a": 1}) if name == "returns" else (None, 3, "x", [1, "a"], {"a": 1})
            damaged += [json.dumps({**content, name: other}) for other in others]
    damaged.append(json.dumps({**content, "theta": [float("nan")] * 51}))
    for bad in damaged:
        path.write_text(bad)
        with pytest.raises(InputError):
            load_agent(path, WORLD)
    with pytest.raises(InputError, match="no such file"):
        load_agent(tmp_path / "nowhere.json")
    with pytest.raises(InputError, match="there is no folder"):
        save_agent(agent, tmp_path / "no" / "folder.json")


GOLF = make_world("minigolf")
GOLF_SPACE = GOLF.policy_space()
CLIMB = 10 / 7 * 9.81  # v_min² = CLIMB·f·x, and v_max² is 7.33 more


def golf_return(agent, putter_length):
    """The mean undiscounted return of 20 000 episodes, and its standard error."""
    omega = GOLF.check_configuration({"putter_length": putter_length})
    returns = np.asarray(agent.act(GOLF, omega, jax.random.key(99), 20_000).returns())
    return returns.mean(), returns.std() / np.sqrt(len(returns))


def test_the_golfer_who_sees_everything_comes_to_the_known_best_return():
    """A₁ at ω = 5: −0.06, from the stroke u = v_min + 0.75 that physics suggests."""
    start = np.array([0.15, 0, 0, 0, 0, np.sqrt(CLIMB) / 5])
    agent = learn(GOLF, GOLF_SPACE, key=0, num_steps=600, num_episodes=200, learning_rate=0.001, start=start)
    mean, error = golf_return(agent, 5.0)
    assert abs(mean + 0.06) < 0.02 + 3 * error


def test_the_golfer_who_does_not_see_friction_comes_to_the_known_best_return():
    """A₂ at ω = 3: −3.84, from the stroke that is never too fast even on the smoothest green, f = 0.02."""
    x = np.linspace(0.05, 20, 400)
    stroke = np.sqrt(CLIMB * 0.02 * x + 7.33) / 3 - 0.05
    start = np.zeros(6)
    columns = np.stack([np.ones_like(x), x, np.sqrt(x)], axis=1)
    start[[0, 1, 3]] = np.linalg.lstsq(columns, stroke, rcond=None)[0]
    omega = {"putter_length": 3.0}
    agent = learn(GOLF, GOLF_SPACE, ["x", "sqrt_x"], omega, 0, 600, 200, 0.001, start=start)
    mean, error = golf_return(agent, 3.0)
    assert abs(mean + 3.84) < 0.06 + 3 * error
    assert (agent.theta[[2, 4, 5]] == 0).all()


TABLE = {2: (-1.91, -3.84), 3: (-0.62, -3.84), 5: (-0.06, -3.92), 7: (-0.13, -4.00), 9: (-0.23, -4.13)}
TABLE |= {11.5: (-0.37, -4.26), 15: (-0.59, -4.47)}


@pytest.mark.slow
@pytest.mark.parametrize("putter_length", [length for length in TABLE if length > 2])
@pytest.mark.parametrize("agent", ["A1", "A2"])
def test_golfers_from_scratch_have_the_returns_of_the_table(putter_length, agent):
    """Both agents, from scratch with the usual settings, against an optimisation of the same dynamics."""
    controls = None if agent == "A1" else ["x", "sqrt_x"]
    learned = learn(GOLF, GOLF_SPACE, controls, {"putter_length": putter_length}, 1)
    mean, error = golf_return(learned, putter_length)
    assert abs(mean - TABLE[putter_length][agent == "A2"]) < 0.15 + 3 * error


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["A1", "A2"])
def test_golfers_with_the_shortest_putter_go_on_from_a_longer_one(agent):
    """At ω = 2 learning from scratch stops at −2.1 (A₁): learning goes on from the agent of ω = 3.

    That agent hits 3/2 times as hard, which gives the ball the speed that it had.
    """
    controls = None if agent == "A1" else ["x", "sqrt_x"]
    longer = learn(GOLF, GOLF_SPACE, controls, {"putter_length": 3.0}, 1)
    learned = learn(GOLF, GOLF_SPACE, controls, {"putter_length": 2.0}, 2, start=1.5 * longer.theta)
    mean, error = golf_return(learned, 2.0)
    assert abs(mean - TABLE[2][agent == "A2"]) < 0.15 + 3 * error


def test_a_driver_learns_to_finish_the_road():
    """70 × 50 from random weights: the last batches earn what only full speed to the end of the road does."""
    world = make_world("car")
    driver = learn(world, key=0, num_steps=70)
    assert driver.learning_curve[:5].mean() < 20 and driver.learning_curve[-10:].mean() > 60
    seen = driver.act(world, world.default_configuration(), jax.random.key(1), 100)
    assert (np.asarray(seen.states)[:, -1, 1] > 500).mean() > 0.9  # y at the end
    network = driver.space.layers(driver.theta)[0][0]
    assert (network[:, 3:] == 0).all() and (network[:, :3] != 0).all()  # no weight leaves the sensors on the right


def test_agents_of_the_grid_world_learn_better_than_by_policy_gradients():
    """J is exact there: never worse than 200 × 250 of G(PO)MDP, and nothing outside the controls moves."""
    for seed in range(3):
        controls, start = jax.random.split(jax.random.key(400 + seed))
        owned, omega = WORLD.random_controls(controls), WORLD.random_configuration(start)
        well, usual = learn(WORLD, SPACE, owned, omega, 1), learn(WORLD, SPACE, owned, omega, 1, num_steps=200)
        better, worse = (float(expected_return(WORLD, SPACE, agent.theta, omega)) for agent in (well, usual))
        assert better > worse - 0.02
        assert well.learning_curve[-1] == pytest.approx(better, abs=0.05)
        free = SPACE.free_mask(support_of(SPACE, owned))
        assert (well.theta[~free] == 0).all()


def test_agents_of_the_continuous_grid_world_reach_their_goals():
    world = make_world("continuous-gridworld")
    space, omega = world.policy_space(), world.default_configuration()
    agent = learn(world, space, controls=world.feature_names[:40], configuration=omega, key=3)
    seen = agent.act(world, omega, jax.random.key(1), 500)
    assert (seen.lengths < world.horizon).mean() > 0.98
    assert agent.learning_curve[-1] == pytest.approx(float(np.mean(seen.returns(world.discount))), abs=0.15)
    assert (agent.theta.reshape(2, 50)[:, 40:] == 0).all()


def test_the_distance_from_the_best_known_policy_is_that_of_exact_returns():
    """Three agents of one space, one of which hardly learned: the distance is that of exact returns, up to sampling."""
    omega = WORLD.random_configuration(jax.random.key(2))
    poor = learn(WORLD, SPACE, configuration=omega, key=1, **SHORT)
    found = returns_of(poor, WORLD, jax.random.key(5))
    assert found.agent == pytest.approx(float(expected_return(WORLD, SPACE, poor.theta, omega)), abs=1.0)
    assert found.distance > 1 and found.to_dict()["distance"] == found.best_known - found.agent
    well = learn(WORLD, SPACE, configuration=omega, key=9)
    assert returns_of(well, WORLD, jax.random.key(5)).distance < 0.5


def test_far_is_a_share_of_what_can_be_learned_beyond_chance():
    def returns(agent, best, unlearned, error=0.01):
        return worlds.Returns(agent, best, unlearned, 0.1, error)

    assert returns(-2.0, -2.0, -20.0).learned == 1 and not returns(-2.5, -2.0, -20.0).far
    assert returns(-11.0, -2.0, -20.0).learned == 0.5 and returns(-11.0, -2.0, -20.0).far
    assert returns(-95.0, -2.0, -20.0).learned == 0 and returns(-95.0, -2.0, -20.0).far  # worse than nothing
    assert returns(-5.105, -5.1, -5.1, error=0.01).learned == 1  # nothing to learn, and a difference by chance
    assert returns(-2.5, -2.0, -20.0).to_dict() == {"agent": -2.5, "best_known": -2.0, "distance": 0.5}


def test_drivers_are_compared_with_those_who_learned_longer(monkeypatch):
    """By default a driver learns for 100 steps; its rival for 600."""
    world, asked = make_world("car"), []

    def told(*given, **options):
        asked.append(options)
        return learn(*given, num_steps=2)

    monkeypatch.setattr(best_known, "learn", told)
    driver = learn(world, key=0, num_steps=2)
    assert returns_of(driver, world, jax.random.key(5)).distance >= 0
    assert asked == [{"num_steps": 600}]
    asked.clear()
    returns_of(learn(WORLD, SPACE, key=1, **SHORT), WORLD, jax.random.key(5))
    assert asked == [{"num_steps": None}] * best_known.NUM_OTHERS


def test_a_golfer_with_a_short_putter_has_something_to_learn_from():
    """From U[0, 0.1) weights no ball reaches the hole at this ω: every return is the worst, and there is no gradient."""
    world = make_world("minigolf")
    omega, worst = {"putter_length": 1.3}, -(1 - world.discount**world.horizon) / (1 - world.discount)
    chance = learn(world, None, ["x", "f"], omega, 0, num_steps=20)
    assert chance.learning_curve == pytest.approx(np.full(20, worst), rel=1e-2)
    usual = learn(world, None, ["x", "f"], omega, 0)
    assert usual.learning_curve[0] > 0.5 * worst and usual.learning_curve[-50:].mean() > usual.learning_curve[0]
