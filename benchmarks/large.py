"""Files larger than memory: CPU time and memory of `identify` beside a plain scan of the same columns, each in a process.

`python -m benchmarks.large --rows 100000000 --float32` makes and removes a file of 7 GB.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.table import Row, show

NUM_FEATURES, CHUNK, SEED = 16, 1_000_000, 0

PEAK = """
def peak():
    \"\"\"MB; what `getrusage` calls the peak is that of the parent where a process is started by another.\"\"\"
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
"""

SCAN = """
import sys, time
import pyarrow.parquet as parquet
path, action, columns = sys.argv[1], sys.argv[2], [f"x{j}" for j in range(16)]
start = time.process_time()
file = parquet.ParquetFile(path, pre_buffer=False)
for group in range(file.metadata.num_row_groups):
    file.read_row_group(group, columns=[*columns, action], use_threads=False)
print(time.process_time() - start, peak())
"""

IDENTIFY = """
import os, sys, tempfile, time
import pyarrow.parquet
import policyspace
path, action, groups, columns = sys.argv[1], sys.argv[2], sys.argv[3], [f"x{j}" for j in range(16)]
with tempfile.TemporaryDirectory() as folder:  # imports are not what is measured
    small = f"{folder}/small.parquet"
    file = pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=65536)
    rows = next(file.iter_batches(2000, columns=[*columns, action], use_threads=False))
    pyarrow.parquet.write_table(pyarrow.Table.from_batches([rows]), small)
    os.environ["POLICYSPACE_MAX_BYTES_AT_ONCE"] = "1"
    policyspace.identify(small, action, features=columns)
    del file, rows, os.environ["POLICYSPACE_MAX_BYTES_AT_ONCE"]
start, wall = time.process_time(), time.perf_counter()
answer = policyspace.identify(path, action, features=columns, groups=groups)
print(time.process_time() - start, peak())
print(f"{time.perf_counter() - wall:.0f} s; {answer.test.name}, {len(answer.groups)} tests. {answer.data.out_of_core}")
"""


def make(path: Path, num_rows: int, kind: str) -> None:
    """Sixteen normal features, an amount that uses two of them, and one of four and one of five labels that use eight."""
    import pyarrow
    import pyarrow.parquet

    rng, of_five, writer = np.random.default_rng(SEED), np.random.default_rng(SEED + 1), None
    weights = 0.3 * rng.standard_normal((8, 3))
    five = 0.3 * of_five.standard_normal((8, 4))
    for start in range(0, num_rows, CHUNK):
        size = min(CHUNK, num_rows - start)
        x = rng.standard_normal((NUM_FEATURES, size)).astype(kind)
        amount = (0.002 * x[0] + 0.001 * x[3] + rng.standard_normal(size)).astype(kind)
        columns = {f"x{j}": x[j] for j in range(NUM_FEATURES)}
        columns |= {"amount": amount, "label": chosen(rng, weights, x), "option": chosen(of_five, five, x)}
        table = pyarrow.table(columns)
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def chosen(rng: np.random.Generator, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A label for each row: by the first eight features, and by noise."""
    score = np.vstack([weights.T @ x[: len(weights)], np.zeros(x.shape[1])])
    return (score + rng.gumbel(size=score.shape)).argmax(axis=0).astype(np.int8)


def measured(program: str, *arguments: str) -> tuple[float, float, str]:
    """CPU seconds, peak memory in MB, and what else a process says."""
    settings = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PEAK + program, *arguments]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, env=settings).stdout.splitlines()
    cpu, peak = map(float, lines[0].split())
    return cpu, peak, lines[1] if len(lines) > 1 else ""


def compared(path: Path, what: str, action: str, groups: str, wanted: str) -> list[Row]:
    """`identify` between two scans, of which the faster counts."""
    scans = [measured(SCAN, str(path), action)[0]]
    cpu, peak, said = measured(IDENTIFY, str(path), action, groups)
    scans.append(measured(SCAN, str(path), action)[0])
    ratio = cpu / min(scans)
    shown = f"{ratio:.1f}× the CPU of a scan ({cpu:.1f} s / {min(scans):.2f} s), {peak:.0f} MB"
    return [(what, shown, wanted), (f"  {said}", "—", "—")]


WANTED = {
    "float64": ("≤ 3×, ≤ 700 MB", "≤ 28×, ≤ 800 MB", "≤ 65×, ≤ 800 MB"),
    "float32": ("≤ 4×, ≤ 500 MB", "≤ 50×, ≤ 800 MB", "—"),
}


def large(num_rows: int = 10**7, kind: str = "float64", fewer: bool = False) -> list[Row]:
    """The amount, four labels with 16 tests and, unless there shall be `fewer`, five with a test of every parameter: 64."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        make(path, num_rows, kind)
        size = f"{num_rows:.0e} × {NUM_FEATURES} {kind}"
        cases = [("Gaussian", "amount", "feature"), ("Boltzmann, 4 labels by feature", "label", "feature")]
        cases += [] if fewer else [("Boltzmann, 5 labels by parameter", "option", "parameter")]
        rows: list[Row] = []
        for (name, action, groups), wanted in zip(cases, WANTED[kind], strict=False):
            rows += compared(path, f"{name}, {size}", action, groups, wanted)
        return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--fewer", action="store_true", help="leave out the tests of single parameters")
    said = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
    show("Logs that are read in passes", large(said.rows, "float32" if said.float32 else "float64", said.fewer))


if __name__ == "__main__":
    main()
