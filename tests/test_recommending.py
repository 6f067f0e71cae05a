"""Recommendations: searches whose optimum is known, regret by hand, agents that learn with hidden inputs, and sentences."""

import json
import sys

import gymnasium
import numpy as np
import pytest

import policyspace
from policyspace.cli import main
from policyspace.errors import InputError
from policyspace.identified import IdentifiedSpace
from policyspace.recommending import Cube, SearchOptions, of_returns, returns_by, search, spread_points
from policyspace.study import DecisionDesign, ReturnTable, possible_supports
from policyspace.worlds import Minigolf

PEAKS = {("x",): 4.0, ("f",): 9.0}


def hill(configuration, support, number):
    """Returns with a peak that hangs on the features; the chances of a learning are the same in all configurations."""
    rng = np.random.default_rng(number)
    return (
        -((float(configuration["putter_length"]) - PEAKS[support]) ** 2) / 10
        + 0.3 * rng.normal()
        + rng.normal(size=200)
    )


# -- The search.


def test_points_fill_the_cube():
    points = spread_points(6, 2, seed=0)
    assert points.shape == (6, 2) and ((points >= 0) & (points < 1)).all()
    assert len(np.unique((spread_points(8, 1, 0) * 8).astype(int))) == 8  # one in each eighth


def test_the_best_of_a_known_hill_is_found_and_refined():
    options = SearchOptions(8, 2, 4, 3, 200, 0)
    (found,) = search(Cube(Minigolf()), hill, [("x",)], [], options)
    best = found.tried[found.best]
    assert len(found.tried) == 16
    assert abs(best.configuration["putter_length"] - 4.0) < 0.6
    first = min(abs(one.configuration["putter_length"] - 4.0) for one in found.tried[:8])
    assert abs(best.configuration["putter_length"] - 4.0) <= first
    assert sum(one.best_chance for one in found.tried) == pytest.approx(1)


def test_intervals_hold_the_mean_over_learnings():
    """t-intervals over learnings: of 300 searches about 95 % hold the value of the hill."""
    rng, inside = np.random.default_rng(0), 0
    for _ in range(300):
        values = 2.0 + 0.5 * rng.normal(size=(3, 1)) + rng.normal(size=(3, 400))
        (one,) = of_returns(("x",), [{"putter_length": 1.0}], [values], 0).tried
        inside += one.low <= 2.0 <= one.high
    assert 273 <= inside <= 296


def test_the_chance_of_being_best_uses_pairs():
    """A difference that is the same in every learning is certain, though the learnings differ much."""
    rng = np.random.default_rng(0)
    luck = 10 * rng.normal(size=(4, 1)) + np.zeros((4, 100))
    both = of_returns(("x",), [{"a": 0.0}, {"a": 1.0}], [luck, luck + 1], 0).tried
    assert both[1].best_chance == 1.0 and both[0].high > both[1].low
    alike = of_returns(("x",), [{"a": 0.0}, {"a": 1.0}], [rng.normal(size=(4, 100)) for _ in range(2)], 0).tried
    assert 0.05 < alike[0].best_chance < 0.95


# -- The decision.


def recommendation(values, **more):
    """For sets of features x, xf and both, in three configurations with these mean returns."""
    places = [{"putter_length": length} for length in (2.0, 5.0, 9.0)]
    rows = [[np.full((2, 5), one) for one in row] for row in values]
    names = [("x",), ("x", "f")]
    choices = tuple(of_returns(name, places, row, 0) for name, row in zip(names, rows, strict=False))
    return policyspace.Recommendation("minigolf", choices, None, SearchOptions(), **more)


def test_regret_is_minimised_over_all_sets():
    found = recommendation([[0.0, -2.0, -5.0], [-9.0, -3.0, 0.0]])
    np.testing.assert_array_equal(found.regrets, [[0, 2, 5], [9, 3, 0]])
    assert found.minimax == 1 and found.expected == 1  # largest 9, 3, 5; means 4.5, 2.5, 2.5: the first
    assert found.configuration == {"putter_length": 5.0}
    assert "at most 3 of the return is lost" in found.sentence
    one = recommendation([[0.0, -2.0, -5.0]])
    assert one.configuration == {"putter_length": 2.0} and one.sentence.startswith("Best for an agent that uses x")


def test_a_tolerance_says_when_nothing_is_left_to_decide():
    values = [[0.0, -0.1, -5.0], [-9.0, -0.2, 0.0]]
    assert recommendation(values, tolerance=0.3).decided
    assert not recommendation(values, tolerance=0.1).decided and not recommendation(values).decided


def test_two_sets_are_told_and_what_they_cost(monkeypatch):
    """The whole way, with learning replaced by the hill: the choice lies between the peaks."""
    monkeypatch.setattr("policyspace.recommending.play_in_world", lambda *_: hill)
    answer = {"supports": [["x"], ["f"]]}
    found = policyspace.recommend("minigolf", answer, everything=False, learnings=2, episodes=200)
    assert 5.5 < found.configuration["putter_length"] < 7.5
    assert found.undecided["x"] == found.undecided["f"] == pytest.approx(2.5, abs=0.8)
    assert json.loads(found.to_json())["largest_regret"] == pytest.approx(0.6, abs=0.35)
    assert "Not knowing whether the agent uses x" in str(found)


# -- Agents that learn.


def test_agents_of_our_worlds_learn_inside_the_support():
    """Chances are the same for the same seed; the features that are left out have weights of exactly zero."""
    words = {"configurations": 2, "refinements": 0, "learnings": 1, "learning_steps": 30, "episodes": 50}
    first, again = (policyspace.recommend("minigolf", ["x", "sqrt_x"], **words) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    assert first.everything is not None and len(first.everything.support) == 5


def test_inputs_outside_of_the_support_are_hidden_in_an_environment():
    seen = []

    def learn(env):
        first, _ = env.reset(seed=0)
        seen.append(first)
        return lambda observation: int(observation[2] + observation[3] > 0)

    world = policyspace.GymnasiumWorld.of("CartPole-v1", {"length": (0.3, 1.0)})
    names = [world.feature_names[2], world.feature_names[3]]
    words = {"configurations": 2, "refinements": 0, "learnings": 2, "episodes": 3, "everything": False}
    found = policyspace.recommend(world, names, learn=learn, **words)
    assert all((one[:2] == 0).all() and one[2:].any() for one in seen) and len(seen) == 4
    assert all(one.value > 100 for one in found.choices[0].tried)  # a pole that falls at once gives 10
    blind = policyspace.recommend(world, [world.feature_names[0]], learn=learn, **words)
    assert all(one.value < 60 for one in blind.choices[0].tried)  # the driver sees zeros


def test_a_goal_takes_the_place_of_the_return():
    world = policyspace.make_world("minigolf")
    agent = policyspace.learn(world, None, ["x"], None, key=0, num_steps=5)
    import jax

    seen = agent.act(world, world.default_configuration(), jax.random.key(0), 20)
    strokes = returns_by(seen, lambda features, actions, rewards: -len(rewards), 1.0)
    np.testing.assert_array_equal(strokes, -seen.lengths)
    np.testing.assert_allclose(returns_by(seen, lambda f, a, r: float(r.sum()), 1.0), returns_by(seen, None, 1.0))
    with pytest.raises(InputError, match="the goal must return a finite number"):
        returns_by(seen, lambda f, a, r: None, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [0.01, 0.1])
@pytest.mark.parametrize("agent", ["A1", "A2"])
def test_the_putter_of_a_golfer_is_found_from_its_demonstrations(agent, deviation):
    """Within one standard error of the return of the best putter of a grid, where other agents learned several times."""
    from benchmarks.recommendations import AGENT_A2, one

    controls = Minigolf().feature_names if agent == "A1" else tuple(AGENT_A2)
    _, _, own, _, best, error = one(controls, deviation, compared=6)
    assert own > best - error


def test_the_space_of_a_study_is_that_of_its_last_round(tmp_path):
    import jax

    study = policyspace.Study.create(
        tmp_path / "golf.sqlite", "minigolf", rule="combinatorial", episodes=80, max_rounds=2
    )
    with pytest.raises(InputError, match="shows no feature to be used"):
        policyspace.recommend("minigolf", study)
    asked, world = study.ask(), study.world
    theta = np.array([0.2, 0.02, 0.0, 0.1, 0.0, 0.0])
    omega = world.check_configuration(asked.configuration)
    seen = policyspace.rollout(world, study.space, theta, omega, jax.random.key(0), asked.num_episodes)
    told = study.tell(seen, asked.configuration)
    assert told.supports and IdentifiedSpace.of(study).supports == tuple(map(tuple, told.supports))


# -- The returns of a real agent, from the rounds of a study.


def a_study(tmp_path, rewards=lambda length: length, rounds=2):
    """Of a cart-pole whose rounds are told as logs: what was returned is known."""
    world = policyspace.GymnasiumWorld.of("CartPole-v1", {"length": (0.3, 1.0)})
    study = policyspace.Study.create(
        tmp_path / "carts.sqlite", world, episodes=12, max_rounds=3, design="space-filling"
    )
    rng = np.random.default_rng(0)
    for length in (0.4, 0.8)[:rounds]:
        states = rng.normal(size=(120, 4))
        worth = {"reward": np.full(120, rewards(length)) + (0.1 * rng.normal(size=120) if rewards(length) else 0.0)}
        log = policyspace.Sample.from_arrays(
            states, (states[:, 2] > 0).astype(int), list(world.feature_names), episodes=np.arange(120) // 10,
            recorded=worth if rewards(length) is not None else {},
        )  # fmt: skip
        study.tell(log, {"length": length})
    return study


def test_a_real_agent_is_compared_by_what_it_returned(tmp_path):
    study = a_study(tmp_path)
    found = policyspace.recommend(None, study, observed=True)
    assert found.configuration == {"length": 0.8} and found.chosen.best_chance > 0.99
    first, second = found.choices[0].tried
    assert first.value == pytest.approx(4, abs=0.3) and second.low < 8 < second.high
    assert found.sentence.startswith(
        "Best for this agent: length 0.8; return"
    ) and "What the agent itself returned" in str(found)
    shorter = policyspace.recommend(None, study, observed=True, goal=lambda f, a, r: -float(r.sum()))
    assert shorter.configuration == {"length": 0.4}
    np.testing.assert_allclose(study.episodes(1).returns().mean(), second.value)


def test_played_rounds_keep_their_rewards(tmp_path):
    study = policyspace.Study.create(
        tmp_path / "p.sqlite", policyspace.GymnasiumWorld.of("CartPole-v1", {"length": (0.3, 1.0)}), episodes=4
    )
    study.play(lambda seen: int(seen[2] + seen[3] > 0))
    seen = study.episodes(0)
    np.testing.assert_array_equal(seen.returns(), seen.lengths)  # 1 a step


@pytest.mark.parametrize(
    "study, sentence",
    [
        ({"rounds": 1}, "observed in 1 configuration, so that none can be better"),
        ({"rewards": lambda length: 0.0 if length else 0}, "was reported without rewards"),
    ],
)
def test_what_rounds_do_not_tell(tmp_path, study, sentence):
    with pytest.raises(InputError, match=sentence):
        policyspace.recommend(None, a_study(tmp_path, **study), observed=True)


def test_returns_that_are_the_same_everywhere_decide_nothing(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="the return of this agent is 1 in every configuration"):
        policyspace.recommend(None, a_study(tmp_path), observed=True, goal=lambda f, a, r: 1.0)
    monkeypatch.setattr("policyspace.recommending.play_in_world", lambda *_: lambda *_: np.ones(5))
    with pytest.raises(InputError, match="the return of these agents is 1 in every configuration"):
        policyspace.recommend("minigolf", ["x"])


# -- The round that makes the decision safer.


def test_a_round_is_worth_what_it_takes_from_the_regret():
    """Regret by hand: only x changes the best configuration, so only showing x is worth anything."""
    world, lengths = Minigolf(), (2.0, 5.0)
    values = {True: (-5.0, 0.0), False: (-1.0, -3.0)}  # of agents with x, and without
    table = ReturnTable(
        lambda omega, support, _: np.full(3, values["x" in support][lengths.index(float(omega["putter_length"]))]),
        [{"putter_length": np.array(length)} for length in lengths],
    )
    design = DecisionDesign(world, table=table)
    space = world.policy_space()
    units = [i for i, group in enumerate(space.groups) if group.name in ("x", "f")]
    now, falls = design.worth(space.with_assumed(["sqrt_x", "sqrt_f", "sqrt_xf"]), units)
    assert now == 2.0  # choose 5: without x, −3 instead of −1
    by_name = dict(zip([space.groups[u].name for u in units], falls, strict=True))
    assert by_name == {"x": 2.0, "f": 0.0}
    assert len(table.known) == 8  # four sets, two configurations, learned once


def test_possible_supports_are_all_subsets_or_those_nearest():
    assert possible_supports(["a"], ["b", "c"]) == [("a",), ("a", "b"), ("a", "c"), ("a", "b", "c")]
    assert len(possible_supports([], list("abcdefgh"))) == 18


def test_a_study_asks_for_the_round_of_the_decision(tmp_path, monkeypatch):
    import jax

    def peaks(*_):
        return lambda omega, support, number: np.full(3, -abs(float(omega["putter_length"]) - 3 - 6 * ("f" in support)))

    monkeypatch.setattr("policyspace.study.deciding.play_in_world", peaks)
    study = policyspace.Study.create(tmp_path / "golf.sqlite", "minigolf", features=["f", "sqrt_f"], episodes=30)
    first = study.ask("decision")
    assert first.design is None  # where it is
    world = study.world
    omega = world.check_configuration(first.configuration)
    theta = np.array([0.3, 0.02, 0.0, 0.05, 0.0, 0.0])
    study.tell(policyspace.rollout(world, study.space, theta, omega, jax.random.key(0), 30), first.configuration)
    with pytest.raises(InputError, match="the tolerance must be at least 0"):
        study.ask("decision", tolerance=-1.0)
    asked = study.ask("decision", tolerance=9.0)
    assert asked.design == "decision" and asked.reasons["gain"] == pytest.approx(3, abs=0.6)
    assert "choosing a configuration may lose" in asked.why and any(
        "the study may stop" in one for one in asked.warnings
    )
    assert study.ask("decision") == asked == study.ask()
    with pytest.raises(InputError, match="was asked for by the design 'decision'"):
        study.ask("d-optimal")
    with pytest.raises(InputError, match="there is no design 'decisive'"):
        study.ask("decisive")


def test_a_decision_in_an_environment_needs_somebody_who_learns(tmp_path):
    study = a_study(tmp_path, rounds=1)
    with pytest.raises(InputError, match="lets agents learn: give learn"):
        study.ask("decision")


# -- Sentences, and the command.


@pytest.mark.parametrize(
    "answer, words, sentence",
    [
        (["lidar"], {}, "the answer is about 'lidar'"),
        ([], {}, "nothing to choose a configuration for"),
        (["x"], {"learnings": 0}, "learnings must be a whole number of at least 1"),
        (["x"], {"tolerance": -1}, "the tolerance must be at least 0"),
        (["x"], {"learn": print}, "trains agents in a Gymnasium environment"),
        (["x"], {"configurations": 1}, "configurations must be a whole number of at least 2"),
    ],
)
def test_what_cannot_be_recommended(answer, words, sentence):
    with pytest.raises(InputError, match=sentence):
        policyspace.recommend("minigolf", answer, **words)


def test_an_environment_needs_somebody_who_learns():
    world = policyspace.GymnasiumWorld.of("CartPole-v1", {"length": (0.3, 1.0)})
    with pytest.raises(InputError, match="agents must learn in every configuration"):
        policyspace.recommend(world, [world.feature_names[0]])
    assert isinstance(world.environment({"length": 0.5}), gymnasium.Env)


def test_the_command_recommends_and_saves(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["policyspace", "recommend", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return stop.value.code, printed.out, printed.err

    small = [
        "--configurations",
        "2",
        "--refinements",
        "0",
        "--learnings",
        "1",
        "--learning-steps",
        "20",
        "--episodes",
        "40",
    ]
    code, out, _ = run(
        "minigolf", "--from", "x,sqrt_x", *small, "--json", "r.json", "--plot", "r.svg", "--report", "r.html"
    )
    assert code == 0 and out.startswith("Best for an agent that uses x and sqrt_x: putter_length")
    assert json.loads((tmp_path / "r.json").read_text())["world"] == "minigolf"
    assert "<svg" in (tmp_path / "r.html").read_text() and (tmp_path / "r.svg").stat().st_size > 1000
    for arguments, sentence in (
        (["minigolf"], "--from must say what the agent uses"),
        (["minigolf", "--observed", "--from", "s.sqlite"], "--observed is about the world of the study"),
        (["--observed", "--from", "s.sqlite"], "s.sqlite: expected a study, found no file"),
        (["--from", "x"], "one world is configured"),
        (["minigolf", "--from", "gone.json"], "gone.json"),
    ):
        code, _, err = run(*arguments, *small)
        assert code == 2 and sentence in err and err.count("\n") == 1
