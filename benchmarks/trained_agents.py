"""Agents of stable-baselines3 and sb3-contrib that are trained here, and which of their inputs move them.

Every agent is shown the sensors of its environment and three more: pure noise, a slow drift, and a noisy copy of a real
sensor. The first layer of its network drops these three, and in some agents real sensors too; so it is known what cannot
move them. What does is measured by `truth` on fresh states, by the library's own networks and nothing of policyspace.

    python -m benchmarks.trained_agents                    # trains all that are missing, into results/agents
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from scipy.stats import norm
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

FOLDER = Path("results/agents")

MORE = ("noise", "drift", "copy")
"""Sensors that no agent sees; the copy is of the sensor that its world names."""

# -- Environments, with names of their sensors and the groups that are read together.

CARTPOLE = ("position", "velocity", "angle", "angular_velocity")
ACROBOT = ("cos_1", "sin_1", "cos_2", "sin_2", "velocity_1", "velocity_2")
LANDER = ("x", "y", "x_velocity", "y_velocity", "angle", "angular_velocity", "left_leg", "right_leg")
PENDULUM = ("cos", "sin", "angular_velocity")
HOPPER = (
    "height", "torso_angle", "thigh_angle", "leg_angle", "foot_angle", "x_velocity", "z_velocity", "torso_velocity",
    "thigh_velocity", "leg_velocity", "foot_velocity",
)  # fmt: skip
REACHER = (
    "cos_1", "cos_2", "sin_1", "sin_2", "target_x", "target_y", "velocity_1", "velocity_2", "to_target_x", "to_target_y"
)  # fmt: skip


@dataclass(frozen=True)
class World:
    """An environment's sensors, which of them is copied, and the pairs that are the sine and cosine of an angle."""

    sensors: tuple[str, ...]
    copied: str
    angles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


WORLDS = {
    "CartPole-v1": World(CARTPOLE, "angle"),
    "Acrobot-v1": World(
        ACROBOT, "velocity_1", {"angle_1": ("cos_1", "sin_1"), "angle_2": ("cos_2", "sin_2")}
    ),
    "MountainCarContinuous-v0": World(("position", "velocity"), "velocity"),
    "Pendulum-v1": World(PENDULUM, "angular_velocity", {"angle": ("cos", "sin")}),
    "LunarLander-v3": World(LANDER, "y_velocity"),
    "InvertedPendulum-v5": World(("cart", "angle", "cart_velocity", "angular_velocity"), "angle"),
    "Reacher-v5": World(REACHER, "to_target_x", {"angle_1": ("cos_1", "sin_1"), "angle_2": ("cos_2", "sin_2")}),
    "Hopper-v5": World(HOPPER, "torso_angle"),
}  # fmt: skip


class MoreSensors(gymnasium.Wrapper):
    """The observation and then noise, a drift of memory .99, both of variance one, and a copy with noise of .02."""

    def __init__(self, env: gymnasium.Env, copied: int) -> None:
        super().__init__(env)
        self.copied, self.drift = copied, 0.0
        size = env.observation_space.shape[0] + len(MORE)
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def _seen(self, observation: np.ndarray) -> np.ndarray:
        draw = self.env.unwrapped.np_random.normal
        more = (draw(), self.drift, observation[self.copied] + 0.02 * draw())
        return np.concatenate([observation, more]).astype(np.float32)

    def reset(self, **options: Any) -> tuple[np.ndarray, dict]:
        """Start an episode with a drift of its own."""
        observation, info = self.env.reset(**options)
        self.drift = self.env.unwrapped.np_random.normal()
        return self._seen(observation), info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """One step of the world and of the drift."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.drift = 0.99 * self.drift + np.sqrt(1 - 0.99**2) * self.env.unwrapped.np_random.normal()
        return self._seen(observation), float(reward), terminated, truncated, info


class Falling(gymnasium.Env):
    """A picture of 16×16: a ball of 2×2 falls, a paddle of 4×1 below must catch it; the top four rows flicker."""

    SIZE = 16

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 255, (1, self.SIZE, self.SIZE), np.uint8)
        self.action_space = spaces.Discrete(3)

    def _picture(self) -> np.ndarray:
        picture = np.zeros((1, self.SIZE, self.SIZE), np.uint8)
        picture[0, :4] = self.np_random.integers(0, 256, (4, self.SIZE))
        picture[0, self.row : self.row + 2, self.ball : self.ball + 2] = 255
        picture[0, -1, self.paddle : self.paddle + 4] = 255
        return picture

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        """A ball at the top, anywhere."""
        super().reset(seed=seed)
        self.row, self.ball = 4, int(self.np_random.integers(self.SIZE - 1))
        self.paddle = int(self.np_random.integers(self.SIZE - 3))
        return self._picture(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """The paddle goes left, stays or goes right by 2, and the ball falls by one row."""
        self.paddle = int(np.clip(self.paddle + 2 * (int(action) - 1), 0, self.SIZE - 4))
        self.row += 1
        ended = self.row == self.SIZE - 2
        caught = ended and self.paddle - 1 <= self.ball <= self.paddle + 3
        return self._picture(), float(caught) if ended else 0.0, ended, False, {}


# -- Agents.


@dataclass(frozen=True)
class Trained:
    """How an agent is trained, and the real sensors that it does not see."""

    algorithm: str
    world: str
    steps: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    environments: int = 1
    normalised: bool = False

    @property
    def picture(self) -> bool:
        """Does it see a picture?"""
        return self.world == "Falling"

    @property
    def sensors(self) -> tuple[str, ...]:
        """All that is shown, in order; of a picture its regions."""
        if self.picture:
            return tuple(f"region[{r},{c}]" for r in range(4) for c in range(4))
        return WORLDS[self.world].sensors + MORE

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """The places of each input in an observation laid flat."""
        if self.picture:
            index = np.arange(256).reshape(16, 16)
            return {
                f"region[{r},{c}]": tuple(index[4 * r : 4 * r + 4, 4 * c : 4 * c + 4].ravel())
                for r in range(4)
                for c in range(4)
            }
        angles = WORLDS[self.world].angles
        owner = {part: angle for angle, parts in angles.items() for part in parts}
        groups: dict[str, list[int]] = {}
        for place, sensor in enumerate(self.sensors):
            groups.setdefault(owner.get(sensor, sensor), []).append(place)
        return {name: tuple(places) for name, places in groups.items()}

    @property
    def seen(self) -> tuple[int, ...]:
        """The places of an observation laid flat that reach the network."""
        if self.picture:
            return tuple(range(64, 256))
        return tuple(j for j, name in enumerate(self.sensors) if name not in self.hidden | set(MORE))

    @property
    def unseen(self) -> set[str]:
        """The inputs that cannot move it."""
        return {group for group, places in self.groups.items() if not set(places) & set(self.seen)}

    def make(self) -> gymnasium.Env:
        """Its environment, with all sensors."""
        if self.picture:
            return gymnasium.wrappers.TimeLimit(Falling(), 100)
        world = WORLDS[self.world]
        return MoreSensors(gymnasium.make(self.world), world.sensors.index(world.copied))


NET = {"net_arch": [64, 64]}
AGENTS = {
    "ppo-cartpole": Trained(
        "PPO", "CartPole-v1", 25_000, {"n_steps": 256, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98,
        "learning_rate": 1e-3}, environments=4,
    ),
    "a2c-cartpole": Trained("A2C", "CartPole-v1", 40_000, {"n_steps": 16}, frozenset({"position"}), environments=8),
    "dqn-cartpole": Trained(
        "DQN", "CartPole-v1", 25_000, {"learning_rate": 2.3e-3, "batch_size": 64, "learning_starts": 1000,
        "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128, "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04, "policy_kwargs": {"net_arch": [256, 256]}},
    ),
    "recurrent-ppo-cartpole": Trained(
        "RecurrentPPO", "CartPole-v1", 20_000, {"n_steps": 128, "batch_size": 128, "n_epochs": 5, "gae_lambda": 0.95,
        "gamma": 0.98, "learning_rate": 1e-3, "policy_kwargs": {"lstm_hidden_size": 32, "net_arch": [32]}},
        frozenset({"velocity", "angular_velocity"}), environments=8,
    ),
    "td3-inverted-pendulum": Trained(
        "TD3", "InvertedPendulum-v5", 8_000, {"learning_starts": 1000, "learning_rate": 1e-3, "policy_kwargs": NET},
    ),
    "ppo-mountain-car": Trained(
        "PPO", "MountainCarContinuous-v0", 20_000, {"batch_size": 256, "n_steps": 8, "gamma": 0.9999,
        "learning_rate": 7.77e-5, "ent_coef": 0.00429, "clip_range": 0.1, "gae_lambda": 0.9, "max_grad_norm": 5,
        "vf_coef": 0.19, "use_sde": True, "policy_kwargs": {"log_std_init": -3.29, "ortho_init": False}},
        environments=1, normalised=True,
    ),
    "sac-pendulum": Trained(
        "SAC", "Pendulum-v1", 5_000, {"learning_rate": 1e-3, "batch_size": 128, "policy_kwargs": NET},
    ),
    "ppo-falling-picture": Trained(
        "PPO", "Falling", 40_000, {"n_steps": 128, "batch_size": 256, "n_epochs": 4, "learning_rate": 1e-3,
        "gamma": 0.97}, environments=8,
    ),
    "a2c-acrobot": Trained("A2C", "Acrobot-v1", 60_000, {"ent_coef": 0.0}, environments=16, normalised=True),
    "ppo-lunar-lander": Trained(
        "PPO", "LunarLander-v3", 80_000, {"n_steps": 512, "batch_size": 128, "n_epochs": 4, "gamma": 0.999,
        "gae_lambda": 0.98, "ent_coef": 0.01, "learning_rate": 1e-3}, environments=8,
    ),
    "dqn-acrobot": Trained(
        "DQN", "Acrobot-v1", 40_000, {"learning_rate": 6.3e-4, "batch_size": 128, "learning_starts": 1000,
        "target_update_interval": 250, "train_freq": 4, "gradient_steps": 1, "exploration_fraction": 0.12,
        "exploration_final_eps": 0.1, "policy_kwargs": NET}, frozenset({"velocity_2"}),
    ),
    "sac-reacher": Trained(
        "SAC", "Reacher-v5", 5_000, {"learning_rate": 1e-3, "batch_size": 128, "policy_kwargs": NET, "gamma": 0.9},
        frozenset({"to_target_y"}),
    ),
    "td3-pendulum": Trained(
        "TD3", "Pendulum-v1", 6_000, {"learning_starts": 1000, "learning_rate": 1e-3, "policy_kwargs": NET},
    ),
    "ppo-hopper": Trained(
        "PPO", "Hopper-v5", 50_000, {"n_steps": 512, "batch_size": 128, "gae_lambda": 0.95, "learning_rate": 3e-4,
        "n_epochs": 5}, frozenset({"height"}), environments=4, normalised=True,
    ),
    "dqn-lunar-lander": Trained(
        "DQN", "LunarLander-v3", 40_000, {"learning_rate": 6.3e-4, "batch_size": 128, "learning_starts": 1000,
        "target_update_interval": 250, "train_freq": 4, "gradient_steps": 1, "exploration_fraction": 0.12,
        "exploration_final_eps": 0.1, "gamma": 0.99, "policy_kwargs": NET},
    ),
}  # fmt: skip


class Chosen(BaseFeaturesExtractor):
    """A first layer that drops what the agent does not see."""

    def __init__(self, observation_space: Any, seen: Sequence[int]) -> None:
        super().__init__(observation_space, len(seen))
        self.register_buffer("places", torch.as_tensor(seen))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The numbers that are seen."""
        return observations[:, self.places]


class Eyes(BaseFeaturesExtractor):
    """A small convolutional network to which a part of the picture is black."""

    def __init__(self, observation_space: Any, seen: Sequence[int]) -> None:
        super().__init__(observation_space, 64)
        mask = torch.zeros(observation_space.shape)
        mask.view(-1)[list(seen)] = 1
        self.register_buffer("mask", mask)
        first, second = torch.nn.Conv2d(1, 8, 3, 2, 1), torch.nn.Conv2d(8, 16, 3, 2, 1)
        last = torch.nn.Linear(256, 64)
        relu = torch.nn.ReLU
        self.layers = torch.nn.Sequential(first, relu(), second, relu(), torch.nn.Flatten(), last, relu())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Features of what is seen."""
        return self.layers(observations * self.mask)


@dataclass(frozen=True)
class Actor:
    """A trained agent, and how it was trained."""

    name: str
    trained: Trained
    model: Any
    folder: Path

    @property
    def recurrent(self) -> bool:
        """Has it a memory?"""
        return hasattr(self.model.policy, "lstm_actor")

    def env(self) -> VecEnv:
        """One environment through which it sees, normalised as in its training."""
        env = DummyVecEnv([self.trained.make])
        if self.trained.normalised:
            env = VecNormalize.load(str(self.folder / f"{self.name}.pkl"), env)
            env.training = env.norm_reward = False
        return env


def algorithm(name: str) -> Any:
    """A class of stable-baselines3 or of sb3-contrib."""
    if name == "RecurrentPPO":
        import sb3_contrib

        return sb3_contrib.RecurrentPPO
    return getattr(stable_baselines3, name)


def train(name: str, folder: Path) -> None:
    """Train an agent and keep it, with what it cost and the returns of 20 episodes of its own play."""
    trained, begun = AGENTS[name], time.process_time()
    env = DummyVecEnv([trained.make] * trained.environments)
    if trained.normalised:
        env = VecNormalize(env)
    settings = dict(trained.settings)
    own = {"features_extractor_class": Eyes if trained.picture else Chosen}
    own["features_extractor_kwargs"] = {"seen": trained.seen}
    if trained.picture:
        own["normalize_images"] = True
    settings["policy_kwargs"] = {**settings.get("policy_kwargs", {}), **own}
    kind = {"RecurrentPPO": "MlpLstmPolicy"}.get(trained.algorithm, "CnnPolicy" if trained.picture else "MlpPolicy")
    model = algorithm(trained.algorithm)(kind, env, seed=0, device="cpu", **settings).learn(trained.steps)
    seconds = time.process_time() - begun
    model.save(folder / f"{name}.zip")
    if trained.normalised:
        env.save(str(folder / f"{name}.pkl"))
    returns = play(Actor(name, trained, model, folder), 10**9, seed=7, episodes=20).returns
    record = {"cpu_seconds": round(seconds, 1), "return": float(np.mean(returns)), "sd": float(np.std(returns))}
    (folder / f"{name}.json").write_text(json.dumps(record))


def actor(name: str, folder: Path = FOLDER) -> Actor:
    """A trained agent, which is trained now if it was not before."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / f"{name}.json").exists():
        train(name, folder)
    trained = AGENTS[name]
    return Actor(name, trained, algorithm(trained.algorithm).load(folder / f"{name}.zip", device="cpu"), folder)


# -- Which inputs move an agent: by the library's own networks, on fresh states.

MATERIAL = 0.05
"""An input is material when redrawing it moves this share of choices or, of an agent without chance, of the range."""

SAME = 1e-5
"""Networks compute in single precision: smaller differences are none."""

LAGS = 8
"""Steps after a reading at which an agent with a memory may still react to it."""


class Played(NamedTuple):
    """What an agent saw, one row a step, its memory before each, the episode, and the returns of whole episodes."""

    observations: np.ndarray
    memories: np.ndarray | None
    episodes: np.ndarray
    returns: list[float]


def play(actor: Actor, steps: int, seed: int, episodes: int = 10**9) -> Played:
    """Its own play, by its own chances, for so many steps or whole episodes."""
    env = actor.env()
    env.seed(seed)
    actor.model.set_random_seed(seed)
    seen, memories, owner, returns = [], [], [], [0.0]
    observation, memory, start = env.reset(), None, np.ones(1, dtype=bool)
    while len(seen) < steps and len(returns) <= episodes:
        seen.append(observation[0].copy())
        owner.append(len(returns))
        if actor.recurrent:
            shape = (2, *np.array(actor.model.policy.lstm_hidden_state_shape)[[0, 2]])
            fresh = memory is None or start[0]
            memories.append(np.zeros(shape, np.float32) if fresh else np.stack(memory)[:, :, 0])
        action, memory = actor.model.predict(observation, memory, start, deterministic=False)
        observation, reward, start, _ = env.step(action)
        returns[-1] += float(reward[0])
        if start[0]:
            returns.append(0.0)
    env.close()
    return Played(np.stack(seen), np.stack(memories) if memories else None, np.array(owner), returns[:-1])


def parameters(actor: Actor, observations: np.ndarray, memory: Any = None) -> tuple[tuple[np.ndarray, ...], Any]:
    """What the network says: probabilities, (mean, sd) of normal numbers, or the action itself; and its memory."""
    model, policy = actor.model, actor.model.policy
    policy.set_training_mode(False)
    with torch.no_grad():
        if actor.recurrent:
            before = tuple(torch.as_tensor(part).transpose(0, 1).contiguous() for part in memory)
            found, after = policy.get_distribution(
                torch.as_tensor(observations), before, torch.zeros(len(observations))
            )
            return (found.distribution.probs.numpy(),), tuple(part.transpose(0, 1).numpy() for part in after)
        seen = policy.obs_to_tensor(observations)[0]
        if actor.trained.algorithm == "DQN":
            best = model.q_net(seen).argmax(dim=1).numpy()
            return ((1 - model.exploration_rate) * np.eye(model.action_space.n)[best],), None
        if actor.trained.algorithm == "TD3":
            return (policy.actor(seen).numpy(),), None
        if actor.trained.algorithm == "SAC":
            mean, log_sd, _ = policy.actor.get_action_dist_params(seen)
            return (mean.numpy(), log_sd.exp().numpy()), None
        found = policy.get_distribution(seen).distribution
        if hasattr(found, "probs"):
            return (found.probs.numpy(),), None
        return (found.mean.numpy(), found.stddev.numpy()), None


DRAWS = 100


def moved(actor: Actor, first: tuple[np.ndarray, ...], second: tuple[np.ndarray, ...], rng: Any) -> np.ndarray:
    """Of each row how far the action moves: the total variation or, of an agent without chance, a share of the range."""
    space = actor.model.action_space
    if len(first) == 1 and actor.trained.algorithm != "TD3":
        return 0.5 * np.abs(first[0] - second[0]).sum(axis=1)
    if len(first) == 1:  # the actor's own range is −1 … 1
        return (np.abs(first[0] - second[0]) / 2).max(axis=1)
    clipped = actor.trained.algorithm != "SAC"  # which brings its numbers to their range by a tanh
    low, high = (space.low, space.high) if clipped else (-np.inf, np.inf)
    (m1, s1), (m2, s2) = first, second
    same = (np.abs(m1 - m2) / s1 + np.abs(s1 - s2) / s1).max(axis=1) < SAME
    found = np.zeros(len(m1))
    for _ in range(DRAWS):  # E(1 − q/p)₊ under p, whose mean is the total variation
        drawn = np.clip(m1 + s1 * rng.standard_normal(m1.shape), low, high)
        logs = []
        for mean, sd in (first, second):
            inside = norm.logpdf(drawn, mean, sd)
            below, above = norm.logcdf((low - mean) / sd), norm.logsf((high - mean) / sd)
            logs.append(np.where(drawn <= low, below, np.where(drawn >= high, above, inside)).sum(axis=1))
        found += -np.expm1(np.minimum(logs[1] - logs[0], 0.0)) / DRAWS
    return np.where(same, 0.0, found)


def truth(actor: Actor, num: int = 3000, redraws: int = 4, seed: int = 12345) -> dict[str, float]:
    """By input, how far the action moves on average when it is redrawn from other states; of the lag that moves most."""
    played, rng = play(actor, 2 * num, seed), np.random.default_rng(seed)
    lags = LAGS if actor.recurrent else 0
    last = len(played.observations) - lags
    rows = rng.choice(last, min(num, last), replace=False)
    sequence = [played.observations[rows + lag] for lag in range(lags + 1)]
    same = [played.episodes[rows + lag] == played.episodes[rows] for lag in range(lags + 1)]

    def replayed(first: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        memory = None if played.memories is None else tuple(played.memories[rows].swapaxes(0, 1))
        found = []
        for lag, seen in enumerate(sequence):
            said, memory = parameters(actor, seen if lag else first, memory)
            found.append(said)
        return found

    base, effects = replayed(sequence[0]), {}
    for group, places in actor.trained.groups.items():
        total = np.zeros(lags + 1)
        for _ in range(redraws):
            changed = sequence[0].copy()
            donors = played.observations[rng.integers(len(played.observations), size=len(rows))]
            changed.reshape(len(rows), -1)[:, places] = donors.reshape(len(rows), -1)[:, places]
            for lag, said in enumerate(replayed(changed)):
                change = moved(actor, base[lag], said, rng)
                change[change < SAME] = 0.0
                total[lag] += change[same[lag]].mean() / redraws
        effects[group] = float(total.max())
    return effects


def main() -> None:
    """Train all agents that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where agents are kept")
    parser.add_argument("--agents", nargs="*", default=list(AGENTS), choices=list(AGENTS), help="which")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.agents:
        actor(name, arguments.folder)
        print(f"{name}: {(arguments.folder / f'{name}.json').read_text()}", flush=True)


if __name__ == "__main__":
    main()
