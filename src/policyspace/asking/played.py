"""Ask an agent during its episodes: randomised observations, and sequential bets on which one its actions reveal."""

import time
from collections.abc import Callable
from typing import Any, final

import numpy as np

from policyspace.asking.adapters import Kind
from policyspace.asking.agents import AskedAgent
from policyspace.asking.answer import AskedAnswer, AskOptions, Cost
from policyspace.asking.inputs import Inputs
from policyspace.asking.readings import FIRST, OfferedReadings
from policyspace.asking.states import States, fixed_statistics
from policyspace.data.connectors import each_array
from policyspace.environments.checks import Blamed
from policyspace.environments.watching import EnvironmentRunner, Player, stage_of
from policyspace.errors import InputError, number_of
from policyspace.runtime import say_progress

STEPS = 2000
"""That it plays, unless somebody says how many, or all is found before."""

MEMORY = 4
"""Steps after a reading in which an agent that may have a memory is looked at."""

CANDIDATES = 3
"""Of each kind of reading."""


@final
class LiveAgent(AskedAgent):
    """An object with `reset` that acts by `act`, `predict` or a call, and keeps what it has seen to itself."""

    has_law = False
    askable = False

    def __init__(self, agent: Any, observation_space: Any, action_space: Any, deterministic: bool) -> None:
        super().__init__(type(agent).__name__, observation_space, action_space, deterministic)
        self.agent = agent
        ways = (getattr(agent, name, None) for name in ("act", "predict"))
        self.way: Callable[[Any], Any] = next((way for way in ways if callable(way)), agent)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Its next action; at the start of an episode it is reset before."""
        if state is None or bool(np.any(episode_start)):
            self.agent.reset()
        found = self.way(observation)
        return (found[0] if isinstance(found, tuple) else found), np.zeros(1)

    def act(self, observations: Any, rng: np.random.Generator, memory: Any = None) -> tuple[np.ndarray, Any]:
        """It acts in play alone."""
        raise InputError(f"{self.name} can only act, step after step: ask it while it plays (way='played').")


LIVE = Kind(
    lambda agent: (
        callable(getattr(agent, "reset", None))
        and not isinstance(agent, type)
        and any(callable(getattr(agent, name, None)) for name in ("act", "predict", "__call__"))
    ),
    LiveAgent,
)


def steps_looked_at(agent: AskedAgent, options: AskOptions) -> int:
    """For so many steps after a reading its actions are looked at: some, where it may have a memory."""
    if options.memory is not None:
        return options.memory
    return MEMORY if agent.has_memory or not agent.askable else 0


def ask_played(
    agent: AskedAgent,
    env: Any,
    states: States,
    inputs: Inputs,
    options: AskOptions,
    episodes: int | None,
    reason: str,
) -> AskedAnswer:
    """Play until every input is found and measured, or the budget ends; what was learned is kept when it is interrupted."""
    stage = stage_of(env)
    if stage.num > 1:
        raise InputError(f"an agent is asked while it plays in one environment, found {stage.num}: give one of them.")
    readings = OfferedReadings(
        agent.observation_space,
        agent.action_space,
        seed=options.seed,
        redraw=options.redraw,
        candidates=CANDIDATES * len(options.redraw),
        memory=steps_looked_at(agent, options),
        significance=options.significance,
        until_found=True,
        env_id=states.env_id,
        inputs=inputs,
    )
    own, begun, stopped = 0.0, time.process_time(), ""
    try:
        with fixed_statistics(env):
            own = play(agent, stage, readings, options, episodes)
    except KeyboardInterrupt:
        stopped = f"it was interrupted after {number_of(readings.num_steps, 'step')}"
    except InputError as error:
        if readings.num_steps <= 2 * FIRST:
            raise
        stopped = str(error)
    spent = time.process_time() - begun
    return readings.answer(
        reason,
        ended=True,
        cost=Cost(readings.num_steps, readings.num_steps + len(states), spent - own, own),
        agent=agent.name,
        environment=states.environment,
        stopped=stopped,
    )


def play(
    agent: AskedAgent, stage: EnvironmentRunner, readings: OfferedReadings, options: AskOptions, episodes: int | None
) -> float:
    """The live loop; returns the processor time that was spent on draws and bets."""
    player, own = Player(agent), 0.0
    player.seed(options.seed)
    budget, done, start = options.budget or STEPS, 0, True
    seen = stage.reset(options.seed + 1)
    while readings.num_steps < budget and not readings.settled and (episodes is None or done < episodes):
        begun = time.process_time()
        delivered = readings.offer(each_array(lambda array: array[0], stage.batch(seen)), start)
        given = stage.one(each_array(lambda array: np.asarray(array)[None], delivered))
        own += time.process_time() - begun
        with Blamed(f"the agent {agent.name} failed", "correct it, or use the environment that it was made for"):
            action = player.act(given, np.array([start]))
        begun = time.process_time()
        readings.saw(each_array(lambda array: array[0], stage.batch(action)))
        own += time.process_time() - begun
        with Blamed("the environment failed in step", "correct it"):
            step = stage.step(action)
        start = bool(step.terminated[0] or step.truncated[0])
        readings.followed(step.reward[0], step.terminated[0], step.truncated[0])
        done += start
        seen = step.observation
        if readings.num_steps % 50 == 0:
            named = f": reacts to {', '.join(readings.found[-4:])}" if readings.found else ""
            say_progress(f"asking while it plays{named}", readings.num_steps, budget)
    return own
