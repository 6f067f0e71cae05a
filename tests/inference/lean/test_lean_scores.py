"""Scores in one pass over the rows are those of explicit regressions of the whole table."""

import numpy as np
import pytest
from scipy.special import expit

from policyspace.data import RowBlock
from policyspace.inference.lean import (
    Basis,
    InMemory,
    InputTransform,
    LeanRows,
    Linear,
    ListedClusters,
    Products,
    Scorer,
    checked_rows,
)
from policyspace.inference.lean.lean_test import shrink_factor
from policyspace.inference.lean.scores import FREQUENCIES, add_by_cluster


def some_rows(num: int, num_actions: int = 1, seed: int = 0) -> LeanRows:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((num, 4))
    x[:, 1] += 0.7 * x[:, 0]
    actions = x @ rng.standard_normal((4, num_actions)) + rng.standard_normal((num, num_actions))
    return checked_rows(x, actions, episodes=np.arange(num) // 20)


def scorer_of(rows: LeanRows, squares: bool = False) -> Scorer:
    every, none = np.ones(4, bool), np.zeros(4, bool)
    products = (Products.powers(rows, 2, every), Products.pairs(rows, none))
    basis = Basis((Linear.of(4), *products) if squares else (Linear.of(4),), InputTransform.of(rows))
    return Scorer(rows, basis, InMemory(rows))


@pytest.fixture
def without_steps(monkeypatch):
    """Regressions on the basis alone, which explicit least squares give to all digits."""
    monkeypatch.setattr(Scorer, "_with_steps", lambda self, plans: tuple(plan.look for plan in plans))


def residual(table: np.ndarray, target: np.ndarray) -> np.ndarray:
    return target - table @ np.linalg.lstsq(table, target, rcond=None)[0]


def test_linear_use_is_the_generalised_covariance_measure(without_steps):
    # Shah and Peters (2020): T = Σ R_i / √(Σ R_i² − (Σ R_i)²/n), R_i the product of the two regressions' residuals.
    rows = some_rows(400)
    scorer = scorer_of(rows)
    plan = scorer.plan([1, 2, 3], [0])
    (found,) = scorer.cluster_scores([plan], [ListedClusters(np.arange(400))])
    table = np.column_stack([np.ones(400), rows.inputs[:, 1:]])
    product = residual(table, rows.actions[:, 0]) * residual(table, rows.inputs[:, 0])
    expected = product.sum() / np.sqrt(np.sum(product**2) - product.sum() ** 2 / 400)
    mine = found.sums[:, 0]
    assert mine.sum() / np.sqrt(np.sum(mine**2) - mine.sum() ** 2 / 400) == pytest.approx(expected, rel=1e-6)
    assert found.major.sum() == 1 and found.num_regressors == 4


def test_every_entry_against_regressions_of_the_whole_table(without_steps):
    rows = some_rows(5000, num_actions=2)  # more than one chunk
    scorer = scorer_of(rows, squares=True)
    plan = scorer.plan([2, 3], [0, 1])
    codes = rows.episode
    (found,) = scorer.cluster_scores([plan], [ListedClusters(codes)])
    table = scorer.basis.columns(rows.inputs)[:, scorer.basis.within([2, 3])]

    def unit(columns: np.ndarray) -> np.ndarray:
        return columns / np.sqrt(np.mean(columns**2, axis=0))

    actions, tested = unit(residual(table, rows.actions)), unit(residual(table, rows.inputs[:, :2]))
    clipped, partners = np.clip(tested, -3, 3), np.clip(rows.inputs[:, 2:], -3, 3)
    minor = [tested[:, [j]] * partners[:, [i]] for j in (0, 1) for i in (0, 1)]
    minor += [clipped[:, [a]] * clipped[:, [b]] for a, b in ((0, 0), (0, 1), (1, 1))]
    minor += [wave(f * np.clip(rows.inputs[:, :2], -3, 3)) for f in FREQUENCIES for wave in (np.sin, np.cos)]
    directions = np.hstack([tested, unit(residual(table, np.hstack(minor)))])
    size = unit(residual(table, np.abs(actions)))
    expected = [d * a for d in directions.T for a in actions.T] + [d * s for d in tested.T for s in size.T]
    sums = np.array([np.bincount(codes, weights=column) for column in expected]).T
    assert found.sums.shape == sums.shape
    assert np.allclose(found.sums, sums, atol=1e-6)
    assert found.major.tolist() == [True] * 4 + [False] * (sums.shape[1] - 4)


def test_many_supports_in_one_pass_are_each_as_if_alone():
    rows = some_rows(300)
    scorer = scorer_of(rows)
    plans = [scorer.plan([i for i in range(4) if i != j], [j]) for j in range(4)]
    together = scorer.cluster_scores(plans, [ListedClusters(rows.episode)] * 4)
    for plan, scores in zip(plans, together, strict=True):
        assert np.allclose(scores.sums, scorer.cluster_scores([plan], [ListedClusters(rows.episode)])[0].sums)


def test_an_input_that_the_others_determine_is_not_scored():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 3))
    rows = checked_rows(np.column_stack([x, x[:, 0] ** 2]), x[:, 0] + rng.standard_normal(500))
    assert scorer_of(rows, squares=True).plan([0, 1, 2], [3]).look.tested.tolist() == []
    assert scorer_of(rows, squares=False).plan([0, 1, 2], [3]).look.tested.tolist() == [3]


def test_sums_by_cluster():
    codes = np.array([0, 0, 2, 2, 0, 3])
    values = np.arange(12.0).reshape(6, 2)
    total = np.ones((4, 2))
    add_by_cluster(total, codes, values)
    explicit = np.ones((4, 2))
    np.add.at(explicit, codes, values)
    assert np.array_equal(total, explicit)


def test_leverage_is_that_of_bell_and_mccaffrey():
    rows = some_rows(200)
    scorer = scorer_of(rows, squares=True)
    plan = scorer.plan([1, 2, 3], [0])
    table = scorer.basis.columns(rows.inputs)[:, plan.mask]
    left_action, left_input = residual(table, rows.actions[:, 0]), residual(table, rows.inputs[:, 0])
    raw = corrected = 0.0
    for cluster in range(10):
        inside = rows.episode == cluster
        hat = table[inside] @ np.linalg.solve(table.T @ table, table[inside].T)
        values, vectors = np.linalg.eigh(np.eye(20) - hat)
        adjusted = vectors @ np.diag(values**-0.5) @ vectors.T @ left_action[inside]
        raw += (left_input[inside] @ left_action[inside]) ** 2
        corrected += (left_input[inside] @ adjusted) ** 2
    assert shrink_factor(scorer, plan, rows.episode, 10) == pytest.approx(np.sqrt(raw / corrected), rel=1e-6)


@pytest.mark.parametrize("discrete", [True, False])
def test_actions_and_inputs_are_regressed_on_steps_of_first_fits_too(discrete):
    """Joint least squares on the basis and on steps of linear and whole fits, at quantiles, by hand."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((700, 4))
    x[:, 3] += np.tanh(3 * x[:, 0] * x[:, 1])
    labels = np.where(x[:, 0] > 0.3, 2, np.where(x[:, 1] > 0, 1, 0))
    if discrete:
        rows = checked_rows(x, np.where(rng.random(700) < 0.1, rng.integers(3, size=700), labels), num_labels=3)
    else:
        rows = checked_rows(x, (labels == 2) + 0.1 * rng.standard_normal(700))
    scorer = scorer_of(rows, squares=True)
    plan = scorer.plan([0, 1, 2], [3])
    (look,) = scorer._with_steps([plan])
    table = scorer.basis.columns(rows.inputs)
    kept, steps, num = table[:, plan.mask], [], 7 if discrete else 11  # 700 rows, 20 a step of 5 or 3 fits
    for columns, targets in ((kept[:, :4], rows.actions), (kept, rows.actions), (kept, rows.inputs[:, 3:])):
        for fit in (columns @ np.linalg.lstsq(columns, targets, rcond=None)[0]).T:
            centres = np.quantile(fit, (np.arange(num) + 0.5) / num)
            steps.append(expit(2 * (fit[:, None] - centres) / np.gradient(centres)))
    regressed = np.hstack([kept, *steps])
    stepped = look.steps.columns(table @ look.steps.fits.index)
    found = look.left(RowBlock(rows.inputs, rows.actions), look.fitted(stepped, table @ look.slopes)) * look.spread
    for position, target in enumerate((*rows.actions.T, rows.inputs[:, 3])):
        np.testing.assert_allclose(found[:, position], residual(regressed, target), atol=2e-3)
    np.testing.assert_allclose(look.spread, np.sqrt((found**2).mean(axis=0)), rtol=1e-6)
