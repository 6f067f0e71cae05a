"""Networks: densities against SciPy, scores against automatic differentiation, sampling against the density."""

import jax
import numpy as np
import pytest
from scipy import stats

from policyspace import GaussianNetwork, InputError, SoftmaxNetwork
from policyspace.families import NETWORK

jax.config.update("jax_enable_x64", True)

INPUTS = ("speed", "left", "right")
GAUSSIAN = GaussianNetwork(INPUTS, ("gas", "wheel"), hidden=(4,), covariance=[[0.2, 0.05], [0.05, 0.1]])
DEEP = GaussianNetwork(INPUTS, ("gas", "wheel"), hidden=(4, 3), covariance=[0.2, 0.3], activation="relu")
BOLTZMANN = SoftmaxNetwork(INPUTS, ("a", "b", "c"), hidden=(5,))
SPACES = (GAUSSIAN, DEEP, BOLTZMANN, SoftmaxNetwork(INPUTS, ("a", "b"), hidden=()))


def case(space, n=7, seed=3):
    rng = np.random.default_rng(seed)
    theta, features = rng.normal(size=space.num_parameters), rng.normal(size=(n, len(INPUTS)))
    return theta, features, space.sample(rng, theta, features)


def by_hand(space, theta, x):
    """One sample through the network, with loops."""
    position, value = 0, [float(v) for v in x]
    for depth, width in enumerate(space.sizes[1:]):
        weights = theta[position : position + width * len(value)]
        position += width * len(value)
        bias = theta[position : position + width]
        position += width
        z = [sum(weights[o * len(value) + i] * value[i] for i in range(len(value))) + bias[o] for o in range(width)]
        last = depth == len(space.sizes) - 2
        value = z if last else [np.tanh(v) if space.activation == "tanh" else max(v, 0.0) for v in z]
    assert position == space.num_parameters
    return value


@pytest.mark.parametrize("space", SPACES)
def test_output_is_the_network_computed_by_hand(space):
    theta, features, _ = case(space)
    expected = [by_hand(space, theta, x) for x in features]
    np.testing.assert_allclose(space.output(theta, features), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("space", [GAUSSIAN, DEEP])
def test_gaussian_density_is_scipys(space):
    theta, features, actions = case(space)
    expected = [
        stats.multivariate_normal(by_hand(space, theta, x), space.covariance).logpdf(a)
        for x, a in zip(features, actions, strict=True)
    ]
    np.testing.assert_allclose(space.log_prob(theta, features, actions), expected, rtol=1e-12)


def test_boltzmann_probabilities_sum_to_one_and_survive_large_logits():
    theta, features, _ = case(BOLTZMANN)
    for scale in (1.0, 1e4):
        logs = np.stack([BOLTZMANN.log_prob(scale * theta, features, np.full(7, a)) for a in range(3)])
        np.testing.assert_allclose(np.exp(logs).sum(axis=0), 1.0, rtol=1e-12)
        assert np.isfinite(logs).all()
    logits = BOLTZMANN.logits(theta, features)
    assert (logits[:, -1] == 0).all()
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(BOLTZMANN.log_prob(theta, features, np.full(7, 1)), expected[:, 1], rtol=1e-12)


@pytest.mark.parametrize("space", SPACES)
def test_score_is_the_automatic_derivative_of_the_log_density(space):
    theta, features, actions = case(space)
    expected = jax.jit(jax.vmap(jax.grad(space.log_prob), in_axes=(None, 0, 0)))(theta, features, actions)
    np.testing.assert_allclose(space.score(theta, features, actions), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("space", SPACES)
def test_the_root_of_the_information_is_the_score_of_what_was_done(space):
    """Its square has the Fisher information as its mean; networks have no smaller spaces of their kind."""
    theta, features, actions = case(space)
    episodes = [jax.numpy.asarray(v)[None] for v in (features, actions)]
    root = jax.jit(space.information_root)(theta, *episodes)
    np.testing.assert_allclose(root[0, :, 0], space.score(theta, features, actions), rtol=1e-9, atol=1e-11)
    assert space.smaller(INPUTS[:1], space.action_names, ()) is None and space.multimodal and not space.linear


@pytest.mark.parametrize("space", SPACES)
def test_jax_and_numpy_agree_also_under_jit(space):
    theta, features, actions = case(space)
    given = [jax.numpy.asarray(v) for v in (theta, features, actions)]
    np.testing.assert_allclose(jax.jit(space.log_prob)(*given), space.log_prob(theta, features, actions), rtol=1e-12)
    np.testing.assert_allclose(
        jax.jit(space.score)(*given), space.score(theta, features, actions), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_mean_score_of_samples_is_zero(space, library):
    """E[∇log π] = 0 within five standard errors, in every component."""
    theta, features, _ = case(space, n=4)
    many = np.repeat(features, 10_000, axis=0)
    key, compiled = (np.random.default_rng(8), lambda f: f) if library == "numpy" else (jax.random.key(8), jax.jit)
    scores = np.asarray(compiled(space.score)(theta, many, compiled(space.sample)(key, theta, many)))
    bound = 5 * scores.std(axis=0) / np.sqrt(len(scores))
    assert (np.abs(scores.mean(axis=0)) <= bound + 1e-12).all()


def test_samples_have_the_covariance():
    theta, features, _ = case(GAUSSIAN, n=1)
    many = np.repeat(features, 100_000, axis=0)
    actions = GAUSSIAN.sample(np.random.default_rng(2), theta, many)
    np.testing.assert_allclose(np.cov(actions.T), GAUSSIAN.covariance, atol=0.004)


def test_an_input_is_eight_degrees_of_freedom_of_the_car():
    car = GaussianNetwork([f"s{i}" for i in range(5)], ("gas", "wheel"), hidden=(8,))
    assert car.num_parameters == 5 * 8 + 8 + 8 * 2 + 2
    assert [len(group.indices) for group in car.groups] == [8] * 5 + [26]
    assert car.tested == (0, 1, 2, 3, 4) and car.groups[-1].name == NETWORK


@pytest.mark.parametrize("space", SPACES)
def test_an_input_outside_the_support_does_not_matter(space):
    theta, features, _ = case(space)
    theta = np.where(space.free_mask(frozenset({0, 2})), theta, space.fixed)
    other = features.copy()
    other[:, 1] += 100.0
    np.testing.assert_array_equal(space.output(theta, features), space.output(theta, other))
    moved = features + np.array([1.0, 0.0, 0.0])
    assert not np.allclose(space.output(theta, features), space.output(theta, moved))


@pytest.mark.parametrize(
    "groups", ["input", "feature", "parameter", "hidden", "output", {"sensors": ["left", "right"]}]
)
def test_groups_partition_the_parameters(groups):
    space = GaussianNetwork(INPUTS, ("gas", "wheel"), hidden=(4, 3), groups=groups)
    assert sorted(i for group in space.groups for i in group.indices) == list(range(space.num_parameters))
    assert NETWORK not in space.named(space.full_support)
    assert space.named(frozenset()) == []


def test_hidden_and_output_groups_remove_units_and_outputs():
    hidden = GaussianNetwork(INPUTS, hidden=(4,), groups="hidden")
    theta, features, _ = case(hidden)
    (w1, b1), (w2, b2) = hidden.layers(np.where(hidden.free_mask(frozenset({0, 2, 3})), theta, 0.0))
    kept = [0, 2, 3]
    expected = np.tanh(features @ w1[kept].T + b1[kept]) @ w2[:, kept].T + b2
    np.testing.assert_allclose(
        hidden.output(np.where(hidden.free_mask(frozenset(kept)), theta, 0.0), features), expected, rtol=1e-12
    )
    assert hidden.named(frozenset({1})) == ["unit_1"]
    output = GaussianNetwork(INPUTS, ("gas", "wheel"), hidden=(4,), groups="output")
    theta, features, _ = case(output)
    still = output.output(np.where(output.free_mask(frozenset({0})), theta, 0.0), features)
    assert np.ptp(still[:, 1]) == 0 and np.ptp(still[:, 0]) > 0


def test_starting_weights_are_small_and_reproducible():
    for key in (jax.random.key(1), np.random.default_rng(1)):
        theta = np.asarray(GAUSSIAN.init(key, scale=0.02))
        assert theta.dtype == np.float64 and (np.abs(theta) < 0.02).all() and theta.std() > 0.005
    np.testing.assert_array_equal(GAUSSIAN.init(jax.random.key(4)), GAUSSIAN.init(jax.random.key(4)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianNetwork(INPUTS, hidden=(0,)), "one unit or more"),
        (lambda: GaussianNetwork(INPUTS, activation="sigmoid"), "'tanh' or 'relu'"),
        (lambda: GaussianNetwork(INPUTS, groups="inputs"), "groups must be"),
        (lambda: GaussianNetwork(INPUTS, groups="hidden", assume=["unit_9"]), "unit_9"),
        (lambda: GaussianNetwork(INPUTS, assume=["sped"]), "did you mean 'speed'"),
        (lambda: GaussianNetwork(("network", "x")), "rename it"),
        (lambda: GaussianNetwork(INPUTS, covariance=-1.0), "positive definite"),
        (lambda: SoftmaxNetwork(INPUTS, ("only",)), "at least two actions"),
    ],
)
def test_bad_networks_are_refused_in_a_sentence(make, message):
    with pytest.raises(InputError, match=message):
        make()
