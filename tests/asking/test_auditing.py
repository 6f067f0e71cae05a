"""Watched and asked side by side: where a log errs, and where it does not."""

import json

import numpy as np
import pytest
from gymnasium import spaces

import policyspace
from policyspace import InputError
from policyspace.asking import as_agent, ask, audit


def leans(seen):
    p = 1 / (1 + np.exp(-4 * seen[..., 2] - 4 * seen[..., 3]))
    return np.stack([1 - p, p], axis=-1)


def remembers(seen, before):
    """Sees the angle alone, and remembers the last one: watched, it seems to use how fast the angle changes."""
    turning = 0.0 if before is None else (seen[2] - before) * 50
    p = 1 / (1 + np.exp(-6 * seen[2] - 4 * turning))
    return np.array([1 - p, p]), float(seen[2])


def test_an_agent_that_a_log_shows_rightly(tmp_path):
    answer = ask(leans, "CartPole-v1", episodes=25)
    found = audit(answer)
    assert found.of_agreement("found") == answer.selected == ("angle", "angular_velocity")
    assert found.of_agreement("no evidence, rightly") == ("position", "velocity")
    assert "finds 2 of the 2 inputs" in found.sentence and "names none" in found.sentence
    page = found.report(tmp_path / "audit.html").read_text()
    assert page.count("<svg") == 2 and "Watched and asked" in page
    data = json.loads(found.to_json())
    assert data["agreement"]["angle"] == "found" and data["watched"]["data"]["num_rows"] == answer.num_states


def test_an_agent_with_a_memory_that_a_log_shows_falsely():
    answer = ask(remembers, "CartPole-v1", episodes=12, budget=200)
    assert answer.selected == ("angle",) and len(answer.never) == 3
    assert [effect.estimate > 0 for effect in answer.lags("angle")] == [True, True, *7 * [False]]
    found = audit(answer, policyspace.identify(answer.log, test="wilks"))
    assert "angular_velocity" in found.of_agreement("false") and "which it never reacts to" in found.sentence


def test_groups_are_those_that_were_asked_about():
    answer = ask(lambda seen: seen[1:2] - seen[2:3], "Pendulum-v1", episodes=3)
    assert [group.asked.group for group in audit(answer).groups] == ["angle", "angular_velocity"]
    other = policyspace.identify(answer.log)
    with pytest.raises(InputError, match="found angle in one alone"):
        audit(answer, other)


def test_a_log_that_was_given_is_the_one_that_is_watched():
    rows = np.random.default_rng(0).normal(size=(300, 4))
    actions = (leans(rows)[:, 1] > np.random.default_rng(1).random(300)).astype(int)
    log = policyspace.Sample(rows, actions, ("a", "b", "c", "d"), ("0", "1"))
    agent = as_agent(leans, observation_space=spaces.Box(-9, 9, (4,), np.float64), action_space=spaces.Discrete(2))
    assert audit(ask(agent, log=log, features=log.names)).watched.num_rows == 300
    with pytest.raises(InputError, match="has no actions"):
        audit(ask(agent, log=rows))
