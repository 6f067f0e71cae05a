"""Every constant of the paper's settings, and where it states them, as a panel."""

from dataclasses import fields, replace
from typing import Any

from policyspace.experiments.literal import GUESS, LITERAL, Literal, Stated
from policyspace.experiments.records import Record
from policyspace.results.panel import Panel

OF_GRIDS = (
    ("controlled", "a random set of features", "Section 6.1, Appendix C.2"),
    ("chance of a feature to be in it", "½", GUESS),
    ("Adam's β", "0.9 and 0.99 in learning, 0.9 and 0.999 elsewhere", GUESS),
    ("likelihood batches", "all pairs in every step", GUESS),
)
ALSO = {
    "gridworld": (
        *OF_GRIDS,
        ("first configuration", "logits 1, but for one of each coordinate, drawn uniformly, which is 5", GUESS),
        ("tested", "a feature, its three weights together; single weights in gridworld-weights", GUESS),
    ),
    "continuous-gridworld": (
        *OF_GRIDS[:3],
        ("first configuration", "means uniform on (−2, 2)", GUESS),
        ("variances of the starts", "0.2 of the agent, 0.4 of the goal", GUESS),
        ("tested", "a feature, its two weights together", GUESS),
    ),
    "minigolf": (
        (
            "Σ of the policy",
            "0.01, read as a variance; in minigolf-curve and minigolf-strategies as a deviation, too",
            GUESS,
        ),
        ("chance of a feature to be controlled, where they are random", "½", GUESS),
        ("Adam's β", "0.9 and 0.99 in learning, 0.9 and 0.999 elsewhere", GUESS),
        ("episodes observed before a putter is chosen", "100", GUESS),
        ("putters compared", "12 to 15 lengths from 1 to 15, means of 10 curves", GUESS),
    ),
    "car": (
        ("Adam's β", "0.9 and 0.99 in learning, 0.9 and 0.999 in the fits", GUESS),
        ("likelihood batches", "all pairs in every step", GUESS),
        ("starts of the fits", "drawn for every set of sensors apart", GUESS),
    ),
}
"""Settings beside those of `Literal`: what, which, and where the paper says so."""


def settings_panels(
    experiment: str, world: str, records: list[Record], num_episodes: tuple[int, ...] | None = None
) -> list[Panel]:
    """Beside results of the literal procedure, every constant of it and where the paper states it.

    An experiment may have other numbers of episodes than the paper's figure of its world, or none.
    """
    if records[0].setting.get("procedure") != "literal":
        return []
    stated = LITERAL[world]
    if num_episodes is not None:
        stated = replace(stated, num_episodes=Stated(num_episodes))
    own = [(one.name, getattr(stated, one.name)) for one in fields(Literal) if getattr(stated, one.name) != Stated(())]
    rows: list[tuple[str, ...]] = [
        (name.replace("_", " "), _words(said.value), said.where) for name, said in own if said is not None
    ]
    rows += ALSO[world]
    guesses = sum(row[-1].startswith(GUESS) for row in rows)
    return [
        Panel(
            f"{experiment}-settings",
            "The literal settings, and where the paper states them",
            "Which of these settings are the paper's, and which are guesses where it is silent?",
            "our own",
            f"{len(rows) - guesses} of {len(rows)} are stated in the paper, {guesses} are guesses.",
            None,
            ("setting", "value", "stated in"),
            rows,
        )
    ]


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
