"""IdentifiedSpace: the sets of groups that an answer leaves possible, whatever made the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

from policyspace.answer import Identification
from policyspace.errors import InputError, nearest
from policyspace.families.base import PolicySpace, Support
from policyspace.safe_io import parse_json, settings_text


@final
@dataclass(frozen=True)
class IdentifiedSpace:
    """What an agent may use: every minimal set of groups that was not rejected.

    Examples
    --------
    >>> space = IdentifiedSpace.of(["speed", "left_sensor"])
    >>> space.union
    ('speed', 'left_sensor')
    >>> space.undecided
    ()
    """

    supports: tuple[tuple[str, ...], ...]
    source: str = "given"
    """What the sets are from, in a few words."""
    exhaustive: bool = True
    """Are these all minimal sets, rather than one of them?"""

    @property
    def union(self) -> tuple[str, ...]:
        """The groups that are in any of the sets."""
        return tuple(dict.fromkeys(name for support in self.supports for name in support))

    @property
    def selected(self) -> tuple[str, ...]:
        """The groups that are in all of them."""
        return tuple(name for name in self.union if all(name in support for support in self.supports))

    @property
    def undecided(self) -> tuple[str, ...]:
        """The groups that are in some of them."""
        return tuple(name for name in self.union if name not in self.selected)

    @classmethod
    def of(cls, answer: Any) -> Self:
        """From an `Identification`, the answer of an agent that was asked, a study's state, JSON of these, or names."""
        if isinstance(answer, IdentifiedSpace):
            return cls(answer.supports, answer.source, answer.exhaustive)
        if isinstance(answer, str | Path):
            path = Path(answer)
            if path.suffix.lower() != ".json":
                raise InputError(
                    f"an answer is a .json file, as `policyspace identify --json` writes it, or names, found '{answer}': "
                    "give the file, or a list of names."
                )
            try:
                return cls._of_plain(parse_json(settings_text(path)), path.name)
            except InputError as error:
                raise InputError(f"{path}: {error}") from error
        if isinstance(answer, Identification):
            return cls(tuple(map(tuple, answer.supports)), "identified", answer.exhaustive)
        if isinstance(answer, Mapping):
            return cls._of_plain(answer, "given")
        if hasattr(answer, "of_verdict"):  # of an agent that was asked
            return cls((tuple(answer.of_verdict("reacts", "barely")),), "asked")
        if hasattr(answer, "status"):  # a study, or rounds
            status = answer.status() if callable(answer.status) else answer.status
            supports = [tuple(support) for support in status.supports or ()] or [tuple(status.selected)]
            return cls(tuple(supports), "a study")
        if isinstance(answer, Sequence) and all(isinstance(name, str) for name in answer):
            return cls((tuple(answer),))
        raise InputError(
            f"an identified space is an answer of identify, of ask or of a study, or a list of names, found "
            f"{type(answer).__name__}: give one of these."
        )

    @classmethod
    def _of_plain(cls, content: Any, source: str) -> Self:
        if not isinstance(content, Mapping):
            raise InputError("expected an answer with 'supports' or 'selected', found none: save it with --json.")
        supports = content.get("supports")
        if supports is None and "selected" in content:
            supports = [[*content["selected"], *content.get("barely", [])]]
        if supports is None and "support" in content:  # of a clone
            supports = [content["support"]]
        if not (isinstance(supports, list) and supports and all(isinstance(one, list) for one in supports)) or not all(
            isinstance(name, str) for one in supports for name in one
        ):
            raise InputError("expected an answer with 'supports' or 'selected', found none: save it with --json.")
        return cls(tuple(map(tuple, supports)), source, content.get("exhaustive", True) is True)

    def checked(self, space: PolicySpace, where: str, what: str) -> Self:
        """The same, whose groups must be those of a policy space, and of which there must be some."""
        known = space.named(space.full_support)
        for name in self.union:
            if name not in known:
                raise InputError(
                    f"the answer is about '{name}', which is no feature or group of {where}: {nearest(name, known)}"
                )
        if not self.union:
            raise InputError(
                f"the answer shows no feature to be used, so there is nothing to {what}: observe more episodes, or name "
                "the features yourself."
            )
        return self

    def indices(self, space: PolicySpace, names: Sequence[str] | None = None) -> Support:
        """Groups by number, with those assumed; by default the union."""
        wanted = set(self.union if names is None else names)
        return frozenset(i for i, group in enumerate(space.groups) if group.assumed or group.name in wanted)
