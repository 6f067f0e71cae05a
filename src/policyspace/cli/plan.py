"""`policyspace plan`: how many more episodes?"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from policyspace.cli import screen
from policyspace.cli.bundled import option
from policyspace.cli.options import Significance, Source
from policyspace.cli.running import running, waiting
from policyspace.cli.saving import JsonOut, Report, check_targets, deliver, write_report
from policyspace.errors import InputError


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
    source: Source,
    aim: AimOptions,
    json: JsonOut = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Save a picture of power against pairs (PNG, SVG or PDF).", metavar="FILE"),
    ] = None,
    report: Report = None,
) -> None:
    """Say how many pairs and episodes find each group with the wanted power, from a pilot file.

    And what the pilot can already exclude: the smallest effect that would have shown, and a bound for every weight.
    """
    from policyspace.planning import Aim, pilot, plan_likelihood

    check_targets([plot], json, source.inputs, report=report)
    with waiting("planning"):
        likelihood, demonstrations = pilot(source.file, **source.said)
        result = plan_likelihood(likelihood, demonstrations, Aim(**asdict(aim)))
    if plot is not None:
        from policyspace.report.power_picture import draw_power
        from policyspace.report.style import save
        from policyspace.theory import assess_likelihood

        try:
            setting = assess_likelihood(likelihood, demonstrations, aim.significance).setting
        except InputError:  # the theory has no bounds for this policy, the plan has its numbers all the same
            setting = None
        save(draw_power(result, setting), plot)
    write_report(result, report)
    deliver(result.to_json, json, lambda: screen.show(result, result.table().columns[1:]), plot, report)
