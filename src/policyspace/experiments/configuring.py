"""An experiment on configuring has three parts: by episodes of a round, at equal totals, and one agent's whole story."""

from dataclasses import dataclass
from typing import Any

from policyspace.experiments.configuring_panels import panels
from policyspace.experiments.panel import Panel, Scale
from policyspace.experiments.records import Cell, Record

SIGNIFICANCE = 0.01

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


@dataclass(frozen=True)
class Configuring:
    """The settings of one world: plain data from which its cells follow."""

    experiment: str
    title: str
    runs: int
    episodes: tuple[int, ...]  # the n of one data set, on the paper's axis
    quick_episodes: tuple[int, ...]  # those of the miniature
    totals: tuple[int, ...]  # of all episodes that are paid for
    paper: dict[str, Any]  # the options of the paper's objective
    num_attempts: int  # for each feature, N_conf
    published_attempts: int  # the same in the paper
    published_learning: dict[str, Any]  # the paper's literal settings of the agent
    story: dict[str, Any]  # controls and first configuration of the agent whose rounds are drawn
    story_episodes: int

    def cells(self, scale: Scale) -> list[Cell]:
        """With and without configuring by episodes of a round, all designs at equal totals, one agent's story.

        The parts differ in what one round costs, never in the agents.
        """
        seeds = range(scale.num_runs(self.runs, 1))
        episodes = self.quick_episodes if scale.quick else self.episodes
        totals = self.totals[1:2] if scale.quick else self.totals
        attempts = 1 if scale.quick else self.published_attempts if scale.as_published else self.num_attempts
        designs = ("none", "uniform", "d-optimal") if scale.quick else tuple(COMPARED)
        # As published, the last point of one path is taken whatever the data can say about it.
        objective = self.paper | ({"last_point": True} if scale.as_published else {})
        configured = {"design": "paper", "design_options": objective, "num_attempts": attempts}
        still = {"design": "none", "design_options": {}, "num_attempts": 0}
        settings = [
            {"part": "episodes", "num_episodes": n, "seed": seed, **way}
            for n in episodes
            for way in (still, configured)
            for seed in seeds
        ]
        settings += [self._at_total(total, design, seed) for total in totals for design in designs for seed in seeds]
        story = configured | self.story | {"num_episodes": self.story_episodes, "keep_rounds": True}
        return [Cell(self.experiment, self._of(scale) | setting) for setting in [*settings, {"part": "story", **story}]]

    def analyse(self, records: list[Record]) -> list[Panel]:
        """α̂ and β̂ by episodes, at equal totals, and the panels of the story."""
        return panels(self.experiment, self.title, records)

    def _of(self, scale: Scale) -> dict[str, Any]:
        """What all cells share; as published, δ is not split over rounds and the agent learns as the paper says."""
        common = {"world": self.experiment, "significance": SIGNIFICANCE, "seed": 0}
        if not scale.as_published:
            return common
        return common | {"paper_rule": True, "learning": self.published_learning}

    def _at_total(self, total: int, design: str, seed: int) -> dict[str, Any]:
        """The rounds of a design at a total."""
        return {"part": "totals", "seed": seed, "design": design, "design_options": COMPARED[design]} | rounds_at(
            total, design
        )


def rounds_at(total: int, design: str) -> dict[str, Any]:
    """Without configuration all episodes are one round, at full δ; the paper's begins where the agent is, and re-designs
    three times; others have as many rounds as the total pays for, the first at the flat configuration if there is one.
    """
    if design in ROUNDS:
        return {"budget": total, "num_attempts": ROUNDS[design]}
    return {"budget": total, "flat_first": True}
