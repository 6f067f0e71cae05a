"""User-defined policies: a JAX function log_prob(params, state, action) over any pytree of parameters."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from policyspace.data.validation import as_names, translate_constructor
from policyspace.errors import InputError, nearest
from policyspace.families.base import Array, Group, Key, PolicySpace, check_disjoint

REST = "rest"
"""The group of the parameters that no group names; assumed to be used."""


@final
@translate_constructor
class CustomPolicy(PolicySpace):
    """π_θ by its log-density for one state and one action, with θ the leaves of `params`, one after the other.

    Groups are named by path: every leaf is a group ("layer/weights"), or `groups` maps names to paths, where
    "inputs[:, 2]" picks entries of a leaf as NumPy would and a prefix ("layer") takes all leaves below it.

    Parameters
    ----------
    log_prob : callable (params, features [q], action) -> scalar
        log π_θ(a|s), written with JAX.
    params : pytree of arrays
        Where fits start, and the shape of θ.
    features : sequence of str
        Names of the features.
    actions : sequence of str, default ("action",)
        Names of the components of a continuous action, or labels.
    groups : mapping of names to paths, optional
        What is tested together.
    assume : sequence of str
        Groups that are taken to be used, and not tested.
    fixed : float or pytree, default 0
        What a parameter is worth that the agent does not use.
    sample : callable (key, params, features) -> action, optional
        Draws an action, for tests that simulate.

    Raises
    ------
    InputError
        If a path names no parameter, or two groups share one.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import policyspace
    >>> def log_prob(params, state, action):
    ...     return -0.5 * (action[0] - params["gain"] * jnp.tanh(state[0]) - params["tilt"] * state[1]) ** 2
    >>> space = policyspace.CustomPolicy(log_prob, {"gain": 0.0, "tilt": 0.0}, ["slope", "wind"])
    >>> [group.name for group in space.groups]
    ['gain', 'tilt']
    """

    discrete = None

    def __init__(
        self,
        log_prob: Callable[[Any, Array, Array], Array],
        params: Any,
        features: Sequence[str],
        actions: Sequence[str] = ("action",),
        groups: Mapping[str, Sequence[str] | str] | None = None,
        assume: Sequence[str] = (),
        fixed: Any = 0.0,
        sample: Callable[[Any, Any, Array], Array] | None = None,
    ) -> None:
        from jax.flatten_util import ravel_pytree

        from policyspace.families.jax_backend import jax, jnp

        self.feature_names, self.action_names = tuple(features), tuple(actions)
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=jnp.float64), params)
        flat, self._unravel = ravel_pytree(params)
        self.start = np.asarray(flat)
        self._log_prob, self._sample = log_prob, sample
        paths, position = {}, 0
        for path, leaf in jax.tree_util.tree_leaves_with_path(params):
            name = "/".join(str(getattr(part, "key", getattr(part, "name", getattr(part, "idx", "")))) for part in path)
            paths[name or "params"] = np.arange(position, position + leaf.size).reshape(leaf.shape)
            position += leaf.size
        self.paths: dict[str, np.ndarray] = paths
        self.groups = self._groups(groups, tuple(assume))
        self.fixed = self._fixed(fixed)

    def unflatten(self, theta: Array) -> Any:
        """θ [d] as the pytree that the user's function takes."""
        return self._unravel(theta)

    def log_prob(self, theta: Array, features: Array, actions: Array) -> Array:
        """The user's function, over a batch of states and actions."""
        from policyspace.families.jax_backend import jax, jnp

        params = self._unravel(jnp.asarray(theta))
        one = lambda state, action: self._log_prob(params, state, action)  # noqa: E731
        if jnp.ndim(features) == 1:
            return jax.vmap(one)(jnp.asarray(features)[None], jnp.asarray(actions)[None])[0]
        return jax.vmap(one)(jnp.asarray(features), jnp.asarray(actions))

    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """Actions by the user's `sample(key, params, state)`, where one was given."""
        from policyspace.families.jax_backend import jax, jnp

        if self._sample is None:
            raise InputError("this policy was made without sample=…, so that actions cannot be simulated from it.")
        if isinstance(key, np.random.Generator):
            key = jax.random.key(int(key.integers(2**31)))
        params, features = self._unravel(jnp.asarray(theta)), jnp.asarray(features)
        if features.ndim == 1:
            return self._sample(key, params, features)
        one = lambda k, state: self._sample(k, params, state)  # noqa: E731
        return jax.vmap(one)(jax.random.split(key, len(features)), features)

    def named(self, support: Any) -> list[str]:
        """The groups of a support by name; what no group names goes without saying."""
        return [name for name in super().named(support) if name != REST]

    def _groups(self, given: Mapping[str, Any] | None, assume: tuple[str, ...]) -> tuple[Group, ...]:
        if given is not None and not isinstance(given, Mapping):
            raise InputError(
                f"groups must be a table of names and paths, found {given!r:.40}: see {{'x': ['inputs[:, 0]']}}."
            )
        wanted = {name: [name] for name in self.paths} if given is None else given
        members: dict[str, list[int]] = {}
        for name, inside in wanted.items():
            paths = as_names(inside, f"group '{name}'")
            indices = [i for path in paths for i in self._resolve(path)]
            members[name] = sorted(set(indices))
        check_disjoint(members)
        for name in assume:
            if name not in members:
                raise InputError(f"assume names '{name}', which is no group: {nearest(name, members)}")
        groups = [Group(name, tuple(indices), name in assume) for name, indices in members.items()]
        taken = {i for indices in members.values() for i in indices}
        rest = tuple(i for i in range(len(self.start)) if i not in taken)
        if rest and REST in members:
            raise InputError(f"a group is named '{REST}', the name of what no group holds: rename it.")
        return (*groups, Group(REST, rest, assumed=True)) if rest else tuple(groups)

    def _resolve(self, path: str) -> list[int]:
        """The parameters behind a path, a prefix of paths, or a path with an index."""
        name, bound_statistics, index = path.partition("[")
        below = [where for leaf, where in self.paths.items() if leaf == name or leaf.startswith(name + "/")]
        if not below:
            raise InputError(f"there is no parameter '{name}': {nearest(name, self.paths)}")
        if not bound_statistics:
            return [int(i) for where in below for i in where.ravel()]
        try:
            # NumPy's basic indexing from text: numbers and slices between commas.
            parts: list[Any] = []
            for part in index.removesuffix("]").split(","):
                numbers = [int(n) if n.strip() else None for n in part.split(":")]
                parts.append(slice(*numbers) if ":" in part else numbers[0])
            chosen = self.paths[name][tuple(parts)]
        except (KeyError, IndexError, ValueError) as error:
            raise InputError(f"'{path}' picks nothing from a parameter of shape {below[0].shape}.") from error
        return [int(i) for i in np.atleast_1d(chosen).ravel()]

    def _fixed(self, fixed: Any) -> np.ndarray:
        values = np.zeros(len(self.start))
        if isinstance(fixed, Mapping):
            for path, value in fixed.items():
                values[self._resolve(str(path))] = value
        else:
            values[:] = np.asarray(fixed, dtype=np.float64)
        return values
