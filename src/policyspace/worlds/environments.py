"""The paper's worlds under their Gymnasium ids, known wherever Gymnasium is: `gymnasium.make("policyspace/Car-v0")`.

JAX is imported when an environment is made.
"""

from gymnasium.envs.registration import register, registry

IDS = {
    "policyspace/Gridworld-v0": "gridworld",
    "policyspace/ContinuousGridworld-v0": "continuous-gridworld",
    "policyspace/Minigolf-v0": "minigolf",
    "policyspace/Car-v0": "car",
}
"""The world behind each id."""


def register_worlds() -> None:
    """Tell Gymnasium the ids; its plugin entry point calls this when Gymnasium is imported."""
    for name, world in IDS.items():
        if name not in registry:
            register(name, entry_point="policyspace.worlds.gymnasium_adapter:WorldEnv", kwargs={"world": world})


register_worlds()
