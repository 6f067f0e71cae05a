"""One agent of an environment with several, as PettingZoo writes them, while the others play too."""

from collections.abc import Callable, Mapping
from typing import Any, final

import gymnasium
import numpy as np

from policyspace.errors import InputError, nearest

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
