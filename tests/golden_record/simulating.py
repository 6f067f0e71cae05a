"""Problems of the worlds: episodes, learning, configured runs, studies, and the files they leave behind."""

import json
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import policyspace

from .command_line import run
from .identifying import answer
from .record import without_words

WORLDS = ("gridworld", "continuous-gridworld", "minigolf", "car", "cartpole")
ASKED = ("row_0", "row_1", "col_1", "goal_row_2")


def key(seed: int) -> Any:
    policyspace.make_world("gridworld")  # before JAX is used, policyspace sets its precision
    import jax

    return jax.random.key(seed)


def agent(world: Any, owned: tuple[str, ...] = ("row_0", "goal_row_2")) -> Any:
    """(space, θ) of an agent that does not learn: in a grid world it owns two features, elsewhere anything."""
    space = world.policy_space()
    theta = np.random.default_rng(12).normal(size=space.num_parameters)
    if world.name == "gridworld":
        free = space.free_mask(frozenset(i for i, g in enumerate(space.groups) if g.name in owned))
        return space, np.where(free, 2.0 * theta, 0.0)
    if world.name == "minigolf":
        return space, np.array([0.3, 0.02, 0.0, 0.0, 0.0, 0.0])
    return space, 0.1 * theta


def episodes(name: str, folder: Path) -> dict[str, Any]:
    world = policyspace.make_world(name)
    seen = policyspace.rollout(world, *agent(world), world.default_configuration(), key(5), 6)
    features = np.asarray(seen.features)[np.asarray(seen.mask)]
    actions = np.asarray(seen.actions)[np.asarray(seen.mask)]
    return {
        "feature names": list(world.feature_names),
        "action names": list(world.action_names),
        "configuration": {name: np.asarray(value) for name, value in world.default_configuration().items()},
        "random configuration": {name: np.asarray(v) for name, v in world.random_configuration(key(6)).items()},
        "lengths": seen.lengths,
        "returns": np.asarray(seen.returns(0.9)),
        "mean features": features.mean(axis=0),
        "mean actions": actions.mean(axis=0),
    }


def learned(name: str, folder: Path) -> dict[str, Any]:
    world = policyspace.make_world(name)
    made = policyspace.learn(world, world.policy_space(), key=2, num_steps=6, num_episodes=30)
    return {"controls": made.controls, "theta": made.theta, "learning curve": made.learning_curve}


def configured(name: str, settings: dict[str, Any], always: bool, folder: Path) -> list[dict[str, Any]]:
    """Rounds of `configure`; of a grid world only four features are in question, where it says so."""
    world = policyspace.make_world(name, **({"horizon": 15} if name == "gridworld" else {}))
    space, theta = agent(world)
    tested = space.with_assumed([n for n in world.feature_names if n not in ASKED]) if always else space

    def observe(key: Any, configuration: Any, num_episodes: int) -> Any:
        return policyspace.rollout(world, space, theta, configuration, key, num_episodes)

    design = settings["design"](policyspace.study)
    rounds = policyspace.configure(world, observe, key(3), tested, **(settings | {"design": design}))
    return [_round(told) for told in rounds]


def _round(told: Any) -> dict[str, Any]:
    names = ("number", "configuration", "num_episodes", "significance", "fell", "selected", "undecided")
    numbers = ("objective", "gain", "cost", "effective_sample_size", "largest_weight")
    stored = told.to_dict()
    reasons = {name: told.reasons[name] for name in numbers} if told.design else {}
    return {
        **{name: stored[name] for name in (*names, "supports", "total_episodes")},
        "proposal": {"design": told.design, "units": told.asked_for} | reasons if told.design else None,
        "answer": None if told.identification is None else answer(told.identification),
    }


DESIGNS = {
    "uniform": lambda designs: designs.Uniform(),
    "none": lambda designs: designs.NoReconfiguration(),
    "paper": lambda designs: designs.PaperObjective(num_updates=5, num_starts=2),
    "d-optimal": lambda designs: designs.Information(num_simulated=30, num_stages=2, num_updates=3),
    "noncentrality": lambda designs: designs.Information("noncentrality", num_simulated=30, num_stages=1),
}


def configure_command(folder: Path) -> dict[str, Any]:
    run("configure", "gridworld", "--learning-steps", 10, "--episodes", 40, "--max-rounds", 1, "--design", "uniform",
        "--controls", "goal_row_2,row_0", "--seed", 3, "--out", folder / "run")  # fmt: skip
    written = json.loads((folder / "run" / "rounds.json").read_text(encoding="utf-8"))
    return without_words(written) | {"files": sorted(path.name for path in (folder / "run").iterdir())}


def simulate_command(folder: Path) -> dict[str, Any]:
    """A simulated file and a saved agent; identified without options, for the file knows the roles of its columns."""
    file, saved = folder / "made.parquet", folder / "agent.json"
    run("simulate", "gridworld", "--learning-steps", 10, "--episodes", 40, "--seed", 4, "--out", file,
        "--controls", "goal_row_2,row_0", "--save-agent", saved)  # fmt: skip
    made = policyspace.read(file)
    return {
        "answer": answer(policyspace.identify(made)),
        "origin": sorted(made.origin.to_dict()),
        "agent": without_words(json.loads(saved.read_text(encoding="utf-8"))),
    }


def data_files(folder: Path) -> dict[str, Any]:
    """The names of what is stored in files of demonstrations."""
    import polars

    world = policyspace.make_world("gridworld")
    seen = policyspace.rollout(world, *agent(world), world.default_configuration(), key(7), 3)
    made = seen.pairs(world.feature_names, world.action_names, {"truth": ["row_0"]})
    for suffix in ("csv", "parquet", "arrow", "npz"):
        policyspace.write(made, folder / f"made.{suffix}")
    with np.load(folder / "made.npz") as arrays:
        stored = sorted(arrays)
    again = [policyspace.read(folder / f"made.{suffix}") for suffix in ("csv", "parquet", "arrow", "npz")]
    return {
        "parquet": polars.read_parquet(folder / "made.parquet").columns,
        "arrow": polars.read_ipc(folder / "made.arrow").columns,
        "csv": (folder / "made.csv").read_text(encoding="utf-8").splitlines()[:3],
        "npz": stored,
        "read again": [[one.num_rows, one.num_episodes, sorted(one.origin.to_dict())] for one in again],
    }


# -- studies ---------------------------------------------------------------------------------------------------------


def study(path: Path, tell: Any, settings: dict[str, Any], count: int = 2) -> dict[str, Any]:
    """Ask and tell to the end, and the state of the study after it."""
    made = policyspace.Study.create(path, **settings)
    for number in range(count):
        request = made.ask()
        made.tell(tell(number, request.configuration))
    last = made.ask()
    status = policyspace.Study.open(path).status().to_dict()
    status["finished"] = status["finished"] is not None
    return without_words(
        status | {"names of the fields": list(status), "next": None if last is None else last.to_dict()}
    )


def told_by(name: str) -> Any:
    """Episodes of an agent of known weights."""
    world = policyspace.make_world(name)
    space, theta = agent(world)

    def tell(number: int, configuration: Any) -> policyspace.Sample:
        omega = world.check_configuration(configuration)
        seen = policyspace.rollout(world, space, theta, omega, key(20 + number), 12)
        return seen.pairs(world.feature_names, world.action_names, {"truth": ["row_0", "goal_row_2"]})

    return tell


def linear_study(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    common = {"max_rounds": 1, "num_episodes": 12, "seed": 5}
    return study(folder / "study.sqlite", told_by(settings["world"]), common | settings)


def network_study(folder: Path) -> dict[str, Any]:
    """A driver that steers by one sensor, two in question."""
    world = policyspace.make_world("car")
    space = world.policy_space()
    theta = np.zeros(space.num_parameters)
    (inner, _), (outer, _) = space.layer_indices
    theta[inner[0, 1]], theta[outer[1, 0]] = 3.0, 0.6

    def tell(number: int, configuration: Any) -> policyspace.Sample:
        rng = np.random.default_rng(number)
        features = rng.random((200, 5))
        actions = np.asarray(space.sample(rng, theta, features))
        return policyspace.Sample(features, actions, world.feature_names, world.action_names, np.arange(200) // 50)

    settings = {"world": "car", "features": ["sensor_+45", "sensor_-30"], "design": "none"}
    return study(folder / "study.sqlite", tell, settings)


def study_file(folder: Path) -> dict[str, Any]:
    """The tables of the file of a study, and what the header says it is."""
    path = folder / "study.sqlite"
    run("study", "create", path, "--world", "minigolf", "--design", "none", "--max-rounds", 1)
    run("study", "ask", path, "--json", folder / "ask.json")
    policyspace.write(told_by("minigolf")(0, {}), folder / "told.csv")
    run("study", "tell", path, folder / "told.csv")
    run("study", "status", path, "--json", folder / "status.json")
    with closing(sqlite3.connect(path)) as connection:
        header = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        stored = {
            "settings": dict(connection.execute("SELECT name, value FROM settings ORDER BY name").fetchall()),
            "round": sorted(json.loads(connection.execute("SELECT record FROM rounds").fetchone()[0])),
            "request": sorted(json.loads(connection.execute("SELECT record FROM requests").fetchone()[0])),
        }
    return stored | {
        "header": header,
        "tables": tables(path),
        "ask": list(json.loads((folder / "ask.json").read_text(encoding="utf-8"))),
        "status": list(json.loads((folder / "status.json").read_text(encoding="utf-8"))),
    }


def tables(path: Path) -> dict[str, list[list[Any]]]:
    """Every table of an SQLite file with the name and type of its columns."""
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {n: [[c[1], c[2]] for c in connection.execute(f"PRAGMA table_info({n})")] for n in sorted(names)}


def _rounds(world: str, design: str, always: bool = True, **settings: Any) -> Any:
    small = {"design": DESIGNS[design], "num_episodes": 40, "max_rounds": 1}
    return partial(configured, world, small | settings, always)


PROBLEMS: dict[str, Any] = {f"episodes, {name}": partial(episodes, name) for name in WORLDS}
PROBLEMS |= {
    "learning, minigolf": partial(learned, "minigolf"),
    "configured gridworld, uniform": _rounds("gridworld", "uniform", max_rounds=2),
    "configured gridworld, all features": _rounds(
        "gridworld", "uniform", False, num_episodes=None, budget=100, significance=0.1
    ),
    "configured gridworld, combinatorial": _rounds("gridworld", "uniform", rule="combinatorial"),
    "configured gridworld, paper's union": _rounds("gridworld", "none", paper_rule=True),
    "configured gridworld, combinatorial, paper's union": _rounds(
        "gridworld", "none", rule="combinatorial", paper_rule=True
    ),
    "configured gridworld, paper": _rounds("gridworld", "paper"),
    "configured gridworld, d-optimal": _rounds("gridworld", "d-optimal"),
    "configured minigolf, uniform, combinatorial": _rounds("minigolf", "uniform", False, rule="combinatorial"),
    "configured minigolf, d-optimal": _rounds("minigolf", "d-optimal", False, num_episodes=8),
    "command configure": configure_command,
    "command simulate": simulate_command,
    "files of demonstrations": data_files,
    "study, gridworld, uniform": partial(
        linear_study, {"world": "gridworld", "design": "uniform", "features": list(ASKED)}
    ),
    "study, gridworld, combinatorial": partial(
        linear_study, {"world": "gridworld", "design": "none", "rule": "combinatorial", "features": list(ASKED)}
    ),
    "study, gridworld, d-optimal": partial(linear_study, {"world": "gridworld", "features": list(ASKED)}),
    "study, minigolf, e-process": partial(linear_study, {"world": "minigolf", "design": "none", "test": "eprocess"}),
    "study, car, network": network_study,
    "file of a study": study_file,
}
SLOW_PROBLEMS: dict[str, Any] = {
    "learning, car": partial(learned, "car"),
    "configured gridworld, noncentrality": _rounds("gridworld", "noncentrality"),
    "configured minigolf, paper": _rounds("minigolf", "paper", False, num_episodes=8),
    "configured continuous-gridworld, d-optimal": _rounds("continuous-gridworld", "d-optimal", False, num_episodes=8),
}
