"""Network fits: derivatives against finite differences, optima against SciPy, and nested fits that never contradict."""

import itertools

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize

from policyspace import (
    GaussianLinear,
    GaussianNetwork,
    InputError,
    Sample,
    SoftmaxLinear,
    SoftmaxNetwork,
    likelihood_of,
)
from policyspace.families import NetworkLikelihood
from policyspace.families import network_sums as shallow_rows
from policyspace.families.network_likelihood import levenberg_marquardt, quasi_newton, rows_kind
from policyspace.families.network_sums import GaussianRows, NetworkInputs, NetworkRows, ShallowRows, solve_scaled

INPUTS = ("near", "far", "idle")
COVARIANCE = [[0.2, 0.05], [0.05, 0.1]]


def gaussian(hidden=(3,), **options):
    return GaussianNetwork(INPUTS, ("gas", "wheel"), hidden=hidden, covariance=COVARIANCE, **options)


def boltzmann(hidden=(3,), **options):
    return SoftmaxNetwork(INPUTS, ("a", "b", "c"), hidden=hidden, **options)


def data_of(space, n=400, seed=0, unused=("idle",)):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=space.num_parameters)
    off = [i for g in space.groups for i in g.indices if g.name in unused]
    theta[off] = 0.0
    features = rng.normal(size=(n, len(INPUTS))) * [1.0, 3.0, 0.5] + [0.0, 5.0, -2.0]
    theta[space.layer_indices[0][0]] /= [1.0, 3.0, 0.5]
    theta[space.layer_indices[0][1]] -= theta[space.layer_indices[0][0]] @ [0.0, 5.0, -2.0]
    actions = space.sample(rng, theta, features)
    return theta, Sample(features, actions, INPUTS, space.action_names)


def rows_of(space, data, weights=None):
    inputs = NetworkInputs.of(data.features, weights).standardise(data.features)
    return rows_kind(space)(space, inputs, data.actions, weights)


@pytest.mark.parametrize("space", [gaussian(), gaussian((3, 2)), gaussian((3,), activation="relu"), boltzmann((3, 2))])
def test_standardising_changes_nothing(space):
    theta, data = data_of(space)
    inputs, nothing = NetworkInputs.of(data.features, None), np.zeros(space.num_parameters, bool)
    moved = inputs.to_standardised(space, theta)
    np.testing.assert_allclose(inputs.to_raw(space, moved), theta, rtol=1e-12, atol=1e-12)
    value = rows_of(space, data).at(moved, nothing, np.zeros(len(theta))).value
    assert value == pytest.approx(space.log_prob(theta, data.features, data.actions).sum(), rel=1e-12)


@pytest.mark.parametrize("space", [gaussian(), gaussian((3, 2)), gaussian(()), boltzmann(), boltzmann((3, 2))])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_is_the_finite_difference(space, weighted):
    theta, data = data_of(space, 60)
    weights = np.random.default_rng(5).uniform(0.5, 2.0, 60) if weighted else None
    rows, nothing, flat = rows_of(space, data, weights), np.zeros(len(theta), bool), np.zeros(len(theta))
    everything = ~nothing
    theta = np.random.default_rng(2).normal(size=len(theta))
    gradient, _ = rows.system(rows.at(theta, nothing, flat), everything)
    step = 1e-6 * np.eye(len(theta))
    numeric = [(rows.at(theta + e, nothing, flat).value - rows.at(theta - e, nothing, flat).value) / 2e-6 for e in step]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


def test_the_gauss_newton_matrix_is_the_mean_outer_product_of_scores():
    """E[score scoreᵀ] = F: checked by simulation in the Boltzmann case, within six standard errors."""
    space = boltzmann()
    theta, data = data_of(space, 40)
    rows, everything = rows_of(space, data), np.ones(space.num_parameters, bool)
    inputs = NetworkInputs.of(data.features, None)
    moved = inputs.to_standardised(space, theta)
    _, fisher = rows.system(rows.at(moved, ~everything, np.zeros(len(theta))), everything)
    rng, draws = np.random.default_rng(3), 4000
    repeated = np.repeat(rows.x, draws, axis=0)
    scores = space.score(moved, repeated, space.sample(rng, moved, repeated)).reshape(40, draws, -1)
    outer = scores[:, :, 0] * scores[:, :, 1]
    expected, error = outer.mean(axis=1).sum(), np.sqrt((outer.var(axis=1) / draws).sum())
    assert abs(fisher[0, 1] - expected) < 6 * error


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("prior", [0.0, 0.7])
def test_one_hidden_layer_is_the_general_case(activation, weighted, prior):
    """Value, solved output layer, gradient and Gram matrix, with whole inputs, single weights and an output fixed."""
    space = gaussian(activation=activation)
    theta, data = data_of(space)
    weights = np.random.default_rng(5).uniform(0.5, 2.0, data.num_rows) if weighted else None
    fast = rows_of(space, data, weights)
    assert isinstance(fast, ShallowRows)
    general = GaussianRows(space, fast.x, fast.actions, weights)
    precision = np.full(len(theta), prior)
    theta[0] = 300.0  # a unit that saturates
    for without in ([], [0, 3, 6], [1, len(theta) - 1], [len(theta) - 4]):
        free = np.ones(len(theta), bool)
        free[without] = False
        points = [rows.at(np.where(free, theta, 0.1), free, precision) for rows in (fast, general)]
        assert points[0].value == pytest.approx(points[1].value, rel=1e-12)
        np.testing.assert_allclose(points[0].theta, points[1].theta, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(fast.output_score(points[0]), general.output_score(points[1]), atol=1e-8)
        expected = NetworkRows.system(general, points[1], free)
        for found, other in zip(fast.system(points[0], free), expected, strict=True):
            np.testing.assert_allclose(found, other, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_steering_by_some_rows_keeps_value_and_gradient_of_all(weighted, monkeypatch):
    space = gaussian()
    theta, data = data_of(space, 1000)
    weights = np.random.default_rng(5).uniform(0.5, 2.0, 1000) if weighted else None
    exact, everything, flat = rows_of(space, data, weights), np.ones(len(theta), bool), np.zeros(len(theta))
    monkeypatch.setattr(shallow_rows, "STEERING", 300)
    some = rows_of(space, data, weights)
    point = some.at(theta, everything, flat)
    gradient, gram = some.system(point, everything, steering=True)
    np.testing.assert_allclose(gradient, exact.system(point, everything)[0], rtol=1e-12, atol=1e-9)
    few = exact.sample(np.arange(0, 1000, 4))  # the fewest regular ones that are at most 300
    matrix = few.system(few.at(point.theta, ~everything, flat), everything)[1]
    factor = 4.0 if weights is None else weights.sum() / weights[::4].sum()
    np.testing.assert_allclose(gram, factor * matrix, rtol=1e-9, atol=1e-7)
    peaks = [levenberg_marquardt(rows, theta, everything, np.ones(len(theta)), 1e-9, 500) for rows in (some, exact)]
    assert peaks[0].value == pytest.approx(peaks[1].value, abs=1e-6)
    assert peaks[0].gradient_norm < 1e-2


def test_scaled_solutions_of_good_and_of_singular_systems():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 9)) * 10.0 ** np.arange(5)[:, None]
    matrix, right = root @ root.T, rng.normal(size=(5, 2))
    np.testing.assert_allclose(matrix @ solve_scaled(matrix, right, 0.0), right, atol=1e-9)
    twins = np.ones((2, 2))  # two units that are alike share their weight
    np.testing.assert_allclose(solve_scaled(twins, np.ones(2), 1e-13), [0.5, 0.5], rtol=1e-2)


def test_variable_projection_ends_on_peaks_of_scipys_least_squares():
    """Neither solver can climb on from where the other ended; SciPy's knows nothing of projection."""
    space = gaussian((2,))
    theta, data = data_of(space, 300)
    rows, free, prior = rows_of(space, data), np.ones(space.num_parameters, bool), np.ones(space.num_parameters)
    start = NetworkInputs.of(data.features, None).to_standardised(space, theta)
    whiten = np.linalg.inv(np.linalg.cholesky(space.covariance)).T
    constant = data.num_rows * np.linalg.slogdet(2 * np.pi * space.covariance)[1] / 2

    def scipys(begin):
        def residuals(t):
            return np.concatenate([((data.actions - space.output(t, rows.x)) @ whiten).ravel(), t])

        found = least_squares(residuals, begin, xtol=1e-14)
        return found.x, -found.cost - constant

    ours = levenberg_marquardt(rows, start, free, prior, tolerance=1e-10, max_steps=500)
    assert ours.converged
    assert scipys(ours.theta)[1] == pytest.approx(ours.value, abs=1e-6)
    theirs, value = scipys(start)
    assert levenberg_marquardt(rows, theirs, free, prior, tolerance=1e-10).value == pytest.approx(value, abs=1e-4)


def test_fisher_scoring_reaches_scipys_quasi_newton():
    space = boltzmann((2,))
    theta, data = data_of(space, 400)
    rows, free, prior = rows_of(space, data), np.ones(space.num_parameters, bool), np.ones(space.num_parameters)
    start = NetworkInputs.of(data.features, None).to_standardised(space, theta)
    ours = levenberg_marquardt(rows, start, free, prior, tolerance=1e-9, max_steps=500)
    other = minimize(lambda t: -space.log_prob(t, rows.x, data.actions).sum() + t @ t / 2, start, method="BFGS")
    assert ours.value == pytest.approx(-other.fun, abs=1e-3)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_full_fits_are_as_good_as_plain_quasi_newton(seed, discrete):
    """L-BFGS of SciPy on the density from three starts: most end below, though with so many peaks one may be lucky."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 3))
    z = np.column_stack([x[:, 0] + 0.5 * np.sin(2 * x[:, 1])] * 2)
    if discrete:
        space = SoftmaxNetwork(INPUTS, ("a", "b", "c"), (8,))
        actions = np.argmax(np.column_stack([z, np.zeros(300)]) + rng.gumbel(size=(300, 3)), axis=1)
    else:
        space, actions = GaussianNetwork(INPUTS, ("a", "b"), (8,), 0.09), z + 0.3 * rng.normal(size=z.shape)
    ours, plain = likelihood_of(space, Sample(x, actions, INPUTS, space.action_names)).full.log_likelihood, []
    for _ in range(3):
        start = rng.normal(0.0, 0.5, space.num_parameters)
        plain.append(
            -minimize(
                lambda t: -space.log_prob(t, x, actions).sum(),
                start,
                jac=lambda t: -space.score(t, x, actions).sum(axis=0),
                method="L-BFGS-B",
                options={"maxiter": 400},
            ).fun
        )
    assert ours >= np.median(plain)
    assert ours >= np.mean(plain) + 1.0


@pytest.mark.parametrize("solves", [False, True])
def test_both_climbs_find_one_peak(solves):
    """Under a prior, and with one weight fixed: from a start near it both end there."""
    space = gaussian((2,)) if solves else boltzmann((2,))
    theta, data = data_of(space, 300)
    rows, prior = rows_of(space, data), np.ones(space.num_parameters)
    free = np.arange(space.num_parameters) != 1
    start = np.where(free, NetworkInputs.of(data.features, None).to_standardised(space, theta), 0.4)
    peak = levenberg_marquardt(rows, start, free, prior, 1e-9, 500)
    near = np.where(free, peak.theta + np.random.default_rng(0).normal(0.0, 0.05, len(start)), 0.4)
    found = quasi_newton(rows, near, free, prior)
    assert peak.converged
    assert found.converged
    assert found.value == pytest.approx(peak.value, abs=0.02)
    np.testing.assert_allclose(found.theta, peak.theta, atol=0.05)
    assert found.theta[1] == 0.4


@pytest.mark.parametrize("family", ["gaussian", "boltzmann"])
def test_a_network_without_hidden_units_is_the_linear_policy(family):
    space = gaussian(()) if family == "gaussian" else boltzmann(())
    _, data = data_of(space)
    linear = (
        GaussianLinear(INPUTS, ("gas", "wheel"), COVARIANCE)
        if family == "gaussian"
        else SoftmaxLinear(INPUTS, ("a", "b", "c"))
    )
    ours, closed = likelihood_of(space, data), likelihood_of(linear, data)
    assert ours.identifiable
    assert ours.full.log_likelihood == pytest.approx(closed.full.log_likelihood, abs=0.01)
    fit = ours.fit(frozenset({0, 1}))
    expected = closed.fit(frozenset({0, 1, 2}))  # the linear space has its intercept as group 0
    assert fit.log_likelihood == pytest.approx(expected.log_likelihood, abs=0.01)
    np.testing.assert_allclose(ours.information()[0, 0], closed.information()[1, 1], rtol=0.05)


@pytest.mark.parametrize("space", [gaussian(), boltzmann(), gaussian(groups="hidden"), gaussian(groups="output")])
def test_more_freedom_is_never_less_likely(space):
    _, data = data_of(space, 300, seed=1)
    likelihood = likelihood_of(space, data)
    likelihood.prepare(space.tested)
    supports = [frozenset(c) for r in range(len(space.tested) + 1) for c in itertools.combinations(space.tested, r)]
    value = {s: likelihood.fit(s).log_likelihood for s in supports}
    for small, large in itertools.product(supports, supports):
        if small <= large:
            assert value[small] <= value[large]
    assert likelihood.full.log_likelihood >= max(value.values())
    for support in supports:
        fit = likelihood.fit(support)
        free = space.free_mask(support)
        assert (fit.theta[~free] == space.fixed[~free]).all()
        total = space.log_prob(fit.theta, data.features, data.actions).sum()
        assert fit.log_likelihood == pytest.approx(total, rel=1e-9)


def test_known_fixed_values_are_kept():
    space = gaussian(fixed={"idle": 0.3})
    _, data = data_of(space)
    fit = likelihood_of(space, data).fit(frozenset({0, 1}))
    assert (fit.theta[list(space.groups[2].indices)] == 0.3).all()
    total = space.log_prob(fit.theta, data.features, data.actions).sum()
    assert fit.log_likelihood == pytest.approx(total, rel=1e-9)


def test_fits_are_at_least_as_likely_as_the_truth_and_say_their_noise():
    space = gaussian((4,))
    theta, data = data_of(space, 600)
    likelihood = likelihood_of(space, data)
    truth = space.log_prob(theta, data.features, data.actions).sum()
    assert likelihood.fit(frozenset({0, 1})).log_likelihood > truth
    assert likelihood.full.restart_noise >= 0.0
    assert not likelihood.identifiable


def test_a_given_start_is_one_more_place_to_climb_from():
    space = gaussian((4,))
    theta, data = data_of(space, 300)
    plain, helped = likelihood_of(space, data).fit(frozenset({0, 1})), likelihood_of(space, data)
    fit = helped.fit(frozenset({0, 1}), theta)
    assert fit.log_likelihood >= plain.log_likelihood - 1e-9
    assert helped.fit(frozenset({0, 1})).log_likelihood == fit.log_likelihood  # and it is remembered


def test_the_same_seed_gives_the_same_bytes():
    space = gaussian()
    _, data = data_of(space)
    first, second = (likelihood_of(space, data) for _ in range(2))
    for likelihood in (first, second):
        likelihood.prepare(space.tested)
    assert first.fit(frozenset({0})).theta.tobytes() == second.fit(frozenset({0})).theta.tobytes()


def test_a_prior_makes_fits_reproducible():
    space = gaussian((4,))
    _, data = data_of(space, 400)
    values = []
    for seed in range(3):
        likelihood = NetworkLikelihood(space, data.features, data.actions, None, seed=seed)
        theta = likelihood.ridge(space.full_support, 0.25)
        values.append(space.log_prob(theta, data.features, data.actions).sum())
    assert np.ptp(values) < 1.0


def test_dead_units_are_named():
    space = gaussian((3,), activation="relu")
    _, data = data_of(space, 200)
    likelihood = likelihood_of(space, data)
    likelihood.prepare(())  # the full fit alone
    best = likelihood._peaks[space.full_support]
    best.peak.theta[space.layer_indices[0][0][1]] = 0.0
    best.peak.theta[space.layer_indices[0][1][1]] = -1.0
    assert any("unit_1" in remark and "never changed" in remark for remark in likelihood.remarks())


def test_more_weights_than_pairs_are_refused():
    space = gaussian((30,))
    _, data = data_of(gaussian(), 100)
    with pytest.raises(InputError, match=r"100 rows are too few for a network of 182 weights"):
        likelihood_of(space, data)


def test_wrong_actions_are_refused():
    _, data = data_of(gaussian())
    with pytest.raises(InputError, match="Boltzmann policy needs discrete actions"):
        likelihood_of(boltzmann(), data)
    with pytest.raises(InputError, match="Firth"):
        likelihood_of(gaussian(), data, firth=True)
