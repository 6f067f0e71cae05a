"""`policyspace watch`: a trained agent plays, and what it saw and did is written down."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyspace.cli import options
from policyspace.cli.running import running, waiting
from policyspace.cli.screen import new_console, say, show_saved
from policyspace.errors import InputError
from policyspace.progress import say_progress

if TYPE_CHECKING:
    from policyspace.data.demonstrations import Demonstrations

AgentFile = Annotated[
    Path,
    typer.Option(
        "--agent",
        help="The agent, as stable-baselines3 saved it. Such a file can run code when it is opened: take only "
        "those that you trust.",
        metavar="MODEL.zip",
    ),
]
Algorithm = Annotated[
    str | None,
    typer.Option("--algorithm", help="Its algorithm; by default seen in the file.", metavar="PPO|A2C|DQN|SAC|TD3|DDPG"),
]
Names = Annotated[
    list[str] | None,
    typer.Option("--features", help="Names for the observations, in their order.", metavar="NAME[,NAME…]"),
]
Choice = Annotated[
    str | None,
    typer.Option("--actions", help="Which one, where a step has several choices: action[0], ….", metavar="NAME"),
]


@running
def watch(
    env: Annotated[
        str, typer.Argument(help="The id of a Gymnasium environment, such as CartPole-v1.", metavar="ENV_ID")
    ],
    agent: AgentFile,
    algorithm: Algorithm = None,
    episodes: Annotated[int, typer.Option("--episodes", help="How many episodes to play.", metavar="N", min=1)] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same file.", metavar="S", min=0)] = 0,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="Play the best action always, instead of by the agent's own chances.")
    ] = False,
    features: Names = None,
    actions: Choice = None,
    out: Annotated[
        Path,
        typer.Option("--out", help="Where to write: Parquet, CSV, Arrow or NPZ by the name.", metavar="FILE.parquet"),
    ] = Path("log.parquet"),
) -> None:
    """Play a trained agent in a Gymnasium environment, and write down what it saw and did.

    `policyspace identify FILE` then says which observations it uses.
    """
    from policyspace.data.readers import SUFFIXES, write

    options.check_file(out, SUFFIXES, [agent])
    if features is not None and not options.split(features):
        raise InputError("--features must name the observations, found nothing: leave it out for observation[0], ….")
    from policyspace.worlds.player import agent_from_file

    data = _watched(env, agent_from_file(agent, algorithm), episodes, seed, options.split(features), actions, greedy)
    write(data, out)
    _tell(data, out)


def _watched(
    env: str, agent: object, episodes: int, seed: int, features: list[str], actions: str | None, greedy: bool
) -> "Demonstrations":
    """Playing, with a bar on the screen of people."""
    from policyspace.worlds.watching import watch as play

    with waiting("playing"):
        return play(
            env,
            agent,
            episodes,
            seed=seed,
            features=features or None,
            actions=actions,
            deterministic=greedy,
            progress=lambda done, total: say_progress("playing episodes", done, total),
        )


def _tell(data: "Demonstrations", out: Path) -> None:
    """What was seen, and what to do with it."""
    console, total = new_console(), int(data.num_episodes or 1)
    say(
        console,
        f"{data.metadata['agent']} played {total} episodes of {data.metadata['environment']}: {data.num_pairs} pairs, "
        f"{data.num_pairs / total:.1f} steps and a return of {data.recorded['reward'].sum() / total:.4g} on average.",
    )
    for caution in data.metadata.get("cautions", ()):
        say(console, f"Warning: {caution}", style="yellow")
    show_saved([out])
    say(console, f"Next: policyspace identify {out}", style="dim")
