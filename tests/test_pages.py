"""What the pages show is what happens: commands are run and their output compared, Python is executed.

A fenced block says by its language what is done with it:

- `console`: every `$ command` is run, in a folder of the page's own, and must print what stands below it; a line `…`
  stands for any lines
- `python`: executed, all blocks of a page one after the other
- `sh`: commands that take too long for a test or need other machines: `policyspace` must understand them, targets and
  extras must exist
- `text`, `toml`, `csv`: no commands

After a change of words, `POLICYSPACE_REWRITE_PAGES=1 pytest tests/test_pages.py` writes the output in the pages again.
"""

import os
import re
import shlex
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
import polars
import pytest
import typer
from stable_baselines3 import PPO

from policyspace import write
from policyspace.cli import app, main
from policyspace.data import trials
from policyspace.data.examples import load_demo

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
LANGUAGES = {"console", "python", "sh", "text", "toml", "csv"}
ANYTHING = "…"
GROUPS = """assume = ["road"]

[groups]
driving = ["speed", "left"]

[fixed]
speed = 0.1
"""


def files_of_the_command_line():
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
    write(load_demo(), "policyspace-demo.csv")
    PPO("MlpPolicy", "CartPole-v1", seed=5, device="cpu").save("agent.zip")
    return {}


def a_driver_in_arrays():
    """The log of `demo`, the same with the weather in one column, and `states`, `actions`, `episodes` of another driver."""
    log = load_demo()
    write(log, "policyspace-demo.csv")
    columns = dict(zip(log.names, log.features.T, strict=True))
    weather = np.where(
        columns.pop("weather=fog") == 1, "fog", np.where(columns.pop("weather=rain") == 1, "rain", "sun")
    )
    columns = {name: values for name, values in columns.items() if not name.startswith("weather")}
    action = np.array(log.action_names)[log.actions]
    polars.DataFrame({**columns, "weather": weather, "action": action}).write_csv("drives.csv")
    rng = np.random.default_rng(1)
    states = rng.normal(size=(400, 2))
    actions, episodes = states[:, 0] + rng.normal(size=400), np.arange(400) // 20
    polars.DataFrame({"speed": states[:, 0], "left_sensor": states[:, 1], "a": actions, "e": episodes}).write_csv(
        "log.csv"
    )
    return {"states": states, "actions": actions, "episodes": episodes}


def a_trained_model():
    """In place of a model of the reader's own: one that has not learned yet."""
    PPO("MlpPolicy", "CartPole-v1", seed=5, device="cpu").save("model.zip")
    return {}


def a_cart_pole_in_wind():
    pytest.importorskip("stable_baselines3")
    shutil.copy(ROOT / "examples" / "windy_cartpole.py", ".")
    return a_trained_model()


def trips_wide_and_long():
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
    known = {f"known_{mode}": -0.07 * polars.col(f"minutes_{mode}") for mode in modes}
    kept = ["mode", "^(cost|seats|known|there)_.*$"]
    polars.DataFrame(trips).with_columns(**known).select(*kept).write_csv("known.csv", float_precision=2)
    row, alternative = np.nonzero(values["there"])
    table = {"trip": row, "mode": np.array(modes)[alternative], "chosen": (alternative == chosen[row]).astype(int)}
    table |= {name: values[name][row, alternative] for name in ("cost", "minutes", "seats")}
    polars.DataFrame(table | {"income": trips["income"][row]}).write_csv("long.csv")
    return {}


def trials_of_mice():
    trials().write_csv("policyspace-mice.csv")
    return {}


def a_folder_of_logs():
    rng = np.random.default_rng(0)
    Path("logs").mkdir()
    for name in ("logs/2024-01.parquet", "logs/2024-02.parquet", "monday.parquet", "tuesday.parquet"):
        state = rng.normal(size=(200, 2))
        columns = {"obs_0": state[:, 0], "obs_1": state[:, 1], "force": state[:, 0] + rng.normal(size=200)}
        polars.DataFrame(columns).write_parquet(name)
    return {}


FILES = {
    "large-files.md": a_folder_of_logs,
    "which-observations.md": a_trained_model,
    "choices.md": trips_wide_and_long,
    "command-line.md": files_of_the_command_line,
    "configure-any-environment.md": a_cart_pole_in_wind,
    "people-and-animals.md": trials_of_mice,
}

RUN_APART = {"asking.md": "test_asking_page.py", "which-observations.md": "test_which_observations.py"}
"""Pages whose Python has a test of its own, which looks at what it prints too; their commands are run here."""


@dataclass
class Block:
    """A fenced block of a page."""

    language: str
    lines: list[str]
    first: int  # the number of its first line

    def commands(self):
        """Each command of a console block with the lines that it must print."""
        found: list[tuple[str, list[str]]] = []
        for line in self.lines:
            if line.startswith("$ ") or (found and found[-1][0].endswith("\\") and not found[-1][1]):
                if line.startswith("$ "):
                    found.append((line[2:], []))
                else:
                    found[-1] = (found[-1][0][:-1] + line.strip(), [])
            else:
                found[-1][1].append(line)
        return found


def blocks_of(page):
    """The fenced blocks of a page."""
    found: list[Block] = []
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("```"):
            inside = not inside
            if inside:
                found.append(Block(line[3:].strip(), [], number + 1))
        elif inside:
            found[-1].lines.append(line)
    return found


def output(command, left_out, monkeypatch, capfd):
    """What a line of a page prints; the commands of the shell that pages use read files of this test.

    A command whose output the page leaves out, in part at least, must not end in an error.
    """
    name, *arguments = shlex.split(command)
    if name == "cat":
        return Path(arguments[0]).read_text()
    if name == "head":
        return "".join(Path(arguments[1]).read_text().splitlines(keepends=True)[: -int(arguments[0])])
    assert name == "policyspace", f"'{name}' is not run by this test: use a block of 'sh'"
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capfd.readouterr()
    assert not (stop.value.code and left_out), f"{command}: {printed.err}"
    return "\n".join(line.rstrip() for line in (printed.out + printed.err).splitlines()) + "\n"


def matches(shown, printed):
    """Whether the page shows what was printed, where '…' stands for any lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == ANYTHING else re.escape(line) + r"\n" for line in shown)
    return re.fullmatch(pattern + r"\n*", printed.lstrip("\n")) is not None


def rewritten(page, replacements):
    """The page with new output below its commands."""
    text = page.read_text(encoding="utf-8")
    for shown, printed in replacements:
        if shown != printed and ANYTHING not in shown.splitlines():
            assert text.count(shown) == 1, f"this block stands more than once in {page.name}, or is empty:\n{shown}"
            text = text.replace(shown, printed)
    page.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_happens(page, tmp_path, monkeypatch, capfd):
    blocks = [block for block in blocks_of(page) if block.language in ("console", "python")]
    if not blocks:
        return
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = FILES.get(page.name, a_driver_in_arrays)()
    capfd.readouterr()
    wrong, replacements = [], []
    for block in blocks:
        if block.language == "python":
            if page.name in RUN_APART:
                continue
            exec(compile("\n" * (block.first - 1) + "\n".join(block.lines), str(page), "exec"), names)
            capfd.readouterr()
            continue
        for command, lines in block.commands():
            shown = "\n".join(lines).strip("\n") + "\n"
            printed = output(command, ANYTHING in lines, monkeypatch, capfd)
            replacements.append((shown, printed.strip("\n") + "\n"))
            if not matches(shown.splitlines(), printed):
                wrong.append(f"{page.name}: {command}\nprints\n{printed}\nand the page shows\n{shown}")
    if os.environ.get("POLICYSPACE_REWRITE_PAGES"):
        rewritten(page, replacements)
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize(("page", "test"), RUN_APART.items())
def test_the_python_of_a_page_that_is_run_apart_is_what_that_test_runs(page, test):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    pattern = re.search(
        r'^BLOCK = re.compile\(r"(.*)", re.DOTALL\)$', (Path(__file__).parent / test).read_text(), re.MULTILINE
    )
    assert len(re.findall(pattern[1], text, re.DOTALL)) == text.count("```python") > 0


def understood(command):
    """Fails unless the command could be run here."""
    name, *arguments = shlex.split(command, comments=True)
    if name == "policyspace":
        parser = typer.main.get_command(app)
        while hasattr(parser, "commands"):
            name = arguments.pop(0)
            parser = parser.get_command(None, name)
        parser.make_context(name, arguments)
    elif name == "make":
        assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"no target: {command}"
    elif name == "pip":
        extras = re.findall(r"\[(.*?)\]", command)
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert {e for found in extras for e in found.split(",")} <= set(known), f"no such extra: {command}"
    elif name == "python":
        module = arguments[1] if arguments[0] == "-m" else arguments[0].removesuffix(".py")
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or path.is_dir() or module in ("build",), f"no such file: {command}"
    elif name == "xz":
        assert (ROOT / arguments[1]).exists(), f"no such file: {command}"
    else:
        assert name in ("dask", "git", "cd", "mkdir"), f"who checks '{command}'?"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_are_not_run_are_understood(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"{page.name}, line {block.first}: which language is this block?"
        if block.language == "sh":
            for line in "\n".join(block.lines).replace("\\\n", " ").splitlines():
                if line.strip():
                    understood(line)


def test_commands_stand_in_blocks_that_are_checked():
    for page in PAGES:
        for block in blocks_of(page):
            if block.language == "text":
                assert not any(line.startswith("$ ") for line in block.lines), f"{page.name}: a command in 'text'"
        for line in page.read_text(encoding="utf-8").splitlines():
            assert not re.match(r"    (\$ )?(policyspace|make|pip|python) ", line), f"{page.name}: unchecked: {line}"
