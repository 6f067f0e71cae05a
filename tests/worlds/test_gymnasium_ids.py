"""The Gymnasium ids: known once the worlds are imported, in either order, and nothing heavy comes along."""

import subprocess
import sys

import pytest

from policyspace.worlds import IDS

SHOW = "print(*sorted(k for k in gymnasium.registry if k.startswith('policyspace/')), 'jax' in sys.modules)"


def printed(code: str) -> list[str]:
    """The last line that code prints in a process of its own, in words."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


@pytest.mark.parametrize(
    "imports",
    [
        "import gymnasium, policyspace",
        "import gymnasium, policyspace.worlds",
        "import policyspace.worlds, gymnasium",
        "import policyspace, gymnasium, policyspace.worlds",
    ],
)
def test_ids_are_registered_without_jax(imports: str) -> None:
    assert printed(f"import sys; {imports}; {SHOW}") == [*sorted(IDS), "False"]


def test_an_id_that_names_its_package_needs_no_import_of_ours() -> None:
    made = "gymnasium.make('policyspace.worlds:policyspace/Gridworld-v0').reset(seed=0)[0].shape"
    assert printed(f"import gymnasium; print(*{made})") == ["4"]


def test_importing_the_package_alone_imports_no_gymnasium() -> None:
    code = "import sys, policyspace; print('gymnasium' in sys.modules, 'numpy' in sys.modules)"
    assert printed(code) == ["False", "False"]
