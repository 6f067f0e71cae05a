"""`policyspace study`: ask for the next configuration, tell what was seen there, see what is decided."""

import json as json_text
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli import options
from policyspace.cli.bundled import bundled
from policyspace.cli.environments import ActorOptions, Env, EnvironmentOptions
from policyspace.cli.rounds import Design, RoundOptions, Seed, level_in_words, show_plan, show_round
from policyspace.cli.running import running, waiting
from policyspace.cli.screen import new_console, say, show_saved
from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.configuration.request import Request
    from policyspace.configuration.schedule import Schedule
    from policyspace.configuration.status import Status

app = typer.Typer(
    name="study",
    help="A study of a real agent in one file: ask for a configuration, observe there, tell, ask again.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

OwnWorld = Annotated[
    str | None,
    typer.Option(
        "--world",
        help="The world of your own that the study was created with: only if it is named here is it imported.",
        metavar="module:Class",
    ),
]
StudyFile = Annotated[Path, typer.Argument(help="The file of the study.", metavar="STUDY.sqlite")]


@app.command()
@running
@bundled
def create(
    study: StudyFile,
    rounds: RoundOptions,
    environment: EnvironmentOptions,
    world: Annotated[
        str | None,
        typer.Option("--world", help="See `policyspace worlds`, or your own class.", metavar="WORLD|module:Class"),
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option("--features", help="Those in question; the others are not tested.", metavar="NAME[,NAME…]"),
    ] = None,
    groups: options.GroupsOption = "feature",
    always: options.Always = None,
    design: Design = None,
    configuration: Annotated[
        str | None,
        typer.Option(
            "--configuration",
            help="Where the agent is now: the world's ω₀, by default the world's own.",
            metavar="FILE.toml|NAME=VALUE,…",
        ),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Begin a study in a new file."""
    from policyspace.study import Study
    from policyspace.worlds.configuration_parameters import parse_configuration

    options.check_targets(None, None, out=study)
    if (world is None) == (environment.env is None):
        raise InputError("a study is about one world: name it with --world, or an environment with --env.")
    grouping, more = _groups_and_always(groups)
    made = Study.create(
        study,
        environment.world() or world,
        features=None if features is None else options.split(features),
        groups=grouping,
        always=[*options.split(always), *more],
        design=design,
        configuration=None if configuration is None else parse_configuration(configuration),
        seed=seed,
        **asdict(rounds),
    )
    schedule, console = made.status().schedule, new_console()
    say(console, f"A study of {len(schedule.units)} units in {made.settings['world_name']}.", style="bold")
    say(console, schedule.promise(made.settings["design"]), style="dim")
    if environment.env is not None:
        for entry in made.world.parameters:
            say(console, f"{entry.name} ({entry.low:g} to {entry.high:g}) {entry.description}.", style="dim")
    if rounds.budget is not None and rounds.attempts is None and schedule.joint and not schedule.sequential:
        show_plan(console, made.world, made.space, rounds.budget)
    show_saved([study])
    say(console, f"Next: policyspace study ask {study}", style="dim")


@app.command()
@running
def plan(
    world: Annotated[
        str,
        typer.Option("--world", help="See `policyspace worlds`, or your own class.", metavar="WORLD|module:Class"),
    ],
    budget: Annotated[int, typer.Option("--budget", help="Episodes of all rounds together.", metavar="N", min=1)],
) -> None:
    """Say how many rounds a budget pays for, how large they are, where the first one is, and why."""
    from policyspace.study.settings import load_world

    place = load_world(world)
    show_plan(new_console(), place, place.policy_space(), budget)


@app.command()
@running
def ask(
    study: StudyFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Write the configuration, for `policyspace simulate --configuration`.", metavar="FILE.toml"
        ),
    ] = None,
    env: Env = None,
    json: options.JsonOut = None,
    world: OwnWorld = None,
) -> None:
    """Say where to observe the agent next, why, what that would settle, and for how many episodes.

    The answer stays the same until the next tell. An environment made by your own function is named again with --env.
    """
    from policyspace.study import Study

    if out is not None and out.suffix.lower() != ".toml":
        raise InputError(f"{out}: a configuration is saved as .toml: rename it.")
    options.check_targets(None, json, [study], out)
    opened = Study.open(study, world, env)
    with waiting("choosing a configuration"):
        request = opened.ask()
    if request is None:
        if json is not None:
            options.write_json("null", json)
        if json != "-":
            say(new_console(), f"Nothing is left to ask: {opened.status().finished}.", style="bold")
        return
    if json is not None:
        options.write_json(json_text.dumps(request.to_dict(), indent=1, ensure_ascii=False), json)
    if out is not None:
        options.write_json(_toml(request.configuration), str(out))
    if json != "-":
        _show_request(opened.settings["world_name"], opened.status().schedule, request)
        show_saved([out, json])


@app.command()
@running
@bundled
def play(study: StudyFile, actor: ActorOptions, env: Env = None) -> None:
    """Let an agent act in the environment as it was asked for, and tell the study: one round."""
    from policyspace.study import Study

    opened = Study.open(study, env=env)
    with waiting("playing"):
        result = opened.play(**actor.actors())
    console, now = new_console(), opened.status()
    if result is not None:
        show_round(console, opened.world.name, now.schedule, result, now.truth)
    done = now.finished
    say(console, f"Nothing is left to ask: {done}." if done else f"Next: policyspace study ask {study}", style="dim")


@app.command()
@running
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
    world: OwnWorld = None,
) -> None:
    """Test what was observed, and keep it in the study: all of it, or nothing at all."""
    from policyspace.data.readers import read
    from policyspace.study import Study
    from policyspace.worlds.configuration_parameters import parse_configuration

    opened = Study.open(study, world)
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
    with waiting("testing"):
        result = opened.tell(data, None if configuration is None else parse_configuration(configuration))
    console, now = new_console(), opened.status()
    show_round(console, opened.world.name, now.schedule, result, now.truth)
    done = now.finished
    say(console, f"Nothing is left to ask: {done}." if done else f"Next: policyspace study ask {study}", style="dim")


@app.command()
@running
def status(
    study: StudyFile,
    json: options.JsonOut = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="Draw the evidence of each unit over the rounds (PNG, SVG or PDF).", metavar="FILE"
        ),
    ] = None,
    rounds: Annotated[
        Path | None,
        typer.Option("--rounds", help="Draw the rounds' configurations (PNG, SVG, PDF or GIF).", metavar="FILE"),
    ] = None,
    report: options.Report = None,
    world: OwnWorld = None,
) -> None:
    """Say what is decided, what is open, and how it came about."""
    from policyspace.study import Study

    film = rounds is not None and rounds.suffix.lower() == ".gif"
    options.check_targets(plot, json, [study], rounds, report)
    options.check_targets(None if film else rounds, None, [study])
    opened = Study.open(study, world)
    now = opened.status()
    if plot is not None:
        from policyspace.report.evidence_rounds import plot_evidence_over_rounds

        plot_evidence_over_rounds(now, plot)
    if rounds is not None:
        from policyspace.report.rounds_film import film_rounds
        from policyspace.report.rounds_picture import Story, plot_rounds

        truth = None if now.truth is None else tuple(now.truth)
        story = Story(opened.world.name, tuple(opened.world.parameters), now.rounds, now.schedule.units, truth)
        with waiting("drawing"):
            (film_rounds if film else plot_rounds)(story, rounds)
    if report is not None:
        options.write_report(opened, report)
    if json is not None:
        options.write_json(json_text.dumps(now.to_dict(), indent=1, ensure_ascii=False), json)
    if json != "-":
        _show_status(now)
        show_saved([plot, rounds, report, json])


def _groups_and_always(text: str) -> tuple[Any, tuple[str, ...]]:
    """(groups, always) as other commands read them; a study tests against zero only."""
    grouping, more, fixed = options.read_groups(text)
    if fixed:
        raise InputError(f"{text}: a study tests weights against zero, found [fixed]: leave it out.")
    return grouping, more


def _show_request(world: str, schedule: "Schedule", request: "Request") -> None:
    from policyspace.report.configuration_words import words

    console = new_console()
    say(
        console,
        f"Round {request.number + 1} of at most {schedule.num_rounds}: {request.num_episodes} episodes "
        f"({level_in_words(schedule, request.number)})",
        style="bold",
    )
    say(console, f"Configuration: {words(world, request.configuration)}.")
    for name, value in request.configuration.items():
        say(console, f"  {name} = {value}", style="dim")
    say(console, f"Why: {request.why}")
    say(console, f"What it would settle: {_settles(request)}")
    for warning in request.warnings:
        say(console, f"Warning: {warning}", style="yellow")


def _settles(request: "Request") -> str:
    """What the forecasts say, most promising first."""
    if not request.forecasts:
        known = "nothing is known yet" if request.design is None else "nothing can be forecast of networks and e-values"
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


def _show_status(status: "Status") -> None:
    console, settings = new_console(), status.settings
    say(console, status.sentence, style="bold")
    for result, moment in zip(status.rounds, status.reported_at, strict=True):
        show_round(console, settings["world_name"], status.schedule, result, status.truth)
        say(console, f"  reported {moment}", style="dim")
    say(console, status.schedule.promise(settings["design"]), style="dim")
    if status.finished is not None:
        say(console, f"Nothing is left to ask: {status.finished}.")
    elif status.request is not None:
        say(console, f"Asked and not yet reported: round {status.request.number + 1}.")


def _toml(configuration: dict[str, Any]) -> str:
    """ω as TOML: names of parameters may hold anything, numbers and lists are written alike in JSON."""
    return "\n".join(f"{json_text.dumps(name)} = {json_text.dumps(value)}" for name, value in configuration.items())
