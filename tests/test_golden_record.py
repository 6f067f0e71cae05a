"""Today's answers are those of the record, problem by problem; `python -m tests.golden_record` makes it anew."""

import pytest
from golden_record.record import differences, plain, read
from golden_record.sections import SECTIONS


def problems():
    for section, content in SECTIONS.items():
        marks = [pytest.mark.slow] * content.slow + [pytest.mark.quick] * content.quick
        for name in content.problems:
            yield pytest.param(section, name, marks=marks, id=f"{section}: {name}")


@pytest.mark.parametrize(("section", "name"), list(problems()))
def test_answers_are_those_of_the_record(section, name, tmp_path):
    content = SECTIONS[section]
    found = plain(content.problems[name](tmp_path))
    different = differences(found, read(section)[name], content.rtol, content.atol)
    assert not different, "\n".join(different)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_record_holds_no_other_problems(section):
    assert list(read(section)) == list(SECTIONS[section].problems)


def test_a_changed_answer_shows():
    recorded = {"supports": [["near"]], "tests": {"near": {"p_value": 0.25, "rejected": False, "effect": None}}}
    row = recorded["tests"]["near"]
    assert differences(recorded, recorded, 1e-6, 1e-7) == []
    assert differences(recorded | {"tests": {"near": row | {"p_value": 0.25 + 1e-8}}}, recorded, 1e-6, 1e-7) == []
    for changed in ({"p_value": 0.250001}, {"p_value": None}, {"rejected": True}, {"effect": 0.0}, {"new": 1}):
        assert differences(recorded | {"tests": {"near": row | changed}}, recorded, 1e-6, 1e-7)
    assert differences(recorded | {"supports": [["near"], []]}, recorded, 1e-6, 1e-7)
