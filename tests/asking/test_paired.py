"""`ask` by pairs: bets that are exact whatever the agent is, and effects beside the total variation of known policies."""

import numpy as np
import pytest
from gymnasium import spaces

import policyspace
from policyspace import InputError
from policyspace.asking import (
    AskedAgent,
    Asker,
    Counted,
    Inputs,
    Law,
    PairBets,
    States,
    as_agent,
    ask,
    audit,
    forecast,
    log_pair_e_values,
)
from tests.some_draws import most_false

NUMBERS = spaces.Box(-9, 9, (4,), np.float64)
NAMES = ["a", "b", "c", "d"]


def log(n=600, seed=0):
    """Rows whose third number is nearly the first."""
    rows = np.random.default_rng(seed).normal(size=(n, 4))
    rows[:, 2] = rows[:, 0] + 0.1 * rows[:, 2]
    return rows


def chances(seen):
    """Three choices, by the first two numbers."""
    logits = np.stack([2 * seen[..., 0], seen[..., 1], np.zeros_like(seen[..., 0])], axis=-1)
    grown = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


def draws(function, seed):
    """Only the actions of a policy come out, of chances that nobody else has."""
    rng = np.random.default_rng([seed, 7])
    return lambda seen: int(rng.choice(3, p=function(seen)))


def black_box(function, action_space=None, observation_space=NUMBERS):
    return as_agent(function, observation_space=observation_space, action_space=action_space or spaces.Discrete(3))


class Hidden(AskedAgent):
    """Shows actions alone, many at once; the law may depend on how many questions it was asked before."""

    has_law = False

    def __init__(self, law, action_space, seed=0, observation_space=NUMBERS):
        super().__init__("hidden", observation_space, action_space)
        self.hidden, self.own, self.asked = law, np.random.default_rng([seed, 8]), 0

    def act(self, observations, rng, memory=None):
        law = self.hidden(observations, self.asked)
        self.asked += law.num_rows
        return self.as_actions(law.sample(self.own)), None


def three(seen, asked):
    return Law("categorical", (chances(seen),))


# -- What the bets rest on.


def test_the_mean_of_a_bet_is_one_when_answers_may_be_exchanged():
    rng = np.random.default_rng(0)
    own, exchanged = rng.normal(0, 9, size=(2, 500))
    both = np.exp([log_pair_e_values(own, exchanged), log_pair_e_values(exchanged, own)])
    np.testing.assert_allclose(both.mean(axis=0), 1.0, rtol=1e-12)
    assert both.min() >= 0.05 - 1e-12 and both.max() <= 1.95 + 1e-12


def ever_false(law, action_space, seed, significance, budget, active=15, reads=()):
    """Is an input found at any look that the agent never reads?"""
    rows = log(400, seed)
    agent = Hidden(law, action_space, seed)
    asker = Asker(
        Counted(agent), States(rows, np.zeros(400)), Inputs.of(NUMBERS, features=NAMES), 0, np.random.default_rng(seed)
    )
    bets = PairBets(asker, NAMES, significance, active)
    bets.begin(100)
    bets.run(budget)
    return bool(set(bets.found) - set(reads)), bets


def drifting(seen, asked):
    """The answers follow the number of questions alone, back and forth."""
    wave = np.sin((asked + np.arange(len(seen))) / 15)
    return Law("categorical", (np.stack([0.5 + 0.45 * wave, 0.5 - 0.45 * wave], axis=1),))


def copied(seen, asked):
    """Reads the near copy of another input, and its square."""
    p = 1 / (1 + np.exp(-3 * (seen[:, 2] ** 2 - 0.5)))
    return Law("categorical", (np.stack([1 - p, p], axis=1),))


def noisy(seen, asked):
    return Law("normal", mean=np.stack([seen[:, 2], 0 * seen[:, 2]], 1), sd=np.ones((len(seen), 2)))


NULL = {
    "drifting": (drifting, spaces.Discrete(2), ()),
    "copied": (copied, spaces.Discrete(2), ("c",)),
    "numbers": (noisy, spaces.Box(-9, 9, (2,), np.float64), ("c",)),
}


@pytest.mark.parametrize("name", NULL)
def test_unread_inputs_are_found_at_any_look_as_rarely_as_promised(name):
    """One that drifts, too: which reading is asked first is drawn."""
    law, space, reads = NULL[name]
    runs, level = 25, 0.2
    false = sum(ever_false(law, space, seed, level, 160, reads=reads)[0] for seed in range(runs))
    assert false <= most_false(runs, level)


@pytest.mark.slow
@pytest.mark.parametrize("name", NULL)
def test_unread_inputs_are_found_at_any_look_as_rarely_as_promised_in_many_runs(name):
    law, space, reads = NULL[name]
    false = sum(ever_false(law, space, seed, 0.1, 600, reads=reads)[0] for seed in range(300))
    assert false <= most_false(300, 0.1)


def test_pairs_that_are_chosen_need_fewer_questions():
    def slight(seen, asked):
        p = 1 / (1 + np.exp(-1.5 * seen[:, 0] - 0.6 * seen[:, 1]))
        return Law("categorical", (np.stack([1 - p, p], axis=1),))

    taken = {}
    for active in (15, 0):
        runs = [ever_false(slight, spaces.Discrete(2), seed, 0.05, 800, active, "ab") for seed in range(6)]
        assert not any(false for false, _ in runs[:3])
        taken[active] = np.mean([bets.questions["b"] for _, bets in runs])
        assert all("a" in bets.found for _, bets in runs)
    assert taken[15] < 0.75 * taken[0]


# -- The answer.


def test_what_draws_its_actions_is_asked_by_pairs(tmp_path):
    answer = ask(black_box(draws(chances, 0)), log=log(), features=NAMES)
    assert answer.way == "paired" and "differ when it is asked again" in answer.way_reason
    assert (answer.selected, answer.never) == (("a", "b"), ())
    assert [answer.group(name).verdict for name in "cd"] == ["no evidence"] * 2
    assert "no evidence for c and d after 600 questions" in answer.sentence
    assert answer.guarantee.grade == "exact" and "leaves no trace" in answer.guarantee.text
    assert answer.group("a").evidence >= 20 and answer.group("a").questions < 200
    assert "by pairs" in str(answer) and answer.to_dict()["way"] == "paired"
    assert "right guesses" in str(answer)
    page = answer.report(tmp_path / "answer.html").read_text()
    assert "whoever sees one action" in page and "<svg" in page


def test_an_agent_whose_distribution_is_known_may_be_asked_by_pairs_too():
    given = black_box(chances)
    assert ask(given, log=log(), features=NAMES).way == "inside"
    answer = ask(given, log=log(), features=NAMES, way="paired")
    assert answer.way == "paired" and answer.selected == ("a", "b") and not answer.warnings
    with pytest.raises(InputError, match="way='paired'"):
        ask(black_box(draws(chances, 0)), log=log(), way="inside")


def exact_total_variation(law, rows, j):
    """The mean over all pairs of 300 rows."""
    some, total = rows[:300], []
    for donor in some:
        other = some.copy()
        other[:, j] = donor[j]
        total.append(law(some, 0).total_variation(law(other, 0)).mean())
    return float(np.mean(total))


def wide(seen, asked):
    mean = np.stack([np.tanh(seen[:, 0] * seen[:, 1]), 0.5 * seen[:, 3]], axis=1)
    return Law("normal", mean=mean, sd=np.full((len(seen), 2), 0.5))


def two_choices(seen, asked):
    p = 1 / (1 + np.exp(-2 * seen[:, [0]]))
    return Law("categorical", (np.hstack([p, 1 - p]), chances(seen[:, [3, 1, 2, 0]] * [0.5, 0, 0, 0])))


EFFECTS = {
    "choices": (three, spaces.Discrete(3), "ab"),
    "numbers": (wide, spaces.Box(-9, 9, (2,), np.float64), "abd"),
    "several choices": (two_choices, spaces.MultiDiscrete([2, 3]), "ad"),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_effects_are_at_most_the_total_variation_and_nearly_that(name):
    """The mean of three runs; a single one has a margin of five per cent."""
    law, space, reads = EFFECTS[name]
    found = {group: [] for group in NAMES}
    truth = {group: exact_total_variation(law, log(), NAMES.index(group)) for group in NAMES}
    for seed in range(3):
        answer = ask(Hidden(law, space, seed), log=log(), features=NAMES, redraw=("any",), budget=1000, seed=seed)
        assert set(answer.selected) <= set(reads) and set(answer.of_verdict("no evidence")) <= set(NAMES) - {"a"}
        for group in answer.groups:
            found[group.group].append(group.effect_any.estimate)
            assert group.effect_any.low - 0.02 < truth[group.group] < group.effect_any.high + 0.06
    for group in NAMES:
        assert np.mean(found[group]) == pytest.approx(truth[group], abs=0.045)
        assert (truth[group] == 0) == (group not in reads)


def test_same_seed_same_answer():
    first, again, other = (
        ask(Hidden(three, spaces.Discrete(3), 1), log=log(), redraw=("any",), budget=80, seed=seed).to_json()
        for seed in (3, 3, 4)
    )
    assert first == again != other


def test_a_memory_that_can_be_copied_is_followed():
    """A function of what it sees and remembers: b matters a step later, through its memory alone."""
    rng = np.random.default_rng(5)

    def remembers(seen, before):
        score = 3 * seen[0] - 3 * (0.0 if before is None else before)
        return int(rng.random() < 1 / (1 + np.exp(-score))), float(seen[1])

    sample = policyspace.Sample(log(), log()[:, :1], names=NAMES, episodes=np.arange(600) // 30)
    agent = black_box(remembers, spaces.Discrete(2))
    answer = ask(agent, log=sample, features=NAMES, memory=2, redraw=("any",), budget=240)
    assert answer.way == "paired" and answer.selected == ("a", "b") and answer.memory == 2
    assert int(np.argmax([effect.estimate for effect in answer.lags("a")])) == 0
    assert int(np.argmax([effect.estimate for effect in answer.lags("b")])) == 1
    assert abs(answer.lags("b")[0].estimate) < 0.12 < answer.lags("b")[1].low


def test_parts_of_a_dict_and_regions_of_an_image():
    space = spaces.Dict({"eye": spaces.Box(0, 255, (8, 8, 1), np.uint8), "key": spaces.Discrete(4)})
    rng = np.random.default_rng(2)
    rows = {"eye": rng.integers(0, 256, (300, 8, 8, 1), dtype=np.uint8), "key": rng.integers(4, size=300)}

    def looks(seen):
        bright = seen["eye"][:4, :4].mean() > 127
        return int(rng.random() < (0.9 if bright ^ (seen["key"] == 2) else 0.1))

    answer = ask(black_box(looks, spaces.Discrete(2), space), log=rows, groups=(2, 2), redraw=("any",))
    assert len(answer.groups) == 5 and answer.way == "paired"
    assert set(answer.selected) == {"key", "eye.region[0,0]"}


# -- What is refused, and what is said.


def test_an_agent_that_changes_while_it_is_asked_is_pointed_out():
    def learns(seen, asked):
        p = 1 / (1 + np.exp(-2 * seen[:, 0] - (asked > 1500) * 2))
        return Law("categorical", (np.stack([1 - p, p], axis=1),))

    changed = ask(Hidden(learns, spaces.Discrete(2)), log=log(), features=NAMES, budget=300)
    assert "answers otherwise in the same 100 states" in changed.warnings[0] and "drifts" in str(changed)
    warned = [
        bool(ask(Hidden(three, spaces.Discrete(3), seed), log=log(), redraw=("any",), budget=100, seed=seed).warnings)
        for seed in range(8)
    ]
    assert sum(warned) <= most_false(8, 0.01)


def test_an_agent_that_fails_in_the_middle_keeps_what_was_found():
    def fails(seen, asked):
        if asked > 700:
            raise InputError("the agent failed: the connection is lost")
        return three(seen, asked)

    answer = ask(Hidden(fails, spaces.Discrete(3)), log=log(), features=NAMES)
    assert "a" in answer.selected and "the connection is lost" in answer.stopped and "Stopped early" in str(answer)
    assert answer.group("a").effect_any is None and 0 < answer.group("d").questions < 600

    def breaks(seen):
        raise ValueError("no connection")

    with pytest.raises(InputError, match="no connection"):
        ask(black_box(breaks), log=log())


def test_budgets_that_find_nothing_are_refused_before():
    agent = Hidden(three, spaces.Discrete(3))
    for call in (ask, forecast):
        with pytest.raises(
            InputError, match="find nothing in 8 questions about each input: give a budget of at least 10"
        ):
            call(agent, log=log(), budget=8)
    assert agent.asked <= 1000  # the forecast's
    few = ask(agent, log=log(), features=NAMES, budget=40)
    assert "40 questions about each input are few" in few.warnings[0]


def test_the_forecast_is_kept():
    told = {"log": log(), "features": NAMES}
    before = forecast(black_box(draws(chances, 0)), **told)
    after = ask(black_box(draws(chances, 0)), **told)
    assert before.way == after.way == "paired" and before.questions == 4 * 600 + 9 * 1000 + 200
    assert before.questions - 1200 <= after.cost.questions <= before.questions
    assert before.smallest_share == pytest.approx((np.log(4 / 0.05) / 300) ** 0.5) and before.bound is None
    assert "at most 11 600 questions by pairs" in before.sentence and "choices in these pairs" in str(before)


def test_inputs_that_never_vary_are_not_asked_about():
    rows = log()
    rows[:, 1] = 1.0
    answer = ask(Hidden(three, spaces.Discrete(3)), log=rows, features=NAMES, redraw=("any",), budget=200)
    assert answer.group("b").questions == 0 and answer.group("b").effect_any is None
    assert "b always read the same" in str(answer)


def test_readings_that_hardly_ever_differ_are_asked_about_as_often():
    rows = log()
    rows[:, 3] = np.arange(600) == 7
    answer = ask(Hidden(three, spaces.Discrete(3)), log=rows, features=NAMES, redraw=("any",), budget=60)
    assert answer.group("d").verdict == "no evidence" and 0 < answer.group("d").questions <= 60


def test_what_needs_a_distribution_says_so():
    agent = black_box(draws(chances, 0))
    with pytest.raises(InputError, match="says no probabilities"):
        policyspace.compare(agent, agent, log=log(), way="inside")


def test_an_audit_of_an_agent_asked_by_pairs():
    rng = np.random.default_rng(3)
    agent = black_box(draws(chances, 0))
    actions = np.array([rng.choice(3, p=p) for p in chances(log())])
    sample = policyspace.Sample(log(), actions, tuple(NAMES), ("0", "1", "2"))
    answer = ask(agent, log=sample, features=NAMES)
    found = audit(answer, policyspace.identify(sample, test="wilks"))
    assert set(found.of_agreement("found") + found.of_agreement("missed")) == {"a", "b"}
    assert found.of_agreement("false") == ()
    assert set(found.of_agreement("no evidence") + found.of_agreement("not shown")) == {"c", "d"}
    assert "asking did not show" in found.sentence
