"""`policyspace configure`: a study of a simulated agent; the options of rounds that `study` shares."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli.console import (
    Report,
    check_targets,
    new_console,
    one_by_one,
    running,
    say,
    show_saved,
    waiting,
    write_json,
    write_report,
)
from policyspace.cli.options import Significance, Text, given, option
from policyspace.cli.worlds import ActorOptions, EnvironmentOptions, controls_of, owned_in_words
from policyspace.errors import InputError, number_of
from policyspace.runtime import check_seed, known_world

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from policyspace.study.records import Round, Schedule, StudySettings, UnitRow
    from policyspace.worlds.base import Configurable
    from policyspace.worlds.confmdp import ConfMDP


# -- What `configure` and `study` share: the options of their rounds, and how a round is shown.

MOST_SUPPORTS = 5
"""More would not be read; `--json` has them all."""


@dataclass(frozen=True)
class RoundOptions:
    """How many rounds, of how many episodes, and how they are tested: named as in a schedule."""

    significance: Significance = 0.05
    rule: str = option("simplified", "One test a group, or all supports.", "simplified|combinatorial")
    max_rounds: int | None = option(
        None,
        "Rounds after the first; with the paper's design, for every group.",
        min=0,
        show_default="3, or as often as the budget pays for",
    )
    episodes: int | None = option(
        None, "Episodes of a round.", "N", min=1, show_default="100, or a share of the budget"
    )
    budget: int | None = option(None, "Episodes of all rounds together, shared out.", "N", min=1)
    paper_rule: bool = option(False, "The paper's union, every round at full δ: no guarantee for all rounds.")
    test: str = option(
        "auto",
        "combined: p-values of all rounds together. batches: each round alone, at a share of δ. eprocess: after "
        "every episode; auto takes it for networks.",
        "auto|combined|batches|eprocess",
    )


@dataclass(frozen=True)
class DesignOptions:
    """How configurations are chosen, and from which chance."""

    design: Text = option(
        None,
        "How the next configuration is chosen: for all undecided groups at once, as the paper for one at a time, "
        "simulated, filling the space, uniform, not at all, or what most lowers the regret of a decision; in an "
        "environment one of the last five, by default simulated, elsewhere d-optimal.",
        "d-optimal|noncentrality|paper|simulated|space-filling|uniform|none|decision",
    )
    seed: int = option(0, "Same seed, same rounds.", "S", min=0)


def show_plan(console: "Console", world: Any, space: Any, schedule: "Schedule", initial: "Mapping[str, Any]") -> None:
    """How the budget of a schedule is shared out, why, and where the first round is."""
    from policyspace.study.forecast import plan_rounds

    for sentence in plan_rounds(world, space, schedule.budget or 0, schedule.sequential, initial).sentences:
        say(console, sentence)


def level_in_words(schedule: "Schedule", number: int) -> str:
    """At which level a round, counted from 0, is tested."""
    level = schedule.level_of(number)
    if schedule.sequential:
        return f"followed after every episode until E ≥ {1 / level:.4g}"
    if schedule.combined and number:
        return f"tested with the rounds before at δ = {level:.3g}"
    return f"tested at δ = {level:.3g}"


def show_round(
    console: "Console",
    world: str,
    schedule: "Schedule",
    result: "Round",
    truth: "Sequence[str] | None",
    initial: "Mapping[str, Any]",
) -> None:
    """Where, for how long, what was found, and what is open; where the truth is known, whether that is right."""
    from policyspace.study.figures import configuration_in_words

    where = _first_place(world, result, initial) if result.design is None else result.how
    most = f" of at most {schedule.num_rounds}" if result.number < schedule.num_rounds else ""
    say(console, "")
    say(console, f"Round {result.number + 1}{most}: {where}", style="bold cyan")
    say(console, f"  {configuration_in_words(world, result.configuration)}")
    count = len(result.undecided) + len(result.newly_selected)
    if schedule.rule == "combinatorial" or schedule.paper_rule:  # they test those selected before, too
        count = sum(row["group"] in schedule.units for row in result.tests)
    units = number_of(count, "group")
    tested = f"{units} {level_in_words(schedule, result.number)}" if result.was_tested else "not tested"
    say(console, f"  {number_of(result.num_episodes, 'episode')}; {tested}")
    found = _evidence(result, truth) if schedule.sequential else [_marked(n, truth) for n in result.newly_selected]
    if found:
        say(console, f"  newly selected: {', '.join(found)}", style="green")
    else:
        say(console, "  nothing newly selected", style="dim")
    if result.undecided:
        evidence = {row["group"]: _so_far(row) for row in result.tests}
        say(console, f"  open: {', '.join(name + evidence.get(name, '') for name in result.undecided)}", style="dim")
    if schedule.rule == "combinatorial" and result.supports:
        supports = [[name for name in support if name in schedule.units] for support in result.supports]
        shown = "; ".join(", ".join(support) or "nothing" for support in supports[:MOST_SUPPORTS])
        more = f"; and {len(supports) - MOST_SUPPORTS} more" if len(supports) > MOST_SUPPORTS else ""
        say(console, f"  supports that explain all rounds so far: {shown}{more}")
    for warning in result.warnings:
        say(console, f"  Warning: {warning}", style="yellow")


def _first_place(world: str, result: "Round", initial: "Mapping[str, Any]") -> str:
    """Where a round was that nothing was designed for: the first at ω₀, others wherever somebody went."""
    from policyspace.study.figures import is_flat
    from policyspace.study.records import same_configuration

    if result.number or not same_configuration(result.configuration, initial):
        return "where the data were collected"
    return "at the flat configuration" if is_flat(world, initial) else "where it is"


def _so_far(row: "UnitRow") -> str:
    """The evidence for an open unit, where rounds add up and there is some."""
    if "e_value" in row:
        return f" (E = {row['e_value']:.2g})"
    p = row.get("adjusted_p_value", 1.0) if "combined_p_value" in row else 1.0
    return f" (p = {p:.2g})" if p < 1 else ""


def _evidence(result: "Round", truth: "Sequence[str] | None") -> list[str]:
    """When units were found, in the order in which they were."""
    rows = [row for row in result.tests if row["group"] in result.newly_selected]
    rows.sort(key=lambda row: row["decided_at"] or 0)
    return [f"{_marked(row['group'], truth)} after episode {row['decided_at']}" for row in rows]


def _marked(name: str, truth: "Sequence[str] | None") -> str:
    """The truth beside a verdict."""
    return name if truth is None else f"{name} {'✓' if name in truth else '✗'}"


# -- `policyspace configure`: the loop closed with a simulated agent that learns anew in every configuration.


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
    if beginning.world is not None:
        known_world(beginning.world, or_class=True)
    from policyspace import safe_io as whole_file
    from policyspace.families.jax_backend import jax
    from policyspace.study.forecast import schedule_for
    from policyspace.study.loop import ConfiguredRun
    from policyspace.study.records import StudySettings, plain
    from policyspace.study.study import default_design, design_for, load_world
    from policyspace.worlds.agents import support_of

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
    planned = rounds.budget is not None and rounds.max_rounds is None and method.joint
    start = _configuration(place, beginning.configuration, planned, keys[1])
    if playable is not None:
        observe, truth = playable.observe(*actor.actors()), None
    else:
        owned = controls_of(place, simulated.controls or "random", keys[0])
        truth = [name for name in space.named(support_of(space, owned)) if name in place.feature_names]
        observe = _observer(place, space, owned, simulated.learning_steps)
    settings: StudySettings = {
        "world": world or place.name, "seed": seed, "design": design, "initial": plain(start)
    }  # fmt: skip
    # Make the folder of the results, and say before the work if they could not be saved there.
    check_targets(report=report)
    if out is not None:
        whole_file.check_targets(targets(whole_file.made_folder(out)), [beginning.configuration])
    diary = RoundReporter(place, schedule, settings, truth, console, out)
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
class RoundReporter:
    """The rounds as they happen: on the screen, and in files that are whole after every round."""

    world: "Configurable"
    schedule: "Schedule"
    settings: "StudySettings"
    truth: list[str] | None  # of a simulated agent
    console: "Console"
    folder: Path | None
    rounds: list["Round"] = field(default_factory=list)

    def begin(self) -> None:
        """Who is observed, and what is promised."""
        owned = None if self.truth is None else owned_in_words(self.world.policy_space(), self.truth)
        known = "" if owned is None else f" that controls {owned}"
        say(self.console, f"An agent in {self.world.name}{known}.", style="bold")
        say(self.console, self.schedule.guarantee(self.settings["design"]), style="dim")

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
        from policyspace.report.figures import save
        from policyspace.study.page import ExampleRun, draw_rounds, film_rounds

        last, world = self.rounds[-1], self.world
        story = ExampleRun.of(world, self.rounds, self.schedule.units, self.truth)
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


def _configuration(world: Any, given: str | None, planned: bool, key: Any) -> Any:
    """ω₀: what is given; else flat where the rounds are planned and the world can be; else random, or as it is."""
    from policyspace.worlds.base import parse_configuration
    from policyspace.worlds.confmdp import ConfMDP

    ours = isinstance(world, ConfMDP)
    flat = world.flat_configuration() if planned and given is None else None
    if flat is not None:
        return flat
    if given == "random" or (given is None and ours):
        return world.random_configuration(key) if ours else world.uniform_configuration(key)
    return world.check_configuration({} if given is None else parse_configuration(given))


def targets(folder: Path) -> list[Path]:
    """The rounds as data, as pictures and as a film."""
    return [folder / f"rounds.{suffix}" for suffix in ("json", "png", "svg", "gif")]


def _observer(
    world: "ConfMDP", space: Any, controls: tuple[str, ...], steps: int | None
) -> Callable[[Any, Any, int], Any]:
    """How the agent is observed: it learns from scratch at ω, and is observed there."""
    from policyspace.families.jax_backend import jax
    from policyspace.worlds.agents import learn

    def observe(key: Any, omega: Any, num_episodes: int) -> Any:
        learning, acting = jax.random.split(key)
        return learn(world, space, controls, omega, learning, num_steps=steps).act(world, omega, acting, num_episodes)

    return observe
