"""The paper's bounds: against closed forms, and against simulation, which must never break them more often than δ."""

import numpy as np
import pytest
from scipy import stats

from policyspace import GaussianLinear, InputError, Sample, SoftmaxLinear, likelihood_of, plan, theory

FEATURES = ("a", "b", "c")


def binomial_slack(probability, runs):
    return 4 * np.sqrt(probability * (1 - probability) / runs)


def boltzmann():
    return SoftmaxLinear(FEATURES, ("left", "right", "stay"))


# -- σ, F and its eigenvalues -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharp", [False, True])
def test_the_boltzmann_scale_is_subgaussian(sharp):
    """E exp(αᵀt̄) ≤ exp(½‖α‖²σ²) at random policies, features and directions, by the exact sum over actions."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        k, q = rng.integers(1, 4), rng.integers(1, 4)
        p = rng.dirichlet(np.full(k + 1, rng.choice([0.1, 1.0])))
        phi, alpha = rng.normal(size=q), rng.normal(size=(k, q)) * rng.choice([0.1, 1.0, 10.0])
        u = np.vstack([np.eye(k), np.zeros(k)]) - p[:k]
        scale = theory.boltzmann_scale(float(np.linalg.norm(phi)), sharp=sharp)
        exponents = u @ alpha @ phi
        assert np.log(p @ np.exp(exponents - exponents.max())) + exponents.max() <= (
            0.5 * np.sum(alpha**2) * scale**2 + 1e-9
        )


def test_the_gaussian_scale_is_subgaussian_and_no_smaller_one_is():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(2, 2))
    covariance, phi = root @ root.T + 0.1 * np.eye(2), rng.normal(size=3)
    scale = theory.gaussian_scale(float(np.linalg.norm(phi)), covariance)
    # log E exp(αᵀt̄) = ½ βᵀΣ⁻¹β with β = αφ; its largest value over ‖α‖ = 1 is ½σ².
    quadratic = np.kron(np.linalg.inv(covariance), np.outer(phi, phi))
    assert np.linalg.eigvalsh(quadratic)[-1] == pytest.approx(scale**2)


def test_the_largest_eigenvalue_is_bounded():
    rng, space = np.random.default_rng(2), boltzmann()
    for _ in range(200):
        features, theta = rng.normal(size=(1, 3)), rng.normal(size=8) * 3
        fisher = theory.empirical_fisher(space, theta, features)
        scale = theory.boltzmann_scale(theory.plug_in_feature_bound(space, features), sharp=True)
        assert np.linalg.eigvalsh(fisher)[-1] <= scale**2 + 1e-12  # sharper than Lemma A.2 by a factor d
        assert np.linalg.eigvalsh(fisher)[-1] <= theory.largest_eigenvalue_bound(8, scale)


def test_expected_fisher_is_the_mean_over_states():
    space = GaussianLinear(FEATURES, covariance=2.0, intercept=False)
    probabilities = np.array([0.2, 0.3, 0.5])
    fisher = theory.expected_fisher(space, np.zeros(3), np.eye(3), probabilities)
    np.testing.assert_allclose(fisher, np.diag(probabilities) / 2)
    assert theory.smallest_eigenvalue(fisher) == pytest.approx(0.1)
    rows = np.random.default_rng(3).choice(3, size=200_000, p=probabilities)
    np.testing.assert_allclose(theory.empirical_fisher(space, np.zeros(3), np.eye(3)[rows]), fisher, atol=4e-3)
    with pytest.raises(InputError, match="adding up to 1"):
        theory.expected_fisher(space, np.zeros(3), np.eye(3), np.array([0.2, 0.3, 0.4]))


def test_the_boltzmann_eigenvalue_bound_holds_in_the_whole_ball():
    rng, space = np.random.default_rng(4), boltzmann()
    features = rng.normal(size=(50, 3)) * 0.5
    for radius in (0.1, 1.0, 3.0):
        bound = theory.boltzmann_eigenvalue_bound(space, features, radius)
        assert bound > 0
        for _ in range(100):
            theta = rng.normal(size=8)
            theta *= radius / np.linalg.norm(theta)
            assert theory.smallest_eigenvalue(theory.empirical_fisher(space, theta, features)) >= bound
    # Two actions, one feature of length one: p(1 − p) at the border of the ball, exactly.
    two = SoftmaxLinear(("a",), ("no", "yes"), intercept=False)
    p = 1 / (1 + np.exp(-2.0))
    assert theory.boltzmann_eigenvalue_bound(two, np.ones((1, 1)), 2.0) <= p * (1 - p)


def test_the_scale_of_a_space():
    assert theory.subgaussian_scale(GaussianLinear(("a",), covariance=4.0), 3.0) == pytest.approx(1.5)
    assert theory.subgaussian_scale(boltzmann(), 3.0) == 6.0
    with pytest.raises(InputError, match="needs its covariance"):
        theory.subgaussian_scale(GaussianLinear(("a",)), 3.0)


# -- concentration ------------------------------------------------------------------------------------------------


def concentration_runs(family, n, delta, runs, seed):
    """How often each bound of Theorem 4.1 is broken, and the 1 − δ quantile of what it bounds as a share of it."""
    rng = np.random.default_rng(seed)
    states = rng.uniform(-1, 1, size=(n, 3))
    space = boltzmann() if family == "boltzmann" else GaussianLinear(FEATURES, covariance=0.5)
    d = space.num_parameters
    theta = rng.normal(size=d) * 0.5
    scale = theory.subgaussian_scale(space, theory.plug_in_feature_bound(space, states))
    shares = []
    for _ in range(runs):
        actions = space.sample(rng, theta, states)
        names = space.action_names if family == "boltzmann" else space.row_names
        full = likelihood_of(space, Sample(states, actions, FEATURES, names)).full
        score = np.asarray(space.score(theta, states, actions)).mean(axis=0)
        way = [theta + t * (full.theta - theta) for t in ((0.0, 0.5, 1.0) if family == "boltzmann" else (0.0,))]
        smallest = min(theory.smallest_eigenvalue(theory.empirical_fisher(space, t, states)) for t in way)
        empirical = (full.log_likelihood - float(np.sum(space.log_prob(theta, states, actions)))) / n
        mean = space.cumulant_gradient(space.natural(theta, states))
        expected = np.mean(
            space.log_partition(full.theta, states) - space.log_partition(theta, states)
            - np.sum((space.natural(full.theta, states) - space.natural(theta, states)) * mean, axis=1)
        )  # fmt: skip
        if family == "gaussian":  # A(η) and ∇A(η) = Σ⁻¹η are quadratic: the excess is ½ mean ‖Δη‖²/Σ
            difference = space.natural(full.theta - theta, states)
            assert expected == pytest.approx(np.mean(difference**2) / 2 / 0.5, rel=1e-6)
        shares.append(
            [
                np.linalg.norm(score) / theory.score_bound(n, d, scale, delta),
                np.linalg.norm(full.theta - theta) / theory.parameter_bound(n, d, scale, smallest, delta),
                expected / theory.likelihood_bound(n, d, scale, smallest, delta),
                empirical / theory.likelihood_bound(n, d, scale, smallest, delta),
            ]
        )
    shares = np.array(shares)
    assert (shares >= -1e-9).all()
    return (shares > 1).mean(axis=0), np.quantile(shares, 1 - delta, axis=0)


@pytest.mark.parametrize("family", ["gaussian", "boltzmann"])
def test_concentration_is_never_broken_more_often_than_promised(family):
    delta, runs = 0.2, 150
    broken, _ = concentration_runs(family, 200, delta, runs, 5)
    assert (broken <= delta + binomial_slack(delta, runs)).all()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "boltzmann"])
def test_how_loose_concentration_is(family, capsys):
    for n in (100, 1000):
        broken, shares = concentration_runs(family, n, 0.1, 1000, 7)
        assert (broken <= 0.1 + binomial_slack(0.1, 1000)).all()
        words = zip(("score", "parameter", "expected ℓ", "empirical ℓ"), shares, broken, strict=True)
        with capsys.disabled():
            text = ", ".join(f"{name} {1 / share:.3g}× ({b:.3f})" for name, share, b in words)
            print(f"\n{family}, n = {n}, δ = 0.1: bound / 0.9-quantile (share broken): {text}")


def test_the_parameter_bound_by_hand():
    """d = 1, σ = 1, λ̂ = 1: √(2/n log(2/δ))."""
    assert theory.parameter_bound(50, 1, 1.0, 1.0, 0.1) == pytest.approx(np.sqrt(2 / 50 * np.log(20)))
    assert theory.likelihood_bound(50, 1, 1.0, 1.0, 0.1) == pytest.approx(np.log(20) / 50)
    assert theory.likelihood_bound(50, 4, 1.5, 0.2, 0.1) == pytest.approx(
        4**2 * 1.5**4 / (0.2**2 * 50) * np.log(80)
    )  # as the paper writes it
    # λ of one Gaussian parameter is χ²_1: the bound on ℓ̂(θ*) − ℓ̂(θ̂) holds, and by how much is known exactly.
    exact = stats.chi2.sf(2 * 50 * theory.likelihood_bound(50, 1, 1.0, 1.0, 0.1), 1)
    assert exact == pytest.approx(stats.chi2.sf(2 * np.log(20), 1)) and exact < 0.1


def test_the_deviation_of_two_likelihoods():
    """Given the states the deviation is −(θ − θ')ᵀ mean t̄; for the Gaussian it is normal, and its tail known exactly."""
    rng = np.random.default_rng(8)
    space = GaussianLinear(FEATURES, covariance=0.5, intercept=False)
    states, theta, other = rng.uniform(-1, 1, size=(40, 3)), rng.normal(size=3), rng.normal(size=3)
    scale = theory.subgaussian_scale(space, theory.plug_in_feature_bound(space, states))
    fisher, distance = theory.empirical_fisher(space, theta, states), float(np.linalg.norm(theta - other))
    deviation = np.sqrt((theta - other) @ fisher @ (theta - other) / 40)
    seen = np.array(
        [
            np.asarray(space.score(theta, states, space.sample(rng, theta, states))).mean(axis=0) @ (other - theta)
            for _ in range(2000)
        ]
    )
    assert seen.std() == pytest.approx(deviation, rel=0.1)
    for epsilon in (0.05, 0.2, 0.5):
        bound = theory.deviation_probability(epsilon, 40, scale, distance)
        assert stats.norm.sf(epsilon / deviation) <= bound
        assert (seen > epsilon).mean() <= bound + binomial_slack(0.5, 2000)


# -- enough pairs for the smallest eigenvalue ---------------------------------------------------------------------


def test_enough_pairs_for_information_is_the_coupon_collectors_number():
    """One-hot states, each as likely: λ̂_min > 0 means that every state was seen, P(not) ≤ q(1 − 1/q)^n ≤ δ."""
    q, delta = 8, 0.2
    n = theory.pairs_for_information_explicit(q, 1.0, 1 / q, delta, share=0.0)
    assert n == pytest.approx(q * np.log(q / delta))
    assert q * (1 - 1 / q) ** n <= delta


def test_the_smallest_eigenvalue_keeps_the_share_that_theorem_4_2_needs():
    rng, q, delta, runs = np.random.default_rng(9), 8, 0.2, 1000
    n = int(np.ceil(theory.pairs_for_information_explicit(q, 1.0, 1 / q, delta)))
    counts = rng.multinomial(n, np.full(q, 1 / q), size=runs)
    broken = (counts.min(axis=1) / n < 1 / q / (2 * np.sqrt(2))).mean()
    assert broken <= delta + binomial_slack(delta, runs)


def test_the_papers_number_of_pairs_by_hand():
    assert theory.pairs_for_information(3, 2.0, 0.5, 0.1, constant=1.5) == pytest.approx(
        9 * 16 * 1.5 * np.log(20) / 0.25
    )


# -- α, β and δ-correctness ---------------------------------------------------------------------------------------


def orthogonal(gaps, num_uncontrolled):
    """Features ±1, orthogonal, variance 1, no constant: σ² = d, F = I, and 2(ℓ̂(θ̂_i) − ℓ̂(θ̂)) = θ̂_i², θ̂ ~ N(θ*, 1/n)."""
    d = len(gaps) + num_uncontrolled
    return theory.Setting(d, num_uncontrolled, tuple(gaps), np.sqrt(d), 1.0)


@pytest.mark.parametrize("gaps,num_uncontrolled", [((0.5,), 1), ((0.5, 1.0), 1), ((2.0,), 2), ((0.3,), 0)])
@pytest.mark.parametrize("delta", [0.5, 0.1])
def test_rule_2_is_as_correct_as_proven(gaps, num_uncontrolled, delta):
    """The exact error of Rule 2 at the n and c(1) of Theorem 4.2: a product of normal probabilities."""
    setting = orthogonal(gaps, num_uncontrolled)
    n = theory.pairs_for_correctness(delta, setting)
    critical, bound = theory.best_critical_value(n, setting)
    assert bound == pytest.approx(delta, rel=1e-3)
    means = np.sqrt(np.concatenate([2 * np.array(gaps), np.zeros(num_uncontrolled)]))
    selected = stats.norm.sf((np.sqrt(critical) - means) * np.sqrt(n)) + stats.norm.cdf(
        (-np.sqrt(critical) - means) * np.sqrt(n)
    )
    right = np.prod(np.where(means > 0, selected, 1 - selected))
    assert 1 - right <= bound


def test_alpha_and_beta_are_below_their_bounds_by_simulation():
    """Rule 2 through real fits at n·c(1): Gaussian, d = 2, an n at which the bounds say something."""
    rng, delta, runs = np.random.default_rng(10), 0.6, 200
    setting = orthogonal((1.0,), 1)
    n = 4 * int(np.ceil(theory.pairs_for_correctness(delta, setting) / 4))
    critical, bound = theory.best_critical_value(n, setting)
    states = np.tile([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], (n // 4, 1))
    space = GaussianLinear(("a", "b"), covariance=1.0, intercept=False)
    selected = np.zeros(2)
    for _ in range(runs):
        actions = states @ [[np.sqrt(2.0)], [0.0]] + rng.normal(size=(n, 1))
        likelihood = likelihood_of(space, Sample(states, actions, ("a", "b")))
        fits = [likelihood.fit(frozenset({1})), likelihood.fit(frozenset({0}))]
        selected += [2 * (likelihood.full.log_likelihood - f.log_likelihood) > n * critical for f in fits]
    arguments = (critical, n, 2, setting.scale, 1.0)
    assert bound < 1
    assert selected[1] / runs <= theory.false_positive_bound(*arguments) + binomial_slack(0.2, runs)
    assert 1 - selected[0] / runs <= theory.false_negative_bound(*arguments, [1.0]) + binomial_slack(0.2, runs)


def test_the_bounds_as_the_paper_writes_them():
    c, n, d, scale, smallest = 0.01, 5e6, 4, 1.3, 0.4
    alpha = 2 * d * np.exp(-c * smallest**2 * n / (16 * d**2 * scale**4))
    assert theory.false_positive_bound(c, n, d, scale, smallest) == pytest.approx(alpha)
    nu = min(1, smallest / scale**2)
    terms = [np.exp(-(gap - c) * smallest * nu * n / (16 * (d - 1) ** 2 * scale**2)) for gap in (0.011, 0.012)]
    beta = (2 * d - 1) / 2 * sum(terms)
    assert theory.false_negative_bound(c, n, d, scale, smallest, [0.011, 0.012]) == pytest.approx(beta)
    setting = theory.Setting(d, 2, (0.011, 0.012), scale, smallest)
    assert theory.correctness_bound(c, n, setting) == pytest.approx(2 * alpha + 2 * beta)


def test_one_parameter_is_not_divided_by_zero():
    """d = 1: β ≤ exp{−gap·n/16} for unit features; the paper's (d − 1)² would make it zero."""
    bound = theory.false_negative_bound(0.0, 100, 1, 1.0, 1.0, [0.5])
    assert bound == pytest.approx(np.exp(-0.5 * 100 / 16))
    # λ/n = θ̂² with θ* = 1 is never below 0 by chance, and is below c = 0.2 as often as a normal says.
    exact = stats.norm.cdf((np.sqrt(0.2) - 1) * 10) - stats.norm.cdf((-np.sqrt(0.2) - 1) * 10)
    assert exact <= theory.false_negative_bound(0.2, 100, 1, 1.0, 1.0, [0.5])


def test_the_critical_value_solves_the_bound_on_alpha():
    critical = theory.critical_value(0.05, 1000, 3, 1.2, 0.7, num_tests=2)
    assert 2 * theory.false_positive_bound(critical, 1000, 3, 1.2, 0.7) == pytest.approx(0.05)


def test_the_best_critical_value_is_the_best_of_a_grid():
    setting = theory.Setting(3, 1, (0.4, 0.9), 1.2, 0.8)
    n = theory.pairs_for_correctness(0.3, setting)
    critical, bound = theory.best_critical_value(n, setting)
    grid = np.linspace(0, 0.4, 20_001)
    values = [theory.correctness_bound(c, n, setting) for c in grid]
    assert bound <= min(values) + 1e-12
    assert critical == pytest.approx(grid[int(np.argmin(values))], abs=1e-4)
    assert theory.best_critical_value(n / 2, setting)[1] > 0.3


def test_proven_power_is_below_the_exact_one():
    setting = orthogonal((0.5,), 1)
    for n in np.geomspace(10, 1e6, 30):
        proven = theory.power_bound(0.1, n, 0.5, setting, 1)
        critical = theory.critical_value(0.1, n, 2, setting.scale, 1.0, 1)
        exact = stats.ncx2.sf(n * critical, 1, n)  # ncp = n·θ*² = n·2·gap
        assert 0 <= proven <= exact + 1e-12
    assert proven > 0.9


@pytest.mark.parametrize(
    "call,sentence",
    [
        (
            lambda: theory.parameter_bound(10, 2, 1.0, 0.0, 0.1),
            "smallest eigenvalue must be positive .* not identifiable",
        ),
        (lambda: theory.parameter_bound(10, 2, 1.0, 1.0, 1.5), "significance must lie between 0 and 1"),
        (lambda: theory.score_bound(0, 2, 1.0, 0.1), "num rows must be positive"),
        (lambda: theory.gaussian_scale(1.0, np.zeros((2, 2))), "positive definite"),
        (lambda: theory.false_negative_bound(0.5, 10, 2, 1.0, 1.0, [0.4]), "every gap must reach the critical value"),
        (lambda: theory.Setting(2, 2, (0.1,), 1.0, 1.0), "do not fit into 2 parameters"),
        (lambda: theory.Setting(2, 1, (0.0,), 1.0, 1.0), "gap must be positive"),
        (lambda: theory.pairs_for_information_explicit(2, 1.0, 1.0, 0.1, 1.0), "must lie between 0 and 1"),
    ],
)
def test_assumptions_are_checked(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()


# -- on data ------------------------------------------------------------------------------------------------------


def pilot(seed=0, n=300):
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, 3))
    return states, states @ [0.5, 0.3, 0.0] + rng.normal(size=n)


def test_an_assessment_is_made_of_the_formulas():
    states, actions = pilot()
    found = theory.assess(states, actions, features=FEATURES, covariance=1.0)
    given, whitened = found.bounds
    phi = np.column_stack([np.ones(len(states)), states])
    assert given.feature_bound == pytest.approx(np.linalg.norm(phi, axis=1).max())
    assert given.scale == given.feature_bound
    assert given.smallest_eigenvalue == pytest.approx(np.linalg.eigvalsh(phi.T @ phi / 300)[0])
    assert given.parameter_bound == pytest.approx(
        theory.parameter_bound(300, 4, given.scale, given.smallest_eigenvalue, 0.05)
    )
    assert given.typical_error == pytest.approx(np.sqrt(np.trace(np.linalg.inv(phi.T @ phi))))
    # Leverage: the longest whitened features, squared, are n times the largest diagonal entry of the hat matrix.
    hat = np.diag(phi @ np.linalg.solve(phi.T @ phi, phi.T))
    assert whitened.scale**2 == pytest.approx(300 * hat.max())
    assert list(found.gaps) == ["a", "b"]
    tests = {g.group: g.statistic for g in plan(states, actions, features=FEATURES, covariance=1.0).groups}
    assert found.gaps["a"] == pytest.approx(tests["a"] / 600)
    assert found.typical_excess == pytest.approx(stats.chi2.isf(0.05, 4) / 600)
    # At the n where the parameter bound meets ‖θ̂‖ it does.
    assert theory.parameter_bound(
        given.pairs_for_parameters, 4, given.scale, given.smallest_eigenvalue, 0.05
    ) == pytest.approx(given.parameter_size)
    assert "loose by a factor" in found.sentence and str(found).startswith(found.sentence)


@pytest.mark.parametrize("discrete", [False, True])
def test_whitened_bounds_do_not_know_units(discrete):
    states, actions = pilot()
    actions = (actions > 0).astype(int) if discrete else actions
    one = theory.assess(states, actions).bounds
    other = theory.assess(states @ np.diag([100.0, 1.0, 0.01]) + 3.0, actions).bounds
    assert one[0].scale != pytest.approx(other[0].scale)
    for field in ("scale", "smallest_eigenvalue", "parameter_bound", "critical_value", "pairs_for_correctness"):
        assert getattr(one[1], field) == pytest.approx(getattr(other[1], field), rel=1e-4)


def test_where_the_assumptions_fail_no_bound_is_given():
    states, actions = pilot()
    collinear = theory.assess(np.column_stack([states, states[:, 0]]), actions)
    assert [b.coordinates for b in collinear.bounds] == ["as given"]
    assert collinear.bounds[0].parameter_bound == np.inf and "no bound at any n" in collinear.sentence
    separated = theory.assess(states, (states[:, 0] > 0).astype(int))
    assert separated.bounds[0].parameter_bound == np.inf
    assert any("separated" in warning for warning in separated.warnings)
    nothing = theory.assess(states, np.random.default_rng(1).normal(size=300))
    assert nothing.gaps == {} and "no gap" in nothing.sentence


# -- Section 5 ----------------------------------------------------------------------------------------------------


def small_boltzmann():
    rng = np.random.default_rng(7)
    features = rng.normal(size=(6, 2))
    probabilities = rng.dirichlet(np.ones(6))
    return SoftmaxLinear(("a", "b"), ("x", "y", "z")), features, probabilities, rng


def test_the_population_gap_is_the_mean_divergence_summed_over_all_actions():
    space, features, probabilities, rng = small_boltzmann()
    theta, other = rng.normal(size=(2, space.num_parameters))
    by_hand = 0.0
    for state, probability in zip(features, probabilities, strict=True):
        log_p = [float(space.log_prob(theta, state, np.array(a))) for a in range(3)]
        log_q = [float(space.log_prob(other, state, np.array(a))) for a in range(3)]
        by_hand += probability * sum(np.exp(p) * (p - q) for p, q in zip(log_p, log_q, strict=True))
    assert theory.population_gap(space, theta, other, features, probabilities) == pytest.approx(by_hand, rel=1e-12)


def test_the_gap_of_a_gaussian_policy_is_half_the_squared_distance_of_means():
    rng = np.random.default_rng(8)
    space = GaussianLinear(("a", "b"), ("u",), covariance=0.25)
    features, probabilities = rng.normal(size=(5, 2)), rng.dirichlet(np.ones(5))
    theta, other = rng.normal(size=(2, 3))
    moved = (space.design(features) @ (theta - other)) ** 2
    assert theory.population_gap(space, theta, other, features, probabilities) == pytest.approx(
        probabilities @ moved / (2 * 0.25), rel=1e-12
    )


def test_theorem_5_1_holds_with_the_smallest_eigenvalue_on_the_way():
    space, features, probabilities, rng = small_boltzmann()
    for _ in range(50):
        start, gradient = rng.normal(size=(2, space.num_parameters))
        tested, step = rng.random(space.num_parameters) < 0.5, rng.uniform(0.05, 1.0)
        theta, restricted = start + step * gradient, start + step * np.where(tested, 0.0, gradient)
        on_the_way = [
            np.linalg.eigvalsh(
                theory.expected_fisher(space, theta + t * (restricted - theta), features, probabilities)
            )[0]
            for t in np.linspace(0, 1, 101)
        ]
        bound = theory.gradient_step_gap_bound(gradient, tested, step, 0.999 * min(on_the_way))
        assert bound <= theory.population_gap(space, theta, restricted, features, probabilities) + 1e-12
        assert bound == pytest.approx(0.999 * min(on_the_way) / 2 * np.sum((theta - restricted) ** 2), rel=1e-9)


def test_a_mask_that_fits_no_gradient_is_refused():
    with pytest.raises(InputError, match="True or False"):
        theory.gradient_step_gap_bound(np.ones(3), np.array([0, 1]), 0.1, 1.0)


def test_propositions_a_3_and_a_4_by_hand():
    assert theory.projection_probability(0.3, 50, 2.0, 1.5) == pytest.approx(np.exp(-0.09 * 50 / (2 * 2.25 * 4)))
    assert theory.information_deviation_probability(0.5, 1000, 3, 1.2, 2.0) == pytest.approx(
        2 * np.exp(-0.25 * 1000 / (2.0 * 9 * 1.2**4))
    )
    # δ of the tail at ε = λ_min is what `pairs_for_information` solves.
    pairs = theory.pairs_for_information(3, 1.2, 0.5, 0.05, 2.0)
    assert theory.information_deviation_probability(0.5, pairs, 3, 1.2, 2.0) == pytest.approx(0.05)


def test_proposition_a_3_is_not_broken_by_simulation():
    rng = np.random.default_rng(9)
    vectors = rng.choice([-1.0, 1.0], size=(4000, 30, 4))  # subgaussian with σ = 1 in every direction
    alpha = np.array([1.0, -2.0, 0.5, 0.0])
    seen = np.mean(vectors.mean(axis=1) @ alpha >= 0.6)
    assert 0 < seen <= theory.projection_probability(0.6, 30, 1.0, float(np.linalg.norm(alpha)))
