"""Executors for reading in passes: threads or a dask cluster, whose workers must run the same version."""

import ast
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, TypeVar

import policyspace
from policyspace.data.large.parts import FilePart
from policyspace.errors import InputError, reason_of
from policyspace.runtime import library, num_workers, say_progress, single_threaded_blas

# -- Which code made a record: the package's version, and a digest of the source that records depend on.

NEVER_RUN = ("environments", "report", "cli", "sklearn.py", "study/page.py", "study/figures.py", "study/study.py")
"""Parts of the package that no experiment runs: whatever changes there leaves a record what it was."""


@cache
def code_version() -> str:
    """As 0.1.0+3f2a9c1b: two that are equal give the same records for the same settings."""
    return f"{policyspace.__version__}+{source_digest(Path(policyspace.__file__).parent)}"


def source_digest(root: Path, never_run: Sequence[str] = NEVER_RUN) -> str:
    """What the modules below a folder do, in eight letters: comments, docstrings and the layout of lines change nothing."""
    digest = sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if any(f"{name}/".startswith(f"{part}/") for part in never_run):
            continue
        digest.update(name.encode())
        digest.update(meaning(ast.parse(path.read_bytes())).encode())
    return digest.hexdigest()[:8]


def meaning(node: Any) -> str:
    """A syntax tree as text, without strings that stand alone, which nothing reads.

    `ast.dump` and `ast.unparse` write the same tree in other words in another version of Python. Here what is empty is left
    out, so that fields which only newer ones have say nothing.
    """
    if isinstance(node, list):
        return f"[{','.join(meaning(one) for one in node if not _is_docstring(one))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
    return f"{type(node).__name__}({','.join(f'{name}={meaning(value)}' for name, value in fields)})"


def _is_docstring(node: Any) -> bool:
    """Whether this statement is nothing but a string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


# -- A connection to a dask.distributed scheduler whose workers run this very code; what goes wrong there, in sentences.

TIMEOUT = 20
"""Seconds until a scheduler that does not answer, or a cluster without workers, is given up."""


def connect(address: str) -> Any:
    """A client of the scheduler at this address, which has workers with the same code."""
    distributed = library("distributed", "dask", "--dask")
    # What the client logs, we say in a sentence.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, timeout=TIMEOUT)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--dask {address}: no scheduler answers there ({reason_of(error)}): check the address."
        ) from error
    try:
        _check_workers(client, address)
    except BaseException:
        client.close()
        raise
    return client


def cluster_error_message(error: BaseException | None, task: str) -> str | None:
    """What only a cluster can suffer, in words; None for any other error."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    if isinstance(error, KilledWorker):
        return f"several workers were killed at one {task}, perhaps for want of memory"
    return "the scheduler has gone" if isinstance(error, CancelledError | CommClosedError) else None


def _check_workers(client: Any, address: str) -> None:
    """Somebody must be there, with this version: another one may give other numbers."""
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError as error:
        raise InputError(f"--dask {address}: the cluster has no workers: start some.") from error
    try:
        versions = set(client.run(code_version).values())
    except ModuleNotFoundError as error:
        raise InputError(
            f"--dask {address}: workers lack policyspace ({error}): install {code_version()} there."
        ) from error
    if versions != {code_version()}:
        found = ", ".join(sorted(versions))
        raise InputError(
            f"--dask {address}: expected workers with policyspace {code_version()}, found {found}: "
            "install the same code."
        )


# -- Where passes over parts run: on threads here, or on a dask cluster; sums have the same bits either way.

T = TypeVar("T")


class Backend(Protocol):
    """What can make a sum over parts."""

    def reduce(
        self, function: Callable[[FilePart], T], parts: Sequence[FilePart], add: Callable[[T, T], T], what: str
    ) -> T:
        """function(part₁) + function(part₂) + …, added two by two in a tree that depends on their number alone."""


class Threads:
    """The cores of this machine, each with a part at a time."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or num_workers()

    def reduce(
        self, function: Callable[[FilePart], T], parts: Sequence[FilePart], add: Callable[[T, T], T], what: str
    ) -> T:
        """The parts in their order, never more at work than there are threads."""
        with single_threaded_blas():
            if self.workers == 1:
                return tree_sum(map(function, counted(parts, what)), add)
            with ThreadPoolExecutor(self.workers) as pool:
                done = _in_order(
                    lambda part: pool.submit(copy_context().run, function, part), parts, self.workers + 1, what
                )
                return tree_sum(done, add)


class Cluster:
    """A dask.distributed cluster, whose workers see the files under the same names."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def reduce(
        self, function: Callable[[FilePart], T], parts: Sequence[FilePart], add: Callable[[T, T], T], what: str
    ) -> T:
        """A task a part; a worker that dies loses its own tasks, which others do again."""
        try:
            most = 4 * max(1, sum(self.client.nthreads().values()))
            done = _in_order(
                lambda part: self.client.submit(_on_one_blas_thread, function, part, pure=False), parts, most, what
            )
            return tree_sum(done, add)
        except Exception as error:
            suffered = cluster_error_message(error, "part of the files")
            if suffered is None:
                raise
            raise InputError(f"the dask cluster did not finish the work ({suffered}): start it again.") from error


def _in_order(submit: Callable[[FilePart], Any], parts: Sequence[FilePart], most: int, what: str) -> Iterator[Any]:
    """The results in the order of the parts, of which at most so many are begun or wait to be added up."""
    waiting = iter(counted(parts, what))
    begun = deque(submit(part) for part in islice(waiting, most))
    try:
        while begun:
            yield begun.popleft().result()
            begun.extend(submit(part) for part in islice(waiting, 1))
    finally:  # after Ctrl-C, or an error: what has not begun never does
        for future in begun:
            future.cancel()


def backend_of(given: Any) -> Backend:
    """None: the threads of this machine; the address of a scheduler, or a client of dask.distributed: its cluster."""
    if given is None:
        return Threads()
    if hasattr(given, "reduce"):
        return given
    if isinstance(given, str):
        return Cluster(connect(given))
    if hasattr(given, "submit") and hasattr(given, "nthreads"):
        return Cluster(given)
    raise InputError(f"backend= is a client of dask.distributed or its address, found {type(given).__name__}.")


def tree_sum(items: Iterable[T], add: Callable[[T, T], T]) -> T:
    """The sum of items in their order, as a binary counter adds them: equal sizes first, few held at a time."""
    held: list[tuple[int, T]] = []
    for item in items:
        size = 1
        while held and held[-1][0] == size:
            item, size = add(held.pop()[1], item), 2 * size
        held.append((size, item))
    if not held:
        raise InputError("a data set needs at least one row, found none: check the files.")
    total = held.pop()[1]
    while held:
        total = add(held.pop()[1], total)
    return total


def counted(parts: Sequence[FilePart], what: str) -> Iterable[FilePart]:
    """The parts, which says how many were handed out and how long the rest may take."""
    begun = monotonic()
    for done, part in enumerate(parts):
        left = (monotonic() - begun) / done * (len(parts) - done) if done > 3 else None
        say_progress(what if left is None or left < 2 else f"{what}, about {left:.0f} s left", done, len(parts))
        yield part


def _on_one_blas_thread(function: Callable[[FilePart], T], part: FilePart) -> T:
    with single_threaded_blas():
        return function(part)
