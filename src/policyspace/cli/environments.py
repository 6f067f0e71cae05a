"""What `configure` and `study` share about Gymnasium environments: the options that name one, and who acts in it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli.bundled import given, option
from policyspace.cli.options import Names, Text
from policyspace.cli.typed_values import pairs, split
from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.environments.gymnasium_world import GymnasiumWorld

Env = Annotated[
    Text,
    typer.Option("--env", help="A Gymnasium id, or your function that makes one.", metavar="ENV_ID|module:function"),
]

Algorithm = Annotated[
    Text,
    typer.Option(
        "--algorithm",
        help="Of an agent that stable-baselines3 saved; by default seen in the file.",
        metavar="PPO|A2C|DQN|SAC|TD3|DDPG",
    ),
]


@dataclass(frozen=True)
class EnvironmentOptions:
    """An environment, what can be set in it, and how."""

    env: Env = None
    parameter: Names = option(None, "What can be set in the environment, between bounds.", "NAME=LOW:HIGH[:DEFAULT]")
    by: Names = option(None, "How a parameter reaches it, if not as found out.", "NAME=keyword|attribute|options|make")
    names: Names = option(None, "Of the numbers of an observation.", "NAME,…")

    def world(self) -> "GymnasiumWorld | None":
        """The environment that is meant, if one is."""
        if self.env is None:
            for said in given(self):
                raise InputError(f"{said} belongs to an environment, found none: name it with --env.")
            return None
        from policyspace.environments.gymnasium_world import GymnasiumWorld

        settable = pairs("--parameter", "is written NAME=…", self.parameter)
        parameters = {name: _bounds(name, text) for name, text in settable.items()}
        ways = pairs("--by", "is written NAME=…", self.by)
        return GymnasiumWorld.of(self.env, parameters, split(self.names) or None, ways)


@dataclass(frozen=True)
class ActorOptions:
    """Who acts in an environment."""

    agent: Text = option(
        None,
        "Acts in --env: a model of stable-baselines3, or your function of an observation.",
        "MODEL.zip|module:function",
    )
    algorithm: Algorithm = None
    learn: Text = option(None, "Trains an agent in --env in every round: your learn(env).", "module:function")

    def actors(self) -> dict[str, Any]:
        """The arguments of `GymnasiumWorld.observe`."""
        from policyspace.environments.own_code import imported
        from policyspace.environments.player import agent_from_file

        own = self.agent is not None and ":" in self.agent
        if self.algorithm is not None and (own or self.agent is None):
            raise InputError("--algorithm is of a model in a file, found none: name it with --agent, or leave it out.")
        agent: Any = None
        if self.agent is not None:
            agent = imported(self.agent, "the agent") if own else agent_from_file(self.agent, self.algorithm)
        return {
            "agent": agent,
            "learn": None if self.learn is None else imported(self.learn, "what learns"),
        }


def _bounds(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(":")]
    except ValueError as error:
        raise InputError(f"--parameter {name} needs bounds LOW:HIGH, found '{text}': write gravity=5:15.") from error
