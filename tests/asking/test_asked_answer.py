"""What an answer of asking says: sentence, table, frame, JSON and guarantee."""

import json

import pytest

from policyspace import InputError
from policyspace.asking import AskedAnswer, AskedGroup, AskOptions, Cost, Effect, Witness, guarantee_of, verdict_of

GROUPS = (
    AskedGroup(
        "angular_velocity",
        "reacts",
        Effect(0.421, 0.408, 0.434),
        Effect(0.123, 0.113, 0.133),
        questions=4000,
        witness=Witness("angular_velocity", 3729, 0.445, -0.177, 0.86),
    ),
    AskedGroup("x", "barely", Effect(0.0004, 0.0003, 0.0005), Effect(0, 0, 0.01), questions=4000),
    AskedGroup("radio", "never", Effect(0, 0, 0.0048), Effect(0, 0, 0.0048), questions=4000, never_bound=0.0048),
)


def answer(way="inside", groups=GROUPS, **more):
    options = AskOptions()
    return AskedAnswer(
        groups, way, "its law can be computed", guarantee_of(way, options, groups), Cost(12000), options, "PPO", **more
    )


def test_the_sentence_and_the_table_fit_a_terminal():
    found = answer(environment="CartPole-v1", num_states=900)
    assert found.sentence == "Reacts to angular_velocity, barely to x; never to radio in 4 000 questions."
    assert (found.selected, found.barely, found.never) == (("angular_velocity",), ("x",), ("radio",))
    lines = found.table().text(ruled=True).splitlines()
    assert max(map(len, lines)) <= 80
    assert "42.1 ± 1.3" in lines[2] and "3729: 0.445 → -0.177, 86 %" in lines[2]
    assert lines[4].endswith("0 of 4 000, < 0.48 %")
    assert "never" in str(found) and "Guarantee (shown)" in str(found)


def test_verdicts_of_inputs_that_are_shown():
    assert (verdict_of(0.01), verdict_of(0.0099)) == ("reacts", "barely")


def test_plain_data():
    found = answer()
    data = json.loads(found.to_json())
    assert data["groups"][0]["witness"]["row"] == 3729 and data["guarantee"]["grade"] == "shown"
    assert data["groups"][2]["never_bound"] == 0.0048 and data["cost"] == {"questions": 12000, "steps": 0}
    frame = found.to_frame()
    assert frame["group"].to_list() == [group.group for group in GROUPS]
    assert frame["any_estimate"].to_list() == [0.421, 0.0004, 0.0]
    assert found.to_frame(pandas=True)["verdict"].tolist() == ["reacts", "barely", "never"]


@pytest.mark.parametrize(
    ("way", "words"),
    [("paired", "being asked leaves no trace in the agent"), ("played", "only the readings that were delivered")],
)
def test_guarantees_of_bets_name_their_condition(way, words):
    found = answer(way, (AskedGroup("x", "no evidence", None, evidence=3.2, questions=600),))
    assert f"no evidence for x after 600 {'steps' if way == 'played' else 'questions'}" in found.sentence
    assert found.guarantee.text.startswith("P(any false 'reacts') ≤ 5 %") and words in found.guarantee.text


def test_names_and_options_that_are_wrong():
    with pytest.raises(InputError, match="did you mean 'radio'"):
        answer().group("rado")
    with pytest.raises(InputError, match="nothing shows that the agent reacts to 'radio'"):
        answer().witness("radio")
    for wrong in ({"redraw": ()}, {"redraw": ("likely",)}, {"budget": 0}, {"memory": -1}, {"significance": 2}):
        with pytest.raises(InputError):
            AskOptions(**wrong)
