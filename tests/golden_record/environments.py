"""Problems of environments and studies: agents that are watched, worlds made of environments, rounds in memory and files."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import policyspace

from .answers import asked, identified, logged, refused, standing, told
from .simulating import ASKED, key, told_by

OLDER = Path(__file__).parents[1] / "study" / "older_files"


class Lane(gymnasium.Env[Any, Any]):
    """A car beside the middle of its lane, in wind; how strong it steers and how much wind there is can be set."""

    observation_space = spaces.Dict(
        car=spaces.Box(-np.inf, np.inf, (2,), np.float64), weather=spaces.Discrete(3), wind=spaces.Box(-9, 9, (1,))
    )

    def __init__(self, steering: float = 0.5, discrete: bool = True) -> None:
        self.steering, self.gust, self.discrete = steering, 0.5, discrete
        self.action_space = spaces.Discrete(2) if discrete else spaces.Box(-2, 2, (1,))

    def seen(self) -> dict[str, Any]:
        self.wind = self.gust * self.np_random.normal()
        self.weather = int(self.np_random.integers(3))
        return {
            "car": np.array([self.place, self.speed]),
            "weather": self.weather,
            "wind": np.array([self.wind], np.float32),
        }

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.step_number = 0
        self.place, self.speed = self.np_random.normal(size=2)
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        push = 2.0 * action - 1.0 if self.discrete else float(action[0])
        self.step_number += 1
        self.speed = 0.7 * self.speed + self.steering * push + self.wind
        self.place = 0.9 * self.place + 0.3 * self.speed
        return self.seen(), -abs(self.place), abs(self.place) > 4, self.step_number == 12, {}


BOUNDS = {"steering": (0.2, 1.0), "gust": (0.1, 1.5, 0.5)}


class Driver:
    """Steers by its place and a little by the wind, with a chance of its own."""

    def __init__(self, discrete: bool = True) -> None:
        self.rng, self.discrete = np.random.default_rng(41), discrete

    def __call__(self, seen: Any) -> Any:
        aim = -1.5 * seen["car"][0] - 0.8 * seen["wind"][0]
        if self.discrete:
            return int(self.rng.random() < 1 / (1 + np.exp(-aim)))
        return np.array([aim / 2 + 0.4 * self.rng.normal()], np.float32)


def lane(steering: float = 0.5) -> Lane:
    return Lane(steering)


def open_lane(steering: float = 0.5) -> Lane:
    return Lane(steering, discrete=False)


lane.__module__ = open_lane.__module__ = "lanes"  # by whatever name this module was imported

LANES = {"labels": (lane, True), "amounts": (open_lane, False)}


def watched(kind: str, folder: Path) -> dict[str, Any]:
    make, discrete = LANES[kind]
    made = policyspace.watch(make(), Driver(discrete), 30, seed=3)
    return {"read": logged(made), "answer": identified(policyspace.identify(made))}


def watched_at_once(folder: Path) -> dict[str, Any]:
    """Three environments beside each other, and names for what is seen."""
    env = gymnasium.vector.SyncVectorEnv([partial(gymnasium.make, "CartPole-v1") for _ in range(3)])
    names = ["place", "speed", "angle", "turn"]
    rng = np.random.default_rng(42)

    def act(seen: Any) -> Any:
        return (rng.random(len(seen)) < 1 / (1 + np.exp(-10 * seen[:, 2] - 2 * seen[:, 3]))).astype(int)

    return {"read": logged(policyspace.watch(env, act, 9, seed=1, features=names))}


def world(kind: str, folder: Path) -> dict[str, Any]:
    """What is found out about an environment, and episodes of an agent and of a policy in it."""
    make, discrete = LANES[kind]
    made = policyspace.GymnasiumWorld.of(make, BOUNDS)
    omega = made.check_configuration({"steering": 0.8})
    space = made.policy_space(**({} if discrete else {"covariance": 0.3}))
    theta = 0.3 * np.random.default_rng(43).normal(size=space.num_parameters)
    played = made.observe(Driver(discrete))(key(8), omega, 5)
    simulated = made.simulate(space, theta, omega, key(9), 5)
    return {
        "parameters": [[p.name, p.low, p.high, p.default] for p in made.parameters],
        "features": list(made.feature_names),
        "categories": {name: list(levels) for name, levels in made.blocks.items()},
        "actions": list(made.action_names),
        "bounds of actions": made.action_bounds,
        "groups": [group.name for group in space.groups],
        "played": [played.lengths, np.asarray(played.returns(0.9))],
        "simulated": [simulated.lengths, np.asarray(simulated.returns(0.9))],
    }


# -- rounds --------------------------------------------------------------------------------------------------------------


def played(kind: str, settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A study of an environment, in which an agent plays two rounds; opened anew from its file for each."""
    make, discrete = LANES[kind]
    common = {"max_rounds": 1, "episodes": 12, "seed": 5}
    policyspace.Study.create(folder / "lane.sqlite", env=make, parameters=BOUNDS, **(common | settings))
    agent = Driver(discrete)
    first = asked(policyspace.Study.open(folder / "lane.sqlite", env=make).ask())
    while policyspace.Study.open(folder / "lane.sqlite", env=make).play(agent) is not None:
        pass
    return {"first": first, "status": standing(policyspace.Study.open(folder / "lane.sqlite", env=make).status())}


def configured(kind: str, settings: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """The same in memory."""
    make, discrete = LANES[kind]
    place = policyspace.GymnasiumWorld.of(make, BOUNDS)
    rounds = policyspace.configure(
        place, place.observe(Driver(discrete)), key(3), **({"max_rounds": 1, "episodes": 12} | settings)
    )
    return [told(one) | {"answer": _answer(one)} for one in rounds]


def _answer(one: Any) -> dict[str, Any] | None:
    return None if one.identification is None else identified(one.identification)


def in_world(name: str, settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A study of one of our worlds, that is asked and told twice."""
    common = {"max_rounds": 1, "episodes": 12, "seed": 6}
    made = policyspace.Study.create(folder / "study.sqlite", name, **(common | settings))
    requests, tell = [], told_by(name)
    for number in range(2):
        requests.append(asked(request := made.ask()))
        if request is None:
            break
        made.tell(tell(number, request.configuration))
    return {
        "asked": requests,
        "last": asked(made.ask()),
        "status": standing(policyspace.Study.open(made.path).status()),
    }


def older(name: str, folder: Path) -> dict[str, Any]:
    """A file of an earlier version."""
    shutil.copy(OLDER / name, folder / name)
    made = policyspace.Study.open(folder / name)
    return {"status": standing(made.status()), "next": asked(made.ask())}


PROBLEMS: dict[str, Any] = {f"watched, {kind}": partial(watched, kind) for kind in LANES}
PROBLEMS |= {f"world of an environment, {kind}": partial(world, kind) for kind in LANES}
PROBLEMS |= {
    "watched, three at once": watched_at_once,
    "study, lane, labels, space-filling": partial(played, "labels", {"design": "space-filling"}),
    "study, lane, labels, simulated": partial(played, "labels", {"design": "simulated"}),
    "study, lane, labels, uniform, batches": partial(played, "labels", {"design": "uniform", "test": "batches"}),
    "study, lane, labels, e-process": partial(refused, partial(played, "labels", {"test": "eprocess"})),
    "study, lane, amounts, budget": partial(
        played, "amounts", {"design": "space-filling", "budget": 30, "episodes": None, "max_rounds": None}
    ),
    "study, lane, amounts, combinatorial": partial(
        played, "amounts", {"design": "uniform", "rule": "combinatorial", "significance": 0.1}
    ),
    "configured lane, labels": partial(configured, "labels", {}),
    "configured lane, amounts": partial(configured, "amounts", {"test": "combined"}),
    "study, minigolf, combined": partial(in_world, "minigolf", {"design": "uniform", "test": "combined"}),
    "study, gridworld, batches": partial(
        in_world, "gridworld", {"design": "uniform", "features": list(ASKED), "test": "batches"}
    ),
    "study, gridworld, parameters": partial(in_world, "gridworld", {"design": "none", "groups": "parameter"}),
    "older study, batches": partial(older, "study-batches.sqlite"),
    "older study, e-process": partial(older, "study-eprocess.sqlite"),
}
SLOW_PROBLEMS: dict[str, Any] = {
    "study, cartpole": partial(in_world, "cartpole", {"design": "uniform"}),
    "study, continuous-gridworld": partial(in_world, "continuous-gridworld", {"design": "none"}),
}
