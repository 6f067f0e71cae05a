"""The command `policyspace reproduce`: its options; what it does is imported when it runs."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from policyspace.cli.console import running
from policyspace.cli.options import option
from policyspace_paper import ONE_THREAD

MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class RunOptions:
    """How much is run, by whom, and where the results are."""

    runs: int | None = option(None, "Runs of each setting; by default as many as the paper.", min=1, max=MOST_RUNS)
    quick: bool = option(False, "A miniature: every figure from few points and runs.")
    as_published: bool = option(False, "Only the column of the paper's literal settings; by default both.")
    jobs: int | None = option(None, "Worker processes; by default as many as cores.", min=1)
    dask: str | None = option(None, "Run on a dask.distributed cluster instead: its scheduler.", "ADDRESS")
    out: Path = option(Path("results"), "Folder for records, numbers, figures, page.", "DIR")
    resume: bool = option(True, "Go on where an earlier run was, or forget its records.", None, "--resume/--fresh")


@running
def reproduce(
    said: RunOptions,
    names: Annotated[list[str] | None, typer.Argument(help="Experiments, or all (default).", metavar="[NAME]…")] = None,
) -> None:
    """Run the experiments of the paper and show claim and result side by side, in DIR/index.html.

    Every claim is run by the paper's own settings, wherever it states them, and by ours.
    Records are kept as they finish: stopped at any moment, the same command goes on where it was.
    """
    os.environ.update(ONE_THREAD)  # before NumPy and JAX are loaded: with one job this process is the worker
    from policyspace_paper.reproduction import reproduce_experiments

    reproduce_experiments(names or ["all"], said)
