"""The page *Which observations does my agent use?* is run: a real agent is trained and asked.

After a change of words, `POLICYSPACE_REWRITE_PAGES=1 pytest tests/test_which_observations.py` writes its output again.
"""

import os
import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[1] / "docs" / "which-observations.md"
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What the page's names stand for after its code has run, and the page."""
    import torch

    torch.set_num_threads(1)
    text = PAGE.read_text(encoding="utf-8")
    code = BLOCK.search(text)[1]
    home, here = tmp_path_factory.mktemp("page"), Path.cwd()
    found = {"print": lambda answer: None}
    os.chdir(home)
    try:
        exec(code, found)
    finally:
        os.chdir(here)
    return found, home, text


def change(agent, seen, column):
    """How much the agent's probabilities change on average when one column comes from other rows."""
    import torch

    def probabilities(rows):
        with torch.no_grad():
            return agent.policy.get_distribution(torch.tensor(rows, dtype=torch.float32)).distribution.probs.numpy()

    changes = []
    for seed in range(4):
        other = seen.copy()
        other[:, column] = np.random.default_rng(seed).permutation(seen[:, column])
        changes.append(np.abs(probabilities(other) - probabilities(seen))[:, 0].mean())
    return np.mean(changes)


def test_twelve_lines(run):
    assert len([line for line in BLOCK.search(run[2])[1].splitlines() if line]) == 12


def test_effects_are_how_far_the_network_moves(run):
    found, home, _ = run
    answer, names = found["answer"], found["names"]
    assert answer.selected == tuple(names)
    for j, group in enumerate(answer.groups):
        truth, effect = change(found["agent"], answer.log.features, j), group.effect_any
        assert abs(effect.estimate - truth) < 2.5 * (effect.high - effect.estimate), group.group
    worth = {group.group: group.returned.loss for group in answer.groups}
    assert max(worth, key=lambda name: worth[name].estimate) == "angular_velocity"
    assert worth["noise_1"].low < 0 < worth["noise_1"].high
    assert (home / "answer.html").stat().st_size > 10_000


def test_the_log_knows_its_episodes_and_its_probabilities(run):
    log = run[0]["answer"].log
    assert log.recorded["terminated"].sum() + log.recorded["truncated"].sum() == log.num_episodes
    # The mean of log π(a|s) is minus the mean entropy, up to chance: the actions are drawn from these probabilities.
    known = log.recorded["log_probability"]
    p = np.exp(known)
    both = np.column_stack([p, 1 - p])
    terms = (both * np.log(both)).sum(axis=1)
    error = np.sqrt((both * np.log(both) ** 2).sum(axis=1) - terms**2).mean() / np.sqrt(len(p))
    assert abs(known.mean() - terms.mean()) < 6 * error


def test_the_page_shows_what_was_printed(run):
    found, _, text = run
    printed = "\n".join(line.rstrip() for line in str(found["answer"]).splitlines())
    if os.environ.get("POLICYSPACE_REWRITE_PAGES"):
        from policyspace.asking import plot_effects

        plot_effects(found["answer"], PAGE.parent / "images" / "asked.svg")
        text = BLOCK.sub(lambda block: block[0].replace(f"```text\n{block[2]}", f"```text\n{printed}\n"), text)
        PAGE.write_text(text, encoding="utf-8")
    shown = BLOCK.search(text)[2]
    # The last digits of a training differ between processors: the verdicts and the words do not.
    words = re.compile(r"^(input|\w+ +(reacts|barely)|Asked inside.*|Guarantee.*)", re.MULTILINE)
    assert [match[0] for match in words.finditer(shown)] == [match[0] for match in words.finditer(printed)]
    assert shown.startswith("Reacts to position, velocity, angle, angular_velocity, noise_1 and noise_2.")
