"""Which sensors does a trained agent use? Real agents of stable-baselines3 that cannot see some of what is logged.

Every log lists the observations of the environment, a drifting input and an input of pure noise. No agent sees the last
two, and some agents are trained without one of the real observations, too. So it is known what they cannot use; what
they do use is measured by replacing one input at a time and asking the agent again.

    pip install 'policyspace[agents]'
    python examples/agents_that_ignore_sensors.py --folder agents            # trains, plays, writes CSV files, asks
    python examples/agents_that_ignore_sensors.py --folder agents --logs 10  # ten logs an agent, to count errors
"""

import argparse
import gzip
import json
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars
import torch
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import make_vec_env

import policyspace

INPUTS = {
    "Pendulum-v1": ("cos_angle", "sin_angle", "angular_velocity", "drift", "noise"),
    "CartPole-v1": ("position", "velocity", "pole_angle", "pole_velocity", "drift", "noise"),
}
NEVER_SEEN = {"drift", "noise"}
PLAYS = ("stochastic", "greedy")


@dataclass(frozen=True)
class Agent:
    """How an agent is trained, and what it does not see beside the drift and the noise."""

    algorithm: type[BaseAlgorithm]
    world: str
    steps: int
    settings: dict[str, Any]
    hidden: frozenset[str] = frozenset()
    training_worlds: int = 1

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs that are logged."""
        return INPUTS[self.world]

    @property
    def seen(self) -> list[int]:
        """The columns that the agent sees."""
        return [j for j, name in enumerate(self.inputs) if name not in NEVER_SEEN | self.hidden]

    @property
    def usable(self) -> list[str]:
        """The names of the inputs that the agent sees."""
        return [self.inputs[j] for j in self.seen]


PPO_PENDULUM = {"n_steps": 1024, "gamma": 0.9, "learning_rate": 1e-3, "ent_coef": 0.0}
PPO_CARTPOLE = {"n_steps": 256, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "learning_rate": 1e-3}
SAC_PENDULUM = {"learning_rate": 1e-3, "batch_size": 128, "policy_kwargs": {"net_arch": [64, 64]}}
DQN_CARTPOLE = {
    "learning_rate": 2.3e-3,
    "batch_size": 64,
    "learning_starts": 1000,
    "target_update_interval": 10,
    "train_freq": 256,
    "gradient_steps": 128,
    "exploration_fraction": 0.16,
    "exploration_final_eps": 0.1,
}
AGENTS = {
    "ppo-pendulum": Agent(PPO, "Pendulum-v1", 100_000, PPO_PENDULUM, training_worlds=4),
    "ppo-pendulum-no-velocity": Agent(
        PPO, "Pendulum-v1", 60_000, PPO_PENDULUM, frozenset({"angular_velocity"}), training_worlds=4
    ),
    "sac-pendulum": Agent(SAC, "Pendulum-v1", 8_000, SAC_PENDULUM),
    "ppo-cartpole": Agent(PPO, "CartPole-v1", 60_000, PPO_CARTPOLE, training_worlds=4),
    "ppo-cartpole-no-position": Agent(
        PPO, "CartPole-v1", 60_000, PPO_CARTPOLE, frozenset({"position"}), training_worlds=4
    ),
    "dqn-cartpole": Agent(DQN, "CartPole-v1", 50_000, DQN_CARTPOLE),
}


class MoreSensors(gymnasium.Wrapper):
    """The observation, an AR(1) input with memory .95, and independent noise; both of variance one."""

    def __init__(self, env: gymnasium.Env, columns: list[int] | None = None) -> None:
        super().__init__(env)
        size = env.observation_space.shape[0] + 2 if columns is None else len(columns)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.columns = columns
        self.drift = 0.0

    def _extended(self, observation: np.ndarray) -> np.ndarray:
        noise = self.env.np_random.normal()
        full = np.array([*observation, self.drift, noise], np.float32)
        return full if self.columns is None else full[self.columns]

    def reset(self, **options: Any) -> tuple[np.ndarray, dict]:
        """Start an episode with a drift of its own."""
        observation, info = self.env.reset(**options)
        self.drift = self.env.np_random.normal()
        return self._extended(observation), info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """One step of the world and of the drift."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.drift = 0.95 * self.drift + np.sqrt(1 - 0.95**2) * self.env.np_random.normal()
        return self._extended(observation), float(reward), terminated, truncated, info


def trained(name: str, agent: Agent, folder: Path, seed: int) -> BaseAlgorithm:
    """The agent, from its file if it was trained before."""
    path = folder / f"{name}-seed{seed}.zip"
    if path.exists():
        return agent.algorithm.load(path, device="cpu")
    worlds = make_vec_env(
        lambda: MoreSensors(gymnasium.make(agent.world), agent.seen), n_envs=agent.training_worlds, seed=seed
    )
    model = agent.algorithm("MlpPolicy", worlds, seed=seed, device="cpu", **agent.settings)
    model.learn(agent.steps)
    model.save(path)
    return model


@dataclass(frozen=True)
class Log:
    """What was written down while an agent played."""

    inputs: tuple[str, ...]
    features: np.ndarray
    actions: np.ndarray
    episodes: np.ndarray
    returns: list[float] = field(default_factory=list)

    def frame(self) -> polars.DataFrame:
        """The table, five digits after the point."""
        columns = {name: np.round(self.features[:, j].astype(float), 5) for j, name in enumerate(self.inputs)}
        return polars.DataFrame({"episode": self.episodes, **columns, "action": self.actions})


def play(agent: Agent, model: BaseAlgorithm, num_rows: int, greedy: bool, seed: int) -> Log:
    """Let the agent act, episodes of at most 200 (Pendulum) or 100 (CartPole) steps, until there are enough rows."""
    limit = 200 if agent.world == "Pendulum-v1" else 100
    world = MoreSensors(gymnasium.make(agent.world, max_episode_steps=limit))
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - DQN explores by NumPy's global generator
    model.action_space.seed(seed)
    observation, _ = world.reset(seed=seed)
    rows, actions, episodes, returns = [], [], [], [0.0]
    while len(rows) < num_rows:
        action, _ = model.predict(observation[agent.seen], deterministic=greedy)
        rows.append(observation)
        actions.append(int(action) if action.ndim == 0 else round(float(action[0]), 5))
        episodes.append(len(returns))
        observation, reward, terminated, truncated, _ = world.step(action)
        returns[-1] += float(reward)
        if terminated or truncated:
            observation, _ = world.reset()
            returns.append(0.0)
    return Log(agent.inputs, np.array(rows), np.array(actions), np.array(episodes), returns[:-1])


def decisions(agent: Agent, model: BaseAlgorithm, features: np.ndarray) -> np.ndarray:
    """What the agent means to do [n, k]: its mean action, its probabilities, or (DQN) its greedy action one-hot."""
    seen = features[:, agent.seen]
    if agent.algorithm is PPO and agent.world == "CartPole-v1":
        with torch.no_grad():
            return model.policy.get_distribution(torch.as_tensor(seen)).distribution.probs.numpy()
    action, _ = model.predict(seen, deterministic=True)
    return np.eye(2)[action] if agent.algorithm is DQN else action


def reliance(agent: Agent, model: BaseAlgorithm, log: Log, seed: int = 0) -> dict[str, float]:
    """How far decisions move, in their own standard deviations, when an input is replaced by that of another row."""
    rng = np.random.default_rng(seed)
    before = decisions(agent, model, log.features)
    moved = {}
    for j, name in enumerate(agent.inputs):
        replaced = log.features.copy()
        replaced[:, j] = rng.permutation(replaced[:, j])
        change = decisions(agent, model, replaced) - before
        moved[name] = round(float(np.sqrt(np.mean(change**2) / np.mean(np.var(before, axis=0)))), 3)
    return moved


def seed_of(log_name: str, seed: int) -> int:
    """A seed of its own for every log: with one seed for all, the same drift would meet every agent."""
    return zlib.crc32(f"{log_name} {seed}".encode())


def ask(table: polars.DataFrame, inputs: tuple[str, ...], test: str) -> list[str]:
    """What `policyspace.identify` calls used."""
    return list(policyspace.identify(table, "action", names=inputs, episodes="episode", test=test).selected)


def report(name: str, agent: Agent, model: BaseAlgorithm, options: argparse.Namespace) -> dict[str, Any]:
    """Play, ask and compare; write every log to the folder, and return what is true of the agent."""
    truth: dict[str, Any] = {"algorithm": agent.algorithm.__name__, "world": agent.world, "steps": agent.steps}
    truth |= {"seed": options.seed, "inputs": list(agent.inputs), "can use": agent.usable}
    for kind in PLAYS:
        named: Counter[str] = Counter()
        num_false = 0
        for i in range(options.logs):
            log = play(agent, model, options.rows, kind == "greedy", seed_of(f"{name}-{kind}-{i + 1}", options.seed))
            if i == 0:
                moved, mean_return = reliance(agent, model, log), round(float(np.mean(log.returns)), 1)
                truth[kind] = {"mean return": mean_return, "decisions move by": moved}
                print(f"\n{name}, {kind}: mean return {mean_return:g} of {len(log.returns)} episodes")
                print("  decisions move by " + ", ".join(f"{key} {value:g}" for key, value in moved.items()))
            with gzip.GzipFile(options.folder / f"{name}-{kind}-{i + 1}.csv.gz", "wb", mtime=0) as file:
                log.frame().write_csv(file)
            selected = ask(log.frame(), agent.inputs, options.test)
            named.update(selected)
            num_false += bool(set(selected) - set(agent.usable))
        print(f"  called used in {options.logs} logs: " + ", ".join(f"{n} {named[n]}" for n in agent.inputs))
        print(f"  logs with an input that the agent cannot see: {num_false} of {options.logs}")
    return truth


def main() -> None:
    """Train, play, ask, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("agents"), help="where logs and truth.json go")
    parser.add_argument("--models", type=Path, help="where trained agents are kept (default: the same folder)")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS), metavar="NAME")
    parser.add_argument("--rows", type=int, default=2000, help="rows a log")
    parser.add_argument("--logs", type=int, default=1, help="logs an agent and kind of play")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test", default="auto", help="the test that decides")
    options = parser.parse_args()
    torch.set_num_threads(1)
    models = options.models or options.folder
    for folder in (options.folder, models):
        folder.mkdir(parents=True, exist_ok=True)
    truth = {}
    for name in options.agents:
        agent = AGENTS[name]
        truth[name] = report(name, agent, trained(name, agent, models, options.seed), options)
    (options.folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
