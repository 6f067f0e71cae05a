"""Agents of many kinds, asked while they play: how often is an input found that they do not use, how soon one that they do.

    python -m benchmarks.asking_played [--runs 200] [--steps 600]

Four sensors of one hidden cause, the third a near copy of the first. Prints a table; `docs/asking.md` shows it.
"""

import argparse
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from scipy.stats import binom

from policyspace.asking import OfferedReadings
from policyspace.inference import closed_e_values

LEVEL = 0.05
SENSORS = 4


@dataclass
class Agent:
    """What an agent keeps to itself. It acts on what it is `seen` to get; `cause` is what drives the sensors."""

    rng: np.random.Generator
    past: deque = field(default_factory=lambda: deque(maxlen=5))
    weights: np.ndarray = field(default_factory=lambda: np.zeros(SENSORS))
    last: int = 0


def tree(agent, seen, cause):
    return int(seen[1] > 0) if seen[0] > 0.2 else int(seen[1] < -0.5)


def curved(agent, seen, cause):
    return int(seen[0] * seen[1] > 0.2)


def copied(agent, seen, cause):
    return int(seen[0] + 0.3 * agent.rng.normal() > 0)


def drifting(agent, seen, cause):
    agent.weights = agent.weights + 0.05 * agent.rng.normal(size=SENSORS)
    return int((1.5 + agent.weights[0]) * seen[0] + 0.3 * agent.rng.logistic() > 0)


def learning(agent, seen, cause):
    """Learns, from rewards for following the cause, how to use the first two sensors."""
    x = seen[:2]
    p = 1 / (1 + np.exp(-agent.weights[:2] @ x))
    action = int(agent.rng.random() < p)
    agent.weights[:2] += 0.3 * (1.0 if action == (cause > 0) else -1.0) * (action - p) * x
    return action


def hidden(agent, seen, cause):
    return int(cause + 0.3 * agent.rng.normal() > 0)


def habit(agent, seen, cause):
    agent.last = int(2.0 * (agent.last - 0.5) + 1.5 * seen[1] + 0.5 * agent.rng.logistic() > 0)
    return agent.last


def late(agent, seen, cause):
    agent.past.append(seen[0])
    return int(agent.past[max(len(agent.past) - 3, 0)] > 0)


def mean(agent, seen, cause):
    agent.past.append(seen[0])
    return int(np.mean(agent.past) + 0.2 * agent.rng.normal() > 0)


def amounts(agent, seen, cause):
    return np.array([seen[0] + 0.5 * seen[1] ** 2 + 0.5 * agent.rng.normal()])


def spread(agent, seen, cause):
    return np.array([cause + np.exp(0.7 * seen[1]) * agent.rng.normal()])


def several(agent, seen, cause):
    return np.array([int(seen[0] > 0), int(np.digitize(seen[1] + 0.3 * agent.rng.normal(), [-0.5, 0.5]))])


TWO = Discrete(2)
KINDS = {
    "greedy tree": (tree, TWO, 0, {0, 1}),
    "curved border": (curved, TWO, 0, {0, 1}),
    "near copy of what it uses": (copied, TWO, 0, {0}),
    "gains that drift": (drifting, TWO, 0, {0}),
    "learns during the test": (learning, TWO, 0, {0, 1}),
    "acts by the hidden cause": (hidden, TWO, 0, set()),
    "habit and one sensor": (habit, TWO, 0, {1}),
    "delay of 2, L = 4": (late, TWO, 4, {0}),
    "mean of 5 readings, L = 4": (mean, TWO, 4, {0}),
    "acts by the hidden cause, L = 4": (hidden, TWO, 4, set()),
    "an amount": (amounts, Box(-np.inf, np.inf, (1,)), 0, {0, 1}),
    "the spread of an amount": (spread, Box(-np.inf, np.inf, (1,)), 0, {1}),
    "two choices": (several, MultiDiscrete([2, 3]), 0, {0, 1}),
}


def play(kind, seed, steps):
    """What was found falsely at any look, the step at which each used sensor was found, and our own seconds."""
    act, space, memory, used = KINDS[kind]
    world, agent = np.random.default_rng([seed, 1]), Agent(np.random.default_rng([seed, 2]))
    readings = OfferedReadings(
        Box(-np.inf, np.inf, (SENSORS,)), space, seed=seed, memory=memory, until_found=True, significance=LEVEL
    )
    cause, own = 0.0, 0.0
    for step in range(steps):
        cause = 0.9 * cause + 0.4 * world.normal()
        sensors = cause + 0.7 * world.normal(size=SENSORS)
        sensors[2] = sensors[0] + 0.05 * world.normal()
        begun = time.process_time()
        seen = readings.offer(sensors, start=step % 100 == 0)
        own += time.process_time() - begun
        action = act(agent, seen, cause)
        begun = time.process_time()
        readings.saw(action)
        own += time.process_time() - begun
    readings.answer(ended=True)
    e = np.array([closed_e_values(row) for row in readings._bets.path])
    crossed = e >= 1 / LEVEL
    first = {j: int(np.argmax(crossed[:, j])) + 1 if crossed[:, j].any() else None for j in used}
    unused = [j for j in range(SENSORS) if j not in used]
    return bool(crossed[:, unused].any()), first, own


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    wanted = parser.parse_args()
    print(f"{wanted.runs} runs a kind, at most {wanted.steps} steps, δ = {LEVEL:g}: chance puts at most "
          f"{int(binom.isf(1e-3, wanted.runs, LEVEL))} false ones in {wanted.runs}\n")  # fmt: skip
    print("| agent | false at any look | sensors found | steps, median | ms a step |\n|---|---|---|---|---|")
    for kind in wanted.kinds:
        used = KINDS[kind][-1]
        runs = [play(kind, seed, wanted.steps) for seed in range(wanted.runs)]
        steps = [step for _, first, _ in runs for step in first.values()]
        known = [step for step in steps if step is not None]
        share = f"{100 * len(known) / len(steps):.0f} %" if used else "–"
        median = f"{np.median(known):.0f}" if known else "–"
        own = 1e3 * sum(own for *_, own in runs) / wanted.runs / wanted.steps
        print(f"| {kind} | {sum(false for false, *_ in runs)} | {share} | {median} | {own:.2f} |", flush=True)


if __name__ == "__main__":
    main()
