"""The paper's worlds under their Gymnasium ids, known as soon as this module is imported.

`gymnasium.make("policyspace.worlds.environments:policyspace/Car-v0")` imports it by itself. JAX is imported when an
environment is made.
"""

from gymnasium.envs.registration import register, registry

IDS = {
    "policyspace/Gridworld-v0": "gridworld",
    "policyspace/ContinuousGridworld-v0": "continuous-gridworld",
    "policyspace/Minigolf-v0": "minigolf",
    "policyspace/Car-v0": "car",
}
"""The world behind each id."""

for _id, _world in IDS.items():
    if _id not in registry:
        register(_id, entry_point="policyspace.worlds.gymnasium_adapter:WorldEnv", kwargs={"world": _world})
