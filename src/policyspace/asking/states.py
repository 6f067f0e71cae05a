"""The states in which an agent is asked, and where it plays: as in its training, or as one of several agents."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation

from policyspace.asking.agents import AskedAgent, joined, rows_of
from policyspace.asking.answer import Cost
from policyspace.asking.inputs import Inputs, leaves, names_of
from policyspace.asking.law import Law
from policyspace.data.connectors import OBSERVATION, Recording, each_array, num_rows
from policyspace.data.files import read
from policyspace.data.sample import Sample
from policyspace.environments.checks import Blamed
from policyspace.environments.saved_agents import statistics_in
from policyspace.environments.watching import GREEDY, Player, finished_frames, play_episodes, stage_of
from policyspace.errors import InputError, nearest
from policyspace.runtime import library

ENOUGH = 2000
"""States of its own play, unless somebody says how many episodes."""

MOST_EPISODES = 100
"""That are played to have enough states."""


@final
class Counted:
    """An agent whose questions are counted, and the processor time of its answers."""

    def __init__(self, agent: AskedAgent) -> None:
        self.agent = agent
        self.questions, self.seconds = 0, 0.0
        self._begun = time.process_time()

    def law(self, observations: Any, memory: Any = None) -> tuple[Law, Any]:
        """As of the agent, whose memory stays as it is."""
        begun = time.process_time()
        found = self.agent.law(observations, self.agent.copy_memory(memory))
        self.seconds += time.process_time() - begun
        self.questions += num_rows(observations)
        return found

    def act(self, observations: Any, rng: np.random.Generator, memory: Any = None) -> tuple[np.ndarray, Any]:
        """As of the agent, whose memory stays as it is."""
        begun = time.process_time()
        found = self.agent.act(observations, rng, self.agent.copy_memory(memory))
        self.seconds += time.process_time() - begun
        self.questions += num_rows(observations)
        return found

    @property
    def cost(self) -> Cost:
        """Since it was made."""
        own = max(time.process_time() - self._begun - self.seconds, 0.0)
        return Cost(self.questions, 0, self.seconds, own)


@final
@dataclass(frozen=True)
class States:
    """Observations as the agent takes them, one row a step, and the episode of each."""

    observations: Any
    episodes: np.ndarray
    environment: str | None = None
    env_id: str | None = None
    frames: int = 1
    recording: Recording | None = None
    """What was recorded, where it was played here."""
    sample: Sample | None = None
    """The log that was given, with actions."""

    def __len__(self) -> int:
        return len(self.episodes)

    def take(self, rows: Any) -> Any:
        """The observations of some rows."""
        return rows_of(self.observations, rows)

    @property
    def episode_numbers(self) -> np.ndarray:
        """The episode of every state, from 0 on; in a log without episodes each state is one."""
        numbers = np.unique(self.episodes, return_inverse=True)[1]
        return numbers if numbers.any() else np.arange(len(self))

    def later(self, rows: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows so many steps later, and which of them are in the same episode."""
        after = np.minimum(rows + steps, len(self) - 1)
        same = (rows + steps < len(self)) & (self.episodes[after] == self.episodes[rows])
        return np.where(same, after, rows), same

    def memories(self, agent: AskedAgent, rows: np.ndarray) -> Any:
        """The memory of an agent before each of some rows, when it sees every episode from its start; None without one."""
        if not agent.has_memory:
            return None
        starts = np.flatnonzero(np.r_[True, self.episodes[1:] != self.episodes[:-1]])
        lengths = np.diff(np.r_[starts, len(self)])
        longest = np.argsort(-lengths, kind="stable")
        starts, lengths = starts[longest], lengths[longest]
        wanted = np.zeros(len(self), dtype=bool)
        wanted[rows] = True
        memory, kept, places = agent.start(len(starts)), [], []
        for t in range(int(lengths[0])):
            going = int((lengths > t).sum())
            memory, now = rows_of(memory, slice(0, going)), starts[:going] + t
            if (here := wanted[now]).any():
                kept.append(agent.copy_memory(rows_of(memory, np.flatnonzero(here))))
                places.append(now[here])
            seen = self.take(now)
            memory = (agent.law(seen, memory) if agent.has_law else agent.act(seen, agent.rng, memory))[1]
        order = np.empty(len(self), dtype=np.int64)
        order[np.concatenate(places)] = np.arange(wanted.sum())
        return rows_of(joined(kept), order[rows])

    def and_those_of(self, other: "States") -> "States":
        """The states of two plays of the same environment."""
        episodes = np.concatenate([self.episodes, other.episodes + self.episodes.max() + 1])
        return replace(
            self, observations=joined([self.observations, other.observations]), episodes=episodes, recording=None
        )

    def varying(self, inputs: Inputs) -> dict[str, bool]:
        """By input, whether it reads different things in these states."""
        first = rows_of(self.observations, np.zeros(len(self), dtype=np.int64))
        return {group: bool(inputs.differ(self.observations, group, first).any()) for group in inputs.groups}


def states_of(
    agent: AskedAgent, env: Any, log: Any, episodes: int | None, features: Sequence[str] | None, seed: int
) -> States:
    """The states of a log, if there is one, else of the agent's own play."""
    if log is not None:
        if episodes is not None:
            raise InputError(f"episodes are played where no log is given, found a log and episodes={episodes}.")
        return _logged(agent, env, log)
    if env is None:
        raise InputError("an agent is asked in states of its own play, found no environment: name one (env=).")
    return _played(agent, env, episodes, tuple(features or ()), seed)


def _played(agent: AskedAgent, env: Any, episodes: int | None, features: tuple[str, ...], seed: int) -> States:
    """So many episodes of its own play or, by default, as many as it takes for enough states."""
    parts: list[Recording] = []
    played, rows, wanted = 0, 0, 3 if episodes is None else episodes
    with fixed_statistics(env):
        while wanted > 0:
            player = Player(agent)
            play = play_episodes(env, player, wanted, seed + played)
            env_id = environment_id(play.stage.env)
            names = features or names_of(env_id, agent.observation_space, play.frames) or ()
            known = None if agent.deterministic else player.log_probabilities
            part = play.recording(names, known, [GREEDY] if agent.deterministic else [])
            parts.append(replace(part, episodes=np.unique(play.episodes, return_inverse=True)[1] + played))
            played, rows = played + wanted, rows + num_rows(play.observations)
            missing = int(np.ceil((ENOUGH - rows) * played / rows))
            wanted = 0 if episodes is not None else min(missing, MOST_EPISODES - played)
    whole = replace(
        parts[0],
        observations=joined([part.observations for part in parts]),
        actions=joined([part.actions for part in parts]),
        episodes=np.concatenate([part.episodes for part in parts]),
        recorded={name: np.concatenate([part.recorded[name] for part in parts]) for name in parts[0].recorded},
    )
    return States(whole.observations, whole.episodes, play.environment, env_id, play.frames, whole)


def _logged(agent: AskedAgent, env: Any, log: Any) -> States:
    """Of observations as the agent takes them, of a `Sample`, or of the file of one."""
    stage = None if env is None else stage_of(env)
    frames = 1 if stage is None else finished_frames(stage.env)
    env_id = None if stage is None else environment_id(stage.env)
    if isinstance(log, str | Path):
        log = read(log)
    if not isinstance(log, Sample):
        observations = each_array(np.asarray, log)
        check_observations(agent, observations)
        return States(observations, np.zeros(num_rows(observations), dtype=np.int64), env_id, env_id, frames)
    space, features = agent.observation_space, np.asarray(log.features)
    if not isinstance(space, spaces.Box) or features.shape[1] != int(np.prod(space.shape)):
        raise InputError(
            f"the {features.shape[1]} features of the log must be the observation of {agent.name}, found {space}: leave the "
            "log out, or give the observations as the agent takes them."
        )
    episodes = np.zeros(len(features), dtype=np.int64) if log.episodes is None else np.asarray(log.episodes)
    env_id = env_id or log.origin.environment
    rows = features.reshape(len(features), *space.shape).astype(space.dtype)
    check_observations(agent, rows)
    return States(rows, episodes, env_id, env_id, frames, sample=log)


def check_observations(agent: AskedAgent, observations: Any) -> None:
    """Of a log: as the agent takes them, and finite."""
    for path, name, space in leaves(agent.observation_space, (), OBSERVATION):
        found: Any = observations
        for key in path:
            try:
                found = found[key]
            except (KeyError, IndexError):
                raise InputError(
                    f"the log must hold '{name}' of {agent.observation_space}, found none: correct it."
                ) from None
        if not isinstance(found, np.ndarray) or found.shape[1:] != (space.shape or ()):
            size = "×".join(map(str, space.shape or ())) or "one number"
            shape = "×".join(map(str, np.shape(found)[1:])) or "one number"
            raise InputError(
                f"a row of the log must be an observation of {agent.name} ({size}), found {shape}: give what it saw, with "
                "the same wrappers."
            )
        if found.dtype.kind not in "biuf" or not np.isfinite(found).all():
            raise InputError(f"observations in a log must be finite numbers, found others in '{name}': leave them out.")
    if num_rows(observations) < 2:
        raise InputError("readings are drawn from at least two states, found one: give a longer log.")


def normalises(env: Any) -> bool:
    """Is there a wrapper that normalises observations?"""
    while env is not None:
        kinds = {kind.__name__ for kind in type(env).__mro__}
        if kinds & {"NormalizeObservation", "VecNormalize"}:
            return True
        inside = vars(env).get("envs")  # its own: wrappers hand on those of others
        env = inside[0] if inside else getattr(env, "venv", getattr(env, "env", None))
    return False


def as_trained(env: Any, agent: Any, vecnormalize: Path | None, frames: int | None, trust: bool = False) -> Any:
    """An environment as an agent of stable-baselines3 saw it: observations normalised by a file, several frames in one."""
    if vecnormalize is None and frames is None:
        return env
    if frames is not None and frames < 2:
        raise InputError(f"frames are stacked from 2 on (--frame-stack), found {frames}: leave it out.")
    common = library("stable_baselines3.common.vec_env", "agents", "an environment as stable-baselines3 wraps it")
    base = env.observation_space
    vector = common.DummyVecEnv([lambda: env])
    own = getattr(getattr(agent, "policy", agent), "observation_space", None)
    if frames is not None and own is not None and own.shape == (frames, *base.shape):
        vector = common.DummyVecEnv([lambda: FrameStackObservation(env, frames)])
        frames = None
    if vecnormalize is not None:
        statistics = statistics_in(vecnormalize, trust)
        with Blamed(f"{vecnormalize}: does not hold the statistics of this environment", "save those of the training"):
            try:
                statistics.set_venv(vector)
            except AssertionError:  # of observations that were stacked before
                vector, frames = common.VecFrameStack(vector, frames), None
                statistics = statistics_in(vecnormalize, trust)
                statistics.set_venv(vector)
        vector = statistics
        vector.training = vector.norm_reward = False
    return vector if frames is None else common.VecFrameStack(vector, frames)


def environment_id(env: Any) -> str | None:
    """Gymnasium's id of an environment, or of the first in a vector of them."""
    while env is not None:
        if (spec := getattr(env, "spec", None)) is not None:
            return str(spec.id)
        inside = getattr(env, "envs", None)
        env = inside[0] if inside else getattr(env, "venv", getattr(env, "env", None))
    return None


@contextmanager
def fixed_statistics(env: Any) -> Iterator[None]:
    """While this lasts, wrappers that normalise observations learn nothing from them."""
    changed = []
    while env is not None and not isinstance(env, str):
        kinds = {kind.__name__ for kind in type(env).__mro__}
        name = "training" if "VecNormalize" in kinds else "update_running_mean"
        if kinds & {"VecNormalize", "NormalizeObservation"} and getattr(env, name):
            changed.append((env, name))
            setattr(env, name, False)
        env = getattr(env, "venv", getattr(env, "env", None))
    try:
        yield
    finally:
        for wrapper, name in changed:
            setattr(wrapper, name, True)


# -- One agent of an environment with several, as PettingZoo writes them, while the others play too.

Others = Callable[[str, Any], Any]
"""What an agent of that name does when it sees an observation."""

TRIES = 100
"""Episodes that may end before the agent has its first turn."""


@final
class OneAgent(gymnasium.Env):  # type: ignore[misc]
    """An environment of PettingZoo as one of its agents sees it: a Gymnasium environment, for `watch` and `ask`.

    Parameters
    ----------
    env : pettingzoo.AECEnv or pettingzoo.ParallelEnv
        Where several agents act, in turn or at once.
    agent : str
        The name of the one that acts here.
    others : callable, optional
        What the others do: a function of a name and an observation. By default they draw from their actions, those that
        the `action_mask` of an observation allows.

    Raises
    ------
    InputError
        If there is no such agent, or the environment never lets it act.

    Examples
    --------
    >>> from policyspace.asking import OneAgent
    >>> from pettingzoo.classic import rps_v2  # doctest: +SKIP
    >>> policyspace.ask(lambda seen: (int(seen) + 1) % 3, OneAgent(rps_v2.env(), "player_0"))  # doctest: +SKIP
    """

    def __init__(self, env: Any, agent: str, others: Others | None = None) -> None:
        if not hasattr(env, "possible_agents"):
            raise InputError(
                f"an environment of PettingZoo has possible_agents, found {type(env).__name__}: give that."
            )
        if agent not in env.possible_agents:
            raise InputError(f"there is no agent '{agent}': {nearest(agent, env.possible_agents)}")
        self.env, self.agent, self.others = env, agent, others
        self.in_turn = hasattr(env, "agent_iter")
        self.observation_space, self.action_space = env.observation_space(agent), env.action_space(agent)
        self._seen: Mapping[str, Any] = {}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        """The first observation of the agent, after the others have had their turns."""
        super().reset(seed=seed)
        if seed is not None:
            for name in self.env.possible_agents:
                self.env.action_space(name).seed(int(self.np_random.integers(2**31)))
        for again in range(TRIES):
            found = self.env.reset(seed=None if again else seed, options=options)
            if not self.in_turn:
                self._seen = found[0]
                if self.agent in self._seen:
                    return self._seen[self.agent], {}
            else:
                observation, _, terminated, truncated = self._turn()
                if not (terminated or truncated):
                    return observation, {}
        raise InputError(f"{TRIES} episodes ended before '{self.agent}' could act: name an agent that takes part.")

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """Its action, and what the others do until it sees something again."""
        if self.in_turn:
            self.env.step(action)
            return *self._turn(), {}
        acted = {name: self._other(name, self._seen[name]) for name in self.env.agents if name != self.agent}
        before = self._seen[self.agent]
        self._seen, rewards, terminated, truncated, _ = self.env.step({**acted, self.agent: action})
        ended = self.agent not in self._seen
        observation = before if ended else self._seen[self.agent]
        late = bool(truncated.get(self.agent, False))
        return observation, float(rewards.get(self.agent, 0.0)), bool(terminated.get(self.agent, ended)), late, {}

    def close(self) -> None:
        """Close the environment of all."""
        self.env.close()

    def _turn(self) -> tuple[Any, float, bool, bool]:
        """The others act until it is the agent's turn."""
        while self.env.agents and self.env.agent_selection != self.agent:
            name = self.env.agent_selection
            observation, _, terminated, truncated, _ = self.env.last()
            self.env.step(None if terminated or truncated else self._other(name, observation))
        if not self.env.agents:
            return self.env.observe(self.agent), 0.0, True, False
        observation, reward, terminated, truncated, _ = self.env.last()
        return observation, float(reward), bool(terminated), bool(truncated)

    def _other(self, name: str, observation: Any) -> Any:
        if self.others is not None:
            return self.others(name, observation)
        mask = observation.get("action_mask") if isinstance(observation, dict) else None
        return self.env.action_space(name).sample(None if mask is None else np.asarray(mask, dtype=np.int8))
