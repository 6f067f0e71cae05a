"""Climbing an objective of ω inside its bounds, from several starts, keeping the path."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import optax

from policyspace.policies.jax_setup import jax, jnp
from policyspace.worlds.configurable import Array, Configurable, Configuration


@dataclass(frozen=True)
class Box:
    """ω as a vector [p] between bounds, entry after entry of the world's parameters."""

    world: Configurable

    def vector(self, configuration: Configuration) -> Array:
        """ω → [p]."""
        return jnp.concatenate(
            [jnp.ravel(jnp.asarray(configuration[p.name], dtype=float)) for p in self.world.parameters]
        )

    def configuration(self, vector: Array) -> Configuration:
        """[p] → ω."""
        parts, start = {}, 0
        for p in self.world.parameters:
            size = int(np.prod(p.shape, dtype=int))
            parts[p.name] = vector[start : start + size].reshape(p.shape)
            start += size
        return parts

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) [p]."""
        sizes = [int(np.prod(p.shape, dtype=int)) for p in self.world.parameters]
        low, high = ([getattr(p, side) for p in self.world.parameters] for side in ("low", "high"))
        return np.repeat(np.array(low, float), sizes), np.repeat(np.array(high, float), sizes)

    def starts(self, configuration: Configuration, count: int, key: Any, spread: float = 0.1) -> Array:
        """ω itself and `count` − 1 points around it, `spread` of the box away, inside the bounds [count, p]."""
        low, high = self.bounds
        centre = self.vector(configuration)
        noise = jax.random.uniform(key, (count - 1, len(low)), minval=-1.0, maxval=1.0)
        return jnp.concatenate([centre[None], jnp.clip(centre + spread * (high - low) * noise, low, high)])


Evaluate = Callable[[Array], tuple[Array, Any]]
"""An objective at ω [p]: its value, and what else is worth keeping of it."""


def climb(evaluate: Evaluate, starts: Array, low: Array, high: Array, num_updates: int, learning_rate: Any) -> Any:
    """Projected Adam ascent from every start: points [S, U+1, p], values [S, U+1] and what `evaluate` keeps."""
    adam = optax.scale_by_adam(b1=0.9, b2=0.999)
    gradient = jax.value_and_grad(evaluate, has_aux=True)

    def update(carry: Any, _: None) -> Any:
        point, state = carry
        (value, kept), slope = gradient(point)
        # Where the objective has no slope to offer (not finite), the climber stays.
        slope = jnp.where(jnp.isfinite(slope), slope, 0.0)
        step, state = adam.update(slope, state)
        return (jnp.clip(point + learning_rate * step, low, high), state), (point, value, kept)

    def from_one(start: Array) -> Any:
        (last, _), path = jax.lax.scan(update, (start, adam.init(start)), None, length=num_updates)
        value, kept = evaluate(last)
        return jax.tree.map(lambda a, b: jnp.concatenate([a, jnp.asarray(b)[None]]), path, (last, value, kept))

    return jax.lax.map(from_one, starts)
