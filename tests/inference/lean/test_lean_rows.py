"""Which rows are looked at."""

import numpy as np

from policyspace.inference.lean.rows import sample_of_episodes


def test_a_sample_is_made_of_whole_episodes():
    episodes = np.repeat(np.arange(40), 25)
    rows = sample_of_episodes(episodes, 1000, 300)
    assert len(rows) == 250 and all(np.sum(episodes[rows] == e) == 25 for e in np.unique(episodes[rows]))
    assert np.array_equal(sample_of_episodes(episodes, 1000, 1000), np.arange(1000))  # all of them
    assert np.array_equal(sample_of_episodes(None, 1000, 300), np.arange(300))
    assert np.array_equal(sample_of_episodes(episodes // 10, 1000, 300), np.arange(300))  # four episodes are too few
