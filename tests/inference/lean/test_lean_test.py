"""The whole test: what it finds, what it refuses, and that its answers do not hang on how inputs are written down."""

import numpy as np
import pytest

from policyspace import InputError
from policyspace.inference import ScoreTest

RNG_SEED = 11


def log_of(num_episodes: int = 20, length: int = 30, seed: int = RNG_SEED) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An agent that uses inputs 0 and 1 of 4: (features, actions, episodes)."""
    rng = np.random.default_rng(seed)
    num = num_episodes * length
    x = rng.standard_normal((num, 4))
    x[:, 2] += x[:, 0]
    action = x[:, 0] - 0.5 * x[:, 1] + rng.standard_normal(num)
    return x, action, np.repeat(np.arange(num_episodes), length)


def single(num: int) -> list[tuple[int, ...]]:
    return [(i,) for i in range(num)]


def p_values(test: ScoreTest) -> np.ndarray:
    return np.array([result.p_value for result in test.one_out().values()])


def test_finds_what_is_used_and_says_how():
    x, a, episodes = log_of()
    test = ScoreTest(x, a, single(4), episodes=episodes)
    p = p_values(test)
    assert np.all(p[:2] < 1e-6) and np.all(p[2:] > 0.05)
    assert test.effect(0).size > test.effect(1).size > 3 * test.effect(3).size
    # In standard deviations of the action: |x₀ − x̂₀| has sd √½, the action 1.5, the mean of a half-normal is √(2/π).
    assert test.effect(0).low < np.sqrt(0.5) / 1.5 * np.sqrt(2 / np.pi) < test.effect(0).high
    result = test.one_out()[0]
    assert result.unit == "rows" and result.promise and result.is_e_value
    assert test.family.name == "fine curves and products" and "inflation" in test.units[0].reason


def test_labels_use_in_interactions_and_in_the_spread():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1500, 5))
    labels = (x[:, 0] * x[:, 1] + rng.logistic(size=1500) / 2 > 0).astype(int)
    p = p_values(ScoreTest(x, labels, single(5), num_labels=2))
    assert np.all(p[:2] < 1e-2) and np.all(p[2:] > 0.01)
    spread = x[:, 0] + np.exp(0.5 * x[:, 3]) * rng.standard_normal(1500)
    p = p_values(ScoreTest(x, spread, single(5)))
    assert p[0] < 1e-3 and p[3] < 1e-3 and np.all(p[[1, 2, 4]] > 0.01)


def test_effect_of_labels_is_a_share_of_decisions():
    rng = np.random.default_rng(2)
    x = rng.choice([-1.0, 1.0], (4000, 2))
    labels = (rng.uniform(size=4000) < 0.5 + 0.3 * x[:, 0]).astype(int)
    test = ScoreTest(x, labels, single(2), num_labels=2)
    assert test.effect(0).size == pytest.approx(0.3, abs=0.03)
    assert test.effect(1).size < 0.03


def test_scaling_shifting_and_permuting_inputs_changes_nothing():
    x, a, episodes = log_of(seed=3)
    reference = p_values(ScoreTest(x, a, single(4), episodes=episodes))
    scaled = x * [1e6, 1e-6, -3, 2] + [5e6, 0, 1, -7]
    assert p_values(ScoreTest(scaled, 10 - 4 * a, single(4), episodes=episodes)) == pytest.approx(reference, rel=1e-6)
    order = np.array([2, 0, 3, 1])
    permuted = p_values(ScoreTest(x[:, order], a, single(4), episodes=episodes))
    assert permuted == pytest.approx(reference[order], rel=1e-6)


def test_order_of_episodes_in_the_log_does_not_matter_within_their_own_order():
    x, a, episodes = log_of(seed=4)
    interleaved = np.arange(600).reshape(20, 30).T.ravel()
    reference = p_values(ScoreTest(x, a, single(4), episodes=episodes))
    mixed = p_values(ScoreTest(x[interleaved], a[interleaved], single(4), episodes=episodes[interleaved]))
    assert mixed == pytest.approx(reference, rel=1e-6)


def test_same_seed_same_answer():
    x, a, episodes = log_of(seed=5)
    answers = [p_values(ScoreTest(x, a, single(4), episodes=episodes, clusters="episodes", seed=9)) for _ in range(2)]
    assert np.array_equal(*answers)


def test_supports_and_closed_testing():
    x, a, episodes = log_of(seed=6)
    test = ScoreTest(x, a, single(4), episodes=episodes)
    unused = frozenset({0, 1})
    local = test.local_p_values([unused, frozenset({0}), frozenset(), frozenset({0, 1, 2})])
    assert local[0] > 0.05 and local[1] < 1e-6 and local[2] < 1e-6
    joint, ones = test.test(unused), test.one_out()
    evidence = 0.5 * np.exp(joint.log_evidence) + 0.25 * sum(np.exp(ones[j].log_evidence) for j in (2, 3))
    assert local[0] == pytest.approx(min(1, 1 / evidence))


def test_groups_are_tested_whole_and_those_always_used_are_not():
    rng = np.random.default_rng(7)
    category = rng.integers(0, 4, 800)
    x = np.column_stack([np.eye(4)[category], rng.standard_normal((800, 2))])
    action = np.array([0, 1, 0, -1])[category] + rng.standard_normal(800)
    test = ScoreTest(x, action, [(0, 1, 2, 3), (4,), (5,)], assume=[2])
    results = test.one_out()
    assert sorted(results) == [0, 1] and results[0].p_value < 1e-6 and results[1].p_value > 0.05


def test_inputs_of_which_nothing_is_left():
    x, a, episodes = log_of(seed=8)
    copies = np.column_stack([x, x[:, 1], np.full(600, 3.0), np.tanh(x[:, 3])])
    a = a + np.sin(2 * x[:, 3])
    test = ScoreTest(copies, a, single(7), episodes=episodes)
    results = test.one_out()
    for group in (1, 4, 5):
        assert results[group].p_value == 1 and "determine" in results[group].note
    assert results[0].p_value < 1e-6
    together = test.test(frozenset({0, 2, 3, 5, 6}))
    assert together.p_value < 1e-6 and together.unit == "rows"


def test_dependent_rows_in_few_episodes_make_no_promise():
    rng = np.random.default_rng(9)
    x, a, episodes = log_of(5, 40, seed=9)
    x[:, 3] = rng.standard_normal(5)[episodes]
    a = a + 2 * rng.standard_normal(5)[episodes]
    result = ScoreTest(x, a, single(4), episodes=episodes).one_out()[3]
    assert result.p_value == 1 and not result.promise and "too short to split" in result.note
    asked = ScoreTest(x, a, single(4), episodes=episodes, clusters="episodes").one_out()[0]
    assert asked.p_value == 1 and not asked.promise


def test_units_that_are_asked_for_and_subjects():
    x, a, episodes = log_of(seed=10)
    assert ScoreTest(x, a, single(4), episodes=np.arange(600)).one_out()[0].unit == "rows"
    assert ScoreTest(x, a, single(4), episodes=episodes, clusters="rows").one_out()[0].unit == "rows"
    long, acts, _ = log_of(1, 4000, seed=10)
    by_block = ScoreTest(long, acts, single(4), clusters="blocks").one_out()[0]
    assert by_block.unit not in ("rows", "episodes") and 8 <= by_block.num_clusters <= 2000
    by_episode = ScoreTest(x, a, single(4), episodes=episodes, clusters="episodes").one_out()[0]
    assert by_episode.unit == "episodes" and not by_episode.is_e_value and by_episode.num_clusters == 20
    by_subject = ScoreTest(x, a, single(4), episodes=episodes, subjects=episodes // 2).one_out()[0]
    assert by_subject.unit == "subjects" and by_subject.num_clusters == 10
    assert by_subject.p_value <= 0.01


@pytest.mark.parametrize(("width", "found"), [(3, "doubtful"), (8, "greedy")])
def test_an_agent_without_chance_in_its_labels_is_not_judged(width, found):
    """With few inputs the regressions follow it closely, and nothing is promised; with many their misfit gives it away."""
    rng = np.random.default_rng(12)
    x = rng.standard_normal((20, 100, width))
    for t in range(1, 100):
        x[:, t] = 0.95 * x[:, t - 1] + np.sqrt(1 - 0.95**2) * x[:, t]
    x = x.reshape(-1, width)
    labels = (np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 0] > 0).astype(int)
    test = ScoreTest(x, labels, single(width), num_labels=2, episodes=np.repeat(np.arange(20), 100))
    assert getattr(test.diagnosis, found) and "has no guarantee" in test.diagnosis.sentence()
    if found == "greedy":
        assert all(r.p_value == 1 and not r.promise and "no guarantee" in r.note for r in test.one_out().values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.full(600, 2.0)}, "--test wilks"),
        ({"features": np.full((600, 4), np.nan)}, "finite"),
        ({"features": np.zeros(600)}, "table"),
        ({"actions": np.full(600, np.inf)}, "finite"),
        ({"actions": np.ones(600)}, "same action"),
        ({"actions": np.ones(599)}, "one action a row"),
        ({"actions": np.zeros(600, int), "num_labels": 3}, "same action"),
        ({"actions": np.full(600, 5), "num_labels": 3}, "action codes must be"),
        ({"actions": np.full(600, 0.5), "num_labels": 3}, "whole-number"),
        ({"groups": [(0,), (1,)]}, "exactly one group"),
        ({"episodes": np.arange(5)}, "one code a row"),
        ({"clusters": "weeks"}, "'auto'"),
        ({"assume": [4]}, "numbered 0 to 3"),
        ({"significance": 0.0}, "between 0 and 1"),
        (
            {"features": np.random.default_rng(0).standard_normal((600, 400)), "groups": single(400)},
            "two rows an input",
        ),
    ],
)
def test_bad_input_is_told_in_a_sentence(change, message):
    x, a, episodes = log_of()
    given = {"features": x, "actions": a, "groups": single(4), "episodes": episodes} | change
    with pytest.raises(InputError, match=message):
        ScoreTest(**given)
