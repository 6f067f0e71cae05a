"""`policyspace configure`: the loop closed with a simulated agent that learns anew in every configuration."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli import options
from policyspace.cli.bundled import bundled
from policyspace.cli.rounds import Design, RoundOptions, Seed, new_console, promise, say, show_round
from policyspace.data.limits import check_seed
from policyspace.errors import InputError, nearest

if TYPE_CHECKING:
    from rich.console import Console

    from policyspace.configuration.round import Round
    from policyspace.configuration.schedule import Schedule
    from policyspace.worlds.confmdp import ConfMDP


@bundled
def configure(
    world: Annotated[
        str, typer.Argument(help="The world: see `policyspace worlds`, or your own module:Class.", metavar="WORLD")
    ],
    rounds: RoundOptions,
    controls: Annotated[
        str,
        typer.Option("--controls", help="What the agent perceives and controls.", metavar="NAME,…|random|all|none"),
    ] = "random",
    configuration: Annotated[
        str,
        typer.Option(
            "--configuration", help="Where to begin: the world's ω₀.", metavar="FILE.toml|NAME=VALUE,…|random"
        ),
    ] = "random",
    design: Design = "d-optimal",
    learning_steps: Annotated[
        int | None,
        typer.Option("--learning-steps", help="Of the agent in every round; by default what the world needs.", min=0),
    ] = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for rounds.json, rounds.png, .svg and .gif.", metavar="DIR"),
    ] = None,
) -> None:
    """Configure a world, round by round, until what a simulated agent controls has shown.

    Every round: a configuration, an agent that learns in it, its episodes, the tests, and what is newly selected.
    """
    from policyspace.configuration.loop import rounds_of
    from policyspace.configuration.round import plain
    from policyspace.configuration.schedule import Schedule
    from policyspace.policies.jax_setup import jax
    from policyspace.study.settings import design_for, load_world
    from policyspace.worlds.agents import support_of

    check_seed(seed)
    place = load_world(world)
    space, method = place.policy_space(), design_for(design, place)
    schedule = Schedule.of(space, method.joint, **asdict(rounds))
    keys = jax.random.split(jax.random.key(seed), 3)
    owned = controls_of(place, controls, keys[0])
    truth = [name for name in space.named(support_of(space, owned)) if name in place.feature_names]
    start = _configuration(place, configuration, keys[1])
    settings = {"world": world, "seed": seed, "design": design, "initial": plain(start)}
    _make_folder(out)
    diary = Diary(place, schedule, settings, truth, new_console(), out)
    observe = _observer(place, space, owned, learning_steps, diary.console)
    diary.begin()
    try:
        for result in rounds_of(place, space, method, start, schedule, observe, keys[2]):
            diary.enter(result)
    finally:
        # Ctrl-C as well: what was finished is kept, and drawn.
        diary.end()


@dataclass
class Diary:
    """The rounds as they happen: on the screen, and in files that are whole after every round."""

    world: "ConfMDP"
    schedule: "Schedule"
    settings: dict[str, Any]
    truth: list[str]
    console: "Console"
    folder: Path | None
    rounds: list["Round"] = field(default_factory=list)

    def begin(self) -> None:
        """Who is observed, and what is promised."""
        owned = ", ".join(self.truth) or "nothing but the constant"
        say(self.console, f"An agent in {self.world.name} that controls {owned}.", style="bold")
        say(self.console, promise(self.schedule, self.settings["design"]), style="dim")

    def enter(self, result: "Round") -> None:
        """One round: on the screen, and the file replaced by one that has it."""
        self.rounds.append(result)
        show_round(self.console, self.world.name, self.schedule, result, self.truth)
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
        options.write_json(text, str(self.folder / "rounds.json"))

    def end(self) -> None:
        """The answer against the truth, and the pictures."""
        if not self.rounds:
            return
        from policyspace.report.rounds_film import film_rounds
        from policyspace.report.rounds_picture import Story, plot_rounds

        last, world = self.rounds[-1], self.world
        story = Story(world.name, tuple(world.parameters), self.rounds, self.schedule.units, tuple(self.truth))
        say(self.console, f"\nAfter {last.total_episodes} episodes: {story.verdict}.", style="bold")
        missed = [name for name in self.truth if name in last.undecided]
        if missed:
            say(self.console, f"Not shown: {', '.join(missed)}.")
        if self.folder is None:
            return
        paths = [self.folder / f"rounds.{suffix}" for suffix in ("json", "png", "svg", "gif")]
        for path in paths[1:3]:
            plot_rounds(story, path)
        film_rounds(story, paths[3])
        for path in paths:
            typer.echo(f"Saved {path}")


def controls_of(world: "ConfMDP", given: str, key: Any) -> tuple[str, ...]:
    """The features that `--controls` stands for, in the world's order."""
    if given == "random":
        chosen = world.random_controls(key)
    elif given in ("all", "none"):
        chosen = frozenset(world.feature_names if given == "all" else ())
    else:
        chosen = frozenset(options.split([given]))
    for name in sorted(chosen):
        if name not in world.feature_names:
            raise InputError(f"there is no feature '{name}' to control: {nearest(name, world.feature_names)}")
    return tuple(name for name in world.feature_names if name in chosen)


def _configuration(world: "ConfMDP", given: str, key: Any) -> Any:
    from policyspace.worlds.configuration_parameters import parse_configuration

    return (
        world.random_configuration(key) if given == "random" else world.check_configuration(parse_configuration(given))
    )


def _make_folder(out: Path | None) -> None:
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: is no folder that can be made ({error.strerror}): name another.") from error


def _observer(
    world: "ConfMDP", space: Any, controls: tuple[str, ...], steps: int | None, console: "Console"
) -> Callable[[Any, Any, int], Any]:
    """How the agent is observed: it learns from scratch at ω, and is observed there."""
    from policyspace.policies.jax_setup import jax
    from policyspace.worlds.agents import learn

    def observe(key: Any, omega: Any, num_episodes: int) -> Any:
        learning, acting = jax.random.split(key)
        with console.status("the agent learns …") as status:

            def progress(done: int, wanted: int, curve: Any) -> None:
                status.update(f"the agent learns: {done} of {wanted} steps, return {curve[-10:].mean():.4g}")

            agent = learn(world, space, controls, omega, learning, num_steps=steps, progress=progress)
        return agent.act(world, omega, acting, num_episodes)

    return observe
