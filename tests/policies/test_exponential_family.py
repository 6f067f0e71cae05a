"""The linear spaces against Table 1 (its slips mended), SciPy's densities, finite differences and their own samples."""

import jax
import numpy as np
import pytest
from scipy import stats

from policyspace import GaussianLinear, InputError, SoftmaxLinear

jax.config.update("jax_enable_x64", True)

FEATURES = ("speed", "left", "right")
FULL = np.array([[0.5, 0.2], [0.2, 0.3]])
SPACES = {
    "gaussian scalar": GaussianLinear(FEATURES, covariance=0.7),
    "gaussian diagonal": GaussianLinear(FEATURES, ("gas", "wheel"), covariance=[0.5, 2.0], intercept=False),
    "gaussian full": GaussianLinear(FEATURES, ("gas", "wheel"), covariance=FULL),
    "boltzmann two": SoftmaxLinear(FEATURES, ("go", "stay")),
    "boltzmann four": SoftmaxLinear(FEATURES, ("n", "e", "s", "w")),
    "boltzmann bare": SoftmaxLinear(FEATURES, ("n", "e", "s"), intercept=False),
}
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
boltzmann = pytest.mark.parametrize("space", [s for n, s in SPACES.items() if "boltz" in n])
gaussian = pytest.mark.parametrize("space", [s for n, s in SPACES.items() if "gauss" in n])


def case(space, n=6, seed=0):
    rng = np.random.default_rng(seed)
    theta, features = rng.normal(size=space.num_parameters), rng.normal(size=(n, len(FEATURES)))
    return theta, features, space.sample(rng, theta, features)


def with_constant(space, features):
    return np.column_stack([np.ones(len(features)), features]) if space.intercept else features


def slope(function, theta, step=1e-6):
    """Central differences along every coordinate, stacked last."""
    basis = step * np.eye(len(theta))
    return np.stack([(function(theta + e) - function(theta - e)) / (2 * step) for e in basis], axis=-1)


@gaussian
def test_gaussian_density_is_scipys(space):
    theta, features, actions = case(space)
    means = with_constant(space, features) @ theta.reshape(len(space.row_names), -1).T
    expected = [stats.multivariate_normal(m, space.covariance).logpdf(a) for m, a in zip(means, actions, strict=True)]
    np.testing.assert_allclose(space.log_prob(theta, features, actions), expected, rtol=1e-12)


@boltzmann
def test_boltzmann_probabilities_are_table_1s(space):
    theta, features, _ = case(space)
    odds = np.exp(with_constant(space, features) @ theta.reshape(len(space.row_names), -1).T)
    total = 1 + odds.sum(axis=1)  # the reference's weights are zero
    expected = np.column_stack([odds / total[:, None], 1 / total])
    found = [space.log_prob(theta, features, np.full(len(features), a)) for a in range(len(space.action_names))]
    np.testing.assert_allclose(np.exp(found).T, expected, rtol=1e-12)
    np.testing.assert_allclose(space.log_partition(theta, features), np.log(total), rtol=1e-12)


@boltzmann
def test_sharp_boltzmann_policies_neither_overflow_nor_lose_the_sum(space):
    theta, features, _ = case(space)
    codes = range(len(space.action_names))
    logs = np.array([space.log_prob(3e3 * theta, features, np.full(len(features), a)) for a in codes])
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs).sum(axis=0), 1.0, rtol=1e-9)


def test_the_statistic_is_table_1s_kronecker_product():
    space, phi = SPACES["gaussian full"], np.array([1.0, 2.0, -1.0, 3.0])
    a = np.array([0.4, -1.5])
    expected = np.concatenate([u * phi for u in np.linalg.solve(FULL, a)])
    np.testing.assert_allclose(space.sufficient_statistic(phi[1:], a), expected, rtol=1e-12)
    choice = SPACES["boltzmann four"]
    np.testing.assert_array_equal(
        choice.sufficient_statistic(np.tile(phi[1:], (4, 1)), np.arange(4)), np.kron(np.eye(4)[:, :3], phi)
    )


@every_space
def test_log_prob_is_the_exponential_family(space):
    theta, features, actions = case(space)
    form = (
        space.log_base(actions)
        + space.sufficient_statistic(features, actions) @ theta
        - space.log_partition(theta, features)
    )
    np.testing.assert_allclose(space.log_prob(theta, features, actions), form, rtol=1e-10, atol=1e-12)


@every_space
def test_score_is_the_slope_of_the_density(space):
    theta, features, actions = case(space)
    expected = slope(lambda t: space.log_prob(t, features, actions), theta)
    np.testing.assert_allclose(space.score(theta, features, actions), expected, rtol=1e-6, atol=1e-7)


@every_space
def test_fisher_is_the_curvature_of_the_partition_and_minus_the_slope_of_the_score(space):
    theta, features, actions = case(space)
    gradients = slope(lambda t: space.score(t, features, actions), theta)
    np.testing.assert_allclose(space.fisher(theta, features), -gradients.mean(axis=0), rtol=1e-5, atol=1e-7)
    curvature = slope(lambda t: slope(lambda u: space.log_partition(u, features), t, 1e-4), theta, 1e-4).mean(axis=0)
    np.testing.assert_allclose(space.fisher(theta, features), curvature, rtol=1e-4, atol=1e-5)


@every_space
def test_fisher_takes_weights_as_repeated_rows(space):
    theta, features, _ = case(space)
    counts = np.array([1, 3, 0, 2, 1, 5])
    repeated = space.fisher(theta, np.repeat(features, counts, axis=0))
    np.testing.assert_allclose(space.fisher(theta, features, counts.astype(float)), repeated, rtol=1e-12, atol=1e-14)


@every_space
def test_the_root_of_the_information_squares_to_the_fisher_information(space):
    theta, features, actions = case(space)
    root = space.information_root(theta, features, actions)
    assert root.shape == (len(features), len(space.row_names), space.num_parameters)
    squared = np.einsum("nkd,nke->de", root, root) / len(features)
    np.testing.assert_allclose(squared, space.fisher(theta, features), rtol=1e-9, atol=1e-10)


@boltzmann
def test_fewer_features_and_actions_make_a_smaller_boltzmann_policy(space):
    smaller = space.smaller(FEATURES[1:], space.action_names[-2:], ["left"])
    assert smaller.column_names == space.column_names[: space.intercept] + FEATURES[1:]
    assert smaller.action_names == space.action_names[-2:]
    assert [smaller.groups[i].name for i in smaller.tested] == ["right"]


@boltzmann
def test_the_mean_boltzmann_score_is_zero_and_its_covariance_is_the_fisher_information(space):
    theta, features, _ = case(space)
    codes = range(len(space.action_names))
    scores = np.array([space.score(theta, features, np.full(len(features), a)) for a in codes])
    chance = np.exp([space.log_prob(theta, features, np.full(len(features), a)) for a in codes])
    np.testing.assert_allclose(np.einsum("an,and->nd", chance, scores), 0.0, atol=1e-13)
    covariance = np.einsum("an,and,ane->de", chance, scores, scores) / len(features)
    np.testing.assert_allclose(space.fisher(theta, features), covariance, rtol=1e-10, atol=1e-13)


@gaussian
def test_the_mean_gaussian_score_is_zero_by_quadrature(space):
    # Gauss–Hermite is exact here: the score is linear in the action, its square quadratic.
    theta, features, _ = case(space, n=1)
    nodes, shares = np.polynomial.hermite_e.hermegauss(5)
    k = len(space.row_names)
    grid = np.stack(np.meshgrid(*[nodes] * k), axis=-1).reshape(-1, k)
    chance = np.prod(np.stack(np.meshgrid(*[shares] * k), axis=-1).reshape(-1, k), axis=1) / (2 * np.pi) ** (k / 2)
    mean = space.natural(theta, features)
    actions = mean + grid @ np.linalg.cholesky(space.covariance).T
    scores = space.score(theta, np.repeat(features, len(grid), axis=0), actions)
    np.testing.assert_allclose(chance @ scores, 0.0, atol=1e-11)
    np.testing.assert_allclose((scores.T * chance) @ scores, space.fisher(theta, features), rtol=1e-10, atol=1e-11)


@every_space
def test_numpy_and_jax_agree(space):
    theta, features, actions = case(space)
    jtheta, jfeatures, jactions = (jax.numpy.asarray(v) for v in (theta, features, actions))
    for name, here, there in [
        ("log_prob", (theta, features, actions), (jtheta, jfeatures, jactions)),
        ("score", (theta, features, actions), (jtheta, jfeatures, jactions)),
        ("fisher", (theta, features), (jtheta, jfeatures)),
        ("log_partition", (theta, features), (jtheta, jfeatures)),
        ("sufficient_statistic", (features, actions), (jfeatures, jactions)),
    ]:
        found = jax.jit(getattr(space, name))(*there)  # NumPy's functions would refuse what is traced
        assert isinstance(found, jax.Array), name
        np.testing.assert_allclose(found, getattr(space, name)(*here), rtol=1e-12, atol=1e-13, err_msg=name)
    gradient = jax.jit(jax.grad(lambda t: space.log_prob(t, jfeatures, jactions).sum()))(jtheta)
    np.testing.assert_allclose(gradient, space.score(theta, features, actions).sum(axis=0), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "make_key", [lambda: np.random.default_rng(5), lambda: jax.random.key(5)], ids=["numpy", "jax"]
)
@every_space
def test_samples_follow_the_density(space, make_key):
    theta, features, _ = case(space, n=1)
    count = 40_000
    many = np.repeat(features, count, axis=0)
    key = make_key()
    sample = space.sample if isinstance(key, np.random.Generator) else jax.jit(space.sample)
    drawn = np.asarray(sample(key, theta, many))
    if isinstance(space, SoftmaxLinear):
        codes = np.arange(len(space.action_names))
        expected = np.exp(space.log_prob(theta, np.repeat(features, len(codes), axis=0), codes)) * count
        assert stats.chisquare(np.bincount(drawn, minlength=len(codes)), expected).pvalue > 1e-3
        return
    white = (drawn - space.natural(theta, features)) @ np.linalg.inv(np.linalg.cholesky(space.covariance)).T
    for column in white.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
    np.testing.assert_allclose(np.cov(white.T), np.eye(len(space.row_names)).squeeze(), atol=6 * np.sqrt(2 / count))


def test_an_estimated_covariance_has_no_density_to_evaluate():
    space = GaussianLinear(FEATURES)
    theta = np.zeros(space.num_parameters)
    features, actions = np.zeros((2, 3)), np.zeros((2, 1))
    for call in (
        lambda: space.log_prob(theta, features, actions),
        lambda: space.score(theta, features, actions),
        lambda: space.fisher(theta, features),
        lambda: space.sample(np.random.default_rng(0), theta, features),
    ):
        with pytest.raises(InputError, match="give a covariance"):
            call()


@pytest.mark.parametrize(
    ("covariance", "found"),
    [
        (-1.0, "positive definite"),
        (0.0, "positive definite"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive definite"),
        ([[1.0, 0.5], [0.0, 1.0]], "symmetric"),
        ([1.0, 2.0, 3.0], "shape"),
        (np.nan, "finite"),
        ("estimated", "estimate"),
    ],
)
def test_a_bad_covariance_is_said_in_words(covariance, found):
    with pytest.raises(InputError, match=found):
        GaussianLinear(FEATURES, ("gas", "wheel"), covariance=covariance)


def test_one_action_is_no_choice():
    with pytest.raises(InputError, match="at least two actions"):
        SoftmaxLinear(FEATURES, ("stay",))
