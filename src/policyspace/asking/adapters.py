"""Agents of other libraries: stable-baselines3, torch, cleanrl, RLlib, ONNX and scikit-learn."""

import tempfile
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, final

import numpy as np
from gymnasium import spaces

from policyspace.asking.agents import (
    ONE_LINE,
    AskedAgent,
    FunctionAgent,
    as_array,
    law_of_answer,
    law_of_distribution,
    normal_law,
)
from policyspace.asking.law import Law
from policyspace.cloning import Clone
from policyspace.data.connectors import each_array, num_rows
from policyspace.data.files import located
from policyspace.environments.saved_agents import needs_trust, weights_in
from policyspace.errors import InputError
from policyspace.runtime import library
from policyspace.safe_io import guarded, size_of


class Kind(NamedTuple):
    """A kind of agent: how it is recognised, and what makes an agent of (agent, spaces, deterministic) from it."""

    recognises: Callable[[Any], bool]
    make: Callable[[Any, Any, Any, bool], AskedAgent]


# -- stable-baselines3 and sb3-contrib.


def fits(name: str, own: Any, given: Any) -> None:
    """The spaces that an agent was made for are those of the environment; their shapes, that is."""
    if isinstance(own, spaces.Dict) and isinstance(given, spaces.Dict) and set(own.spaces) == set(given.spaces):
        for key in own.spaces:
            fits(name, own[key], given[key])
    elif type(own) is not type(given) or (own.shape != given.shape and sorted(own.shape) != sorted(given.shape)):
        raise InputError(f"{name} was made for {own}, found {given}: use its environment, with the same wrappers.")
    elif getattr(own, "n", 0) != getattr(given, "n", 0) if isinstance(own, spaces.Discrete) else False:
        raise InputError(f"{name} was made for {own.n} actions or levels, found {given.n}: use its environment.")


@final
class StableBaselinesAgent(AskedAgent):
    """A model or a policy of stable-baselines3 or sb3-contrib, with a recurrent network too."""

    def __init__(self, model: Any, observation_space: Any, action_space: Any, deterministic: bool) -> None:
        self.model, self.policy = model, getattr(model, "policy", model)
        name = type(model).__name__
        for own, given in zip(
            (self.policy.observation_space, self.policy.action_space), (observation_space, action_space), strict=True
        ):
            if given is not None:
                fits(name, own, given)
        super().__init__(
            name, observation_space or self.policy.observation_space, self.policy.action_space, deterministic
        )
        self.policy.set_training_mode(False)
        self.has_memory = hasattr(self.policy, "lstm_actor")
        self.normalised = getattr(model, "_last_original_obs", None) is not None
        self.actor: Any = getattr(self.policy, "actor", None)
        if not hasattr(self.policy, "get_distribution") and not hasattr(self.actor, "get_action_dist_params"):
            self.deterministic = self.action_type == "continuous" or deterministic or not self._chance

    @property
    def _chance(self) -> float:
        """Of an action that is drawn from all, as a DQN explores."""
        return float(getattr(self.model, "exploration_rate", 0.0))

    def _law(self, observations: Any, memory: Any) -> tuple[Law, Any]:
        import torch

        n, policy = num_rows(observations), self.policy
        with torch.no_grad():
            if self.has_memory:
                seen, _ = policy.obs_to_tensor(observations)
                before = tuple(torch.as_tensor(part.swapaxes(0, 1).copy(), device=policy.device) for part in memory)
                found, after = policy.get_distribution(seen, before, torch.zeros(n, device=policy.device))
                return self._of(found, n), tuple(part.cpu().numpy().swapaxes(0, 1) for part in after)
            if hasattr(policy, "get_distribution"):
                seen, _ = policy.obs_to_tensor(observations)
                return self._of(policy.get_distribution(seen), n), None
            if hasattr(self.actor, "get_action_dist_params"):
                seen, _ = policy.obs_to_tensor(observations)
                mean, log_sd, more = self.actor.get_action_dist_params(seen)
                found = self.actor.action_dist.proba_distribution(mean, log_sd, **more).distribution
                return normal_law(as_array(found.mean), as_array(found.stddev), n, self, squashed=True), None
        chosen = self.policy.predict(observations, deterministic=True)[0]
        if self.action_type == "continuous" or self.deterministic:
            return law_of_answer(chosen, n, self), None
        return Law.of_choices(chosen - getattr(self.action_space, "start", 0), self.choices, self._chance), None

    def _of(self, found: Any, n: int) -> Law:
        inner = getattr(found, "distribution", None) or found.distributions
        if isinstance(self.action_space, spaces.Box):
            squashed = bool(self.policy.squash_output)
            return normal_law(as_array(inner.mean), as_array(inner.stddev), n, self, squashed=squashed)
        return law_of_distribution(inner, n, self)

    def start(self, n: int) -> Any:
        """Zeros, as an episode starts with."""
        if not self.has_memory:
            return None
        layers, _, size = self.policy.lstm_hidden_state_shape
        return tuple(np.zeros((n, layers, size), dtype=np.float32) for _ in range(2))


STABLE_BASELINES = Kind(
    lambda agent: hasattr(getattr(agent, "policy", agent), "obs_to_tensor") and hasattr(agent, "predict"),
    StableBaselinesAgent,
)


# -- Modules of torch, and agents as cleanrl writes them.


def tensors(module: Any, observations: Any) -> Any:
    """On the device and with the precision of the module; whole numbers of a category stay whole."""
    import torch

    one = next(iter(module.parameters()), torch.zeros(1))

    def moved(array: Any) -> Any:
        array = np.asarray(array)
        whole = array.dtype.kind in "iu" and array.dtype != np.uint8
        return torch.as_tensor(array, device=one.device, dtype=torch.long if whole else one.dtype)

    return each_array(moved, observations)


@final
class TorchAgent(AskedAgent):
    """A module of torch that returns logits, a mean, (mean, standard deviation), or a distribution."""

    def __init__(self, module: Any, observation_space: Any, action_space: Any, deterministic: bool) -> None:
        super().__init__(type(module).__name__, observation_space, action_space, deterministic)
        self.module = module.eval()

    def _law(self, observations: Any, memory: Any) -> tuple[Law, Any]:
        import torch

        with torch.no_grad():
            found = self.module(tensors(self.module, observations))
        if isinstance(found, Mapping):
            parts = [found[name] for name in ("logits", "probs", "action", "mean", "loc") if name in found]
            spread = [found[name] for name in ("std", "scale", "sd") if name in found]
            if not parts:
                raise InputError(f"a module must return logits, or mean and std, found {', '.join(found)}: {ONE_LINE}.")
            found = (parts[0], spread[0]) if spread else parts[0]
        return law_of_answer(found, num_rows(observations), self, logits=True), None


TORCH = Kind(lambda agent: hasattr(agent, "state_dict") and hasattr(agent, "forward"), TorchAgent)


@final
class CleanRLAgent(AskedAgent):
    """Anything with `get_action_and_value(x, action)`: its log probability of chosen actions shows the whole law."""

    def __init__(self, module: Any, observation_space: Any, action_space: Any, deterministic: bool) -> None:
        super().__init__(type(module).__name__, observation_space, action_space, deterministic)
        self.module = module.eval()
        self.precise = deepcopy(self.module).double() if self.action_type == "continuous" else self.module
        if self.action_type == "discrete" and len(self.choices) > 1:
            raise InputError(f"of {self.name} one choice can be asked for, found {len(self.choices)}: {ONE_LINE}.")

    def _law(self, observations: Any, memory: Any) -> tuple[Law, Any]:
        import torch

        seen, n = tensors(self.precise, observations), num_rows(observations)

        def log_density(actions: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                given = torch.as_tensor(actions, device=next(self.precise.parameters()).device)
                return as_array(self.precise.get_action_and_value(seen, given)[1]).reshape(n)

        if self.action_type == "discrete":
            table = np.exp(np.stack([log_density(np.full(n, a)) for a in range(self.choices[0])], axis=1))
            return Law("categorical", (table / table.sum(axis=1, keepdims=True),)), None
        d = self.num_actions
        at_zero = log_density(np.zeros((n, d)))
        up, down = (
            np.stack([log_density(side * np.tile(row, (n, 1))) for row in np.eye(d)], axis=1) for side in (1.0, -1.0)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            precision = 2 * at_zero[:, None] - up - down  # the log density of a normal is a parabola
            mean, sd = (up - down) / (2 * precision), precision**-0.5
        drawn = np.random.default_rng(0).uniform(-1, 1, (n, d))
        expected = -0.5 * ((drawn - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
        if not np.allclose(expected.sum(axis=1), log_density(drawn), rtol=1e-3, atol=1e-3):
            raise InputError(f"{self.name} must draw independent normal numbers, found another density: {ONE_LINE}.")
        return normal_law(mean, sd, n, self), None


CLEANRL = Kind(lambda agent: hasattr(agent, "get_action_and_value") and hasattr(agent, "parameters"), CleanRLAgent)


# -- RLlib's modules.


@final
class RLlibAgent(AskedAgent):
    """An RLModule, with a memory too; its continuous actions are brought to the ends of the space as RLlib does."""

    def __init__(self, module: Any, observation_space: Any, action_space: Any, deterministic: bool) -> None:
        super().__init__(
            type(module).__name__,
            observation_space or getattr(module, "observation_space", None),
            action_space or getattr(module, "action_space", None),
            deterministic,
        )
        self.module = module
        self.has_memory = bool(module.is_stateful())

    def _law(self, observations: Any, memory: Any) -> tuple[Law, Any]:
        import torch

        n = num_rows(observations)
        batch: dict[str, object] = {"obs": tensors(self.module, self._as_it_sees(observations))}
        if self.has_memory:
            batch["obs"] = each_array(lambda seen: seen[:, None], batch["obs"])
            batch["state_in"] = each_array(torch.as_tensor, memory)
        with torch.no_grad():
            found = self.module.forward_inference(batch)
        after = each_array(lambda part: part.cpu().numpy(), found["state_out"]) if self.has_memory else None
        if "action_dist_inputs" not in found:
            return law_of_answer(as_array(found["actions"]), n, self), after
        inputs = found["action_dist_inputs"].reshape(n, -1)
        kind = self.module.get_inference_action_dist_cls()
        more = {} if len(self.choices_or_one) == 1 else {"input_lens": list(self.choices_or_one)}
        given = kind if not hasattr(kind, "from_logits") else kind.from_logits(inputs, **more)
        inner: Any = getattr(given, "_dist", None) or [one._dist for one in given._cats]
        if self.action_type == "discrete":
            return law_of_distribution(inner, n, self), after
        low, high = self.action_space.low.ravel(), self.action_space.high.ravel()
        mean, sd = as_array(inner.mean).reshape(n, -1), as_array(inner.stddev).reshape(n, -1)
        if "Squashed" in kind.__name__:
            return normal_law(mean, sd, n, self, squashed=True), after
        if np.isfinite(low).all() and np.isfinite(high).all():  # −1 … 1 is brought to low … high, and clipped there
            mean, sd = low + (mean + 1) / 2 * (high - low), sd * (high - low) / 2
        return normal_law(mean, sd, n, self), after

    @property
    def choices_or_one(self) -> tuple[int, ...]:
        """Of continuous actions there is one."""
        return self.choices if self.action_type == "discrete" else (1,)

    def _as_it_sees(self, observations: Any) -> Any:
        """RLlib shows a category as zeros and a one."""
        if isinstance(self.observation_space, spaces.Discrete):
            return np.eye(self.observation_space.n, dtype=np.float32)[np.asarray(observations)]
        return observations

    def start(self, n: int) -> Any:
        """The module's own."""
        if not self.has_memory:
            return None
        return each_array(
            lambda part: np.stack([as_array(part).astype(np.float32)] * n), self.module.get_initial_state()
        )


RLLIB = Kind(lambda agent: hasattr(agent, "forward_inference"), RLlibAgent)


# -- ONNX.

ONNX_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}


@final
class ONNXAgent(AskedAgent):
    """A session of onnxruntime whose first output is actions, logits, probabilities, or a mean (and a deviation)."""

    def __init__(self, session: Any, observation_space: Any, action_space: Any, deterministic: bool) -> None:
        super().__init__("the ONNX model", observation_space, action_space, deterministic)
        self.session, self.inputs = session, session.get_inputs()
        if len(self.inputs) > 1 and not isinstance(observation_space, spaces.Dict):
            names = ", ".join(one.name for one in self.inputs)
            raise InputError(
                f"{self.name} must have one input, or those of the observation, found {names}: {ONE_LINE}."
            )
        self.one_by_one = self.inputs[0].shape[:1] == [1]

    def _law(self, observations: Any, memory: Any) -> tuple[Law, Any]:
        n = num_rows(observations)
        if not self.one_by_one:
            return self._asked(observations, n), None
        rows = (each_array(lambda array, i=i: array[i : i + 1], observations) for i in range(n))
        return Law.joined([self._asked(row, 1) for row in rows]), None

    def _asked(self, observations: Any, n: int) -> Law:
        feed = {}
        for one in self.inputs:
            array = observations[one.name] if isinstance(observations, Mapping) else observations
            shape = [size for size in one.shape[1:] if isinstance(size, int)]
            array = np.asarray(array, dtype=ONNX_TYPES.get(one.type, np.float32))
            feed[one.name] = array.reshape(n, *shape) if len(shape) == len(one.shape) - 1 else array
        found = self.session.run(None, feed)
        several = self.action_type == "continuous" and len(found) > 1 and np.shape(found[1]) == np.shape(found[0])
        several = several and bool((np.asarray(found[1]) > 0).all())
        return law_of_answer(tuple(found[:2]) if several else found[0], n, self, logits=True)


ONNX = Kind(lambda agent: hasattr(agent, "run") and hasattr(agent, "get_inputs"), ONNXAgent)


# -- scikit-learn, and whatever has `predict`.


@final
class SklearnAgent(AskedAgent):
    """A classifier, by its probabilities, or a regressor."""

    def __init__(self, model: Any, observation_space: Any, action_space: Any, deterministic: bool) -> None:
        name = type(model).__name__
        wide = getattr(model, "n_features_in_", None)
        super().__init__(name, observation_space, action_space, deterministic)
        numbers = int(np.prod(self.observation_space.shape or (1,)))
        if wide is not None and wide != numbers:
            raise InputError(
                f"{name} was fitted to {wide} features, found observations of {numbers} numbers: correct it."
            )
        self.model = model

    def _law(self, observations: Any, memory: Any) -> tuple[Law, Any]:
        n = num_rows(observations)
        rows = np.asarray(observations).reshape(n, -1)
        if not hasattr(self.model, "predict_proba"):
            return law_of_answer(self.model.predict(rows), n, self), None
        found, classes = self.model.predict_proba(rows), self.model.classes_
        several = isinstance(found, list)
        tables = []
        for part, known, size in zip(
            found if several else [found], classes if several else [classes], self.choices, strict=True
        ):
            place = np.asarray(known).astype(np.int64) - int(np.min(getattr(self.action_space, "start", 0)))
            if (place < 0).any() or (place >= size).any():
                raise InputError(f"{self.name} predicts {list(known)}, found actions {self.action_space}: correct it.")
            tables.append(np.zeros((n, size)))
            tables[-1][:, place] = part
        return Law("categorical", tuple(tables)), None


SKLEARN = Kind(lambda agent: hasattr(agent, "predict") and hasattr(agent, "get_params"), SklearnAgent)


# -- Clones.


@final
class ClonedAgent(AskedAgent):
    """A clone, whose distribution is that of its policy."""

    def __init__(self, clone: Clone, observation_space: Any, action_space: Any, deterministic: bool) -> None:
        super().__init__("Clone", observation_space, action_space, deterministic)
        self.clone, names = clone, clone.space.action_names
        labels = clone.space.action_type.num_labels is not None
        if labels != isinstance(action_space, spaces.Discrete) or (not labels and len(names) != self.num_actions):
            kind = f"one of the actions {', '.join(names)}" if labels else f"the numbers {', '.join(names)}"
            raise InputError(
                f"the clone returns {kind}, found {action_space}: use the environment that its log is from."
            )
        self.places = [self.action_names.index(name) if name in self.action_names else -1 for name in names]
        if labels and -1 in self.places:
            missing = names[self.places.index(-1)]
            raise InputError(
                f"the clone returns '{missing}', which is no action of {action_space}: use its environment."
            )

    def _law(self, observations: Any, memory: Any) -> tuple[Law, Any]:
        rows, space, theta = self.clone.rows_of_batch(observations), self.clone.space, self.clone.policy.theta
        if space.action_type.num_labels is None:
            mean, variance = space.mean(theta, rows), space.variance(theta, rows)
            return normal_law(np.asarray(mean), np.sqrt(np.asarray(variance)), len(rows), self), None
        table = np.zeros((len(rows), self.num_actions))
        table[:, self.places] = self.clone.probabilities(rows)
        return Law("categorical", (table,)), None


CLONE = Kind(lambda agent: isinstance(agent, Clone), ClonedAgent)


# -- Anything with `predict`.


def _predicts(agent: Any, observation_space: Any, action_space: Any, deterministic: bool) -> AskedAgent:
    """Of an object with `predict(observation, …)`, by what it answers and whether that is a pair with a state."""

    def asked(observation: Any, memory: Any) -> tuple[Any, Any]:
        kept = {} if memory is None else {"state": memory, "episode_start": np.zeros(1, dtype=bool)}
        found = agent.predict(observation, deterministic=deterministic, **kept)
        return found if isinstance(found, tuple) and len(found) == 2 else (found, None)

    name = type(agent).__name__
    first = FunctionAgent(asked, observation_space, action_space, name=name, deterministic=deterministic)
    space = deepcopy(first.observation_space)
    space.seed(0)
    if asked(space.sample(), None)[1] is not None:
        return first
    return FunctionAgent(
        lambda observation: asked(observation, None)[0],
        observation_space,
        action_space,
        name=name,
        deterministic=deterministic,
    )


PREDICTS = Kind(lambda agent: callable(getattr(agent, "predict", None)), _predicts)


# -- Files.


def from_onnx(path: Path, trust: bool = False) -> Any:
    """A session; the file is opened in a process of its own before: it is data, but large data can be asked for."""
    runtime = library("onnxruntime", "agents", "a model in ONNX")
    if not trust:
        with located(path), tempfile.TemporaryFile() as content:
            guarded("policyspace.asking.adapters:try_onnx", path.resolve(), [path], content)
    return runtime.InferenceSession(str(path))


def try_onnx(source: str, content: BinaryIO) -> None:
    """Whether a model can be opened, and asked about one observation of zeros, as far as its inputs tell their shapes."""
    runtime = library("onnxruntime", "agents", "a model in ONNX")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(source, options)
    feed = {}
    for one in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in one.shape]
        feed[one.name] = np.zeros(shape, dtype=ONNX_TYPES.get(one.type, np.float32))
    try:
        session.run(None, feed)
    except Exception as error:  # the shapes may be others
        if "alloc" in str(error):
            raise MemoryError from error


def from_torch(path: Path, trust: bool = False) -> Any:
    """A module saved by torch.jit, or whole by torch.save."""
    torch = library("torch", "agents", "a module of torch")
    size_of(path)
    if not trust:
        found = weights_in(path, path, "is a program of TorchScript, or a whole module of torch")
    else:
        try:
            return torch.jit.load(str(path), map_location="cpu")
        except RuntimeError:
            found = torch.load(path, map_location="cpu", weights_only=False)
    if isinstance(found, Mapping):
        raise InputError(
            f"{path}: expected a whole module, found weights alone: load them into it, and give the module."
        )
    return found


def from_joblib(path: Path, trust: bool = False) -> Any:
    """An estimator."""
    if not trust:
        raise needs_trust(path, "is a pickle")
    return library("joblib", "sklearn", "an estimator in a file").load(path)


def from_rllib(path: Path, trust: bool = False) -> Any:
    """The module in a checkpoint of RLlib, of an algorithm or its own."""
    if not trust:
        raise needs_trust(path, "is a checkpoint of RLlib with pickles in it")
    home = library("ray.rllib.core.rl_module.rl_module", "agents", "an agent of RLlib").RLModule
    inside = path / "learner_group" / "learner" / "rl_module" / "default_policy"
    return home.from_checkpoint(str((inside if inside.is_dir() else path).resolve()))
