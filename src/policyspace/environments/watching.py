"""Watching an agent play: what it saw, what it did, and where episodes ended, as demonstrations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from policyspace.data.column_choice import Columns
from policyspace.data.connectors.flattening import each_array
from policyspace.data.connectors.recording import Recording
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.roles import assemble
from policyspace.environments.own_code import Blamed
from policyspace.environments.player import Player, agent_from_file
from policyspace.environments.stages import Stage, Step, frames_in, stage_of
from policyspace.errors import InputError
from policyspace.progress import say_progress

ASKED_AGAIN = 100
"""Steps at which an agent is asked a second time, to see whether it plays by chance."""

GREEDY = (
    "the agent played greedily: asked again, it does the same in the same state. Such choices tell less about what it "
    "uses, and a policy with noise describes them badly: let it play by its own chances (deterministic=False), if it has "
    "any."
)

Progress = Callable[[int, int], None]


def watch(
    env: Any,
    agent: Any,
    episodes: int = 100,
    *,
    seed: int = 0,
    features: Sequence[str] | None = None,
    actions: str | Sequence[str] | None = None,
    deterministic: bool = False,
    progress: Progress | None = None,
) -> Demonstrations:
    """Demonstrations of an agent that plays so many whole episodes: what it saw, wrappers included, and what it did.

    `env` is a Gymnasium environment, a vector environment (of stable-baselines3 too) or an id; `agent` has
    `predict(observation, deterministic=False)`, or is a function of the observation, or the file of one saved by
    stable-baselines3. `features` names what is seen; `actions` picks one of several choices at a step. Kept beside the
    pairs (`recorded`): terminated, truncated, reward and, where the agent can tell, log_probability. `progress` is called
    with the number of episodes that are done and wanted.
    """
    if episodes < 1:
        raise InputError(f"an agent is watched for at least one episode, found {episodes}.")
    player = Player(agent_from_file(agent) if isinstance(agent, str | Path) else agent, deterministic)
    stage = stage_of(env)
    try:
        player.seed(seed)
        seen = partial(
            Recording, observation_space=stage.spaces[0], features=tuple(features or ()), frames=frames_in(stage.env)
        )
        first = stage.reset(seed)
        seen(stage.batch(first), ()).observed()  # what cannot be logged is refused before the work
        recording = _recorded(stage, player, _play(stage, player, first, episodes, progress), seen)
    finally:
        if isinstance(env, str):
            stage.env.close()
    frame, roles = recording.stored()
    return assemble(frame, roles, Columns(actions))


@final
@dataclass
class _Diary:
    """One entry a step: arrays of all environments, and the episode of each, −1 where a row is not used."""

    seen: list[Any] = field(default_factory=list)
    acted: list[Any] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    episodes: list[np.ndarray] = field(default_factory=list)

    def rows(self, entries: list[Any]) -> Any:
        """The used rows, one environment after the other."""
        used = np.array(self.episodes).T >= 0
        return each_array(lambda *arrays: np.stack(arrays, axis=1)[used], *entries)


def _play(stage: Stage, player: Player, observation: Any, episodes: int, progress: Progress | None) -> _Diary:
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


def _turn(stage: Stage, player: Player, observation: Any, starts: np.ndarray, begun: bool) -> tuple[Any, Step]:
    """An action and what follows; if the very first fails, agent and environment do not fit."""
    first = f"the agent {player.name} could not take its first step in this environment"
    fits = "use the one that it was made for, with the same wrappers"
    with Blamed(f"the agent {player.name} failed" if begun else first, "correct it" if begun else fits):
        action = player.act(observation, starts)
    with Blamed("the environment failed in step" if begun else first, "correct it" if begun else fits):
        return action, stage.step(action)


def _recorded(stage: Stage, player: Player, diary: _Diary, recording: Callable[..., Recording]) -> Recording:
    """The rows of the diary, what was recorded beside them, and what must be read with them."""
    seen, acted = diary.rows(diary.seen), diary.rows(diary.acted)
    recorded = {
        "terminated": diary.rows([step.terminated for step in diary.steps]),
        "truncated": diary.rows([step.truncated for step in diary.steps]),
        "reward": diary.rows([step.reward for step in diary.steps]),
    }
    greedy = player.deterministic or _repeats(stage, player, diary)
    known = None if player.deterministic else player.log_probabilities(seen, acted)
    spec = getattr(stage.env, "spec", None)
    metadata = {"environment": getattr(spec, "id", type(stage.env).__name__), "agent": player.name}
    return recording(
        seen,
        acted,
        diary.rows(diary.episodes),
        recorded | ({} if known is None else {"log_probability": known}),
        action_space=stage.spaces[1],
        metadata=metadata | ({"cautions": [GREEDY]} if greedy else {}),
    )


def _repeats(stage: Stage, player: Player, diary: _Diary) -> bool:
    """Does the agent do the same when it is asked again? An agent with a memory is not asked."""
    if player.memory is not None:
        return False
    for t in np.unique(np.linspace(0, len(diary.seen) - 1, ASKED_AGAIN).astype(int)):
        again = stage.batch(player.act(stage.one(diary.seen[t]), np.zeros(stage.num, dtype=bool)))
        used = diary.episodes[t] >= 0
        same: list[bool] = []
        each_array(
            lambda a, b, used=used, same=same: same.append(np.array_equal(a[used], b[used])), again, diary.acted[t]
        )
        if not all(same):
            return False
    return True
