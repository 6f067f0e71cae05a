"""An agent that plays: anything with `predict`, as of stable-baselines3, or a function of what it sees."""

import zipfile
from pathlib import Path
from typing import Any, final

import numpy as np

from policyspace.data.connectors.flattening import each_array
from policyspace.data.extras import library
from policyspace.errors import InputError, nearest, reason_of

SIGNS = {
    "DQN": "exploration_fraction", "SAC": "target_entropy", "TD3": "policy_delay", "PPO": "clip_range", "A2C": "gae_lambda"
}  # fmt: skip
"""What only this algorithm of stable-baselines3, or one before it here, writes into its file; DDPG is loaded as a TD3."""

CHUNK = 10_000
"""Rows whose probabilities are computed at once."""


@final
class Player:
    """Acts, by its own chances unless `deterministic`, and knows how probable its actions were, if the agent does."""

    def __init__(self, agent: Any, deterministic: bool = False) -> None:
        if not (hasattr(agent, "predict") or callable(agent)):
            raise InputError(
                f"an agent has predict(observation, deterministic=False) or is a function of the observation, found "
                f"{type(agent).__name__}."
            )
        self.agent, self.deterministic = agent, deterministic
        self.memory: Any = None

    @property
    def name(self) -> str:
        """What the agent is called in messages."""
        return getattr(self.agent, "__name__", type(self.agent).__name__)

    def seed(self, seed: int) -> None:
        """Seed the agent's own chances, if it has a way to; a function has those that it was made with."""
        if hasattr(self.agent, "set_random_seed"):
            self.agent.set_random_seed(seed)

    def act(self, observation: Any, starts: np.ndarray) -> Any:
        """The action; agents with a memory are told where an episode starts."""
        if not hasattr(self.agent, "predict"):
            return self.agent(observation)
        memory = {} if self.memory is None else {"state": self.memory, "episode_start": starts}
        found = self.agent.predict(observation, deterministic=self.deterministic, **memory)
        if isinstance(found, tuple) and len(found) == 2:
            found, self.memory = found
        return found

    def log_probabilities(self, observations: Any, actions: Any) -> np.ndarray | None:
        """log π(a|s) [n] by the agent itself; not a number where the action was clipped, None if it cannot tell."""
        policy: Any = getattr(self.agent, "policy", None)
        if not hasattr(policy, "evaluate_actions") or self.memory is not None or policy.squash_output:
            return None
        import torch

        policy.set_training_mode(False)
        found = []
        for start in range(0, len(actions), CHUNK):
            part = slice(start, start + CHUNK)
            seen, _ = policy.obs_to_tensor(each_array(lambda array, part=part: array[part], observations))
            with torch.no_grad():
                chosen = torch.as_tensor(actions[part], device=policy.device)
                found.append(policy.evaluate_actions(seen, chosen)[1].cpu().numpy().astype(np.float64))
        known = np.concatenate(found)
        if hasattr(policy.action_space, "low"):
            inside = (actions > policy.action_space.low) & (actions < policy.action_space.high)
            known[~inside.reshape(len(actions), -1).all(axis=1)] = np.nan
        return known


def agent_from_file(path: str | Path, algorithm: str | None = None) -> Any:
    """An agent saved by stable-baselines3; its algorithm is seen in the file unless it is named."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file: check the path of the agent.")
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: expected an agent saved by stable-baselines3 (.zip), found another kind of file.")
    kind = _algorithm(algorithm or _seen_in(path))
    try:
        return kind.load(path, device="cpu")
    except Exception as error:  # whatever is wrong with the file: there is no list of all that may be raised
        raise InputError(
            f"{path}: could not be loaded by {kind.__name__} ({reason_of(error)}): name another algorithm."
        ) from error


def _seen_in(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        data = archive.read("data").decode(errors="replace") if "data" in archive.namelist() else ""
    for name, sign in SIGNS.items():
        if f'"{sign}"' in data:
            return name
    raise InputError(
        f"{path}: no algorithm of stable-baselines3 is seen in this file: save the agent with model.save(…), or name its "
        "algorithm (--algorithm)."
    )


def _algorithm(name: str) -> Any:
    """A class of stable-baselines3, or of sb3-contrib where that is installed."""
    home = library("stable_baselines3", "agents", "loading an agent")
    found = getattr(home, name, None)
    if found is None:
        try:
            import sb3_contrib

            found = getattr(sb3_contrib, name, None)
        except ImportError:
            pass
    if not hasattr(found, "load"):
        raise InputError(f"stable-baselines3 has no algorithm '{name}': {nearest(name, [*SIGNS, 'DDPG'])}")
    return found
