"""`identify` from end to end: what it answers, in numbers, words and JSON, and what it warns of."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from policyspace import GaussianLinear, InputError, Sample, SoftmaxLinear, combinatorial, fit, identify, simplified

NAMES = ("speed", "left", "right")


def pairs(n=600, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, x @ [0.5, 0.3, 0.0] + rng.normal(size=n)


def choices(n=800, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    eta = np.column_stack([x @ [0.8, 0.0, 0.0], x @ [0.0, 0.6, 0.0], np.zeros(n)])
    return x, np.array(["go", "left", "stay"])[np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)]


@pytest.mark.parametrize("rule", ["simplified", "combinatorial"])
@pytest.mark.parametrize("paper_rule", [False, True])
@pytest.mark.parametrize("make", [pairs, choices])
def test_clear_agents_are_identified_by_both_rules(rule, paper_rule, make):
    answer = identify(*make(), features=NAMES, rule=rule, paper_rule=paper_rule)
    assert answer.support == answer.selected == ("speed", "left")
    assert answer.supports == (("speed", "left"),) and answer.undecided == ()
    assert answer.sentence == "The agent uses 2 of 3: speed and left."
    assert [test.verdict for test in answer.groups] == ["used", "used", "no evidence"]
    assert [test.rejected for test in answer.groups] == [True, True, False]
    assert answer.fit.identifiable and answer.exhaustive and not answer.fit.separated and answer.warnings == ()
    assert answer.sentence in str(answer) and "Warning" not in str(answer)


def test_every_number_of_the_table_is_its_own_definition():
    x, y = choices()
    data = Sample.from_arrays(x, y, features=NAMES)
    space = SoftmaxLinear(NAMES, data.action_names)
    answer = identify(x, y, features=NAMES, policy="boltzmann")
    full = fit(space, data)
    assert answer.fit.log_likelihood == pytest.approx(full.log_likelihood, abs=1e-8)
    assert (answer.data.num_rows, answer.fit.num_parameters) == (800, 8)
    for g, test in zip(space.tested, answer.groups, strict=True):
        restricted = fit(space, data, space.full_support - {g})
        assert test.statistic == pytest.approx(2 * (full.log_likelihood - restricted.log_likelihood), abs=1e-6)
        assert test.p_value == pytest.approx(stats.chi2.sf(test.statistic, 2), rel=1e-9)
        assert test.degrees_of_freedom == 2
        assert test.coefficient_norm == pytest.approx(
            np.linalg.norm(full.theta[list(space.groups[g].indices)]), rel=1e-6
        )
    information = space.fisher(full.theta, x)
    assert answer.fit.smallest_eigenvalue == pytest.approx(np.linalg.eigvalsh(information)[0], rel=1e-6)
    np.testing.assert_allclose(list(answer.fit.parameters.values()), space.weights(full.theta), rtol=1e-6)


def test_the_ways_in_lead_to_the_same_answer():
    x, y = choices()
    columns = {name: x[:, j] for j, name in enumerate(NAMES)} | {"act": y}
    data = Sample.from_arrays(x, y, features=NAMES)
    answers = [
        identify(x, y, features=NAMES, policy="boltzmann"),
        identify(pl.DataFrame(columns), "act", policy="boltzmann"),
        identify(pd.DataFrame(columns), "act", features=list(NAMES), policy="boltzmann"),
        identify(data, intercept=True),
        identify(data, policy=SoftmaxLinear(NAMES, data.action_names)),
        simplified(SoftmaxLinear(NAMES, data.action_names), data),
    ]
    assert len({json.dumps(a.to_dict()["groups"]) for a in answers}) == 1
    free = [identify(x, y, features=NAMES), identify(pl.DataFrame(columns), "act"), identify(data, test="lean")]
    assert len({json.dumps(a.to_dict()["groups"]) for a in free}) == 1


def test_the_reference_action_changes_parameters_and_no_feature_test():
    x, y = choices()
    here, there = identify(x, y, features=NAMES), identify(x, y, features=NAMES, reference="go")
    for a, b in zip(here.groups, there.groups, strict=True):
        assert a.statistic == pytest.approx(b.statistic, abs=1e-6)
    assert list(there.fit.parameters) == ["left", "stay"]


def test_single_parameters_say_which_action_uses_which_feature():
    answer = identify(*choices(3000), features=NAMES, groups="parameter")
    assert answer.selected == ("speed[go]", "left[left]")


def test_copies_are_left_to_rule_1():
    x, y = pairs()
    wide = np.column_stack([x, 2 * x[:, 0]])
    names = (*NAMES, "velocity")
    warning = (
        "speed and velocity cannot be told apart in this data: Rule 2 will select neither, use Rule 1 (combinatorial)."
    )
    one = identify(wide, y, features=names)
    assert one.warnings == (warning,) and one.selected == ("left",) and not one.fit.identifiable
    assert one.fit.smallest_eigenvalue == 0.0
    both = identify(wide, y, features=names, rule="combinatorial")
    assert both.supports == (("speed", "left"), ("left", "velocity"))
    assert (both.selected, both.undecided) == (("left",), ("speed", "velocity"))
    assert both.sentence == (
        "The agent uses 1 of 4: left; at least one of speed and velocity is needed too, but the data do not say which."
    )
    assert "Minimal supports that explain the data: {speed, left} or {left, velocity}." in str(both)
    with pytest.raises(InputError, match="2 supports"):
        _ = both.support


@pytest.mark.parametrize("rule", ["simplified", "combinatorial"])
@pytest.mark.parametrize("make", [pairs, choices])
def test_a_constant_feature_changes_nothing_but_a_warning(rule, make):
    x, y = make()
    said = {"rule": rule, "policy": "gaussian" if make is pairs else "boltzmann"}
    plain = identify(x, y, features=NAMES, **said)
    more = identify(np.column_stack([x, np.full(len(x), 0.1)]), y, features=(*NAMES, "height"), **said)
    assert more.warnings == (
        "height is constant in this data: it cannot be told apart from the intercept, and says nothing.",
    )
    assert more.supports == plain.supports
    for a, b in zip(plain.groups, more.groups, strict=False):
        assert a.statistic == pytest.approx(b.statistic, abs=1e-6)
        assert a.p_value == pytest.approx(b.p_value, rel=1e-5)
        if rule == "combinatorial":
            assert a.adjusted_p_value == pytest.approx(b.adjusted_p_value, rel=1e-5)
    last = more.groups[-1]
    assert (last.degrees_of_freedom, last.p_value, last.verdict) == (0, 1.0, "no evidence")
    assert last.statistic == pytest.approx(0.0, abs=1e-8)


def test_combinations_are_said_and_tested_with_one_threshold():
    x, y = pairs()
    names = (*NAMES, "sum")
    answer = identify(
        np.column_stack([x, x[:, 0] + x[:, 1]]), y, features=names, rule="combinatorial", policy="gaussian"
    )
    assert "speed, left and sum are linearly dependent" in answer.warnings[0]
    assert answer.supports == (("speed", "left"), ("speed", "sum"), ("left", "sum"))
    assert answer.selected == () and answer.undecided == ("speed", "left", "sum")


def test_always_controlled_groups_are_in_every_support_and_untested():
    answer = identify(*pairs(), features=NAMES, assume=("right",), rule="combinatorial")
    assert answer.selected == ("speed", "left", "right")
    assert [test.group for test in answer.groups] == ["speed", "left"]


def test_fixed_values_are_the_hypothesis():
    x, y = pairs(4000)
    answer = identify(x, y, features=NAMES, fixed={"speed": 0.5}, covariance=1.0)
    assert answer.selected == ("left",)


def test_a_space_too_large_to_exhaust_is_said_to_be():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 20))
    y = np.argmax(np.column_stack([x @ np.full(20, 0.2), np.zeros(500)]) + rng.gumbel(size=(500, 2)), axis=1)
    answer = identify(x, y, policy="boltzmann", rule="combinatorial")
    assert not answer.exhaustive and len(answer.supports) == 1
    assert "not exhaustive" in str(answer)
    assert set(answer.selected) == {t.group for t in answer.groups if t.rejected}
    assert all(t.adjusted_p_value > 0.05 for t in answer.groups if not t.rejected)
    assert all(t.adjusted_p_value <= 0.05 for t in answer.groups if t.rejected)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("make", [pairs, choices])
def test_verdicts_agree_with_adjusted_p_values(seed, make):
    x, y = make(120, seed)
    for rule in ("simplified", "combinatorial"):
        for paper_rule in (False, True):
            answer = identify(x, y, rule=rule, paper_rule=paper_rule)
            for test in answer.groups:
                assert test.rejected == (test.adjusted_p_value <= 0.05) == (test.verdict == "used")


def test_json_holds_what_was_promised():
    x, y = choices()
    level = np.zeros((800, 1))
    level[y == "go"] = np.random.default_rng(0).random((np.sum(y == "go"), 1)) < 0.3  # separated: an infinite effect
    answer = identify(np.hstack([x, level]), y, features=(*NAMES, "door"), test="wilks")
    found = json.loads(answer.to_json())
    promised = {
        "format", "selected", "undecided", "supports", "groups", "test", "policy", "data", "fit", "guarantee",
        "assumptions", "clusters", "exhaustive", "warnings", "version",
    }  # fmt: skip
    assert promised <= set(found)
    assert found["fit"]["separated"] and found["groups"][3]["coefficient_norm"] is None
    for field in ("group", "statistic", "degrees_of_freedom", "p_value", "adjusted_p_value", "rejected"):
        assert field in found["groups"][0]
    assert found["significance"] == 0.05 and found["correction"] == "holm"


def test_warnings_of_clipped_and_discrete_looking_actions():
    x, y = pairs(300)
    clipped = identify(x, np.clip(y, -1.0, 1.0), features=NAMES)
    assert sum("clipped at a bound" in w for w in clipped.warnings) == 2
    whole = identify(x, np.round(np.clip(y, -2, 2)), features=NAMES, policy="gaussian")
    assert any("use the Boltzmann policy" in w for w in whole.warnings)


def test_rich_text_and_html_escape_names():
    x, y = pairs()
    answer = identify(x, y, features=("<b>", "left", "right"))
    assert "&lt;b&gt;" in answer._repr_html_() and "<b>, " not in answer._repr_html_()


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"rule": "simple"}, "simplified"),
        ({"correction": "holms"}, "did you mean 'holm'"),
        ({"significance": 1.5}, "between 0 and 1"),
        ({"significance": "0.05"}, "between 0 and 1"),
        ({"policy": "probit"}, "policy must be"),
        ({"covariance": -1.0}, "positive definite"),
        ({"assume": ("wheel",)}, "wheel"),
        ({"groups": "features"}, "groups must be"),
        ({"firth": True}, "Boltzmann"),
    ],
)
def test_bad_settings_are_said_in_words(settings, found):
    with pytest.raises(InputError, match=found):
        identify(*pairs(50), features=NAMES, **settings)


def test_a_covariance_for_choices_is_refused():
    with pytest.raises(InputError, match="belongs to the Gaussian"):
        identify(*choices(), covariance=1.0)
    with pytest.raises(InputError, match="actions are missing"):
        identify(pairs()[0])


def test_rules_of_a_space_and_demonstrations_are_those_of_identify():
    x, y = pairs()
    data = Sample.from_arrays(x, y, features=NAMES)
    space = GaussianLinear(NAMES, data.action_names, 1.0)
    here = combinatorial(space, data, 0.01)
    there = identify(x, y, features=NAMES, covariance=1.0, rule="combinatorial", significance=0.01)
    assert here.to_dict() == there.to_dict()
