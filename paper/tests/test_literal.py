"""The table of the paper's constants: what the paper prints, and what is not its own."""

import pytest
from policyspace_paper.execution import Record, RunSize
from policyspace_paper.printed import AUTHORS, LITERAL, OURS, procedures, settings_panels

PRINTED = {
    "gridworld": {"learning_steps": 200, "learning_episodes": 250, "likelihood_steps": 1000, "likelihood_rate": 0.03,
                  "num_attempts": 3, "num_updates": 150, "penalty": 0.125, "significance": 0.01, "runs": 25},
    "continuous-gridworld": {"learning_steps": 100, "learning_episodes": 100, "num_attempts": 3, "num_updates": 100,
                             "penalty": 1e-6, "significance": 0.01, "runs": 25},
    "minigolf": {"learning_steps": 100, "learning_episodes": 100, "num_attempts": 10, "num_updates": 100,
                 "penalty": 0.25, "significance": 0.01, "runs": 100},
    "car": {"learning_steps": 100, "learning_episodes": 50, "likelihood_steps": 200, "likelihood_rate": 0.1,
            "significance": 0.1, "runs": 100},
}  # fmt: skip
"""The lists of hyperparameters in Appendix C, and the runs of the captions."""


@pytest.mark.parametrize("world", PRINTED)
def test_what_the_paper_prints_is_in_the_table_with_its_place(world):
    for name, value in PRINTED[world].items():
        stated = getattr(LITERAL[world], name)
        assert stated.value == value and not stated.where.startswith((AUTHORS, OURS))


@pytest.mark.parametrize("world", PRINTED)
def test_rates_that_it_does_not_print_are_not_its_own_and_do_not_fall(world):
    assert LITERAL[world].learning_rate.where.startswith((AUTHORS, OURS))
    assert LITERAL[world].learning["decay"] == 1.0
    assert LITERAL[world].objective["last_point"]
    assert (LITERAL[world].adam is None) == (LITERAL[world].likelihood.value == "closed form")


def test_both_columns_are_made_unless_only_the_literal_one_is_wanted():
    assert procedures(RunSize()) == ("literal", "ours")
    assert procedures(RunSize(as_published=True)) == ("literal",)


def test_the_page_shows_every_constant_of_the_literal_column():
    record = Record("car", {"procedure": "literal"}, "0", 1.0, {})
    (panel,) = settings_panels("car", "car", [record])
    assert ("likelihood rate", "0.1", "Appendix C.4") in panel.rows and (
        "num episodes",
        "10, 30, 100",
        OURS,
    ) in panel.rows
    assert any(row[0] == "learning rate" and "authors' code has 0.01" in row[2] for row in panel.rows)
    assert sum(row[0].startswith("departs: ") for row in panel.rows) == 2
    assert all(row[2].startswith((AUTHORS, OURS, "Appendix", "Section", "caption")) for row in panel.rows)
    (other,) = settings_panels("car", "car", [record], (7,))
    assert ("num episodes", "7", OURS) in other.rows and len(other.rows) == len(panel.rows)
    (none,) = settings_panels("car", "car", [record], ())
    assert [row for row in panel.rows if row not in none.rows] == [("num episodes", "10, 30, 100", OURS)]
    assert settings_panels("car", "car", [Record("car", {"procedure": "ours"}, "0", 1.0, {})]) == []
