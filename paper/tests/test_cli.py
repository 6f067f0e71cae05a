"""What the commands of this package cost those who do not use them."""

import subprocess
import sys

HELP = """
import sys
sys.argv = ["policyspace", "--help"]
from policyspace.cli import main
try:
    main()
except SystemExit as stopped:
    assert stopped.code == 0
print("heavy:", sorted({"numpy", "scipy", "polars", "jax", "matplotlib", "sqlite3"} & {*sys.modules}))
print("loaded:", "policyspace_paper.cli" in sys.modules)
"""


def test_the_list_of_commands_needs_no_numpy():
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert "reproduce" in done.stdout
    assert "heavy: []" in done.stdout and "loaded: True" in done.stdout
