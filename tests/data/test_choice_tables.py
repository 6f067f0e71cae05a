"""Tables of choices, wide and long: the same pairs, and one sentence for everything that is wrong."""

import numpy as np
import polars
import pytest

from policyspace import ChoiceLinear, InputError, LongFormat, identify, read, write
from policyspace.data import AlternativeColumns, load_sample

MODES = ("bus", "car", "train")
LONG = LongFormat("trip", "chosen", "mode")


def trips(num_rows=120):
    """One row a choice; the car is not always there."""
    rng = np.random.default_rng(4)
    cost, time = rng.gamma(4.0, size=(2, num_rows, 3)).round(2)
    there = np.column_stack([np.ones(num_rows), rng.random(num_rows) < 0.7, np.ones(num_rows)]).astype(int)
    utility = np.where(there, -cost - 0.4 * time + rng.gumbel(size=(num_rows, 3)), -np.inf)
    columns = {"mode": np.array(MODES)[utility.argmax(axis=1)], "income": rng.normal(size=num_rows).round(2)}
    for name, values in (("cost", cost), ("time", time), ("av", there)):
        columns |= {f"{name}_{mode}": values[:, j] for j, mode in enumerate(MODES)}
    return polars.DataFrame(columns)


def long_form(wide):
    rows = [
        {"trip": i, "mode": m, "chosen": m == row["mode"], "income": row["income"]}
        | {name: row[f"{name}_{m}"] for name in ("cost", "time")}
        for i, row in enumerate(wide.to_dicts())
        for m in MODES
        if row[f"av_{m}"]
    ]
    return polars.DataFrame(rows)


WIDE = AlternativeColumns({"cost": "cost_*", "time": "time_*"}, "av_*")


def wide_pairs(frame, choices=WIDE, **words):
    return load_sample(frame, "mode", choices=choices, **words)


def long_pairs(frame, attributes=("cost", "time"), **words):
    return load_sample(frame, choices=AlternativeColumns(attributes, None, LONG), **words)


def test_wide_and_long_tables_give_the_same_answer():
    wide = trips()
    one = identify(wide, "mode", features=["income"], policy=ChoiceLinear(attributes=WIDE.attributes, available="av_*"))
    shuffled = long_form(wide).sample(fraction=1.0, shuffle=True, seed=1)
    for frame in (long_form(wide), shuffled):
        other = identify(frame, features=["income"], policy=ChoiceLinear(long=LONG), test=one.test.name)
        assert other.fit.log_likelihood == pytest.approx(one.fit.log_likelihood, abs=1e-8)
        ratios = {t.group: (t.statistic, t.degrees_of_freedom) for t in one.groups}
        assert {t.group: (pytest.approx(t.statistic, abs=1e-6), t.degrees_of_freedom) for t in other.groups} == ratios


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_a_file_of_choices_knows_what_it_is(tmp_path, suffix):
    data = long_pairs(long_form(trips()), features=["income"])
    write(data, tmp_path / f"trips{suffix}")
    again = read(tmp_path / f"trips{suffix}")
    assert (again.features == data.features).all() and again.origin.policy == data.origin.policy
    assert identify(again, test="wilks").fit.log_likelihood == identify(data, test="wilks").fit.log_likelihood


def test_a_pandas_table_and_columns_by_list_or_by_alternative():
    pytest.importorskip("pandas")
    wide = trips()
    names = [f"cost_{m}" for m in MODES]
    by_list, by_name = ({"cost": names}, {"cost": dict(zip(MODES, names, strict=True))})
    answers = [
        identify(
            wide.to_pandas(), "mode", policy=ChoiceLinear(attributes=a, available="av_*"), test="wilks"
        ).fit.log_likelihood
        for a in (by_list, by_name, {"cost": "cost_*"})
    ]
    assert answers[0] == answers[1] == answers[2]


def test_the_reference_changes_no_ratio():
    answers = [
        identify(trips(), "mode", features=["income"], reference=reference, test="wilks",
                 policy=ChoiceLinear(attributes=WIDE.attributes, available="av_*"))
        for reference in (None, "car", "bus")
    ]  # fmt: skip
    for answer in answers[1:]:
        assert [t.statistic for t in answer.groups] == pytest.approx([t.statistic for t in answers[0].groups], abs=1e-6)


def test_attributes_of_what_is_not_available_may_be_missing():
    wide = trips()
    gone = wide["av_car"] == 0
    holes = wide.with_columns(cost_car=polars.when(gone).then(None).otherwise(wide["cost_car"]))
    assert gone.any()
    filled = wide_pairs(holes)
    assert wide_pairs(wide).actions.tolist() == filled.actions.tolist()
    assert filled.features[:, filled.names.index("cost_car")][gone.to_numpy()].tolist() == [0.0] * gone.sum()


def test_whole_choices_are_dropped_for_a_missing_value():
    frame = long_form(trips())
    holes = frame.with_columns(cost=polars.when(polars.int_range(len(frame)) == 5).then(None).otherwise(frame["cost"]))
    with pytest.raises(InputError, match="must be complete"):
        long_pairs(holes)
    data = long_pairs(holes, missing="drop")
    assert data.num_rows == 119 and list(data.origin.notes) == ["choices dropped for missing values: 1."]


def test_choices_without_a_second_alternative_are_counted():
    wide = trips().with_columns(av_bus=polars.lit(0), av_train=polars.lit(0), mode=polars.lit("bus"))
    mixed = polars.concat([trips(), wide.with_columns(av_bus=polars.lit(1))[:30].cast(trips().schema)])
    data = wide_pairs(mixed.with_columns(av_car=polars.when(polars.int_range(150) < 120).then("av_car").otherwise(0)))
    assert list(data.origin.notes) == ["30 of 150 choices have one available alternative, and tell nothing."]


def changed(frame, row, **values):
    """The table with other values in one row."""
    place = polars.int_range(len(frame)) == row
    return frame.with_columns(
        **{k: polars.when(place).then(polars.lit(v)).otherwise(polars.col(k)) for k, v in values.items()}
    )


WRONG_WIDE = {
    "what is chosen must be available": lambda w: (w.with_columns(av_bus=polars.lit(0)), WIDE),
    "must say yes or no": lambda w: (w.with_columns(av_bus=polars.lit(3)), WIDE),
    "must have a column for every alternative": lambda w: (w.drop("cost_car"), WIDE),
    "must have columns of the alternatives": lambda w: (w.with_columns(cost_plane=1.0), WIDE),
    "one column an alternative": lambda w: (w, AlternativeColumns({"cost": ["cost_bus"]})),
    "which is no alternative": lambda w: (w, AlternativeColumns({"cost": {"plane": "cost_bus"}})),
    "which does not exist": lambda w: (w, AlternativeColumns({"cost": {"bus": "cost_buss"}})),
    "a pattern with one star": lambda w: (w, AlternativeColumns({"cost": "cost"})),
    "must be numbers": lambda w: (w.with_columns(cost_bus=polars.lit("cheap")), WIDE),
    "nothing can be identified from one alternative": lambda w: (w.filter(polars.col("mode") == "bus"), WIDE),
    "every column has one role": lambda w: (w, AlternativeColumns({"cost": "cost_*"}, "cost_*")),
}


@pytest.mark.parametrize("sentence", WRONG_WIDE)
def test_one_sentence_for_a_wrong_wide_table(sentence):
    frame, choices = WRONG_WIDE[sentence](trips())
    with pytest.raises(InputError, match=sentence):
        wide_pairs(frame, choices)


WRONG_LONG = {
    r"one chosen alternative, found none in choice '0' \(120 such choices\)": lambda f: f.with_columns(chosen=False),
    "one chosen alternative, found [23] in choice '0'": lambda f: f.with_columns(chosen=True),
    "occurs once in a choice, found 'bus' again": lambda f: polars.concat([f, f.filter(mode="bus", chosen=False)[:1]]),
    "nothing can be identified without a second one": lambda f: f.filter("chosen"),
    "describes the whole choice": lambda f: changed(f, 1, income=99.0),
    "must say yes or no": lambda f: f.with_columns(chosen=polars.lit("maybe")),
    "there is no column 'trip'": lambda f: f.drop("trip"),
}


@pytest.mark.parametrize("sentence", WRONG_LONG)
def test_one_sentence_for_a_wrong_long_table(sentence):
    with pytest.raises(InputError, match=sentence):
        long_pairs(WRONG_LONG[sentence](long_form(trips())), features=["income"])


def test_what_a_long_table_leaves_open_is_said():
    frame = long_form(trips())
    with pytest.raises(InputError, match="found the action column 'mode' too"):
        load_sample(frame, "mode", choices=AlternativeColumns(None, None, LONG))
    with pytest.raises(InputError, match="need alternatives with names"):
        load_sample(
            frame, features=["income"], choices=AlternativeColumns(["cost"], None, LongFormat("trip", "chosen"))
        )
    with pytest.raises(InputError, match="no column differs"):
        load_sample(frame.drop("cost", "time"), choices=AlternativeColumns(None, None, LONG))
    with pytest.raises(InputError, match="which columns hold them"):
        AlternativeColumns(["cost"])
    with pytest.raises(InputError, match="are columns"):
        AlternativeColumns({"cost": "cost_*"}, None, LONG)


def test_a_column_of_a_long_table_says_what_is_available():
    frame = long_form(trips())
    more = polars.concat([frame.with_columns(there=True), frame.filter(~polars.col("chosen")).with_columns(
        mode=polars.lit("plane"), there=False)[::3].unique("trip", maintain_order=True)])  # fmt: skip
    data = load_sample(more, choices=AlternativeColumns(["cost", "time"], "there", LONG))
    assert data.action_names == MODES
    wrong = more.with_columns(there=polars.lit(False))
    with pytest.raises(InputError, match=r"what is chosen must be available, found '(bus|car|train)'"):
        load_sample(wrong, choices=AlternativeColumns(["cost"], "there", LONG))


def test_alternatives_without_names_have_attributes_alone():
    frame = long_form(trips()).sort("trip", "chosen", descending=[False, True])  # what is chosen comes first
    answer = identify(
        frame, policy=ChoiceLinear(attributes=["cost", "time"], long=LongFormat("trip", "chosen")), test="wilks"
    )
    assert answer.selected == ("cost", "time") and answer.fit.num_parameters == 2
    again = identify(
        frame[::-1], policy=ChoiceLinear(attributes=["cost", "time"], long=LongFormat("trip", "chosen")), test="wilks"
    )
    assert again.fit.log_likelihood == pytest.approx(answer.fit.log_likelihood, abs=1e-9)
