"""`policyspace configure`: the loop closed with a simulated agent that learns anew in every configuration."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli.bundled import given, option
from policyspace.cli.controls import controls_of, owned_in_words
from policyspace.cli.environments import ActorOptions, EnvironmentOptions
from policyspace.cli.options import Text
from policyspace.cli.rounds import DesignOptions, RoundOptions, show_plan, show_round
from policyspace.cli.running import one_by_one, running, waiting
from policyspace.cli.saving import Report, check_targets, write_json, write_report
from policyspace.cli.screen import new_console, say, show_saved
from policyspace.data.limits import check_seed
from policyspace.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from policyspace.configuration.round import Round
    from policyspace.configuration.schedule import Schedule
    from policyspace.worlds.configurable import Configurable
    from policyspace.worlds.confmdp import ConfMDP


@dataclass(frozen=True)
class SimulatedAgent:
    """The agent of a world of ours."""

    controls: Text = option(
        None, "What the agent of a WORLD perceives and controls; by default random.", "NAME,…|random|all|none"
    )
    learning_steps: int | None = option(None, "Of the agent in every round; by default what the world needs.", min=0)


@dataclass(frozen=True)
class WorldOptions:
    """The world, and where it begins."""

    world: Annotated[
        Text,
        typer.Argument(
            help="The world: see `policyspace worlds`, or your own module:Class.", metavar="[WORLD]", show_default=False
        ),
    ] = None
    configuration: Text = option(
        None,
        "Where to begin, ω₀. By default random, or as the environment is; with --budget flat, if the world can be.",
        "FILE.toml|NAME=VALUE,…|random",
        show_default=False,
    )


@running
def configure(
    rounds: RoundOptions,
    simulated: SimulatedAgent,
    environment: EnvironmentOptions,
    actor: ActorOptions,
    beginning: WorldOptions,
    designing: DesignOptions,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for rounds.json, rounds.png, .svg and .gif.", metavar="DIR")
    ] = None,
    report: Report = None,
) -> None:
    """Configure a world, round by round, until what a simulated agent controls has shown.

    Every round: a configuration, an agent that learns in it, its episodes, the tests, and what is newly selected. With
    --env the world is a Gymnasium environment, and the agent your own.
    """
    from policyspace.configuration.loop import ConfiguredRun
    from policyspace.configuration.plan import schedule_for
    from policyspace.configuration.round import plain
    from policyspace.policies.jax_setup import jax
    from policyspace.study.settings import default_design, design_for, load_world

    world, seed = beginning.world, designing.seed
    check_seed(seed)
    _check_one_world(world, environment, actor, simulated)
    playable = environment.world()
    place: Any = playable or load_world(str(world))
    design = designing.design or default_design(place)
    space, method = place.policy_space(), design_for(design, place)
    schedule = schedule_for(place, space, method.joint, **asdict(rounds))
    keys = jax.random.split(jax.random.key(seed), 3)
    console = new_console()
    planned = rounds.budget is not None and rounds.attempts is None and method.joint
    start = _configuration(place, beginning.configuration, planned, keys[1])
    if playable is not None:
        observe, truth = playable.observe(**actor.actors()), None
    else:
        owned = controls_of(place, simulated.controls or "random", keys[0])
        truth = _truth(place, space, owned)
        observe = _observer(place, space, owned, simulated.learning_steps)
    settings = {"world": world or place.name, "seed": seed, "design": design, "initial": plain(start)}
    _check_saving(out, report, beginning.configuration)
    diary = Diary(place, schedule, settings, truth, console, out)
    diary.begin()
    if planned:
        show_plan(diary.console, place, space, schedule, start)
    run = ConfiguredRun(place, space, method, start, schedule, observe, keys[2], truth)
    try:
        for result in one_by_one(run, "choosing a configuration"):
            diary.enter(result)
    finally:
        diary.end()  # Ctrl-C as well: what was finished is kept, and drawn.
        write_report(run, report)
        show_saved([report])


@dataclass
class Diary:
    """The rounds as they happen: on the screen, and in files that are whole after every round."""

    world: "Configurable"
    schedule: "Schedule"
    settings: dict[str, Any]
    truth: list[str] | None  # of a simulated agent
    console: "Console"
    folder: Path | None
    rounds: list["Round"] = field(default_factory=list)

    def begin(self) -> None:
        """Who is observed, and what is promised."""
        owned = None if self.truth is None else owned_in_words(self.world.policy_space(), self.truth)
        known = "" if owned is None else f" that controls {owned}"
        say(self.console, f"An agent in {self.world.name}{known}.", style="bold")
        say(self.console, self.schedule.promise(self.settings["design"]), style="dim")

    def enter(self, result: "Round") -> None:
        """One round: on the screen, and the file replaced by one that has it."""
        self.rounds.append(result)
        show_round(self.console, self.world.name, self.schedule, result, self.truth, self.settings["initial"])
        if self.folder is None:
            return
        names = ("rule", "significance", "paper_rule", "num_rounds", "budget", "test")
        content = {
            "world": self.world.name,
            "truth": self.truth,
            "settings": self.settings | {name: getattr(self.schedule, name) for name in names},
            "rounds": [entered.to_dict() for entered in self.rounds],
        }
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        write_json(text, str(targets(self.folder)[0]))

    def end(self) -> None:
        """The answer against the truth, and the pictures."""
        if not self.rounds:
            return
        from policyspace.report.rounds_film import film_rounds
        from policyspace.report.rounds_picture import Story, draw_rounds
        from policyspace.report.style import save

        last, world = self.rounds[-1], self.world
        story = Story.of(world, self.rounds, self.schedule.units, self.truth)
        say(self.console, "")
        say(self.console, f"After {last.total_episodes} episodes: {story.verdict}.", style="bold")
        missed = [name for name in self.truth or () if name in last.undecided]
        if missed:
            say(self.console, f"Not shown: {', '.join(missed)}.")
        if self.folder is None:
            return
        _, *pictures, film = paths = targets(self.folder)
        with waiting("drawing"):
            for path in pictures:
                save(draw_rounds(story), path)
            film_rounds(story, film)
        show_saved(paths)


def _check_one_world(
    world: str | None, environment: EnvironmentOptions, actor: ActorOptions, simulated: SimulatedAgent
) -> None:
    """A world of ours has simulated agents, an environment has the user's."""
    if (world is None) == (environment.env is None):
        raise InputError("one world is configured: name it, or an environment with --env.")
    if world is not None and given(actor):
        raise InputError(
            "--agent, --algorithm and --learn are of those who act in an environment, found a world: name an environment "
            "with --env."
        )
    if world is None and given(simulated):
        raise InputError("--controls and --learning-steps are of simulated agents, found --env: leave them out.")


def _truth(world: "ConfMDP", space: Any, owned: tuple[str, ...]) -> list[str]:
    """The features that an agent controls."""
    from policyspace.worlds.agents import support_of

    return [name for name in space.named(support_of(space, owned)) if name in world.feature_names]


def _configuration(world: Any, given: str | None, planned: bool, key: Any) -> Any:
    """ω₀: what is given; else flat where the rounds are planned and the world can be; else random, or as it is."""
    from policyspace.worlds.configuration_parameters import parse_configuration
    from policyspace.worlds.confmdp import ConfMDP

    ours = isinstance(world, ConfMDP)
    flat = world.flat_configuration() if planned and given is None else None
    if flat is not None:
        return flat
    if given == "random" or (given is None and ours):
        return world.random_configuration(key) if ours else world.uniform_configuration(key)
    return world.check_configuration({} if given is None else parse_configuration(given))


def _check_saving(out: Path | None, report: Path | None, configuration: str | None) -> None:
    """Make the folder of the results, and say before the work if they could not be saved there."""
    from policyspace.data import whole_file

    check_targets(report=report)
    if out is not None:
        whole_file.check_targets(targets(whole_file.made_folder(out)), [configuration])


def targets(folder: Path) -> list[Path]:
    """The rounds as data, as pictures and as a film."""
    return [folder / f"rounds.{suffix}" for suffix in ("json", "png", "svg", "gif")]


def _observer(
    world: "ConfMDP", space: Any, controls: tuple[str, ...], steps: int | None
) -> Callable[[Any, Any, int], Any]:
    """How the agent is observed: it learns from scratch at ω, and is observed there."""
    from policyspace.policies.jax_setup import jax
    from policyspace.worlds.agents import learn

    def observe(key: Any, omega: Any, num_episodes: int) -> Any:
        learning, acting = jax.random.split(key)
        return learn(world, space, controls, omega, learning, num_steps=steps).act(world, omega, acting, num_episodes)

    return observe
