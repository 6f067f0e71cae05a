"""What a study in a file and a configured run in memory have in common: the rounds so far, and how they are shown."""

from abc import abstractmethod
from typing import TYPE_CHECKING

from policyspace.configuration.status import Status
from policyspace.shown import Shown
from policyspace.table import Table

if TYPE_CHECKING:
    from policyspace.worlds.configurable import Configurable

COLUMNS = ("round", "where", "episodes", "newly selected", "open")


class Rounds(Shown):
    """The rounds of one agent in one world."""

    @property
    @abstractmethod
    def world(self) -> "Configurable":
        """The world that the agent is in."""

    @abstractmethod
    def status(self) -> Status:
        """What is decided, what is open, and the rounds behind it."""

    @property
    def sentence(self) -> str:
        """The answer so far in one plain sentence."""
        return self.status().sentence

    def table(self) -> Table:
        """One row a round: how the world was configured, for how long, what was found, what is open."""
        rows = [
            (
                str(r.number + 1),
                r.how,
                str(r.num_episodes),
                ", ".join(r.newly_selected) or "nothing",
                ", ".join(r.undecided) or "nothing",
            )
            for r in self.status().rounds
        ]
        return Table(COLUMNS, rows)

    def notes(self) -> list[str]:
        """What is promised for all rounds together, the warnings, and what comes next."""
        status = self.status()
        notes = [status.schedule.promise(str(status.settings.get("design", "given")))]
        if status.finished is not None:
            notes.append(f"Nothing is left to ask: {status.finished}.")
        elif status.request is not None:
            notes.append(f"Asked and not yet reported: round {status.request.number + 1}.")
        return notes + [f"Warning: {warning}" for r in status.rounds for warning in r.warnings]
