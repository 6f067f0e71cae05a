"""The space of general statistics: probabilities, groups, and what is refused."""

import numpy as np
import pytest

from policyspace import ChoiceLinear, InputError, PolicySpec, Sample, identify, plan
from policyspace.families import ChiSquare
from policyspace.theory import assess

NAMES = ("age", "cost_a", "cost_b", "cost_c", "time_a", "time_b", "time_c", "there_b")
ACTIONS = ("a", "b", "c")
COLUMNS = {"cost": "cost_*", "time": "time_*"}


def space(**words):
    return ChoiceLinear(NAMES, ACTIONS, COLUMNS, {"b": "there_b"}, **words)


def drawn(num_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(num_rows, len(NAMES)))
    features[:, -1] = rng.random(num_rows) < 0.6
    return rng, features


def test_statistics_and_probabilities_are_those_of_the_definition():
    one, (_, features) = space(), drawn(5)
    theta = np.arange(one.num_parameters) / 4.0
    assert one.parameter_names == ("intercept[a]", "age[a]", "intercept[b]", "age[b]", "cost", "time")
    t = one.statistics(features)
    for i, s in enumerate(features):
        assert t[i, 0].tolist() == [1, s[0], 0, 0, s[1], s[4]]
        assert t[i, 2].tolist() == [0, 0, 0, 0, s[3], s[6]]
    odds = np.exp(t @ theta) * np.column_stack([np.ones(5), features[:, -1] > 0, np.ones(5)])
    expected = odds / odds.sum(axis=1, keepdims=True)
    assert one.probabilities(theta, features) == pytest.approx(expected)
    codes = np.array([0, 2, 2, 0, 2])
    assert np.exp(one.log_prob(theta, features, codes)) == pytest.approx(expected[np.arange(5), codes])
    assert one.mean(theta, features) == pytest.approx(expected[:, :2])


def test_jax_says_the_same():
    jax = pytest.importorskip("jax")

    one, (_, features) = space(), drawn(4)
    theta, codes = np.linspace(-1, 1, one.num_parameters), np.array([0, 2, 0, 2])
    log_prob = jax.jit(one.log_prob)(theta, features, codes)
    assert np.asarray(log_prob) == pytest.approx(one.log_prob(theta, features, codes))
    slope = jax.jit(jax.grad(lambda x: one.log_prob(x, features, codes).sum()))(theta)
    assert np.asarray(slope) == pytest.approx(one.score(theta, features, codes).sum(axis=0))


def test_samples_come_as_often_as_their_probabilities_and_never_when_not_available():
    one, (rng, features) = space(), drawn(1)
    many = np.repeat(features, 40_000, axis=0)
    theta = np.linspace(-1, 1, one.num_parameters)
    for there in (0.0, 1.0):
        many[:, -1] = there
        shares = np.bincount(one.sample(rng, theta, many), minlength=3) / len(many)
        p = one.probabilities(theta, many[:1])[0]
        assert shares == pytest.approx(p, abs=6 * np.sqrt(0.25 / len(many)))
        assert (shares[1] == 0) == (there == 0)


def test_groups_by_attribute_by_parameter_and_by_name():
    assert [g.name for g in space().groups] == ["intercept", "age", "cost", "time"]
    single = space(groups="parameter", specific=["cost"])
    assert [g.name for g in single.groups][1:] == ["age[a]", "age[b]", "cost[a]", "cost[b]", "cost[c]", "time"]
    assert single.group_columns() is None
    trip = space(groups={"trip": ["cost", "time"]}, assume=["age"])
    assert [(g.name, g.assumed) for g in trip.groups] == [("intercept", True), ("age", True), ("trip", False)]
    assert trip.group_columns() == {0: (7,), 1: (0,), 2: (1, 2, 3, 4, 5, 6)}
    assert space(fixed={"cost": -1.0}).fixed.tolist() == [0, 0, 0, 0, -1, 0]


def test_an_attribute_may_be_missing_for_some_actions():
    one = ChoiceLinear(("wait_a", "cost_a", "cost_b"), ("a", "b"), {"cost": "cost_*", "wait": {"a": "wait_a"}})
    assert one.statistics(np.array([[5.0, 1.0, 2.0]]))[0].tolist() == [[1, 1, 5], [0, 2, 0]]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"specific": ["age"]}, "only an attribute can be specific"),
        ({"groups": "hidden"}, "belong to the policy 'network'"),
        ({"assume": ["costs"]}, "did you mean 'cost'"),
        ({"fixed": {"prices": 1}}, "which is no feature or group"),
    ],
)
def test_what_does_not_fit_is_refused(words, sentence):
    with pytest.raises(InputError, match=sentence):
        space(**words)


def test_names_must_differ():
    with pytest.raises(InputError, match="a name of its own"):
        ChoiceLinear(NAMES, ACTIONS, {"age": "cost_*", "time": "time_*"})
    with pytest.raises(InputError, match="'intercept'"):
        ChoiceLinear(NAMES, ACTIONS, {"intercept": "cost_*"})
    with pytest.raises(InputError, match="says all about itself"):
        PolicySpec(ChoiceLinear(attributes=COLUMNS), assume=["cost"])


def test_a_policy_of_arrays_planning_and_what_theory_says():
    one, (rng, features) = space(), drawn()
    codes = one.sample(rng, np.array([0.2, 0, -0.1, 0, -1.0, 0.0]), features)
    policy = ChoiceLinear(attributes=COLUMNS, available={"b": "there_b"})
    labels = np.array(ACTIONS)[codes]
    answer = identify(features, labels, features=NAMES, policy=policy)
    assert answer.test.name == "wilks" and answer.selected == ("cost",) and "uses 1 of 3: cost" in answer.sentence
    made = plan(Sample(features, codes, NAMES, ACTIONS), reference="b", policy=policy)
    rows = {group.group: group for group in made.groups}
    assert rows["cost"].rows.value < 300 < rows["time"].rows.value
    with pytest.raises(InputError, match="actions have attributes"):
        assess(features, labels, features=NAMES, policy=policy)


@pytest.mark.slow
def test_the_level_and_the_power_of_a_plan_are_kept():
    """False selections within a binomial bound of δ; power as the plan from the true effect says."""
    theta = np.array([0.3, 0.0, -0.2, 0.0, -0.25, 0.0])
    false, found, runs = 0, 0, 400
    for seed in range(runs):
        rng, features = drawn(150, seed)
        data = Sample(features, space().sample(rng, theta, features), NAMES, ACTIONS)
        core = identify(data, policy=space(), test="wilks", correction="bonferroni").selected
        false += bool({"age", "time"} & set(core))
        found += "cost" in core
    assert false / runs < 0.05 + 4 * np.sqrt(0.05 * 0.95 / runs)
    _, features = drawn(20_000, 99)
    rate = 150 * 0.25**2 / np.linalg.inv(space().fisher(theta, features))[4, 4]
    assert found / runs == pytest.approx(ChiSquare().power(rate, 0.05 / 3, 1), abs=0.08)
