"""`policyspace identify`: from a file to the answer."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyspace.cli import options
from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.answer import Identification
    from policyspace.data.demonstrations import Demonstrations


def identify(
    file: options.File,
    action: options.Action = None,
    features: options.Features = None,
    episode: options.Episode = None,
    weight: options.Weight = None,
    policy: options.Policy = None,
    covariance: options.Covariance = None,
    rule: Annotated[
        str,
        typer.Option("--rule", help="One test a group, or all supports.", metavar="simplified|combinatorial"),
    ] = "simplified",
    significance: options.Significance = 0.05,
    correction: Annotated[
        str,
        typer.Option(
            "--correction",
            help="Of the simplified rule: Holm, Bonferroni (the paper's) or Benjamini–Hochberg (false discovery rate only).",
            metavar="holm|bonferroni|bh",
        ),
    ] = "holm",
    paper_rule: Annotated[
        bool, typer.Option("--paper-rule", help="The paper's split of δ: δ/d, or δ/2^d for the combinatorial rule.")
    ] = False,
    groups: options.GroupsOption = "feature",
    always: options.Always = None,
    no_intercept: options.NoIntercept = False,
    reference: options.Reference = None,
    test: Annotated[
        str,
        typer.Option(
            "--test",
            help="What decides; by default Wilks' theorem, or universal inference where that fails (networks).",
            metavar="auto|wilks|bootstrap|universal|eprocess|mixture",
        ),
    ] = "auto",
    hidden: Annotated[
        str, typer.Option("--hidden", help="Widths of a network's hidden layers, with commas.", metavar="N[,N…]")
    ] = "8",
    seed: Annotated[int, typer.Option("--seed", help="Of whatever is drawn: splits, simulations.", metavar="N")] = 0,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="After every episode say where each group stands, at error δ whatever the looking."
        ),
    ] = False,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait", help="With --follow: wait for new rows, until none came for so long.", metavar="SECONDS"
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", help="With --follow: stop after so many episodes.", metavar="N")
    ] = None,
    firth: Annotated[bool, typer.Option("--firth", help="Firth's penalised test, finite under separation.")] = False,
    json: options.JsonOut = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Save a picture of the answer (PNG, SVG or PDF).", metavar="FILE")
    ] = None,
) -> None:
    """Say which features or parameters the agent controls, from a file of states and actions.

    A file written by policyspace knows the roles of its columns and needs no options.
    """
    from policyspace.identification import identify as answer

    if seed < 0:
        raise InputError(f"--seed must be 0 or more, found {seed}.")
    options.check_targets(plot, json)
    others = {"--rule": rule != "simplified", "--test": test != "auto", "--paper-rule": paper_rule, "--firth": firth}
    others |= {"--correction": correction != "holm", "--json": json is not None, "--plot": plot is not None}
    _check_follow(follow, wait, budget, [option for option, given in others.items() if given])
    data = options.source(
        file, action, features, episode, weight, policy, covariance, groups, always, no_intercept, reference
    )
    settings = data.settings() | ({"hidden": options.widths(hidden)} if policy == "network" else {})
    if follow:
        from policyspace.cli.follow import show_stream

        def load() -> "Demonstrations":
            return options.source(
                file, action, features, episode, weight, policy, covariance, groups, always, no_intercept, reference
            ).demonstrations

        show_stream(file, load, settings, significance, budget, wait)
        return
    result = answer(
        data.demonstrations,
        test=test,  # type: ignore[arg-type]
        seed=seed,
        rule=rule,  # type: ignore[arg-type]
        significance=significance,
        correction=correction,  # type: ignore[arg-type]
        paper_rule=paper_rule,
        firth=firth,
        **settings,
    )
    if plot is not None:
        from policyspace.report.evidence import plot_evidence

        plot_evidence(result, plot)
    if json is not None:
        options.write_json(result.to_json(), json)
    if json != "-":
        show(result)
        for path in [plot, json]:
            if path is not None:
                typer.echo(f"Saved {path}")


def _check_follow(follow: bool, wait: float | None, budget: int | None, others: list[str]) -> None:
    """What following a file takes, and what only a whole file does: nothing that was asked for is left out silently."""
    if follow and others:
        raise InputError(f"--follow has a test of its own and prints as it goes, found {others[0]} too: leave one out.")
    for option, value in {"--wait": wait, "--budget": budget}.items():
        if value is not None and not follow:
            raise InputError(f"{option} belongs to --follow, found it alone: add --follow, or leave it out.")
        if value is not None and not value > 0:
            raise InputError(f"{option} must be more than 0, found {value}.")


def show(result: "Identification") -> None:
    """The answer on the screen: a sentence, the table, what must be read with it."""
    from policyspace.cli import screen

    colours = {"controlled": "green", "undecided": "yellow", "no evidence": "dim"}
    styles = [colours[test.verdict] for test in result.tests]
    screen.show(result.sentence, result.table(), result.notes(), ("λ", "df", "p", "adjusted p"), styles)
