"""Limits by environment variables, BLAS threads, optional libraries, progress listeners."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from policyspace.errors import InputError, nearest

# -- How far long work has come: whoever works says so, whoever listens shows it. Without a listener nothing happens.

Listener = Callable[[str, int, int | None], None]
"""Hears what is being done, how much of it is, and how much there is in all, where that is known."""

T = TypeVar("T")

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def say_progress(what: str, done: int = 0, total: int | None = None) -> None:
    """Say what is being done now, and how far it is."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, done, total)


def counted(items: Sequence[T], what: str) -> Iterator[T]:
    """The same items, one after the other, which says how many have been worked on."""
    for done, item in enumerate(items):
        say_progress(what, done, len(items))
        yield item


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Whatever is said inside goes to the listener."""
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)


# -- Rows in chunks: bounded memory, one thread a chunk, and the same sum whatever the number of threads.

_limited: ContextVar[bool] = ContextVar("_limited", default=False)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Tall thin products are faster on one BLAS thread; the second core is better spent on the next chunk."""
    if _limited.get():
        yield
        return
    token = _limited.set(True)
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limited.reset(token)


def num_workers() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sum_over_chunks(function: Callable[[slice], tuple[Any, ...]], num_rows: int, size: int) -> tuple[Any, ...]:
    """Σ function(chunk) over slices of `size` rows, added up in the order of the rows."""
    chunks = [slice(start, min(start + size, num_rows)) for start in range(0, num_rows, size)]
    if len(chunks) == 1:
        return function(chunks[0])
    workers = min(len(chunks), num_workers())
    with single_threaded_blas():
        if workers == 1:
            return reduce(sum_tuples, map(function, chunks))
        with ThreadPoolExecutor(workers) as pool:
            return reduce(sum_tuples, pool.map(function, chunks))


def sum_tuples(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    """Two tuples of sums as one; an empty one is a sum over no rows."""
    if not first or not second:
        return first or second
    return tuple(a + b for a, b in zip(first, second, strict=True))


# -- How much a file or an option may ask of the machine: settings, each changed by the environment variable of its name.

DEFAULTS = MappingProxyType(
    {
        "POLICYSPACE_MAX_TEXT_BYTES": 4 << 30,  # of a CSV or TSV file
        "POLICYSPACE_MAX_LINE_BYTES": 16 << 20,  # of one of its lines
        "POLICYSPACE_MAX_UNPACKED_BYTES": 512 << 20,  # that a compressed file may become
        "POLICYSPACE_MAX_UNPACKING_RATIO": 10,  # unless it is less than so many times its own size
        "POLICYSPACE_MAX_PARSER_BYTES": 768 << 20,  # of memory for the library that reads another tool's files
        "POLICYSPACE_MAX_PARSER_SECONDS": 8,  # for it, and one more for every 10 MiB
        "POLICYSPACE_MAX_BYTES_AT_ONCE": 256 << 20,  # of a data set that is read whole; a larger one is read in passes
        "POLICYSPACE_MAX_CLUSTERS": 4_000_000,  # episodes or subjects of one that is read in passes
        "POLICYSPACE_MAX_PRODUCTS": 3 * 10**12,  # of numbers in the lean test of one that is read in passes
        "POLICYSPACE_MAX_COLUMNS": 10_000,  # of a table
        "POLICYSPACE_MAX_SETTINGS_BYTES": 4 << 20,  # of a TOML or JSON file
        "POLICYSPACE_MAX_AGENT_BYTES": 4 << 30,  # of the file of a trained agent
        "POLICYSPACE_MAX_AGENT_TEXT_BYTES": 64 << 20,  # of what it says beside its weights
        "POLICYSPACE_MAX_DATABASE_BYTES": 1 << 30,  # of a study, or a file of records
        "POLICYSPACE_MAX_PARAMETERS": 20_000,  # of a policy
        "POLICYSPACE_MAX_SIMULATED_BYTES": 4 << 30,  # of all steps that one command simulates
    }
)
"""The name of every limit, and its value unless the environment has another."""

LARGEST_SEED = 2**63 - 1


def limit(name: str) -> int:
    """A limit by its name without the prefix, such as MAX_COLUMNS."""
    name = f"POLICYSPACE_{name}"
    given = os.environ.get(name)
    if given is None:
        return DEFAULTS[name]
    if not (given.isascii() and given.isdigit() and len(given) < 19 and int(given) > 0):
        raise InputError(f"the environment variable {name} must be a positive whole number, found {given[:40]!r}.")
    return int(given)


def check_limit(name: str, found: int, what: str) -> None:
    """One sentence where something is larger than its limit."""
    most = limit(name)
    if found > most:
        shown = found if found < 10**18 else "far more"
        raise InputError(f"{what} must be at most {most}, found {shown}: if that is meant, set POLICYSPACE_{name}.")


def check_unpacked(unpacked: int, packed: int) -> None:
    """A small file that becomes a huge one is refused."""
    most = max(limit("MAX_UNPACKED_BYTES"), limit("MAX_UNPACKING_RATIO") * packed)
    if unpacked > most:
        raise InputError(
            f"its {packed} bytes unpack to more than {most}: if that is meant, set POLICYSPACE_MAX_UNPACKED_BYTES."
        )


def check_seed(seed: int) -> None:
    """A seed is a whole number that fits in 63 bits, for NumPy and JAX alike."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST_SEED:
        found = repr(seed) if not isinstance(seed, int) or abs(seed) < 10**40 else "a larger one"
        raise InputError(f"the seed must be a whole number from 0 to 2^63 − 1 (--seed, seed=), found {found}.")


# -- Processes that were forked: threads of libraries are not copied, and what waits for them never ends.

_broken_by_fork: list[str] = []
"""The libraries whose threads were left behind."""


def check_not_forked(what: str) -> None:
    """One sentence instead of a wait without end, in a process that was forked after polars had started its threads."""
    if _broken_by_fork:
        raise InputError(
            f"{what} needs the threads of polars, which this process lost when it was forked: start processes with "
            "multiprocessing.get_context('spawn'), or fork before anything is read."
        )


def _note_threads() -> None:
    """Before a fork: has polars started threads? Where the system does not tell, it has if it was imported."""
    tasks = Path("/proc/self/task")
    try:
        names = [(task / "comm").read_text() for task in tasks.iterdir()] if "polars" in sys.modules else []
    except OSError:
        names = ["polars"]
    _before_fork[:] = ["polars"] if any(name.strip() in ("polars-0", "polars") for name in names) else []


_before_fork: list[str] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_note_threads, after_in_child=lambda: _broken_by_fork.extend(_before_fork))


# -- Optional libraries, and objects found by a dotted name.

CONFIGURE = ("jax", "optax", "gymnasium")
"""What the extra [configure] brings."""


def library(name: str, extra: str, what: str = "This") -> Any:
    """The module of an optional dependency; where it is not installed, a sentence names the extra that brings it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(_missing(extra, what)) from error


def require_configure() -> None:
    """Refuse, before anything is imported, what needs the extra [configure] where that is not installed."""
    if not all(map(_installed, CONFIGURE)):
        raise InputError(_missing("configure", "This"))


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _missing(extra: str, what: str) -> str:
    return f"{what} needs the extra [{extra}]: pip install 'policyspace[{extra}]'."


def object_at(place: str) -> Any:
    """The object at `module:name`, as in entry points; its module is imported now."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


WORLD_NAMES = ("gridworld", "continuous-gridworld", "minigolf", "car", "cartpole")
"""Our worlds, for whoever must know a name before JAX is imported."""


def known_world(name: str, or_class: bool = False) -> None:
    """Refuse a name that no world has, before anything that takes long is imported; `or_class`: module:Class is one too."""
    if name not in WORLD_NAMES and not (or_class and ":" in name):
        raise InputError(
            f"there is no world '{name}'{', and it is no module:Class' * or_class}: {nearest(name, WORLD_NAMES)}"
        )


def lazy_names(package: str, homes: Mapping[str, Sequence[str]]) -> tuple[list[str], Callable[[str], Any]]:
    """`__all__` and `__getattr__` of a package whose names are imported when they are used.

    `homes` names the modules of the package, and what each of them contributes.
    """
    home = {name: module for module, names in homes.items() for name in names}

    def getattribute(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(f"{package}.{home[name]}"), name)

    return sorted(home), getattribute
