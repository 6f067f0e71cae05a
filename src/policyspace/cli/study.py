"""`policyspace study`: create, ask, tell, act, status."""

import json as json_text
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from policyspace.cli.configure import DesignOptions, RoundOptions, level_in_words, show_plan, show_round
from policyspace.cli.console import (
    JsonOut,
    LaidOut,
    Report,
    check_targets,
    deliver,
    new_console,
    running,
    say,
    show_help,
    show_saved,
    waiting,
    write_json,
    write_report,
)
from policyspace.cli.options import Assume, Groups, LogOptions, Names, Text, option, read_groups, split
from policyspace.cli.worlds import ActorOptions, Env, EnvironmentOptions
from policyspace.errors import InputError, number_of
from policyspace.runtime import known_world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policyspace.safe_io import JSON
    from policyspace.study.records import Round, RoundPlan, Schedule, Status
    from policyspace.study.study import Study


# -- What a study asks for, and where it stands, in words.


def nothing_left(status: "Status") -> str:
    """Why the study is at its end."""
    return f"Nothing is left to ask: {status.finished}."


def show_request(world: str, schedule: "Schedule", request: "RoundPlan") -> None:
    """Where to observe the agent next, why, and what that would settle."""
    from policyspace.study.figures import configuration_in_words

    console = new_console()
    say(
        console,
        f"Round {request.number + 1} of at most {schedule.num_rounds}: {number_of(request.num_episodes, 'episode')} "
        f"({level_in_words(schedule, request.number)})",
        style="bold",
    )
    say(console, f"Configuration: {configuration_in_words(world, request.configuration)}.")
    for name, value in request.configuration.items():
        say(console, f"  {name} = {value}", style="dim")
    say(console, f"Why: {request.why}")
    say(console, f"What it would settle: {_settles(request)}")
    for warning in request.warnings:
        say(console, f"Warning: {warning}", style="yellow")


def _settles(request: "RoundPlan") -> str:
    """What the forecasts say, most promising first."""
    if not request.forecasts:
        known = "nothing is known yet" if request.design is None else "nothing can be forecast of networks and e-values"
        count = len(request.asked_for)
        return f"{known}; {number_of(count, 'group')} {'is' if count == 1 else 'are'} tested."
    shown = sorted((f for f in request.forecasts if f.power >= 0.05), key=lambda f: -f.power)
    chances = ["> 99%" if f.power > 0.99 else f"{f.power:.0%}" for f in shown[:8]]
    said = ", ".join(
        f"{f.unit} ({chance}; 80% from {f.episodes:.0f} episodes)" for f, chance in zip(shown, chances, strict=False)
    )
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    rest = len(request.forecasts) - len(shown)
    sizes = [f.detectable_effect for f in request.forecasts if f not in shown and f.detectable_effect < 10]
    known = f"if the agent keeps its weights, the chance to show {said}{more}" if shown else ""
    some = "" if len(sizes) == rest else f" for {len(sizes)} of them"
    reach = f", but{some} weights of size {max(sizes):.2g} would show" if sizes else ""
    unknown = f"of {number_of(rest, 'group')} nothing has been seen so far{reach}" if rest else ""
    return "; ".join(part for part in (known, unknown) if part) + "."


def show_status(status: "Status") -> None:
    """What is decided, round by round, and what is open."""
    console, settings = new_console(), status.settings
    say(console, status.sentence, style="bold")
    for result, moment in zip(status.rounds, status.reported_at, strict=True):
        show_round(console, settings["world_name"], status.schedule, result, status.truth, settings["initial"])
        say(console, f"  reported {moment}", style="dim")
    say(console, status.schedule.guarantee(settings["design"]), style="dim")
    if status.finished is not None:
        say(console, nothing_left(status))
    elif status.request is not None:
        say(console, f"Asked and not yet reported: round {status.request.number + 1}.")


# -- `policyspace study`: ask for the next configuration, tell what was seen there, see what is decided.

app = typer.Typer(
    name="study",
    help="A study of a real agent in one file: ask for a configuration, observe there, tell, ask again.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _alone(context: typer.Context) -> None:
    """A study of a real agent in one file: ask for a configuration, observe there, tell, ask again."""
    if context.invoked_subcommand is None:
        show_help(context)


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
    assume: Assume = None
    configuration: Text = option(
        None, "Where the agent is now: the world's ω₀, by default the world's own.", "FILE.toml|NAME=VALUE,…"
    )


@app.command(cls=LaidOut)
@running
def create(
    study: StudyFile,
    rounds: RoundOptions,
    environment: EnvironmentOptions,
    agenda: AgendaOptions,
    designing: DesignOptions,
) -> None:
    """Begin a study in a new file."""
    if agenda.world is not None:
        known_world(agenda.world, or_class=True)
    check_targets(out=study)
    made = _created(study, rounds, environment, agenda, designing)
    schedule, console = made.status().schedule, new_console()
    units = number_of(len(schedule.units), "group")
    say(console, f"A study of {units} in {made.settings['world_name']}.", style="bold")
    say(console, schedule.guarantee(made.settings["design"]), style="dim")
    if environment.env is not None:
        for entry in made.world.parameters:
            say(console, f"{entry.name} ({entry.low:g} to {entry.high:g}) {entry.description}.", style="dim")
    if rounds.budget is not None and rounds.max_rounds is None and schedule.joint:
        show_plan(console, made.world, made.space, schedule, made.settings["initial"])
    show_saved([study])
    say(console, _next(study, made), style="dim")


@app.command(cls=LaidOut)
@running
def plan(
    rounds: RoundOptions, environment: EnvironmentOptions, agenda: AgendaOptions, designing: DesignOptions
) -> None:
    """Say how many rounds a budget pays for, how large they are, where the first one is, and why: as `create` would."""
    from policyspace.study.forecast import in_words, sizes_of

    if rounds.budget is None:
        raise InputError("a plan shares out a budget, found none: name it with --budget.")
    with waiting("planning"), TemporaryDirectory() as folder:
        made = _created(Path(folder) / "plan.sqlite", rounds, environment, agenda, designing)
        schedule, console = made.status().schedule, new_console()
    if rounds.max_rounds is None and schedule.joint:
        show_plan(console, made.world, made.space, schedule, made.settings["initial"])
        return
    sizes, most = sizes_of(schedule), "" if schedule.joint else "at most "
    say(console, f"Plan for {most}{number_of(sum(sizes), 'episode')}: {most}{in_words(sizes)}.")
    say(console, schedule.guarantee(made.settings["design"]), style="dim")


@app.command(cls=LaidOut)
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
    design: Annotated[
        Text,
        typer.Option(
            "--design",
            help="Choose this round otherwise than the study does; decision: what most lowers the regret of choosing a "
            "configuration for the agent.",
            metavar="decision|d-optimal|…",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance", help="With decision: a loss of return that does not matter.", metavar="X"),
    ] = None,
    learn: Annotated[
        Text,
        typer.Option("--learn", help="With decision in an environment: your learn(env).", metavar="module:function"),
    ] = None,
) -> None:
    """Say where to observe the agent next, why, what that would settle, and for how many episodes.

    The answer stays the same until the next tell. An environment made by your own function is named again with --env.
    """
    from policyspace.study.study import Study

    if out is not None and out.suffix.lower() != ".toml":
        raise InputError(f"{out}: a configuration is saved as .toml: rename it.")
    check_targets(json=json, inputs=[study], out=out)
    from policyspace.environments.checks import imported

    opened = Study.open(study, world, env)
    with waiting("choosing a configuration"):
        request = opened.ask(design, tolerance, None if learn is None else imported(learn, "what learns"))
    if request is None:
        deliver(lambda: "null", json, lambda: say(new_console(), nothing_left(opened.status()), style="bold"))
        return
    if out is not None:
        # As TOML: names of parameters may hold anything; numbers and lists are written as in JSON.
        lines = (f"{json_text.dumps(name)} = {json_text.dumps(value)}" for name, value in request.configuration.items())
        write_json("\n".join(lines), str(out))
    deliver(
        lambda: _json(request.to_dict()),
        json,
        lambda: show_request(opened.settings["world_name"], opened.status().schedule, request),
        out,
    )


@app.command(cls=LaidOut)
@running
def play(
    study: StudyFile,
    actor: ActorOptions,
    env: Env = None,
    randomise: Annotated[
        bool,
        typer.Option(
            "--randomise",
            help="Draw what the agent reads at random now and then, and test the round by the draws: exactly.",
        ),
    ] = False,
) -> None:
    """Let an agent act in the environment as it was asked for, and tell the study: one round."""
    from policyspace.study.study import Study

    opened = Study.open(study, env=env)
    with waiting("playing"):
        result = opened.play(*actor.actors(), randomise)
    _show_told(study, opened, result)


@app.command(cls=LaidOut)
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
    from policyspace.study.study import Study
    from policyspace.worlds.base import parse_configuration

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


@app.command(cls=LaidOut)
@running
def status(
    study: StudyFile,
    json: JsonOut = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="Draw the evidence of each group over the rounds (PNG, SVG or PDF).", metavar="FILE"
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
    from policyspace.study.study import Study

    film = rounds is not None and rounds.suffix.lower() == ".gif"
    check_targets([plot, None if film else rounds], json, [study], rounds if film else None, report)
    opened = Study.open(study, world)
    now = opened.status()
    if plot is not None:
        from policyspace.report.figures import save
        from policyspace.study.figures import draw_evidence_over_rounds

        save(draw_evidence_over_rounds(now), plot)
    if rounds is not None:
        from policyspace.report.figures import save
        from policyspace.study.page import ExampleRun, draw_rounds, film_rounds

        story = ExampleRun.of(opened.world, now.rounds, now.schedule.units, now.truth)
        with waiting("drawing"):
            if film:
                film_rounds(story, rounds)
            else:
                save(draw_rounds(story), rounds)
    write_report(opened, report)
    deliver(lambda: _json(now.to_dict()), json, lambda: show_status(now), plot, rounds, report)


@app.command(cls=LaidOut)
@running
def verify(study: StudyFile) -> None:
    """Check that all that is kept is what was written: a changed byte is an error, which names the round."""
    from policyspace.study.store import SQLiteStore

    store = SQLiteStore.open(study)
    count = len(store.rounds())
    for number in range(count):
        store.data(number)
    console, seal = new_console(), store.verify()
    if seal is None:
        say(
            console,
            f"The data of {number_of(count, 'round')} are as they were reported; the file is older than seals of all else.",
        )
        return
    say(
        console,
        f"The settings, what was asked, and {number_of(count, 'round')} with their data are as they were written.",
    )
    say(console, f"Last seal: {seal}", style="dim")


def _created(
    path: Path, rounds: RoundOptions, environment: EnvironmentOptions, agenda: AgendaOptions, designing: DesignOptions
) -> "Study":
    """A new study as the options say."""
    from policyspace.study.study import Study
    from policyspace.worlds.base import parse_configuration

    if (agenda.world is None) == (environment.env is None):
        raise InputError("a study is about one world: name it with --world, or an environment with --env.")
    groups, more, fixed = read_groups(agenda.groups)
    if fixed:
        raise InputError(f"{agenda.groups}: a study tests weights against zero, found [fixed]: leave it out.")
    return Study.create(
        path,
        environment.world() or agenda.world,
        features=None if agenda.features is None else split(agenda.features),
        groups=groups,
        assume=[*split(agenda.assume), *more],
        configuration=None if agenda.configuration is None else parse_configuration(agenda.configuration),
        **asdict(designing),
        **asdict(rounds),
    )


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


def _json(content: "Mapping[str, JSON]") -> str:
    return json_text.dumps(content, indent=1, ensure_ascii=False)
