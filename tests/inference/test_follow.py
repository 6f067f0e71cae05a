"""Streams: the e-process against its definition, and a file that grows while it is followed."""

import json
import threading
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from policyspace import GaussianLinear, GaussianNetwork, InputError, Sample, SoftmaxLinear, likelihood_of, read
from policyspace.cli import app
from policyspace.inference import Episode, EProcess, PredictiveEProcess, SequentialMonitor, episodes_of, pooled_episodes
from policyspace.inference.follow import follow

NAMES = ("near", "far")
SPACE = SoftmaxLinear(NAMES, ("no", "yes"))


def stream(num_episodes=40, length=15, seed=0, weights=(2.0, 0.0)):
    rng = np.random.default_rng(seed)
    for _ in range(num_episodes):
        features = rng.normal(size=(length, 2))
        p = 1 / (1 + np.exp(-features @ np.array(weights)))
        yield Episode(features, (rng.random(length) < p).astype(int))


def test_the_wealth_is_the_product_of_predictions_made_before():
    """Every episode is predicted from all rows up to the last time there were a tenth more of them, under three priors."""
    episodes = list(stream(12))
    bettor = PredictiveEProcess(SPACE)
    for episode in episodes:
        bettor.tell(episode)
    wealth, policies, learned = np.ones(3), None, 0
    for i, episode in enumerate(episodes):
        if policies is not None:
            wealth *= [np.exp(p.log_probs(episode.features, episode.actions).sum()) for p in policies]
        rows = 15 * (i + 1)
        if rows >= (15 if policies is None else 1.1 * learned):
            policies, learned = (
                likelihood_of(SPACE, pooled_episodes(SPACE, episodes[: i + 1])).prior_predictive_policies(),
                rows,
            )
    assert bettor.log_wealth == pytest.approx(np.log(wealth.mean()), abs=1e-8)


def test_the_e_value_divides_by_the_best_of_the_hypothesis_on_what_was_bet_on():
    episodes = list(stream(20))
    data = pooled_episodes(SPACE, episodes)
    local = EProcess(likelihood_of(SPACE, data), data)
    after = pooled_episodes(SPACE, episodes[1:])  # the first was not bet on
    support = SPACE.full_support - {1}
    expected = local._bettor.log_wealth - likelihood_of(SPACE, after).fit(support).log_likelihood
    assert local.test_many([support])[0].statistic == pytest.approx(2 * expected, abs=1e-6)


def test_a_follower_finds_what_is_controlled_and_keeps_it():
    follower = SequentialMonitor(SPACE, 0.05)
    standings = [follower.tell(episode) for episode in stream(60)]
    assert standings[-1].controlled == ["near"]
    found = [("near" in s.controlled) for s in standings]
    assert found == sorted(found)
    assert not standings[-1].decided
    assert "near controlled" in str(standings[-1]) and "far E = " in str(standings[-1])


def test_an_agent_that_does_one_thing_at_first_is_waited_for():
    follower = SequentialMonitor(SPACE, 0.05)
    lazy = Episode(np.random.default_rng(0).normal(size=(30, 2)), np.zeros(30, dtype=int))
    standing = follower.tell(lazy)
    assert [unit.log_e for unit in standing.units] == [0.0, 0.0]
    for episode in stream(40):
        standing = follower.tell(episode)
    assert standing.controlled == ["near"]


def test_continuous_streams_and_networks_are_followed_too():
    rng = np.random.default_rng(0)
    for space in (GaussianLinear(NAMES, ("gas",)), GaussianNetwork(NAMES, ("gas",), (2,), 0.1)):
        follower = SequentialMonitor(space, 0.05)
        for i in range(12):
            features = rng.normal(size=(20, 2))
            actions = np.tanh(2 * features[:, :1]) + np.sqrt(0.1) * rng.normal(size=(20, 1))
            standing = follower.tell(Episode(features, actions), look=i % 4 == 3)
        assert standing.controlled == ["near"]


def test_episodes_come_in_their_order_and_rows_without_any_in_blocks():
    features = np.arange(12.0).reshape(6, 2)
    labelled = Sample(features, [0, 1, 0, 1, 0, 1], NAMES, ("a", "b"), ["x", "y", "x", "y", "z", "z"])
    assert [e.features[:, 0].tolist() for e in episodes_of(labelled)] == [[0, 4], [2, 6], [8, 10]]
    plain = Sample(np.arange(240.0).reshape(120, 2), np.arange(120) % 2, NAMES, ("a", "b"))
    assert [len(e.features) for e in episodes_of(plain)] == [50, 50, 20]


def test_too_few_rows_to_bet_are_said_so():
    data = pooled_episodes(SPACE, list(stream(1)))
    with pytest.raises(InputError, match="15 rows are too few to learn from the first"):
        EProcess(likelihood_of(SPACE, data), data)


# -- files ---------------------------------------------------------------------------------------------------------


def rows_of(episodes, first=0):
    lines = []
    for i, episode in enumerate(episodes, start=first):
        for x, a in zip(episode.features, episode.actions, strict=True):
            lines.append(f"{i},{x[0]},{x[1]},{'yes' if a else 'no'}\n")
    return "".join(lines)


def load(path):
    return read(path, actions="action", episodes="episode")


def space_of(data):
    return SoftmaxLinear(data.names, data.action_names)


def test_a_file_is_followed_to_its_end(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("episode,near,far,action\n" + rows_of(stream(30)))
    standings = list(follow(path, load, space_of))
    assert [s.num_episodes for s in standings] == list(range(1, 31))
    assert standings[-1].controlled == ["near"]
    limited = list(follow(path, load, space_of, max_episodes=5))
    assert limited[-1].num_episodes == 5


def test_following_stops_when_all_is_found(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("episode,near,far,action\n" + rows_of(stream(60, weights=(2.0, -2.0))))
    standings = list(follow(path, load, space_of))
    assert standings[-1].decided and len(standings) < 60


def test_a_file_that_grows_is_read_on(tmp_path):
    path, episodes = tmp_path / "log.csv", list(stream(30))
    path.write_text("episode,near,far,action\n" + rows_of(episodes[:10]))

    def writer():
        time.sleep(0.4)
        text = rows_of(episodes[10:], first=10)
        for part in (text[:1003], text[1003:]):  # the first ends in the middle of a row
            with path.open("a") as file:
                file.write(part)
            time.sleep(0.3)

    thread = threading.Thread(target=writer)
    thread.start()
    standings = list(follow(path, load, space_of, wait=1.5, poll=0.05))
    thread.join()
    assert [s.num_episodes for s in standings] == list(range(1, 31))
    at_once = list(follow(path, load, space_of))
    assert [u.log_e for u in standings[-1].units] == pytest.approx([u.log_e for u in at_once[-1].units])


def test_a_file_without_episodes_cannot_be_followed(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("near,far,action\n1.0,2.0,no\n2.0,1.0,yes\n0.5,0.1,no\n0.3,0.2,yes\n")
    with pytest.raises(InputError, match="--episode"):
        list(follow(path, lambda path: read(path, actions="action"), space_of))


def test_a_new_action_is_told(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("episode,near,far,action\n" + rows_of(stream(5)))

    def writer():
        time.sleep(0.3)
        with path.open("a") as file:
            file.write("5,0.1,0.2,perhaps\n6,0.1,0.2,yes\n")

    thread = threading.Thread(target=writer)
    thread.start()
    with pytest.raises(InputError, match=r"'perhaps' was not known .* declare all with --labels no,yes,perhaps"):
        list(follow(path, load, space_of, wait=1.5, poll=0.05))
    thread.join()


def test_the_command_follows(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("episode,near,far,action\n" + rows_of(stream(30)))
    arguments = ["identify", str(path), "--action", "action", "--episode", "episode", "--follow"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "episode 30, 450 rows: near controlled" in result.output
    assert "Controlled: near (the file has ended after 30 episodes" in result.output
    result = CliRunner().invoke(app, [*arguments, "--budget", "4"])
    assert "the budget is spent after 4 episodes" in result.output


def test_the_command_tests_networks(tmp_path):
    path = tmp_path / "log.csv"
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    a = np.tanh(2 * x[:, 0]) + 0.3 * rng.normal(size=300)
    rows = [f"{i // 10},{u},{v},{w}\n" for i, ((u, v), w) in enumerate(zip(x, a, strict=True))]
    path.write_text("episode,near,far,action\n" + "".join(rows))
    arguments = ["identify", str(path), "--action", "action", "--episode", "episode", "--policy", "network"]
    for named, chosen in (((), "universal"), (("--test", "lean"), "lean")):
        result = CliRunner().invoke(app, [*arguments, "--hidden", "3", "--covariance", "0.09", *named, "--json", "-"])
        assert result.exit_code == 0, result.output
        answer = json.loads(result.output)
        assert answer["supports"] == [["near"]]
        assert answer["test"]["name"] == chosen and answer["policy"]["hidden"] == [3]
    result = CliRunner().invoke(app, [*arguments, "--hidden", "three"])
    assert result.exit_code != 0


# -- what may happen to a file while it is followed ------------------------------------------------------------------

HEADER = "episode,near,far,action\n"


def watched(path, changes, wait=0.6, **options):
    """(standings, sentences) of a watch during which `changes` are made to the file, one after the other."""
    notes, standings, left = [], [], list(changes)

    def load_then_change(copy):
        data = load(copy)
        if left:
            left.pop(0)()  # in the middle of the watch, whatever the clock says
        return data

    for standing in follow(path, load_then_change, space_of, wait=wait, poll=0.02, notice=notes.append, **options):
        standings.append(standing)
    return standings, notes


def append(path, text):
    with path.open("a") as file:
        file.write(text)


def test_a_last_line_without_its_end_waits_for_the_rest(tmp_path):
    path, text = tmp_path / "log.csv", rows_of(stream(12))
    cut = text.rindex("\n", 0, text.index("\n7,")) + 9  # in the middle of a number
    path.write_text(HEADER + text[:cut])
    standings, notes = watched(path, [lambda: append(path, text[cut:])])
    at_once = tmp_path / "whole.csv"
    at_once.write_text(HEADER + text)
    expected = list(follow(at_once, load, space_of))
    assert (standings[-1], notes) == (expected[-1], [])


def test_a_last_line_that_never_ends_is_not_counted_and_said_so(tmp_path):
    path, text = tmp_path / "log.csv", rows_of(stream(6))
    path.write_text(HEADER + text + "6,0.25,1.")
    standings, notes = watched(path, [])
    assert standings[-1].num_rows == 90 and standings[-1].num_episodes == 6
    assert len(notes) == 1 and "last line has no end" in notes[0]


def test_a_header_alone_is_waited_with(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(HEADER)
    thread = threading.Timer(0.2, lambda: append(path, rows_of(stream(5))))
    thread.start()
    standings = list(follow(path, load, space_of, wait=2.0, poll=0.02))
    assert standings[-1].num_rows == 75
    path.write_text(HEADER)
    with pytest.raises(InputError):
        list(follow(path, load, space_of, wait=0.1, poll=0.02))


def test_late_rows_of_an_earlier_episode_are_counted_when_they_come(tmp_path):
    episodes = list(stream(12))
    late = rows_of(episodes[3:4], first=3).splitlines(keepends=True)
    path = tmp_path / "log.csv"
    path.write_text(HEADER + rows_of(episodes[:3]) + "".join(late[:10]) + rows_of(episodes[4:8], first=4))
    more = "".join(late[10:]) + rows_of(episodes[8:], first=8)
    standings, notes = watched(path, [lambda: append(path, more)])
    assert standings[-1].num_rows == 180 and standings[-1].num_episodes == 12
    assert notes == ["5 rows of episode 4 came after it was counted: they are counted now."]
    # The same bets as a stream in which the late rows are a part of their own, after the seven episodes then complete.
    cut = Episode(episodes[3].features[:10], episodes[3].actions[:10])
    rest = Episode(episodes[3].features[10:], episodes[3].actions[10:])
    follower = SequentialMonitor(SPACE, 0.05)
    for part in [*episodes[:3], cut, *episodes[4:7], rest, *episodes[7:]]:
        expected = follower.tell(part, late=part is rest)
    assert expected == standings[-1]


@pytest.mark.parametrize("how", ["truncated", "replaced", "rotated"])
def test_a_file_that_lost_counted_rows_is_refused(tmp_path, how):
    path, episodes = tmp_path / "log.csv", list(stream(20))
    path.write_text(HEADER + rows_of(episodes[:10]))

    def change():
        if how == "rotated":
            path.rename(tmp_path / "log.csv.1")
        new = {"truncated": episodes[:5], "replaced": list(stream(12, seed=9)), "rotated": episodes[10:]}[how]
        path.write_text(HEADER + rows_of(new))

    with pytest.raises(InputError, match="cut off or replaced while it was followed"):
        watched(path, [change])


def test_a_file_that_is_replaced_by_a_longer_copy_of_itself_is_read_on(tmp_path):
    path, text = tmp_path / "log.csv", rows_of(stream(12))
    path.write_text(HEADER + text[: text.index("\n6,") + 1])

    def change():
        (tmp_path / "new").write_text(HEADER + text)
        (tmp_path / "new").replace(path)

    standings, notes = watched(path, [change])
    assert (standings[-1].num_rows, notes) == (180, [])


def test_a_file_that_is_deleted_is_told_and_counted(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(HEADER + rows_of(stream(6)))
    standings, notes = watched(path, [path.unlink], wait=0.2)
    assert standings[-1].num_rows == 90
    assert len(notes) == 1 and "was deleted" in notes[0]


def test_columns_are_found_by_name(tmp_path):
    path, episodes = tmp_path / "log.csv", list(stream(12))
    path.write_text(HEADER + rows_of(episodes[:6]))

    def change(header, order):
        rows = [line.split(",") for line in rows_of(episodes).splitlines()]
        path.write_text(header + "".join(",".join(row[i] for i in order) + "\n" for row in rows))

    standings, _ = watched(path, [lambda: change("far,action,near,episode\n", (2, 3, 1, 0))])
    whole = tmp_path / "whole.csv"
    whole.write_text(HEADER + rows_of(episodes))
    assert standings[-1] == list(follow(whole, load, space_of))[-1]
    path.write_text(HEADER + rows_of(episodes[:6]))
    with pytest.raises(InputError, match="columns changed while it was followed, 'near' is no longer"):
        watched(path, [lambda: change("episode,close,far,action\n", range(4))])


def test_actions_that_are_declared_may_come_late(tmp_path):
    path, episodes = tmp_path / "log.csv", list(stream(8))
    path.write_text(HEADER + rows_of(episodes[:4]))
    more = rows_of(episodes[4:], first=4).replace("yes", "perhaps", 3)
    standings, _ = watched(path, [lambda: append(path, more)], labels=("perhaps", "no", "yes"))
    assert standings[-1].num_rows == 120
    with pytest.raises(InputError, match=r"'perhaps' was not known when the watch began"):
        list(follow(path, load, space_of, labels=("no", "yes")))
