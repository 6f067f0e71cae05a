"""Regressions from sums of products are those of explicit least squares."""

import numpy as np
import pytest

from policyspace.inference.lean.bases import Basis, Bumps, Linear, Products, Waves
from policyspace.inference.lean.moments import Projector, moments
from policyspace.inference.lean.nuisance import Candidates, _folds, _held_out_error, _richest
from policyspace.inference.lean.rows import Rows, checked_rows

SINGLE = [(0,), (1,), (2,), (3,)]


def some_rows(num: int = 300, seed: int = 1, wiggle: float = 0.0) -> Rows:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((num, 4))
    x[:, 3] = x[:, 3] > 0
    action = x[:, 0] + wiggle * np.sin(4 * x[:, 1]) + 0.3 * rng.standard_normal(num)
    return checked_rows(x, action, episodes=np.arange(num) // 10)


def every_block(rows: Rows) -> Basis:
    return Basis(
        (
            Linear.of(4),
            Bumps.of(rows, 3),
            Products.of(rows, 2, squares=False),
            Products.of(rows, 3, squares=True),
            Waves.of(rows, 12, 0, "waves"),
        )
    )


def test_columns_within_a_support_do_not_read_the_other_inputs():
    rows = some_rows()
    basis = every_block(rows)
    changed = rows.inputs.copy()
    changed[:, [1, 3]] += 0.7
    same = np.all(basis.columns(rows.inputs) == basis.columns(changed), axis=0)
    assert np.array_equal(same, basis.within([0, 2]))
    assert 0 < same.sum() < basis.width


def test_products_hold_every_monomial_once_and_no_power_of_a_two_valued_input():
    rows = some_rows()
    factors = [tuple(row) for row in Products.of(rows, 3, squares=True).factors]
    wanted = [(a, b, c) for a in range(4) for b in range(a, 4) for c in range(b, 4) if (a, b, c).count(3) < 2]
    assert factors == wanted


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
    basis = Basis((Linear.of(4), Products.of(rows, 2, squares=True)))
    fold = _folds(rows, seed=3)
    assert all(len(np.unique(fold[rows.episode == episode])) == 1 for episode in range(30))
    error = _held_out_error(moments(basis, rows, fold, 5), np.ones(basis.width, bool), np.array([basis.width]))
    table = basis.columns(rows.inputs)
    explicit = 0.0
    for held in range(5):
        slopes, *_ = np.linalg.lstsq(table[fold != held], rows.actions[fold != held], rcond=None)
        explicit += np.sum((rows.actions[fold == held] - table[fold == held] @ slopes) ** 2)
    assert error == pytest.approx(explicit / np.sum(rows.actions**2), rel=1e-4)


def test_the_family_is_the_richest_where_rows_can_feed_curves_and_products():
    """A linear agent gets it, too: that a simpler family predicts as well says too little about the product of misfits."""
    for num in (600, 2000, 20_000):
        family = Candidates(some_rows(num), SINGLE, 0).chosen()
        assert family.name.startswith(("fine curves and products", "curves, products and"))
        assert num / 16 < family.basis.width <= num / 8 or family.basis.width > 300
    few = Candidates(some_rows(60, wiggle=1.0), SINGLE, 0).chosen()
    assert few.name == "linear" and few.limited


def test_where_rows_are_few_the_family_follows_the_agent():
    def of(bend):
        rng = np.random.default_rng(2)
        x = rng.standard_normal((700, 12))
        action = x[:, 0] + bend * x[:, 0] ** 2 + 0.5 * rng.standard_normal(700)
        return Candidates(checked_rows(x, action), [(i,) for i in range(12)], 0).chosen().name

    assert of(0.0) == "linear" and of(1.0) == "additive curves"


def test_of_columns_that_stay_the_same_within_an_episode_there_must_be_episodes_to_each():
    """With 30 episodes, curves of inputs that change only between them would explain any of those."""
    rng = np.random.default_rng(3)
    x = np.hstack([np.repeat(rng.standard_normal((30, 2)), 40, axis=0), rng.standard_normal((1200, 1))])
    actions, episodes = rng.standard_normal(1200), np.arange(1200) // 40
    together = Candidates(checked_rows(x, actions, episodes=episodes), [(0,), (1,), (2,)], 0).chosen()
    apart = Candidates(checked_rows(x, actions, episodes=rng.permutation(episodes)), [(0,), (1,), (2,)], 0).chosen()
    assert together.name == "linear" and apart.basis.width > 50


def test_a_sample_of_many_more_rows_takes_the_richest_family_that_misses_no_more():
    """Rows that are only compared cannot show misfits that all rows would take for use."""
    errors = {"simple": 0.5, "right": 0.4 * (1 + 50 / 800), "rich": 0.45 * (1 + 200 / 800)}
    assert _richest(errors, {"simple": 5, "right": 50, "rich": 200}, 1000) == "right"
    errors["rich"] = 0.4 * (1 + 200 / 800)
    assert _richest(errors, {"simple": 5, "right": 50, "rich": 200}, 1000) == "rich"
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9000, 24))
    families = Candidates(checked_rows(x, x[:, 0] + rng.standard_normal(9000)), [(i,) for i in range(24)], 0)
    assert families.chosen(num_tested=4 * 9000).name == "linear"
    assert families.chosen(num_tested=1_000_000).basis.width > 100


def test_inputs_that_bend_into_each_other_ask_for_a_richer_family_than_the_agent():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((9000, 24))
    x[:, 23] = x[:, 0] ** 2 + 0.1 * rng.standard_normal(9000)
    rows = checked_rows(x, x[:, 1] + rng.standard_normal(9000), episodes=np.arange(9000) // 10)
    families = Candidates(rows, [(i,) for i in range(24)], 0)
    errors = families.held_out.of_actions
    assert families.chosen().name != "linear" and errors["linear"] <= min(errors.values()) * (1 + 1e-3)
