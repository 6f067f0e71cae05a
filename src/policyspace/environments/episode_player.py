"""Episodes of an agent in a Gymnasium environment, played one after the other and kept as trajectories."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import Wrapper
from gymnasium.wrappers import TimeLimit

from policyspace.environments.actions import taken
from policyspace.environments.checked_environment import CORRECT, CheckedEnvironment, place
from policyspace.environments.own_code import Blamed
from policyspace.environments.player import Player
from policyspace.worlds.trajectories import Trajectories

Act = Callable[[Any, bool], Any]
"""An agent while it acts: an action of the environment's own kind for an observation, and whether an episode starts."""

LONGEST = 1000
"""Steps after which an episode is cut off if it is simulated, or if its environment sets no limit."""


def acting(agent: Any, seed: int, configuration: Mapping[str, Any] | None = None) -> Act:
    """What an agent does: a function of the observation, or anything with a `predict` like stable-baselines3's models.

    A model draws its actions by its own chances, which begin at the seed where it can set them.
    """
    player = Player(agent)
    failed = f"the agent {player.name} failed {place(configuration or {})}"
    to_do = "correct it, or let one act that is made for this environment"

    def act(observation: Any, starts: bool) -> Any:
        with Blamed(failed, to_do):
            return player.act(observation, np.array([starts]))

    with Blamed(failed, to_do):
        player.seed(seed)
    return act


def play(
    env: Any,
    act: Act,
    num_episodes: int,
    seed: int,
    configuration: Mapping[str, Any] | None = None,
    most_steps: int | None = None,
    to_do: str = CORRECT,
) -> Trajectories:
    """Episodes at one configuration; the first one is seeded.

    With `most_steps`, as in simulations, no episode begins once there are so many, and none is longer than `LONGEST`.
    Observations are flattened to numbers before the agent has them; discrete actions become codes from 0. `to_do` is
    what is said of an environment that fails.
    """
    stage = CheckedEnvironment(env, configuration or {}, to_do)
    own = own_limit(env)
    longest = LONGEST if own is None or most_steps is not None else own
    rows: list[list[np.ndarray]] = []
    actions: list[list[Any]] = []
    rewards: list[list[float]] = []
    cut = 0
    while len(rows) < num_episodes and (most_steps is None or sum(map(len, rows)) < most_steps):
        now = stage.reset(seed if not rows else None)
        rows.append([])
        actions.append([])
        rewards.append([])
        while not (now.terminated or now.truncated) and len(rows[-1]) < longest:
            rows[-1].append(now.numbers)
            action, logged = taken(env.action_space, act(now.observation, len(rows[-1]) == 1), stage.at)
            now = stage.step(action)
            actions[-1].append(logged)
            rewards[-1].append(now.reward)
        cut += not (now.terminated or now.truncated)
    mask = np.arange(max(map(len, rows)))[None, :] < np.array([len(row) for row in rows])[:, None]
    known = {name: np.asarray(value, dtype=np.float64) for name, value in (configuration or {}).items()}
    seen, done, worth = (_padded(values, mask) for values in (rows, actions, rewards))
    return Trajectories((), seen, done, worth, mask, known, _cut_off(cut, num_episodes) if own is None else ())


def own_limit(env: Any) -> int | None:
    """The steps after which an environment itself ends an episode, if it says so."""
    limits = [getattr(env.spec, "max_episode_steps", None)]
    while isinstance(env, Wrapper):
        if isinstance(env, TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return max((limit for limit in limits if limit is not None and limit > 0), default=None)


def _cut_off(count: int, num_episodes: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (
        f"{count} of {num_episodes} episodes were cut off after {LONGEST} steps, for the environment sets no limit: give it "
        "one (gymnasium.wrappers.TimeLimit).",
    )


def _padded(episodes: list[Any], mask: np.ndarray) -> np.ndarray:
    """Lists of different lengths as one array, zero behind an episode's end."""
    values = np.array([value for episode in episodes for value in episode])
    padded = np.zeros((*mask.shape, *values.shape[1:]), dtype=values.dtype)
    padded[mask] = values
    return padded
