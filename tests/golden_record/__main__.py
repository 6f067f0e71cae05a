"""Makes the record anew: all of it, or the sections named."""

import sys
import tempfile
import time
from pathlib import Path

from .public_interface import interface
from .record import plain, write
from .sections import SECTIONS

INTERFACE = "public_interface"

for section in sys.argv[1:] or [*SECTIONS, INTERFACE]:
    if section == INTERFACE:
        write(section, plain(interface()))
        continue
    answers = {}
    for name, problem in SECTIONS[section].problems.items():
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            answers[name] = plain(problem(Path(folder)))
        print(f"{time.perf_counter() - start:6.2f} s  {section}: {name}", flush=True)
    write(section, answers)
