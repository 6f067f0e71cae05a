"""Which way a parameter reaches an environment: as it is said, or found out, by playing it at both bounds."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from policyspace.environments.checked_environment import CORRECT, CheckedEnvironment, Moment, close
from policyspace.environments.makers import Make
from policyspace.environments.own_code import Blamed
from policyspace.environments.reaching import (
    WAYS,
    complete,
    is_number,
    is_registered,
    made,
    needed_by,
    own_keyword,
    takes_configuration,
    takes_keyword,
    usual,
)
from policyspace.errors import InputError, nearest

PROBES = (180, 3000)
"""Steps that are played at a bound: most parameters show soon, and rare events need many."""

Bounds = Mapping[str, tuple[float, float]]


class Reached(NamedTuple):
    """How a parameter reaches the environment, and whether anything was seen to change."""

    way: str
    seen: bool = True

    @property
    def words(self) -> str:
        """For people."""
        doubt = "" if self.seen else f", as was said, though nothing changed in {PROBES[-1]} random steps"
        return f"reaches the environment by {WAYS[self.way]}{doubt}"


@final
class Probe:
    """An environment that is tried out at the bounds of its parameters; `said` are the ways that the user knows."""

    def __init__(self, make: Make, bounds: Bounds, said: Mapping[str, str]) -> None:
        for name, way in said.items():
            if name not in bounds:
                raise InputError(f"there is no parameter '{name}' to reach: {nearest(name, bounds)}")
            if way not in WAYS:
                raise InputError(f"there is no way '{way}' to reach an environment: {nearest(way, WAYS)}")
        self.make, self.bounds, self.said = make, bounds, said
        self.middle = {name: (low + high) / 2 for name, (low, high) in bounds.items()}
        self.alone = make if self.whole else complete(make, self.middle)

    @cached_property
    def whole(self) -> bool:
        """Whether a function is given the whole configuration: because it is said, or because it needs that."""
        named = "make" in self.said.values()
        if named and is_registered(self.make):
            raise InputError(
                "make(configuration) is a function of yours, found an id of Gymnasium to be reached by 'make': give such a "
                "function as the environment, or leave the way out."
            )
        if not named and not takes_configuration(self.make, self.bounds):
            return False
        for name, way in self.said.items():
            if way != "make":
                raise InputError(
                    f"the function is given the whole configuration, so '{name}' reaches it by 'make', found '{way}': leave "
                    "that out, or give a function whose arguments have defaults."
                )
        return True

    @cached_property
    def example(self) -> Any:
        """One to look at, before anything is played."""
        if self.whole:
            return made(self.make, dict.fromkeys(self.bounds, "make"), self.middle)
        return usual(self.alone)

    @cached_property
    def own(self) -> dict[str, dict[str, Any]]:
        """What the environment itself has for each parameter, of any type, by the ways where that can be read."""
        if self.whole:
            return {name: {} for name in self.bounds}
        with Blamed("the attributes of the environment cannot be read", "correct the environment"):
            attributes = {name: getattr(self.example.unwrapped, name, None) for name in self.bounds}
        return {name: {"keyword": own_keyword(self.alone, name), "attribute": attributes[name]} for name in self.bounds}

    def reached(self) -> dict[str, Reached]:
        """Every parameter: as said, or by the first way that changes what happens."""
        if self.whole:
            return {name: self._tried(name, ["make"]) for name in self.bounds}
        needed = needed_by(self.make)
        for name in needed:
            if self.said.get(name, "keyword") != "keyword":
                raise InputError(
                    f"the function needs its argument '{name}', so that it must come by keyword, found "
                    f"'{self.said[name]}': leave that out, or give the argument a default."
                )
        return {name: self._tried(name, ["keyword"] if name in needed else self._open(name)) for name in self.bounds}

    def _open(self, name: str) -> list[str]:
        """The ways that are open to a name, the most telling first; options cannot be looked up, only tried."""
        self._check_no_truth(name)
        ways = ["keyword"] if takes_keyword(self.alone, name, perhaps=name in self.said) else []
        ways += ["attribute"] if is_number(self.own[name]["attribute"]) else []
        if name not in self.said:
            return [*ways, "options"]
        if (way := self.said[name]) in [*ways, "options"]:
            return [way]
        what = "keyword" if way == "keyword" else "attribute that is a number"
        raise InputError(
            f"'{name}' was said to be {WAYS[way]}, found no such {what} in the environment: check the name, or leave "
            "the way out."
        )

    def _check_no_truth(self, name: str) -> None:
        for way, value in self.own[name].items():
            if isinstance(value, bool | np.bool) and self.said.get(name, way) == way:
                low, high = self.bounds[name]
                raise InputError(
                    f"the parameter '{name}' is a truth in the environment ({value}), found bounds {low:g}:{high:g} of "
                    f"numbers: give a function make(configuration) that sets it, such as configuration['{name}'] > 0.5."
                )

    def _tried(self, name: str, ways: Sequence[str]) -> Reached:
        """The way by which something changes; a way that is said is believed where it surely exists."""
        for steps in PROBES:
            for way in ways:
                if self._changes(name, way, steps):
                    return Reached(way)
        if name in self.said and ways[0] != "options":
            return Reached(ways[0], seen=False)
        low, high = self.bounds[name]
        how = f" (tried: {', '.join(ways)})" if not self.whole else ""
        raise InputError(
            f"the parameter '{name}' changes nothing between {low:g} and {high:g}{how} in {PROBES[-1]} random steps: check "
            "its name, or, if it matters in other places, say how it reaches the environment (by=, --by)."
        )

    def _changes(self, name: str, way: str, steps: int) -> bool:
        low, high = (self._story(name, way, value, steps) for value in self.bounds[name])
        if low == high:
            return False
        if self._story(name, way, self.bounds[name][0], steps) != low:
            raise InputError(
                "the environment plays differently under one seed and one configuration, so it cannot be seen whether "
                f"'{name}' reaches it: draw its random numbers from reset(seed=…)."
            )
        return True

    def _story(self, name: str, way: str, value: float, steps: int) -> list[Any]:
        """What happens at ω under fixed seeds and actions, every number of it in brief; an episode is a third at most."""
        configuration = {**(self.middle if self.whole else {}), name: value}
        to_do = self._to_do(name, way)
        env = made(self.alone, dict.fromkeys(configuration, way), configuration, to_do)
        stage = CheckedEnvironment(env, configuration, to_do)
        env.action_space.seed(0)
        told: list[Any] = []
        done = 0
        while done < steps:
            now, begun = stage.reset(done), done
            told.append(_brief(now))
            while not (now.terminated or now.truncated) and done - begun < steps // 3:
                now, done = stage.step(env.action_space.sample()), done + 1
                told.append(_brief(now))
        close(env)
        return told

    def _to_do(self, name: str, way: str) -> str:
        own = self.own[name].get(way)
        if not is_number(own) or not isinstance(own, int | np.integer):
            return CORRECT
        return (
            f"{CORRECT}; or, if '{name}' must be a whole number there, as {own} is, give a function make(configuration) "
            "that rounds it"
        )


def _brief(now: Moment) -> tuple[int, float, bool]:
    """Every number of a moment, in few."""
    return hash((now.numbers + 0.0).tobytes()), now.reward, now.terminated
