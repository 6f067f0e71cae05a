"""What these states can tell: smallest eigenvalue, collinear groups, and the smallest effect that would show."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from policyspace.errors import InputError
from policyspace.fits.base import Likelihood, LinearLikelihood
from policyspace.fits.design import Design
from policyspace.fits.law import ReferenceLaw
from policyspace.policies.base import ExponentialFamily
from policyspace.policies.groups import INTERCEPT, Group


@dataclass(frozen=True)
class Dependence:
    """Groups of which each is, on these states, a combination of the others."""

    groups: tuple[str, ...]
    exchangeable: bool  # any one of them does for all

    def __str__(self) -> str:
        if INTERCEPT in self.groups and len(self.groups) == 2:
            name = next(group for group in self.groups if group != INTERCEPT)
            return f"{name} is constant in this data: it cannot be told apart from the intercept, and says nothing."
        if len(self.groups) == 1:
            return f"{self.groups[0]} has a constant or redundant column, which is not counted."
        names = f"{', '.join(self.groups[:-1])} and {self.groups[-1]}"
        if self.exchangeable:
            none = "neither" if len(self.groups) == 2 else "none of them"
            return f"{names} cannot be told apart in this data: Rule 2 will select {none}, use Rule 1 (combinatorial)."
        return (
            f"{names} are linearly dependent in this data, each a combination of the others: Rule 2 will select none "
            "of them, use Rule 1 (combinatorial)."
        )


def smallest_eigenvalue(information: np.ndarray) -> float:
    """λ̂_min(F̂), zero where the policy space is not identifiable on these states (Lemma 4.1)."""
    return max(float(np.linalg.eigvalsh(information)[0]), 0.0)


def as_linear_likelihood(likelihood: Likelihood, what: str) -> LinearLikelihood:
    """The same likelihood, which must be that of a linear policy for what is asked."""
    if not isinstance(likelihood, LinearLikelihood):
        raise InputError(
            f"{what} for linear policies, found {type(likelihood.space).__name__}: ask about one of these."
        )
    return likelihood


def dependent_groups(likelihood: Likelihood) -> list[Dependence]:
    """Groups of a linear policy that cannot be told apart; none are looked for in other spaces."""
    return dependences(likelihood.space, likelihood.design) if isinstance(likelihood, LinearLikelihood) else []


def dependences(space: ExponentialFamily, design: Design) -> list[Dependence]:
    """The sets of groups that these states cannot tell apart, from the null space of the feature matrix."""
    found = []
    offset, q = int(space.intercept), len(space.column_names)
    owner = {i % q - offset: group for group in space.groups for i in group.indices}
    for column in np.flatnonzero(design.constant).tolist():
        alone = len({i % q for i in owner[column].indices}) == 1
        name = _feature(owner[column], space, column) if alone else owner[column].name
        names = (INTERCEPT, name) if alone and space.intercept else (name,)
        found.append(Dependence(names, exchangeable=True))
    null = design.null_space()
    linked = np.abs(null @ null.T) > 1e-6
    # A constant column is a null direction of its own, however the basis mixes it with others.
    linked[design.constant] = linked[:, design.constant] = False
    seen: set[int] = set()
    for start in np.flatnonzero(linked.any(axis=1) & ~design.constant).tolist():
        if start in seen:
            continue
        component = _component(linked, start)
        seen |= component
        found.append(_dependence(space, design, component, offset, q))
    return found


def _feature(group: Group, space: ExponentialFamily, column: int) -> str:
    """A group by its feature's name when it is one parameter of several of that feature."""
    return space.feature_names[column] if "[" in group.name else group.name


def _component(linked: np.ndarray, start: int) -> set[int]:
    component, frontier = {start}, [start]
    while frontier:
        new = set(np.flatnonzero(linked[frontier.pop()]).tolist()) - component
        component |= new
        frontier.extend(new)
    return component


def _dependence(space: ExponentialFamily, design: Design, component: set[int], offset: int, q: int) -> Dependence:
    members: dict[str, set[int]] = {}
    rows: dict[str, set[int]] = {}
    whole = True
    for group in space.groups:
        columns = {i % q - offset for i in group.indices}
        if inside := columns & component:
            # Single parameters of one feature share its fate: name the feature.
            name = space.feature_names[min(inside)] if len(inside) == 1 and "[" in group.name else group.name
            members.setdefault(name, set()).update(inside)
            rows.setdefault(name, set()).update(i // q for i in group.indices)
            whole = whole and inside == columns
    ranks = {design.rank(frozenset(columns)) for columns in members.values()}
    # A group that reaches further, by other columns or other actions, is more than a substitute.
    alike = whole and all(of == set.union(*rows.values()) for of in rows.values())
    return Dependence(tuple(members), exchangeable=alike and ranks == {design.rank(frozenset(component))})


def detectable_effect(
    likelihood: Likelihood,
    inverse: tuple[np.ndarray, np.ndarray],
    group: Group,
    significance: float,
    power: float = 0.8,
) -> float:
    """The smallest ‖θ_g‖ that the test of a group would have shown with this power, whatever its direction.

    n·θ_gᵀ([F⁻¹]_gg)⁻¹θ_g must reach the non-centrality at which P(λ > c) is `power`; infinite where F is singular.
    `inverse` is what `inverse_of` gives.
    """
    indices = list(group.indices)
    needed = noncentrality_for_power(likelihood.law, significance, len(indices), power)
    return float(np.sqrt(needed * worst_variance(*inverse, group) / likelihood.total_weight))


def inverse_information(information: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """F⁺ [d, d], and the coordinates [d] that take part in a direction which changes nothing on these states."""
    scale = np.sqrt(np.diag(information))
    scale[scale == 0] = 1.0
    eigenvalues, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    real = eigenvalues > 1e-11
    hidden = np.abs(vectors[:, ~real]).max(axis=1, initial=0.0) > 1e-5
    return (vectors[:, real] / eigenvalues[real]) @ vectors[:, real].T / np.outer(scale, scale), hidden


@runtime_checkable
class Standardised(Protocol):
    """A likelihood that knows F̂ in the coordinates of its standardised design."""

    design: Design

    def standardised_information(self) -> np.ndarray:
        """F̂ [d, d]."""


def inverse_of(likelihood: Likelihood) -> tuple[np.ndarray, np.ndarray]:
    """`inverse_information` of a likelihood; by standardised features, for a large mean is no collinearity.

    A feature like a year or a time stamp is nearly a multiple of the constant: its raw F is singular to all digits.
    """
    if not isinstance(likelihood, Standardised):
        return inverse_information(likelihood.information())
    return raw_inverse(likelihood.standardised_information(), likelihood.design)


def raw_inverse(standardised: np.ndarray, design: Design) -> tuple[np.ndarray, np.ndarray]:
    """`inverse_information` in raw coordinates, from F̂ in those of the standardised design."""
    inverse, hidden = inverse_information(standardised)
    back = to_raw_coordinates(design, len(inverse))
    # An intercept is hidden with what it can take over from.
    return back.T @ inverse @ back, (np.abs(back).T @ hidden) > 0


def to_raw_coordinates(design: Design, size: int) -> np.ndarray:
    """J [d, d] with θ_raw = Jᵀ θ_standardised."""
    return design.to_raw(np.eye(size).reshape(size, design.num_rows, -1)).reshape(size, size)


def worst_variance(inverse: np.ndarray, hidden: np.ndarray, group: Group) -> float:
    """The largest eigenvalue of [F⁻¹]_gg: the variance, times n, of the direction of a group that shows least."""
    indices = list(group.indices)
    return np.inf if hidden[indices].any() else float(np.linalg.eigvalsh(inverse[np.ix_(indices, indices)])[-1])


@lru_cache(maxsize=256)  # every unit of a report asks the same
def noncentrality_for_power(law: ReferenceLaw, significance: float, degrees_of_freedom: int, power: float) -> float:
    """The non-centrality at which the test of that level has that power."""
    low, high = 0.0, 16.0
    while law.power(high, significance, degrees_of_freedom) < power and high < 1e9:
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        if law.power(middle, significance, degrees_of_freedom) < power:
            low = middle
        else:
            high = middle
    return high
