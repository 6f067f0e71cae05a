"""What an input is worth: the return that is lost when it is redrawn in every step of play."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from scipy.stats import t as student

from policyspace.asking.agents import AskedAgent, joined, rows_of
from policyspace.asking.answer import Cost, Effect, ReturnLoss
from policyspace.asking.inputs import Inputs
from policyspace.asking.states import States, fixed_statistics
from policyspace.data.connectors import num_rows
from policyspace.environments.checks import Blamed
from policyspace.environments.watching import EnvironmentRunner, stage_of
from policyspace.errors import InputError
from policyspace.runtime import say_progress

MOST_STEPS = 100_000
"""Of one episode: it must end by then."""

MARGIN = 0.1
"""The margin, as a share of the return, for which the pairs needed are counted."""


def returns_lost(
    agent: AskedAgent,
    env: Any,
    make: Callable[[], Any] | None,
    states: States,
    inputs: Inputs,
    pairs: int,
    seed: int,
) -> tuple[dict[str, ReturnLoss], Cost, bool]:
    """By input the return that is lost, what it cost, and whether the environment repeats itself with the same seed.

    In both episodes of a pair environment and agent draw the same random numbers. So what the agent does not read changes
    nothing, and the loss is exactly 0.
    """
    stages = copies(env, make, pairs)
    rng = np.random.default_rng([seed, 1])
    seeds = rng.integers(2**31 - 1, size=pairs)
    draws = int(rng.integers(2**31 - 1))
    found: dict[str, ReturnLoss] = {}
    with fixed_statistics(env):
        plain, steps = _returns(agent, stages, seeds, draws)
        again, more = _returns(agent, stages, seeds, draws)
        steps += more
        for done, group in enumerate(inputs.groups):
            say_progress("playing with one input redrawn", done, len(inputs.groups))
            chosen = np.random.default_rng([seed, 2, done])

            def redrawn(seen: Any, group: str = group, chosen: np.random.Generator = chosen) -> Any:
                return inputs.replaced(seen, group, states.take(chosen.integers(len(states), size=num_rows(seen))))

            returns, more = _returns(agent, stages, seeds, draws, redrawn)
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
    if stage.num > 1:
        raise InputError(
            f"returns are compared in single environments, found a vector of {stage.num}: give one of them, or its id."
        )
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
