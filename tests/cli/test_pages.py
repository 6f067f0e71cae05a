"""Pages of the documentation show what their commands print.

After a change of words, `POLICYSPACE_REWRITE_PAGES=1 pytest tests/cli/test_pages.py` writes the pages again.
"""

import os
import shlex
import sys
from pathlib import Path

import numpy as np
import polars
import pytest

from policyspace.cli import main

PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("command-line.md", "people-and-animals.md")]
GROUPS = """always = ["road"]

[groups]
driving = ["speed", "left"]

[fixed]
speed = 0.1
"""


def make_files():
    rng = np.random.default_rng(1)
    n = 300
    speed, left = rng.normal(size=(2, n)).round(2)
    road = rng.choice(["dry", "icy", "wet"], n)
    scores = np.column_stack([1.1 * speed, np.zeros(n), -0.9 * speed]) + rng.gumbel(size=(n, 3))
    move = np.array(["brake", "coast", "go"])[scores.argmax(axis=1)]
    steer, gas = (left + rng.normal(size=n)).round(2), (speed + 0.5 * rng.normal(size=n)).round(2)
    drive = polars.DataFrame(
        {
            "speed": speed,
            "left": left,
            "road": road,
            "move": move,
            "steer": steer,
            "gas": gas,
            "trip": np.arange(n) // 25,
        }
    )
    drive.write_csv("drive.csv")
    drive.select("speed", (1.609 * polars.col("speed")).alias("speed_in_km"), "left", "move").write_csv("twins.csv")
    rows = drive.select("speed", "move").write_csv().splitlines()
    Path("broken.csv").write_text("\n".join([*rows[:7], "fast,go", *rows[8:]]) + "\n")
    Path("groups.toml").write_text(GROUPS)
    turn = (np.sin(2 * left) + 0.5 * rng.normal(size=n)).round(2)
    gear = ["NA" if i == 6 else str(g) for i, g in enumerate(rng.integers(1, 4, size=n))]
    log = {"obs_left": left, "obs_speed": speed, "gear": gear, "turn": turn, "reward": turn, "step": np.arange(n) % 25}
    polars.DataFrame(log | {"run": np.arange(n) // 25}).write_csv("log.csv")


def output(command, monkeypatch, capfd):
    """What a line of the page prints; the two commands of the shell read files of this test."""
    name, *arguments = shlex.split(command)
    if name == "cat":
        return Path(arguments[0]).read_text()
    if name == "head":
        return "".join(Path(arguments[1]).read_text().splitlines(keepends=True)[: -int(arguments[0])])
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit):
        main()
    printed = capfd.readouterr()
    return "\n".join(line.rstrip() for line in (printed.out + printed.err).splitlines()) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_shows_what_the_commands_print(page, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    make_files()
    output("policyspace demo", monkeypatch, capfd)
    lines, made, inside = page.read_text(encoding="utf-8").splitlines(keepends=True), [], False
    for line in lines:
        if line.startswith("```"):
            inside = line.startswith("```console")
        if line.startswith("$ ") and inside:
            made += ["\n"] if made[-1] != "```console\n" else []
            made += [line, output(line[2:], monkeypatch, capfd)]
        elif not inside or line.startswith("```"):
            made.append(line)
    text = "".join(made)
    assert text.count("$ policyspace") >= 3
    if os.environ.get("POLICYSPACE_REWRITE_PAGES"):
        page.write_text(text, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == text
