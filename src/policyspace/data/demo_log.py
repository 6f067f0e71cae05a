"""The embedded data set: a simulated driver, made here, with the truth written beside it."""

from dataclasses import replace
from importlib.resources import as_file, files

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.data.readers import read

SEED = 2026
STORY = (
    "A simulated driver chooses to brake, coast or accelerate. Its log holds four sensors, the radio's volume and the "
    "weather.\nWhich of them does it use?"
)
TRUTH = ("speed", "front_sensor", "left_sensor")
ACTIONS = ("brake", "coast", "accelerate")


def make() -> Demonstrations:
    """The log from its seed: 30 episodes of 20 steps of an agent that sees speed, front_sensor and left_sensor only."""
    rng = np.random.default_rng(SEED)
    n = 600
    speed = np.clip(rng.gamma(8.0, 3.0, n), 0, 60)
    front, left = rng.beta(2, 1.5, n), rng.beta(2, 2, n)
    right = np.clip(1.0 - left + rng.normal(0, 0.25, n), 0, 1)  # the two sides of a road go together
    radio = rng.integers(0, 11, n).astype(float)
    weather = rng.choice(["fog", "rain", "sun"], n, p=[0.2, 0.3, 0.5])
    # Against coasting: brake when fast or near, accelerate when slow and free; the left side counts less.
    brake = 0.09 * (speed - 24) - 3.0 * (front - 0.55) - 1.5 * (left - 0.5)
    accelerate = -0.06 * (speed - 24) + 2.5 * (front - 0.55) + 2.5 * (left - 0.5)
    logits = np.stack([brake, np.zeros(n), accelerate], axis=1)
    action = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    import polars

    frame = polars.DataFrame(
        {
            "speed": speed.round(2),
            "front_sensor": front.round(3),
            "left_sensor": left.round(3),
            "right_sensor": right.round(3),
            "radio_volume": radio,
            "weather": weather,
            "action": np.array(ACTIONS)[action],
            "episode": np.arange(n) // 20,
        }
    )
    data = Demonstrations.from_frame(frame, "action", episodes="episode", reference="coast")
    return replace(data, metadata={"truth": list(TRUTH), "seed": SEED, "story": STORY})


def load() -> Demonstrations:
    """The log as it is shipped."""
    with as_file(files("policyspace").joinpath("data/driver.csv")) as path:
        return read(path)
