"""`policyspace demo`: both rules on an embedded data set, a picture, and what to try next."""

from pathlib import Path
from typing import Annotated

import typer

from policyspace.errors import InputError


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the data and the picture.", metavar="DIR")] = Path(),
) -> None:
    """Identify a simulated driver from an embedded log, by both rules, and show what to try next."""
    from policyspace import write
    from policyspace.cli.identify import show
    from policyspace.data.demo_log import SEED, STORY, load
    from policyspace.data.mice_trials import trials
    from policyspace.data.whole_file import replacing
    from policyspace.identification import identify
    from policyspace.report.evidence_picture import plot_evidence

    data = load()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{out}: is no folder that can be made ({error.strerror}): name another with --out."
        ) from error
    log, picture = out / "policyspace-demo.csv", out / "policyspace-demo.png"
    typer.echo(f"{STORY} ({data.num_pairs} rows, seed {SEED}.)\n")
    typer.secho("Rule 2 (simplified): one test a feature", fg="cyan")
    one_by_one = identify(data)
    show(one_by_one)
    typer.secho("\nRule 1 (combinatorial): all supports", fg="cyan")
    show(identify(data, rule="combinatorial"))
    plot_evidence(one_by_one, picture)
    write(data, log)
    mice = out / "policyspace-mice.csv"
    with replacing(mice) as file:
        file.write(trials().write_csv().encode())
    typer.echo(
        f"\nSaved the log as {log} and the picture as {picture}; {mice} holds simulated trials of mice. Try next:\n"
    )
    for command in (
        f"policyspace identify {log} --rule combinatorial",
        f"policyspace identify {log} --groups parameter --json -",
        f"policyspace identify {log} --always speed --plot answer.svg",
        f"policyspace identify {mice} --actions choice --episodes session --by mouse --lags 1",
        "policyspace identify YOUR_FILE.csv --actions COLUMN --features COLUMN,COLUMN",
    ):
        typer.echo(f"  {command}")
