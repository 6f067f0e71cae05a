"""While an agent of stable-baselines3 learns: at which step its policy began to use an input."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from policyspace.asking.agents import as_agent, joined
from policyspace.asking.answer import MATERIAL, AskedGroup, AskOptions, Redraw
from policyspace.asking.inputs import Groups, Inputs, names_of
from policyspace.asking.inside import ask_inside
from policyspace.asking.states import States, environment_id
from policyspace.data.connectors import each_array
from policyspace.environments.watching import finished_frames, stage_of
from policyspace.errors import InputError
from policyspace.runtime import library

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

BaseCallback: Any = library("stable_baselines3.common.callbacks", "agents", "a callback for training").BaseCallback

KEPT = 1000
"""The last observations of the training, in which the policy is asked."""


@final
class EvidenceCallback(BaseCallback):  # type: ignore[misc]  # of a library without types
    """Asks the policy while it learns, and says at which step it began to use each input.

    It asks in the last states of the training itself, changes nothing, and draws no number of the training. The effects go
    to the logger too, and so to TensorBoard, as `ask/NAME`.

    Parameters
    ----------
    every : int, default 10000
        Steps of the training from one time to the next.
    features, groups
        Names of the inputs, and which are read together, as of `policyspace.ask`.
    threshold : float, default 0.01
        The effect from which on an input counts as used.
    budget : int, default 800
        Most questions about each input, each time.
    seed : int, default 0
        Of the questions.

    Examples
    --------
    >>> from policyspace.asking import EvidenceCallback
    >>> from stable_baselines3 import PPO
    >>> evidence = EvidenceCallback(every=256)
    >>> model = PPO("MlpPolicy", "CartPole-v1", n_steps=128, device="cpu").learn(512, callback=evidence)
    >>> evidence.to_frame().columns
    ['step', 'position', 'velocity', 'angle', 'angular_velocity']
    """

    def __init__(
        self,
        every: int = 10_000,
        *,
        features: Sequence[str] | None = None,
        groups: Groups | None = None,
        threshold: float = MATERIAL,
        budget: int = 800,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InputError(f"a policy is asked every so many steps, found every={every!r}: give a whole number.")
        self.every, self.features, self.groups, self.threshold = every, features, groups, threshold
        redraw: tuple[Redraw, ...] = ("any",)
        self.options = AskOptions(redraw, None, 0.05, budget, seed)
        self.history: list[tuple[int, tuple[AskedGroup, ...]]] = []
        """The steps at which it was asked, and what was found."""
        self._seen: list[Any] = []
        self._next = every

    def _on_step(self) -> bool:
        seen = self.locals.get("new_obs")
        if seen is not None:
            self._seen.append(each_array(np.array, seen))
            del self._seen[: -max(KEPT // self.training_env.num_envs, 1)]
        if self.num_timesteps >= self._next and len(self._seen) > 1:
            self._next = self.num_timesteps + self.every
            self._ask()
        return True

    def _on_training_end(self) -> None:
        if len(self._seen) > 1 and (not self.history or self.history[-1][0] < self.num_timesteps):
            self._ask()

    def _ask(self) -> None:
        import torch

        env, policy = self.training_env, self.model.policy
        chances, training = torch.get_rng_state(), policy.training
        observations = joined(self._seen)
        agent = as_agent(self.model)
        frames = finished_frames(stage_of(env).env)
        episodes = np.arange(len(self._seen) * env.num_envs)
        states = States(observations, episodes, frames=frames)
        names = self.features or names_of(environment_id(env), agent.observation_space, frames)
        inputs = Inputs.of(agent.observation_space, features=names, groups=self.groups, frames=frames)
        found, _, stopped = ask_inside(agent, states, inputs, self.options, np.random.default_rng(self.options.seed))
        policy.set_training_mode(training)
        torch.set_rng_state(chances)
        if stopped:
            raise InputError(f"the policy cannot be asked: {stopped}")
        self.history.append((self.num_timesteps, found))
        for group in found:
            if group.effect_any is not None:
                self.logger.record(f"ask/{group.group}", group.effect_any.estimate)

    @property
    def began(self) -> dict[str, int | None]:
        """By input the first step from which on its effect was as large as the threshold; None where it is not at last."""
        found: dict[str, int | None] = {}
        for step, groups in self.history:
            for group in groups:
                material = group.effect_any is not None and group.effect_any.estimate >= self.threshold
                first = found.get(group.group)
                found[group.group] = (step if first is None else first) if material else None
        return found

    def to_frame(self) -> "polars.DataFrame":
        """One row a time when it was asked, one column an input: the effect of any reading."""
        from polars import DataFrame

        names = [group.group for group in self.history[0][1]] if self.history else []
        columns: dict[str, list[float | None]] = {name: [] for name in names}
        for _, groups in self.history:
            for group in groups:
                columns[group.group].append(None if group.effect_any is None else group.effect_any.estimate)
        return DataFrame({"step": [step for step, _ in self.history], **columns})

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the effect of every input against the steps of the training; return the axes."""
        from policyspace.asking.page import training_axes

        return training_axes(self.to_frame(), ax)
