"""`policyspace simulate`: an agent learns in a world, or comes from a file, and its behaviour is written down."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli.bundled import option
from policyspace.cli.controls import controls_of, owned_in_words
from policyspace.cli.options import Text
from policyspace.cli.running import running, waiting
from policyspace.cli.saving import check_suffix
from policyspace.cli.screen import new_console, say, show_saved
from policyspace.data.limits import check_seed
from policyspace.errors import InputError
from policyspace.printable import number_of

if TYPE_CHECKING:
    from rich.console import Console

    from policyspace.data.demonstrations import Demonstrations
    from policyspace.worlds.agents import Agent
    from policyspace.worlds.confmdp import ConfMDP
    from policyspace.worlds.trajectories import Trajectories

PICTURES = (".gif", ".png")
BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class AgentOptions:
    """Who acts, where and for how long."""

    controls: Text = option(
        None,
        "What the agent perceives and controls: feature names, 'random', 'all' or 'none'. By default what the paper's "
        "agent owns.",
        "NAME,…|random|all|none",
    )
    configuration: Text = option(
        None,
        "The world's ω: name=value,… or a TOML file; what is not named has its default. 'random' draws one.",
        "FILE.toml|NAME=VALUE,…|random",
    )
    episodes: int = option(100, "How many episodes to write.", "N", min=1)
    seed: int = option(0, "Same seed, same file.", "S", min=0)
    learning_steps: int | None = option(
        None, "Learning steps; by default what the world needs, and none for an agent from a file.", "N", min=0
    )
    agent: Path | None = option(None, "An agent saved before, instead of a new one.", "FILE")


@dataclass(frozen=True)
class SavedOptions:
    """What is made beside the episodes, and where all is saved."""

    save_agent: Path | None = option(None, "Save the agent (JSON).", "FILE")
    compare: bool = option(
        True,
        "Say how far the agent is from the best policy known: two more agents learn for it.",
        None,
        "--compare/--no-compare",
    )
    out: Path | None = option(
        None,
        "Where to write the demonstrations: Parquet, CSV, Arrow or NPZ by the name; by default WORLD.parquet.",
        "FILE.parquet",
        show_default=False,
    )
    render: Path | None = option(None, "Draw the first episode: a film (GIF) or a strip (PNG).", "FILE.gif|png")


@running
def simulate(
    world: Annotated[str, typer.Argument(help="The world: see `policyspace worlds`.", metavar="WORLD")],
    acting: AgentOptions,
    saved: SavedOptions,
) -> None:
    """Write demonstrations of an agent that learned in a world, with the truth in the file.

    `policyspace identify FILE` then needs no options, and says which of its verdicts are right.
    """
    from policyspace.worlds import make_world
    from policyspace.worlds.confmdp import check_simulated

    place, seed = make_world(world), acting.seed
    check_seed(seed)
    check_simulated(place, acting.episodes)
    target = Path(f"{world}.parquet") if saved.out is None else saved.out
    _check_targets(target, saved, [acting.agent, acting.configuration])
    from policyspace.policies.jax_setup import jax

    names = ("controls", "configuration", "learning", "acting", "comparing")
    chances = [*jax.random.split(jax.random.key(seed), 4), jax.random.fold_in(jax.random.key(seed), 4)]
    keys = dict(zip(names, chances, strict=True))
    console = new_console()
    actor = _agent(place, acting, keys, console, saved.compare)
    if saved.compare:
        actor = replace(actor, returns=_compared(place, actor, keys["comparing"], console))
    if saved.save_agent is not None:
        from policyspace.worlds.saved_agents import save_agent

        save_agent(actor, saved.save_agent)
    omega = place.check_configuration(actor.configuration)
    with waiting("acting"):
        seen = actor.act(place, omega, keys["acting"], acting.episodes)
    data = _demonstrations(place, actor, seen, seed)
    from policyspace.data.readers import write

    write(data, target)
    if saved.render is not None:
        from policyspace.worlds.films import draw_episode

        with waiting("drawing"):
            draw_episode(place, seen, saved.render)
    _show_result(console, place, actor, seen, data, [target, saved.save_agent, saved.render])


def _check_targets(target: Path, saved: SavedOptions, inputs: list[Path | str | None]) -> None:
    """Say before the work that its results could not be saved."""
    from policyspace.data.readers import SUFFIXES
    from policyspace.data.whole_file import check_targets

    check_suffix(target, SUFFIXES)
    if saved.render is not None:
        check_suffix(saved.render, PICTURES)
    check_targets([target, saved.save_agent, saved.render], inputs)


def _agent(world: "ConfMDP", acting: AgentOptions, keys: dict[str, Any], console: "Console", compared: bool) -> "Agent":
    """The agent that acts, in the configuration where it acts: loaded, learned, or loaded and learned further."""
    from policyspace.worlds.agents import PHASES, learn
    from policyspace.worlds.configuration_parameters import parse_configuration
    from policyspace.worlds.saved_agents import load_agent

    given, steps = None, acting.learning_steps
    if acting.configuration == "random":
        given = world.random_configuration(keys["configuration"])
    elif acting.configuration is not None:
        given = world.check_configuration(parse_configuration(acting.configuration))
    if acting.agent is None:
        owned = None if acting.controls is None else controls_of(world, acting.controls, keys["controls"])
        space, start, omega = None, None, given
    else:
        if acting.controls is not None:
            raise InputError("--controls and --agent exclude each other: the agent in the file has its controls.")
        loaded = load_agent(acting.agent, world)
        space, start, owned = loaded.space, loaded.theta, loaded.controls
        omega = loaded.configuration if given is None else given
        if not steps:
            return replace(loaded, configuration=omega, returns=None)
    with waiting("learning"):
        learned = learn(world, space, owned, omega, keys["learning"], num_steps=steps, start=start)
    by_phases = world.name in PHASES and steps is None and start is None
    _show_learning(console, learned.learning_curve, by_phases, compared)
    return replace(learned, seed=acting.seed)


def _compared(world: "ConfMDP", agent: "Agent", key: Any, console: "Console") -> dict[str, float]:
    """The agent's return beside the best known one, said and handed on."""
    from policyspace.worlds.best_known import NUM_EPISODES, returns_of

    found = returns_of(agent, world, key)
    say(
        console,
        f"Mean discounted return of {NUM_EPISODES} episodes {found.agent:.4g} (standard error {found.standard_error:.1g}); "
        f"best known for what it controls {found.best_known:.4g}, {found.distance:.2g} better.",
    )
    if found.far:
        say(
            console,
            f"Warning: the agent has learned {found.learned:.0%} of what can be learned here: what it controls may not show "
            "in what it does.",
            style="yellow",
        )
    return found.to_dict()


def _show_learning(console: "Console", curve: Any, by_phases: bool, compared: bool) -> None:
    """The curve as a line of bars, and its two ends in numbers; that it did not rise, unless it is compared with others."""
    if len(curve) == 0:
        return
    few = min(10, max(1, len(curve) // 5))
    first, last = float(curve[:few].mean()), float(curve[-few:].mean())
    count = number_of(len(curve) - 1, "phase") if by_phases else number_of(len(curve), "step")
    say(console, f"Learned in {count}: mean discounted return {first:.4g} → {last:.4g}")
    say(console, sparkline(curve), style="cyan")
    if last <= first and not compared:
        say(console, "Warning: the agent did not learn: what it controls may not show in what it does.", style="yellow")


def sparkline(curve: Any, width: int = 40) -> str:
    """A curve in one line of text: the mean of each of `width` parts, as bars from its lowest to its highest."""
    import numpy as np

    means = np.array([part.mean() for part in np.array_split(np.asarray(curve), min(width, len(curve)))])
    span = float(np.ptp(means)) or 1.0
    return "".join(BARS[int(level)] for level in np.round((means - means.min()) / span * (len(BARS) - 1)))


def _demonstrations(world: "ConfMDP", agent: "Agent", seen: "Trajectories", seed: int) -> "Demonstrations":
    """What was seen as demonstrations, with everything that made them."""
    import numpy as np

    metadata = {
        "world": world.name,
        "configuration": {name: np.asarray(value).tolist() for name, value in agent.configuration.items()},
        "truth": list(agent.controls),
        "policy": agent.space.describe(),
        "seed": seed,
    } | ({} if agent.returns is None else {"returns": agent.returns})
    names = tuple(world.action_names)
    if world.action_bounds is None:
        # An action that was never chosen has no finite parameters: it is left out, as if it did not exist.
        chosen, codes = np.unique(np.asarray(seen.actions)[np.asarray(seen.mask)], return_inverse=True)
        actions = np.zeros(np.asarray(seen.mask).shape, dtype=np.int64)
        actions[np.asarray(seen.mask)] = codes
        names, seen = tuple(names[int(code)] for code in chosen), replace(seen, actions=actions)
    return seen.pairs(world.feature_names, names, metadata)


def _show_result(
    console: "Console",
    world: "ConfMDP",
    agent: "Agent",
    seen: "Trajectories",
    data: "Demonstrations",
    paths: list[Path | None],
) -> None:
    """What was made, and what to do with it."""
    import numpy as np

    say(console, f"The agent controls {owned_in_words(agent.space, agent.controls)}.")
    mean = float(np.mean(seen.returns()))
    say(
        console,
        f"{data.num_episodes} episodes, {data.num_pairs} pairs, {np.mean(seen.lengths):.1f} steps and a return of "
        f"{mean:.4g} on average.",
    )
    if data.discrete and len(data.action_names) < len(world.action_names):
        left_out = ", ".join(name for name in world.action_names if name not in data.action_names)
        say(console, f"Never chosen, and so not in the file: {left_out}.")
    show_saved(paths)
    say(console, f"Next: policyspace identify {paths[0]}", style="dim")
