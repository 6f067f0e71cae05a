"""A log that grew and was told again is refused; episodes that chance repeats are not."""

import shutil
from pathlib import Path

import gymnasium
import jax
import numpy as np
import pytest

from policyspace import InputError, Sample, Study, Trajectories, make_world
from policyspace.study.store import check_new
from tests.some_episodes import some_episodes

OLDER = Path(__file__).parent / "older_files" / "study-eprocess.sqlite"
GOLF = make_world("minigolf")


def report(episodes):
    """Arrays of a round from (features, actions) of each episode."""
    numbers = np.repeat(np.arange(len(episodes)), [len(actions) for _, actions in episodes])
    features, actions = (np.concatenate(part) for part in zip(*episodes, strict=True))
    return {"features": features, "actions": actions, "episodes": numbers}


def smooth(count, seed=0):
    """Episodes of numbers that never come twice."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, size=count)
    return [(rng.normal(size=(size, 2)), rng.integers(2, size=size)) for size in sizes]


def refused(new, old):
    try:
        check_new(report(new), [report(old)])
    except InputError as error:
        return str(error)
    return None


def test_new_episodes_are_taken():
    assert refused(smooth(40, 1), smooth(40, 2)) is None


@pytest.mark.parametrize("count", [6, 10, 40])
def test_a_log_that_grew_or_lost_some_is_refused(count):
    log = smooth(count + 30)
    said = "episodes were reported before, in round 1: tell only new ones."
    assert refused(log, log[:count]) == f"{count} of these {count + 30} {said}"
    assert refused(log[:count], log) == f"{count} of these {count} {said}"
    assert refused(log[::-1][:count], log[::-1]) == f"{count} of these {count} {said}"


def test_a_part_that_cannot_be_chance_is_refused():
    log = smooth(100)
    assert "20 of these 60 episodes" in refused(log[40:], log[:60])
    assert refused(log[41:], log[:60]) is None


def test_the_order_of_rows_in_an_episode_does_not_matter():
    log, rng = smooth(30), np.random.default_rng(1)
    orders = [rng.permutation(len(actions)) for _, actions in log]
    mixed = [(rows[order], actions[order]) for (rows, actions), order in zip(log, orders, strict=True)]
    assert "30 of these 30" in refused(mixed, log)
    assert refused([(rows, 1 - actions) for rows, actions in log], log) is None


def test_the_last_episode_may_not_have_been_at_its_end():
    log = smooth(60)
    rows, actions = smooth(1, seed=3)[0]
    whole = (np.vstack([rows, rows + 1]), np.append(actions, actions))
    assert "40 of these 61 episodes" in refused([*log[:40], whole, *log[40:]], [*log[:40], (rows, actions)])


def test_the_same_questions_with_other_answers_are_new():
    """A list of vignettes that is shown in every round: most answers stay the same, and all of them are new data."""
    rng = np.random.default_rng(0)
    rows, actions = rng.normal(size=(100, 3)), rng.integers(2, size=100)
    other = np.where(rng.random(100) < 0.05, 1 - actions, actions)
    assert 1 < (other != actions).sum() < 10
    first, again = ([(rows[[i]], answers[[i]]) for i in range(100)] for answers in (actions, other))
    assert refused(again, first) is None


def test_an_agent_that_never_wavers_repeats_whole_episodes():
    walk = (np.arange(5.0)[:, None], np.ones(5, int))
    assert refused([walk] * 50, [walk] * 30) is None
    few = [(start + np.arange(5.0)[:, None], np.ones(5, int)) for start in range(4)]
    assert refused(few * 10, few * 20) is None


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Blackjack-v1"])
def test_what_chance_repeats_is_taken_and_what_it_does_not_is_refused(name):
    env, rng = gymnasium.make(name), np.random.default_rng(0)

    def played(count):
        episodes = []
        for _ in range(count):
            rows, actions, (seen, _), ended = [], [], env.reset(seed=int(rng.integers(2**31))), False
            while not ended:
                rows.append(np.atleast_1d(seen).astype(float))
                actions.append(int(rng.integers(env.action_space.n)))
                seen, _, terminated, truncated, _ = env.step(actions[-1])
                ended = terminated or truncated
            episodes.append((np.array(rows), np.array(actions)))
        return episodes

    for size in (10, 60, 150):
        log = [played(size) for _ in range(4)]
        assert [refused(new, old) for old in log for new in log if new is not old] == [None] * 12
    assert "episodes were reported before" in refused(log[0] + log[1], log[0])


def test_chance_alone_is_hardly_ever_refused():
    """Worlds of a few or many episodes, evenly likely or not, and the two reports from different ones."""
    rng = np.random.default_rng(0)
    for _ in range(400):
        size = int(rng.integers(2, 200))
        first, second = (rng.dirichlet(np.full(size, rng.choice([0.1, 1.0, 100.0]))) for _ in range(2))
        old, new = (
            [(np.array([[float(e)]]), np.zeros(1, int)) for e in rng.choice(size, int(rng.integers(1, 200)), p=law)]
            for law in (first, second if rng.random() < 0.5 else first)
        )
        assert refused(new, old) is None


def putts(seed, count):
    theta = np.array([0.3, 0.02, 0.0, 0.0, 0.0, 0.0])
    return some_episodes(GOLF, GOLF.policy_space(), theta, GOLF.default_configuration(), jax.random.key(seed), count)


def test_a_study_says_which_round_it_was_and_stays_as_it_is(tmp_path):
    study = Study.create(tmp_path / "s.sqlite", "minigolf", design="none", max_rounds=3)
    study.tell(putts(0, 20))
    study.tell(putts(1, 30))
    for told in (putts(1, 45), putts(1, 29), putts(1, 30).pairs(GOLF.feature_names, GOLF.action_names)):
        with pytest.raises(InputError, match=r"of these \d+ episodes were reported before, in round 2: tell only new"):
            study.tell(told)
    assert len(study.rounds()) == 2 and study.tell(putts(2, 30)).number == 2


def test_counts_of_rows_are_part_of_them(tmp_path):
    """Rows that were counted once for all are the same rows in every report, with other counts."""
    study = Study.create(tmp_path / "s.sqlite", "minigolf", design="none", max_rounds=3)
    pairs, rng = putts(0, 20).pairs(GOLF.feature_names, GOLF.action_names), np.random.default_rng(0)
    fields = (pairs.features, pairs.actions, pairs.names, pairs.action_names, pairs.episodes)
    for number in range(2):
        counts = rng.integers(1, 4, size=pairs.num_rows).astype(float)
        assert study.tell(Sample(*fields, weights=counts)).number == number


def test_an_older_study_knows_its_episodes(tmp_path):
    shutil.copy(OLDER, tmp_path / "old.sqlite")
    study = Study.open(tmp_path / "old.sqlite")
    before = study.demonstrations(2)
    seen = Trajectories.of_pairs(before, {})
    assert before.num_episodes >= 6
    with pytest.raises(InputError, match="in round 3: tell only new ones"):
        study.tell(seen.pairs(before.names, before.action_names))
    assert len(study.rounds()) == 3
