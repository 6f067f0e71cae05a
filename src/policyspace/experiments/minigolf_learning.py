"""How the golfers of the minigolf experiments learn, and what their policies return."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from policyspace.experiments.literal import LITERAL, procedures
from policyspace.experiments.scale import Scale
from policyspace.policies import PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.worlds.agents import learn
from policyspace.worlds.confmdp import Key, rollout
from policyspace.worlds.minigolf import Minigolf

OURS, PUBLISHED = 0.01, 0.1
"""σ_π: ours, and the root of the Σ = 0.01 that the paper writes."""

# Stages (σ_π, steps, episodes a step, Adam's first rate and, unless it is zero, what is left of it at the end): an agent
# explores widely at first, then ever less. At the first σ_π the return is smooth in θ. Wide exploration leads an agent that
# sees the friction to its best policies, and one that does not past them: THOROUGH therefore learns "direct", too, and
# keeps the better. Returns at ω = 3, 5, 11.5 of the agent with all features, and of the one with x and √x:
#   best known  −0.62 −0.06 −0.37   −3.84 −3.92 −4.26
#   LEARNING    −0.83 −0.08 −0.41   −3.88 −3.95 −4.30
#   BY_STAGES   −0.62 −0.08 −0.43   −3.94 −4.08 −4.38
#   THOROUGH    −0.63 −0.09 −0.48   (at 2, 5, 10:) −3.73 −3.91 −4.23, all before warm starts
THOROUGH: Mapping[float, dict[str, Any]] = {
    OURS: {
        "start": "safe",
        "stages": [[0.1, 500, 200, 0.02], [0.04, 500, 200, 0.01], [0.01, 1000, 200, 0.003]],
        "direct": [0.01, 1500, 400, 0.002],
        "warm": [0.01, 400, 200, 0.002],
    },
    PUBLISHED: {"start": "safe", "stages": [[0.1, 1000, 200, 0.01]], "warm": [0.1, 400, 200, 0.005]},
}
BY_STAGES: Mapping[float, dict[str, Any]] = {
    deviation: {"start": how["start"], "stages": how["stages"]} for deviation, how in THOROUGH.items()
}
"""How agents learn that are observed: once, stage by stage."""
_STATED = LITERAL["minigolf"].learning
AS_PUBLISHED: Mapping[float, dict[str, Any]] = {
    PUBLISHED: {"start": "uniform", "stages": [[PUBLISHED, *_STATED.values()]]},
    OURS: {"start": "uniform", "stages": [[OURS, *(_STATED | {"learning_rate": 0.001}).values()]]},
}
"""The paper's 100 × 100, from U[0, 0.1) weights, at a rate that it does not state and that does not fall.

Its Σ = 0.01 is read as a variance and, with the rate of its authors' code, as a deviation: both readings are guesses.
"""

WIDEST = 0.6
"""Stages whose strokes would spread the ball's speed by more are left out: there, giving up looks best."""


@lru_cache
def golf(deviation: float) -> tuple[Minigolf, PolicySpace]:
    """One world and one space for each σ_π and process, so that what was compiled for them is used again."""
    world = Minigolf(policy_deviation=deviation)
    return world, world.policy_space()


def deviation_of(learning: Mapping[str, Any]) -> float:
    """The σ_π that an agent ends up with."""
    return float(learning["stages"][-1][0])


def learnings(scale: Scale) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Procedures, and how their agents that are observed learn and those that are measured do, for every σ_π shown."""
    ours = [(BY_STAGES[deviation], THOROUGH[deviation]) for deviation in (OURS, PUBLISHED)]
    published = [(AS_PUBLISHED[deviation],) * 2 for deviation in (PUBLISHED, OURS)]
    quick = {"literal": published[:1], "ours": [(BY_STAGES[OURS], BY_STAGES[OURS])]}
    ways = quick if scale.quick else {"literal": published, "ours": ours}
    return [(procedure, *pair) for procedure in procedures(scale) for pair in ways[procedure]]


def learned(learning: Mapping[str, Any], controls: Iterable[str], putter_length: float, key: Key) -> np.ndarray:
    """θ [6] of an agent that owns these features and learned with this putter, stage by stage.

    A "safe" start strokes every ball equally, so softly that none is lost but by chance; a "uniform" one is the paper's.
    """
    last = learning["stages"][-1]
    stages = [stage for stage in learning["stages"] if stage[0] * putter_length <= WIDEST or stage is last]
    start = _safe_start(putter_length) if learning["start"] == "safe" else None
    return _stages(stages, tuple(controls), putter_length, key, start)


def best_learned(
    learning: Mapping[str, Any], controls: Iterable[str], putter_length: float, keys: tuple[Key, Key], num_episodes: int
) -> np.ndarray:
    """θ of the better of two learnings: stage by stage and, if there is such a stage, "direct"; `keys` learn and choose."""
    owned, (learning_key, choosing) = tuple(controls), keys
    theta = learned(learning, owned, putter_length, learning_key)
    if "direct" not in learning:
        return theta
    key = jax.random.fold_in(learning_key, len(learning["stages"]))
    other = _stages([learning["direct"]], owned, putter_length, key, _safe_start(putter_length))
    return _better(theta, other, deviation_of(learning), putter_length, choosing, num_episodes)


def _better(
    theta: np.ndarray, other: np.ndarray, deviation: float, putter_length: float, key: Key, num_episodes: int
) -> np.ndarray:
    one, two = (mean_return(deviation, each, putter_length, key, num_episodes) for each in (theta, other))
    return other if two > one else theta


def _safe_start(putter_length: float) -> np.ndarray | None:
    world, space = golf(OURS)
    return world.first_weights(space, {"putter_length": putter_length})


def _stages(
    stages: list[Any], controls: tuple[str, ...], putter_length: float, key: Key, theta: np.ndarray | None
) -> np.ndarray:
    for number, (deviation, steps, episodes, rate, *left) in enumerate(stages):
        world, space = golf(deviation)
        own = jax.random.fold_in(key, number)
        omega = {"putter_length": putter_length}
        decay = left[0] if left else 0.0
        theta = learn(world, space, controls, omega, own, steps, episodes, rate, theta, decay=decay).theta
    assert theta is not None  # there is a last stage
    return theta


def mean_return(deviation: float, theta: np.ndarray, putter_length: float, key: Key, num_episodes: int) -> float:
    """The mean undiscounted return of a policy with this putter."""
    world, space = golf(deviation)
    seen = rollout(world, space, theta, {"putter_length": np.float64(putter_length)}, key, num_episodes)
    return float(np.mean(np.asarray(seen.returns())))


def best_returns(
    learning: Mapping[str, Any], controls: Iterable[str], putter_lengths: list[float], key: Key, num_episodes: int
) -> list[float]:
    """The return of the best policy found for each putter, in increasing order of length.

    Each policy is learned afresh; then, if the learning has a "warm" stage, neighbours go on from each other, up along the
    putters and down again, from θ·ω/ω′, which hits every ball as fast as before, and the better one is kept. Policies are
    chosen by other episodes than those that measure what was chosen.
    """
    owned, deviation = tuple(sorted(controls)), deviation_of(learning)
    learning_key, choosing, measuring = jax.random.split(key, 3)
    count = len(putter_lengths)
    keys = [jax.random.fold_in(learning_key, i) for i in range(3 * count)]
    thetas = [
        best_learned(learning, owned, omega, (keys[i], choosing), num_episodes)
        for i, omega in enumerate(putter_lengths)
    ]
    if "warm" in learning:
        up, down = [(i - 1, i) for i in range(1, count)], [(i + 1, i) for i in reversed(range(count - 1))]
        for number, (neighbour, i) in enumerate(up + down, start=count):
            omega = putter_lengths[i]
            start = thetas[neighbour] * putter_lengths[neighbour] / omega
            warm = _stages([learning["warm"]], owned, omega, keys[number], start)
            thetas[i] = _better(thetas[i], warm, deviation, omega, choosing, num_episodes)
    return [
        mean_return(deviation, theta, omega, jax.random.fold_in(measuring, i), num_episodes)
        for i, (theta, omega) in enumerate(zip(thetas, putter_lengths, strict=True))
    ]
