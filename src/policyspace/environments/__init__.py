"""Agents and environments that others wrote: watched, checked, and made configurable."""

from policyspace.runtime import lazy_names, require_configure

require_configure()

_HOMES = {
    "gymnasium_world": (
        "EnvironmentSpec",
        "GymnasiumWorld",
        "as_actor",
        "play",
    ),
    "saved_agents": ("agent_from_file",),
    "watching": ("watch",),
}

__all__, __getattr__ = lazy_names(__name__, _HOMES)
