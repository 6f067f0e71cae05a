"""Plans against closed forms, other libraries, brute force and simulation at fixed seeds."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import GofChisquarePower, ftest_power_f2

from policyspace import (
    GaussianLinear,
    InputError,
    Sample,
    SoftmaxLinear,
    fit,
    identify,
    likelihood_of,
    likelihood_ratio,
    plan,
    profile_intervals,
)
from policyspace.families import ChiSquare, WilksLambda
from policyspace.inference import Profile
from policyspace.planning import (
    Prequential,
    UniversalPower,
    Wilks,
    noncentrality_quantile,
    pairs_for_power,
    procedure_of,
    rate_for_power,
)

NAMES = ("a", "b", "c")


def gaussian_data(rng, n, theta, states=None, num_actions=1):
    states = rng.normal(size=(n, len(theta))) if states is None else states
    actions = states @ np.reshape(theta, (len(theta), -1)) + rng.normal(size=(n, num_actions))
    return Sample.from_arrays(states, actions, [f"x{i}" for i in range(len(theta))], discrete=False)


def boltzmann_data(rng, space, theta, states):
    return Sample(states, space.sample(rng, theta, states), space.feature_names, space.action_names)


# -- power and sample size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [2, 3, 5, 10])
@pytest.mark.parametrize("effect", [0.1, 0.3])
@pytest.mark.parametrize("wanted", [0.5, 0.8, 0.95])
def test_sample_size_is_statsmodels(bins, effect, wanted):
    ours = pairs_for_power(Wilks(ChiSquare(), 0.05), effect**2, bins - 1, wanted)
    theirs = GofChisquarePower().solve_power(effect_size=effect, alpha=0.05, power=wanted, n_bins=bins)
    assert ours == pytest.approx(float(np.ravel(theirs)[0]), rel=1e-6)
    again = GofChisquarePower().power(effect, ours, 0.05, n_bins=bins)
    assert Wilks(ChiSquare(), 0.05).power(ours, effect**2, bins - 1) == pytest.approx(again, abs=1e-9)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_f_power_is_statsmodels(m):
    columns, n, effect = 6, 80, 0.3
    ours = Wilks(WilksLambda(n, columns, 1), 0.01).power(n, effect**2, m)
    # statsmodels writes the non-centrality as f²·(df_num + df_denom + ncc); ours is rate·n.
    theirs = ftest_power_f2(effect**2, df_num=m, df_denom=n - columns, alpha=0.01, ncc=columns - m)
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_the_number_of_pairs_for_an_f_test_is_the_smallest():
    procedure = Wilks(WilksLambda(40, 5, 1), 0.05)
    needed = pairs_for_power(procedure, 0.05, 2, 0.9)
    assert procedure.power(needed, 0.05, 2) == pytest.approx(0.9, abs=1e-7)
    assert procedure.power(needed * 0.99, 0.05, 2) < 0.9
    # With the covariance known, fewer do.
    assert pairs_for_power(Wilks(ChiSquare(), 0.05), 0.05, 2, 0.9) < needed


def test_rate_and_pairs_are_inverse():
    for procedure in (Wilks(ChiSquare(), 0.01), UniversalPower(0.05, 6), Prequential(0.05, 6)):
        needed = pairs_for_power(procedure, 0.02, 2, 0.8)
        assert rate_for_power(procedure, needed, 2, 0.8) == pytest.approx(0.02, rel=1e-6)


def test_nothing_to_find_needs_infinitely_many_pairs():
    assert pairs_for_power(Wilks(ChiSquare(), 0.05), 0.0, 1, 0.9) == np.inf
    assert pairs_for_power(Wilks(ChiSquare(), 0.05), 1.0, 0, 0.9) == np.inf
    for procedure in (Wilks(ChiSquare(), 0.05), UniversalPower(0.05, 4), Prequential(0.05, 4)):
        assert procedure.power(1000, 1.0, 0) == 0.0  # a group that is a combination of others has nothing to test


@pytest.mark.parametrize("law", [ChiSquare(), WilksLambda(60, 4, 1)])
def test_the_interval_of_the_noncentrality_covers(law):
    """λ ~ χ²_m(ncp) or its F version: exact at any n, so the coverage is binomial around 0.9 and 0.5."""
    rng, m, ncp, runs = np.random.default_rng(5), 2, 7.0, 2000
    if isinstance(law, ChiSquare):
        statistics = rng.noncentral_chisquare(m, ncp, runs)
    else:
        spare = law.num_rows - law.num_columns
        f = rng.noncentral_chisquare(m, ncp, runs) / rng.chisquare(spare, runs)
        statistics = law.num_rows * np.log1p(f)
    quantiles = np.array([[noncentrality_quantile(law, s, m, p) for p in (0.95, 0.5, 0.05)] for s in statistics])
    covered = ((quantiles[:, 0] <= ncp) & (ncp <= quantiles[:, 2])).mean()
    assert abs(covered - 0.9) < 4 * np.sqrt(0.09 / runs)
    assert abs((quantiles[:, 1] <= ncp).mean() - 0.5) < 4 * np.sqrt(0.25 / runs)


# -- predicted against simulated ----------------------------------------------------------------------------------


def simulated_power(space, theta, states, group, level, runs, seed):
    """How often the test of one group rejects, the states held fixed; and the rate that theory gives it there."""
    rng = np.random.default_rng(seed)
    support, rejected = space.full_support - {group}, 0
    for _ in range(runs):
        if isinstance(space, GaussianLinear):
            mean = space.design(states) @ space.weights(theta).T
            data = Sample(states, mean + rng.normal(size=mean.shape), space.feature_names, space.row_names)
        else:
            data = boltzmann_data(rng, space, theta, states)
        likelihood = likelihood_of(space, data)
        test = likelihood_ratio(likelihood.fit(support), likelihood.full)
        rejected += test.p_value <= level
    return rejected / runs


def true_rate(space, theta, states, group):
    """2·KL(θ*‖Θ_I) a pair on these states, by fitting the expected actions: weights are the true probabilities."""
    if isinstance(space, GaussianLinear):
        clean = space.design(states) @ space.weights(theta).T
        known = GaussianLinear(space.feature_names, space.row_names, covariance=1.0, intercept=space.intercept)
        likelihood = likelihood_of(known, Sample(states, clean, space.feature_names, space.row_names))
        restricted = likelihood.fit(space.full_support - {group})
        return 2 * (likelihood.full.log_likelihood - restricted.log_likelihood) / len(states)
    first = space.cumulant_gradient(space.natural(theta, states))
    probabilities = np.hstack([first, 1 - first.sum(axis=1, keepdims=True)])
    k = probabilities.shape[1]
    soft = Sample(
        np.repeat(states, k, axis=0), np.tile(np.arange(k), len(states)), space.feature_names, space.action_names,
        weights=probabilities.ravel(),
    )  # fmt: skip
    likelihood = likelihood_of(space, soft)
    restricted = likelihood.fit(space.full_support - {group})
    return 2 * (likelihood.full.log_likelihood - restricted.log_likelihood) / len(states)


def check_power(family, n, q, effect, level, runs, seed):
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, q)) @ (np.eye(q) + 0.3)  # correlated features
    names = [f"x{i}" for i in range(q)]
    if family == "boltzmann":
        space = SoftmaxLinear(names, ("left", "right", "stay"))
        weights = np.zeros((2, q + 1))
        weights[0, 1], weights[1, 1], weights[0, 2] = effect, -effect / 2, 0.3
    else:
        space = GaussianLinear(names, covariance=1.0 if family == "known" else "estimate")
        weights = np.zeros((1, q + 1))
        weights[0, 1], weights[0, 2] = effect, 0.5
    theta = weights.ravel()
    rate = true_rate(space, theta, states, 1)
    law = likelihood_of(
        space,
        boltzmann_data(rng, space, theta, states) if family == "boltzmann"
        else Sample(states, rng.normal(size=(n, 1)), tuple(names), space.row_names),
    ).law  # fmt: skip
    predicted = Wilks(law, level).power(n, rate, 2 if family == "boltzmann" else 1)
    seen = simulated_power(space, theta, states, 1, level, runs, seed + 1)
    return predicted, seen, np.sqrt(predicted * (1 - predicted) / runs)


@pytest.mark.parametrize(
    "family,n,q,effect", [("known", 60, 3, 0.3), ("estimated", 40, 4, 0.4), ("boltzmann", 400, 3, 0.25)]
)
def test_predicted_power_is_seen(family, n, q, effect):
    predicted, seen, error = check_power(family, n, q, effect, 0.05, 500, 11)
    slack = 0.02 if family == "boltzmann" else 0.0  # Wilks is a limit there, exact for the others
    assert abs(predicted - seen) < 4 * error + slack
    assert 0.1 < predicted < 0.99


@pytest.mark.slow
def test_predicted_power_is_seen_over_a_grid(capsys):
    lines = []
    for family in ("known", "estimated", "boltzmann"):
        for q in (2, 6):
            for n in (100, 400) if family == "boltzmann" else (30, 200):
                for ncp in (3.0, 10.0):
                    effect = np.sqrt(ncp / n) * (2.0 if family == "boltzmann" else 1.0)
                    predicted, seen, error = check_power(family, n, q, effect, 0.05, 1500, 97 * q + n)
                    lines.append(f"{family:10s} q={q} n={n:4d} effect={effect:.3f}: {predicted:.3f} {seen:.3f}")
                    slack = 4.0 / np.sqrt(n) * 0.1 if family == "boltzmann" else 0.0
                    assert abs(predicted - seen) < 4 * error + slack, lines[-1]
    with capsys.disabled():
        print("\npredicted and seen power", *lines, sep="\n")


@pytest.mark.parametrize("wanted", [0.5, 0.9])
def test_the_sample_size_reaches_the_power(wanted):
    """From the true effect to n, and back by simulation at that n."""
    rng, theta = np.random.default_rng(2), np.array([0.0, 0.25, -0.5])
    rate = 0.25**2 * 0.75  # states are independent but for x1 = ½x0 + …
    needed = int(np.ceil(pairs_for_power(Wilks(ChiSquare(), 0.02), rate, 1, wanted)))
    runs, found = 800, 0
    space = GaussianLinear(["x0", "x1", "x2"], covariance=1.0)
    for _ in range(runs):
        states = rng.normal(size=(needed, 3))
        states[:, 1] = np.sqrt(0.75) * states[:, 1] + 0.5 * states[:, 0]
        data = gaussian_data(rng, needed, theta, states)
        likelihood = likelihood_of(space, Sample(states, data.actions, space.feature_names))
        found += likelihood_ratio(likelihood.fit(space.full_support - {2}), likelihood.full).p_value <= 0.02
    # The states vary from run to run, which blurs the rate a little.
    assert abs(found / runs - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / runs) + 0.02


def log_likelihood(theta, states, actions):
    return -0.5 * np.sum((actions - states @ theta) ** 2)


@pytest.mark.parametrize("rate_times_n", [20.0, 45.0])
def test_the_power_of_universal_inference_is_seen(rate_times_n):
    """Two halves, θ̂ of each judged on the other, against the best policy without the first two of five features."""
    rng, n, d, m, runs = np.random.default_rng(8), 200, 5, 2, 600
    procedure, rejected = UniversalPower(0.05, d), 0
    theta = np.zeros(d)
    theta[0] = np.sqrt(rate_times_n / n)
    for _ in range(runs):
        states = rng.normal(size=(n, d))
        states = np.linalg.qr(states)[0] * np.sqrt(n)
        actions = states @ theta + rng.normal(size=n)
        halves = [(states[::2], actions[::2]), (states[1::2], actions[1::2])]
        full = [np.linalg.lstsq(*half, rcond=None)[0] for half in halves]
        values = []
        for mine, other in ((0, 1), (1, 0)):
            s, a = halves[mine]
            null = np.concatenate([np.zeros(m), np.linalg.lstsq(s[:, m:], a, rcond=None)[0]])
            values.append(log_likelihood(full[other], s, a) - log_likelihood(null, s, a))
        rejected += np.logaddexp(*values) - np.log(2) >= np.log(20)
    predicted = procedure.power(n, rate_times_n / n, m)
    assert 0.05 < predicted < 0.99
    assert abs(rejected / runs - predicted) < 4 * np.sqrt(predicted * (1 - predicted) / runs) + 0.03


@pytest.mark.parametrize("rate_times_n", [25.0, 50.0])
def test_the_power_of_the_prequential_e_process_is_seen(rate_times_n):
    """Each action predicted from all before it, then E_n against the best policy without the first two features."""
    rng, n, d, m, runs = np.random.default_rng(9), 200, 4, 2, 400
    procedure, rejected = Prequential(0.05, d), 0
    theta = np.zeros(d)
    theta[0] = np.sqrt(rate_times_n / n)
    for _ in range(runs):
        states = np.linalg.qr(rng.normal(size=(n, d)))[0] * np.sqrt(n)
        actions = states @ theta + rng.normal(size=n)
        first = int(procedure.fewest)
        gram, right = states[:first].T @ states[:first], states[:first].T @ actions[:first]
        # The pairs before the first bet count for neither side.
        log_m = 0.0
        for s, a in zip(states[first:], actions[first:], strict=True):
            log_m -= 0.5 * (a - s @ np.linalg.solve(gram, right)) ** 2
            gram, right = gram + np.outer(s, s), right + s * a
        rest, acts = states[first:, m:], actions[first:]
        null = np.concatenate([np.zeros(m), np.linalg.lstsq(rest, acts, rcond=None)[0]])
        rejected += log_m - log_likelihood(null, states[first:], acts) >= np.log(20)
    predicted = procedure.power(n, rate_times_n / n, m)
    assert 0.05 < predicted < 0.99
    assert abs(rejected / runs - predicted) < 4 * np.sqrt(predicted * (1 - predicted) / runs) + 0.03


@pytest.mark.slow
@pytest.mark.parametrize("test,slack", [("universal", 0.04), ("eprocess", 0.06)])
@pytest.mark.parametrize("family", ["gaussian", "boltzmann"])
def test_the_tests_of_identify_have_the_planned_power(test, slack, family, capsys):
    rng, n, runs = np.random.default_rng(31), 400, 300
    names = ("a", "b", "c")
    effect = 0.35 if family == "gaussian" else 0.75
    space = GaussianLinear(names, covariance=1.0) if family == "gaussian" else SoftmaxLinear(names, ("no", "yes"))
    theta = np.array([0.0, effect, 0.5, 0.0])
    episodes, found, predicted = np.repeat(np.arange(40), 10), 0, 0.0
    for _ in range(runs):
        states = rng.normal(size=(n, 3))
        data = Sample(
            states, space.sample(rng, theta, states), names,
            space.row_names if family == "gaussian" else space.action_names, episodes,
        )  # fmt: skip
        found += identify(data, policy=space, test=test).groups[0].rejected
        procedure = procedure_of(likelihood_of(space, data), test, 0.05)
        predicted += procedure.power(n, true_rate(space, theta, states, 1), 1) / runs
    with capsys.disabled():
        print(f"\n{test} {family}: predicted {predicted:.3f}, seen {found / runs:.3f}")
    assert 0.2 < predicted < 0.99
    assert abs(found / runs - predicted) < 4 * np.sqrt(predicted * (1 - predicted) / runs) + slack


@pytest.mark.slow
@pytest.mark.parametrize("num_actions", [1, 2, 3])
def test_power_with_several_actions_of_unknown_covariance(num_actions, capsys):
    """Rao's F is exact under the hypothesis for two actions; beside it the non-central law is an approximation."""
    rng, n, runs, level = np.random.default_rng(33), 60, 1500, 0.05
    states = rng.normal(size=(n, 3))
    root = np.linalg.cholesky(0.5 * np.eye(num_actions) + 0.5)
    weights = np.zeros((num_actions, 3))
    weights[:, 0] = 0.3 * root[:, 0]
    space = GaussianLinear(NAMES, tuple(f"u{i}" for i in range(num_actions)))
    found = 0
    for _ in range(runs):
        actions = states @ weights.T + rng.normal(size=(n, num_actions)) @ root.T
        likelihood = likelihood_of(space, Sample(states, actions, NAMES, space.row_names))
        found += likelihood_ratio(likelihood.fit(space.full_support - {1}), likelihood.full).p_value <= level
    design = np.column_stack([np.ones(n), states])
    rate = 0.09 / np.linalg.inv(design.T @ design / n)[1, 1]
    predicted = Wilks(likelihood.law, level).power(n, rate, num_actions)
    with capsys.disabled():
        print(f"\n{num_actions} actions: predicted {predicted:.3f}, seen {found / runs:.3f}")
    assert abs(found / runs - predicted) < 4 * np.sqrt(predicted * (1 - predicted) / runs)


@pytest.mark.slow
def test_the_sample_size_reaches_the_power_for_boltzmann(capsys):
    rng, runs, wanted = np.random.default_rng(34), 600, 0.8
    space, theta = SoftmaxLinear(NAMES, ("left", "right", "stay")), np.array([0.2, 0.3, 0.5, 0, -0.2, 0, -0.4, 0])
    rate = true_rate(space, theta, rng.normal(size=(50_000, 3)), 1)
    needed = int(np.ceil(pairs_for_power(Wilks(ChiSquare(), 0.05 / 3), rate, 2, wanted)))
    found = 0
    for _ in range(runs):
        states = rng.normal(size=(needed, 3))
        likelihood = likelihood_of(space, boltzmann_data(rng, space, theta, states))
        found += likelihood_ratio(likelihood.fit(space.full_support - {1}), likelihood.full).p_value <= 0.05 / 3
    with capsys.disabled():
        print(f"\n{needed} pairs for power {wanted}: seen {found / runs:.3f}")
    assert abs(found / runs - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / runs) + 0.02


# -- intervals ----------------------------------------------------------------------------------------------------


def test_gaussian_intervals_are_the_exact_ones():
    import statsmodels.api as sm

    rng = np.random.default_rng(3)
    states = rng.normal(size=(50, 3)) @ (np.eye(3) + 0.4)
    data = Sample(states, states @ [[1.0], [0.2], [0.0]] + rng.normal(size=(50, 1)), NAMES)
    fitted = sm.OLS(data.actions[:, 0], sm.add_constant(states)).fit()
    student = profile_intervals(likelihood_of(GaussianLinear(NAMES), data), 0.1)
    ends = np.array([[i.lower, i.upper] for i in student])
    np.testing.assert_allclose(ends, fitted.conf_int(0.1)[1:], rtol=1e-9)
    known = profile_intervals(likelihood_of(GaussianLinear(NAMES, covariance=4.0), data), 0.1)
    half = stats.norm.isf(0.05) * 2 * np.sqrt(np.diag(fitted.normalized_cov_params)[1:])
    np.testing.assert_allclose([(i.upper - i.lower) / 2 for i in known], half, rtol=1e-9)
    np.testing.assert_allclose([i.estimate for i in known], fitted.params[1:], rtol=1e-9)


@pytest.mark.parametrize("covariance", ["estimate", 1.5])
def test_gaussian_intervals_end_where_the_likelihood_ratio_does(covariance):
    rng = np.random.default_rng(4)
    states = rng.normal(size=(40, 3))
    data = Sample(states, states @ [[1.0], [0.2], [0.0]] + rng.normal(size=(40, 1)), NAMES)
    for i, interval in enumerate(profile_intervals(likelihood_of(GaussianLinear(NAMES, covariance=covariance), data))):
        for end in (interval.lower, interval.upper):
            moved = likelihood_of(GaussianLinear(NAMES, covariance=covariance, fixed={NAMES[i]: end}), data)
            test = likelihood_ratio(moved.fit(moved.space.full_support - {i + 1}), moved.full)
            assert test.p_value == pytest.approx(0.05, rel=1e-6)


def test_several_actions_have_students_interval_each():
    import statsmodels.api as sm

    rng = np.random.default_rng(6)
    data = gaussian_data(rng, 60, np.array([[1.0, 0.0], [0.0, 0.5]]), num_actions=2)
    space = GaussianLinear(data.names, data.action_names)
    found = {i.parameter: (i.lower, i.upper) for i in profile_intervals(likelihood_of(space, data))}
    for a, action in enumerate(data.action_names):
        expected = sm.OLS(data.actions[:, a], sm.add_constant(data.features)).fit().conf_int()[1:]
        for j, name in enumerate(data.names):
            np.testing.assert_allclose(found[f"{name}[{action}]"], expected[j], rtol=1e-9)


def test_boltzmann_intervals_end_where_the_likelihood_ratio_does():
    rng = np.random.default_rng(7)
    space = SoftmaxLinear(NAMES, ("left", "right", "stay"), groups="parameter")
    theta = np.array([0.2, 1.0, -0.5, 0.0, -0.3, 0.0, 0.8, 0.2])
    data = boltzmann_data(rng, space, theta, rng.normal(size=(150, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 0.0])
    intervals = profile_intervals(likelihood_of(space, data))
    assert [i.parameter for i in intervals] == ["a[left]", "b[left]", "c[left]", "a[right]", "b[right]", "c[right]"]
    for interval in intervals:
        assert interval.lower < interval.estimate < interval.upper
        for end in (interval.lower, interval.upper):
            moved = SoftmaxLinear(NAMES, space.action_names, groups="parameter", fixed={interval.parameter: end})
            group = next(g for g in moved.tested if moved.groups[g].name == interval.parameter)
            full, restricted = fit(moved, data), fit(moved, data, moved.full_support - {group})
            assert likelihood_ratio(restricted, full).p_value == pytest.approx(0.05, rel=1e-4)


@pytest.mark.parametrize("n,sharpness", [(40, 0.5), (300, 0.5), (300, 3.0), (5000, 1.0)])
def test_ends_followed_together_are_those_found_alone(n, sharpness):
    rng = np.random.default_rng(n)
    space = SoftmaxLinear(NAMES, ("left", "right", "stay"))
    states = rng.normal(size=(n, 3))
    likelihood = likelihood_of(space, boltzmann_data(rng, space, sharpness * rng.normal(size=8), states))
    profile = Profile(likelihood, 1.96)
    tested = [i for g in space.tested for i in space.groups[g].indices]
    together = profile.together(tested)
    assert np.isnan(list(together.values())).mean() < 0.5
    for i in tested:
        for side, alone in zip((-1, 1), profile.alone(i, np.eye(space.num_parameters)[i]), strict=True):
            if not np.isnan(together[i, side]):
                assert together[i, side] == pytest.approx(alone, rel=1e-5)


def test_boltzmann_intervals_cover():
    rng, runs, covered = np.random.default_rng(12), 400, np.zeros(2)
    space = SoftmaxLinear(("a", "b"), ("no", "yes"))
    theta = np.array([0.3, 1.5, 0.0])
    for _ in range(runs):
        states = rng.normal(size=(120, 2))
        found = profile_intervals(likelihood_of(space, boltzmann_data(rng, space, theta, states)), 0.1)
        covered += [i.lower <= t <= i.upper for i, t in zip(found, theta[1:], strict=True)]
    assert (np.abs(covered / runs - 0.9) < 4 * np.sqrt(0.09 / runs) + 0.01).all()


def test_separated_weights_have_open_intervals_and_no_size():
    rng = np.random.default_rng(1)
    states = rng.normal(size=(200, 3))
    answer = plan(states, (states[:, 0] > 0).astype(int), features=NAMES)
    interval = {i.parameter: i for i in answer.intervals}["a"]
    assert np.isinf([interval.lower, interval.upper]).sum() == 1  # the sign is certain, the size has no limit
    assert np.sign([interval.lower, interval.upper]).sum() in (2, -2)
    assert answer.groups[0].effect == answer.groups[0].minimum_detectable_effect == np.inf
    assert any("separated" in warning for warning in answer.warnings)
    json.loads(answer.to_json())


def test_collinear_features_have_no_interval_and_no_plan():
    rng = np.random.default_rng(1)
    states = rng.normal(size=(100, 2))
    states = np.column_stack([states, states[:, 0]])
    for actions in (states[:, 0] + rng.normal(size=100), (states[:, 0] + rng.normal(size=100) > 0).astype(int)):
        answer = plan(states, actions, features=NAMES)
        for name, open_ in (("a", True), ("b", False), ("c", True)):
            interval = next(i for i in answer.intervals if i.parameter == name)
            assert np.isinf([interval.lower, interval.upper]).all() == open_
        assert answer.groups[0].rows.value == np.inf and answer.groups[0].minimum_detectable_effect == np.inf
        assert any("cannot be told apart" in warning for warning in answer.warnings)


# -- the plan -----------------------------------------------------------------------------------------------------


def test_the_plan_of_a_known_covariance_by_hand():
    rng = np.random.default_rng(21)
    data = gaussian_data(rng, 400, np.array([0.2, 0.05, 0.0]))
    answer = plan(data.features, data.actions, covariance=1.0, power=0.8, significance=0.03, confidence=0.8)
    for group in answer.groups:
        estimate = noncentrality_quantile(ChiSquare(), group.statistic, 1, 0.5) / 400
        assert group.rate.value == pytest.approx(estimate)
        assert group.rate.low <= group.rate.value <= group.rate.high
        assert group.rows.low <= group.rows.value <= group.rows.high
        assert group.power_now.low <= group.power_now.value <= group.power_now.high
        if estimate:
            # (z_{1−α/2} + z_power)² / rate, but for the other tail of the two-sided test, which is nothing here.
            expected = (stats.norm.isf(0.005) + stats.norm.isf(0.2)) ** 2 / estimate
            assert group.rows.value == pytest.approx(expected, rel=1e-3, abs=1)
    assert answer.groups[0].rows.value < answer.groups[1].rows.value


def test_a_given_effect_is_planned_in_the_direction_that_shows_least():
    rng = np.random.default_rng(22)
    data = gaussian_data(rng, 300, np.array([0.2, 0.0]))
    answer = plan(data.features, data.actions, covariance=1.0, effect=0.3)
    design = np.column_stack([np.ones(300), data.features])
    variance = np.diag(np.linalg.inv(design.T @ design))[1:]
    for group, v in zip(answer.groups, variance, strict=True):
        assert group.rate.value == pytest.approx(0.09 / (300 * v))
        power = stats.norm.sf(stats.norm.isf(0.0125) - 0.3 / np.sqrt(v))
        assert group.power_now.value == pytest.approx(power, abs=1e-6)


def test_the_detectable_effect_is_detected_with_that_power():
    rng = np.random.default_rng(23)
    data = gaussian_data(rng, 300, np.array([0.2, 0.0]))
    answer = plan(data.features, data.actions, power=0.7)
    for group in answer.groups:
        planned = plan(data.features, data.actions, power=0.7, effect=group.minimum_detectable_effect)
        same = next(g for g in planned.groups if g.group == group.group)
        assert same.power_now.value == pytest.approx(0.7, abs=1e-6)
        assert same.rows.value == pytest.approx(300, abs=1)


def test_weights_are_counts():
    rng = np.random.default_rng(24)
    data = gaussian_data(rng, 200, np.array([0.3, 0.1]))
    twice = Sample(
        np.repeat(data.features, 2, axis=0), np.repeat(data.actions, 2, axis=0), data.names, data.action_names
    )
    weighted = Sample(data.features, data.actions, data.names, data.action_names, weights=np.full(200, 2.0))
    for one, other in zip(plan(twice).groups, plan(weighted).groups, strict=True):
        assert one.power_now.value == pytest.approx(other.power_now.value)
        assert one.rows.value == pytest.approx(2 * other.rows.value, abs=2)
        assert one.minimum_detectable_effect == pytest.approx(other.minimum_detectable_effect)


def test_episodes_follow_pairs():
    rng = np.random.default_rng(25)
    data = gaussian_data(rng, 300, np.array([0.1, 0.05]))
    episodes = np.repeat(np.arange(30), 10)
    answer = plan(data.features, data.actions, episodes=episodes)
    for group in answer.groups:
        assert group.episodes.value == (np.ceil(group.rows.value / 10) if group.rows.value < np.inf else np.inf)
    assert plan(data.features, data.actions).groups[0].episodes is None


def test_other_tests_cost_more_pairs():
    rng = np.random.default_rng(26)
    data = gaussian_data(rng, 300, np.array([0.5, 0.0, 0.0, 0.0]))
    needed = {t: plan(data, test=t).groups[0].rows.value for t in ("wilks", "universal", "eprocess")}
    assert needed["wilks"] < needed["universal"] < 10 * needed["wilks"]
    assert needed["wilks"] < needed["eprocess"] < 10 * needed["wilks"]


@pytest.mark.parametrize(
    "options,sentence",
    [
        ({"power": 1.0}, "the power must lie between 0 and 1"),
        ({"power": 0.01}, "must exceed the significance"),
        ({"significance": 0}, "the significance must lie between 0 and 1"),
        ({"confidence": 2}, "the confidence must lie between 0 and 1"),
        ({"effect": -1.0}, "the effect must be a positive number"),
        ({"test": "wilk"}, "did you mean 'wilks'"),
        ({"assume": ["x0", "x1"]}, "every group is assumed"),
    ],
)
def test_bad_settings_are_one_sentence(options, sentence):
    data = gaussian_data(np.random.default_rng(0), 50, np.array([0.5, 0.0]))
    with pytest.raises(InputError, match=sentence):
        plan(data, **options)


def test_a_pilot_smaller_than_its_parameters_is_refused():
    data = gaussian_data(np.random.default_rng(0), 3, np.zeros(5))
    with pytest.raises(InputError, match="3 rows are fewer than the 6 parameters"):
        plan(data, covariance=1.0)


@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([3, 6, 12, 30, 80]),
    kind=st.sampled_from(["one", "two", "three labels", "separated"]),
    constant=st.booleans(),
    collinear=st.booleans(),
    counted=st.booleans(),
    test=st.sampled_from(["wilks", "universal", "eprocess"]),
    groups=st.sampled_from(["feature", "parameter"]),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_any_pilot_gives_a_plan_or_one_sentence(seed, n, kind, constant, collinear, counted, test, groups):
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-3, 4, size=3)
    if constant:
        states[:, 1] = 1.0
    if collinear:
        states[:, 2] = 2 * states[:, 0]
    actions = {
        "one": states[:, 0] + rng.normal(size=n),
        "two": rng.normal(size=(n, 2)),
        "three labels": rng.integers(0, 3, size=n),
        "separated": (states[:, 0] > 0).astype(int),
    }[kind]
    weights = rng.integers(0, 4, size=n).astype(float) if counted else None
    try:
        answer = plan(states, actions, weights=weights, test=test, groups=groups)
    except InputError as error:
        assert "\n" not in str(error)
        return
    json.loads(answer.to_json())
    for group in answer.groups:
        assert 0 <= group.power_now.low <= group.power_now.value <= group.power_now.high <= 1
        assert group.rows.low <= group.rows.value <= group.rows.high
    for interval in answer.intervals:
        assert interval.lower < interval.upper
        assert interval.lower <= interval.estimate <= interval.upper or answer.groups[0].effect == np.inf
    assert str(answer).startswith(answer.sentence)
