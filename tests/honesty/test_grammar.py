"""Agents drawn at random: the same by the same seed, different by another draw, and their truth is what moves them."""

import numpy as np
import pytest

from benchmarks.honesty.grammar import kinds, log_of


def test_draws_are_reproducible_and_different():
    names = [kind.name for kind in kinds(0)]
    assert len(set(names)) == 48 and names == [kind.name for kind in kinds(0)]
    assert len(set(names) & {kind.name for kind in kinds(1)}) < 5


@pytest.mark.parametrize("kind", kinds(0)[::4], ids=lambda kind: kind.name)
def test_only_used_inputs_move_the_agent(kind):
    log, again = log_of(kind, 3), log_of(kind, 3)
    assert np.array_equal(log.features, again.features) and np.array_equal(log.actions, again.actions)
    assert log.used and set(log.used) < set(log.names)
    for j, name in enumerate(log.names):
        if name not in log.used:
            other = log.features.copy()
            other[:, j] = other[::-1, j]
            assert np.array_equal(log.agent(other), log.actions)


def test_hidden_causes_are_told_apart():
    found = kinds(0, 96)
    assert {kind.memory for kind in found if not kind.logged} == {"hidden cause"}
    assert sum(kind.logged for kind in found) > 60
