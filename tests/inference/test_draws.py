"""Readings that were drawn at random: bets on them, draws made again, logs that keep them, and stimuli that were drawn."""

import itertools
import json
from dataclasses import replace
from math import factorial

import numpy as np
import polars
import pytest

import policyspace
from policyspace import InputError, Sample
from policyspace.data import DrawRecord, Draws, Origin, draws_of
from policyspace.inference import (
    DrawBets,
    DrawnRows,
    OnlinePredictor,
    assigned_rows,
    closed_e_values,
    columns_of,
    e_benjamini_hochberg,
    log_e_values,
    randomisation_p_value,
    randomisation_p_values,
    rows_with_draws,
    starts_of,
)
from tests.some_draws import drawn_rows, most_false


def brute_force(wealth):
    """The smallest average over all sets that hold each group."""
    everyone = range(len(wealth))
    sets = [s for size in range(1, len(wealth) + 1) for s in itertools.combinations(everyone, size)]
    return [min(np.mean(wealth[list(s)]) for s in sets if j in s) for j in everyone]


@pytest.mark.parametrize("seed", range(8))
def test_closed_testing_is_that_over_all_sets(seed):
    rng = np.random.default_rng(seed)
    wealth = np.exp(rng.normal(0, 3, size=1 + seed))
    wealth[: seed // 3] = wealth[-1]  # ties
    np.testing.assert_allclose(closed_e_values(np.log(wealth)), brute_force(wealth), rtol=1e-12)


def test_closed_testing_survives_wealth_beyond_all_numbers():
    found = closed_e_values(np.array([-np.inf, 1e4, 0.0]))
    assert found[1] > 1e200 and found[0] == 0 and np.isfinite(found).all()


@pytest.mark.parametrize("seed", range(5))
def test_e_benjamini_hochberg_finds_the_largest_set_that_pays_for_itself(seed):
    rng = np.random.default_rng(seed)
    wealth, level = np.exp(rng.normal(2, 2, size=9)), 0.1
    sizes = [k for k in range(1, 10) if np.sum(wealth >= 9 / (level * k)) >= k]
    expected = wealth >= 9 / (level * max(sizes)) if sizes else np.zeros(9, dtype=bool)
    np.testing.assert_array_equal(e_benjamini_hochberg(np.log(wealth), level), expected)


def test_the_mean_of_a_bet_is_one_whatever_is_predicted():
    rng = np.random.default_rng(0)
    log_f, chances = rng.normal(0, 5, size=(50, 4)), rng.dirichlet(np.ones(4), size=50)
    e = [np.exp(log_e_values(log_f, chances, np.full(50, k))) for k in range(4)]
    np.testing.assert_allclose(sum(chances[:, k] * e[k] for k in range(4)), 1.0, rtol=1e-12)


def test_randomisation_p_values_are_uniform_or_larger():
    rng = np.random.default_rng(1)
    p = np.array([randomisation_p_value(rng.integers(5), rng.integers(5, size=19)) for _ in range(3000)])
    for level in (0.05, 0.2, 0.5):
        assert np.sum(p <= level) <= most_false(3000, level)


def greedy(seen, rng):
    return (seen[:, 0] > 0).astype(int)[:, None]


def one_or_the_other(seen, rng):
    return ((seen[:, 0] > 0) ^ (seen[:, 1] > 0)).astype(int)[:, None]


def curved(seen, rng):
    return (seen[:, 0] * seen[:, 1] > 0.2).astype(int)[:, None]


def noisy(seen, rng):
    return seen[:, [0]] + 0.5 * rng.normal(size=(len(seen), 1))


def wavering(seen, rng):
    return np.exp(seen[:, [0]]) * rng.normal(size=(len(seen), 1))


def several(seen, rng):
    return np.column_stack([seen[:, 0] > 0, np.digitize(seen[:, 1], [-0.5, 0.5])]).astype(int)


def late(seen, rng):
    return (np.roll(seen[:, 0], 2) > 0).astype(int)[:, None]


AGENTS = {
    "greedy": (greedy, (2,), 0, {0}),
    "one or the other": (one_or_the_other, (2,), 0, {0, 1}),
    "curved": (curved, (2,), 0, {0, 1}),
    "noisy": (noisy, (0,), 0, {0}),
    "spread alone": (wavering, (0,), 0, {0}),
    "several choices": (several, (2, 3), 0, {0, 1}),
    "late": (late, (2,), 3, {0}),
}


@pytest.mark.parametrize("name", AGENTS)
def test_what_an_agent_uses_is_found_and_nothing_else(name):
    agent, choices, memory, used = AGENTS[name]
    found = []
    for seed in range(3):
        bets = DrawBets([np.array([j]) for j in range(4)], choices, memory)
        bets.tell(drawn_rows(agent, 900, seed))
        bets.settle(ended=True)
        found.append(set(np.flatnonzero(closed_e_values(bets.log_wealth) >= 20)))
    assert all(found_here <= used for found_here in found) and found.count(used) >= 2


def test_rows_told_one_by_one_or_together_are_bet_on_alike():
    rows = drawn_rows(late, 300, 0)
    wealth = []
    for size in (1, 7, 300):
        bets = DrawBets([np.array([j]) for j in range(4)], (2,), memory=3)
        for start in range(0, 300, size):
            bets.tell(rows[start : start + size])
            bets.settle()
        bets.settle(ended=True)
        wealth.append(bets.path)
    np.testing.assert_allclose(wealth[0], wealth[2], rtol=1e-9)
    np.testing.assert_allclose(wealth[1], wealth[2], rtol=1e-9)


def test_what_is_settled_does_not_depend_on_later_draws():
    rows = drawn_rows(greedy, 300, 0)
    other = drawn_rows(greedy, 300, 1)
    mixed = DrawnRows(
        np.concatenate([rows.numbers[:200], other.numbers[200:]]), rows.actions,
        [np.concatenate([a[:200], b[200:]]) for a, b in zip(rows.candidates, other.candidates, strict=True)], rows.chances,
        np.concatenate([rows.drawn[:200], other.drawn[200:]]), rows.starts, rows.streams,
    )  # fmt: skip
    paths = []
    for each in (rows, mixed):
        bets = DrawBets([np.array([j]) for j in range(4)], (2,), memory=4)
        bets.tell(each)
        bets.settle()
        assert bets.num_settled == 296
        paths.append(bets.path[:200])
    np.testing.assert_array_equal(*paths)


def test_no_agent_that_ignores_its_readings_is_found_out_more_often_than_promised_at_any_look():
    """Actions of a hidden walk that also drives the true readings, learned copies of itself, and a memory of its own."""

    def hidden(seen, rng):
        walk = np.cumsum(rng.normal(size=len(seen)))
        return (np.roll(walk, 1) > 0).astype(int)[:, None]

    false, runs = 0, 120
    for seed in range(runs):
        bets = DrawBets([np.array([j]) for j in range(3)], (2,), memory=2 * (seed % 2))
        bets.tell(drawn_rows(hidden, 120, seed, q=3, share=0.5, caused=True))
        bets.settle(ended=True)
        false += max(closed_e_values(row).max() for row in bets.path) >= 1 / 0.1
    assert false <= most_false(runs, 0.1)


def test_a_predictor_knows_probabilities_and_spreads():
    """Against the agent's own density, on fresh rows: most of the gap to a constant prediction is closed."""
    rng = np.random.default_rng(3)
    seen = rng.normal(size=(2000, 3))
    chances = 1 / (1 + np.exp(-2 * seen[:, 0]))
    actions = (rng.random(2000) < chances).astype(int)[:, None]
    predictor = OnlinePredictor((2,))
    predictor.tell(seen[:1000], actions[:1000])
    assert not predictor.ready and predictor.refit() and not predictor.refit()
    truth = np.where(actions[:, 0] == 1, chances, 1 - chances)
    score = predictor.log_density(seen[1000:], actions[1000:]).mean()
    assert np.log(0.5) + 0.85 * (np.log(truth[1000:]).mean() - np.log(0.5)) < score < np.log(truth[1000:]).mean() + 0.01
    far = predictor.expected_difference(np.array([[-1.0, 0, 0], [0, 0, -1.0]]), np.array([[1.0, 0, 0], [0, 0, 1.0]]))
    assert far[0] > 5 * far[1]


# -- Logs that keep the draws.

NAMES = ("near", "x", "y", "level")
GROUPS = {"near": ("near",), "place": ("x", "y"), "level": ("level",)}


def logged(agent, n=300, seed=1, adaptive=False, memory=0, candidates=3, names=NAMES):
    """A log with drawn readings; `level` is a category of three. `agent` acts on what was delivered [n, 4]."""
    rng = np.random.default_rng(seed)
    readings = rng.normal(size=(n, 1 + candidates, 4))
    readings[:, :, 3] = rng.integers(3, size=(n, 1 + candidates))
    drawn = np.where(rng.random((n, 3)) < 0.5, rng.integers(1, 1 + candidates, (n, 3)), 0)
    numbers = agent(readings[np.arange(n)[:, None], np.repeat(drawn, [1, 2, 1], axis=1), np.arange(4)], rng)
    whole = numbers.dtype.kind == "i"
    record = DrawRecord(
        GROUPS, candidates, 0, memory, adaptive, {"level": 3}, (2,) if whole else (0,), (0,)
    )  # fmt: skip
    draws = Draws(record, readings, np.full((n, 3), 0.5), drawn)
    recorded = draws.columns(numbers[:, None])
    actions = numbers if not whole else [str(a) for a in numbers]
    columns = {**dict(zip(NAMES, draws.delivered.T, strict=True)), "act": actions, "episode": np.arange(n) // 50}
    levels = ["level"] if "level" in names else None
    origin = Origin(draws=record)
    return Sample.from_frame(
        polars.DataFrame(columns | recorded),
        "act",
        names,
        "episode",
        categorical=levels,
        origin=origin,
        recorded=list(recorded),
    )


def border(seen, rng):
    return ((seen[:, 0] > 0) ^ (rng.random(len(seen)) < 0.1)).astype(int)


def corner(seen, rng):
    return (seen[:, 1] * seen[:, 2] > 0).astype(int)


def amount(seen, rng):
    return np.where(seen[:, 3] == 2, 1.0, 0.0) + 0.5 * rng.normal(size=len(seen))


@pytest.mark.parametrize(("agent", "used"), [(border, "near"), (corner, "place"), (amount, "level")])
@pytest.mark.parametrize("adaptive", [False, True])
def test_what_an_agent_uses_is_found_in_its_log(agent, used, adaptive):
    answer = policyspace.identify(logged(agent, adaptive=adaptive))
    assert list(answer.selected) == [used] and "drawn at random" in str(answer)
    assert [test.group for test in answer.groups] == list(GROUPS)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npz", "feather"])
def test_files_keep_the_draws_and_give_the_same_wealth(suffix, tmp_path):
    data = logged(border, memory=2)
    draws, actions, choices = draws_of(data)
    rows = rows_with_draws(draws, actions, starts_of(data.episodes, data.num_rows))
    bets = DrawBets(columns_of(rows), choices, 2)
    bets.tell(rows)
    bets.settle(ended=True)
    policyspace.write(data, tmp_path / f"log.{suffix}")
    answer = policyspace.identify(tmp_path / f"log.{suffix}")
    found = {test.group: test.evidence for test in answer.groups}
    assert [found[group] for group in GROUPS] == pytest.approx(np.exp(bets.log_wealth).tolist(), rel=1e-9)
    assert policyspace.read(tmp_path / f"log.{suffix}").origin.draws == data.origin.draws


def test_both_rules_and_the_lean_test_take_the_log():
    data = logged(border)
    assert list(policyspace.identify(data, rule="combinatorial").selected) == ["near"]
    assert policyspace.identify(data, test="lean").selected == ("near",)


def changed(data, **columns):
    return replace(data, recorded={**data.recorded, **columns})


def test_logs_that_were_changed_are_refused():
    data = logged(border)
    old = data.recorded["draw.near"]
    with pytest.raises(InputError, match=r"reading 9 of 'near' was delivered with a share of 0.5, which cannot be"):
        policyspace.identify(changed(data, **{"draw.near": np.where(np.arange(300) == 7, 9, old)}))
    with pytest.raises(InputError, match=r"row 8 should have read .* of 'near' by its draw"):
        policyspace.identify(changed(data, **{"draw.near": np.where(np.arange(300) == 7, (old + 1) % 4, old)}))
    with pytest.raises(InputError, match="of 'level' by its draw"):
        policyspace.identify(changed(data, **{"draw.level": np.roll(data.recorded["draw.level"], 1)}))
    with pytest.raises(InputError, match="row 8 "):
        policyspace.identify(
            changed(data, **{"reading.x.3": np.where(np.arange(300) == 7, 0, data.recorded["reading.x.3"])})
        )
    with pytest.raises(InputError, match=r"found no column 'share.place'"):
        policyspace.identify(replace(data, recorded={k: v for k, v in data.recorded.items() if k != "share.place"}))


def test_rows_that_were_moved_or_left_out_are_refused():
    data = logged(border)
    with pytest.raises(InputError, match=r"row .* is not the one that was recorded after those before it"):
        policyspace.identify(replace(data, actions=np.roll(data.actions, 1)))
    with pytest.raises(InputError, match="row 41 is not the one"):
        policyspace.identify(data.take(np.delete(np.arange(300), 40)))
    assert policyspace.identify(data.take(slice(0, 200))).selected == ("near",)  # nobody has seen what came after
    with pytest.raises(InputError, match="recorded with other actions"):
        policyspace.identify(replace(data, action_names=("go", "stop")))


def test_features_that_were_drawn_together_are_tested_together():
    with pytest.raises(InputError, match="x, y were drawn together"):
        policyspace.identify(logged(corner), groups={"x": ["x"], "rest": ["y", "near"]})
    answer = policyspace.identify(logged(corner), groups={"sight": ["near", "x", "y"]})
    assert list(answer.selected) == ["sight"]


def test_some_features_alone(tmp_path):
    policyspace.write(logged(border), tmp_path / "log.parquet")
    answer = policyspace.identify(tmp_path / "log.parquet", features=["near"])
    assert list(answer.selected) == ["near"] and len(answer.groups) == 1


def test_p_values_of_redraws_keep_their_level_with_a_hidden_cause_and_autocorrelation():
    """A hidden walk drives the actions, and the true readings too."""

    def hidden(seen, rng):
        return (np.roll(np.cumsum(rng.normal(size=len(seen))), 1) > 0).astype(int)[:, None]

    false, runs = 0, 200
    for seed in range(runs):
        rows = drawn_rows(hidden, 60, seed, q=3, share=0.5, caused=True)
        p = randomisation_p_values(rows, columns_of(rows), (2,), seed % 3, 199, np.random.default_rng(seed))
        false += p.min() <= 0.1 / 3
    assert false <= most_false(runs, 0.1)


# -- Columns that an experimenter drew.


def trials(n=600, seed=0, sessions=6):
    rng = np.random.default_rng(seed)
    session = np.repeat(np.arange(sessions), n // sessions)
    contrast = np.concatenate(
        [rng.permutation(np.tile([0.0, 1.0, 2.0, 4.0], n // sessions // 4)) for _ in range(sessions)]
    )
    cue, tone = rng.choice(["left", "right"], n, p=[0.3, 0.7]), rng.random(n)
    went = np.where((cue == "left") ^ (rng.random(n) < 0.25), "yes", "no")
    return polars.DataFrame({"cue": cue, "tone": tone, "contrast": contrast, "session": session, "choice": went})


ASSIGNED = {"cue": "0.3,0.7", "tone": "uniform", "contrast": "permuted:session"}


def test_drawn_stimuli_are_tested_by_their_draws():
    answer = policyspace.identify(trials(), "choice", features=["cue", "tone", "contrast"], assigned=ASSIGNED)
    assert answer.selected == ("cue",) and "the columns were drawn as was said" in str(answer)
    alone = policyspace.identify(trials(), "choice", features=["cue", "tone"], assigned={"tone": "uniform"})
    assert alone.selected == () and "cue was not drawn, and is not tested" in str(alone)


def test_the_command_line_takes_how_columns_were_drawn(command_line, tmp_path):
    trials().write_csv(tmp_path / "trials.csv")
    said = [part for name, how in ASSIGNED.items() for part in ("--assigned", f"{name}={how}")]
    file = tmp_path / "trials.csv"
    code, out, _ = command_line(
        "identify", file, "--actions", "choice", "--features", "cue,tone,contrast", *said, "--json", "-"
    )
    assert code == 0
    groups = json.loads(out)["groups"]
    assert [test["rejected"] for test in groups] == [True, False, False]
    code, _, err = command_line("identify", file, "--actions", "choice", "--assigned", "cue")
    assert code == 2 and "cue=permuted:session" in err


@pytest.mark.parametrize(
    ("assigned", "words"),
    [
        ({"ceu": "uniform"}, "did you mean 'cue'"),
        ({"cue": "uniformly"}, "must be uniform, permuted, permuted:COLUMN or chances"),
        ({"cue": "0.3,0.3,0.4"}, "'cue' has 2 values, found 3 chances"),
        ({"cue": "permuted:sesion"}, "did you mean 'session'"),
        ({"session_cue": "permuted:session"}, "found it always the same there"),
    ],
)
def test_what_is_said_wrongly_of_drawn_columns(assigned, words):
    table = trials().with_columns(session_cue=polars.col("session") % 2)
    with pytest.raises(InputError, match=words):
        policyspace.identify(table, "choice", features=["cue", "session_cue"], assigned=assigned)


def test_columns_that_do_not_look_as_they_were_said_to_be_drawn():
    answer = policyspace.identify(trials(), "choice", features=["cue", "tone"], assigned={"cue": "uniform"})
    assert "'cue' does not look as if drawn by 'uniform'" in str(answer)
    squared = trials().with_columns(tone=polars.col("tone") ** 2)
    answer = policyspace.identify(squared, "choice", features=["cue", "tone"], assigned={"tone": "uniform"})
    assert "'tone' does not look as if" in str(answer)
    fair = policyspace.identify(trials(), "choice", features=["cue", "tone"], assigned={"tone": "uniform"})
    assert "look as if" not in str(fair)


def test_the_chances_of_a_permutation_are_those_of_all_permutations():
    """Of two 0s, one 1 and one 2 there are 4!/2! orders, each as probable as the others."""
    for order in set(itertools.permutations([0.0, 0.0, 1.0, 2.0])):
        data = Sample.from_arrays(np.array(order)[:, None], ["a", "b", "a", "b"], ["cue"])
        data = replace(data, origin=Origin(assigned={"cue": "permuted"}))
        rows, _ = assigned_rows(data, np.arange(4) == 0, 0)
        probable = [chances[drawn] for chances, drawn in zip(rows.chances[0], rows.drawn[:, 0], strict=True)]
        assert np.prod(probable) == pytest.approx(factorial(2) / factorial(4))
        shown = rows.candidates[0][np.arange(4), rows.drawn[:, 0], 0]
        np.testing.assert_array_equal(shown, order)


@pytest.mark.parametrize("how", ["uniform", "permuted", "permuted:session"])
def test_many_values_are_looked_for_among_others_that_might_have_been(how):
    table = trials().with_columns(session=polars.col("session").cast(str))
    sample = policyspace.identification.request_of(
        table, "choice", features=["tone"], episodes="session", assigned={"tone": how}
    ).sample()
    rows, _ = assigned_rows(sample, starts_of(sample.episodes, 600), 0)
    at = np.arange(600)
    np.testing.assert_array_equal(rows.candidates[0][at, rows.drawn[:, 0], 0], table["tone"].to_numpy())
    np.testing.assert_allclose(rows.chances[0].sum(axis=1), 1.0)
    assert (rows.chances[0][at, rows.drawn[:, 0]] > 0).all()
    if how == "permuted:session":  # nothing comes from another session
        own = [set(part["tone"].to_list()) for _, part in table.group_by("session", maintain_order=True)]
        possible = rows.chances[0] > 0
        assert all(set(rows.candidates[0][i, possible[i], 0]) <= own[i // 100] for i in range(600))


def test_false_findings_of_drawn_stimuli_stay_within_the_level_at_any_look():
    """Rewards depend on the cue, and the choice on rewards: the cue itself is not used."""
    false, runs = 0, 60
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        cue = rng.integers(2, size=100)
        choice, reward = np.zeros(100, dtype=int), np.zeros(100)
        for t in range(1, 100):
            choice[t] = choice[t - 1] if reward[t - 1] else 1 - choice[t - 1]
            reward[t] = cue[t] == choice[t]
        seen = np.column_stack([cue, np.roll(reward, 1)])
        data = Sample.from_arrays(seen, choice, ["cue", "last_reward"], origin={"assigned": {"cue": "uniform"}})
        rows, _ = assigned_rows(data, np.arange(100) == 0, seed)
        bets = DrawBets([np.array([0])], (2,))
        bets.tell(rows)
        bets.settle(ended=True)
        false += max(closed_e_values(row).max() for row in bets.path) >= 10
    assert false <= most_false(runs, 0.1)
