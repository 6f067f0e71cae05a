"""Clones: a policy inside the identified space that plays, and what leaving features out costs or gains on held-out rows."""

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack, final

import numpy as np

from policyspace.data.connectors import OBSERVATION, each_array, flatten
from policyspace.data.request import Request
from policyspace.data.sample import Sample
from policyspace.data.validation import explain_arguments, translate_keywords
from policyspace.display import Answer, TextTable, listed_names, plain_data, remembering_its_call
from policyspace.errors import InputError, number_of, reason_of
from policyspace.families.base import Policy as PolicyOfSpace
from policyspace.families.base import PolicySpace, Support
from policyspace.families.likelihood import Likelihood
from policyspace.families.registry import likelihood_of, recorded_space
from policyspace.identification import SourceOptions, bind, identify_in, request_of
from policyspace.identified import IdentifiedSpace
from policyspace.inference.base import TestOptions
from policyspace.runtime import (
    check_limit,
    check_seed,
    counted,
    library,
    object_at,
    say_progress,
    single_threaded_blas,
)
from policyspace.safe_io import open_file, parse_json, read_archive, replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from policyspace.safe_io import JSON

# -- What is fitted: penalised maximum likelihood inside a support, and how good it is on rows that it has not seen.

PENALTIES = tuple(float(p) for p in np.geomspace(1e-2, 1e4, 9))
"""That are tried: the precision of a Normal prior on weights of standardised features, in units of the action's noise."""

PENALTIES_OF_NETWORKS = (0.3, 3.0, 30.0)
"""Each fit of a network takes a second."""

UNPENALISED = 1e-6
"""As good as no penalty, and yet finite on separated data."""

LARGEST = 1e100
"""Far beyond what leaves nothing of a weight."""

LASSO_STEPS = 40
"""Of the lasso, each a ridge fit whose penalties are those of the step before divided by the weights that it left."""

VANISHED = 1e-4
"""A weight of a standardised feature that counts as zero."""

Method = Literal["ridge", "none", "lasso", "shrunk"]

Undecided = Literal["auto", "shrink", "drop"]
"""What becomes of features without evidence, which the agent may use all the same."""

SHRUNK = 10.0
"""So many times the penalty of the others is that of features without evidence, where they are kept."""


def penalised(likelihood: Likelihood, support: Support, penalty: float, method: Method = "ridge") -> PolicyOfSpace:
    """The policy inside Θ_I that maximises log L(θ) − ½·penalty·‖z‖², or of the lasso log L(θ) − penalty·‖z‖₁.

    "shrunk": in the whole space, with a larger penalty of what is outside of I.
    """
    if method == "shrunk":
        space = likelihood.space
        outside = ~space.free_mask(support)
        return likelihood.shrunken_policy(space.full_support, np.where(outside, SHRUNK * penalty, penalty))
    if method != "lasso":
        return likelihood.shrunken_policy(support, UNPENALISED if method == "none" else penalty)
    linear = likelihood.as_linear("the lasso is")
    # |z| ≤ ½(z²/|z₀| + |z₀|): each ridge fit raises the objective of the lasso.
    weights = np.full(likelihood.space.num_parameters, penalty)
    policy = likelihood.shrunken_policy(support, weights)
    for _ in range(LASSO_STEPS):
        before = linear.standardised_weights(policy.theta)
        policy = likelihood.shrunken_policy(support, penalty / np.maximum(np.abs(before), VANISHED))
        if np.abs(linear.standardised_weights(policy.theta) - before).max() < VANISHED:
            break
    return policy


def episode_folds(sample: Sample, count: int, seed: int) -> np.ndarray:
    """The fold of each row [n]: whole episodes, or else subjects, or else stretches of rows, drawn at random."""
    units = sample.episodes if sample.episodes is not None else sample.subjects
    if units is None:
        units = np.arange(sample.num_rows) * min(10 * count, sample.num_rows) // sample.num_rows
    number = int(units.max()) + 1
    if number < 2:
        raise InputError(
            "held-out episodes need at least two episodes, found one: record more, or give a penalty (penalty=)."
        )
    folds = np.arange(number) % min(count, number)
    return np.asarray(np.random.default_rng(seed).permutation(folds)[units])


def row_losses(policy: PolicyOfSpace, sample: Sample) -> np.ndarray:
    """−log π(a|s) of every row [n]."""
    return -policy.log_probs(sample.features, sample.actions)


@final
@dataclass(frozen=True)
class HeldOutLoss:
    """How badly a way of cloning predicts the actions of episodes that it has not seen: the mean −log π(a|s)."""

    name: str
    support: tuple[str, ...]
    """The groups that it may use; of a space that is identified anew in each part, those of the clone."""
    loss: float
    more: float
    """How much more than the clone's."""
    error: float
    """The standard error of that difference, over episodes."""


# -- The clone itself.

FILES = (".npz", ".safetensors")

FORMAT = "policyspace clone 1"


@final
@dataclass(frozen=True)
class Clone(Answer):
    """A policy inside the identified space, which plays, and how well it predicts held-out episodes.

    It acts as an agent of stable-baselines3 does, by `predict`, and can be watched and asked.

    Examples
    --------
    >>> import numpy as np, policyspace
    >>> states = np.random.default_rng(0).normal(size=(300, 2))
    >>> actions = states[:, 0] + 0.1 * np.random.default_rng(1).normal(size=300)
    >>> made = policyspace.clone(states, actions, features=["speed", "noise"])
    >>> made.support
    ('speed',)
    >>> made.predict([2.0, 100.0], deterministic=True)[0].round(1)
    array([2.])
    """

    page: ClassVar[str] = "policyspace.report.use_pages:clone_page"
    ruled: ClassVar[bool] = True
    policy: PolicyOfSpace = field(repr=False)
    support: tuple[str, ...]
    """The groups that it uses."""
    penalty: float
    losses: tuple[HeldOutLoss, ...] = ()
    """Of the clone, first, and of other ways; none where they were not compared."""
    path: tuple[tuple[float, float], ...] = ()
    """Every penalty that was tried, and its loss on held-out episodes."""
    num_rows: int = 0
    num_episodes: int | None = None
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """The one-hot features of each category."""
    warnings: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Groups without evidence that it uses all the same, under a larger penalty, for held-out episodes need them."""
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False, compare=False)
    made_by: str = ""

    # -- As an agent that plays.

    @property
    def space(self) -> PolicySpace:
        """The policy space; parameters outside the support have their fixed values."""
        return self.policy.space

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What an observation holds, in this order; what is not in the support makes no difference."""
        return self.space.feature_names

    def set_random_seed(self, seed: int) -> None:
        """Seed the chances of its actions."""
        check_seed(seed)
        self.rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """The action in one state or in several, and the state of a memory, which it has none of."""
        rows, several = self._rows(observation)
        actions = self._greedy(rows) if deterministic else self.policy.sample(self.rng, rows)
        found = self._as_actions(actions)
        return (found if several else found[0]), state

    def sample(self, observations: Any, seed: int | None = None) -> Any:
        """Actions drawn in one state or in several; with a seed the same ones every time."""
        rng = self.rng if seed is None else np.random.default_rng(seed)
        rows, several = self._rows(observations)
        found = self._as_actions(self.policy.sample(rng, rows))
        return found if several else found[0]

    def log_probability(self, observations: Any, actions: Any) -> np.ndarray:
        """log π(a|s) [n] of actions by their labels or their numbers."""
        rows, several = self._rows(observations)
        given = np.asarray(actions)
        if not several:
            given = given[None]
        kind = self.space.action_type
        found = kind.encode(given if kind.num_labels is None else np.array([_label(a) for a in given.reshape(-1)]))
        if len(found) != len(rows):
            raise InputError(f"there must be one action for each state, found {len(found)} and {len(rows)}.")
        return self.policy.log_probs(rows, found)

    def probabilities(self, observations: Any) -> np.ndarray:
        """Of every label in every state [n, k], in the order of `space.action_names`."""
        if self.space.action_type.num_labels is None:
            raise InputError("probabilities are of discrete actions, found continuous ones: take log_probability.")
        mean = self.space.mean(self.policy.theta, self._rows(observations)[0])
        assert mean is not None
        return np.column_stack([mean, 1 - mean.sum(axis=1)])

    def mean_action(self, observations: Any) -> np.ndarray:
        """The mean action in every state [n, k], of actions that are numbers."""
        if self.space.action_type.num_labels is not None:
            raise InputError("a mean is of actions that are numbers, found choices: take probabilities.")
        return np.asarray(self.space.mean(self.policy.theta, self._rows(observations)[0]))

    def _rows(self, observation: Any) -> tuple[np.ndarray, bool]:
        """Rows of features [n, q] from observations, and whether there were several."""
        width = len(self.feature_names)
        if not isinstance(observation, Mapping | tuple):
            found = np.asarray(observation, dtype=np.float64)
            if found.shape[-1:] == (width,) and found.ndim in (1, 2):
                return np.atleast_2d(found), found.ndim == 2
        return self.rows_of_batch(each_array(lambda array: np.asarray(array)[None], observation)), False

    def rows_of_batch(self, observations: Any) -> np.ndarray:
        """Rows of features [n, q] from arrays [n, …], or dicts and tuples of these, as an environment shows them."""
        columns, inputs = flatten(OBSERVATION, observations), self._inputs
        if len(columns) != len(inputs):
            raise InputError(
                f"a state has the {len(inputs)} inputs {listed_names([name for name, _ in inputs])}, found {len(columns)} "
                "numbers: give them in this order, or use the environment that the log is from, with the same wrappers."
            )
        parts: list[np.ndarray] = []
        for (name, levels), column in zip(inputs, columns, strict=True):
            labels = [f"{name}={_label(value)}" for value in column.values] if levels else []
            parts += [np.array([label == level for label in labels], dtype=np.float64) for level in levels]
            parts += [] if levels else [np.asarray(column.values, dtype=np.float64)]
        return np.column_stack(parts)

    @property
    def _inputs(self) -> list[tuple[str, tuple[str, ...]]]:
        """The numbers and categories that the features were made of, with the features of each category."""
        block_of = {name: block for block, names in self.blocks.items() for name in names}
        names = dict.fromkeys(block_of.get(name, name) for name in self.feature_names)
        return [(name, tuple(self.blocks.get(name, ()))) for name in names]

    def _greedy(self, rows: np.ndarray) -> np.ndarray:
        """The most probable label, or the mean action."""
        mean = self.space.mean(self.policy.theta, rows)
        assert mean is not None
        if self.space.action_type.num_labels is None:
            return mean
        return np.column_stack([mean, 1 - mean.sum(axis=1)]).argmax(axis=1)

    def _as_actions(self, actions: np.ndarray) -> np.ndarray:
        """Labels that are whole numbers as such, others as text; numbers as they are."""
        names = self.space.action_names
        if self.space.action_type.num_labels is None:
            return np.asarray(actions)
        whole = all(name.lstrip("-").isdigit() for name in names)
        return np.array([int(name) for name in names] if whole else names)[actions]

    # -- As an answer.

    @property
    def sentence(self) -> str:
        """What it uses, and how much better or worse it predicts than a clone with all features."""
        unused = [name for name in self.space.named(self.space.full_support) if name not in self.support]
        shown = [name for name in self.support if name not in self.kept] or ["nothing"]
        parts = [f"The clone uses {listed_names(shown)}" + (f", not {listed_names(unused)}" if unused else "")]
        if self.kept:
            parts.append(
                f"and, under a larger penalty, {listed_names(self.kept)}, which the log does not show to be used"
            )
        rival = next((loss for loss in self.losses if loss.name == "all features, ridge"), None)
        if rival is not None and (unused or self.kept):
            own = f"held-out loss {self.losses[0].loss:.3f}"
            clear = abs(rival.more) > 2 * rival.error
            word = ("lower than" if rival.more > 0 else "higher than") if clear else "like"
            parts.append(f"{own}, {word} the {rival.loss:.3f} of all features")
        return "; ".join(parts) + "."

    def table(self) -> TextTable:
        """One row for each way of cloning that was compared."""
        rows = [
            (one.name, f"{one.loss:.4f}", "–" if i == 0 else f"{one.more:+.4f} ± {2 * one.error:.4f}")
            for i, one in enumerate(self.losses)
        ]
        return TextTable(("way", "held-out loss", "more than the clone"), rows)

    def notes(self) -> list[str]:
        """What must be read with the table."""
        episodes = "" if self.num_episodes is None else f" of {number_of(self.num_episodes, 'episode')}"
        lines = [f"{self.num_rows} rows{episodes}, a {FAMILY_NAMES[str(self.space.describe()['family'])]} policy."]
        how = "chosen by held-out episodes" if self.path else "as given"
        lines.append(f"Penalty {self.penalty:.3g} on squared weights of standardised features, {how}.")
        if self.losses:
            lines.append(
                "Loss: mean −log probability of the actions of episodes that were left out, ± two standard errors."
            )
        return lines + [f"Warning: {warning}" for warning in self.warnings]

    def to_dict(self) -> "dict[str, JSON]":
        """All but the weights, which `save` keeps."""
        return {
            "answer": self.sentence,
            "support": list(self.support),
            "kept": list(self.kept),
            "features": list(self.feature_names),
            "actions": list(self.space.action_names),
            "penalty": self.penalty,
            "losses": [plain_data(asdict(loss)) for loss in self.losses],
            "path": plain_data([list(pair) for pair in self.path]),
            "num_rows": self.num_rows,
            "num_episodes": self.num_episodes,
            "blocks": {name: list(inside) for name, inside in self.blocks.items()},
            "warnings": list(self.warnings),
        }

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the losses with their intervals into the axes, or into those of a new figure of pyplot; return them."""
        axes: Axes = object_at("policyspace.report.use_pages:loss_axes")(self, ax)
        return axes

    # -- As a file.

    def save(self, path: str | Path) -> Path:
        """Write it to a .npz or a .safetensors file: numbers and a header in JSON, nothing that could run."""
        target = Path(path)
        if target.suffix.lower() not in FILES:
            raise InputError(f"{target}: a clone is saved as {' or '.join(FILES)}: choose another name.")
        space = self.space
        header = {
            "format": FORMAT,
            "policy": space.describe(),
            "groups": [{"name": g.name, "indices": list(g.indices), "assumed": g.assumed} for g in space.groups],
            **self.to_dict(),
        }
        arrays = {"theta": np.asarray(self.policy.theta, dtype="<f8"), "fixed": np.asarray(space.fixed, dtype="<f8")}
        text = json.dumps(plain_data(header), ensure_ascii=False, allow_nan=False)
        with replacing(target) as out:
            if target.suffix.lower() == ".npz":
                np.savez(out, header=np.array(text), **arrays)  # type: ignore[arg-type]
            else:  # a length, a header in JSON, and the bytes of the arrays
                table: dict[str, object] = {"__metadata__": {"header": text}}
                start = 0
                for name, array in arrays.items():
                    end = start + array.nbytes
                    table[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [start, end]}
                    start = end
                head = json.dumps(table, ensure_ascii=False).encode()
                head += b" " * (-len(head) % 8)
                out.write(struct.pack("<Q", len(head)) + head + b"".join(array.tobytes() for array in arrays.values()))
        return target

    def to_onnx(self, path: str | Path) -> Path:
        """Write the policy as an ONNX model: from `observation` [n, q] to `probabilities` [n, k], or to `mean` [n, k]."""
        onnx = library("onnx", "onnx", "writing an ONNX model")
        target = Path(path)
        if target.suffix.lower() != ".onnx":
            raise InputError(f"{target}: an ONNX model is saved as .onnx: choose another name.")
        helper, numpy_helper, kind = onnx.helper, onnx.numpy_helper, onnx.TensorProto.FLOAT
        nodes, weights, value = [], [], "observation"
        for i, (operation, matrices) in enumerate(_layers(self.policy)):
            names = [f"{operation}_{i}_{j}" for j in range(len(matrices))]
            made = [np.asarray(m, dtype=np.float32) for m in matrices]
            weights += [numpy_helper.from_array(m, name) for m, name in zip(made, names, strict=True)]
            more = {"axis": -1} if operation == "Softmax" else {}
            nodes.append(helper.make_node(operation, [value, *names], [f"value_{i}"], **more))
            value = f"value_{i}"
        output = "mean" if self.space.action_type.num_labels is None else "probabilities"
        nodes.append(helper.make_node("Identity", [value], [output]))
        graph = helper.make_graph(
            nodes,
            "clone",
            [helper.make_tensor_value_info("observation", kind, ["n", len(self.feature_names)])],
            [helper.make_tensor_value_info(output, kind, ["n", len(self.space.action_names)])],
            weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        for name, listed in (("features", self.feature_names), ("actions", self.space.action_names)):
            entry = model.metadata_props.add()
            entry.key, entry.value = name, json.dumps(list(listed), ensure_ascii=False)
        onnx.checker.check_model(model)
        with replacing(target) as out:
            out.write(model.SerializeToString())
        return target


FAMILY_NAMES = {
    "gaussian": "Gaussian linear", "boltzmann": "softmax linear", "poisson": "Poisson", "choice": "choice",
    "negative-binomial": "negative binomial", "ordered": "ordered logit",
    "gaussian-network": "Gaussian network", "boltzmann-network": "softmax network",
}  # fmt: skip
"""In words."""


def _label(value: Any) -> str:
    """A label as logs write it: whole numbers without a point."""
    number = value.item() if hasattr(value, "item") else value
    return str(int(number)) if isinstance(number, float) and number.is_integer() else str(number)


def _layers(policy: PolicyOfSpace) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The operations of ONNX that make probabilities or means of observations, each with its matrices."""
    space = policy.space
    *inner, (matrix, bias) = _affine(policy)
    for weights, own in inner:
        yield "Gemm", [weights.T, own]
        yield {"tanh": "Tanh", "relu": "Relu"}[str(space.describe()["activation"])], []
    labels = space.action_type.num_labels
    if labels is not None and len(matrix) < labels:  # the reference has no weights
        matrix, bias = np.vstack([matrix, np.zeros(matrix.shape[1])]), np.append(bias, 0.0)
    yield "Gemm", [matrix.T, bias]
    if labels is not None:
        yield "Softmax", []
    elif space.link == "log":
        yield "Exp", []


def _affine(policy: PolicyOfSpace) -> list[tuple[np.ndarray, np.ndarray]]:
    """Matrix [out, in] and constants [out] of each layer; of a linear policy, of its natural parameters."""
    space: Any = policy.space
    if hasattr(space, "layers"):
        found: list[tuple[np.ndarray, np.ndarray]] = space.layers(policy.theta)
        return found
    if getattr(space, "available", None):
        raise InputError(
            "a choice whose alternatives are not always available is no product of matrices: save it as .npz instead."
        )
    if hasattr(space, "levels"):
        raise InputError("an ordered policy is no product of matrices and a softmax: save it as .npz instead.")
    unit = np.vstack([np.zeros(len(space.feature_names)), np.eye(len(space.feature_names))])
    values = np.asarray(space.natural(policy.theta, unit))
    return [((values[1:] - values[0]).T, values[0])]


@explain_arguments
def load_clone(path: str | Path) -> Clone:
    """The clone in a file that `Clone.save` wrote; nothing in it is run.

    Parameters
    ----------
    path : path
        A .npz or .safetensors file.

    Returns
    -------
    Clone
        It acts and answers as the one that was saved.

    Raises
    ------
    InputError
        If the file is none of a clone, or damaged.

    Examples
    --------
    >>> import numpy as np, policyspace
    >>> states = np.random.default_rng(0).normal(size=(300, 2))
    >>> actions = states[:, 0] + 0.1 * np.random.default_rng(1).normal(size=300)
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = policyspace.clone(states, actions).save(f"{folder}/policy.npz")
    ...     policyspace.load_clone(saved).support
    ('x0',)
    """
    source = Path(path)
    wrong = f"{source}: expected a clone saved by policyspace, found another file: write one with `policyspace clone`."
    if source.suffix.lower() not in FILES:
        raise InputError(wrong)
    if source.suffix.lower() == ".safetensors":
        arrays, text = _from_safetensors(source)
    else:
        try:
            arrays = read_archive(source)
        except (zipfile.BadZipFile, OSError, EOFError, zlib.error) as error:
            raise InputError(f"{source}: cannot be read ({reason_of(error)}): save the clone again.") from error
        text = str(arrays.get("header", ""))
    header = parse_json(text) if FORMAT in text else None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(wrong)
    try:
        space = recorded_space(
            header["policy"], header["features"], header["actions"], header["groups"], arrays["fixed"]
        )
        theta = np.array(arrays["theta"], dtype=np.float64)
        if theta.shape != (space.num_parameters,) or not np.isfinite(theta).all():
            raise ValueError(f"{space.num_parameters} finite weights are needed")
        return Clone(
            PolicyOfSpace(space, theta),
            tuple(header["support"]),
            float(header["penalty"]),
            tuple(HeldOutLoss(**{**one, "support": tuple(one["support"])}) for one in header["losses"]),
            tuple((float(a), float(b)) for a, b in header["path"]),
            header["num_rows"],
            header["num_episodes"],
            {name: tuple(inside) for name, inside in header["blocks"].items()},
            tuple(header["warnings"]),
            tuple(header.get("kept", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{source}: this clone is damaged ({reason_of(error)}): save it again.") from error


def _from_safetensors(path: Path) -> tuple[dict[str, np.ndarray], str]:
    """The arrays, and the header that `save` has put among what is said of them."""
    file, size = open_file(path)
    with file:
        check_limit("MAX_SETTINGS_BYTES", size, f"{path}: its bytes")
        content = file.read()
    end = 8 + int.from_bytes(content[:8], "little")
    try:
        table = parse_json(content[8:end])
        text = table.pop("__metadata__")["header"]
        arrays = {}
        for name, entry in table.items():
            start, stop = entry["data_offsets"]
            if entry["dtype"] != "F64" or not 0 <= start <= stop <= len(content) - end:
                raise ValueError(f"'{name}' is not where it says")
            arrays[name] = np.frombuffer(content[end + start : end + stop], "<f8").reshape(entry["shape"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: this clone is damaged ({reason_of(error)}): save it again.") from error
    return arrays, str(text)


# -- Making one.


@explain_arguments
@remembering_its_call
@translate_keywords
def clone(
    data: Any,
    actions: Any = None,
    *,
    answer: Any = None,
    undecided: Undecided = "auto",
    penalty: float | None = None,
    folds: int = 5,
    compare: bool = True,
    seed: int = 0,
    **source: Unpack[SourceOptions],
) -> Clone:
    """Clone an agent from its log: a policy inside the space that it was identified to have.

    Maximum likelihood with a ridge penalty, chosen by held-out episodes, on the weights of the identified features only.

    Parameters
    ----------
    data : array_like of shape (n_rows, n_features), table, path or Sample
        As `identify` takes them.
    actions : array_like or names of columns, optional
        As `identify` takes them.
    answer : Identification, AskedAnswer, Study, path of their JSON, list of names, or "all", optional
        What the agent uses. By default these data are identified. Where several sets of features are possible, the clone
        may use all that are in any of them.
    undecided : {"auto", "shrink", "drop"}
        Of features without evidence: "drop" leaves them out; "shrink" keeps them under ten times the penalty, as a short log
        may not show all that an agent uses; "auto" keeps them where that predicts held-out episodes better, by more than a
        standard error. Where names are given, and by networks, the others are left out.
    penalty : float, optional
        Of squared weights of standardised features; by default the one that predicts held-out episodes best.
    folds : int
        Into how many parts episodes are divided.
    compare : bool
        Also predict held-out episodes with all features, without penalty, and by the lasso. A space that was identified in
        these data is then identified anew without the episodes that are held out.
    seed : int
        Of the division, and of the actions that the clone draws.
    **source
        Which columns are what, see `ColumnOptions`, and what is said about the policy, see `SourceOptions`.

    Returns
    -------
    Clone
        A policy that acts (`predict`, `sample`), can be saved (`save`, `to_onnx`), and knows its held-out loss.

    Raises
    ------
    InputError
        If nothing was identified, the answer is about other features, or the data are invalid.

    Examples
    --------
    >>> import numpy as np, policyspace
    >>> states = np.random.default_rng(0).normal(size=(400, 3))
    >>> actions = (states[:, 0] + np.random.default_rng(1).logistic(size=400) > 0).astype(int)
    >>> made = policyspace.clone(states, actions, features=["left", "right", "noise"])
    >>> made.predict([3.0, 0.0, 0.0], deterministic=True)[0]
    np.int64(1)
    """
    return clone_of(request_of(data, actions, **source), answer, penalty, folds, compare, seed, undecided)


def clone_of(
    request: Request,
    answer: Any = None,
    penalty: float | None = None,
    folds: int = 5,
    compare: bool = True,
    seed: int = 0,
    undecided: Undecided = "auto",
) -> Clone:
    """The same from a request."""
    check_seed(seed)
    if undecided not in ("auto", "shrink", "drop"):
        raise InputError(f"undecided must be 'auto', 'shrink' or 'drop', found {undecided!r:.40}: choose one.")
    if penalty is not None:
        if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not 0 < penalty <= LARGEST:
            raise InputError(
                f"the penalty must be a number above 0 and at most {LARGEST:g}, found {penalty!r:.40}: correct it, or "
                "leave it out."
            )
        penalty = float(penalty)  # a whole number may be too large for NumPy
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise InputError(f"folds must be a whole number of at least 2, found {folds!r}: correct it.")
    space, sample = bind(request, stated=True)  # a clone is one of the space
    if not sample.in_memory:
        raise InputError(
            f"cloning needs all rows in memory, found {sample.num_rows_total} that are read in passes: take fewer rows, or "
            "set POLICYSPACE_MAX_BYTES_AT_ONCE."
        )
    if not space.num_parameters:
        raise InputError("a clone needs a policy with weights, found 'any': take the linear one, or a network.")
    with single_threaded_blas():
        maker = _CloneMaker(space, sample, folds, seed, answer is None)
        if answer is None:
            say_progress("identifying")
            found = IdentifiedSpace.of(identify_in(space, sample, TestOptions(seed=seed)))
        elif isinstance(answer, str) and answer == "all":
            found = IdentifiedSpace((tuple(space.named(space.full_support)),), "all")
        else:
            found = IdentifiedSpace.of(answer)
        nothing_given = found.source not in ("given", "all")
        if found.union or not (nothing_given and undecided == "shrink"):
            found = found.checked(space, "these data", "clone")
        support = found.indices(space)
        given = penalty
        path = [] if given is not None else maker.path(support)
        penalty = given or min(path, key=lambda pair: pair[1])[0]
        way: Method = "ridge"
        may_keep = support != space.full_support and not space.multimodal and nothing_given
        if may_keep and undecided != "drop":
            other_path = [] if given is not None else maker.path(support, "shrunk")
            other = given or min(other_path, key=lambda pair: pair[1])[0]
            if undecided == "shrink" or maker.is_better(support, (other, "shrunk"), (penalty, "ridge")):
                path, penalty, way = other_path, other, "shrunk"
        losses = maker.compare(support, given, way) if compare else []
        policy = penalised(likelihood_of(space, sample), support, penalty, way)
    rng = np.random.default_rng(seed)
    warnings = [*found_notes(found), *sample.origin.all_notes]
    if sample.origin.lagged_actions:
        warnings.append("the agent's last actions are among the features: a state that it is given must hold them.")
    used = space.full_support if way == "shrunk" else support
    kept = tuple(space.named(used - support))
    return Clone(
        policy, tuple(space.named(used)), penalty, tuple(losses), tuple(path), sample.num_rows, sample.num_episodes,
        dict(sample.blocks), tuple(warnings), kept, rng,
    )  # fmt: skip


def found_notes(found: IdentifiedSpace) -> list[str]:
    """What must be said of an answer that leaves several sets possible."""
    if len(found.supports) > 1:
        return [f"the data do not say which of {listed_names(found.undecided)} the agent uses: all of them are taken."]
    return [] if found.exhaustive else ["one set of features is known that explains the agent; others may exist."]


@dataclass(frozen=True)
class _CloneMaker:
    """Fits on parts of a sample, and their losses on the others."""

    space: PolicySpace
    sample: Sample
    num_folds: int
    seed: int
    identifies: bool
    """Is the space identified in these rows? Then each part has its own."""

    @cached_property
    def folds(self) -> np.ndarray:
        """Of each row [n]."""
        return episode_folds(self.sample, self.num_folds, self.seed)

    @property
    def penalties(self) -> tuple[float, ...]:
        """That are tried."""
        return PENALTIES_OF_NETWORKS if self.space.multimodal else PENALTIES

    def fit(self, rows: np.ndarray, supports: Sequence[Support], penalty: Sequence[tuple[float, Method]]) -> Any:
        """Policies on some rows, one a support and penalty."""
        likelihood = likelihood_of(self.space, self.sample.take(rows))
        return [penalised(likelihood, s, *p) for s, p in zip(supports, penalty, strict=True)]

    def loss(self, policies: Sequence[PolicyOfSpace], rows: np.ndarray) -> list[float]:
        """The mean loss of each on some rows."""
        part = self.sample.take(rows)
        return [float(np.average(row_losses(policy, part), weights=part.weights)) for policy in policies]

    def is_better(self, support: Support, one: tuple[float, Method], other: tuple[float, Method]) -> bool:
        """Does one way predict held-out rows better than another by more than a standard error, over episodes?"""
        losses = np.zeros((2, self.sample.num_rows))
        for fold in np.unique(self.folds).tolist():
            outside = self.folds == fold
            for row, policy in zip(losses, self.fit(~outside, [support] * 2, [other, one]), strict=True):
                row[outside] = row_losses(policy, self.sample.take(outside))
        difference = self._summaries(["other", "one"], losses, [support] * 2)[1]
        return difference.more < -difference.error

    def path(self, support: Support, way: Method = "ridge") -> list[tuple[float, float]]:
        """Every penalty and its mean loss on rows that were held out."""
        total = np.zeros(len(self.penalties))
        tried: list[tuple[float, Method]] = [(penalty, way) for penalty in self.penalties]
        for fold in counted(np.unique(self.folds).tolist(), "choosing the penalty"):
            inside = self.folds != fold
            policies = self.fit(inside, [support] * len(tried), tried)
            total += np.array(self.loss(policies, ~inside)) * (~inside).mean()
        return list(zip(self.penalties, total.tolist(), strict=True))

    def compare(self, support: Support, given: float | None, way: Method = "ridge") -> list[HeldOutLoss]:
        """The losses of the clone, made in some way, and of others on every fold, by fits that have not seen it.

        A penalty is chosen in the same way among the other folds, of networks by one of them.
        """
        space, sample = self.space, self.sample
        everything, nothing = space.full_support, space.full_support - set(space.tested)
        ways: list[tuple[str, Support | None, Method]] = [("identified space, ridge", None, "ridge")]
        if way == "shrunk":
            ways.insert(0, ("identified space, others shrunk", None, "shrunk"))
        ways += [("identified space, no penalty", None, "none"), ("all features, ridge", everything, "ridge")]
        ways += [("all features, no penalty", everything, "none")]
        ways += [] if space.multimodal else [("all features, lasso", everything, "lasso")]
        ways += [("no features", nothing, "ridge")]
        numbers = np.unique(self.folds).tolist()
        losses = np.zeros((len(ways), sample.num_rows))
        for place, fold in enumerate(counted(numbers, "comparing on held-out episodes")):
            outside = self.folds == fold
            own = support
            if self.identifies:
                part = IdentifiedSpace.of(identify_in(space, sample.take(~outside), TestOptions(seed=self.seed)))
                own = part.indices(space)
            supports = [own if chosen is None else chosen for _, chosen, _ in ways]
            penalties = [given] * len(ways)
            if given is None and len(numbers) > 2:
                others = [numbers[place - i] for i in range(1, 2 if space.multimodal else len(numbers))]
                penalties = self._chosen(supports, [way for *_, way in ways], ~outside, others)
            pairs = [(penalty or 1.0, way) for penalty, (*_, way) in zip(penalties, ways, strict=True)]
            for row, policy in zip(losses, self.fit(~outside, supports, pairs), strict=True):
                row[outside] = row_losses(policy, sample.take(outside))
        return self._summaries(
            [name for name, *_ in ways], losses, supports=[everything if way == "shrunk" else support, support, support]
        )

    def _chosen(
        self, supports: Sequence[Support], ways: Sequence[Method], rows: np.ndarray, folds: Sequence[int]
    ) -> list[float | None]:
        """The penalty of each way that is best on some folds of these rows, by fits on the other rows of them."""
        total = np.zeros((len(ways), len(self.penalties)))
        for fold in folds:
            inside, outside = rows & (self.folds != fold), rows & (self.folds == fold)
            likelihood = likelihood_of(self.space, self.sample.take(inside))
            for losses, support, way in zip(total, supports, ways, strict=True):
                if way != "none":
                    policies = [penalised(likelihood, support, penalty, way) for penalty in self.penalties]
                    losses += np.array(self.loss(policies, outside)) * outside.mean()
        best = [self.penalties[i] for i in total.argmin(axis=1)]
        return [None if way == "none" else penalty for penalty, way in zip(best, ways, strict=True)]

    def _summaries(self, names: Sequence[str], losses: np.ndarray, supports: Sequence[Support]) -> list[HeldOutLoss]:
        """Means over rows, and the standard error of differences over episodes."""
        sample, space = self.sample, self.space
        weights = np.ones(sample.num_rows) if sample.weights is None else sample.weights
        units = sample.episodes if sample.episodes is not None else sample.subjects
        units = np.arange(sample.num_rows) if units is None else units
        found = []
        for i, name in enumerate(names):
            difference = losses[i] - losses[0]
            mean = float(np.average(difference, weights=weights))
            sums = np.bincount(units, weights * (difference - mean))
            error = float(np.sqrt((sums**2).sum() * len(sums) / max(len(sums) - 1, 1)) / weights.sum())
            used = supports[i] if name.startswith("identified") else space.full_support
            used = space.full_support - set(space.tested) if name == "no features" else used
            loss = float(np.average(losses[i], weights=weights))
            found.append(HeldOutLoss(name, tuple(space.named(used)), loss, mean, error))
        return found
