"""The paper's worlds under their Gymnasium ids, registered when `policyspace.worlds` is imported, as Gymnasium asks.

Beside Gymnasium `import policyspace` is enough if it comes second. In any order an id may name the package that
registers it: `gymnasium.make("policyspace.worlds:policyspace/Car-v0")`. JAX is imported when an environment is made.
"""

from gymnasium.envs.registration import register

IDS = {
    "policyspace/Gridworld-v0": "gridworld",
    "policyspace/ContinuousGridworld-v0": "continuous-gridworld",
    "policyspace/Minigolf-v0": "minigolf",
    "policyspace/Car-v0": "car",
}
"""The world behind each id."""


def register_worlds() -> None:
    """Tell Gymnasium the ids."""
    for name, world in IDS.items():
        register(name, entry_point="policyspace.worlds.gymnasium_adapter:WorldEnv", kwargs={"world": world})
