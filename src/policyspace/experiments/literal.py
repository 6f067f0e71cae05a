"""The paper's settings, every constant with the place that states it; where the paper is silent, a guess that says so.

Records of the procedure "literal" are made by these, records of the procedure "ours" by the defaults of this library.
"""

from dataclasses import dataclass
from typing import Any

from policyspace.experiments.scale import Scale

GUESS = "a guess"


@dataclass(frozen=True)
class Stated:
    """A constant, and where the paper states it."""

    value: Any
    where: str = GUESS


@dataclass(frozen=True)
class Literal:
    """What the paper says of one of its experiments; None where it has no such step."""

    runs: Stated
    num_episodes: Stated  # n, on the axis of its figures
    significance: Stated
    learning_steps: Stated
    learning_episodes: Stated
    learning_rate: Stated
    learning_decay: Stated
    learning_start: Stated
    likelihood: Stated
    likelihood_rate: Stated | None = None
    likelihood_steps: Stated | None = None
    likelihood_starts: Stated | None = None  # weights are drawn uniformly from ± these
    num_attempts: Stated | None = None
    penalty: Stated | None = None
    num_updates: Stated | None = None
    configuration_rate: Stated | None = None

    @property
    def learning(self) -> dict[str, Any]:
        """Options of `learn`."""
        return {
            "num_steps": self.learning_steps.value,
            "num_episodes": self.learning_episodes.value,
            "learning_rate": self.learning_rate.value,
            "decay": self.learning_decay.value,
        }

    @property
    def adam(self) -> dict[str, Any] | None:
        """Rate, steps and starts of the fits in the tests; None where they are in closed form."""
        stated = {"rate": self.likelihood_rate, "num_steps": self.likelihood_steps, "spreads": self.likelihood_starts}
        found = {name: one.value for name, one in stated.items() if one is not None}
        return found or None

    @property
    def objective(self) -> dict[str, Any]:
        """Options of the design that climbs C_I: one start, the end of its path, whatever the data can say about it."""
        stated = {"penalty": self.penalty, "num_updates": self.num_updates, "learning_rate": self.configuration_rate}
        return {name: one.value for name, one in stated.items() if one is not None} | {"last_point": True}


def _grid(where: str, **own: Stated) -> Literal:
    """What both grid worlds share."""
    return Literal(
        runs=Stated(25, "captions of Figures 1 and 5"),
        significance=Stated(0.01, where),
        learning_rate=Stated(0.1),
        learning_decay=Stated(1.0),
        learning_start=Stated((0.0, 0.0)),
        num_attempts=Stated(3, where),
        configuration_rate=Stated(0.01),
        **own,
    )


LITERAL = {
    "gridworld": _grid(
        "Appendix C.1",
        num_episodes=Stated((10, 30, 100, 300, 1000)),
        learning_steps=Stated(200, "Appendix C.1"),
        learning_episodes=Stated(250, "Appendix C.1"),
        likelihood=Stated("Adam, all steps, the last point", "Appendix C.1 (Adam); a guess (which point)"),
        likelihood_rate=Stated(0.03, "Appendix C.1"),
        likelihood_steps=Stated(1000, "Appendix C.1"),
        likelihood_starts=Stated((0.0,)),
        penalty=Stated(0.125, "Appendix C.1"),
        num_updates=Stated(150, "Appendix C.1"),
    ),
    "continuous-gridworld": _grid(
        "Appendix C.2",
        num_episodes=Stated((10, 30, 100, 300)),
        learning_steps=Stated(100, "Appendix C.2"),
        learning_episodes=Stated(100, "Appendix C.2"),
        likelihood=Stated("closed form", "Appendix C.2"),
        penalty=Stated(1e-6, "Appendix C.2"),
        num_updates=Stated(100, "Appendix C.2"),
    ),
    "minigolf": Literal(
        runs=Stated(100, "captions of Figures 2 and 7"),
        num_episodes=Stated((10, 30, 100)),
        significance=Stated(0.01, "Appendix C.3"),
        learning_steps=Stated(100, "Appendix C.3"),
        learning_episodes=Stated(100, "Appendix C.3"),
        learning_rate=Stated(0.01),
        learning_decay=Stated(1.0),
        learning_start=Stated((0.0, 0.1)),
        likelihood=Stated("closed form", "Appendix C.3"),
        num_attempts=Stated(10, "Appendix C.3"),
        penalty=Stated(0.25, "Appendix C.3"),
        num_updates=Stated(100, "Appendix C.3"),
        configuration_rate=Stated(0.01),
    ),
    "car": Literal(
        runs=Stated(100, "caption of Figure 3"),
        num_episodes=Stated((10, 30, 100)),
        significance=Stated(0.1, "Appendix C.4"),
        learning_steps=Stated(100, "Appendix C.4"),
        learning_episodes=Stated(50, "Appendix C.4"),
        learning_rate=Stated(0.03),
        learning_decay=Stated(1.0),
        learning_start=Stated((-0.01, 0.01)),
        likelihood=Stated("Adam, the last or the best point", "Appendix C.4 (Adam); a guess, both are shown"),
        likelihood_rate=Stated(0.1, "Appendix C.4"),
        likelihood_steps=Stated(200, "Appendix C.4"),
        likelihood_starts=Stated((0.01, 1.0), "a guess, both are shown"),
    ),
}
"""The experiments by world. Σ = 0.01 in minigolf is read as a variance; full batches and Adam's usual β are guesses."""


def procedures(scale: Scale) -> tuple[str, ...]:
    """By whose settings cells are made: the paper's and ours, or the paper's alone."""
    return ("literal",) if scale.as_published else ("literal", "ours")
