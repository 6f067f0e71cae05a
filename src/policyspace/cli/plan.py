"""`policyspace plan`: how many more episodes?"""

from pathlib import Path
from typing import Annotated

import typer

from policyspace.cli import options, screen
from policyspace.cli.running import running, waiting
from policyspace.errors import InputError


@running
@options.with_source
def plan(
    source: options.Source,
    power: Annotated[
        float, typer.Option("--power", help="The wanted chance of finding what is controlled.", metavar="P")
    ] = 0.9,
    significance: options.Significance = 0.05,
    confidence: Annotated[
        float, typer.Option("--confidence", help="Of the ranges that the pilot leaves open.", metavar="P")
    ] = 0.9,
    effect: Annotated[
        float | None,
        typer.Option(
            "--effect", help="Plan for this ‖θ‖ of every group, instead of what the pilot shows.", metavar="X"
        ),
    ] = None,
    test: Annotated[
        str,
        typer.Option(
            "--test", help="The test that will be used: λ, or an e-value.", metavar="wilks|universal|eprocess"
        ),
    ] = "wilks",
    json: options.JsonOut = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Save a picture of power against pairs (PNG, SVG or PDF).", metavar="FILE"),
    ] = None,
    report: options.Report = None,
) -> None:
    """Say how many pairs and episodes find each group with the wanted power, from a pilot file.

    And what the pilot can already exclude: the smallest effect that would have shown, and a bound for every weight.
    """
    from policyspace.planning import Aim, pilot, plan_likelihood

    options.check_targets(plot, json, source.inputs, report=report)
    with waiting("planning"):
        likelihood, demonstrations = pilot(source.read(), policy=source.spec)
        result = plan_likelihood(likelihood, demonstrations, Aim(power, significance, confidence, effect, test))
    if plot is not None:
        from policyspace.report.power_picture import plot_power
        from policyspace.theory import assess_likelihood

        try:
            setting = assess_likelihood(likelihood, demonstrations, significance).setting
        except InputError:  # the theory has no bounds for this policy, the plan has its numbers all the same
            setting = None
        plot_power(result, setting, plot)
    if report is not None:
        options.write_report(result, report)
    if json is not None:
        options.write_json(result.to_json(), json)
    if json != "-":
        table = result.table()
        screen.show(result.sentence, table, result.notes(), right=table.columns[1:])
        screen.show_saved([plot, report, json])
