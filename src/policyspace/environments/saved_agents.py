"""Saved agents: checked before they are loaded, never unpickled without trust."""

import base64
import io
import math
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, final

import gymnasium
import numpy as np

from policyspace.cloning import FILES, load_clone
from policyspace.data.files import located
from policyspace.errors import InputError, nearest, reason_of
from policyspace.runtime import check_limit, check_unpacked, library, object_at
from policyspace.safe_io import open_file, parse_json

SIGNS = {
    "DQN": "exploration_fraction", "SAC": "target_entropy", "TD3": "policy_delay", "PPO": "clip_range", "A2C": "gae_lambda"
}  # fmt: skip
"""What only this algorithm of stable-baselines3, or one before it here, writes into its file; DDPG is loaded as a TD3."""

FOR_TRAINING: dict[str, object] = {
    "learning_rate": 0.0, "lr_schedule": float, "clip_range": 0.2, "clip_range_vf": None, "train_freq": 1,
    "action_noise": None, "exploration_schedule": None, "rollout_buffer_class": None, "replay_buffer_class": None,
    "ep_info_buffer": None, "ep_success_buffer": None, "_logger": None,
}  # fmt: skip
"""Entries that a model needs to learn on, which are often code, and what stands for them in one that acts."""


BYTES_A_WEIGHT = 16
"""With its gradient, and the orthogonal matrix that it starts from."""


def needs_trust(path: str | Path, what: str) -> InputError:
    """The sentence about a file that can run code: it never does so unasked."""
    return InputError(
        f"{path}: {what}, which can run any code when it is loaded: if you trust where the file is from, say so with "
        "--trust (trust=True)."
    )


# -- Models of stable-baselines3: a zip of JSON, of pickled objects inside it, and of weights.


def agent_from_file(path: str | Path, algorithm: str | None = None, trust: bool = False) -> Any:
    """An agent saved by stable-baselines3, or a clone; the algorithm is seen in the file unless it is named.

    A zip of stable-baselines3 holds pickled objects, which can run code. Unless it is trusted, none of them is unpickled
    but spaces, arrays, networks' settings and the library's own policies, and what is for training alone is left out:
    such an agent acts, and does not learn on. One that needs more is refused with what that is.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: there is no such file: check the path of the agent.")
    if path.suffix.lower() in FILES and algorithm is None:
        return load_clone(path)
    with located(path):
        file, size = open_file(path)
        with file:
            check_limit("MAX_AGENT_BYTES", size, "the bytes of an agent")
            content = file.read()
        if not zipfile.is_zipfile(io.BytesIO(content)):
            raise InputError("expected an agent saved by stable-baselines3 (.zip), found another kind of file.")
        try:
            said = _judged(content)
        except InputError:
            raise
        except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise InputError(f"its archive is damaged ({reason_of(error)}): save it again.") from error
        if (
            algorithm is None
            and (algorithm := next((name for name, sign in SIGNS.items() if sign in said), None)) is None
        ):
            raise InputError(
                "no algorithm of stable-baselines3 is seen in this file: save the agent with model.save(…), or name its "
                "algorithm (--algorithm)."
            )
        kind = _algorithm(algorithm)
        instead = {} if trust else _without_code(path, said, content)
    try:
        return kind.load(io.BytesIO(content), device="cpu", custom_objects=instead)
    except Exception as error:  # whatever is wrong with the file: there is no list of all that may be raised
        raise InputError(
            f"{path}: could not be loaded by {kind.__name__} ({reason_of(error)}): name another algorithm."
        ) from error


def statistics_in(path: Path, trust: bool = False) -> Any:
    """The statistics that stable-baselines3's VecNormalize saved, without an environment."""
    if not path.is_file():
        raise InputError(f"{path}: there is no such file: check the path of the statistics.")
    library("stable_baselines3", "agents", "reading statistics")
    file, size = open_file(path)
    with file:
        check_limit("MAX_AGENT_TEXT_BYTES", size, "the bytes of such statistics")
        content = file.read()
    try:
        found = pickle.loads(content) if trust else unpickled(content)
    except _CodeFound as error:
        raise needs_trust(path, f"names {error}") from error
    except Exception as error:  # of damaged bytes, anything
        raise InputError(f"{path}: is damaged ({reason_of(error)}): save it again.") from error
    if not hasattr(found, "set_venv"):
        raise InputError(f"{path}: expected statistics of VecNormalize, found {type(found).__name__}: save those.")
    return found


def _judged(content: bytes) -> Mapping[str, Any]:
    """What an archive says of its agent, once all in it is known to have an end, the archives of weights inside it too."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        check_unpacked(sum(entry.file_size for entry in archive.infolist()), len(content))
        for entry in archive.infolist():
            if entry.filename == "data":
                check_limit("MAX_AGENT_TEXT_BYTES", entry.file_size, "the bytes of its entry 'data'")
            elif entry.filename.endswith(".pth") and zipfile.is_zipfile(inside := io.BytesIO(archive.read(entry))):
                with zipfile.ZipFile(inside) as weights:
                    check_unpacked(sum(one.file_size for one in weights.infolist()), len(content))
        said = parse_json(archive.read("data"), finite=False) if "data" in archive.namelist() else {}
    if not isinstance(said, dict):
        raise InputError("its entry 'data' must be a table, found otherwise: save it again.")
    return said


def _algorithm(name: str) -> Any:
    """A class of stable-baselines3, or of sb3-contrib where that is installed."""
    home = library("stable_baselines3", "agents", "loading an agent")
    found = getattr(home, name, None)
    if found is None:
        try:
            import sb3_contrib

            found = getattr(sb3_contrib, name, None)
        except ImportError:
            pass
    if not hasattr(found, "load"):
        raise InputError(f"stable-baselines3 has no algorithm '{name}': {nearest(name, [*SIGNS, 'DDPG'])}")
    return found


def _without_code(path: Path, said: Mapping[str, Any], content: bytes) -> dict[str, object]:
    """Every pickled entry as plain data unpickles it, so that the library unpickles nothing; weights alone are weights."""
    found: dict[str, object] = {"buffer_size": 1}  # what it learned from is not in the file
    for name, entry in said.items():
        if not (isinstance(entry, dict) and ":serialized:" in entry):
            continue
        if name in FOR_TRAINING:
            found[name] = FOR_TRAINING[name]
            continue
        try:
            found[name] = unpickled(base64.b64decode(str(entry[":serialized:"])))
        except _CodeFound as error:
            raise needs_trust(path, f"its entry '{name}' names {error}") from error
        except Exception as error:  # of damaged bytes, anything
            raise InputError(f"its entry '{name}' is damaged ({reason_of(error)}): save it again.") from error
    # Networks are made before their weights are read: how large they are is judged by what the file says.
    settings = {**said, **found}
    widths = [abs(number) for number in _numbers(settings.get("policy_kwargs"), 0)]
    inputs = sum(_num_inputs(settings.get(name)) for name in ("observation_space", "action_space"))
    needed = BYTES_A_WEIGHT * (sum(width * width for width in widths) + inputs * max([64, *widths]))
    if not needed <= max(256 << 20, 16 * len(content)):
        raise InputError(f"its {len(content)} bytes ask for networks of about {needed:.3g}: check where it is from.")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.namelist():
            if entry.endswith(".pth"):
                weights_in(io.BytesIO(archive.read(entry)), path, f"its entry '{entry}' holds more than weights")
    return found


def weights_in(source: Path | io.BytesIO, path: Path, otherwise: str) -> Any:
    """The weights that torch has saved; a program of TorchScript is none, whatever the version of torch makes of it."""
    import torch

    try:
        if zipfile.is_zipfile(source):
            with zipfile.ZipFile(source) as archive:
                if any(name.endswith("constants.pkl") for name in archive.namelist()):
                    raise _CodeFound("TorchScript")
        if not isinstance(source, Path):
            source.seek(0)
        return torch.load(source, map_location="cpu", weights_only=True)
    except Exception as error:  # neither weights nor a pickle of them
        raise needs_trust(path, otherwise) from error


def _numbers(given: object, depth: int) -> Iterator[float]:
    """The numbers in nested dicts and lists."""
    if depth > 8 or (isinstance(given, dict | list | tuple) and len(given) > 100):
        yield math.inf  # a network of no honest agent
    elif isinstance(given, dict | list | tuple):
        for inside in given.values() if isinstance(given, dict) else given:
            yield from _numbers(inside, depth + 1)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        yield float(given)


def _num_inputs(space: object) -> float:
    """The numbers of an observation, as far as a network's first layer grows with them."""
    if isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple):
        inside = list(space.spaces.values() if isinstance(space, gymnasium.spaces.Dict) else space.spaces)
        return math.inf if len(inside) > 1000 else sum(_num_inputs(one) for one in inside)
    if isinstance(space, gymnasium.spaces.Discrete):
        return float(space.n)
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return float(np.sum(space.nvec, dtype=np.float64))
    shape = getattr(space, "shape", None) or (1,)
    if len(shape) == 3 and min(shape) <= 16:  # of a picture, with channels
        return math.prod(shape) / min(shape)
    return float(math.prod(shape))


# -- Pickles that hold data alone.

ARRAYS = {
    "numpy": ("dtype", "ndarray"),
    "numpy._core.multiarray": ("_reconstruct", "scalar"),
    "numpy.core.multiarray": ("_reconstruct", "scalar"),
    "numpy._core.numeric": ("_frombuffer",),
    "numpy.core.numeric": ("_frombuffer",),
    "numpy.random._pickle": ("__generator_ctor", "__bit_generator_ctor", "__randomstate_ctor"),
    "numpy.random._pcg64": ("PCG64",),
    "numpy.random._mt19937": ("MT19937",),
    "numpy.random.bit_generator": ("__pyx_unpickle_SeedSequence", "SeedSequence"),
    "numpy.random._generator": ("Generator",),
    "collections": ("OrderedDict", "deque"),
    "stable_baselines3.common.running_mean_std": ("RunningMeanStd",),
    "stable_baselines3.common.vec_env.vec_normalize": ("VecNormalize",),
}
"""The names that a pickle of data may use: arrays, generators of random numbers, statistics of observations."""

OF_STABLE_BASELINES = (
    "stable_baselines3.common.policies:BaseModel",
    "stable_baselines3.common.torch_layers:BaseFeaturesExtractor",
)

FAMILIES = {
    "gymnasium.spaces.": ("gymnasium.spaces:Space",),
    "stable_baselines3.": OF_STABLE_BASELINES,
    "sb3_contrib.": OF_STABLE_BASELINES,
    "torch.nn.modules.": ("torch.nn:Module",),
    "torch.optim.": ("torch.optim:Optimizer",),
}
"""And the classes, by where they are and what they are: named as settings, and never made here but spaces."""


class _CodeFound(Exception):
    """A pickle names what is no data."""


def unpickled(content: bytes) -> Any:
    """The object in a pickle that needs nothing but data; anything else is refused before it is called."""
    return _DataUnpickler(io.BytesIO(content)).load()


_InPython: Any = pickle._Unpickler  # unlike the one in C it can be asked what it calls


@final
class _DataUnpickler(_InPython):  # type: ignore[misc]
    """Finds the names above alone, calls those of arrays alone, makes spaces, and fills in objects, never classes."""

    dispatch: ClassVar = dict(_InPython.dispatch)

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.may_be_called: list[object] = []

    def find_class(self, module: str, name: str) -> Any:
        """A name that data may use."""
        if name in ARRAYS.get(module, ()):
            self.may_be_called.append(found := super().find_class(module, name))
            return found
        for start, places in FAMILIES.items():
            if module.startswith(start) and "." not in name:
                library(module.partition(".")[0], "agents", "loading an agent")
                found = super().find_class(module, name)
                if isinstance(found, type) and issubclass(found, tuple(map(object_at, places))):
                    return found
        raise _CodeFound(f"'{module}.{name}'"[:120])

    def check_call(self) -> None:
        """What is on the stack to be called or made is known to be harmless."""
        found = self.stack[-2]
        space = isinstance(found, type) and issubclass(found, gymnasium.spaces.Space)
        if not space and not any(found is one for one in self.may_be_called):
            raise _CodeFound(f"a call of {found!r}"[:120])

    def load_reduce(self) -> None:
        """A call."""
        self.check_call()
        super().load_reduce()

    def load_newobj(self) -> None:
        """A new object of a class."""
        self.check_call()
        super().load_newobj()

    def load_build(self) -> None:
        """Fields of an object; those of a class would change it for everybody."""
        if isinstance(self.stack[-2], type):
            raise _CodeFound(f"fields of {self.stack[-2]!r}"[:120])
        super().load_build()

    def refuse(self) -> None:
        """The opcodes that nobody needs for data."""
        raise _CodeFound("a call")

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.NEWOBJ_EX[0]] = dispatch[pickle.INST[0]] = dispatch[pickle.OBJ[0]] = refuse
