"""What is said about a policy: used or refused, and the same space however it is said."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import policyspace
from policyspace import (
    GaussianLinear,
    GaussianNetwork,
    InputError,
    PolicySpec,
    Sample,
    SoftmaxLinear,
    SoftmaxNetwork,
    identify,
)
from policyspace.data import Origin
from policyspace.families import POLICIES
from policyspace.theory import assess

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 3))
FORCE = X[:, :1] + RNG.normal(size=(120, 2))
MOVE = np.where(X[:, 0] + RNG.gumbel(size=120) > 0, "go", "stop")
NAMES, PEDALS = ("speed", "left", "radio"), ("gas", "brake")
RECORD = {"family": "gaussian-network", "hidden": [3], "activation": "relu", "covariance": [[2.0, 0.0], [0.0, 1.0]]}


def numbers(policy=None):
    return Sample(X, FORCE, NAMES, PEDALS, origin=Origin(policy=policy))


def labels(policy=None):
    codes = (MOVE == "stop").astype(int)
    return Sample(X, codes, NAMES, ("go", "stop"), origin=Origin(policy=policy))


def same_space(one, other):
    """Equal in everything that a space is made of."""
    assert type(one) is type(other)
    assert vars(one).keys() == vars(other).keys()
    for name, value in vars(one).items():
        np.testing.assert_equal(value, vars(other)[name], name)


# -- the same space however it is said ----------------------------------------------------------------------------

SAID = [
    (PolicySpec(), numbers(), GaussianLinear(NAMES, PEDALS)),
    (PolicySpec(), labels(), SoftmaxLinear(NAMES, ("go", "stop"))),
    (PolicySpec(covariance=[1, 2.0], intercept=False), numbers(), GaussianLinear(NAMES, PEDALS, [1, 2.0], intercept=False)),
    (PolicySpec(assume=["radio"], fixed={"left": 0.5}), labels(),
     SoftmaxLinear(NAMES, ("go", "stop"), assume=["radio"], fixed={"left": 0.5})),
    (PolicySpec("network", hidden=(4, 2), activation="relu"), labels(),
     SoftmaxNetwork(NAMES, ("go", "stop"), (4, 2), "relu")),
    (PolicySpec("network", covariance=0.3, groups="hidden"), numbers(),
     GaussianNetwork(NAMES, PEDALS, (8,), 0.3, groups="hidden")),
    (PolicySpec(groups={"place": ["speed", "left"]}), numbers(),
     GaussianLinear(NAMES, PEDALS, groups={"place": ["speed", "left"]})),
    (GaussianLinear(covariance=2.0, groups="parameter"), numbers(), GaussianLinear(NAMES, PEDALS, 2.0, "parameter")),
    (SoftmaxLinear(intercept=False), labels(), SoftmaxLinear(NAMES, ("go", "stop"), intercept=False)),
    (GaussianNetwork(hidden=(5,), covariance=0.1), numbers(), GaussianNetwork(NAMES, PEDALS, (5,), 0.1)),
    (SoftmaxNetwork(hidden=(5,), assume=("left",)), labels(),
     SoftmaxNetwork(NAMES, ("go", "stop"), (5,), assume=("left",))),
]  # fmt: skip


@pytest.mark.parametrize(("said", "data", "wanted"), SAID)
def test_what_is_said_makes_the_space_that_names_would(said, data, wanted):
    same_space(said.bind(data), wanted)
    same_space(PolicySpec(said).bind(data), wanted)


def test_a_categorical_column_stays_one_group():
    data = Sample(X, FORCE, NAMES, PEDALS, blocks={"place": ("speed", "left")})
    space = GaussianLinear(covariance=1.0).bind(data)
    assert [group.name for group in space.groups] == ["intercept", "place", "radio"]


def test_what_the_file_records_holds_unless_said_otherwise():
    recorded = numbers(RECORD)
    same_space(PolicySpec().bind(recorded), GaussianNetwork(NAMES, PEDALS, (3,), RECORD["covariance"], "relu"))
    same_space(GaussianNetwork().bind(recorded), GaussianNetwork(NAMES, PEDALS, (3,), RECORD["covariance"], "relu"))
    changed = PolicySpec(hidden=(2,), activation="tanh", covariance=0.1).bind(recorded)
    same_space(changed, GaussianNetwork(NAMES, PEDALS, (2,), 0.1))
    same_space(PolicySpec("gaussian").bind(recorded), GaussianLinear(NAMES, PEDALS, RECORD["covariance"]))
    plain = labels({"family": "boltzmann", "intercept": False})
    same_space(PolicySpec().bind(plain), SoftmaxLinear(NAMES, ("go", "stop"), intercept=False))
    same_space(PolicySpec(intercept=True).bind(plain), SoftmaxLinear(NAMES, ("go", "stop")))


def test_a_space_that_has_its_features_is_bound_already():
    space = GaussianLinear(("a",), covariance=1.0)
    assert space.bind(numbers()) is space
    assert PolicySpec(space).bind(numbers()) is space


COUNTED = ("poisson", "negative-binomial")


@pytest.mark.parametrize("name", POLICIES)
def test_every_name_has_a_space_for_the_actions_that_it_takes(name):
    for kind in POLICIES[name]:
        data = labels() if kind.discrete else numbers()
        data = replace(data, actions=np.abs(np.round(data.actions))) if name in COUNTED else data
        if name == "negative-binomial":
            data = replace(data, actions=data.actions[:, :1], action_names=data.action_names[:1])
        said = {"levels": data.action_names} if name == "ordered" else {}
        assert type(PolicySpec(name, **said).bind(data)) is kind


def test_a_network_without_names_answers_as_one_with_names():
    settings = {"features": NAMES, "test": "wilks"}
    short = identify(X, FORCE, policy=GaussianNetwork(hidden=(2,), covariance=1.0), **settings)
    names = ("action_0", "action_1")
    long = identify(X, FORCE, policy=GaussianNetwork(NAMES, names, hidden=(2,), covariance=1.0), **settings)
    said = identify(X, FORCE, policy="network", hidden=(2,), covariance=1.0, **settings)
    as_spec = identify(X, FORCE, policy=PolicySpec("network", hidden=(2,), covariance=1.0), **settings)
    assert short.to_json() == long.to_json() == said.to_json() == as_spec.to_json()


def test_the_covariance_of_a_network_is_estimated_from_the_data():
    by_object = identify(X, FORCE, policy=GaussianNetwork(hidden=(2,)), test="wilks")
    by_name = identify(X, FORCE, policy="network", hidden=(2,), test="wilks")
    assert by_object.to_json() == by_name.to_json()
    found = np.array(by_object.policy.covariance)
    left = (
        FORCE
        - np.column_stack([np.ones(120), X]) @ np.linalg.lstsq(np.column_stack([np.ones(120), X]), FORCE, rcond=None)[0]
    )
    np.testing.assert_allclose(found, left.T @ left / 120, atol=0.15)  # the noise, since the agent is nearly linear


def test_the_kind_of_space_says_how_actions_are_read():
    whole = np.round(X[:, 0] * 3).astype(int)
    assert identify(X, whole, policy=GaussianLinear()).policy.family == "GaussianLinear"
    assert identify(X, (whole > 0).astype(float), policy=SoftmaxLinear()).data.actions == ("0", "1")


# -- unbound spaces -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [GaussianLinear, SoftmaxLinear, GaussianNetwork, SoftmaxNetwork])
def test_a_space_without_features_says_what_it_waits_for(kind):
    space = kind(assume=("left",))
    for use in (
        lambda: space.num_parameters,
        lambda: space.tested,
        lambda: space.free_mask(frozenset()),
        lambda: space.with_assumed(["speed"]),
        lambda: space.log_prob(np.zeros(3), X, FORCE),
        lambda: policyspace.likelihood_of(space, labels() if kind.discrete else numbers()),
    ):
        with pytest.raises(InputError, match=f"this {kind.__name__} has no features yet"):
            use()


@pytest.mark.parametrize("kind", [GaussianLinear, SoftmaxLinear, GaussianNetwork, SoftmaxNetwork])
def test_actions_without_features_are_refused(kind):
    for word, value in (("actions", ("go", "stop")), ("blocks", {"place": ("speed", "left")})):
        with pytest.raises(InputError, match=f"{kind.__name__} without features .* found {word}=: name both or none"):
            kind(**{word: value})


def test_spaces_can_be_copied_and_pickled_before_and_after():
    for space in (GaussianNetwork(hidden=(2,), covariance=0.1), GaussianLinear(NAMES, PEDALS, 1.0)):
        for twin in (copy.copy(space), copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
            same_space(twin.bind(numbers()), space.bind(numbers()))


def test_an_attribute_that_no_space_has_is_no_input_error():
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        _ = GaussianLinear(NAMES).colour


def test_a_network_that_estimates_its_covariance_says_so():
    space = GaussianNetwork().bind(numbers())
    assert space.num_parameters == 3 * 8 + 8 + 8 * 2 + 2
    with pytest.raises(InputError, match="does not know its covariance"):
        _ = space.precision


# -- refused ------------------------------------------------------------------------------------------------------

BOUND = GaussianLinear(NAMES, PEDALS, 1.0)


@pytest.mark.parametrize("policy", [BOUND, GaussianLinear(), PolicySpec("gaussian")])
@pytest.mark.parametrize(
    "word",
    [
        {"groups": "feature"},
        {"assume": ["left"]},
        {"covariance": 1.0},
        {"hidden": (8,)},
        {"fixed": 0.0},
        {"intercept": True},
    ],
)
@pytest.mark.parametrize("call", [identify, policyspace.plan, assess])
def test_words_beside_an_object_are_refused(policy, word, call):
    with pytest.raises(
        InputError, match=f"{type(policy).__name__}.*found {next(iter(word))}= beside it: say it inside"
    ):
        call(X, FORCE, policy=policy, **word)


@pytest.mark.parametrize(
    ("data", "said", "sentence"),
    [
        (numbers(), {"hidden": (8,)}, "hidden layers belong to the policy 'network', found the policy 'gaussian'"),
        (labels(), {"hidden": (8,)}, "hidden layers belong to the policy 'network', found the policy 'boltzmann'"),
        (numbers(RECORD), {"policy": "gaussian", "hidden": (8,)}, "hidden layers belong to the policy 'network'"),
        (numbers(), {"policy": "network", "intercept": False}, "an intercept belongs to linear policies"),
        (numbers(RECORD), {"intercept": True}, "an intercept belongs to linear policies"),
        (labels(), {"covariance": 1.0}, "a covariance belongs to the Gaussian policies, found the policy 'boltzmann'"),
        (labels(), {"policy": "network", "covariance": 1.0}, "a covariance belongs to the Gaussian policies"),
        (labels(), {"groups": "hidden"}, "the groups 'hidden' belong to the policy 'network'"),
        (labels(), {"policy": "gaussian"}, "a GaussianLinear needs continuous actions, found discrete ones"),
        (numbers(), {"policy": SoftmaxNetwork()}, "a SoftmaxNetwork needs discrete actions, found continuous ones"),
        (numbers(), {"policy": "gausian"}, "the policy must be one of .* found 'gausian': did you mean 'gaussian'"),
        (numbers(), {"policy": 3}, "the policy must be one of .* found 3"),
    ],
)
def test_what_does_not_fit_the_policy_is_refused(data, said, sentence):
    for call in (identify, policyspace.plan, assess):
        with pytest.raises(InputError, match=sentence):
            call(data, **said)


def test_an_activation_belongs_to_networks():
    with pytest.raises(InputError, match="an activation belongs to the policy 'network'"):
        PolicySpec("gaussian", activation="relu").bind(numbers())


def test_nothing_left_to_test():
    with pytest.raises(InputError, match="every group is assumed: nothing is left to test"):
        identify(numbers(), assume=NAMES)
