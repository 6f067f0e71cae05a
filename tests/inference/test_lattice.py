"""The search over supports against brute force, on made-up λ that are monotone and nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from policyspace import Fit, SoftmaxLinear
from policyspace.families import ChiSquare, Likelihood
from policyspace.inference import Lattice, WilksTest, minimal, search_supports, without_sufficient_child


class Table(Likelihood):
    """A likelihood that is a table of λ_I, one a support; counts what it is asked."""

    def __init__(self, statistics, degrees):
        size = len(degrees)
        self.space = SoftmaxLinear([f"x{g}" for g in range(size)], ("a", "b"), intercept=False)
        self.statistics, self.degrees, self.law = statistics, np.asarray(degrees), ChiSquare()
        self.asked = []
        self.full = self.fit(self.space.full_support)

    def mask(self, support):
        return sum(1 << g for g in support)

    def num_free(self, support):
        return int(self.degrees[sorted(support)].sum())

    def fit(self, support, start=None):
        self.asked.append(self.mask(support))
        value = -self.statistics[self.mask(support)] / 2
        return Fit(np.zeros(len(self.degrees)), support, value, 0.0, True, False, self.num_free(support), self.law)

    def information(self):
        return np.eye(len(self.degrees))

    @property
    def identifiable(self):
        return True


class Bracketing(Table):
    """The same, saying as little as it may: bounds on the right side of the critical value, and a misleading screen."""

    def bound_statistics(self, supports, criticals):
        exact = np.array([self.statistics[self.mask(s)] for s in supports])
        self.asked += [self.mask(s) for s in supports]
        return np.where(exact > criticals, (exact + criticals) / 2, 0.0), np.where(exact > criticals, np.inf, criticals)

    def approximate_statistics(self, groups):
        return np.random.default_rng(0).uniform(0, 2, len(self.statistics)) * self.statistics


def monotone(rng, size, scale):
    """λ that falls as supports grow, with steps of every size, and 0 for the full one."""
    raw = rng.exponential(scale, 2**size) * (rng.random(2**size) < 0.7)
    for bit in range(size):
        halves = raw.reshape(-1, 2, 1 << bit)
        halves[:, 0] = np.maximum(halves[:, 0], halves[:, 1])
    lift = np.sort(rng.exponential(scale / size, size + 1))
    statistics = raw + lift[size - np.bitwise_count(np.arange(2**size))]
    return statistics - statistics[-1]


def brute_force(table, size, significance, paper_rule):
    """The rule read out loud, one support at a time."""
    level = significance / 2**size if paper_rule else significance
    inside = np.arange(2**size)[:, None] >> np.arange(size) & 1
    degrees = (1 - inside) @ table.degrees
    p_values = np.where(degrees == 0, 1.0, stats.chi2.sf(table.statistics, np.maximum(degrees, 1)))
    good = set(np.flatnonzero(p_values >= level).tolist())
    if paper_rule:
        chosen = [m for m in good if not any(m >> g & 1 and m ^ 1 << g in good for g in range(size))]
    else:
        chosen = [m for m in good if not any(other != m and other & m == other for other in good)]
    factor = 2**size if paper_rule else 1
    adjusted = [min(1.0, factor * p_values[inside[:, g] == 0].max()) for g in range(size)]
    return {frozenset(g for g in range(size) if m >> g & 1) for m in chosen}, adjusted


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 6),
    scale=st.sampled_from([1.0, 4.0, 12.0]),
    kind=st.sampled_from([Table, Bracketing]),
    paper_rule=st.booleans(),
    significance=st.sampled_from([0.05, 0.3]),
    batch=st.sampled_from([1, 3, 64]),
)
def test_both_rules_are_brute_forces(seed, size, scale, kind, paper_rule, significance, batch):
    rng = np.random.default_rng(seed)
    table = kind(monotone(rng, size, scale), rng.integers(1, 4, size))
    # Small batches make small lattices take the ways of large ones.
    test = WilksTest(table)
    test.batch = batch
    found = search_supports(test, significance, paper_rule)
    expected, adjusted = brute_force(table, size, significance, paper_rule)
    assert set(found.supports) == expected and len(found.supports) == len(expected)
    assert found.exhaustive
    np.testing.assert_allclose([found.adjusted[g] for g in range(size)], adjusted, rtol=1e-9, atol=1e-300)


def test_a_sufficient_child_that_needs_no_fit_for_itself_still_disqualifies_its_parent():
    # {} holds at χ²_3, so {0} was skipped as no candidate; but {0} holds too, so {0, 1} has a sufficient child.
    level = 0.05 / 8
    c = {m: stats.chi2.isf(level, m) for m in (1, 2, 3)}
    statistics = np.zeros(8)
    statistics[0b000] = c[3] - 0.1
    statistics[[0b001, 0b010, 0b100]] = c[2] - 0.05, c[2] + 0.4, c[2] + 0.4
    statistics[[0b011, 0b101, 0b110]] = c[1] - 0.1, c[1] - 0.1, c[1] - 0.1
    assert statistics[0] > statistics[[1, 2, 4]].max()
    for kind in (Table, Bracketing):
        table = kind(statistics, [1, 1, 1])
        expected, _ = brute_force(table, 3, 0.05, True)
        assert expected == {frozenset(), frozenset({1, 2})}
        test = WilksTest(table)
        test.batch = 1
        assert set(search_supports(test, 0.05, paper_rule=True).supports) == expected


@pytest.mark.parametrize("kind", [Table, Bracketing])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_save_most_fits_of_a_clear_case(kind, seed):
    size = 12
    rng = np.random.default_rng(seed)
    strength = np.concatenate([rng.uniform(40, 80, 5), rng.uniform(0, 1.0, size - 5)])
    out = ~(np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(bool)
    table = kind(out @ strength, np.ones(size, int))
    found = search_supports(WilksTest(table), 0.05)
    expected, adjusted = brute_force(table, size, 0.05, False)
    assert set(found.supports) == expected == {frozenset(range(5))}
    assert len(set(table.asked)) < 400  # of 4096
    exact = np.array([found.adjusted[g] for g in range(size)])
    assert (exact >= np.array(adjusted) * (1 - 1e-9)).all()  # never too small
    assert (exact[:5] <= 0.05).all()


def test_weak_diffuse_effects_have_many_minimal_supports():
    # Ten equal effects, of which any six are enough.
    size = 10
    count = np.bitwise_count(np.arange(2**size))
    statistics = np.where(count >= 6, 0.1 * (size - count), 30.0 + (size - count))
    table = Bracketing(statistics - statistics[-1], np.ones(size, int))
    found = search_supports(WilksTest(table), 0.05)
    assert len(found.supports) == 210 and {len(s) for s in found.supports} == {6}
    assert set(found.supports) == brute_force(table, size, 0.05, False)[0]


@given(st.integers(1, 7), st.integers(0, 10**6), st.floats(0.01, 0.9))
def test_minimal_and_barren_supports_by_definition(size, seed, share):
    flags = np.random.default_rng(seed).random(2**size) < share
    good = set(np.flatnonzero(flags).tolist())
    smallest = {m for m in good if not any(o != m and o & m == o for o in good)}
    barren = {m for m in good if not any(m >> g & 1 and m ^ 1 << g in good for g in range(size))}
    assert set(minimal(flags).tolist()) == smallest
    assert set(without_sufficient_child(flags).tolist()) == barren


def test_what_is_learned_reaches_subsets_and_supersets_and_no_others():
    table = Table(monotone(np.random.default_rng(0), 4, 3.0), [1] * 4)
    known = Lattice.of(WilksTest(table), [0, 1, 2, 3])
    np.testing.assert_array_equal(known.degrees_of_freedom, 4 - np.bitwise_count(np.arange(16)))
    known.learn(np.array([0b0110]), np.array([5.0]), np.array([7.0]), np.array([5.0]))
    for mask in range(16):
        assert known.lower[mask] == (5.0 if mask & 0b0110 == mask else 0.0)
        bounded = 0.0 if mask == 15 else 7.0 if mask & 0b0110 == 0b0110 else np.inf
        assert known.upper[mask] == bounded
    assert known.num_tests == 1
