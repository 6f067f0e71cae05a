"""Total variation of the laws of actions, against integrals, sums over all combinations, and closed forms."""

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

from policyspace.asking import Law


def normal(mean, sd, low=None, high=None):
    bounds = [None if b is None else np.atleast_1d(np.asarray(b, dtype=float)) for b in (low, high)]
    return Law(
        "normal",
        mean=np.atleast_2d(mean).astype(float),
        sd=np.atleast_2d(sd).astype(float),
        low=bounds[0],
        high=bounds[1],
    )


@pytest.mark.parametrize(
    "first, second",
    [((0, 1), (1, 1)), ((0, 1), (0, 2)), ((0.3, 0.2), (0.31, 0.5)), ((5, 1), (-5, 0.01)), ((0, 1), (0, 1))],
)  # fmt: skip
@pytest.mark.parametrize("ends", [(None, None), (-0.5, 0.7), (-0.5, None), (9, 10)])
def test_one_number_is_exact(first, second, ends):
    found = normal(*first, *ends).total_variation(normal(*second, *ends))[0]
    low, high = (end if end is not None else side * 60 for end, side in zip(ends, (-1, 1), strict=True))
    p, q = norm(*first), norm(*second)
    places = sorted({x for m, s in (first, second) for x in (m - 6 * s, m, m + 6 * s) if low < x < high})
    inside = integrate.quad(lambda x: abs(p.pdf(x) - q.pdf(x)), low, high, points=places, limit=2000)[0]
    expected = 0.5 * (inside + abs(p.cdf(low) - q.cdf(low)) + abs(p.sf(high) - q.sf(high)))
    assert found == pytest.approx(expected, abs=1e-7)
    assert normal(*second, *ends).total_variation(normal(*first, *ends))[0] == pytest.approx(found, abs=1e-12)


def test_equal_spreads_have_a_closed_form_and_points_come_close_to_it():
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=(300, 3)), np.full((300, 3), 0.7)
    first, second = normal(mean, sd), normal(mean + 0.4 * rng.normal(size=(300, 3)), sd)
    exact = first.total_variation(second)
    np.testing.assert_allclose(
        exact, 2 * norm.cdf(np.linalg.norm((first.mean - second.mean) / 0.7, axis=1) / 2) - 1, atol=1e-12
    )
    rough = first._at_fixed_points(second, first._of_single_numbers(second))
    assert np.abs(rough - exact).max() < 0.05 and abs((rough - exact).mean()) < 0.005


def test_clipped_numbers_against_many_draws():
    low, high = np.full(2, -1.0), np.full(2, 1.0)
    first, second = normal([[0.9, 0.0]], [[0.5, 0.3]], low, high), normal([[1.2, 0.1]], [[0.6, 0.2]], low, high)
    rng = np.random.default_rng(1)
    many = first.take(np.zeros(200_000, dtype=int))
    drawn = many.sample(rng)
    ratio = second.take(np.zeros(200_000, dtype=int)).log_density(drawn) - many.log_density(drawn)
    assert first.total_variation(second)[0] == pytest.approx(np.maximum(0, 1 - np.exp(ratio)).mean(), abs=0.02)


def test_one_moving_number_of_several_is_exact():
    first, second = normal([[0, 1, 2]], [[1, 1, 1]]), normal([[0, 1, 2]], [[1, 3, 1]])
    alone = normal(1, 1).total_variation(normal(1, 3))
    np.testing.assert_allclose(first.total_variation(second), alone, atol=1e-12)


def test_choices_are_summed_over_all_combinations():
    rng = np.random.default_rng(2)
    one, two = ([rng.dirichlet(np.ones(k), 5) for k in (2, 3, 4)] for _ in range(2))
    joint = [np.einsum("na,nb,nc->nabc", *tables).reshape(5, -1) for tables in (one, two)]
    expected = 0.5 * np.abs(joint[0] - joint[1]).sum(axis=1)
    first, second = Law("categorical", tuple(one)), Law("categorical", tuple(two))
    np.testing.assert_allclose(first.total_variation(second), expected, atol=1e-12)
    single = np.stack([0.5 * np.abs(a - b).sum(axis=1) for a, b in zip(one, two, strict=True)], axis=1)
    assert np.abs(first._at_fixed_points(second, single) - expected).max() < 0.08
    assert (first.total_variation(first) == 0).all()


def test_draws_follow_the_law():
    law = Law("categorical", (np.tile([0.2, 0.0, 0.8], (50_000, 1)),))
    np.testing.assert_allclose(
        np.bincount(law.sample(np.random.default_rng(3)), minlength=3) / 50_000, [0.2, 0, 0.8], atol=0.01
    )
    clipped = normal(np.zeros((50_000, 1)), np.ones((50_000, 1)), -1, 2).sample(np.random.default_rng(4))
    assert (clipped == -1).mean() == pytest.approx(norm.cdf(-1), abs=0.01)
    assert (clipped == 2).mean() == pytest.approx(norm.sf(2), abs=0.01)


def test_points_differ_or_do_not():
    first = Law("point", mean=np.array([[0.0, 1.0], [0.0, 1.0]]), low=np.full(2, -1.0), high=np.full(2, 1.0))
    second = Law("point", mean=np.array([[0.0, 1.0 + 1e-7], [0.5, 1.0]]), low=first.low, high=first.high)
    assert first.total_variation(second).tolist() == [0, 1]
    np.testing.assert_allclose(first.distance(second), [0, 0.25], atol=1e-6)


def test_squashed_numbers_have_the_density_that_a_histogram_shows():
    law = Law(
        "normal",
        mean=np.array([[0.4]]),
        sd=np.array([[0.6]]),
        low=np.array([-2.0]),
        high=np.array([2.0]),
        squashed=True,
    )
    drawn = law.take(np.zeros(400_000, dtype=int)).sample(np.random.default_rng(5))[:, 0]
    for at in (-1.0, 0.0, 1.2):
        near = (np.abs(drawn - at) < 0.05).mean() / 0.1
        assert np.exp(law.log_density(np.array([[at]])))[0] == pytest.approx(near, rel=0.05)
    assert law.greedy().mean[0, 0] == pytest.approx(2 * np.tanh(0.4))


def test_laws_are_joined_and_taken_apart():
    law = Law.of_choices(np.array([2, 0, 1]), [3], chance=0.3)
    np.testing.assert_allclose(law.probabilities[0][0], [0.1, 0.1, 0.8])
    again = Law.joined([law.take([0]), law.take(slice(1, 3))])
    np.testing.assert_array_equal(again.probabilities[0], law.probabilities[0])
    assert (law.greedy().probabilities[0].argmax(axis=1) == [2, 0, 1]).all()


def test_many_rows_are_compared_as_few_are():
    """More than one block of rows, each as alone."""
    rng = np.random.default_rng(0)
    first, second = (
        Law(
            "normal",
            mean=rng.normal(size=(5000, 2)),
            sd=np.exp(0.3 * rng.normal(size=(5000, 2))),
            low=-np.ones(2),
            high=np.ones(2),
        )
        for _ in range(2)
    )
    whole = first.total_variation(second)
    rows = slice(4500, 4600)
    np.testing.assert_allclose(whole[rows], first.take(rows).total_variation(second.take(rows)), atol=1e-12)
