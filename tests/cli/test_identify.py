"""`policyspace identify` on good input: every way in gives the same answer, and every option does what it says."""

import json
from pathlib import Path

import numpy as np
import polars
import pytest

import policyspace

RNG = np.random.default_rng(7)
N = 240
SPEED, LEFT, RADIO = RNG.normal(size=(3, N)).round(3)
ROAD = RNG.choice(["dry", "icy", "wet"], N)
SCORES = np.column_stack([1.2 * SPEED - 0.8 * (ROAD == "icy"), 0.9 * LEFT, np.zeros(N)]) + RNG.gumbel(size=(N, 3))
MOVE = np.array(["brake", "coast", "go"])[SCORES.argmax(axis=1)]
STEER, GAS = (SPEED + RNG.normal(size=N)).round(3), (LEFT + RNG.normal(size=N)).round(3)
EPISODE, COUNT = np.arange(N) // 20, RNG.integers(1, 4, N)
FRAME = polars.DataFrame(
    {
        "speed": SPEED, "left": LEFT, "radio": RADIO, "road": ROAD, "move": MOVE, "steer": STEER, "gas": GAS,
        "episode": EPISODE, "count": COUNT,
    }
)  # fmt: skip
NUMBERS = ["speed", "left", "radio"]
ROLES = ("--actions", "move", "--features", "speed,left,radio")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.write_csv("log.csv")
    return tmp_path


@pytest.fixture
def run(command_line):
    def command(*arguments):
        code, out, err = command_line("identify", *arguments)
        assert (code, err) == (0, "")
        return out

    return command


@pytest.fixture
def answer(run):
    return lambda *arguments: json.loads(run(*arguments, "--json", "-"))


def same(found, wanted):
    """Equal in every field, numbers to rounding."""
    assert type(found) is type(wanted)
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for name in wanted:
            same(found[name], wanted[name])
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-7, abs=1e-9)
    else:
        assert found == wanted


def from_python(*arguments, **settings):
    return json.loads(policyspace.identify(*arguments, **settings).to_json())


def test_every_format_and_python_agree(answer):
    wanted = answer("log.csv", *ROLES)
    assert wanted["selected"] == ["speed", "left"]
    FRAME.write_parquet("log.parquet")
    FRAME.write_ipc("log.feather")
    FRAME.write_csv("log.tsv", separator="\t")
    np.savez("log.npz", **{name: FRAME[name].to_numpy() for name in [*NUMBERS, "count"]}, move=MOVE)
    np.savez("roles.npz", features=FRAME[NUMBERS].to_numpy(), actions=MOVE, names=NUMBERS)
    for name in ("log.parquet", "log.feather", "log.tsv", "log.npz"):
        assert answer(name, *ROLES) == wanted
    assert answer("roles.npz") == wanted
    assert from_python(FRAME[NUMBERS].to_numpy(), MOVE, features=NUMBERS) == wanted
    assert from_python(FRAME, "move", features=NUMBERS) == wanted
    assert from_python(FRAME.to_pandas(), "move", features=NUMBERS) == wanted
    assert from_python(FRAME.to_arrow(), "move", features=NUMBERS) == wanted
    assert from_python("log.csv", "move", features=NUMBERS) == wanted


def test_several_continuous_actions_agree(answer):
    roles = ("--actions", "steer,gas", "--features", "speed,left,radio")
    wanted = answer("log.csv", *roles)
    assert wanted["fit"]["num_parameters"] == 8
    assert wanted["data"]["actions"] == ["steer", "gas"]
    FRAME.write_parquet("log.parquet")
    assert answer("log.parquet", *roles) == wanted
    made = from_python(FRAME, ["steer", "gas"], features=NUMBERS)
    assert made == wanted
    repeated = ("--actions", "steer", "--actions", "gas", "--features", "speed,left", "--features", "radio")
    assert answer("log.csv", *repeated) == wanted


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet", ".feather", ".npz"])
def test_a_file_of_ours_needs_no_options(suffix, answer):
    data = policyspace.Sample.from_frame(
        FRAME, "move", ["speed", "left", "radio", "road"], episodes="episode", weights="count", reference="coast"
    )
    policyspace.write(data, f"ours{suffix}")
    found = answer(f"ours{suffix}")
    assert found == from_python(data)
    assert found["data"]["actions"][-1] == "coast"
    assert found["data"]["num_episodes"] == 12
    assert [test["group"] for test in found["groups"]] == ["speed", "left", "radio", "road"]


def test_the_same_input_gives_the_same_bytes(run):
    for suffix in ("png", "svg", "pdf", "json"):
        option = "--json" if suffix == "json" else "--plot"
        for name in ("first", "second"):
            out = run("log.csv", *ROLES, option, f"{name}.{suffix}")
            assert out.endswith(f"Saved {name}.{suffix}\n")
        assert Path(f"first.{suffix}").read_bytes() == Path(f"second.{suffix}").read_bytes()


def test_a_new_file_replaces_the_old_one(run, folder):
    Path("answer.json").write_text("old")
    run("log.csv", *ROLES, "--json", "answer.json")
    assert json.loads(Path("answer.json").read_text())["selected"] == ["speed", "left"]
    assert sorted(path.name for path in folder.iterdir()) == ["answer.json", "log.csv"]


@pytest.mark.parametrize(
    ("options", "policy", "heading"),
    [
        ((), None, "group verdict effect 95 % interval adjusted p 2·log E df"),
        (("--policy", "boltzmann"), "boltzmann", "group verdict effect 95 % interval adjusted p λ df"),
    ],
)
def test_the_printed_answer(options, policy, heading, run):
    lines = run("log.csv", *ROLES, *options).splitlines()
    result = policyspace.identify(FRAME, "move", features=NUMBERS, policy=policy)
    assert lines[0] == result.sentence == "The agent uses 2 of 3: speed and left."
    assert lines[1].split() == heading.split()
    assert [line.split()[0] for line in lines[2:5]] == [one.group for one in result.by_effect]
    assert lines[5:] == result.notes()


def test_the_reference_changes_no_answer(answer):
    one, other = (answer("log.csv", *ROLES, "--reference", label) for label in ("brake", "go"))
    assert one["data"]["actions"] == ["coast", "go", "brake"]
    for a, b in zip(one["groups"], other["groups"], strict=True):
        assert a["statistic"] == pytest.approx(b["statistic"], rel=1e-6)
    assert one["supports"] == other["supports"]


def test_whole_numbers_are_labels_unless_said_otherwise(answer):
    codes = polars.Series("move", np.searchsorted(["brake", "coast", "go"], MOVE))
    FRAME.with_columns(codes).write_csv("codes.csv")
    by_code, by_name = answer("codes.csv", *ROLES), answer("log.csv", *ROLES)
    assert by_code["data"]["actions"] == ["0", "1", "2"]
    assert [t["statistic"] for t in by_code["groups"]] == [t["statistic"] for t in by_name["groups"]]
    as_number = answer("codes.csv", *ROLES, "--policy", "gaussian")
    assert as_number["policy"]["family"] == "GaussianLinear"
    assert any("--policy boltzmann" in warning for warning in as_number["warnings"])


def test_a_categorical_column_is_one_group(answer):
    found = answer("log.csv", "--actions", "move", "--features", "speed,road", "--policy", "boltzmann")
    assert [test["group"] for test in found["groups"]] == ["speed", "road"]
    assert found["groups"][1]["degrees_of_freedom"] == 4  # two of three levels, two of three actions
    by_hand = FRAME.select("speed", dry=ROAD == "dry", icy=ROAD == "icy").to_numpy().astype(float)
    roles = {"features": ["speed", "dry", "icy"], "groups": {"road": ["dry", "icy"]}}
    wanted = from_python(by_hand, MOVE, policy="boltzmann", **roles)
    assert [t["statistic"] for t in found["groups"]] == pytest.approx([t["statistic"] for t in wanted["groups"]])


@pytest.mark.parametrize(
    "roles", [ROLES, ("--actions", "steer", "--features", "speed,left,radio"), (*ROLES, "--rule", "combinatorial")]
)
def test_a_weight_is_a_number_of_rows(roles, answer):
    repeated = FRAME[np.repeat(np.arange(N), COUNT)]
    repeated.write_csv("repeated.csv")
    roles = (*roles, "--test", "wilks")
    weighted, wanted = answer("log.csv", *roles, "--weights", "count"), answer("repeated.csv", *roles)
    assert (weighted["data"]["num_rows"], wanted["data"]["num_rows"]) == (int(COUNT.sum()), int(COUNT.sum()))
    assert wanted["guarantee"] is None  # copies of rows are no independent decisions, and that is seen
    for found in (weighted, wanted):
        for name in ("data", "guarantee", "no_guarantee", "assumptions", "clusters"):
            del found[name]
        found["groups"] = [{k: v for k, v in t.items() if not k.endswith("_effect")} for t in found["groups"]]
    same(weighted, wanted)


def test_features_are_the_other_columns_by_default(answer):
    FRAME[["speed", "left", "move", "episode", "count"]].write_csv("few.csv")
    found = answer("few.csv", "--actions", "move", "--episodes", "episode", "--weights", "count")
    assert found["data"]["features"] == ["speed", "left"]


def test_groups_of_single_parameters(answer, run):
    found = answer("log.csv", *ROLES, "--groups", "parameter")
    assert [t["group"] for t in found["groups"]] == [f"{x}[{a}]" for x in NUMBERS for a in ("brake", "coast")]
    assert {t["degrees_of_freedom"] for t in found["groups"]} == {1}
    assert "speed[brake]" in run("log.csv", *ROLES, "--groups", "parameter")


def test_groups_from_a_file(answer):
    Path("groups.toml").write_text('assume = ["radio"]\n[groups]\ndriving = ["speed", "left"]\n[fixed]\nroad = 0.0\n')
    found = answer("log.csv", "--actions", "move", "--features", "speed,left,radio,road", "--groups", "groups.toml")
    assert [t["group"] for t in found["groups"]] == ["driving", "road"]
    assert found["policy"]["assumed_groups"] == ["intercept", "radio"]
    assert found["selected"][:2] == ["driving", "radio"]


def test_fixed_values_shift_the_hypothesis(answer):
    """Testing θ_speed = ½ is testing 0 after taking ½·speed off the action."""
    Path("groups.toml").write_text("[fixed]\nspeed = 0.5\n")
    roles = ("--features", "speed,left,radio", "--covariance", "1")
    found = answer("log.csv", "--actions", "steer", *roles, "--groups", "groups.toml")
    FRAME.with_columns(steer=polars.col("steer") - 0.5 * polars.col("speed")).write_csv("moved.csv")
    wanted = answer("moved.csv", "--actions", "steer", *roles)
    assert [t["statistic"] for t in found["groups"]] == pytest.approx([t["statistic"] for t in wanted["groups"]])
    assert found["policy"]["fixed"] == [0.0, 0.5, 0.0, 0.0]


def test_a_fixed_value_far_away_is_rejected_and_harms_no_other_test(answer):
    Path("groups.toml").write_text("[fixed]\nspeed = 500\n")
    roles = ("log.csv", *ROLES, "--policy", "boltzmann")
    found, plain = answer(*roles, "--groups", "groups.toml"), answer(*roles)
    assert found["groups"][0]["rejected"]
    for one, other in zip(found["groups"][1:], plain["groups"][1:], strict=True):
        assert one["statistic"] == pytest.approx(other["statistic"], rel=1e-5)


def test_always_is_not_tested(answer):
    found = answer("log.csv", *ROLES, "--assume", "radio")
    assert [t["group"] for t in found["groups"]] == ["speed", "left"]
    assert found["selected"] == ["speed", "left", "radio"]


def test_corrections(answer):
    p_values = np.array([t["p_value"] for t in answer("log.csv", *ROLES)["groups"]])
    from statsmodels.stats.multitest import multipletests

    for correction, name in (("holm", "holm"), ("bonferroni", "bonferroni"), ("bh", "fdr_bh")):
        found = answer("log.csv", *ROLES, "--correction", correction)
        wanted = multipletests(p_values, method=name)[1]
        assert [t["adjusted_p_value"] for t in found["groups"]] == pytest.approx(wanted.tolist(), rel=1e-12)
    paper = answer("log.csv", *ROLES, "--paper-rule")
    assert paper["groups"] == answer("log.csv", *ROLES, "--correction", "bonferroni")["groups"]


def test_the_paper_combinatorial_rule(answer):
    roles = ("log.csv", *ROLES, "--policy", "boltzmann", "--rule", "combinatorial")
    found = answer(*roles, "--paper-rule")
    assert found["correction"] == "Bonferroni over all supports"
    plain = answer(*roles)
    assert found["supports"] == plain["supports"] == [["speed", "left"]]
    for strict, closed in zip(found["groups"], plain["groups"], strict=True):
        assert strict["adjusted_p_value"] == pytest.approx(min(1.0, 8 * closed["adjusted_p_value"]), rel=1e-6)


def test_significance(answer):
    strict = answer("log.csv", *ROLES, "--significance", "1e-30")
    assert strict["selected"] == []
    assert strict["answer"].startswith("None of 3 is shown to be used")


def test_covariance_in_every_form(answer):
    roles = ("--actions", "steer,gas", "--features", "speed,left,radio", "--covariance")
    np.savetxt("c.csv", np.diag([2.0, 3.0]), delimiter=",")
    np.savetxt("c.txt", np.diag([2.0, 3.0]))
    np.save("c.npy", np.diag([2.0, 3.0]))
    Path("c.json").write_text("[[2, 0], [0, 3]]")
    wanted = answer("log.csv", *roles, "2,3")
    assert wanted["policy"]["covariance"] == [[2.0, 0.0], [0.0, 3.0]]
    for form in ("c.csv", "c.txt", "c.npy", "c.json"):
        assert answer("log.csv", *roles, form) == wanted
    assert answer("log.csv", *roles, "estimate")["policy"]["covariance"] == "estimate"


def test_firth_is_finite_where_the_agent_is_too_regular(answer):
    FRAME.with_columns(move=np.where(SPEED > 0, "go", "stop")).write_csv("regular.csv")
    plain = answer("regular.csv", *ROLES, "--test", "wilks")
    firth = answer("regular.csv", *ROLES, "--firth")
    assert plain["fit"]["separated"]
    assert plain["groups"][0]["coefficient_norm"] is None
    assert plain["selected"] == firth["selected"] == ["speed"]
    assert firth["groups"][0]["coefficient_norm"] > 0


def test_no_intercept(answer):
    found = answer("log.csv", *ROLES, "--no-intercept")
    assert (found["fit"]["num_parameters"], found["policy"]["intercept"]) == (6, False)


def test_a_label_for_every_row_has_a_finite_ratio(answer):
    """60 labels played once each: the whole space explains them all, so λ = 2·60·log 60 for the only feature."""
    polars.DataFrame({"x": SPEED[:60], "move": np.arange(60)}).write_csv("once.csv")
    found = answer("once.csv", "--actions", "move", "--policy", "boltzmann", "--test", "wilks")
    assert found["fit"]["separated"]
    assert found["groups"][0]["statistic"] == pytest.approx(120 * np.log(60), rel=1e-6)


def test_constant_and_duplicated_features_are_answered_with_a_warning(answer):
    FRAME.with_columns(flat=polars.lit(5.0)).write_csv("flat.csv")
    flat = answer("flat.csv", "--actions", "move", "--features", "speed,flat")
    assert flat["selected"] == ["speed"]
    assert any("flat is constant" in warning for warning in flat["warnings"])
    FRAME.with_columns(again=polars.col("speed")).write_csv("twins.csv")
    twins = ("twins.csv", "--actions", "move", "--features", "speed,again")
    assert any("speed and again cannot be told apart" in warning for warning in answer(*twins)["warnings"])
    both = answer(*twins, "--rule", "combinatorial")
    assert both["supports"] == [["speed"], ["again"]]
    assert (both["selected"], both["undecided"], both["fit"]["identifiable"]) == ([], ["speed", "again"], False)


def test_names_with_commas_and_spaces(answer):
    text = FRAME[["speed", "left", "move"]].write_csv().replace("speed,left,move", 'speed, "left, or so" , move', 1)
    text = text.replace('speed, "left', 'speed,"left')
    Path("spaced.csv").write_text(text)
    found = answer("spaced.csv", "--actions", "move", "--features", 'speed,"left, or so"')
    assert [t["group"] for t in found["groups"]] == ["speed", "left, or so"]


def test_json_and_plot_together(run, folder):
    out = run("log.csv", *ROLES, "--json", "-", "--plot", "answer.svg")
    assert json.loads(out)["selected"] == ["speed", "left"]
    assert Path("answer.svg").is_file()
