"""From demonstrations of a golfer to its putter: is the one that is recommended as good as the best?

python -m benchmarks.recommendations [A1|A2 DEVIATION]

Golfers A₁ (perceives everything) and A₂ (perceives the distance alone) learn with a putter of length 5 and are watched.
What they use is identified by the combinatorial rule and the χ² test, for the space is known to be linear in these
features (distance and its root are one input to a test without a model); then a putter is recommended, and compared with
putters over the whole range, with which other agents with the true features have learned several times.
"""

import sys
from functools import lru_cache

import numpy as np

import policyspace
from policyspace.families.jax_backend import jax
from policyspace.worlds.minigolf import AGENT_A2, Minigolf

GRID = (1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0, 11.5, 15.0)


@lru_cache
def shared_space(world):
    """One object for all agents of a world, which share the compiled code then."""
    return world.policy_space()


def returns(world, controls, putter, learnings, episodes, seed):
    """The mean return of each of several agents that learned with a putter [learnings], and its error by chance of play."""
    found, spread = [], []
    space = shared_space(world)
    for number in range(learnings):
        omega = {"putter_length": putter}
        agent = policyspace.learn(world, space, controls, omega, key=10_000 + 100 * seed + number)
        seen = agent.act(world, world.check_configuration(omega), jax.random.key(7), episodes)
        found.append(seen.returns(world.discount).mean())
        spread.append(seen.returns(world.discount).std() / np.sqrt(episodes))
    return np.array(found), float(np.mean(spread))


def one(controls, deviation, learnings=4, episodes=2000, seed=0, compared=100):
    """The recommendation from demonstrations, beside the best of the grid; agents learn `compared` times with each."""
    world = Minigolf(policy_deviation=deviation)
    watched = policyspace.learn(world, shared_space(world), controls, {"putter_length": 5.0}, key=seed)
    seen = watched.act(world, world.default_configuration(), jax.random.key(seed + 1), 300)
    log = seen.pairs(world.feature_names, world.action_names)
    answer = policyspace.identify(log, rule="combinatorial", policy=world.policy_space(), test="wilks")
    made = policyspace.recommend(world, answer, learnings=2, episodes=1000, everything=False, seed=seed)
    putter = float(made.configuration["putter_length"])
    first = {length: returns(world, controls, length, learnings, episodes, seed)[0].mean() for length in GRID}
    top = max(first, key=first.get)
    # Other agents than those by which the best of the grid was found, so that it is not the luckiest.
    values, by_chance = returns(world, controls, top, compared, episodes, seed + 1)
    own, _ = returns(world, controls, putter, compared, episodes, seed + 1)
    # Of the best putter's return: all agents play the same episodes, whose chance does not average out over learnings.
    error = float(np.hypot(values.std(ddof=1) / np.sqrt(compared), by_chance))
    return answer.supports, putter, own.mean(), top, values.mean(), error


def main():
    """A line an agent and a noise of its strokes."""
    agents = {"A1": Minigolf().feature_names, "A2": tuple(AGENT_A2)}
    cases = [(name, deviation) for deviation in (0.01, 0.1) for name in agents]
    if len(sys.argv) == 3:
        cases = [(sys.argv[1], float(sys.argv[2]))]
    for name, deviation in cases:
        supports, putter, own, top, best, error = one(agents[name], deviation)
        print(
            f"{name}, σ = {deviation:g}: identified {supports}; recommended {putter:.2f} ({own:.3f}), best of the grid "
            f"{top:g} ({best:.3f}), standard error {error:.3f}, by 100 learnings",
            flush=True,
        )


if __name__ == "__main__":
    main()
