"""`ask` inside: effects are those of brute force, and the inputs found are those that the agent is made of."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import policyspace
from policyspace import InputError
from policyspace.asking import AskedAgent, Law, States, as_agent, ask

NUMBERS = spaces.Box(-4, 4, (4,), np.float64)
NAMES = ["a", "b", "c", "d"]


def log(n=400, seed=0):
    """Rows whose third number is nearly the first."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4))
    rows[:, 2] = rows[:, 0] + 0.05 * rows[:, 2]
    return rows


def chances(seen):
    """Three choices, by the first two numbers."""
    logits = np.stack([2 * seen[..., 0], seen[..., 1], np.zeros_like(seen[..., 0])], axis=-1)
    grown = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


def agent_of(function, action_space=None, observation_space=NUMBERS):
    return as_agent(function, observation_space=observation_space, action_space=action_space or spaces.Discrete(3))


def test_effects_are_the_mean_total_variation_of_all_pairs_of_rows():
    rows = log()
    answer = ask(agent_of(chances), log=rows, features=NAMES, redraw=("any",), seed=1)
    base = chances(rows)
    for j, name in enumerate(NAMES):
        everything = []
        for donor in rows:
            other = rows.copy()
            other[:, j] = donor[j]
            everything.append(0.5 * np.abs(chances(other) - base).sum(axis=1))
        truth = float(np.mean(everything))
        found = answer.group(name)
        if j < 2:
            margin = found.effect_any.high - found.effect_any.estimate
            assert found.verdict == "reacts" and abs(found.effect_any.estimate - truth) < 2.5 * margin
            assert 0.002 < margin < 0.03
        else:
            assert found.verdict == "never" and truth == 0 == found.effect_any.estimate


def test_intervals_hold_for_other_episodes_of_drifting_states():
    """The truth is a mean over independent states; rows that count as independent would hold it in half of the logs."""
    rng, found, apart = np.random.default_rng(0), 0, []

    def chance(first):
        return 1 / (1 + np.exp(-2 * first))

    truth = np.abs(np.subtract(*chance(rng.normal(size=(2, 400_000))))).mean()
    space = spaces.Box(-9, 9, (2,), np.float64)
    agent = agent_of(
        lambda seen: np.stack([chance(seen[..., 0]), 1 - chance(seen[..., 0])], -1), spaces.Discrete(2), space
    )
    for seed in range(60):
        rows = np.empty((8, 60, 2))
        rows[:, 0] = rng.normal(size=(8, 2))
        for t in range(1, 60):
            rows[:, t] = 0.95 * rows[:, t - 1] + (1 - 0.95**2) ** 0.5 * rng.normal(size=(8, 2))
        log = policyspace.Sample(rows.reshape(-1, 2), np.arange(480) % 2, episodes=np.repeat(np.arange(8) + 5, 60))
        effect = ask(agent, log=log, redraw=("any",), budget=800, seed=seed).groups[0].effect_any
        found += effect.low <= truth <= effect.high
        apart.append(effect.estimate - truth)
    assert 52 <= found <= 60  # binomial of 60 with .95: less than 52 with a chance of 3e-3
    assert abs(np.mean(apart)) < 0.025  # an eighth of the readings is of the same episode, and so a little more alike


def test_a_witness_shows_itself_again():
    rows = log()
    agent = agent_of(chances)
    answer = ask(agent, log=rows, features=NAMES)
    witness = answer.witness("a")
    np.testing.assert_array_equal(witness.observation[0][0], rows[witness.row])
    assert witness.reading == rows[witness.row, 0] and witness.asked[0][0, 0] == witness.other
    both = chances(np.concatenate([witness.observation[0], witness.asked[0]]))
    change = 0.5 * np.abs(both[0] - both[1]).sum()
    assert witness.change == pytest.approx(change) == pytest.approx(witness.check(agent))
    with pytest.raises(InputError, match="nothing shows"):
        answer.witness("d")


def test_likely_readings_of_an_input_that_others_tell_are_its_own():
    """The third number says the first but for .05, so that a likely reading hardly moves the action."""
    found = ask(agent_of(chances), log=log(2000), features=NAMES)
    a, b = found.group("a"), found.group("b")
    assert a.effect_likely.high < 0.25 * a.effect_any.low  # nearest rows differ in b and d too
    assert b.effect_likely.low > 0.7 * b.effect_any.high


def test_the_bound_of_never_is_that_of_clopper_and_pearson():
    found = ask(agent_of(chances), log=log(300), features=NAMES, redraw=("any",), significance=0.1)
    from scipy.stats import beta

    expected = beta.ppf(1 - 0.1 / 4, 1, 300)  # of 0 among 300, for four inputs together
    assert found.group("d").never_bound == pytest.approx(expected)
    asked = found.group("d").questions
    assert 3800 < asked < 4000 and f"0 of {asked:,}".replace(",", " ") in str(found)  # 13 × 300, some of its own row


def test_never_is_wrong_as_rarely_as_promised():
    """An input that moves the action in a share of states just above the bound is missed in at most δ/G of the logs."""
    n, wrong = 40, 0
    bound = 1 - (0.05 / 4) ** (1 / n)
    for seed in range(300):
        rows = np.random.default_rng(seed).uniform(0, 1, size=(n, 4))

        def agent(seen, bound=bound):
            return np.astype((seen[..., 3] < bound * 1.02) & (seen[..., 0] > 0.5), int)

        given = agent_of(agent, spaces.Discrete(2))
        answer = ask(given, log=rows, features=NAMES, seed=seed, redraw=("any",), budget=4 * n)
        wrong += answer.group("a").verdict == "never"
    assert wrong <= 300 * 0.05 / 4 + 3 * np.sqrt(300 * 0.0125)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(scale):
    rows, units = log(), np.array([scale, 1, 1 / scale, 1])
    plain = ask(agent_of(chances), log=rows, features=NAMES)
    other = ask(
        agent_of(lambda seen: chances(seen / units), observation_space=spaces.Box(-np.inf, np.inf, (4,), np.float64)),
        log=rows * units,
        features=NAMES,
    )
    for one, two in zip(plain.groups, other.groups, strict=True):
        assert one.verdict == two.verdict
        assert one.effect_any.estimate == pytest.approx(two.effect_any.estimate, abs=1e-9)
        assert one.effect_likely.estimate == pytest.approx(two.effect_likely.estimate, abs=1e-3)  # ties of near rows


def test_same_seed_same_answer():
    first, again, other = (ask(agent_of(chances), log=log(), features=NAMES, seed=seed) for seed in (3, 3, 4))
    assert first.to_json() == again.to_json() != other.to_json()


def test_numbers_with_and_without_chance():
    space = spaces.Box(-1, 1, (1,), np.float64)
    noisy = ask(
        agent_of(lambda seen: (np.tanh(seen[..., :1]), np.full((*np.shape(seen)[:-1], 1), 0.5)), space), log=log()
    )
    still = ask(agent_of(lambda seen: np.tanh(seen[..., :1]), space), log=log())
    for answer in (noisy, still):
        assert answer.selected == ("observation[0]",) and len(answer.never) == 3
    rows = log()
    moved = np.abs(np.tanh(rows[:, None, 0]) - np.tanh(rows[None, :, 0])) / 2  # of the range −1 … 1
    effect = still.group("observation[0]").effect_any
    assert effect.low - 0.01 < moved.mean() < effect.high + 0.01


def test_a_small_effect_is_barely():
    answer = ask(agent_of(lambda seen: chances(seen * [1, 0.01, 0, 0])), log=log(), features=NAMES)
    assert (answer.selected, answer.barely, answer.never) == (("a",), ("b",), ("c", "d"))
    assert answer.sentence == "Reacts to a, barely to b; never to c and d in 7 993 questions."


def test_inputs_that_never_vary_are_not_asked_about():
    rows = log()
    rows[:, 1] = 1.0
    answer = ask(agent_of(chances), log=rows, features=NAMES)
    assert answer.group("b").verdict == "no evidence" and answer.group("b").questions == 0
    assert "b always read the same" in str(answer)


class Delayed(AskedAgent):
    """Chooses by the reading of two steps ago."""

    has_memory = True

    def start(self, n):
        return np.zeros((n, 2))

    def _law(self, observations, memory):
        return Law.of_choices((memory[:, 0] > 0).astype(int), (2,)), np.stack([memory[:, 1], observations[:, 0]], 1)


def test_a_memory_is_followed_and_lags_are_those_it_is_made_of():
    agent = Delayed("delayed", NUMBERS, spaces.Discrete(2), deterministic=True)
    rows = log(900)
    sample = policyspace.Sample(rows, rows[:, :1], names=NAMES, episodes=np.arange(900) // 30)
    answer = ask(agent, log=sample, features=NAMES)
    assert answer.selected == ("a",) and answer.never == ("b", "c", "d") and answer.memory == 8
    effects = [effect.estimate for effect in answer.lags("a")]
    assert effects[2] == pytest.approx(0.5, abs=0.05) and sum(effects) == effects[2]
    witness = answer.witness("a")
    assert witness.later == 2 and witness.check(agent) == 1.0
    assert ask(agent, log=sample, features=NAMES, memory=1).never == tuple(NAMES)


def test_memories_are_those_of_play():
    """The recurrent function adds up what it sees: replayed memories are sums since the start of the episode."""

    def adds(seen, memory):
        total = (0.0 if memory is None else memory) + float(seen[0])
        return int(total > 0), total

    rows, episodes = log(60), np.repeat([0, 1, 2], [10, 30, 20])
    agent = agent_of(adds, spaces.Discrete(2))
    wanted = np.array([3, 9, 10, 11, 45, 59])
    before = States(rows, episodes).memories(agent, wanted)
    for row, found in zip(wanted, before, strict=True):
        start = int(np.flatnonzero(episodes == episodes[row])[0])
        assert found == (None if row == start else pytest.approx(rows[start:row, 0].sum()))


class Walk(gymnasium.Env):
    """Two numbers that drift, episodes of 20 steps, the return is the number of steps to the right."""

    observation_space, action_space = spaces.Box(-9, 9, (2,), np.float64), spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.now, self.at = 0, self.np_random.normal(size=2)
        return self.at.copy(), {}

    def step(self, action):
        self.now += 1
        self.at += self.np_random.normal(size=2) + np.array([0.1 * action, 0])
        return self.at.copy(), float(action), False, self.now == 20, {}


def test_the_agent_plays_where_no_log_is_given():
    answer = ask(lambda seen: int(seen[0] > 0), Walk(), features=["x", "y"], episodes=8)
    assert answer.num_states == 160 and answer.cost.steps == 160
    assert (answer.selected, answer.never) == (("x",), ("y",))
    assert "play" in answer.notes()[0]


def test_an_agent_that_fails_in_the_middle_keeps_what_was_found():
    def fragile(seen):
        if np.any(np.abs(seen[..., 2]) > 100):
            raise ValueError("out of range")
        return chances(seen)

    rows = log()
    rows[7, 2] = 1000.0
    with pytest.raises(InputError, match="out of range"):
        ask(agent_of(fragile), log=rows, features=NAMES)

    def later(seen):
        if np.any((np.abs(seen[..., 2]) > 100) & (np.abs(seen[..., 0]) < 100)):
            raise ValueError("out of range")
        return chances(seen)

    rows[7, 0] = 1000.0
    answer = ask(agent_of(later), log=rows, features=NAMES)
    assert answer.group("a").verdict == "no evidence" or answer.stopped
    assert "Stopped early: asked about 'a', the agent later failed" in str(answer)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"way": "insight"}, "did you mean 'inside'"),
        ({"episodes": 4}, "where no log is given"),
        ({"log": None}, "found no environment"),
        ({"features": ["a"]}, "4 numbers, found 1 names"),
        ({"budget": 0}, "at least 1"),
    ],
)
def test_bad_input(given, words):
    with pytest.raises(InputError, match=words):
        ask(agent_of(chances), **{"log": log()} | given)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.zeros((9, 3)), r"an observation of chances \(4\), found 3"),
        (np.full((9, 4), np.nan), "must be finite numbers"),
        (np.zeros((1, 4)), "at least two states"),
        ({"eyes": np.zeros((9, 4))}, r"an observation of chances \(4\), found"),
    ],
)
def test_logs_that_are_not_what_the_agent_saw(rows, words):
    with pytest.raises(InputError, match=words):
        ask(agent_of(chances), log=rows)


def test_parts_of_an_observation_that_a_log_lacks():
    space = spaces.Dict({"eyes": NUMBERS, "ears": spaces.Discrete(3)})
    agent = agent_of(lambda seen: int(seen["ears"] > 0), spaces.Discrete(2), space)
    rng = np.random.default_rng(0)
    full = {"eyes": rng.normal(size=(50, 4)), "ears": rng.integers(3, size=50)}
    assert ask(agent, log=full).selected == ("ears",)
    with pytest.raises(InputError, match="must hold 'ears'"):
        ask(agent, log={"eyes": full["eyes"]})


def test_an_agent_that_does_not_repeat_itself():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="answers otherwise when it is asked again"):
        ask(agent_of(lambda seen: int(rng.integers(3))), log=log(), way="inside")


def test_few_states_are_said_before_hand():
    answer = ask(agent_of(chances), log=log(), features=NAMES, budget=40)
    assert "10 states are few" in answer.warnings[0]


def test_picture_and_page(tmp_path):
    answer = ask(agent_of(chances), log=log(), features=NAMES)
    axes = answer.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == NAMES[::-1]
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(points) == 8
    page = answer.report(tmp_path / "answer.html").read_text()
    assert answer.sentence in page and "What is guaranteed" in page and "<svg" in page
