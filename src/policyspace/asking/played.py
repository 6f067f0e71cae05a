"""Ask an agent during its episodes by sequential bets on randomised observations; the return that an input is worth."""

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, final

import numpy as np
from scipy.stats import t as student

from policyspace.asking.adapters import Kind
from policyspace.asking.agents import AskedAgent, joined, rows_of
from policyspace.asking.answer import AskedAnswer, AskOptions, Cost, Effect, ReturnLoss
from policyspace.asking.inputs import Inputs
from policyspace.asking.readings import FIRST, OfferedReadings
from policyspace.asking.states import States, fixed_statistics
from policyspace.data.connectors import each_array, num_rows
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
        """Its action in the one state in which it is, by its own chances."""
        if num_rows(observations) != 1:
            raise InputError(f"{self.name} can only act, step after step: ask it while it plays (way='played').")
        with Blamed(f"the agent {self.name} failed", "correct it, or use the environment that it was made for"):
            found = self.way(rows_of(observations, 0))
        return np.asarray(found[0] if isinstance(found, tuple) else found)[None], None

    def start(self, n: int) -> Any:
        """An episode begins; what it remembers it keeps to itself."""
        self.agent.reset()

    def copied(self) -> "LiveAgent":
        """A copy with the same memory and chances; itself, if it cannot be copied."""
        try:
            return LiveAgent(deepcopy(self.agent), self.observation_space, self.action_space, self.deterministic)
        except Exception:  # hardware and other people's objects may refuse in any way
            return self


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
) -> tuple[AskedAnswer, Any]:
    """Play until every input is found and measured, or the budget ends; what was learned is kept when it is interrupted.

    Also what the inputs have read.
    """
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
        correction=options.correction,
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
    answer = readings.answer(
        reason,
        ended=True,
        cost=Cost(readings.num_steps, readings.num_steps + len(states), spent - own, own),
        agent=agent.name,
        environment=states.environment,
        stopped=stopped,
    )
    return answer, readings.observed


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


# -- What an input is worth in play: the return that is lost when it is redrawn in every step.

MOST_STEPS = 100_000
"""Of one episode: it must end by then."""

MARGIN = 0.1
"""The margin, as a share of the return, for which the pairs needed are counted."""


def returns_lost(
    agent: AskedAgent,
    env: Any,
    make: Callable[[], Any] | None,
    observed: Any,
    inputs: Inputs,
    pairs: int,
    seed: int,
) -> tuple[dict[str, ReturnLoss], Cost, bool]:
    """By input the return that is lost, what it cost, and whether the environment repeats itself with the same seed.

    In both episodes of a pair environment and agent draw the same random numbers. So what the agent does not read changes
    nothing, and the loss is exactly 0. One that can only act plays one episode after the other, with redrawn readings as a
    copy of itself.
    """
    stages = copies(env, make, pairs if agent.askable else 1)
    rng, size = np.random.default_rng([seed, 1]), num_rows(observed)
    seeds = rng.integers(2**31 - 1, size=pairs)
    draws = int(rng.integers(2**31 - 1))
    found: dict[str, ReturnLoss] = {}
    with fixed_statistics(env):
        plain, steps = _returns(agent.copied(), stages, seeds, draws)
        again, more = _returns(agent.copied(), stages, seeds, draws)
        steps += more
        for done, group in enumerate(inputs.groups):
            say_progress("playing with one input redrawn", done, len(inputs.groups))
            chosen = np.random.default_rng([seed, 2, done])

            def redrawn(seen: Any, group: str = group, chosen: np.random.Generator = chosen) -> Any:
                return inputs.replaced(seen, group, rows_of(observed, chosen.integers(size, size=num_rows(seen))))

            returns, more = _returns(agent.copied(), stages, seeds, draws, redrawn)
            found[group] = loss_of(plain, returns)
            steps += more
    if make is not None:
        for stage in stages:
            stage.env.close()
    return found, Cost(steps, steps), np.array_equal(plain, again)


def check_pairs(pairs: int) -> None:
    """None, or as many as a margin takes."""
    if isinstance(pairs, bool) or not isinstance(pairs, int) or pairs < 0 or pairs == 1:
        raise InputError(f"returns are compared in at least 2 pairs of episodes, found {pairs!r}: 30 are customary.")


def check_place(env: Any) -> None:
    """One environment, in which pairs of episodes can be played."""
    if env is None:
        raise InputError("returns are compared in play, found no environment: name one (env=), or leave returns out.")
    if (num := stage_of(env).num) > 1:
        raise InputError(
            f"returns are compared in single environments, found a vector of {num}: give one of them, or its id."
        )


def loss_of(plain: np.ndarray, redrawn: np.ndarray) -> ReturnLoss:
    """The mean loss of pairs with Student's interval at 95 %, and how many pairs a margin of 10 % of the return takes."""
    lost, n = plain - redrawn, len(plain)
    if np.ptp(lost) == 0:
        return ReturnLoss(Effect(float(lost[0]), float(lost[0]), float(lost[0])), n, None)
    mean, sd, quantile = float(lost.mean()), float(lost.std(ddof=1)), float(student.ppf(0.975, n - 1))
    margin, wanted = quantile * sd / n**0.5, MARGIN * abs(float(plain.mean()))
    needed = None if wanted == 0 else int(np.ceil((quantile * sd / wanted) ** 2))
    return ReturnLoss(Effect(mean, mean - margin, mean + margin), n, needed)


def copies(env: Any, make: Callable[[], Any] | None, num: int) -> list[EnvironmentRunner]:
    """So many environments or, where one can neither be made again nor copied, the one that is given."""
    if make is not None:
        return [stage_of(make()) for _ in range(num)]
    stage = stage_of(env)
    try:
        return [stage_of(deepcopy(env)) for _ in range(num)] if not hasattr(env, "step_wait") else [stage]
    except Exception:  # a library's objects may refuse to be copied in any way
        return [stage]


def _returns(
    agent: AskedAgent,
    stages: Sequence[EnvironmentRunner],
    seeds: np.ndarray,
    draws: int,
    redrawn: Callable[[Any], Any] = lambda seen: seen,
) -> tuple[np.ndarray, int]:
    """The return of one episode for each seed, and the steps that all took; in one environment one after the other."""
    if len(stages) == len(seeds):
        return _together(agent, stages, seeds, np.random.default_rng(draws), redrawn)
    found, steps = [], 0
    for i, seed in enumerate(seeds):
        one, taken = _together(agent, stages[:1], seeds[i : i + 1], np.random.default_rng([draws, int(seed)]), redrawn)
        found.append(one[0])
        steps += taken
    return np.array(found), steps


def _together(
    agent: AskedAgent,
    stages: Sequence[EnvironmentRunner],
    seeds: np.ndarray,
    rng: np.random.Generator,
    redrawn: Callable[[Any], Any],
) -> tuple[np.ndarray, int]:
    """Episodes side by side. Those that have ended stay in the batch, so that networks round alike in every play."""
    n, steps = len(stages), 0
    seen = [stage.batch(stage.reset(int(seed))) for stage, seed in zip(stages, seeds, strict=True)]
    memory, total, going = agent.start(n), np.zeros(n), np.ones(n, dtype=bool)
    while going.any():
        actions, memory = agent.act(redrawn(joined(seen)), rng, memory)
        for i in np.flatnonzero(going).tolist():
            stage = stages[i]
            with Blamed("the environment failed in step", "correct it"):
                step = stage.step(stage.one(rows_of(actions, slice(i, i + 1))))
            total[i] += float(step.reward[0])
            seen[i] = stage.batch(step.observation)
            going[i] = not (step.terminated[0] or step.truncated[0])
        steps += int(going.sum())
        if steps > MOST_STEPS * n:
            raise InputError(f"an episode must end, found one of more than {MOST_STEPS} steps: wrap it in a TimeLimit.")
    return total, steps + n
