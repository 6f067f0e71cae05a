"""The paper's Adam: its gradients against differences, its end against closed forms, the same seed twice."""

import numpy as np
import pytest
from policyspace_paper.printed import adam_fits, ascend, boltzmann_likelihood, network_likelihood

from policyspace import GaussianLinear, GaussianNetwork, Sample, SoftmaxLinear, likelihood_of

NAMES = ("a", "b", "c")


def made(seed, size=300):
    """States, and the actions of a linear Gaussian and of a Boltzmann agent that see the first two features."""
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 3, size=(size, 3)) - 1.0
    pushes = features @ np.array([[0.5, 0.0], [-0.3, 0.4], [0.0, 0.0]]) + 0.2 + rng.normal(size=(size, 2))
    logits = np.column_stack([features[:, 0], -features[:, 1], np.zeros(size)])
    choices = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    return features, pushes, choices


def families(seed):
    features, pushes, choices = made(seed)
    network = GaussianNetwork(NAMES, ("x", "y"), (4,), [[1.0, 0.3], [0.3, 0.5]])
    boltzmann = SoftmaxLinear(NAMES, ("l", "m", "r"))
    return {
        "network": (network, network_likelihood(network, features, pushes), features, pushes),
        "boltzmann": (boltzmann, boltzmann_likelihood(boltzmann, features, choices), features, choices),
    }


@pytest.mark.parametrize("family", ["network", "boltzmann"])
def test_values_are_those_of_the_policy_and_gradients_their_differences(family):
    space, evaluate, features, actions = families(0)[family]
    thetas = np.random.default_rng(1).normal(size=(3, space.num_parameters))
    values, slopes = evaluate(thetas)
    expected = [space.log_prob(theta, features, actions).sum() for theta in thetas]
    assert values == pytest.approx(expected, rel=1e-12)
    steps = 1e-5 * np.eye(space.num_parameters)
    differences = [(evaluate(thetas + step)[0] - evaluate(thetas - step)[0]) / 2e-5 for step in steps]
    assert pytest.approx(np.array(differences), rel=1e-5, abs=1e-4) == slopes.T


def test_rows_in_chunks_are_all_rows(monkeypatch):
    features, pushes, _ = made(2)
    space = GaussianNetwork(NAMES, ("x", "y"), (4,), 0.5)
    thetas = np.random.default_rng(0).normal(size=(2, space.num_parameters))
    whole = network_likelihood(space, features, pushes)(thetas)
    monkeypatch.setattr("policyspace_paper.printed.CHUNK", 7)
    for one, other in zip(network_likelihood(space, features, pushes)(thetas), whole, strict=True):
        assert one == pytest.approx(other, rel=1e-11)


def test_on_a_linear_agent_it_approaches_the_closed_form():
    """A network without hidden units is a linear policy, whose λ the library knows exactly."""
    features, pushes, _ = made(3)
    network = GaussianNetwork(NAMES, ("x", "y"), (), 1.0)
    supports = [network.full_support - {g} for g in network.tested] + [network.full_support]
    found = adam_fits(network, network_likelihood(network, features, pushes), supports, 0.03, 1500, spread=1.0)
    linear = GaussianLinear(NAMES, ("x", "y"), 1.0)
    likelihood = likelihood_of(linear, Sample(features, pushes, NAMES, ("x", "y")))
    exact = [likelihood.fit(linear.full_support - {g}).log_likelihood for g in linear.tested]
    highest = np.array([*exact, likelihood.full.log_likelihood])
    assert found.last == pytest.approx(highest, abs=1e-3)
    assert np.all(found.best >= found.last) and np.all(found.best <= highest + 1e-6)


def test_on_a_boltzmann_agent_it_approaches_the_maximum():
    features, _, choices = made(4)
    space = SoftmaxLinear(NAMES, ("l", "m", "r"))
    data = Sample(features, choices, NAMES, ("l", "m", "r"))
    supports = [space.full_support - {g} for g in space.tested] + [space.full_support]
    found = adam_fits(space, boltzmann_likelihood(space, features, choices), supports, 0.03, 1000)
    likelihood = likelihood_of(space, data)
    assert found.last == pytest.approx([fit.log_likelihood for fit in likelihood.fit_many(supports)], abs=1e-4)
    assert found.last_theta[-1] == pytest.approx(likelihood.full.theta, abs=1e-2)


def test_what_is_not_free_stays_where_it_is_fixed():
    space, evaluate, _, _ = families(5)["network"]
    support = space.full_support - {space.tested[2]}
    found = adam_fits(space, evaluate, [support], 0.1, 20, spread=1.0)
    fixed = ~space.free_mask(support)
    assert np.all(found.last_theta[0, fixed] == 0) and np.all(found.last_theta[0, ~fixed] != 0)


def test_the_best_point_is_the_most_likely_of_the_path_and_the_last_its_end():
    """A rate that overshoots a parabola: the path is that of Adam's formulas, written out."""

    def parabola(thetas):
        return -0.5 * (thetas**2).sum(axis=1), -thetas

    theta, m, v, path = 1.0, 0.0, 0.0, [1.0]
    for t in range(1, 31):
        m, v = 0.9 * m - 0.1 * theta, 0.999 * v + 0.001 * theta**2
        theta += 0.3 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        path.append(theta)
    found = ascend(parabola, np.array([[1.0]]), np.array([[True]]), 0.3, 30)
    assert found.last_theta[0, 0] == pytest.approx(path[-1], rel=1e-9)
    assert abs(found.best_theta[0, 0]) == pytest.approx(min(map(abs, path)), rel=1e-9)
    assert found.best[0] > found.last[0] and min(path) < 0


def test_the_same_seed_gives_the_same_fits_and_another_seed_others():
    space, evaluate, _, _ = families(6)["network"]
    one, same, other = (adam_fits(space, evaluate, [space.full_support], 0.1, 30, 1.0, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.last_theta, same.last_theta)
    assert not np.array_equal(one.last_theta, other.last_theta)
