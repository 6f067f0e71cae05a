"""The answer as sentence, table, HTML and JSON: the same content in each."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from policyspace import Identification, InputError, __version__, identify
from policyspace.answer import PolicyRecord
from policyspace.cli.identify import show

RNG = np.random.default_rng(3)
X = RNG.normal(size=(200, 3))
FORCE = X[:, 0] + RNG.normal(size=200)
TWINS = np.column_stack([X[:, 0], X[:, 0], X[:, 1]])
NAMES = ["speed", "<b>left</b>", "a & b"]


@pytest.fixture(scope="module")
def answer():
    return identify(X, FORCE, features=NAMES)


@pytest.fixture(scope="module")
def ambiguous():
    return identify(TWINS, FORCE, features=["left", "right", "radio"], rule="combinatorial")


def words(text):
    """What a text says, without its layout."""
    return text.replace("─", "").split()


def test_sentence(answer, ambiguous):
    assert answer.sentence == "The agent uses 1 of 3: speed."
    assert ambiguous.sentence == (
        "None of 3 is shown to be used; at least one of left and right is needed, but the data do not say which."
    )
    both = identify(np.column_stack([TWINS, X[:, 2]]), FORCE + X[:, 2], features=list("abcd"), rule="combinatorial")
    assert both.sentence.startswith("The agent uses 1 of 4: d; at least one of a and b is needed too, but")


def test_what_was_declared_is_not_claimed_as_found():
    """A group that is not tested is not shown to be controlled."""
    found = identify(X, FORCE, features=list("abc"), assume=["c"])
    assert found.sentence == "The agent uses 1 of 2: a, beside c (assumed)."
    assert found.selected == ("a", "c")
    nothing = identify(X, RNG.normal(size=200), features=list("abc"), assume=["a", "b"])
    assert nothing.sentence == "c is not shown to be used, beside a and b (assumed)."


def test_a_partial_search_claims_no_need(ambiguous):
    """What was not searched may be needed or not."""
    partial = replace(ambiguous, exhaustive=False)
    assert "needed" not in partial.sentence
    assert "undecided: left and right" in partial.sentence
    assert any("not exhaustive" in note for note in partial.notes())


def test_long_lists_are_cut():
    many = identify(RNG.normal(size=(400, 30)), RNG.normal(size=400), features=[f"s{i}" for i in range(30)])
    assert many.sentence.endswith("") and len(many.sentence) < 80
    assert many.table().rows[-1][0] == "and 26 others"


def test_screen_and_text_say_the_same(answer, ambiguous, capsys):
    for result in (answer, ambiguous, identify(X, FORCE > 0, features=NAMES, groups="parameter")):
        show(result)
        assert words(capsys.readouterr().out) == words(str(result))


def test_single_parameters_keep_their_brackets(capsys):
    labels = np.array(["brake", "coast", "go"])[RNG.integers(0, 3, 200)]
    show(identify(X, labels, features=["[bold]x", "y[/]", ":smile:"], groups="parameter"))
    out = capsys.readouterr().out
    for name in ("[bold]x[brake]", "y[/][coast]", ":smile:[brake]"):
        assert name in out


class Checker(HTMLParser):
    """Every tag closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + " "


def test_html(answer, ambiguous):
    for result in (answer, ambiguous):
        checker = Checker()
        checker.feed(result._repr_html_())
        assert checker.open == []
        assert "b" in checker.seen  # the sentence
        assert checker.seen.count("tr") == 1 + len(result.groups)
        assert words(checker.text) == words(str(result))  # escaped names come back whole


def test_support(answer, ambiguous):
    assert answer.support == ("speed",)
    assert ambiguous.supports == (("left",), ("right",))
    with pytest.raises(InputError, match=r"2 supports \({left}; {right}\)"):
        _ = ambiguous.support


FIELDS = {
    "format", "answer", "selected", "undecided", "supports", "groups", "test", "policy", "data", "fit", "guarantee",
    "no_guarantee", "assumptions", "clusters", "rule", "significance", "correction", "exhaustive", "warnings",
    "ground_truth", "version",
}  # fmt: skip
TEST_FIELDS = {"group", "statistic", "degrees_of_freedom", "p_value", "adjusted_p_value", "rejected"}


def test_json(answer, ambiguous):
    for result in (answer, ambiguous):
        found = json.loads(result.to_json())
        assert found.keys() == FIELDS and found["format"] == 2
        assert all(test.keys() >= TEST_FIELDS for test in found["groups"])
        assert found["version"] == __version__
        assert found["supports"] == [list(support) for support in result.supports]
        assert found["fit"]["log_likelihood"] == result.fit.log_likelihood
        assert [test["p_value"] for test in found["groups"]] == [test.p_value for test in result.groups]
    assert json.loads(ambiguous.to_json())["undecided"] == ["left", "right"]
    assert not json.loads(ambiguous.to_json())["fit"]["identifiable"]


def test_settings_say_how_the_answer_was_made():
    made = identify(
        X,
        FORCE,
        features=list("abc"),
        covariance=2.0,
        assume=["b"],
        fixed={"c": 0.5},
        intercept=False,
        significance=0.01,
    )
    assert made.significance == 0.01
    assert made.policy == PolicyRecord(
        family="GaussianLinear",
        groups=("a", "c"),
        assumed_groups=("b",),
        covariance=((2.0,),),
        intercept=False,
        fixed=(0.0, 0.0, 0.5),
        stated=True,
    )
    assert made.data.features == ("a", "b", "c") and made.data.action_type == "continuous"


def test_what_is_infinite_is_null():
    """Separated data: the effect diverges, in JSON as null, never as a number."""
    result = identify(X, np.where(X[:, 0] > 0, "go", "stop"), features=list("abc"), test="wilks")
    assert result.fit.separated
    assert result.groups[0].coefficient_norm == np.inf
    found = json.loads(result.to_json(), parse_constant=lambda text: pytest.fail(f"found {text}"))
    assert found["groups"][0]["coefficient_norm"] is None
    assert None in found["fit"]["parameters"]["go"]
    assert any("separation" in warning for warning in found["warnings"])


def test_truth_is_told_only_of_the_groups_it_is_about():
    from policyspace import Sample

    labels = np.where(X[:, 0] + RNG.logistic(size=200) > 0, "go", "stop")
    data = Sample.from_arrays(X, labels, list("abc"), origin={"ground_truth": ["a"]})
    assert identify(data).ground_truth == ("a",)
    assert "✓" in str(identify(data))
    assert identify(data, groups={"pair": ["a", "b"]}).ground_truth is None
    for damaged in ("a", [1], {"a": 1}, ["zzz"]):
        other = Sample.from_arrays(X, labels, list("abc"), origin={"ground_truth": damaged})
        assert identify(other).ground_truth is None


def test_a_group_is_in_the_answer_exactly_when_its_p_value_says_so():
    result = identify(X, FORCE, features=list("abc"))
    assert [t.rejected for t in result.groups] == [t.adjusted_p_value <= 0.05 for t in result.groups]
    assert result.selected == tuple(t.group for t in result.groups if t.verdict == "used")
    assert isinstance(result, Identification)
