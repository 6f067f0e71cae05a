"""The pages of the command line and of choices show what the commands print.

After a change of words, `POLICYSPACE_REWRITE_PAGES=1 pytest tests/cli/test_pages.py` writes the page again.
"""

import os
import shlex
import sys
from pathlib import Path

import numpy as np
import polars
import pytest

from policyspace.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"command-line.md": 10, "choices.md": 4}
"""The pages, and how many commands each runs at least."""
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
    make_trips()


def make_trips():
    """Choices among three modes, as one row a choice and as one row an alternative; the car is not always there."""
    rng = np.random.default_rng(3)
    n, modes = 400, ("bus", "car", "train")
    values = {"cost": rng.gamma(4, 1, (n, 3)).round(2), "minutes": rng.gamma(6, 5, (n, 3)).round()}
    values |= {"seats": rng.integers(0, 5, (n, 3)), "there": np.ones((n, 3), dtype=int)}
    values["there"][:, 1] = rng.random(n) < 0.8
    utility = np.array([0, 0.5, 0.2]) - 0.6 * values["cost"] - 0.07 * values["minutes"] + rng.gumbel(size=(n, 3))
    chosen = np.where(values["there"], utility, -np.inf).argmax(axis=1)
    trips = {"mode": np.array(modes)[chosen], "income": rng.normal(3, 1, n).round(1)}
    trips |= {f"{name}_{mode}": v[:, j] for name, v in values.items() for j, mode in enumerate(modes)}
    polars.DataFrame(trips).write_csv("trips.csv")
    row, alternative = np.nonzero(values["there"])
    table = {"trip": row, "mode": np.array(modes)[alternative], "chosen": (alternative == chosen[row]).astype(int)}
    table |= {name: values[name][row, alternative] for name in ("cost", "minutes", "seats")}
    polars.DataFrame(table | {"income": trips["income"][row]}).write_csv("long.csv")


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


@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_what_the_commands_print(page, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    make_files()
    output("policyspace demo", monkeypatch, capfd)
    path = DOCS / page
    lines, made, inside = path.read_text(encoding="utf-8").splitlines(keepends=True), [], False
    for line in lines:
        if line.startswith("```"):
            inside = line.startswith("```console")
        if line.startswith("$ ") and inside:
            made += ["\n"] if made[-1] != "```console\n" else []
            made += [line, output(line[2:], monkeypatch, capfd)]
        elif not inside or line.startswith("```"):
            made.append(line)
    text = "".join(made)
    assert text.count("$ policyspace") >= PAGES[page]
    if os.environ.get("POLICYSPACE_REWRITE_PAGES"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
