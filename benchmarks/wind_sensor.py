"""How often a study finds that an agent uses its wind sensor, and says so of one whose sensor is broken.

`python -m benchmarks.wind_sensor --seeds 7` counts over seeds what docs/configure-any-environment.md shows; it needs
`pip install 'policyspace[agents]'` and takes some ten seconds a seed.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

from examples.windy_cartpole import learn, learn_blind, windy
from policyspace.environments.gymnasium_world import GymnasiumWorld
from policyspace.study.study import Study

NAMES = ("position", "velocity", "angle", "angular_velocity", "wind")


def found(agent, seed: int, folder: Path) -> bool:
    """Whether the sensor is found in use in a study of two rounds of 30 episodes, the second where the study says."""
    world = GymnasiumWorld.of(windy, {"gust": (0, 1)}, names=list(NAMES))
    path = folder / f"{agent.__name__}-{seed}.sqlite"
    study = Study.create(path, world, max_rounds=1, episodes=30, features=["wind"], seed=seed)
    while study.play(learn=partial(agent, seed=seed)) is not None:
        pass
    return "wind" in study.status().selected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=7, help="training seeds 0, 1, …")
    seeds = range(parser.parse_args().seeds)
    with tempfile.TemporaryDirectory() as folder:
        for agent, who in ((learn, "see the wind"), (learn_blind, "do not")):
            count = sum(found(agent, seed, Path(folder)) for seed in seeds)
            print(f"found in use in {count} of {len(seeds)} studies of agents that {who}", flush=True)


if __name__ == "__main__":
    main()
