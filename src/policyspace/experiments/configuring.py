"""An experiment on configuring has four parts: by episodes of a round, at equal totals, whole stories, and other guesses."""

from dataclasses import dataclass
from typing import Any

from policyspace.experiments.literal import LITERAL, Literal, procedures
from policyspace.experiments.records import Cell
from policyspace.experiments.scale import Scale

COMPARED: dict[str, dict[str, Any]] = {
    "none": {},
    "uniform": {},
    "paper": {"joint": True},
    "d-optimal": {},
    "noncentrality": {},
}
"""The designs compared at equal totals; the paper's objective asks for all undecided units together there."""
ROUNDS = {"none": 0, "paper": 3}
"""Rounds after the first one at equal totals, where they are not planned from the total."""
STILL = {"design": "none", "design_options": {}, "num_attempts": 0}
"""No configuration."""
DEFAULT = {"design": "d-optimal", "design_options": {}, "num_attempts": 3}
"""How this library configures where nobody says otherwise."""
STORIES = 10
"""Agents of the paper's example, that learn and act by other chances; the first is drawn."""
STORY_ATTEMPTS = 10
"""Rounds of our design in a story, which ends before them where all is selected."""
GUESS_EPISODES, GUESS_RUNS = 100, 10
"""Where guesses are varied: episodes of a round, and agents."""


@dataclass(frozen=True)
class Configuring:
    """The settings of one world: plain data from which its cells follow."""

    experiment: str
    quick_episodes: tuple[int, ...]  # n of the miniature
    totals: tuple[int, ...]  # of all episodes that are paid for
    story: dict[str, Any]  # controls and first configuration of the agent whose rounds are drawn
    story_episodes: int
    guesses: dict[str, dict[str, dict[str, Any]]]  # other values where the paper is silent, by what is guessed

    @property
    def stated(self) -> Literal:
        """The paper's settings."""
        return LITERAL[self.experiment]

    def cells(self, scale: Scale) -> list[Cell]:
        """By both procedures, with and without configuring by episodes of a round, and the story of the paper's example; by
        the literal one, with other guesses, too; by ours, all designs at equal totals.

        The parts differ in what one round costs, never in the agents.
        """
        settings = [one for procedure in procedures(scale) for one in self._by_episodes(scale, procedure)]
        if not scale.as_published:
            totals = self.totals[1:2] if scale.quick else self.totals
            designs = ("none", "uniform", "d-optimal") if scale.quick else tuple(COMPARED)
            settings += [
                self._shared(scale, "ours", seed) | self._at_total(total, design)
                for total in totals
                for design in designs
                for seed in self._seeds(scale)
            ]
        return [Cell(self.experiment, setting) for setting in settings]

    def _by_episodes(self, scale: Scale, procedure: str) -> list[dict[str, Any]]:
        literal = procedure == "literal"
        attempts = {"num_attempts": 1 if scale.quick else self.stated.num_attempts and self.stated.num_attempts.value}
        printed = {"design": "paper", "design_options": self.stated.objective, **attempts}
        settings = [
            self._shared(scale, procedure, seed) | {"part": "episodes", "num_episodes": n, **way}
            for n in (self.quick_episodes if scale.quick else self.stated.num_episodes.value)
            for way in (STILL, printed if literal else DEFAULT)
            for seed in self._seeds(scale)
        ]
        designed = DEFAULT | {"num_attempts": 1 if scale.quick else STORY_ATTEMPTS}
        way = printed if literal else designed
        story = {"part": "story", **way, **self.story, "num_episodes": self.story_episodes, "keep_rounds": True}
        settings += [self._shared(scale, procedure, seed) | story for seed in range(scale.num_runs(STORIES, 1))]
        return settings + ([] if scale.quick or not literal else self._guessed(scale, printed))

    def _guessed(self, scale: Scale, printed: dict[str, Any]) -> list[dict[str, Any]]:
        """The literal procedure with one of its guesses changed, on the first of its agents."""
        base = [self._shared(scale, "literal", seed) for seed in range(scale.num_runs(GUESS_RUNS, 1))]
        return [
            _with(shared | {"part": "guesses", "guess": name, "num_episodes": GUESS_EPISODES, **way}, other)
            for name, other in self.guesses.items()
            for way in (STILL, printed)
            for shared in base
        ]

    def _seeds(self, scale: Scale) -> range:
        return range(scale.num_runs(self.stated.runs.value, 1))

    def _shared(self, scale: Scale, procedure: str, seed: int) -> dict[str, Any]:
        """What all cells of a procedure share; by the paper's the agent learns and is fitted as that says.

        In a miniature all agents learn as the paper's do, which takes least.
        """
        significance = self.stated.significance.value
        common = {"procedure": procedure, "world": self.experiment, "significance": significance, "seed": seed}
        if procedure == "literal":
            return common | {"learning": self.stated.learning, "adam": self.stated.adam}
        return common | ({"learning": self.stated.learning} if scale.quick else {})

    def _at_total(self, total: int, design: str) -> dict[str, Any]:
        """The rounds of a design at a total."""
        return {"part": "totals", "design": design, "design_options": COMPARED[design]} | rounds_at(total, design)


def _with(setting: dict[str, Any], other: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A setting with some options of some of its parts changed; what it does not have is left out."""
    return setting | {name: setting[name] | options for name, options in other.items() if setting.get(name)}


def rounds_at(total: int, design: str) -> dict[str, Any]:
    """Without configuration all episodes are one round, at full δ; the paper's begins where the agent is, and re-designs
    three times; others have as many rounds as the total pays for, the first at the flat configuration if there is one.
    """
    if design in ROUNDS:
        return {"budget": total, "num_attempts": ROUNDS[design]}
    return {"budget": total, "flat_first": True}
