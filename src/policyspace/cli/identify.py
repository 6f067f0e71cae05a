"""`policyspace identify`: from a file to the answer."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyspace.cli import screen
from policyspace.cli.bundled import given, option
from policyspace.cli.options import Names, Significance, Source, Text
from policyspace.cli.running import running, waiting
from policyspace.cli.saving import JsonOut, Report, check_targets, deliver, write_report
from policyspace.cli.typed_values import split
from policyspace.data.limits import check_seed
from policyspace.errors import InputError
from policyspace.shown import json_text

if TYPE_CHECKING:
    from policyspace.answer import Identification
    from policyspace.inference.coefficients import Coefficients


@dataclass(frozen=True)
class TestOptions:
    """How it is tested, named as the arguments of `identify`."""

    rule: str = option("simplified", "One test a group, or all supports.", "simplified|combinatorial")
    significance: Significance = 0.05
    correction: str = option(
        "holm",
        "Of the simplified rule: Holm, Bonferroni (the paper's) or Benjamini–Hochberg (false discovery rate only).",
        "holm|bonferroni|bh",
    )
    paper_rule: bool = option(False, "The paper's split of δ: δ/d, or δ/2^d for the combinatorial rule.")
    test: str = option(
        "auto",
        "What decides; by default Wilks' theorem, or the assumption-lean test where the data contradict the policy.",
        "auto|wilks|firth|lean|robust|bootstrap|universal|eprocess|mixture",
    )
    seed: int = option(0, "Of whatever is drawn: splits, simulations.", "N")
    dependence: str = option(
        "auto", "Of the test lean: what is taken as independent; by default what the data show.", "auto|rows|episodes"
    )
    firth: bool = option(False, "Firth's penalised test, finite under separation.")


@dataclass(frozen=True)
class FollowOptions:
    """Whether and how long a file is followed that grows."""

    follow: bool = option(False, "After every episode say where each group stands, at error δ whatever the looking.")
    wait: float | None = option(None, "With --follow: wait for new rows, until none came for so long.", "SECONDS")
    budget: int | None = option(None, "With --follow: stop after so many episodes.", "N")
    labels: Names = option(None, "With --follow: all actions that may come, the reference last.", "NAME[,NAME…]")


@dataclass(frozen=True)
class WantedOptions:
    """What is wanted beside the answer, where it is saved, and who reads large files."""

    by: Text = option(
        None, "Identify each subject, session or condition of this column alone, and all together.", "COL"
    )
    coefficients: Text = option(
        None,
        "Show every weight with its standard error, interval, odds ratio and p-value, and how well the policy fits.",
        "wald|profile",
    )
    calibration: Path | None = option(None, "Save a picture of how often labels were chosen as expected.", "FILE")
    dask: Text = option(None, "Read large files on this dask.distributed cluster.", "ADDRESS")
    json: JsonOut = None
    plot: Path | None = option(None, "Save a picture of the answer (PNG, SVG or PDF).", "FILE")
    report: Report = None


@running
def identify(source: Source, testing: TestOptions, following: FollowOptions, wanted: WantedOptions) -> None:
    """Say which features the agent uses, or which parameters it controls, from a file of states and actions.

    A file written by policyspace knows the roles of its columns and needs no options.
    """
    check_seed(testing.seed)
    check_targets([wanted.plot, wanted.calibration], wanted.json, source.inputs, report=wanted.report)
    _check_follow(following, given(testing, "significance", "seed") + given(wanted))
    if following.follow:
        from policyspace.cli.follow import show_stream

        show_stream(source, testing.significance, following.budget, following.wait, split(following.labels))
        return
    if wanted.by is not None:
        for other in given(wanted, "by", "json", "plot"):
            raise InputError(f"{other} is of one answer, found --by too: leave one out.")
        from policyspace.cli.by_subject import show_by

        show_by(source, wanted.by, asdict(testing), wanted.json, wanted.plot)
        return
    from policyspace.identification import identify as answer

    settings: dict[str, Any] = source.said | asdict(testing)
    with waiting("testing"):
        result = answer(source.file, backend=wanted.dask, **settings)
    _show_and_save(result, wanted)


def _show_and_save(result: "Identification", wanted: WantedOptions) -> None:
    """Whatever files were asked for, and the answer on the screen."""
    table = None
    if wanted.coefficients is not None or wanted.calibration is not None:
        table = result.coefficients(wanted.coefficients or "wald")  # type: ignore[arg-type]
    if wanted.plot is not None:
        from policyspace.report.evidence_picture import plot_evidence

        plot_evidence(result, wanted.plot)
    write_report(result, wanted.report)
    if wanted.calibration is not None and table is not None:
        from policyspace.report.calibration_picture import draw_calibration
        from policyspace.report.style import save

        save(draw_calibration(table), wanted.calibration)
    shown = table if wanted.coefficients is not None else None
    found = result.to_dict() if table is None else result.to_dict() | {"weights": table.to_dict()}
    deliver(
        lambda: json_text(found),
        wanted.json,
        lambda: show(result, shown),
        wanted.plot,
        wanted.calibration,
        wanted.report,
    )


def _check_follow(following: FollowOptions, others: list[str]) -> None:
    """What following a file takes, and what only a whole file does: nothing that was asked for is left out silently."""
    if following.follow and others:
        raise InputError(f"--follow has a test of its own and prints as it goes, found {others[0]} too: leave one out.")
    if not following.follow:
        for name in given(following):
            raise InputError(f"{name} belongs to --follow, found it alone: add --follow, or leave it out.")
    for name, value in {"--wait": following.wait, "--budget": following.budget}.items():
        if value is not None and not value > 0:
            raise InputError(f"{name} must be more than 0, found {value}.")


def show(result: "Identification", weights: "Coefficients | None" = None) -> None:
    """The answer on the screen: a sentence, the table, what must be read with it."""
    colours = {"controlled": "green", "undecided": "yellow", "no evidence": "dim"}
    styles = [colours[test.verdict] for test in result.tests]
    screen.show(result, result.columns()[1:5], styles)
    if weights is not None:
        screen.show_parts("", weights.table(), weights.notes(), weights.table().columns[1:])
