"""`policyspace reward`: what the agent of a log is after."""

from dataclasses import dataclass
from pathlib import Path

from policyspace.cli.clone import From, space_from
from policyspace.cli.console import JsonOut, Report, check_targets, deliver, running, show, waiting, write_report
from policyspace.cli.options import Names, SampleOptions, Text, option, split
from policyspace.errors import InputError
from policyspace.runtime import check_seed


@dataclass(frozen=True)
class RewardOptions:
    """What the reward may be made of, and how its weights are found."""

    reward_features: Names = option(
        None, "Columns that the reward of a step may be made of.", "COL,COL[,…]", show_default=False
    )
    answer: From = None
    discount: float = option(0.99, "Of the agent's return.", "γ")
    signed: bool = option(False, "Weights of either sign, instead of positive ones that sum to 1.")
    by: Text = option(None, "A recorded column that says which configuration an episode is from.", "COL")
    coordinates: str = option(
        "identified",
        "Where the gradient must vanish; all is wrong if the agent does not control all.",
        "identified|all",
    )
    bootstrap: int = option(200, "How often episodes are drawn anew, to say what has a gradient.", "N", min=20)
    seed: int = option(0, "Same seed, same answer.", "S", min=0)


@dataclass(frozen=True)
class RewardFiles:
    """Where the answer is saved."""

    json: JsonOut = None
    plot: Path | None = option(None, "Save a picture of the weights (PNG, SVG or PDF).", "FILE")
    report: Report = None


@running
def reward(source: SampleOptions, how: RewardOptions, wanted: RewardFiles) -> None:
    """Recover the weights of an agent's reward, by the policy gradient in the coordinates that it controls.

    An agent that has learned well has no gradient in what it controls; in what it does not control it may have one.
    """
    from policyspace.rewards import reward_of, with_rewards

    check_seed(how.seed)
    names = split(how.reward_features)
    if not names:
        raise InputError(
            "--reward-features must name the columns that the reward may be made of, found none: name two."
        )
    check_targets([wanted.plot], wanted.json, (*source.inputs, how.answer), report=wanted.report)
    with waiting("recovering the reward"):
        pair = with_rewards(source.request(), names)
        found = reward_of(
            [pair], space_from(how.answer), how.discount, how.signed, how.by,
            how.coordinates,  # type: ignore[arg-type]  # any text, which is checked there
            how.bootstrap, how.seed,
        )  # fmt: skip
    if wanted.plot is not None:
        from policyspace.report.use_pages import plot_weights

        plot_weights(found, wanted.plot)
    write_report(found, wanted.report)
    deliver(found.to_json, wanted.json, lambda: show(found, found.table().columns[1:]), wanted.plot, wanted.report)
