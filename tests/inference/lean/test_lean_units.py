"""Blocks, ranges of dependence, and the rule that chooses among them."""

import numpy as np
import pytest

from policyspace.inference.lean import (
    autocorrelations,
    candidate_block_lengths,
    check_serial_correlation,
    checked_rows,
    choose_clustering,
    fewest_clusters,
)
from policyspace.inference.lean.clusters import block_codes, merged


def autoregressive(rng: np.random.Generator, num_episodes: int, length: int, slope: float) -> np.ndarray:
    series = rng.standard_normal((num_episodes, length))
    for t in range(1, length):
        series[:, t] = slope * series[:, t - 1] + np.sqrt(1 - slope**2) * series[:, t]
    return series.ravel()


def test_blocks_stay_inside_episodes_and_are_of_nearly_equal_length():
    lengths = np.array([23, 4, 50])
    codes = block_codes(lengths, 10)
    episode = np.repeat(np.arange(3), lengths)
    assert np.all(np.diff(codes) >= 0) and set(np.diff(codes)) == {0, 1}
    assert all(len(np.unique(episode[codes == code])) == 1 for code in np.unique(codes))
    assert np.bincount(codes).tolist() == [12, 11, 4, 10, 10, 10, 10, 10]


def test_the_ladder_climbs_from_rows_to_episodes_and_drops_what_has_too_few_clusters():
    rng = np.random.default_rng(0)
    rows = checked_rows(rng.standard_normal((600, 2)), rng.standard_normal(600), episodes=np.arange(600) // 60)
    assert [unit.name for unit in candidate_block_lengths(rows, 8, 600, 10)] == [
        "rows",
        "blocks of 5 rows",
        "blocks of 10 rows",
        "blocks of 25 rows",
        "episodes",
    ]
    assert [unit.num for unit in candidate_block_lengths(rows, 8, 600, 10)] == [600, 120, 60, 20, 10]
    assert candidate_block_lengths(rows, 11, 600, 10)[-1].name == "blocks of 25 rows"
    single = checked_rows(rng.standard_normal((40, 2)), rng.standard_normal(40), episodes=np.arange(40))
    assert [unit.name for unit in candidate_block_lengths(single, 8, 40, 40)] == ["rows"]


def test_few_clusters_cannot_pass_holms_first_threshold():
    for hypotheses, level in ((1, 0.05), (16, 0.05), (5, 0.1), (200, 0.01)):
        fewest = fewest_clusters(hypotheses, level)
        assert fewest >= 8 and 2.0 ** (1 - fewest) <= level / hypotheses


def test_merging_keeps_order_and_unites_neighbours_only():
    rng = np.random.default_rng(0)
    rows = checked_rows(rng.standard_normal((10_000, 1)), rng.standard_normal(10_000))
    codes = merged(candidate_block_lengths(rows, 8, 10_000, 1)[0])
    assert codes.max() < 4096 and set(np.bincount(codes)) <= {1, 3} and np.all(np.diff(codes) >= 0)


def test_autocorrelations_are_those_of_the_process_and_never_cross_episodes():
    rng = np.random.default_rng(3)
    series = autoregressive(rng, 200, 100, 0.8)[:, None]
    found, pairs = autocorrelations(series, np.repeat(np.arange(200), 100), 5)
    assert found[:, 0] == pytest.approx(0.8 ** np.arange(1, 6), abs=0.03)
    assert pairs.tolist() == [200 * (100 - lag) for lag in range(1, 6)]


def test_independent_residuals_keep_rows_and_shared_ones_need_long_clusters():
    rng = np.random.default_rng(4)
    episode = np.repeat(np.arange(30), 100)
    rows = checked_rows(rng.standard_normal((3000, 1)), rng.standard_normal(3000), episodes=episode)
    units, used = candidate_block_lengths(rows, 8, 3000, 30), np.arange(3000)
    slow = autoregressive(rng, 30, 100, 0.9)[:, None]
    free = choose_clustering(units, slow, rng.standard_normal((3000, 1)), rows, used)
    assert free.unit is not None and free.unit.name == "rows"
    tied = choose_clustering(units, slow, autoregressive(rng, 30, 100, 0.9)[:, None], rows, used)
    assert tied.unit is not None and tied.unit.length >= 10
    # Two AR(.9) series: variance inflated (1 + .81)/(1 − .81) = 9.5 times.
    assert tied.inflation == pytest.approx(9.5, abs=3)
    constant = rng.standard_normal((30, 1)).repeat(100, axis=0)
    own = choose_clustering(units, constant, rng.standard_normal((30, 1)).repeat(100, axis=0), rows, used)
    assert own.unit is not None and own.unit.name == "episodes"


def test_few_episodes_of_dependent_rows_carry_no_promise():
    rng = np.random.default_rng(5)
    episode = np.repeat(np.arange(4), 100)
    rows = checked_rows(rng.standard_normal((400, 1)), rng.standard_normal(400), episodes=episode)
    constant = rng.standard_normal((4, 1)).repeat(100, axis=0)
    choice = choose_clustering(candidate_block_lengths(rows, 8, 400, 4), constant, constant, rows, np.arange(400))
    assert choice.unit is None and choice.reason


def test_neighbours_agree_only_where_they_do():
    rng = np.random.default_rng(6)
    codes, episode = np.arange(2000), np.repeat(np.arange(20), 100)
    assert check_serial_correlation(rng.standard_normal((2000, 1)), codes, episode) < 3
    assert check_serial_correlation(autoregressive(rng, 20, 100, 0.5)[:, None], codes, episode) > 5
