"""`policyspace plan` (power and sample size), `theory` (the paper's bounds) and `demo`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from policyspace.cli import console as screen
from policyspace.cli.console import JsonOut, Report, check_targets, deliver, running, waiting, write_report
from policyspace.cli.options import SampleOptions, Significance, option
from policyspace.errors import InputError

# -- `policyspace plan`: how many more episodes?


@dataclass(frozen=True)
class AimOptions:
    """What the plan is to reach, named as in an aim."""

    power: float = option(0.9, "The wanted chance of finding what is controlled.", "P")
    significance: Significance = 0.05
    confidence: float = option(0.9, "Of the ranges that the pilot leaves open.", "P")
    effect: float | None = option(None, "Plan for this ‖θ‖ of every group, instead of what the pilot shows.", "X")
    test: str = option("wilks", "The test that will be used: λ, or an e-value.", "wilks|universal|eprocess")


@running
def plan(
    source: SampleOptions,
    aim: AimOptions,
    json: JsonOut = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Save a picture of power against rows (PNG, SVG or PDF).", metavar="FILE"),
    ] = None,
    report: Report = None,
) -> None:
    """Say how many rows and episodes find each group with the wanted power, from a pilot file.

    And what the pilot can already exclude: the smallest effect that would have shown, and a bound for every weight.
    """
    from policyspace.planning import Aim, pilot, plan_likelihood

    check_targets([plot], json, source.inputs, report=report)
    with waiting("planning"):
        likelihood, demonstrations = pilot(source.request())
        result = plan_likelihood(likelihood, demonstrations, Aim(**asdict(aim)))
    if plot is not None:
        from policyspace.report.figures import draw_power, save
        from policyspace.theory import assess_likelihood

        try:
            setting = assess_likelihood(likelihood, demonstrations, aim.significance).setting
        except InputError:  # the theory has no bounds for this policy, the plan has its numbers all the same
            setting = None
        save(draw_power(result, setting), plot)
    write_report(result, report)
    deliver(result.to_json, json, lambda: screen.show(result, result.table().columns[1:]), plot, report)


# -- `policyspace theory`: what the paper proves about this data set, and how loose that is.


@running
def theory(source: SampleOptions, significance: Significance = 0.05, json: JsonOut = None) -> None:
    """Print the paper's quantities: σ, λ̂_min, its bounds at this n, and the n at which they say something.

    They are worst-case bounds, and loose: beside each stands what asymptotics say of the same thing.
    """
    from policyspace.planning import pilot
    from policyspace.theory import assess_likelihood

    check_targets(json=json, inputs=source.inputs)
    with waiting("assessing"):
        result = assess_likelihood(*pilot(source.request()), significance)
    deliver(result.to_json, json, lambda: screen.show(result, result.table().columns[1:]))


# -- `policyspace demo`: both rules on an embedded data set, a picture, and what to try next.


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the data and the picture.", metavar="DIR")] = Path(),
) -> None:
    """Identify a simulated driver from an embedded log, by both rules, and show what to try next."""
    from policyspace.cli.console import new_console, say
    from policyspace.cli.identify import show
    from policyspace.data.examples import SEED, STORY, load_demo, trials
    from policyspace.data.files import write
    from policyspace.identification import identify
    from policyspace.report.figures import plot_effects
    from policyspace.safe_io import check_targets, made_folder, replacing

    data, console = load_demo(), new_console()
    log, picture = made_folder(out) / "policyspace-demo.csv", out / "policyspace-demo.png"
    mice = out / "policyspace-mice.csv"
    check_targets([log, picture, mice])
    for line in [*f"{STORY} ({data.num_rows} rows, seed {SEED}.)".splitlines(), ""]:
        say(console, line)
    say(console, "Rule 2 (simplified): one test a feature", style="cyan")
    one_by_one = identify(data)
    show(one_by_one)
    say(console, "")
    say(console, "Rule 1 (combinatorial): all supports", style="cyan")
    show(identify(data, rule="combinatorial"))
    plot_effects(one_by_one, picture)
    write(data, log)
    with replacing(mice) as file:
        file.write(trials().write_csv().encode())
    for line in (
        "",
        f"Saved the log as {log} and the picture as {picture}; {mice} holds simulated trials of mice. Try next:",
        "",
        f"  policyspace identify {log} --rule combinatorial",
        f"  policyspace identify {log} --groups parameter --json -",
        f"  policyspace identify {log} --assume speed --plot answer.svg",
        f"  policyspace identify {mice} --actions choice --features contrast,tone --by mouse --episodes session --lags 1",
        "  policyspace identify YOUR_FILE.csv --actions COLUMN --features COLUMN,COLUMN",
    ):
        say(console, line)
