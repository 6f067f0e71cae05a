"""Firth's penalty against a brute-force maximisation of log L + ½ log det F, for several actions and groups."""

import numpy as np
import pytest
from scipy import optimize

from policyspace import InputError, Sample, SoftmaxLinear, likelihood_of, likelihood_ratio


def case(seed, k, n=40, sharp=1.0, **space):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=(n, 2)) * [1.0, 20.0] + [0.0, 5.0], 1)
    logits = sharp * np.column_stack([x @ rng.normal(size=(2, k)) * [1.0] * k, np.zeros(n)])
    y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    y[: k + 1] = np.arange(k + 1)
    data = Sample.from_arrays(x, y, discrete=True)
    return data, SoftmaxLinear(data.names, data.action_names, **space)


def penalised(space, data, theta):
    n = data.num_rows
    sign, log_det = np.linalg.slogdet(n * space.fisher(theta, data.features))
    return space.log_prob(theta, data.features, data.actions).sum() + 0.5 * log_det if sign > 0 else -1e10


def brute_force(space, data, support):
    free = space.free_mask(support)
    scale = np.tile(np.concatenate([[1.0], data.features.std(axis=0)]), len(space.row_names))[free]

    def at(part):
        theta = space.fixed.copy()
        theta[free] = part / scale
        return -penalised(space, data, theta)

    best = optimize.minimize(at, np.zeros(free.sum()), method="BFGS", options={"gtol": 1e-6})
    polished = optimize.minimize(
        at, best.x, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11, "maxiter": 4000}
    )
    return -polished.fun


@pytest.mark.parametrize(("k", "seed", "sharp"), [(1, 0, 1.0), (2, 1, 0.3), (2, 2, 5.0), (3, 3, 0.1)])
def test_penalised_fits_are_those_of_brute_force(k, seed, sharp):
    data, space = case(seed, k, sharp=sharp)
    found = likelihood_of(space, data, firth=True)
    assert found.full.converged and np.isfinite(found.full.theta).all()
    for support in (space.full_support, space.full_support - {1}, space.full_support - {2}, frozenset()):
        one = found.fit(support)
        assert one.log_likelihood == pytest.approx(brute_force(space, data, support), abs=1e-6)
        assert one.log_likelihood == pytest.approx(penalised(space, data, one.theta), abs=1e-8)
    np.testing.assert_allclose(found.information(), space.fisher(found.full.theta, data.features), rtol=1e-9)


def test_fixed_values_and_starts():
    data, space = case(4, 2, groups="parameter", fixed={"x0": 0.5})
    found = likelihood_of(space, data, firth=True)
    support = space.full_support - {1}
    one = found.fit(support)
    assert one.theta[~space.free_mask(support)].tolist() == [0.5]
    assert one.log_likelihood == pytest.approx(brute_force(space, data, support), abs=1e-6)
    other = found.fit(support, start=0.1 * np.ones(space.num_parameters))
    assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-8)


def test_weights_are_repeated_rows():
    data, space = case(5, 2)
    counts = np.random.default_rng(0).integers(1, 4, data.num_rows)
    weighted = Sample.from_arrays(data.features, data.actions, weights=counts.astype(float), discrete=True)
    repeated = Sample.from_arrays(
        np.repeat(data.features, counts, axis=0), np.repeat(data.actions, counts), discrete=True
    )
    here, there = (likelihood_of(space, d, firth=True).full for d in (weighted, repeated))
    assert here.log_likelihood == pytest.approx(there.log_likelihood, abs=1e-8)
    np.testing.assert_allclose(here.theta, there.theta, atol=1e-6)


def test_a_completely_separated_agent_has_a_finite_penalised_fit():
    x = np.linspace(-2, 2, 30)[:, None]
    data = Sample.from_arrays(x, (x[:, 0] > 0).astype(int), discrete=True)
    space = SoftmaxLinear(data.names, data.action_names)
    found = likelihood_of(space, data, firth=True)
    assert found.full.converged and np.abs(found.full.theta).max() < 20
    assert found.full.log_likelihood == pytest.approx(brute_force(space, data, space.full_support), abs=1e-6)
    test = likelihood_ratio(found.fit(frozenset()), found.full)
    assert 0 < test.p_value < 1e-4


def test_collinear_features_are_refused():
    x = np.random.default_rng(0).normal(size=(50, 1))
    data = Sample.from_arrays(np.column_stack([x, x]), np.arange(50) % 2, discrete=True)
    with pytest.raises(InputError, match="redundant feature"):
        likelihood_of(SoftmaxLinear(data.names, data.action_names), data, firth=True)


def test_a_feature_seen_once_does_not_throw_the_penalised_fit_off():
    """A rare feature is many standard deviations long: an unbounded step would leave the maximum behind for good."""
    rng = np.random.default_rng(5)
    n = 600
    features = np.column_stack([rng.random((n, 3)) < 0.4, np.arange(n) == 17]).astype(float)
    eta = np.column_stack([3 * features[:, 0] - 1, 2 * features[:, 1] - 1, np.zeros(n)])
    actions = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)
    actions[features[:, 2] > 0] = np.minimum(actions[features[:, 2] > 0], 1)  # never the last action: separated
    names = ("a", "b", "c", "rare")
    space = SoftmaxLinear(names, ("x", "y", "z"))
    likelihood = likelihood_of(space, Sample(features, actions, names, ("x", "y", "z")), firth=True)
    assert likelihood.full.converged
    for g in space.tested:
        restricted = likelihood.fit(space.full_support - {g})
        assert restricted.converged
        assert restricted.log_likelihood <= likelihood.full.log_likelihood + 1e-9
        again = likelihood.fit(space.full_support, start=restricted.theta)
        assert again.log_likelihood == pytest.approx(likelihood.full.log_likelihood, abs=1e-6)
