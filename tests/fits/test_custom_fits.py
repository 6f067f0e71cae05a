"""A policy that the user wrote: the same answers as the built-in one it imitates, and groups by path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policyspace import CustomPolicy, InputError, Sample, SoftmaxLinear, identify, likelihood_of

NAMES = ("near", "far")


def logistic(params, state, action):
    eta = params["weights"] @ state + params["bias"]
    return jnp.where(action == 0, eta, 0.0) - jnp.logaddexp(eta, 0.0)


def play(key, params, state):
    eta = params["weights"] @ state + params["bias"]
    return jnp.where(jax.random.uniform(key) < jax.nn.sigmoid(eta), 0, 1)


def custom(**options):
    params = {"bias": np.zeros(()), "weights": np.zeros(2)}
    groups = {"near": "weights[0]", "far": "weights[1]"}
    return CustomPolicy(logistic, params, NAMES, ("go", "stay"), **({"groups": groups, "sample": play} | options))


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 2))
    actions = (rng.random(n) > 1 / (1 + np.exp(-1.5 * features[:, 0]))).astype(int)
    return Sample(features, actions, NAMES, ("go", "stay"))


def test_it_is_the_linear_policy_in_other_words():
    mine, built_in = likelihood_of(custom(), data()), likelihood_of(SoftmaxLinear(NAMES, ("go", "stay")), data())
    assert mine.full.log_likelihood == pytest.approx(built_in.full.log_likelihood, abs=1e-6)
    np.testing.assert_allclose(mine.full.theta, built_in.full.theta, atol=1e-3)
    restricted = mine.fit(frozenset({0}))
    assert restricted.log_likelihood == pytest.approx(built_in.fit(frozenset({1})).log_likelihood, abs=1e-6)
    assert mine.identifiable and mine.degrees_of_freedom(frozenset({0})) == 1
    assert mine.full.restart_noise < 1e-3


@pytest.mark.parametrize("test", ["auto", "universal", "eprocess", "bootstrap"])
def test_every_test_works(test):
    answer = identify(data(400), policy=custom(), test=test)
    assert answer.support == ("near",)


def test_a_redundant_parameter_makes_it_unidentifiable_and_universal():
    def doubled(params, state, action):
        return logistic({"weights": params["left"] + params["right"], "bias": params["bias"]}, state, action)

    params = {"bias": 0.0, "left": np.zeros(2), "right": np.zeros(2)}
    groups = {"near": ["left[0]", "right[0]"], "far": ["left[1]", "right[1]"]}
    space = CustomPolicy(doubled, params, NAMES, ("go", "stay"), groups=groups)
    answer = identify(data(400), policy=space, rule="combinatorial")
    assert not answer.fit.identifiable
    assert answer.test.name == "universal"
    assert answer.supports == (("near",),)


def test_groups_are_paths():
    params = {"body": {"w": np.zeros((2, 3)), "b": np.zeros(2)}, "head": np.zeros(2)}
    space = CustomPolicy(lambda p, s, a: 0.0, params, ("x",), groups={"third": "body/w[:, 2]", "head": "head"})
    assert space.groups[0].indices == (4, 7) and space.groups[1].indices == (8, 9)
    assert space.groups[2].assumed and space.named(space.full_support) == ["third", "head"]
    whole = CustomPolicy(lambda p, s, a: 0.0, params, ("x",), groups={"body": "body"})
    assert whole.groups[0].indices == tuple(range(8))
    assert [g.name for g in CustomPolicy(lambda p, s, a: 0.0, params, ("x",)).groups] == ["body/b", "body/w", "head"]


def test_bad_policies_are_told():
    with pytest.raises(InputError, match="no parameter 'weight'"):
        custom(groups={"near": "weight[0]"})
    with pytest.raises(InputError, match="picks nothing"):
        custom(groups={"near": "weights[7]"})
    with pytest.raises(InputError, match="share a parameter"):
        custom(groups={"a": "weights", "b": "weights[1]"})
    with pytest.raises(InputError, match="without sample"):
        identify(data(100), policy=custom(sample=None), test="bootstrap")
    broken = CustomPolicy(lambda p, s, a: jnp.log(p["w"][0]), {"w": np.zeros(1)}, NAMES, ("go", "stay"))
    with pytest.raises(InputError, match="not finite"):
        likelihood_of(broken, data(50))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"x": [9]}, "there is no parameter '9'"),
        ({"x": 9}, "group 'x' must be a list of names, found 9"),
        ({"x": [None]}, "group 'x' must be a list of names"),
        ("feature", "groups must be a table of names and paths, found 'feature'"),
    ],
)
def test_groups_that_name_no_parameter_are_refused_in_a_sentence(groups, words):
    def log_prob(params, state, action):
        return -0.5 * (action - params["x"] @ state) ** 2

    with pytest.raises(InputError, match=words):
        CustomPolicy(log_prob, {"x": np.zeros(2)}, ("near", "far"), groups=groups)
