"""`policyspace recommend`: the configuration in which an agent with the identified space does best."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from policyspace.cli.clone import From, opened_study, space_from
from policyspace.cli.console import JsonOut, Report, check_targets, deliver, running, show, waiting, write_report
from policyspace.cli.options import Text, option
from policyspace.cli.worlds import EnvironmentOptions
from policyspace.errors import InputError


@dataclass(frozen=True)
class LearnerOptions:
    """Who learns, and what is wanted of it."""

    answer: From = None
    observed: bool = option(
        False, "Compare what the agent itself returned in the rounds of --from STUDY.sqlite.", None, show_default=False
    )
    learn: Text = option(None, "Trains an agent in --env: your learn(env).", "module:function")
    reward: Text = option(
        None,
        "Your goal instead of the agent's: a function (features, actions, rewards) of an episode.",
        "module:function",
    )
    learning_steps: int | None = option(None, "Of agents in a WORLD; by default what it needs.", "N", min=0)
    discount: float = option(1.0, "γ of returns in --env.", "γ")


@dataclass(frozen=True)
class TriedOptions:
    """What is tried, and what is saved."""

    configurations: int = option(8, "Configurations that are spread out.", "N", min=2)
    refinements: int = option(3, "How often more are tried around the best.", "N", min=0)
    around: int = option(4, "How many each time.", "N", min=1)
    learnings: int = option(3, "Agents that learn in each configuration.", "N", min=1)
    episodes: int = option(500, "Episodes of each agent.", "N", min=2)
    everything: bool = option(
        True, "Also let agents learn with all features.", None, "--all-features/--no-all-features"
    )
    tolerance: float | None = option(None, "A loss of return that does not matter.", "X")
    seed: int = option(0, "Same seed, same answer.", "S", min=0)


@dataclass(frozen=True)
class RecommendedFiles:
    """Where the answer is saved."""

    json: JsonOut = None
    plot: Path | None = option(None, "Save a picture of the returns (PNG, SVG or PDF).", "FILE")
    report: Report = None


@running
def recommend(
    learner: LearnerOptions,
    environment: EnvironmentOptions,
    trying: TriedOptions,
    wanted: RecommendedFiles,
    world: Annotated[
        Text, typer.Argument(help="The world: see `policyspace worlds`.", metavar="[WORLD]", show_default=False)
    ] = None,
) -> None:
    """Say which configuration is best for an agent with the space that was identified.

    Agents learn inside the identified features, in many configurations. Where several sets of features are possible, the
    choice is the one that loses least in the worst case.
    """
    if learner.observed and not (world is None and environment.env is None):
        raise InputError("--observed is about the world of the study, found another one named: leave it out.")
    if not learner.observed and (world is None) == (environment.env is None):
        raise InputError("one world is configured: name it, or an environment with --env.")
    if learner.answer is None:
        raise InputError("--from must say what the agent uses: a saved answer, a study, or names of features.")
    check_targets([wanted.plot], wanted.json, [learner.answer], report=wanted.report)
    from policyspace.environments.checks import imported
    from policyspace.recommending import plot_returns
    from policyspace.recommending import recommend as recommended

    place: Any = world if environment.env is None else environment.world()
    learn = None if learner.learn is None else imported(learner.learn, "what learns")
    goal = None if learner.reward is None else imported(learner.reward, "the goal")
    with waiting("agents learn"):
        found = recommended(
            place,
            opened_study(learner.answer) if learner.observed else space_from(learner.answer),
            observed=learner.observed,
            learn=learn,
            goal=goal,
            configurations=trying.configurations,
            refinements=trying.refinements,
            around=trying.around,
            learnings=trying.learnings,
            episodes=trying.episodes,
            learning_steps=learner.learning_steps,
            discount=learner.discount,
            everything=trying.everything,
            tolerance=trying.tolerance,
            seed=trying.seed,
        )
    if wanted.plot is not None:
        plot_returns(found, wanted.plot)
    write_report(found, wanted.report)
    deliver(found.to_json, wanted.json, lambda: show(found, ("chance", "lost")), wanted.plot, wanted.report)
