"""JAX as the package sets it up."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_compiled_code_is_kept_in_the_users_cache(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    code = (
        "from policyspace.families.jax_backend import jax, jnp, cache_folder;"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0);"
        "jax.jit(lambda x: jnp.sin(x) @ x)(jnp.arange(3.0)); print(cache_folder())"
    )
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin", "HOME": str(tmp_path)}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert out.returncode == 0, out.stderr
    folder = Path(out.stdout.strip())
    assert folder == tmp_path / "policyspace" / "jax"
    assert any(folder.iterdir())
