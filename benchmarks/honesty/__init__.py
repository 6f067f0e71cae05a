"""How often each test finds what is not there, on agents that break its assumptions: `python -m benchmarks.honesty`."""

from benchmarks.honesty.continuous import CONTINUOUS
from benchmarks.honesty.discrete import DISCRETE

SCENARIOS = CONTINUOUS | DISCRETE
