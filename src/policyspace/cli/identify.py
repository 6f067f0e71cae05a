"""`policyspace identify`: from a file to the answer."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyspace.cli import options, screen
from policyspace.cli.running import running, waiting
from policyspace.data.limits import check_seed
from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.answer import Identification
    from policyspace.inference.coefficients import Coefficients


Rule = Annotated[
    str, typer.Option("--rule", help="One test a group, or all supports.", metavar="simplified|combinatorial")
]
CorrectionName = Annotated[
    str,
    typer.Option(
        "--correction",
        help="Of the simplified rule: Holm, Bonferroni (the paper's) or Benjamini–Hochberg (false discovery rate only).",
        metavar="holm|bonferroni|bh",
    ),
]
PaperRule = Annotated[
    bool, typer.Option("--paper-rule", help="The paper's split of δ: δ/d, or δ/2^d for the combinatorial rule.")
]
Test = Annotated[
    str,
    typer.Option(
        "--test",
        help="What decides; by default Wilks' theorem, or the assumption-lean test where the data contradict the policy.",
        metavar="auto|wilks|firth|lean|robust|bootstrap|universal|eprocess|mixture",
    ),
]
DependenceName = Annotated[
    str,
    typer.Option(
        "--dependence",
        help="Of the test lean: what is taken as independent; by default what the data show.",
        metavar="auto|rows|episodes",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Of whatever is drawn: splits, simulations.", metavar="N")]
Follow = Annotated[
    bool,
    typer.Option("--follow", help="After every episode say where each group stands, at error δ whatever the looking."),
]
Wait = Annotated[
    float | None,
    typer.Option("--wait", help="With --follow: wait for new rows, until none came for so long.", metavar="SECONDS"),
]
Budget = Annotated[
    int | None, typer.Option("--budget", help="With --follow: stop after so many episodes.", metavar="N")
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels", help="With --follow: all actions that may come, the reference last.", metavar="NAME[,NAME…]"
    ),
]
Firth = Annotated[bool, typer.Option("--firth", help="Firth's penalised test, finite under separation.")]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        help="Identify each subject, session or condition of this column alone, and all together.",
        metavar="COL",
    ),
]
CoefficientTable = Annotated[
    str | None,
    typer.Option(
        "--coefficients",
        help="Show every weight with its standard error, interval, odds ratio and p-value, and how well the policy fits.",
        metavar="wald|profile",
    ),
]
Calibration = Annotated[
    Path | None,
    typer.Option("--calibration", help="Save a picture of how often labels were chosen as expected.", metavar="FILE"),
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", help="Read large files on this dask.distributed cluster.", metavar="ADDRESS"),
]
Plot = Annotated[
    Path | None, typer.Option("--plot", help="Save a picture of the answer (PNG, SVG or PDF).", metavar="FILE")
]


@running
@options.with_source
def identify(
    source: options.Source,
    rule: Rule = "simplified",
    significance: options.Significance = 0.05,
    correction: CorrectionName = "holm",
    paper_rule: PaperRule = False,
    test: Test = "auto",
    seed: Seed = 0,
    dependence: DependenceName = "auto",
    follow: Follow = False,
    wait: Wait = None,
    budget: Budget = None,
    labels: Labels = None,
    firth: Firth = False,
    by: By = None,
    coefficients: CoefficientTable = None,
    calibration: Calibration = None,
    dask: Dask = None,
    json: options.JsonOut = None,
    plot: Plot = None,
    report: options.Report = None,
) -> None:
    """Say which features the agent uses, or which parameters it controls, from a file of states and actions.

    A file written by policyspace knows the roles of its columns and needs no options.
    """
    check_seed(seed)
    options.check_targets(plot, json, source.inputs, out=calibration, report=report)
    options.check_targets(calibration, None)
    others = {"--rule": rule != "simplified", "--test": test != "auto", "--paper-rule": paper_rule, "--firth": firth}
    others |= {"--dependence": dependence != "auto", "--correction": correction != "holm"}
    of_one = {"--coefficients": coefficients, "--calibration": calibration, "--report": report, "--dask": dask}
    texts = {"--by": by, "--json": json, "--plot": plot} | of_one
    _check_follow(follow, wait, budget, labels, [*(o for o in others if others[o]), *(o for o in texts if texts[o])])
    if follow:
        from policyspace.cli.follow import show_stream

        show_stream(source, significance, budget, wait, options.split(labels))
        return
    from policyspace.identification import identify as answer

    settings = {
        "rule": rule, "significance": significance, "correction": correction, "paper_rule": paper_rule, "firth": firth,
        "test": test, "seed": seed, "dependence": dependence,
    }  # fmt: skip
    if by is not None:
        from policyspace.cli.by_subject import show_by

        show_by(source, by, settings, of_one, json, plot)
        return
    with waiting("testing"):
        result = answer(source.read(dask), policy=source.spec, **settings)  # type: ignore[arg-type]
    wanted = coefficients is not None or calibration is not None
    table = result.coefficients(coefficients or "wald") if wanted else None  # type: ignore[arg-type]
    _save(result, table, calibration, plot, report, json)
    if json != "-":
        show(result, None if coefficients is None else table)
        screen.show_saved([plot, calibration, report, json])


def _save(
    result: "Identification",
    table: "Coefficients | None",
    calibration: Path | None,
    plot: Path | None,
    report: Path | None,
    json: str | None,
) -> None:
    """Whatever files were asked for."""
    if plot is not None:
        from policyspace.report.evidence_picture import plot_evidence

        plot_evidence(result, plot)
    if report is not None:
        options.write_report(result, report)
    if json is not None:
        options.write_json(result.to_json() if table is None else _with_weights(result, table), json)
    if calibration is not None and table is not None:
        from policyspace.report.calibration_picture import plot_calibration

        plot_calibration(table, calibration)


def _with_weights(result: "Identification", table: "Coefficients") -> str:
    """The answer as JSON, with the table of its weights."""
    import json

    found = result.to_dict() | {"weights": table.to_dict()}
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False)


def _check_follow(
    follow: bool, wait: float | None, budget: int | None, labels: list[str] | None, others: list[str]
) -> None:
    """What following a file takes, and what only a whole file does: nothing that was asked for is left out silently."""
    if follow and others:
        raise InputError(f"--follow has a test of its own and prints as it goes, found {others[0]} too: leave one out.")
    for option, given in {"--wait": wait, "--budget": budget, "--labels": labels}.items():
        if given is not None and not follow:
            raise InputError(f"{option} belongs to --follow, found it alone: add --follow, or leave it out.")
    for option, value in {"--wait": wait, "--budget": budget}.items():
        if value is not None and not value > 0:
            raise InputError(f"{option} must be more than 0, found {value}.")


def show(result: "Identification", weights: "Coefficients | None" = None) -> None:
    """The answer on the screen: a sentence, the table, what must be read with it."""
    colours = {"controlled": "green", "undecided": "yellow", "no evidence": "dim"}
    styles = [colours[test.verdict] for test in result.tests]
    screen.show(result.sentence, result.table(), result.notes(), result.columns()[1:5], styles)
    if weights is not None:
        screen.show("", weights.table(), weights.notes(), weights.table().columns[1:])
