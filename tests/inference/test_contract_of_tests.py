"""What every test of supports must keep, on every family that it serves: a new test is held to it by its line in TESTS."""

import itertools
from dataclasses import replace

import jax
import numpy as np
import pytest

from policyspace import (
    ChoiceLinear,
    CustomPolicy,
    GaussianLinear,
    GaussianNetwork,
    InputError,
    NegativeBinomialLinear,
    OrderedLinear,
    PoissonLinear,
    Sample,
    SoftmaxLinear,
    SoftmaxNetwork,
    likelihood_of,
)
from policyspace.data import Origin
from policyspace.families import POLICIES, ModelFree
from policyspace.inference import TESTS, TestOptions, choose, each_group_alone, search_supports, support_test

pytestmark = pytest.mark.quick
NAMES = ("near", "far", "idle")


def amounts():
    rng = np.random.default_rng(5)
    features = rng.normal(size=(300, 3))
    actions = features[:, :2] @ [[1.0, 0.5], [0.4, -1.0]] + 0.4 * rng.normal(size=(300, 2))
    return Sample(features, actions, NAMES, ("gas", "wheel"), np.arange(300) // 15)


def labels():
    rng = np.random.default_rng(6)
    features = rng.normal(size=(400, 3))
    drive = np.column_stack([features @ [2.0, -1.5, 0.0], features @ [-1.0, 1.5, 0.0], np.zeros(400)])
    codes = np.argmax(drive + rng.gumbel(size=drive.shape), axis=1)
    return Sample(features, codes, NAMES, ("left", "on", "right"), np.arange(400) // 20)


def choices():
    """Three alternatives with two attributes each, one of them not always available, and an idle feature of the chooser."""
    rng = np.random.default_rng(7)
    near, far, idle = rng.normal(size=(400, 3)), rng.normal(size=(400, 3)), rng.normal(size=(400, 1))
    there = np.column_stack([np.ones(400), rng.random(400) < 0.7, np.ones(400)])
    drive = np.where(there > 0, 1.5 * near - 1.2 * far + rng.gumbel(size=(400, 3)), -np.inf)
    actions = ("left", "on", "right")
    names = ("idle", *(f"{name}_{a}" for name in ("near", "far") for a in actions), "there_on")
    columns = np.hstack([idle, near, far, there[:, 1:2]])
    return Sample(columns, drive.argmax(axis=1), names, actions, np.arange(400) // 20)


def counts():
    rng = np.random.default_rng(9)
    features = rng.normal(size=(300, 3))
    presses = rng.poisson(np.exp(0.5 + features @ [0.6, -0.5, 0.0])).astype(float)
    return Sample(features, presses[:, None], NAMES, ("presses",), np.arange(300) // 15, counts=True)


def spread_counts():
    """Counts that spread more than a Poisson law has it."""
    rng = np.random.default_rng(10)
    features = rng.normal(size=(400, 3))
    presses = rng.poisson(np.exp(0.5 + features @ [0.9, -0.8, 0.0]) * rng.gamma(3.0, 1 / 3, size=400)).astype(float)
    return Sample(features, presses[:, None], NAMES, ("presses",), np.arange(400) // 20, counts=True)


def levels():
    """Three levels in an order that is not that of their names."""
    rng = np.random.default_rng(12)
    features = rng.normal(size=(400, 3))
    codes = np.digitize(features @ [1.6, -1.3, 0.0] + rng.logistic(size=400), [-1.0, 1.0])
    return Sample(features, np.array([1, 2, 0])[codes], NAMES, ("high", "low", "medium"), np.arange(400) // 20)


def few_amounts():
    """As many as a policy that is differentiated by JAX needs."""
    data = amounts().take(np.arange(120))
    return Sample(data.features, data.actions, NAMES, data.action_names, np.arange(120) // 40)


def custom_space(data):
    """The linear Gaussian policy of known variance, as a user would write it: every row of its weights is one input."""

    def log_prob(params, state, action):
        left = action - state @ params["weights"] - params["constant"]
        return -0.5 * (left @ left) / 0.16 - np.log(2 * np.pi * 0.16)

    def sample(key, params, state):
        return state @ params["weights"] + params["constant"] + 0.4 * jax.random.normal(key, (2,))

    params = {"weights": np.zeros((3, 2)), "constant": np.zeros(2)}
    groups = {name: [f"weights[{i}]"] for i, name in enumerate(NAMES)}
    return CustomPolicy(log_prob, params, data.names, data.action_names, groups, sample=sample)


def choice_space(data):
    attributes = {"near": "near_*", "far": "far_*"}
    return ChoiceLinear(data.names, data.action_names, attributes, {"on": "there_on"})


FAMILIES = {
    "Gaussian, known covariance": (amounts, lambda d: GaussianLinear(d.names, d.action_names, 0.16)),
    "Gaussian, estimated covariance": (amounts, lambda d: GaussianLinear(d.names, d.action_names)),
    "Boltzmann": (labels, lambda d: SoftmaxLinear(d.names, d.action_names)),
    "choices": (choices, choice_space),
    "Gaussian network": (amounts, lambda d: GaussianNetwork(d.names, d.action_names, (2,), 0.16)),
    "Boltzmann network": (labels, lambda d: SoftmaxNetwork(d.names, d.action_names, (2,))),
    "counts": (counts, lambda d: PoissonLinear(d.names, d.action_names)),
    "negative binomial": (spread_counts, lambda d: NegativeBinomialLinear(d.names, d.action_names)),
    "ordered": (levels, lambda d: OrderedLinear(d.names, d.action_names, ["low", "medium", "high"])),
    "custom": (few_amounts, custom_space),
    "none": (amounts, lambda d: ModelFree(d.names, d.action_names)),
}
OWN = ("custom", "none")
LINEAR = [family for family in FAMILIES if "network" not in family and family not in OWN]
REFUSED = {(test, family) for test in ("mixture", "robust", "mixed") for family in FAMILIES if family not in LINEAR}
REFUSED |= {("firth", family) for family in FAMILIES if family not in ("Boltzmann", "choices")}
REFUSED |= {("lean", "custom")} | {(test, "none") for test in TESTS if test != "lean"}
REFUSED = (REFUSED | {("randomised", "custom")}) - {("randomised", "none")}
REFUSALS = r"linear policies|linear Boltzmann policy|asks which features are used|tested without a model|tests features"


def made(test, family):
    draw, space = FAMILIES[family]
    data = draw()
    if test == "mixed":
        data = replace(data, subjects=data.episodes)
    if test == "randomised":
        data = replace(data, origin=Origin(assigned=dict.fromkeys(data.names, "permuted")))
    likelihood = likelihood_of(space(data), data)
    choose(TestOptions(test), likelihood, data)
    return support_test(likelihood, data, TestOptions(test, seed=3))


def highest_ratio(one, support):
    """λ of the highest peaks that a full search finds, which is what larger supports speak of."""
    likelihood = one.likelihood
    return 2 * (likelihood.full.log_likelihood - likelihood.fit(support).log_likelihood)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("test", TESTS)
def test_the_contract(test, family):
    if (test, family) in REFUSED:
        with pytest.raises(InputError, match=REFUSALS):
            made(test, family)
        return
    one = made(test, family)
    tested, everything = one.space.tested, one.space.full_support
    assert one.name == test and one.statistic_name and isinstance(one.note(), str)
    supports = [everything.difference(out) for out in itertools.chain.from_iterable(
        itertools.combinations(tested, size) for size in (1, 2)
    )]  # fmt: skip
    results = dict(zip(supports, one.test_many(supports), strict=True))
    for support, result in results.items():
        assert result.support == support and 0.0 <= result.p_value <= 1.0 and result.degrees_of_freedom > 0
        # What is rejected with a larger support is rejected by its own test; where the evidence grows, by no less of it.
        below = one.evidence_lower_bound(result)
        for smaller in (results[s] for s in supports if s < support):
            critical = one.law.critical(0.05, smaller.degrees_of_freedom)
            rejected = one.evidence(smaller) > critical
            if test == "bootstrap" and "network" in family and not rejected:  # its three climbs may end on a saddle
                rejected = highest_ratio(one, smaller.support) >= result.statistic
            assert below <= critical or rejected
            assert not one.monotone or below <= one.evidence(smaller) + 1e-3 * max(1.0, below)
    degrees = one.degrees_of_all(list(tested))
    assert len(degrees) == 2 ** len(tested) and degrees[-1] == 0 and (degrees[:-1] > 0).all()
    again = made(test, family)
    # Sums that are made side by side may round otherwise than alone.
    assert [t.p_value for t in again.test_many(supports)] == pytest.approx(
        [t.p_value for t in results.values()], rel=1e-9
    )


def test_every_family_is_held_to_the_contract():
    held = {type(space(draw())) for draw, space in FAMILIES.values()}
    assert held == {kind for kinds in POLICIES.values() for kind in kinds} | {CustomPolicy}


@pytest.mark.parametrize("family", LINEAR)
@pytest.mark.parametrize("test", TESTS)
def test_both_rules_find_a_strong_agent(test, family):
    if (test, family) in REFUSED:
        return
    one = made(test, family)
    simplified, combinatorial = each_group_alone(one, 0.05), search_supports(made(test, family), 0.05)
    assert [one.space.named(support) for support in simplified.supports] == [["near", "far"]]
    assert [one.space.named(support) for support in combinatorial.supports] == [["near", "far"]]
