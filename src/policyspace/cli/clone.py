"""`policyspace clone`: a policy inside the identified space, from a log."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from policyspace.cli.console import (
    JsonOut,
    Report,
    check_suffix,
    check_targets,
    deliver,
    running,
    show,
    waiting,
    write_report,
)
from policyspace.cli.options import SampleOptions, Text, option, split
from policyspace.errors import InputError
from policyspace.runtime import check_seed

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="What the agent uses: an answer saved by --json, a study, or names; by default this log is identified.",
        metavar="ANSWER.json|STUDY.sqlite|NAME[,NAME…]",
        show_default=False,
    ),
]


def opened_study(path: str) -> Any:
    """The study in a file."""
    from policyspace.study.study import Study

    return Study.open(path)


def space_from(text: str | None) -> Any:
    """An identified space from what was typed: a file of an answer or of a study, or names."""
    from policyspace.identified import IdentifiedSpace

    if text is None:
        return None
    suffix = Path(text).suffix.lower()
    if suffix == ".json":
        return IdentifiedSpace.of(text)
    if suffix in (".sqlite", ".db"):
        return IdentifiedSpace.of(opened_study(text))
    names = split([text])
    if not names:
        raise InputError("--from must be a saved answer, a study or names, found nothing: leave it out.")
    return IdentifiedSpace((tuple(names),))


@dataclass(frozen=True)
class CloningOptions:
    """How it is cloned."""

    answer: From = None
    everything: bool = option(
        False, "Clone with all features instead of the identified ones.", None, "--all-features", show_default=False
    )
    undecided: str = option(
        "auto",
        "Features without evidence: drop them, shrink them (under a larger penalty), or as held-out episodes say.",
        "auto|shrink|drop",
    )
    penalty: float | None = option(
        None, "Of squared weights of standardised features; by default chosen by held-out episodes.", "X"
    )
    folds: int = option(5, "Into how many parts episodes are divided.", "N", min=2)
    compare: bool = option(True, "Compare with other ways on held-out episodes.", None, "--compare/--no-compare")
    seed: int = option(0, "Same seed, same clone.", "S", min=0)


@dataclass(frozen=True)
class ClonedFiles:
    """Where the clone and what is said of it are saved."""

    out: Path | None = option(None, "Save the clone.", "FILE.npz|FILE.safetensors")
    onnx: Path | None = option(None, "Save it as an ONNX model, too; needs the extra 'onnx'.", "FILE.onnx")
    json: JsonOut = None
    plot: Path | None = option(None, "Save a picture of the held-out losses (PNG, SVG or PDF).", "FILE")
    report: Report = None


@running
def clone(source: SampleOptions, how: CloningOptions, wanted: ClonedFiles) -> None:
    """Clone the agent of a log: a policy inside the space that it was identified to have.

    The clone acts like an agent of stable-baselines3; `policyspace watch` and `policyspace ask` take its file.
    """
    from policyspace.cloning import FILES, clone_of

    check_seed(how.seed)
    said: Text = how.answer
    if said is not None and how.everything:
        raise InputError("--from names features and --all-features takes all, found both: leave one out.")
    if wanted.out is not None:
        check_suffix(wanted.out, FILES)
    if wanted.onnx is not None:
        check_suffix(wanted.onnx, (".onnx",))
    check_targets([wanted.plot], wanted.json, (*source.inputs, said), wanted.out, wanted.report)
    with waiting("cloning"):
        answer = "all" if how.everything else space_from(said)
        undecided: Any = how.undecided  # any text, which is checked there
        made = clone_of(source.request(), answer, how.penalty, how.folds, how.compare, how.seed, undecided)
    if wanted.out is not None:
        made.save(wanted.out)
    if wanted.onnx is not None:
        made.to_onnx(wanted.onnx)
    if wanted.plot is not None:
        if not made.losses:
            raise InputError("--plot draws what was compared, found --no-compare: leave one out.")
        from policyspace.report.use_pages import plot_losses

        plot_losses(made, wanted.plot)
    write_report(made, wanted.report)
    deliver(
        made.to_json,
        wanted.json,
        lambda: show(made, made.table().columns[1:]),
        wanted.plot,
        wanted.report,
        wanted.onnx,
        wanted.out,
    )
