"""JAX as every module here needs it: float64, and compiled code kept on disk between processes.

Modules that simulate write `from policyspace.policies.jax_setup import jax, jnp`, so that this runs before the first array.
"""

import os
from pathlib import Path

import jax
import jax.numpy as jnp

__all__ = ["cache_folder", "jax", "jnp"]


def cache_folder() -> Path:
    """Where compiled code is kept: $XDG_CACHE_HOME/policyspace/jax, or ~/.cache/policyspace/jax."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "policyspace" / "jax"


# Likelihood ratios and importance weights lose their meaning in float32.
jax.config.update("jax_enable_x64", True)
if jax.config.jax_compilation_cache_dir is None:  # a folder that the user chose stays
    jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
