"""`policyspace configure`: the loop closed with a simulated agent that learns anew in every configuration."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli import options
from policyspace.errors import InputError, nearest

if TYPE_CHECKING:
    from rich.console import Console

    from policyspace.study.round_record import RoundRecord
    from policyspace.worlds.confmdp import ConfMDP

World = Annotated[
    str, typer.Argument(help="The world: see `policyspace worlds`, or your own module:Class.", metavar="WORLD")
]
Rule = Annotated[
    str, typer.Option("--rule", help="One test a unit, or all supports.", metavar="simplified|combinatorial")
]
DesignName = Annotated[
    str,
    typer.Option(
        "--design",
        help="How the next configuration is chosen: for all undecided units at once, as the paper for one at a time, "
        "uniform, or not at all.",
        metavar="d-optimal|noncentrality|paper|uniform|none",
    ),
]
Attempts = Annotated[
    int, typer.Option("--attempts", help="How often to configure; for every unit, with the paper's design.", min=0)
]
Episodes = Annotated[int, typer.Option("--episodes", help="Episodes of a round.", metavar="N", min=1)]
Budget = Annotated[
    int | None, typer.Option("--budget", help="Episodes of all rounds together, shared out.", metavar="N", min=1)
]
PaperRule = Annotated[
    bool, typer.Option("--paper-rule", help="The paper's union, every round at full δ: no promise for all rounds.")
]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same rounds.", metavar="S", min=0)]


def configure(
    world: World,
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
    episodes: Episodes = 100,
    attempts: Attempts = 3,
    rule: Rule = "simplified",
    design: DesignName = "d-optimal",
    budget: Budget = None,
    significance: options.Significance = 0.05,
    paper_rule: PaperRule = False,
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

    Every round: a configuration, an agent that learns in it, its episodes, the tests, and what fell.
    """
    from rich.console import Console

    from policyspace.configuration import configure as loop
    from policyspace.policies.jax_setup import jax
    from policyspace.study.round_record import RoundRecord, plain
    from policyspace.study.settings import check_settings, design_for, load_world
    from policyspace.worlds.agents import support_of

    check_settings(significance, rule, design, attempts, episodes, budget, seed)
    place = load_world(world)
    keys = jax.random.split(jax.random.key(seed), 3)
    space = place.policy_space()
    owned = controls_of(place, controls, keys[0])
    truth = [name for name in space.named(support_of(space, owned)) if name in place.feature_names]
    start = _configuration(place, configuration, keys[1])
    method = design_for(design, place)
    num_rounds = 1 + attempts * (1 if method.joint else len(space.tested))
    settings = {
        "world": world, "seed": seed, "rule": rule, "design": design, "significance": significance,
        "paper_rule": paper_rule, "num_rounds": num_rounds, "budget": budget, "initial": plain(start),
    }  # fmt: skip
    _make_folder(out)
    console = Console(highlight=False)
    units = tuple(space.groups[i].name for i in space.tested)
    diary = Diary(place, settings, truth, units, num_rounds, console, out)
    observe = _observer(place, space, owned, learning_steps, console)
    rounds = loop(
        place,
        observe,
        keys[2],
        space,
        rule,  # type: ignore[arg-type]
        significance,
        method,
        episodes,
        attempts,
        budget,
        start,
        paper_rule,
    )
    diary.begin()
    try:
        for told in rounds:
            diary.enter(RoundRecord.of(told))
    finally:
        # Ctrl-C as well: what was finished is kept, and drawn.
        diary.end()


@dataclass
class Diary:
    """The rounds as they happen: on the screen, and in files that are whole after every round."""

    world: "ConfMDP"
    settings: dict[str, Any]
    truth: list[str]
    units: tuple[str, ...]
    num_rounds: int
    console: "Console"
    folder: Path | None
    rounds: list["RoundRecord"] = field(default_factory=list)

    def begin(self) -> None:
        """Who is observed, and what is promised."""
        owned = ", ".join(self.truth) or "nothing but the constant"
        self.say(f"An agent in {self.world.name} that controls {owned}.", style="bold")
        whole, most = self.settings["significance"], self.num_rounds
        promise = (
            f"every round is tested at δ = {whole:g}, as in the paper: no promise for all of them together"
            if self.settings["paper_rule"]
            else f"chance of any false 'controlled' ≤ {whole:g}: δ is shared out over at most {most} rounds"
        )
        self.say(f"{self.settings['rule']} rule, {self.settings['design']} design; {promise}.", style="dim")

    def enter(self, record: "RoundRecord") -> None:
        """One round: on the screen, and the file replaced by one that has it."""
        from policyspace.report.configuration_words import words

        self.rounds.append(record)
        asked = f" for {record.asked_for[0]}" if len(record.asked_for) == 1 else ""
        where = "where it is" if record.design is None else f"configured ({record.design}{asked})"
        self.say(f"\nRound {record.number + 1} of at most {self.num_rounds}: {where}", style="bold cyan")
        self.say(f"  {words(self.world.name, record.configuration)}")
        before = len(record.undecided) + len(record.fell)
        self.say(f"  {record.num_episodes} episodes; {before} units tested at δ = {record.significance:.3g}")
        if record.fell:
            self.say(f"  fell: {', '.join(self.marked(name) for name in record.fell)}", style="green")
        else:
            self.say("  nothing fell", style="dim")
        if record.undecided:
            self.say(f"  open: {', '.join(record.undecided)}", style="dim")
        for warning in record.warnings:
            self.say(f"  Warning: {warning}", style="yellow")
        self.write()

    def marked(self, name: str) -> str:
        """The truth beside a verdict."""
        return f"{name} {'✓' if name in self.truth else '✗'}"

    def write(self) -> None:
        """rounds.json, whole."""
        if self.folder is None:
            return
        content = {
            "world": self.world.name,
            "truth": self.truth,
            "settings": self.settings,
            "rounds": [record.to_dict() for record in self.rounds],
        }
        options.write_json(
            json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False), str(self.folder / "rounds.json")
        )

    def end(self) -> None:
        """The answer against the truth, and the pictures."""
        if not self.rounds:
            return
        from policyspace.report.rounds_film import film_rounds
        from policyspace.report.rounds_picture import Story, plot_rounds

        last = self.rounds[-1]
        story = Story(self.world.name, tuple(self.world.parameters), self.rounds, self.units, tuple(self.truth))
        self.say(f"\nAfter {last.total_episodes} episodes: {story.verdict}.", style="bold")
        missed = [name for name in self.truth if name in last.undecided]
        if missed:
            self.say(f"Not shown: {', '.join(missed)}.")
        if self.folder is None:
            return
        paths = [self.folder / f"rounds.{suffix}" for suffix in ("json", "png", "svg", "gif")]
        for path in paths[1:3]:
            plot_rounds(story, path)
        film_rounds(story, paths[3])
        for path in paths:
            typer.echo(f"Saved {path}")

    def say(self, text: str, style: str | None = None) -> None:
        """A line as it is."""
        self.console.print(text, style=style, markup=False, soft_wrap=True)


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
    """The door to the world: an agent learns from scratch at ω, and is observed there."""
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
