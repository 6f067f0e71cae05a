"""`policyspace identify`: from a log, by subject, or while a file grows (--follow)."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from policyspace.cli import console as screen
from policyspace.cli.console import (
    JsonOut,
    Report,
    check_targets,
    deliver,
    new_console,
    running,
    say,
    waiting,
    write_report,
)
from policyspace.cli.options import Names, SampleOptions, Significance, Text, given, option, pairs, split
from policyspace.display import json_text
from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.answer import Identification
    from policyspace.data.request import Request
    from policyspace.inference.base import TestOptions
    from policyspace.inference.coefficients import CoefficientTable


# -- `policyspace identify`: from a file to the answer.


@dataclass(frozen=True)
class TestingOptions:
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
        "auto|wilks|firth|lean|randomised|robust|bootstrap|universal|eprocess|mixture",
    )
    assigned: Names = option(
        None,
        "How the experimenter drew a feature: tested exactly. Repeat it for others.",
        "COL=uniform|permuted[:COL]|P,P…",
    )
    seed: int = option(0, "Of whatever is drawn: splits, simulations.", "N")
    clusters: str = option(
        "auto",
        "Of the test lean: what is taken as independent; by default what the data show.",
        "auto|rows|blocks|episodes",
    )
    firth: bool = option(False, "Firth's penalised test, finite under separation.")


@dataclass(frozen=True)
class FollowOptions:
    """Whether and how long a file is followed that grows."""

    follow: bool = option(False, "After every episode say where each group stands, at error δ however often one looks.")
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
    calibration: Path | None = option(None, "Save a picture of how often each action was chosen as expected.", "FILE")
    subject_plot: Path | None = option(None, "Save a picture of each subject's weights with intervals.", "FILE")
    dask: Text = option(None, "Read large files on this dask.distributed cluster.", "ADDRESS")
    json: JsonOut = None
    plot: Path | None = option(None, "Save a picture of the effects (PNG, SVG or PDF).", "FILE")
    curves: Path | None = option(None, "Save a picture of what the agent does as each feature changes.", "FILE")
    report: Report = None


@running
def identify(source: SampleOptions, testing: TestingOptions, following: FollowOptions, wanted: WantedOptions) -> None:
    """Say which features the agent uses, or which parameters it controls, from a file of states and actions.

    A file written by policyspace knows the roles of its columns and needs no options.
    """
    from policyspace.inference.base import TestOptions

    said = asdict(testing)
    assigned = pairs(
        "--assigned", "must be such as 'cue=uniform', 'cue=permuted:session' or 'cue=0.3,0.7'", said.pop("assigned")
    )
    options = TestOptions.of(**said)
    pictures = [wanted.plot, wanted.curves, wanted.calibration, wanted.subject_plot]
    check_targets(pictures, wanted.json, source.inputs, report=wanted.report)
    # What following a file takes, and what only a whole file does: nothing that was asked for is left out silently.
    others = given(testing, "significance", "seed") + given(wanted)
    if following.follow and others:
        raise InputError(f"--follow has a test of its own and prints as it goes, found {others[0]} too: leave one out.")
    if not following.follow:
        for name in given(following):
            raise InputError(f"{name} belongs to --follow, found it alone: add --follow, or leave it out.")
    for name, value in {"--wait": following.wait, "--budget": following.budget}.items():
        if value is not None and not value > 0:
            raise InputError(f"{name} must be more than 0, found {value}.")
    if following.follow:
        show_stream(source, options.significance, following.budget, following.wait, split(following.labels))
        return
    if wanted.by is not None:
        for other in given(wanted, "by", "json", "plot"):
            raise InputError(f"{other} is of one answer, found --by too: leave one out.")

        request = source.request().with_columns(assigned=assigned or None)
        show_by(request, wanted.by, options, wanted.json, wanted.plot)
        return
    from policyspace.identification import bind, identify_in

    with waiting("testing"):
        request = source.request(backend=wanted.dask).with_columns(assigned=assigned or None)
        result = identify_in(*bind(request), options)
    _show_and_save(result, wanted)


def _show_and_save(result: "Identification", wanted: WantedOptions) -> None:
    """Whatever files were asked for, and the answer on the screen."""
    table = None
    if wanted.coefficients is not None or wanted.calibration is not None:
        table = result.coefficients(wanted.coefficients or "wald")  # type: ignore[arg-type]
    if wanted.plot is not None:
        from policyspace.report.figures import plot_effects

        plot_effects(result, wanted.plot)
    if wanted.curves is not None:
        from policyspace.report.figures import plot_curves

        plot_curves(result, wanted.curves)
    if wanted.subject_plot is not None:
        from policyspace.report.figures import save

        if result.subjects is None:
            raise InputError(
                f"a picture of subjects is of their random weights, found the test '{result.test.name}': name at least 6 "
                "subjects (--subjects), or leave --subject-plot out."
            )
        save(result.subjects.plot(), wanted.subject_plot)
    write_report(result, wanted.report)
    if wanted.calibration is not None and table is not None:
        from policyspace.report.figures import draw_calibration, save

        save(draw_calibration(table), wanted.calibration)
    shown = table if wanted.coefficients is not None else None
    found = result.to_dict() if table is None else result.to_dict() | {"weights": table.to_dict()}
    deliver(
        lambda: json_text(found),
        wanted.json,
        lambda: show(result, shown),
        wanted.plot,
        wanted.curves,
        wanted.calibration,
        wanted.subject_plot,
        wanted.report,
    )


def show(result: "Identification", weights: "CoefficientTable | None" = None) -> None:
    """The answer on the screen: a sentence, the table, what must be read with it."""
    colours = {"used": "green", "controlled": "green", "undecided": "yellow", "no evidence": "dim"}
    styles = [colours[row[1].rstrip(" ✓✗")] for row in result.table().rows]
    screen.show(result, (), styles)
    if weights is not None:
        screen.show_parts("", weights.table(), weights.notes(), weights.table().columns[1:])


# -- `policyspace identify --follow`: a line after every episode.


def show_stream(
    source: SampleOptions, significance: float, budget: int | None, wait: float | None, labels: list[str]
) -> None:
    """Print where each group stands until all is found, the budget is spent, or the file ends."""
    from policyspace.data.request import Request
    from policyspace.identification import bind
    from policyspace.inference.follow import follow

    standing, console, errors = None, new_console(), new_console(stderr=True)
    stream = follow(
        source.file,
        lambda path: source.request(path).sample(),
        lambda data: bind(Request(data, policy=source.spec))[0],
        significance,
        budget,
        wait,
        labels=labels,
        notice=lambda sentence: say(errors, f"Note: {sentence}", style="yellow"),
    )
    for standing in stream:
        say(console, str(standing))
    if standing is None:
        say(console, "No episode is complete yet.")
        return
    found = ", ".join(standing.controlled) or "no group yet"
    why = "every group is found" if standing.decided else "the budget is spent" if budget else "the file has ended"
    say(console, "")
    say(
        console,
        f"Controlled: {found} ({why} after {standing.num_episodes} episodes; chance of any false 'controlled' "
        f"≤ {significance:g}, however often one looks).",
    )


# -- `policyspace identify --by COL`: each subject alone, and all together.


def show_by(request: "Request", by: str, options: "TestOptions", json: str | None, plot: Path | None) -> None:
    """The table on the screen, the picture and the JSON where asked for."""
    from policyspace.identification import identify_each

    found = identify_each(request, by, options)
    if plot is not None:
        from policyspace.report.figures import draw_subjects, save

        save(draw_subjects(found), plot)
    deliver(found.to_json, json, lambda: screen.show(found, ("rows",)), plot)
