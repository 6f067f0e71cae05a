"""`policyspace study`: ask for the next configuration, tell what was seen there, look at what is decided."""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli import options
from policyspace.cli.configure import Attempts, Budget, DesignName, Episodes, PaperRule, Rule, Seed
from policyspace.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from policyspace.study import Request, Status
    from policyspace.study.round_record import RoundRecord

app = typer.Typer(
    name="study",
    help="A study of a real agent in one file: ask for a configuration, observe there, tell, ask again.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

StudyFile = Annotated[Path, typer.Argument(help="The file of the study.", metavar="STUDY.sqlite")]


@app.command()
def create(
    study: StudyFile,
    world: Annotated[
        str,
        typer.Option("--world", help="See `policyspace worlds`, or your own class.", metavar="WORLD|module:Class"),
    ],
    features: Annotated[
        list[str] | None,
        typer.Option("--features", help="Those in question; the others are not tested.", metavar="NAME[,NAME…]"),
    ] = None,
    groups: options.GroupsOption = "feature",
    always: options.Always = None,
    significance: options.Significance = 0.05,
    rule: Rule = "simplified",
    design: DesignName = "d-optimal",
    attempts: Attempts = 3,
    episodes: Episodes = 100,
    budget: Budget = None,
    configuration: Annotated[
        str | None,
        typer.Option(
            "--configuration",
            help="Where the agent is now: the world's ω₀, by default the world's own.",
            metavar="FILE.toml|NAME=VALUE,…",
        ),
    ] = None,
    paper_rule: PaperRule = False,
    test: Annotated[
        str,
        typer.Option(
            "--test",
            help="batches: each alone, at a share of δ. eprocess: all together, after every episode; auto takes it for "
            "networks.",
            metavar="auto|batches|eprocess",
        ),
    ] = "auto",
    seed: Seed = 0,
) -> None:
    """Begin a study in a new file."""
    from policyspace.study import Study
    from policyspace.worlds.configuration_parameters import parse_configuration

    if not study.resolve().parent.is_dir():
        raise InputError(f"{study}: there is no folder '{study.parent}': make it first, or name another.")
    grouping, more = options_groups(groups)
    made = Study.create(
        study,
        world,
        features=None if features is None else options.split(features),
        groups=grouping,
        always=[*options.split(always), *more],
        significance=significance,
        rule=rule,
        design=design,
        attempts=attempts,
        episodes=episodes,
        budget=budget,
        configuration=None if configuration is None else parse_configuration(configuration),
        paper_rule=paper_rule,
        test=test,
        seed=seed,
    )
    settings, console = made.settings, _console()
    _say(console, f"A study of {len(settings['units'])} units in {settings['world_name']}.", style="bold")
    _say(console, _promise(settings), style="dim")
    typer.echo(f"Saved {study}")
    _say(console, f"Next: policyspace study ask {study}", style="dim")


@app.command()
def ask(
    study: StudyFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Write the configuration, for `policyspace simulate --configuration`.", metavar="FILE.toml"
        ),
    ] = None,
    json: options.JsonOut = None,
) -> None:
    """Say where to observe the agent next, why, what that would settle, and for how many episodes.

    The answer stays the same until the next tell.
    """
    from policyspace.study import Study

    if out is not None and out.suffix.lower() != ".toml":
        raise InputError(f"{out}: a configuration is saved as .toml: rename it.")
    for target in (out, None if json in (None, "-") else Path(str(json))):
        if target is not None and not target.resolve().parent.is_dir():
            raise InputError(f"{target}: there is no folder '{target.parent}': make it first, or name another.")
    opened = Study.open(study)
    request = opened.ask()
    if request is None:
        if json is not None:
            options.write_json("null", json)
        if json != "-":
            _say(_console(), f"Nothing is left to ask: {opened.status().finished}.", style="bold")
        return
    if json is not None:
        options.write_json(json_text.dumps(request.to_dict(), indent=1, ensure_ascii=False), json)
    if out is not None:
        options.write_json(_toml(request.configuration), str(out))
    if json != "-":
        _show_request(_console(), opened.settings, request)
        for path in (out, json):
            if path is not None:
                typer.echo(f"Saved {path}")


@app.command()
def tell(
    study: StudyFile,
    file: options.File,
    actions: options.Actions = None,
    features: options.Features = None,
    episodes: options.EpisodeColumn = None,
    weights: options.Weights = None,
    configuration: Annotated[
        str | None,
        typer.Option(
            "--configuration",
            help="Where the file was collected; by default what the file says, else what was asked for last.",
            metavar="FILE.toml|NAME=VALUE,…",
        ),
    ] = None,
) -> None:
    """Test what was observed, and keep it in the study: all of it, or nothing at all."""
    from policyspace.data.readers import read
    from policyspace.study import Study
    from policyspace.worlds.configuration_parameters import parse_configuration

    opened = Study.open(study)
    columns = options.split(actions)
    wanted = options.split(features) or (list(opened.world.feature_names) if columns else None)
    data = read(
        file,
        actions=None if not columns else columns[0] if len(columns) == 1 else columns,
        features=wanted,
        episodes=episodes,
        weights=weights,
        discrete=opened.world.action_bounds is None,
    )
    record = opened.tell(data, None if configuration is None else parse_configuration(configuration))
    console, status = _console(), opened.status()
    _show_round(console, status, record)
    done = status.finished
    _say(console, f"Nothing is left to ask: {done}." if done else f"Next: policyspace study ask {study}", style="dim")


@app.command()
def status(
    study: StudyFile,
    json: options.JsonOut = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the rounds (PNG, SVG, PDF or GIF).", metavar="FILE")
    ] = None,
) -> None:
    """Say what is decided, what is open, and how it came about."""
    from policyspace.study import Study

    film = plot is not None and plot.suffix.lower() == ".gif"
    options.check_targets(None if film else plot, json)
    opened = Study.open(study)
    now = opened.status()
    if plot is not None:
        from policyspace.report.rounds_film import film_rounds
        from policyspace.report.rounds_picture import Story, plot_rounds

        truth = None if now.truth is None else tuple(now.truth)
        units = tuple(now.settings["units"])
        story = Story(opened.world.name, tuple(opened.world.parameters), now.rounds, units, truth)
        (film_rounds if film else plot_rounds)(story, plot)
    if json is not None:
        options.write_json(json_text.dumps(now.to_dict(), indent=1, ensure_ascii=False), json)
    if json != "-":
        _show_status(_console(), now)
        for path in (plot, json):
            if path is not None:
                typer.echo(f"Saved {path}")


def options_groups(text: str) -> tuple[Any, tuple[str, ...]]:
    """(groups, always) as other commands read them; a study tests against zero only."""
    grouping, more, fixed = options.read_groups(text)
    if fixed:
        raise InputError(f"{text}: a study tests weights against zero, found [fixed]: leave it out.")
    return grouping, more


def _show_request(console: "Console", settings: dict[str, Any], request: "Request") -> None:
    from policyspace.report.configuration_words import words

    _say(
        console,
        f"Round {request.number + 1} of at most {settings['num_rounds']}: {request.num_episodes} episodes "
        f"({_level(settings, request.significance)})",
        style="bold",
    )
    _say(console, f"Configuration: {words(settings['world_name'], request.configuration)}.")
    for name, value in request.configuration.items():
        _say(console, f"  {name} = {value}", style="dim")
    _say(console, f"Why: {request.why}")
    _say(console, f"What it would settle: {_settles(request)}")
    for warning in request.warnings:
        _say(console, f"Warning: {warning}", style="yellow")


def _settles(request: "Request") -> str:
    """What the forecasts say, most promising first."""
    if not request.forecasts:
        known = "nothing is known yet" if request.design is None else "nothing can be foretold of networks and e-values"
        return f"{known}; {len(request.asked_for)} units are tested."
    shown = sorted((f for f in request.forecasts if f.power >= 0.05), key=lambda f: -f.power)
    said = ", ".join(f"{f.unit} ({_share(f.power)}; 80% from {f.episodes:.0f} episodes)" for f in shown[:8])
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    rest = len(request.forecasts) - len(shown)
    sizes = [f.detectable_effect for f in request.forecasts if f not in shown and f.detectable_effect < 10]
    known = f"if the agent keeps its weights, the chance to show {said}{more}" if shown else ""
    some = "" if len(sizes) == rest else f" for {len(sizes)} of them"
    reach = f", but{some} weights of size {max(sizes):.2g} would show" if sizes else ""
    unknown = f"of {rest} units nothing has been seen so far{reach}" if rest else ""
    return "; ".join(part for part in (known, unknown) if part) + "."


def _share(power: float) -> str:
    return "> 99%" if power > 0.99 else f"{power:.0%}"


def _show_round(console: "Console", status: "Status", record: "RoundRecord") -> None:
    from policyspace.report.configuration_words import words

    before = len(record.undecided) + len(record.fell)
    _say(
        console,
        f"Round {record.number + 1}: {record.num_episodes} episodes, {before} units "
        f"{_level(status.settings, record.significance)}",
        style="bold",
    )
    _say(console, f"  {words(status.settings['world_name'], record.configuration)}")
    if status.sequential:
        for line in _evidence_lines(status, record):
            _say(console, f"  {line}")
    elif record.fell:
        fell = ", ".join(name + _mark(status, name) for name in record.fell)
        _say(console, f"  fell: {fell}", style="green")
    else:
        _say(console, "  nothing fell", style="dim")
    for warning in record.warnings:
        _say(console, f"  Warning: {warning}", style="yellow")


def _show_status(console: "Console", status: "Status") -> None:
    _say(console, status.sentence, style="bold")
    for record, told_at in zip(status.rounds, status.told_at, strict=True):
        _show_round(console, status, record)
        _say(console, f"  told {told_at}", style="dim")
    _say(console, _promise(status.settings), style="dim")
    if status.finished is not None:
        _say(console, f"Nothing is left to ask: {status.finished}.")
    elif status.request is not None:
        _say(console, f"Asked and not yet told: round {status.request.number + 1}.")


def _level(settings: dict[str, Any], significance: float) -> str:
    """At which level a round is tested."""
    if settings.get("test") == "eprocess":
        return f"followed after every episode until E ≥ {1 / significance:.4g}"
    return f"tested at δ = {significance:.3g}"


def _evidence_lines(status: "Status", record: "RoundRecord") -> list[str]:
    """When units were found, in the order in which they were, and how much is known of the others."""
    rows = sorted((row for row in record.tests if row["group"] in record.fell), key=lambda row: row["decided_at"])
    found = [
        f"after episode {row['decided_at']}: {row['group']}{_mark(status, row['group'])} controlled" for row in rows
    ]
    rest = [f"{row['group']} E = {row['e_value']:.2g}" for row in record.tests if row["state"] == "open"]
    return [*found, *([f"open: {', '.join(rest)}"] if rest else [])]


def _promise(settings: dict[str, Any]) -> str:
    """What holds for all rounds together."""
    head = f"{settings['rule']} rule, {settings['design']} design, at most {settings['num_rounds']} rounds"
    if settings.get("test") == "eprocess":
        return (
            f"{head}; E-values of all episodes multiply, so δ is not split over rounds or looks: chance of any false "
            f"'controlled' ever ≤ {settings['significance']:g}."
        )
    if settings["paper_rule"]:
        return f"{head}; every round is tested at δ = {settings['significance']:g}, as in the paper."
    return f"{head}; chance of any false 'controlled' in all of them ≤ {settings['significance']:g}."


def _mark(status: "Status", name: str) -> str:
    """Where the data know the truth, whether the verdict is right."""
    return "" if status.truth is None else " ✓" if name in status.truth else " ✗"


def _toml(configuration: dict[str, Any]) -> str:
    """ω as TOML: names of parameters may hold anything, numbers and lists are written alike in JSON."""
    return "\n".join(f"{json_text.dumps(name)} = {json_text.dumps(value)}" for name, value in configuration.items())


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False)


def _say(console: "Console", text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, soft_wrap=True)
