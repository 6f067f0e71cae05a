"""Ordered answers and overdispersed counts: R's polr and glm.nb, statsmodels, limits, and the level of the default test."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, nbinom
from statsmodels.discrete.discrete_model import NegativeBinomial
from statsmodels.miscmodels.ordinal_model import OrderedModel

import policyspace as ps

NAMES = ("a", "b", "c")


def states_and_noise():
    i = np.arange(160)
    states = np.column_stack([(37 * i % 101) / 50 - 1, (53 * i % 97) / 48 - 1, (29 * i % 89) / 44 - 1])
    return states, ((61 * i + 17) % 127 + 0.5) / 127


def counted():
    states, u = states_and_noise()
    return states, np.floor(np.exp(0.7 + states @ [0.6, -0.5, 0.0]) * -np.log(1 - u) * 1.3)


def answered():
    states, u = states_and_noise()
    latent = states @ [1.0, -0.7, 0.0] + np.log(u / (1 - u))
    return states, 1 + (latent > -1).astype(int) + (latent > 0.5) + (latent > 1.5)


def ratios(made):
    """λ of each feature, and of all together."""
    everything = made.space.full_support
    supports = [*(everything - {g} for g in made.space.tested), frozenset()]
    return [2 * (made.full.log_likelihood - fit.log_likelihood) for fit in made.fit_many(supports)]


def overdispersed():
    states, counts = counted()
    data = ps.Sample.from_arrays(states, counts, NAMES, counts=True)
    return ps.likelihood_of(ps.NegativeBinomialLinear(NAMES), data)


def ordered():
    states, answers = answered()
    data = ps.Sample.from_arrays(states, answers, NAMES)
    return ps.likelihood_of(ps.OrderedLinear(NAMES, data.action_names), data)


def test_overdispersed_counts_are_fitted_as_by_glm_nb():
    """R 4: MASS::glm.nb(n ~ a + b + c, control = glm.control(epsilon = 1e-14, maxit = 200)), and without each term."""
    made = overdispersed()
    theta, _ = made.refined_estimate()
    assert made.full.log_likelihood == pytest.approx(-307.369063323734, abs=1e-8)
    coefficients = [0.678382055240734, 0.690228346307177, -0.618397200133229, 0.195013221304372]
    assert theta[:4] == pytest.approx(coefficients, abs=2e-6)
    assert np.exp(-theta[4]) == pytest.approx(0.86000922332501, abs=1e-6)
    assert ratios(made) == pytest.approx([14.7172702256, 11.3112265672, 1.2112794838, 22.0249460677], abs=1e-6)


def test_ordered_answers_are_fitted_as_by_polr():
    """R 4: MASS::polr(l ~ a + b + c, Hess = TRUE, control = list(reltol = 1e-16, maxit = 2000)), and without each term."""
    made = ordered()
    theta, _ = made.refined_estimate()
    assert made.full.log_likelihood == pytest.approx(-207.794206552256, abs=1e-8)
    assert theta[1:4] == pytest.approx([0.929821844405546, -0.650240938950116, 0.168081766485970], abs=1e-6)
    zeta = [-0.930467398243714, 0.535597131422051, 1.557541948702084]
    assert made.space.thresholds(theta) == pytest.approx(zeta, abs=1e-6)
    assert ratios(made) == pytest.approx([13.1761032518, 6.69404663487, 0.46724228801, 18.8066466075], abs=1e-6)


def test_tables_of_coefficients_have_the_errors_of_the_joint_fit():
    states, answers = answered()
    table = ps.identify(states, answers, features=NAMES, policy="ordered", test="wilks").coefficients()
    errors = [row.standard_error for row in table.rows]
    assert errors[1:4] == pytest.approx([0.260408308019194, 0.253473814051185, 0.246081633071493], rel=1e-4)
    assert errors[0] == pytest.approx(0.180336847714262, rel=1e-4)  # of polr's first threshold
    assert table.fit.aic == pytest.approx(427.588413104513, abs=1e-6) and "odds ratio" in str(table)
    peer = OrderedModel(answers, states, distr="logit").fit(method="bfgs", disp=0, gtol=1e-9, maxiter=500)
    assert table.fit.log_likelihood == pytest.approx(peer.llf, abs=1e-6)
    assert [row.estimate for row in table.rows[1:4]] == pytest.approx(list(peer.params[:3]), abs=1e-4)
    states, counts = counted()
    table = ps.identify(states, counts, features=NAMES, policy="negative-binomial", test="wilks").coefficients()
    design = np.column_stack([np.ones(160), states])
    other = NegativeBinomial(counts, design).fit(method="newton", disp=0, maxiter=200)
    assert [row.estimate for row in table.rows[:4]] == pytest.approx(list(other.params[:4]), abs=1e-5)
    assert [row.standard_error for row in table.rows[:4]] == pytest.approx(list(other.bse[:4]), rel=1e-3)
    assert table.fit.aic == pytest.approx(624.738126647468, abs=1e-6) and "rate ratio" in str(table)
    assert table.rows[4].parameter == "log dispersion" and "dispersion" not in str(ps.identify(
        states, counts, features=NAMES, policy="negative-binomial", test="wilks").selected)  # fmt: skip


def test_profile_intervals_end_where_the_ratio_is_critical():
    for made in (overdispersed(), ordered()):
        names, data = list(NAMES), made.rows.arrays
        for found in ps.profile_intervals(made):
            at = {found.parameter: found.lower}
            kind = type(made.space)
            space = kind(NAMES, made.space.action_names, fixed=at)
            actions = data.actions
            sample = ps.Sample(data.features, actions, NAMES, made.space.action_names, counts=actions.ndim == 2)
            limited = ps.likelihood_of(space, sample)
            fit = limited.fit(space.full_support - {1 + names.index(found.parameter)})
            assert 2 * (made.full.log_likelihood - fit.log_likelihood) == pytest.approx(3.841458820694124, abs=1e-4)


@pytest.mark.parametrize("made", [overdispersed, ordered])
def test_scores_and_information_are_derivatives(made):
    """By differences of log_prob; E[score] = 0 and E[score²] = F by sums over all actions."""
    one = made()
    space, arrays, theta = one.space, one.rows.arrays, one.full.theta
    features = arrays.features[:5]
    for i, step in enumerate(1e-6 * np.eye(len(theta))):
        both = [space.log_prob(theta + side * step, features, arrays.actions[:5]) for side in (1, -1)]
        expected = (both[0] - both[1]) / 2e-6
        assert space.score(theta, features, arrays.actions[:5])[:, i] == pytest.approx(expected, abs=1e-6)
    total = np.zeros((len(theta), len(theta)))
    possible = np.arange(2000.0)[:, None] if arrays.actions.ndim == 2 else np.arange(4)
    for row in features:
        states = np.repeat(row[None], len(possible), axis=0)
        chance, score = np.exp(space.log_prob(theta, states, possible)), space.score(theta, states, possible)
        assert chance.sum() == pytest.approx(1) and chance @ score == pytest.approx(np.zeros(len(theta)), abs=1e-9)
        total += score.T @ (score * chance[:, None]) / len(features)
    assert space.fisher(theta, features) == pytest.approx(total, rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("made", [overdispersed, ordered])
def test_jax_differentiates_the_same_density(made):
    jax.config.update("jax_enable_x64", True)
    one = made()
    theta, features, actions = one.full.theta, one.rows.arrays.features[:6], one.rows.arrays.actions[:6]
    given = [jnp.asarray(values) for values in (theta, features, actions)]
    assert np.asarray(one.space.log_prob(*given)) == pytest.approx(one.space.log_prob(theta, features, actions))
    assert np.asarray(one.space.score(*given)) == pytest.approx(one.space.score(theta, features, actions), abs=1e-9)
    drawn = np.asarray(one.space.sample(jax.random.key(0), *given[:2]))
    assert drawn.shape == actions.shape and (drawn >= 0).all()


def test_actions_are_drawn_by_their_law():
    space = ps.NegativeBinomialLinear(("x",))
    theta, rng = np.array([1.0, 0.3, np.log(0.7)]), np.random.default_rng(3)
    drawn = space.sample(rng, theta, np.ones((40_000, 1)))[:, 0]
    r, mean = 1 / 0.7, np.exp(1.3)
    share = nbinom.pmf(np.arange(6), r, r / (r + mean))
    found = np.bincount(drawn.astype(int))[:6]
    assert (np.abs(found - 40_000 * share) < 4 * np.sqrt(40_000 * share)).all()
    at = np.exp(space.log_prob(theta, np.ones((6, 1)), np.arange(6.0)[:, None]))
    assert at == pytest.approx(share, rel=1e-10)
    assert space.variance(theta, np.ones((1, 1)))[0, 0] == pytest.approx(nbinom.var(r, r / (r + mean)))
    levels = ps.OrderedLinear(("x",), ("high", "low", "medium"), ["low", "medium", "high"])
    theta = np.array([0.5, 1.0, 0.2])
    drawn = levels.sample(rng, theta, np.ones((40_000, 1)))
    share = levels.probabilities(theta, np.ones((1, 1)))[0]
    assert (np.abs(np.bincount(drawn) - 40_000 * share) < 4 * np.sqrt(40_000 * share)).all()


def test_counts_that_spread_no_more_than_poisson_ones_are_the_limit():
    """Sums of two coins spread less: the dispersion goes to 0, and log L to that of the Poisson policy."""
    rng = np.random.default_rng(5)
    states = rng.normal(size=(200, 2))
    counts = rng.binomial(4, 1 / (1 + np.exp(-0.5 * states[:, 0]))).astype(float)
    data = ps.Sample.from_arrays(states, counts, ("a", "b"), counts=True)
    limit = ps.likelihood_of(ps.PoissonLinear(("a", "b")), data)
    made = ps.likelihood_of(ps.NegativeBinomialLinear(("a", "b")), data)
    assert made.full.converged and not made.full.separated
    assert made.full.log_likelihood == pytest.approx(limit.full.log_likelihood, abs=1e-6)
    assert ratios(made) == pytest.approx(ratios(limit), abs=1e-5)


def test_levels_that_do_not_overlap_have_an_infinite_weight():
    rng = np.random.default_rng(2)
    states = rng.normal(size=(120, 2))
    effort = np.digitize(states[:, 0], [-0.5, 0.7])
    answer = ps.identify(states, effort, features=["x", "y"], policy="ordered", test="wilks")
    assert answer.fit.separated and "diverging: x" in " ".join(answer.warnings)
    assert answer.fit.log_likelihood == pytest.approx(0, abs=1e-4) and answer.selected == ("x",)
    counts = np.where(states[:, 1] > 1, 0, rng.negative_binomial(1.5, 0.3, 120)).astype(float)
    asleep = np.column_stack([states[:, 1] > 1, states[:, 0]]).astype(float)
    found = ps.identify(asleep, counts, features=["asleep", "x"], policy="negative-binomial", test="wilks")
    assert found.fit.separated and "diverging: asleep" in " ".join(found.warnings)


def test_two_levels_are_a_logit():
    states, answers = answered()
    two = (answers > 2).astype(int)
    found = ps.identify(states, two, features=NAMES, policy="ordered", test="wilks")
    other = ps.identify(states, two, features=NAMES, policy="boltzmann", test="wilks")
    assert [t.statistic for t in found.groups] == pytest.approx([t.statistic for t in other.groups], abs=1e-7)


def test_the_order_of_levels_is_said_or_that_of_numbers():
    states, answers = answered()
    words = np.array(["never", "rarely", "often", "always"])[answers - 1]
    order = ["never", "rarely", "often", "always"]
    with pytest.raises(ps.InputError, match=r"--levels always,never,often,rarely"):
        ps.identify(states, words, policy="ordered")
    with pytest.raises(ps.InputError, match="the levels must be all actions"):
        ps.identify(states, words, policy="ordered", levels=order[:3])
    with pytest.raises(ps.InputError, match="levels belong to the policy 'ordered'"):
        ps.identify(states, words, policy="boltzmann", levels=order)
    said = ps.identify(states, words, policy="ordered", levels=order, test="wilks")
    numbers = ps.identify(states, 9 + answers, policy="ordered", test="wilks")  # 10 stands after 9
    assert said.fit.log_likelihood == pytest.approx(-207.794206552256, abs=1e-7)
    assert numbers.fit.log_likelihood == pytest.approx(-207.794206552256, abs=1e-7)


def test_plans_and_formulas_speak_of_both(tmp_path):
    states, counts = counted()
    _, answers = answered()
    rows = np.column_stack([states, counts, answers])
    lines = ["a,b,c,n,level", *(f"{a},{b},{c},{n:.0f},{k:.0f}" for a, b, c, n, k in rows)]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    found = ps.identify(tmp_path / "log.csv", policy="negative-binomial", formula="n ~ a + b + c", test="wilks")
    assert found.fit.log_likelihood == pytest.approx(-307.369063323734, abs=1e-6)
    found = ps.identify(tmp_path / "log.csv", policy="ordered", formula="level ~ a + b + c", test="wilks")
    assert found.fit.log_likelihood == pytest.approx(-207.794206552256, abs=1e-6)
    assert "a" in str(ps.plan(states, answers, features=NAMES, policy="ordered"))
    assert "a" in str(ps.plan(states, counts, features=NAMES, policy="negative-binomial"))


def test_overdispersion_is_said_with_a_policy_that_fits():
    rng = np.random.default_rng(4)
    states = rng.normal(size=(800, 2))
    counts = rng.negative_binomial(1.0, 1 / (1 + np.exp(0.5 + 0.3 * states[:, 0]))).astype(float)
    answer = ps.identify(states, counts, policy="poisson", test="wilks")
    noise = next(a for a in answer.assumptions if a.name == "noise")
    assert noise.status == "violated" and "--policy negative-binomial" in noise.message
    assert answer.guarantee is None and "--policy negative-binomial" in answer.why_no_guarantee
    fitting = ps.identify(states, counts, policy="negative-binomial", test="wilks")
    assert all(one.status != "violated" for one in fitting.assumptions) and fitting.guarantee is not None


@pytest.mark.parametrize("policy", ["ordered", "negative-binomial"])
def test_the_default_test_keeps_its_level(policy):
    """An idle feature beside one that is used; more false names than the bound have a chance below 0.1 %."""
    runs, false = 60, 0
    for seed in range(runs):
        rng = np.random.default_rng([11, seed])
        states = rng.normal(size=(300, 2))
        if policy == "ordered":
            actions = np.digitize(states[:, 0] + rng.logistic(size=300), [-1.0, 0.0, 1.5])
        else:
            actions = rng.poisson(np.exp(0.5 + 0.5 * states[:, 0]) * rng.gamma(1.0, 1.0, 300)).astype(float)
        false += "idle" in ps.identify(states, actions, features=["used", "idle"], policy=policy).selected
    assert false <= binom.ppf(0.999, runs, 0.05)
