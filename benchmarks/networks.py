"""All 32 supports of the car's driver, restarts included: `python -m benchmarks.networks [episodes]`."""

import sys
import time

from policyspace.families.jax_backend import jax
from policyspace.families.registry import likelihood_of
from policyspace.runtime import num_workers
from policyspace.worlds.agents import learn
from policyspace.worlds.car import Car


def main() -> None:
    num_episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    world = Car()
    agent = learn(world, key=0, num_steps=100, num_episodes=50, learning_rate=0.03)
    episodes = agent.act(world, agent.configuration, jax.random.key(1), num_episodes)
    data = episodes.pairs(world.feature_names, world.action_names)
    space = world.policy_space()
    wall, cpu = time.perf_counter(), time.process_time()
    likelihood = likelihood_of(space, data)
    likelihood.prepare(space.tested)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{num_episodes} episodes, {data.num_rows} pairs, {space.num_parameters} weights, {num_workers()} cores")
    print(f"all {2 ** len(space.tested)} supports: {wall:.1f} s ({cpu:.1f} CPU-s)")
    true = frozenset(i for i, group in enumerate(space.groups) if group.name in agent.controls)
    for g in space.tested:
        statistic = 2 * (likelihood.full.log_likelihood - likelihood.fit(space.full_support - {g}).log_likelihood)
        print(f"  λ without {space.groups[g].name:<11} {statistic:8.1f}{'' if g in true else '  (not owned)'}")
    print(f"restart noise: λ moves by up to {likelihood.restart_noise:.1f}")


if __name__ == "__main__":
    main()
