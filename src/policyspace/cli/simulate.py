"""`policyspace simulate`: an agent learns in a world, or comes from a file, and its behaviour is written down."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli.options import check_file
from policyspace.cli.running import running, waiting
from policyspace.cli.screen import new_console, say, show_saved
from policyspace.data.limits import check_seed
from policyspace.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from policyspace.data.demonstrations import Demonstrations
    from policyspace.worlds.agents import Agent
    from policyspace.worlds.confmdp import ConfMDP
    from policyspace.worlds.trajectories import Trajectories

PICTURES = (".gif", ".png")
BARS = "▁▂▃▄▅▆▇█"


Controls = Annotated[
    str | None,
    typer.Option(
        "--controls",
        help="What the agent perceives and controls: feature names, 'random', 'all' or 'none'. By default what the paper's "
        "agent owns.",
        metavar="NAME,…|random|all|none",
    ),
]
ConfigurationOption = Annotated[
    str | None,
    typer.Option(
        "--configuration",
        help="The world's ω: name=value,… or a TOML file; what is not named has its default. 'random' draws one.",
        metavar="FILE.toml|NAME=VALUE,…|random",
    ),
]
LearningSteps = Annotated[
    int | None,
    typer.Option(
        "--learning-steps",
        help="Learning steps; by default what the world needs, and none for an agent from a file.",
        metavar="N",
        min=0,
    ),
]
Compare = Annotated[
    bool,
    typer.Option(
        "--compare/--no-compare",
        help="Say how far the agent is from the best policy known: two more agents learn for it.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Where to write the demonstrations: Parquet, CSV, Arrow or NPZ by the name. [default: WORLD.parquet]",
        metavar="FILE.parquet",
        show_default=False,
    ),
]


@running
def simulate(
    world: Annotated[str, typer.Argument(help="The world: see `policyspace worlds`.", metavar="WORLD")],
    controls: Controls = None,
    configuration: ConfigurationOption = None,
    episodes: Annotated[int, typer.Option("--episodes", help="How many episodes to write.", metavar="N", min=1)] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same file.", metavar="S", min=0)] = 0,
    learning_steps: LearningSteps = None,
    agent: Annotated[
        Path | None, typer.Option("--agent", help="An agent saved before, instead of a new one.", metavar="FILE")
    ] = None,
    save_agent: Annotated[
        Path | None, typer.Option("--save-agent", help="Save the agent (JSON).", metavar="FILE")
    ] = None,
    compare: Compare = True,
    out: Out = None,
    render: Annotated[
        Path | None,
        typer.Option("--render", help="Draw the first episode: a film (GIF) or a strip (PNG).", metavar="FILE.gif|png"),
    ] = None,
) -> None:
    """Write demonstrations of an agent that learned in a world, with the truth in the file.

    `policyspace identify FILE` then needs no options, and says which of its verdicts are right.
    """
    from policyspace.worlds import make_world
    from policyspace.worlds.confmdp import check_simulated

    place = make_world(world)
    check_seed(seed)
    check_simulated(place, episodes)
    target = Path(f"{world}.parquet") if out is None else out
    _check_targets(target, save_agent, render, [agent, configuration])
    from policyspace.policies.jax_setup import jax

    names = ("controls", "configuration", "learning", "acting", "comparing")
    chances = [*jax.random.split(jax.random.key(seed), 4), jax.random.fold_in(jax.random.key(seed), 4)]
    keys = dict(zip(names, chances, strict=True))
    console = new_console()
    actor = _agent(place, controls, configuration, seed, learning_steps, agent, keys, console)
    if compare:
        actor = replace(actor, returns=_compared(place, actor, keys["comparing"], console))
    if save_agent is not None:
        from policyspace.worlds.saved_agents import save_agent as save

        save(actor, save_agent)
    omega = place.check_configuration(actor.configuration)
    with waiting("acting"):
        seen = actor.act(place, omega, keys["acting"], episodes)
    data = _demonstrations(place, actor, seen, seed)
    from policyspace.data.readers import write

    write(data, target)
    if render is not None:
        from policyspace.worlds.films import draw_episode

        with waiting("drawing"):
            draw_episode(place, seen, render)
    _tell(console, place, actor, seen, data, [target, save_agent, render])


def _check_targets(out: Path, save_agent: Path | None, render: Path | None, inputs: list[Path | str | None]) -> None:
    """Say before the work that its results could not be saved."""
    from policyspace.data.readers import SUFFIXES
    from policyspace.data.whole_file import check_targets

    for path, suffixes in ((out, SUFFIXES), (render, PICTURES)):
        if path is not None:
            check_file(path, suffixes)
    check_targets([out, save_agent, render], inputs)


def _agent(
    world: "ConfMDP",
    controls: str | None,
    configuration: str | None,
    seed: int,
    learning_steps: int | None,
    file: Path | None,
    keys: dict[str, Any],
    console: "Console",
) -> "Agent":
    """The agent that acts, in the configuration where it acts: loaded, learned, or loaded and learned further."""
    from policyspace.worlds.configuration_parameters import parse_configuration
    from policyspace.worlds.saved_agents import load_agent

    given = None
    if configuration == "random":
        given = world.random_configuration(keys["configuration"])
    elif configuration is not None:
        given = world.check_configuration(parse_configuration(configuration))
    if file is None:
        owned = _controls(world, controls, keys["controls"])
        return replace(_learn(world, None, owned, given, learning_steps, None, keys["learning"], console), seed=seed)
    if controls is not None:
        raise InputError("--controls and --agent exclude each other: the agent in the file has its controls.")
    loaded = load_agent(file, world)
    omega = loaded.configuration if given is None else given
    if not learning_steps:
        return replace(loaded, configuration=omega, returns=None)
    more = _learn(world, loaded.space, loaded.controls, omega, learning_steps, loaded.theta, keys["learning"], console)
    return replace(more, seed=seed)


def _controls(world: "ConfMDP", given: str | None, key: Any) -> tuple[str, ...]:
    """The names that the option stands for; unknown ones are refused when the agent is made."""
    if given is None:
        return tuple(world.true_controls)
    if given == "random":
        return tuple(world.random_controls(key))
    if given in ("all", "none"):
        return world.feature_names if given == "all" else ()
    return tuple(name.strip() for name in given.split(",") if name.strip())


def _learn(
    world: "ConfMDP",
    space: Any,
    controls: tuple[str, ...],
    configuration: Any,
    steps: int | None,
    start: Any,
    key: Any,
    console: "Console",
) -> "Agent":
    """Learning, with the curve at its end."""
    from policyspace.worlds.agents import learn

    with waiting("learning"):
        learned = learn(world, space, controls, configuration, key, num_steps=steps, start=start)
    _tell_learning(console, learned.learning_curve)
    return learned


def _compared(world: "ConfMDP", agent: "Agent", key: Any, console: "Console") -> dict[str, float]:
    """The agent's return beside the best known one, said and handed on."""
    from policyspace.worlds.best_known import returns_of

    found = returns_of(agent, world, key)
    say(
        console,
        f"Expected discounted return {found.agent:.4g}; best known for what it controls {found.best_known:.4g}, "
        f"{found.distance:.2g} better.",
    )
    return found.to_dict()


def _tell_learning(console: "Console", curve: Any) -> None:
    """The curve as a line of bars, and its two ends in numbers."""
    if len(curve) == 0:
        return
    few = min(10, max(1, len(curve) // 5))
    first, last = float(curve[:few].mean()), float(curve[-few:].mean())
    say(console, f"Learned in {len(curve)} steps: mean discounted return {first:.4g} → {last:.4g}")
    say(console, sparkline(curve), style="cyan")
    if last <= first:
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
        played, codes = np.unique(np.asarray(seen.actions)[np.asarray(seen.mask)], return_inverse=True)
        actions = np.zeros(np.asarray(seen.mask).shape, dtype=np.int64)
        actions[np.asarray(seen.mask)] = codes
        names, seen = tuple(names[int(code)] for code in played), replace(seen, actions=actions)
    return seen.pairs(world.feature_names, names, metadata)


def _tell(
    console: "Console",
    world: "ConfMDP",
    agent: "Agent",
    seen: "Trajectories",
    data: "Demonstrations",
    paths: list[Path | None],
) -> None:
    """What was made, and what to do with it."""
    import numpy as np

    owned = ", ".join(agent.controls) or "nothing but the constant"
    say(console, f"The agent controls {owned}.")
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
