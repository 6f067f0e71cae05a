"""`policyspace reproduce`: run experiments, resumably, and show what came out."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from policyspace.errors import InputError, nearest

EXPERIMENTS = ("gridworld", "continuous-gridworld", "minigolf")


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments, or all.", metavar="[NAME]…")] = None,
    runs: Annotated[int, typer.Option("--runs", help="Agents in each cell.", min=1)] = 25,
    jobs: Annotated[int, typer.Option("--jobs", help="Worker processes.", min=1)] = 2,
    out: Annotated[Path, typer.Option("--out", help="Folder for records and figures.", metavar="DIR")] = Path(
        "results"
    ),
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget earlier records instead of going on.")] = False,
) -> None:
    """Compare the designs at equal totals of episodes; an interrupted run goes on where it was."""
    from importlib import import_module

    from rich.console import Console
    from rich.table import Table

    from policyspace.experiments import totals
    from policyspace.experiments.runner import run_cells
    from policyspace.experiments.store import Cell, Store
    from policyspace.report.evidence import save

    chosen = _chosen(names or ["all"])
    console = Console(highlight=False)
    with Store(out / "records.sqlite") as store:
        if fresh:
            store.clear(chosen)
        for name in chosen:
            module = import_module(f"policyspace.experiments.{name.replace('-', '_')}")
            cells = module.cells(runs)
            left, start, done = len(store.missing(cells)), time.monotonic(), 0

            def finished(
                cell: Cell, seconds: float, result: dict[str, Any], left: int = left, start: float = start
            ) -> None:
                nonlocal done
                done += 1
                remaining = (time.monotonic() - start) / done * (left - done)
                setting = cell.setting
                console.print(
                    f"{cell.experiment} {setting['design']} {setting['budget']} seed {setting['seed']}: "
                    f"β̂ {_rate(result['false_negative_rate'])}, α̂ {_rate(result['false_positive_rate'])} "
                    f"({seconds:.1f} s; {done}/{left}, about {remaining / 60:.0f} min left)"
                )

            run_cells(cells, store, jobs, finished)
            wanted = {cell.key for cell in cells}
            records = [r for r in store.records(name) if Cell(r.experiment, r.setting).key in wanted]
            summaries = totals.summarise(records)
            table = Table(title=module.TITLE, title_justify="left", box=None)
            for column in ("design", "episodes", "agents", "β̂", "α̂", "with a false selection"):
                table.add_column(column)
            for row in totals.table(summaries):
                table.add_row(*row)
            console.print(table)
            save(totals.draw(summaries, module.TITLE), out / f"{name}.svg")
            console.print(f"Saved {out / f'{name}.svg'}; records in {out / 'records.sqlite'}")


def _rate(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"


def _chosen(names: list[str]) -> list[str]:
    for name in names:
        if name != "all" and name not in EXPERIMENTS:
            raise InputError(f"unknown experiment '{name}': {nearest(name, [*EXPERIMENTS, 'all'])}")
    return list(EXPERIMENTS) if "all" in names else list(dict.fromkeys(names))
