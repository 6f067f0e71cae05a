"""Readings that are drawn while an agent plays: what is delivered, what is found, and what others may verify."""

import json
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import policyspace
from benchmarks.asking_played import KINDS, LEVEL, play
from policyspace import InputError, RandomisedReadings
from policyspace.asking import OfferedReadings, forecast
from tests.some_draws import most_false

PLANE = spaces.Box(-4, 4, (3,), np.float32)
NAMES = ["near", "far", "idle"]


def loop(readings, act, steps, seed=0, length=50):
    """What was offered and what was delivered in a loop that is no environment."""
    world, offered, delivered = np.random.default_rng(seed), [], []
    for step in range(steps):
        offered.append(world.normal(size=3).astype(np.float32))
        delivered.append(readings.offer(offered[-1], start=step % length == 0))
        readings.saw(act(delivered[-1]))
    return np.array(offered), np.array(delivered)


def near(seen):
    return int(seen[0] > 0)


def test_each_input_reads_what_it_read_before_with_the_chance_that_was_said():
    readings = OfferedReadings(PLANE, spaces.Discrete(2), 0.3, features=NAMES, seed=5)
    offered, delivered = loop(readings, near, 1500)
    drawn = offered != delivered
    for j in range(3):
        assert abs(drawn[:, j].mean() - 0.3) < 0.04
        for row in np.flatnonzero(drawn[:, j])[:300]:
            assert delivered[row, j] in offered[:row, j]
    assert abs((drawn[:, 0] & drawn[:, 1]).mean() - 0.09) < 0.03 and not drawn[:10].any()


def test_likely_readings_are_those_of_steps_that_are_near_in_the_other_inputs():
    def apart(redraw):
        readings = OfferedReadings(PLANE, spaces.Discrete(2), {"far": 0.5}, features=NAMES, redraw=redraw)
        world, gaps = np.random.default_rng(0), []
        for step in range(600):
            x = world.normal()
            seen = readings.offer(np.array([x, x + 0.1 * world.normal(), world.normal()], np.float32), step == 0)
            readings.saw(near(seen))
            gaps.append(abs(seen[1] - seen[0]))
        return np.mean(gaps[100:])

    assert apart("likely") < 0.4 < 0.5 < apart("any")


def test_an_agent_with_the_same_seed_shares_no_random_numbers():
    """It acts by the very generator that the draws would have, if they had the seed alone."""
    own = np.random.default_rng(0)
    readings = OfferedReadings(PLANE, spaces.Discrete(2), features=NAMES, seed=0)
    loop(readings, lambda seen: int(own.random() < 0.5), 600)
    assert readings.answer().selected == ()


def test_found_inputs_are_drawn_no_more():
    readings = OfferedReadings(PLANE, spaces.Discrete(2), features=NAMES, until_found=True)
    offered, delivered = loop(readings, near, 900)
    late = (offered != delivered)[500:]
    assert not late[:, 0].any() and late[:, 1:].any(axis=0).all()
    assert readings.found == ("near",) and not readings.settled
    assert readings.log.origin.draws.adaptive


def test_effects_are_about_those_that_are_known():
    """near moves 80 % of the choices between its two signs, so 40 % between two draws; idle none."""
    own = np.random.default_rng(7)
    readings = OfferedReadings(PLANE, spaces.Discrete(2), features=NAMES, candidates=4, redraw=("any", "likely"))
    loop(readings, lambda seen: int((seen[0] > 0) ^ (own.random() < 0.1)), 3000)
    found = readings.answer()
    effect = found.group("near").effect_any
    assert effect.low < 0.4 and 0.34 < effect.estimate < 0.42
    assert abs(found.group("idle").effect_any.estimate) < 0.02
    assert effect.high - effect.low < 0.1 and found.group("near").effect_likely is not None


@pytest.mark.parametrize("redraw", ["any", "likely", ("any", "likely")])
def test_whoever_has_the_log_finds_the_same(redraw, tmp_path):
    readings = OfferedReadings(PLANE, spaces.Discrete(2), features=NAMES, redraw=redraw, memory=2, until_found=True)
    loop(readings, near, 400)
    answer = readings.answer(ended=True)
    policyspace.write(readings.log, tmp_path / "log.parquet")
    verified = policyspace.identify(tmp_path / "log.parquet")
    found = {test.group: test.evidence for test in verified.groups}
    assert [found[group.group] for group in answer.groups] == pytest.approx(
        [group.evidence for group in answer.groups], rel=1e-6
    )
    assert tuple(verified.selected) == answer.selected == ("near",)


SPACES = {
    "a category": (spaces.Discrete(4), lambda seen: int(seen == 2), {"observation"}),
    "a dict": (
        spaces.Dict({"pose": spaces.Box(-3, 3, (2,)), "mode": spaces.Discrete(3)}),
        lambda seen: int(seen["mode"] == 1),
        {"mode"},
    ),
    "sine and cosine": (
        spaces.Box(-1, 1, (3,)),
        lambda seen: int(np.arctan2(seen[1], seen[0]) > 0.5),
        {"observation[0], observation[1]"},
    ),
    "an image": (spaces.Box(0, 255, (16, 16), np.uint8), lambda seen: int(seen[:4, :4].mean() > 127), {"region[0,0]"}),
}


@pytest.mark.parametrize("kind", SPACES)
def test_observations_of_any_space(kind):
    space, act, used = SPACES[kind]
    space.seed(0)
    readings, world = OfferedReadings(space, spaces.Discrete(2), seed=2), np.random.default_rng(0)
    for step in range(500):
        seen = space.sample()
        if kind == "sine and cosine":
            angle = world.uniform(-np.pi, np.pi)
            seen = np.array([np.cos(angle), np.sin(angle), world.normal() / 4], np.float32)
        if kind == "an image":
            seen = np.repeat(np.repeat(world.integers(0, 256, (4, 4)), 4, 0), 4, 1).astype(np.uint8)
        given = readings.offer(seen, start=step == 0)
        assert space.contains(given)
        readings.saw(act(given))
    answer = readings.answer()
    assert set(answer.selected) == used
    verified = policyspace.identify(readings.log)
    assert set(verified.selected) == used and {one.group for one in verified.groups} == set(readings.inputs.groups)
    if kind != "a category":  # which is named by its levels in a log
        wealth = {group.group: group.evidence for group in answer.groups}
        assert {one.group: one.evidence for one in verified.groups} == pytest.approx(wealth, rel=1e-6)


class Picture(gymnasium.Env):
    """Squares of 4×4 in two frames of 8×8, and a number beside them."""

    observation_space = spaces.Dict({"eye": spaces.Box(0, 255, (2, 8, 8), np.uint8), "speed": spaces.Box(-9, 9, (1,))})
    action_space = spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.now = 0
        return self._seen(), {}

    def _seen(self):
        squares = self.np_random.integers(0, 256, (2, 2, 2)).repeat(4, 1).repeat(4, 2)
        return {"eye": squares.astype(np.uint8), "speed": self.np_random.normal(size=1).astype(np.float32)}

    def step(self, action):
        self.now += 1
        return self._seen(), 0.0, False, self.now == 50, {}


@pytest.mark.parametrize("groups, used", [((2, 2), "eye.region[0,1]"), ("frames", "eye.frame[1]")])
def test_images_are_watched_with_their_draws(groups, used, tmp_path):
    env = RandomisedReadings(Picture(), seed=3, groups=groups)
    log = policyspace.watch(env, lambda seen: int(seen["eye"][1, :4, 4:].mean() > 127), 10)
    policyspace.write(log, tmp_path / "log.parquet")
    verified = policyspace.identify(tmp_path / "log.parquet")
    assert verified.test.name == "randomised" and verified.selected == (used,) == env.answer().selected
    changed = log.features.copy()
    changed[77, 0] += 1
    with pytest.raises(InputError, match="row 78 should have read"):
        policyspace.identify(replace(log, features=changed))
    with pytest.raises(InputError, match="is not the one that was recorded after those before it"):
        policyspace.identify(log.take(np.delete(np.arange(log.num_rows), 40)))


def test_what_a_loop_does_wrongly():
    readings = OfferedReadings(PLANE, spaces.Discrete(2), features=NAMES)
    with pytest.raises(InputError, match="call offer"):
        readings.saw(0)
    readings.offer(np.zeros(3, np.float32))
    with pytest.raises(InputError, match=r"call saw\(action\) before offer"):
        readings.offer(np.zeros(3, np.float32))
    with pytest.raises(InputError, match="an action must be one of"):
        readings.saw(2)
    with pytest.raises(InputError, match="another observation than was delivered"):
        readings.saw(1, np.ones(3, np.float32))
    readings.saw(1, np.zeros(3, np.float32))
    with pytest.raises(InputError, match="drawn after 10 observations"):
        readings.answer()
    for wrong in ({"share": 1.0}, {"redraw": "all"}, {"candidates": 0}, {"seed": -1}, {"memory": -1}):
        with pytest.raises(InputError):
            OfferedReadings(PLANE, spaces.Discrete(2), **wrong)
    named = OfferedReadings(PLANE, spaces.Discrete(2), {"nera": 0.5}, features=NAMES)
    with pytest.raises(InputError, match="did you mean 'near'"):
        loop(named, near, 20)


# -- Around environments.


def upright(seen):
    return int(seen[2] + 0.5 * seen[3] > 0)


def test_an_environment_that_delivers_drawn_readings_is_watched_and_tested(tmp_path):
    env = RandomisedReadings("CartPole-v1", seed=3, log=tmp_path / "log.parquet")
    sample = policyspace.watch(env, upright, 8)
    assert policyspace.identify(sample).selected == ("angle", "angular_velocity")
    answer = env.answer()
    env.close()
    assert policyspace.identify(tmp_path / "log.parquet").selected == answer.selected == ("angle", "angular_velocity")


def test_rewards_are_those_of_the_actions():
    plain, drawn = gymnasium.make("CartPole-v1"), RandomisedReadings("CartPole-v1", seed=1)
    plain.reset(seed=0), drawn.reset(seed=0)
    for t in range(8):
        first, second = plain.step(t % 2), drawn.step(t % 2)
        assert first[1:4] == second[1:4]


@pytest.mark.parametrize(
    "around",
    [
        lambda env: gymnasium.wrappers.FrameStackObservation(env, 2),
        lambda env: gymnasium.wrappers.TransformObservation(env, lambda seen: np.clip(seen, -0.05, 0.05), None),
        lambda env: gymnasium.wrappers.DelayObservation(env, 1),
    ],
)
def test_wrappers_between_the_draws_and_the_agent_are_noticed(around):
    env = around(RandomisedReadings("CartPole-v1", seed=3))
    with pytest.raises(InputError, match="make it the outermost wrapper"):
        policyspace.watch(env, lambda seen: int(np.ravel(seen)[2] > 0), 3)


def test_wrappers_that_only_count_are_welcome():
    env = gymnasium.wrappers.RecordEpisodeStatistics(RandomisedReadings("CartPole-v1", seed=3))
    assert "angle" in policyspace.identify(policyspace.watch(env, upright, 6)).selected
    with pytest.raises(InputError, match="are called position"):
        policyspace.watch(RandomisedReadings("CartPole-v1"), upright, 3, features=["a", "b", "c", "d"])


# -- `ask`, of agents that can only act.


class Remembers:
    """Sees the angle alone and remembers the last one: watched, it seems to use how fast the angle changes."""

    def __init__(self):
        self.rng, self.steps = np.random.default_rng(9), 0

    def reset(self):
        self.last = 0.0

    def act(self, seen):
        self.steps += 1
        turning, self.last = 50 * (seen[2] - self.last), seen[2]
        return int(self.rng.random() < 1 / (1 + np.exp(-6 * seen[2] - 4 * turning)))


def test_an_agent_that_can_only_act_is_asked_while_it_plays(tmp_path):
    answer = policyspace.ask(Remembers(), "CartPole-v1", budget=500)
    assert answer.way == "played" and answer.selected == ("angle",) and answer.memory == 4
    assert (
        "can only act" in str(answer) and "no evidence for position, velocity and angular_velocity" in answer.sentence
    )
    assert answer.guarantee.grade == "exact" and "only the readings that were delivered" in answer.guarantee.text
    assert answer.cost.steps > 500 and json.loads(answer.to_json())["way"] == "played"
    assert policyspace.identify(answer.log).selected == ("angle",)
    page = answer.report(tmp_path / "answer.html").read_text()
    assert "the wealth of bets on which reading was delivered" in page and "0 of" not in page
    before = forecast(Remembers(), "CartPole-v1", budget=500)
    assert before.sentence == "Asking about 4 inputs takes at most 500 steps of play."


def test_play_ends_when_all_is_found():
    answer = policyspace.ask(
        lambda seen: (np.clip(-2 * seen[1] - 0.5 * seen[2], -2, 2), 0.3), "Pendulum-v1", way="played", redraw=("any",)
    )
    assert answer.selected == ("angle", "angular_velocity") and answer.num_states < 600


def test_what_was_learned_is_kept():
    class Fails(Remembers):
        def act(self, seen):
            if self.steps == 400:
                raise ValueError("out of batteries")
            return super().act(seen)

    class Interrupted(Remembers):
        def act(self, seen):
            if self.steps == 400:
                raise KeyboardInterrupt
            return super().act(seen)

    for kind, words in ((Fails, "out of batteries"), (Interrupted, "interrupted after")):
        answer = policyspace.ask(kind(), "CartPole-v1")
        assert words in answer.stopped and answer.selected == ("angle",)


def test_what_cannot_be_asked_of_such_an_agent():
    with pytest.raises(InputError, match="can only act, step after step"):
        policyspace.ask(Remembers(), "CartPole-v1", way="paired")
    with pytest.raises(InputError, match="needs no log"):
        policyspace.ask(Remembers(), "CartPole-v1", np.zeros((10, 4), np.float32))
    with pytest.raises(InputError, match="in single environments, found a vector of 2"):
        policyspace.ask(upright, gymnasium.make_vec("CartPole-v1", 2), returns=3)
    with pytest.raises(InputError, match="in one environment, found 2"):
        policyspace.ask(upright, gymnasium.make_vec("CartPole-v1", 2), way="played")


# -- The level, for any agent and at any look.

USING_NOTHING = [kind for kind, (*_, used) in KINDS.items() if not used]


def test_false_findings_at_any_look_stay_within_the_level():
    """Every kind of agent once, and some that use nothing more often."""
    runs = [(kind, seed) for seed in range(2) for kind in KINDS] + [
        (kind, 9 + i) for i in range(7) for kind in USING_NOTHING
    ]
    false = sum(play(kind, seed, 130)[0] for kind, seed in runs)
    assert false <= most_false(len(runs), LEVEL)


@pytest.mark.parametrize("kind", ["greedy tree", "near copy of what it uses", "habit and one sensor"])
def test_what_agents_use_is_found_within_some_hundred_steps(kind):
    steps = [step for seed in range(3) for step in play(kind, seed, 220)[1].values()]
    assert sum(step is not None for step in steps) >= 0.8 * len(steps)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_false_findings_of_each_kind_stay_within_the_level(kind):
    runs = [play(kind, seed, 400) for seed in range(200)]
    assert sum(false for false, *_ in runs) <= most_false(200, LEVEL)
    steps = [step for _, first, _ in runs for step in first.values()]
    assert sum(step is not None for step in steps) >= (0.8 if kind.startswith(("delay", "mean")) else 0.9) * len(steps)


# -- The expected share of false findings, on request.


def test_with_the_share_of_false_ones_as_many_are_found_or_more():
    rng, found = np.random.default_rng(0), {}
    seen = rng.normal(size=(400, 8))
    for correction in ("closed", "bh"):
        readings, chances = (
            OfferedReadings(spaces.Box(-9, 9, (8,)), spaces.Discrete(2), seed=1, correction=correction),
            np.random.default_rng(2),
        )
        looks = []
        for step, row in enumerate(seen):
            given = readings.offer(row, start=step == 0)
            readings.saw(int(given[:5].sum() + 0.5 * chances.normal() > 0))
            if step % 10 == 9:
                readings.settle()
                looks.append(set(readings.found))
        found[correction] = looks
        text = readings.answer().guarantee.text
        assert text.startswith("P(any false" if correction == "closed" else "E[share of false 'reacts'] ≤ 5 % (bets")
    assert all(few <= many for few, many in zip(found["closed"], found["bh"], strict=True))
    assert sum(map(len, found["bh"])) > sum(map(len, found["closed"]))


def test_corrections_are_of_bets():
    answer = policyspace.ask(upright, "CartPole-v1", way="paired", episodes=3, budget=60, correction="bh")
    assert "e-BH" in str(answer) and json.loads(answer.to_json())["guarantee"]["quantity"] == "fdr"
    with pytest.raises(InputError, match="leave correction out"):
        policyspace.ask(upright, "CartPole-v1", episodes=3, correction="bh")
    with pytest.raises(InputError, match="'closed' or 'bh', found 'holm'"):
        policyspace.ask(upright, "CartPole-v1", episodes=3, correction="holm")
