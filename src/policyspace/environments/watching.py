"""Record an agent in an environment as a log."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, final

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from policyspace.data.columns import ColumnRoles
from policyspace.data.connectors import Recording, each_array
from policyspace.data.origin import Origin
from policyspace.data.sample import Sample
from policyspace.data.schema import assemble
from policyspace.data.validation import explain_arguments
from policyspace.display import listed_names
from policyspace.environments.checks import Blamed
from policyspace.environments.saved_agents import agent_from_file
from policyspace.environments.setters import RegisteredEnvironment
from policyspace.errors import InputError
from policyspace.runtime import say_progress

# -- Where an agent is watched: an environment, a vector of them, or stable-baselines3's kind of vector, played alike.


class StepResult(NamedTuple):
    """What the agent sees next, and of each environment [num] the reward and whether the episode has ended."""

    observation: Any
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


class EnvironmentRunner(ABC):
    """`num` environments that play on by themselves after the end of an episode."""

    num = 1
    reset_takes_a_step = False
    """Is the action after the end of an episode ignored, because an environment then begins anew?"""

    def __init__(self, env: Any) -> None:
        self.env = env

    @property
    def spaces(self) -> tuple[Any, Any]:
        """Of one observation and of one action."""
        return self.env.observation_space, self.env.action_space

    def reset(self, seed: int | None) -> Any:
        """The first observation, as the agent sees it."""
        return self.env.reset(seed=seed)[0]

    @abstractmethod
    def step(self, action: Any) -> StepResult:
        """One step; after the end of an episode the observation is the first of the next one, unless that takes a step."""

    def batch(self, values: Any) -> Any:
        """Observations or actions as arrays [num, …], copied."""
        return each_array(np.array, values)

    def one(self, rows: Any) -> Any:
        """The inverse of `batch`."""
        return rows


@final
class OneEnvironment(EnvironmentRunner):
    """A Gymnasium environment."""

    def step(self, action: Any) -> StepResult:
        """One step in each environment."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        if terminated or truncated:
            observation = self.reset(None)
        return StepResult(observation, np.array([reward]), np.array([terminated]), np.array([truncated]))

    def batch(self, values: Any) -> Any:
        """With one row."""
        return each_array(lambda array: np.array(array)[None], values)

    def one(self, rows: Any) -> Any:
        """The only row."""
        return each_array(lambda array: array[0], rows)


@final
class VectorOfEnvironments(EnvironmentRunner):
    """A Gymnasium vector environment, whichever its way of beginning anew."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.num = env.num_envs
        self.mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.reset_takes_a_step = self.mode == AutoresetMode.NEXT_STEP

    @property
    def spaces(self) -> tuple[Any, Any]:
        """The environment's own."""
        return self.env.single_observation_space, self.env.single_action_space

    def step(self, action: Any) -> StepResult:
        """One step in each environment."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        ended = terminated | truncated
        if self.mode == AutoresetMode.DISABLED and ended.any():
            observation = self.env.reset(options={"reset_mask": ended})[0]
        return StepResult(observation, np.array(reward), np.array(terminated), np.array(truncated))


@final
class VectorOfStableBaselines(EnvironmentRunner):
    """A vector environment of stable-baselines3, with its wrappers: normalised, stacked."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.num = env.num_envs

    def reset(self, seed: int | None) -> Any:
        """Begin an episode everywhere."""
        if seed is not None:
            self.env.seed(seed)
        return self.env.reset()

    def step(self, action: Any) -> StepResult:
        """One step in each environment."""
        observation, reward, done, infos = self.env.step(action)
        late = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])
        return StepResult(observation, np.array(reward), done & ~late, late)


def stage_of(env: Any) -> EnvironmentRunner:
    """Something to act in, from an environment, a vector of them, or an id of Gymnasium."""
    if isinstance(env, str):
        return OneEnvironment(RegisteredEnvironment(env)())
    if isinstance(env, VectorEnv):
        return VectorOfEnvironments(env)
    if hasattr(env, "step_wait") and hasattr(env, "num_envs"):
        return VectorOfStableBaselines(env)
    if isinstance(env, gymnasium.Env):
        return OneEnvironment(env)
    if hasattr(env, "possible_agents"):
        raise InputError(
            f"an environment of several agents is watched by one of {listed_names(env.possible_agents)}, found no name: "
            "give policyspace.asking.OneAgent(env, name)."
        )
    raise InputError(
        f"an agent is watched in a Gymnasium environment, a vector environment or an id, found {type(env).__name__}."
    )


def finished_frames(env: Any) -> int:
    """How many frames an observation holds, by the wrapper that stacks them."""
    while env is not None:
        if type(env).__name__ == "FrameStackObservation":
            return int(env.stack_size)
        if hasattr(env, "stacked_obs") and hasattr(env.stacked_obs, "n_stack"):
            return int(env.stacked_obs.n_stack)
        inside = getattr(env, "envs", None)
        env = inside[0] if inside else getattr(env, "venv", getattr(env, "env", None))
    return 1


def drawing_wrapper(env: Any) -> Any:
    """The wrapper around one environment that draws readings (`RandomisedReadings`), if there is one."""
    while env is not None:
        if hasattr(type(env), "recorded_draws"):
            return env
        inside = vars(env).get("envs")
        if inside is not None and len(inside) > 1:
            return None
        env = inside[0] if inside else getattr(env, "venv", getattr(env, "env", None))
    return None


# -- An agent that plays: anything with `predict`, as of stable-baselines3, or a function of what it sees.

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


# -- Watching an agent play: what it saw, what it did, and where episodes ended, as demonstrations.

ASKED_AGAIN = 100
"""Steps at which an agent is asked a second time, to see whether it plays by chance."""

GREEDY = (
    "the agent played greedily: asked again, it does the same in the same state. Such choices tell less about what it "
    "uses, and a policy with noise describes them badly: let it play by its own chances (deterministic=False), if it has "
    "any."
)

Progress = Callable[[int, int], None]


@explain_arguments
def watch(
    env: Any,
    agent: Any,
    episodes: int = 100,
    *,
    seed: int = 0,
    features: Sequence[str] | None = None,
    actions: str | Sequence[str] | None = None,
    deterministic: bool = False,
    trust: bool = False,
    progress: Progress | None = None,
) -> Sample:
    """Log an agent that plays so many whole episodes: what it saw, wrappers included, and what it did.

    Parameters
    ----------
    env : environment, vector environment or str
        Of Gymnasium (or a vector environment of stable-baselines3), or an id.
    agent : model, callable or path
        Has `predict(observation, deterministic=False)`, or is a function of the observation, or the file of one saved by
        stable-baselines3.
    episodes : int
        How many.
    seed : int
        Of the environment and the agent.
    features : sequence of str, optional
        Names of what is seen.
    actions : str or sequence of str, optional
        Which of several choices at a step is looked at.
    deterministic : bool
        Whether the agent acts without chance.
    trust : bool
        Whether its file may run code when it is loaded, where it holds any.
    progress : callable, optional
        Told the number of episodes that are done and wanted.

    Returns
    -------
    Sample
        The rows; beside them (`recorded`): terminated, truncated, reward and, where the agent can tell, log_probability.

    Raises
    ------
    InputError
        If the agent does not act in the environment, or its observations cannot become columns.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> rng = np.random.default_rng(0)
    >>> log = policyspace.watch("CartPole-v1", lambda seen: int(seen[2] + 0.1 * rng.normal() > 0), episodes=3)
    >>> log.num_episodes, log.action_names
    (3, ('0', '1'))
    """
    player = Player(agent_from_file(agent, trust=trust) if isinstance(agent, str | Path) else agent, deterministic)
    named = tuple(features or ())

    def loggable(stage: EnvironmentRunner, first: Any) -> None:
        if drawing_wrapper(stage.env) is not None:  # which logs what it draws, of images too
            return
        space, frames = stage.spaces[0], finished_frames(stage.env)
        Recording(first, (), observation_space=space, features=named, frames=frames).observed()

    play = play_episodes(env, player, episodes, seed, progress, check=loggable)
    cautions = [GREEDY] if player.deterministic or play.repeats() else []
    known = None if deterministic else player.log_probabilities
    frame, roles = play.recording(named, known, cautions).stored()
    return assemble(frame, roles, ColumnRoles(actions))


class Acting(Protocol):
    """What plays: `Player`, or an agent that is asked."""

    @property
    def name(self) -> str:
        """What the agent is called in messages."""

    def seed(self, seed: int) -> None:
        """Seed the agent's own chances, if it has a way to."""

    def act(self, observation: Any, starts: np.ndarray) -> Any:
        """The action; agents with a memory are told where an episode starts."""


def play_episodes(
    env: Any,
    player: Acting,
    episodes: int,
    seed: int,
    progress: Progress | None = None,
    check: Callable[[EnvironmentRunner, Any], None] = lambda stage, first: None,
) -> "Play":
    """So many whole episodes, after a `check` of where they are played and of what is seen first."""
    if episodes < 1:
        raise InputError(f"an agent is watched for at least one episode, found {episodes}.")
    stage = stage_of(env)
    try:
        player.seed(seed)
        first = stage.reset(seed)
        check(stage, stage.batch(first))
        return Play(stage, player, _play(stage, player, first, episodes, progress))
    finally:
        if isinstance(env, str):
            stage.env.close()


@final
@dataclass
class _Diary:
    """One entry a step: arrays of all environments, and the episode of each, −1 where a row is not used."""

    seen: list[Any] = field(default_factory=list)
    acted: list[Any] = field(default_factory=list)
    steps: list[StepResult] = field(default_factory=list)
    episodes: list[np.ndarray] = field(default_factory=list)

    def rows(self, entries: list[Any]) -> Any:
        """The used rows, one environment after the other."""
        used = np.array(self.episodes).T >= 0
        return each_array(lambda *arrays: np.stack(arrays, axis=1)[used], *entries)


def _play(
    stage: EnvironmentRunner, player: Acting, observation: Any, episodes: int, progress: Progress | None
) -> _Diary:
    """As many episodes of each environment as of any other, so that short ones are not seen more often."""
    wanted = (episodes + np.arange(stage.num)[::-1]) // stage.num
    first = np.cumsum(wanted) - wanted  # the number of each environment's first episode
    done = np.zeros(stage.num, dtype=np.int64)
    ignored, starts = np.zeros(stage.num, dtype=bool), np.ones(stage.num, dtype=bool)
    diary = _Diary()
    while (done < wanted).any():
        used = (done < wanted) & ~ignored
        seen = stage.batch(observation)
        action, step = _turn(stage, player, observation, starts, begun=bool(diary.seen))
        diary.seen.append(seen)
        diary.acted.append(stage.batch(action))
        diary.steps.append(step._replace(observation=None))
        diary.episodes.append(np.where(used, first + done, -1))
        ended = (step.terminated | step.truncated) & ~ignored
        done += ended & used
        starts = ignored if stage.reset_takes_a_step else ended
        ignored = ended if stage.reset_takes_a_step else ignored
        observation = step.observation
        if ended.any():
            say_progress("playing episodes", int(done.sum()), episodes)
            if progress is not None:
                progress(int(done.sum()), episodes)
    return diary


def _turn(
    stage: EnvironmentRunner, player: Acting, observation: Any, starts: np.ndarray, begun: bool
) -> tuple[Any, StepResult]:
    """An action and what follows; if the very first fails, agent and environment do not fit."""
    first = f"the agent {player.name} could not take its first step in this environment"
    fits = "use the one that it was made for, with the same wrappers"
    with Blamed(f"the agent {player.name} failed" if begun else first, "correct it" if begun else fits):
        action = player.act(observation, starts)
    with Blamed("the environment failed in step" if begun else first, "correct it" if begun else fits):
        return action, stage.step(action)


@final
@dataclass(frozen=True)
class Play:
    """Episodes as the agent saw and played them, one row a step."""

    stage: EnvironmentRunner
    player: Acting
    diary: _Diary

    @property
    def environment(self) -> str:
        """Its id, or the name of its class."""
        return str(getattr(getattr(self.stage.env, "spec", None), "id", type(self.stage.env).__name__))

    @property
    def frames(self) -> int:
        """How many an observation holds."""
        return finished_frames(self.stage.env)

    @cached_property
    def observations(self) -> Any:
        """As the agent takes them: arrays [n, …], or dicts and tuples of these."""
        return self.diary.rows(self.diary.seen)

    @cached_property
    def episodes(self) -> np.ndarray:
        """The number of each row's episode."""
        return np.asarray(self.diary.rows(self.diary.episodes))

    @property
    def remembers(self) -> bool:
        """Has the agent a memory, so that its actions may depend on what it saw before?"""
        return getattr(self.player, "memory", None) is not None

    def recording(
        self,
        features: tuple[str, ...] = (),
        log_probabilities: Callable[[Any, Any], np.ndarray | None] | None = None,
        cautions: Sequence[str] = (),
    ) -> Recording:
        """The rows, what was recorded beside them, and what must be read with them."""
        acted, steps = self.diary.rows(self.diary.acted), self.diary.steps
        recorded = {
            "terminated": self.diary.rows([step.terminated for step in steps]),
            "truncated": self.diary.rows([step.truncated for step in steps]),
            "reward": self.diary.rows([step.reward for step in steps]),
        }
        known = None if log_probabilities is None else log_probabilities(self.observations, acted)
        drawing = drawing_wrapper(self.stage.env)
        draws, record = ({}, None) if drawing is None else drawing.recorded_draws(self.observations, features)
        seen, space = self.observations, self.stage.spaces[0]
        if drawing is not None:
            seen, space, features = drawing.as_logged(seen)
        origin = Origin(
            environment=self.environment,
            agent=self.player.name,
            memory=self.remembers,
            cautions=tuple(cautions),
            draws=record,
        )
        return Recording(
            seen,
            acted,
            self.episodes,
            recorded | ({} if known is None else {"log_probability": known}) | draws,
            observation_space=space,
            action_space=self.stage.spaces[1],
            features=features,
            frames=self.frames,
            origin=origin,
        )

    def repeats(self) -> bool:
        """Does the agent do the same when it is asked again? An agent with a memory is not asked."""
        if self.remembers:
            return False
        diary, stage = self.diary, self.stage
        for t in np.unique(np.linspace(0, len(diary.seen) - 1, ASKED_AGAIN).astype(int)):
            again = stage.batch(self.player.act(stage.one(diary.seen[t]), np.zeros(stage.num, dtype=bool)))
            used = diary.episodes[t] >= 0
            same: list[bool] = []
            each_array(
                lambda a, b, used=used, same=same: same.append(np.array_equal(a[used], b[used])), again, diary.acted[t]
            )
            if not all(same):
                return False
        return True
