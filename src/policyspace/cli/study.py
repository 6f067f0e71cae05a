"""`policyspace study`: ask for the next configuration, tell what was seen there, see what is decided."""

import json as json_text
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli.bundled import option
from policyspace.cli.environments import ActorOptions, Env, EnvironmentOptions
from policyspace.cli.options import Always, Groups, LogOptions, Names, Text
from policyspace.cli.rounds import DesignOptions, RoundOptions, show_plan, show_round
from policyspace.cli.running import running, waiting
from policyspace.cli.saving import JsonOut, Report, check_targets, deliver, write_json, write_report
from policyspace.cli.screen import new_console, say, show_saved
from policyspace.cli.study_words import nothing_left, show_request, show_status
from policyspace.cli.typed_values import read_groups, split
from policyspace.errors import InputError
from policyspace.printable import number_of

if TYPE_CHECKING:
    from policyspace.configuration.round import Round
    from policyspace.study import Study

app = typer.Typer(
    name="study",
    help="A study of a real agent in one file: ask for a configuration, observe there, tell, ask again.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

OwnWorld = Annotated[
    Text,
    typer.Option(
        "--world",
        help="The world of your own that the study was created with: only if it is named here is it imported.",
        metavar="module:Class",
    ),
]
StudyFile = Annotated[Path, typer.Argument(help="The file of the study.", metavar="STUDY.sqlite")]


@dataclass(frozen=True)
class AgendaOptions:
    """Which world, which units, and where the agent is now."""

    world: Text = option(None, "See `policyspace worlds`, or your own class.", "WORLD|module:Class")
    features: Names = option(None, "Those in question; the others are not tested.", "NAME[,NAME…]")
    groups: Groups = "feature"
    always: Always = None
    configuration: Text = option(
        None, "Where the agent is now: the world's ω₀, by default the world's own.", "FILE.toml|NAME=VALUE,…"
    )


@app.command()
@running
def create(
    study: StudyFile,
    rounds: RoundOptions,
    environment: EnvironmentOptions,
    agenda: AgendaOptions,
    designing: DesignOptions,
) -> None:
    """Begin a study in a new file."""
    check_targets(out=study)
    made = _created(study, rounds, environment, agenda, designing)
    schedule, console = made.status().schedule, new_console()
    units = number_of(len(schedule.units), "unit")
    say(console, f"A study of {units} in {made.settings['world_name']}.", style="bold")
    say(console, schedule.promise(made.settings["design"]), style="dim")
    if environment.env is not None:
        for entry in made.world.parameters:
            say(console, f"{entry.name} ({entry.low:g} to {entry.high:g}) {entry.description}.", style="dim")
    if rounds.budget is not None and rounds.attempts is None and schedule.joint:
        show_plan(console, made.world, made.space, schedule, made.settings["initial"])
    show_saved([study])
    say(console, _next(study, made), style="dim")


@app.command()
@running
def plan(
    rounds: RoundOptions, environment: EnvironmentOptions, agenda: AgendaOptions, designing: DesignOptions
) -> None:
    """Say how many rounds a budget pays for, how large they are, where the first one is, and why: as `create` would."""
    from policyspace.configuration.plan import in_words, sizes_of

    if rounds.budget is None:
        raise InputError("a plan shares out a budget, found none: name it with --budget.")
    with waiting("planning"), TemporaryDirectory() as folder:
        made = _created(Path(folder) / "plan.sqlite", rounds, environment, agenda, designing)
        schedule, console = made.status().schedule, new_console()
    if rounds.attempts is None and schedule.joint:
        show_plan(console, made.world, made.space, schedule, made.settings["initial"])
        return
    sizes, most = sizes_of(schedule), "" if schedule.joint else "at most "
    say(console, f"Plan for {most}{number_of(sum(sizes), 'episode')}: {most}{in_words(sizes)}.")
    say(console, schedule.promise(made.settings["design"]), style="dim")


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
    json: JsonOut = None,
    world: OwnWorld = None,
) -> None:
    """Say where to observe the agent next, why, what that would settle, and for how many episodes.

    The answer stays the same until the next tell. An environment made by your own function is named again with --env.
    """
    from policyspace.study import Study

    if out is not None and out.suffix.lower() != ".toml":
        raise InputError(f"{out}: a configuration is saved as .toml: rename it.")
    check_targets(json=json, inputs=[study], out=out)
    opened = Study.open(study, world, env)
    with waiting("choosing a configuration"):
        request = opened.ask()
    if request is None:
        deliver(lambda: "null", json, lambda: say(new_console(), nothing_left(opened.status()), style="bold"))
        return
    if out is not None:
        write_json(_toml(request.configuration), str(out))
    deliver(
        lambda: _json(request.to_dict()),
        json,
        lambda: show_request(opened.settings["world_name"], opened.status().schedule, request),
        out,
    )


@app.command()
@running
def play(study: StudyFile, actor: ActorOptions, env: Env = None) -> None:
    """Let an agent act in the environment as it was asked for, and tell the study: one round."""
    from policyspace.study import Study

    opened = Study.open(study, env=env)
    with waiting("playing"):
        result = opened.play(**actor.actors())
    _show_told(study, opened, result)


@app.command()
@running
def tell(
    study: StudyFile,
    log: LogOptions,
    configuration: Annotated[
        Text,
        typer.Option(
            "--configuration",
            help="Where the file was collected; by default what the file says, else what was asked for last.",
            metavar="FILE.toml|NAME=VALUE,…",
        ),
    ] = None,
    world: OwnWorld = None,
) -> None:
    """Test what was observed, and keep it in the study: all of it, or nothing at all."""
    from policyspace.study import Study
    from policyspace.worlds.configuration_parameters import parse_configuration

    opened = Study.open(study, world)
    with waiting("testing"):
        result = opened.tell(
            log.file,
            None if configuration is None else parse_configuration(configuration),
            actions=log.action_columns,
            features=split(log.features) or None,
            episodes=log.episodes,
            weights=log.weights,
            missing=log.missing,  # type: ignore[arg-type]  # any text, which is checked there
        )
    _show_told(study, opened, result)


@app.command()
@running
def status(
    study: StudyFile,
    json: JsonOut = None,
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
    report: Report = None,
    world: OwnWorld = None,
) -> None:
    """Say what is decided, what is open, and how it came about."""
    from policyspace.study import Study

    film = rounds is not None and rounds.suffix.lower() == ".gif"
    check_targets([plot, None if film else rounds], json, [study], rounds if film else None, report)
    opened = Study.open(study, world)
    now = opened.status()
    if plot is not None:
        from policyspace.report.evidence_rounds import draw_evidence_over_rounds
        from policyspace.report.style import save

        save(draw_evidence_over_rounds(now), plot)
    if rounds is not None:
        from policyspace.report.rounds_film import film_rounds
        from policyspace.report.rounds_picture import Story, draw_rounds
        from policyspace.report.style import save

        story = Story.of(opened.world, now.rounds, now.schedule.units, now.truth)
        with waiting("drawing"):
            if film:
                film_rounds(story, rounds)
            else:
                save(draw_rounds(story), rounds)
    write_report(opened, report)
    deliver(lambda: _json(now.to_dict()), json, lambda: show_status(now), plot, rounds, report)


def _created(
    path: Path, rounds: RoundOptions, environment: EnvironmentOptions, agenda: AgendaOptions, designing: DesignOptions
) -> "Study":
    """A new study as the options say."""
    from policyspace.study import Study
    from policyspace.worlds.configuration_parameters import parse_configuration

    _check_one_world(agenda.world, environment)
    groups, more, fixed = read_groups(agenda.groups)
    if fixed:
        raise InputError(f"{agenda.groups}: a study tests weights against zero, found [fixed]: leave it out.")
    return Study.create(
        path,
        environment.world() or agenda.world,
        features=None if agenda.features is None else split(agenda.features),
        groups=groups,
        always=[*split(agenda.always), *more],
        configuration=None if agenda.configuration is None else parse_configuration(agenda.configuration),
        **asdict(designing),
        **asdict(rounds),
    )


def _check_one_world(world: str | None, environment: EnvironmentOptions) -> None:
    if (world is None) == (environment.env is None):
        raise InputError("a study is about one world: name it with --world, or an environment with --env.")


def _show_told(study: Path, opened: "Study", result: "Round | None") -> None:
    """The round that was told, and what to do next."""
    console, now = new_console(), opened.status()
    if result is not None:
        show_round(console, opened.world.name, now.schedule, result, now.truth, opened.settings["initial"])
    say(console, nothing_left(now) if now.finished else _next(study, opened), style="dim")


def _next(study: Path, opened: "Study") -> str:
    """The command that asks, with what a file may not import by itself."""
    about, own = ("world", opened.settings["world"]) if opened.settings["world"] else ("env", opened.world.name)
    named = f" --{about} {shlex.quote(own)}" if ":" in own else ""
    return f"Next: policyspace study ask {shlex.quote(str(study))}{named}"


def _json(content: dict[str, Any]) -> str:
    return json_text.dumps(content, indent=1, ensure_ascii=False)


def _toml(configuration: dict[str, Any]) -> str:
    """ω as TOML: names of parameters may hold anything, numbers and lists are written alike in JSON."""
    return "\n".join(f"{json_text.dumps(name)} = {json_text.dumps(value)}" for name, value in configuration.items())
