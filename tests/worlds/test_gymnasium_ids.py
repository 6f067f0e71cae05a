"""The Gymnasium ids are known once both packages are imported, in either order, and nothing heavy comes along."""

import subprocess
import sys

import pytest

SHOW = "print(sorted(k for k in gymnasium.registry if k.startswith('policyspace/')), 'jax' in sys.modules)"
IDS = "['policyspace/Car-v0', 'policyspace/ContinuousGridworld-v0', 'policyspace/Gridworld-v0', 'policyspace/Minigolf-v0']"


@pytest.mark.parametrize("order", ["import policyspace, gymnasium", "import gymnasium, policyspace"])
def test_ids_are_registered_in_either_order(order):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {order}; {SHOW}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"{IDS} False"


def test_importing_the_package_alone_imports_no_gymnasium():
    code = "import sys, policyspace; print('gymnasium' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"
