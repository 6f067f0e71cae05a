"""`policyspace demo`: both rules on an embedded data set, a picture, and what to try next."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the data and the picture.", metavar="DIR")] = Path(),
) -> None:
    """Identify a simulated driver from an embedded log, by both rules, and show what to try next."""
    from policyspace import write
    from policyspace.cli.identify import show
    from policyspace.cli.screen import new_console, say
    from policyspace.data.demo_log import SEED, STORY, load
    from policyspace.data.mice_trials import trials
    from policyspace.data.whole_file import check_targets, made_folder, replacing
    from policyspace.identification import identify
    from policyspace.report.evidence_picture import plot_evidence

    data, console = load(), new_console()
    log, picture = made_folder(out) / "policyspace-demo.csv", out / "policyspace-demo.png"
    mice = out / "policyspace-mice.csv"
    check_targets([log, picture, mice])
    for line in [*f"{STORY} ({data.num_pairs} rows, seed {SEED}.)".splitlines(), ""]:
        say(console, line)
    say(console, "Rule 2 (simplified): one test a feature", style="cyan")
    one_by_one = identify(data)
    show(one_by_one)
    say(console, "")
    say(console, "Rule 1 (combinatorial): all supports", style="cyan")
    show(identify(data, rule="combinatorial"))
    plot_evidence(one_by_one, picture)
    write(data, log)
    with replacing(mice) as file:
        file.write(trials().write_csv().encode())
    for line in (
        "",
        f"Saved the log as {log} and the picture as {picture}; {mice} holds simulated trials of mice. Try next:",
        "",
        f"  policyspace identify {log} --rule combinatorial",
        f"  policyspace identify {log} --groups parameter --json -",
        f"  policyspace identify {log} --always speed --plot answer.svg",
        f"  policyspace identify {mice} --actions choice --features contrast,tone --by mouse --episodes session --lags 1",
        "  policyspace identify YOUR_FILE.csv --actions COLUMN --features COLUMN,COLUMN",
    ):
        say(console, line)
