"""Which rows are looked at, and regressions from sums of products: they are those of explicit least squares."""

import numpy as np
import pytest

from policyspace.inference.lean import (
    Basis,
    Bumps,
    InputTransform,
    LeanRows,
    Linear,
    Products,
    Projector,
    Waves,
    checked_rows,
    folds,
    held_out_error,
    largest_basis,
    min_rows,
    moments,
    sample_of_episodes,
)
from policyspace.inference.lean.regression import WIDEST

FOUR, CURVED, NONE = np.ones(4, bool), np.array([True, True, True, False]), np.zeros(4, bool)
"""Masks of the inputs of `some_rows`: all, those with more than two values, none."""


def some_rows(num: int = 300, seed: int = 1, wiggle: float = 0.0) -> LeanRows:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((num, 4))
    x[:, 3] = x[:, 3] > 0
    action = x[:, 0] + wiggle * np.sin(4 * x[:, 1]) + 0.3 * rng.standard_normal(num)
    return checked_rows(x, action, episodes=np.arange(num) // 10)


def every_block(rows: LeanRows) -> Basis:
    return Basis(
        (
            Linear.of(4),
            Bumps.of(rows, 3, CURVED, InputTransform.of(rows)),
            Products.pairs(rows, NONE),
            Products.powers(rows, 3, CURVED),
            Waves.of(rows, 12, 0, FOUR, NONE),
        ),
        InputTransform.of(rows),
    )


def test_columns_within_a_support_do_not_read_the_other_inputs():
    rows = some_rows()
    basis = every_block(rows)
    changed = rows.inputs.copy()
    changed[:, [1, 3]] += 0.7
    same = np.all(basis.columns(rows.inputs) == basis.columns(changed), axis=0)
    assert np.array_equal(same, basis.within([0, 2]))
    assert 0 < same.sum() < basis.width


def test_products_hold_every_pair_once_and_none_of_two_inputs_that_stay_alone():
    rows = some_rows()
    assert [tuple(row) for row in Products.pairs(rows, NONE).factors.T] == [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 3),
        (2, 3),
    ]
    alone = np.array([True, False, True, False])
    assert [tuple(row) for row in Products.pairs(rows, alone).factors.T] == [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert Products.powers(rows, 3, CURVED).factors.T.tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]


@pytest.mark.parametrize("kept", [[0, 1, 2, 3], [0, 2], [3], []])
def test_gram_blocks_give_least_squares(kept):
    rows = some_rows()
    basis = every_block(rows)
    sums = moments(basis, rows, np.zeros(rows.num), 1)[0]
    mask = basis.within(kept)
    slopes = Projector(sums[: basis.width, : basis.width], mask).coefficients(sums[: basis.width, basis.width :])
    table = basis.columns(rows.inputs)
    explicit, *_ = np.linalg.lstsq(table[:, mask], rows.actions, rcond=None)
    assert np.all(slopes[~mask] == 0)
    best = np.sum((rows.actions - table[:, mask] @ explicit) ** 2)
    assert np.sum((rows.actions - table @ slopes) ** 2) == pytest.approx(best, rel=1e-4)


def test_repeated_and_empty_columns_do_no_harm():
    rng = np.random.default_rng(0)
    table = np.hstack([np.ones((50, 1)), rng.standard_normal((50, 2))])
    table = np.hstack([table, table[:, 1:2], np.zeros((50, 1))])
    target = rng.standard_normal((50, 1))
    slopes = Projector(table.T @ table, np.ones(5, bool)).coefficients(table.T @ target)
    explicit = table[:, :3] @ np.linalg.lstsq(table[:, :3], target, rcond=None)[0]
    assert np.allclose(table @ slopes, explicit, atol=1e-6)


def test_held_out_error_is_that_of_fitting_and_predicting_fold_by_fold():
    rows = some_rows()
    basis = Basis((Linear.of(4), Products.powers(rows, 2, CURVED), Products.pairs(rows, NONE)), InputTransform.of(rows))
    fold = folds(rows, seed=3)
    assert all(len(np.unique(fold[rows.episode == episode])) == 1 for episode in range(30))
    error = held_out_error(moments(basis, rows, fold, 5), np.ones(basis.width, bool), np.array([basis.width]))
    table = basis.columns(rows.inputs)
    explicit = 0.0
    for held in range(5):
        slopes, *_ = np.linalg.lstsq(table[fold != held], rows.actions[fold != held], rcond=None)
        explicit += np.sum((rows.actions[fold == held] - table[fold == held] @ slopes) ** 2)
    assert error == pytest.approx(explicit / np.sum(rows.actions**2), rel=1e-4)


def test_the_family_is_the_richest_that_rows_can_feed_whatever_the_agent_does():
    """A linear agent gets it, too: that a simpler family predicts as well says too little about the product of misfits."""
    for num in (600, 2000, 20_000):
        family = largest_basis(some_rows(num), 0)
        assert family.name.startswith(("fine curves and products", "curves, products and"))
        assert num / 16 < family.basis.width <= num / 8 or family.basis.width > 300
        assert family.too_simple is None


@pytest.mark.parametrize("inputs", [17, 18, 19, 20, 24, 30])
def test_more_rows_never_make_the_family_poorer(inputs):
    rng = np.random.default_rng(0)
    for num in (6000, 8000, 12_000, 30_000):
        x = rng.standard_normal((num, inputs))
        family = largest_basis(checked_rows(x, x[:, 0] + rng.standard_normal(num)), 0)
        assert family.name.startswith(("fine curves and products", "curves, products and"))
        assert family.too_simple is None


def test_without_products_of_all_inputs_the_family_says_how_many_rows_would_do():
    few = largest_basis(some_rows(100), 0)
    assert few.name == "linear" and "100 rows are too few" in few.too_simple and "which need 112" in few.too_simple
    assert (
        largest_basis(some_rows(111), 0).too_simple is not None and largest_basis(some_rows(112), 0).too_simple is None
    )
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2000, 60))
    many = largest_basis(checked_rows(x, x[:, 0] + rng.standard_normal(2000)), 0)
    assert many.name == "linear" and "60 inputs are too many" in many.too_simple and "47 at most" in many.too_simple
    assert 1 + 47 * 50 // 2 <= WIDEST < 1 + 48 * 51 // 2
    alone = largest_basis(checked_rows(x[:30, :1], x[:30, 1]), 0)
    assert alone.too_simple is None  # the only input: nothing is regressed on others


def test_two_valued_inputs_have_products_and_no_curves():
    rng = np.random.default_rng(2)
    x = (rng.random((400, 5)) < 0.5).astype(float)
    family = largest_basis(checked_rows(x, x[:, 0] + rng.standard_normal(400)), 0)
    assert [block.name for block in family.basis.blocks][:2] == ["linear", "pairs"] and family.too_simple is None


def test_inputs_that_stay_the_same_within_few_episodes_have_curves_of_few_points_or_no_promise():
    """Two such inputs: 2·(3 + 5) columns and their product tell episodes apart, of which two a column are wanted."""
    rng = np.random.default_rng(3)

    def family(num_episodes: int, shuffled: bool = False):
        num = 40 * num_episodes
        still, episodes = rng.standard_normal((num_episodes, 2)), np.arange(num) // 40
        x = np.hstack([still[episodes], rng.standard_normal((num, 2))])
        episodes = rng.permutation(episodes) if shuffled else episodes
        return largest_basis(checked_rows(x, rng.standard_normal(num), episodes=episodes), 0)

    enough, fewer, ordinary = family(34), family(33), family(34, shuffled=True)
    depends = [found.basis.depends for found in (enough, fewer, ordinary)]
    between = [int((own[:2].any(axis=0) & ~own[2:].any(axis=0)).sum()) for own in depends]
    assert between[:2] == [17, 2] and between[2] > 17
    assert enough.too_simple is None and ordinary.too_simple is None
    assert "33 episodes are too few" in fewer.too_simple and "which need 34" in fewer.too_simple
    assert all((own[0] & own[2]).any() for own in depends)  # with others they have products in any case


def test_levels_of_a_category_have_no_products_with_each_other_and_ask_for_no_rows():
    """The product of two levels that exclude each other is a sum of both, so nothing is missed without it."""
    rng = np.random.default_rng(4)
    level = rng.integers(0, 11, size=400)
    x = np.column_stack([level[:, None] == np.arange(1, 11), rng.standard_normal(400)]).astype(float)
    rows = checked_rows(x, rng.standard_normal(400))
    pairs = Products.pairs(rows, np.zeros(11, bool))
    assert {tuple(pair) for pair in pairs.factors.T} == {(i, 10) for i in range(10)}
    assert largest_basis(rows, 0).too_simple is None and min_rows([10, 1]) == 8 * (1 + 11 + 10 + 1) <= 400
    few = largest_basis(checked_rows(x[:180], rng.standard_normal(180)), 0).too_simple
    assert f"which need {min_rows([10, 1])}" in few


def test_inputs_with_heavy_tails_are_seen_by_their_ranks():
    """Those of the log-normal law become normal ones again; the others are only clipped."""
    rng = np.random.default_rng(5)
    z = rng.standard_normal((4000, 2))
    rows = checked_rows(np.column_stack([np.exp(2 * z[:, 0]), z[:, 1]]), rng.standard_normal(4000))
    seen = InputTransform.of(rows)(rows.inputs)
    middle = np.abs(z[:, 0]) < 2
    np.testing.assert_allclose(seen[middle, 0], z[middle, 0], atol=0.15)
    assert np.array_equal(seen[:, 1], np.clip(rows.inputs[:, 1], -4, 4))
    assert (np.diff(seen[np.argsort(z[:, 0]), 0]) >= 0).all()


def test_a_sample_is_made_of_whole_episodes():
    episodes = np.repeat(np.arange(40), 25)
    rows = sample_of_episodes(episodes, 1000, 300)
    assert len(rows) == 250 and all(np.sum(episodes[rows] == e) == 25 for e in np.unique(episodes[rows]))
    assert np.array_equal(sample_of_episodes(episodes, 1000, 1000), np.arange(1000))  # all of them
    assert np.array_equal(sample_of_episodes(None, 1000, 300), np.arange(300))
    assert np.array_equal(sample_of_episodes(episodes // 10, 1000, 300), np.arange(300))  # four episodes are too few
