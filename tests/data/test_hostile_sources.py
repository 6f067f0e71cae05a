"""Files of other tools that are made to hurt: one sentence, within seconds, and without the memory that they ask for."""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import policyspace
from policyspace import InputError, read

h5py = pytest.importorskip("h5py")

MOST_SECONDS = 10
MOST_MEMORY = 1 << 30


def refused(source, words):
    """One sentence within 10 seconds."""
    began = time.monotonic()
    with pytest.raises(InputError) as error:
        read(source)
    assert time.monotonic() - began < MOST_SECONDS
    sentence = str(error.value)
    assert words in sentence, sentence
    assert sentence.startswith(str(source)) and "\n" not in sentence


# -- HDF5.

SEEN = np.arange(120.0).reshape(40, 3)
ACTED = np.tile([0, 1], 20)


@pytest.fixture
def log(tmp_path):
    """An honest file, which each test makes a dishonest one of."""
    path = tmp_path / "log.hdf5"
    with h5py.File(path, "w") as file:
        file["actions"] = ACTED
        file.create_group("infos")
    return path


def test_an_honest_file_is_read_with_the_same_numbers(log):
    with h5py.File(log, "a") as file:
        file["observations"] = SEEN
    found = read(log)
    np.testing.assert_array_equal(found.features, SEEN)
    np.testing.assert_array_equal(found.actions, ACTED)


def linked_by_name(file):
    file["observations"] = h5py.SoftLink("/infos")


def linked_to_another_file(file):
    file["observations"] = h5py.ExternalLink("/etc/passwd", "/observations")


def stored_elsewhere(file):
    file.create_dataset("observations", (40, 3), dtype="f8", external=[("/dev/zero", 0, 960)])


def virtual(file):
    layout = h5py.VirtualLayout((40, 3), dtype="f8")
    layout[:] = h5py.VirtualSource("other.h5", "observations", (40, 3))
    file.create_virtual_dataset("observations", layout)


def circle(file):
    group = file.create_group("observations")
    group["again"] = group


def shared(file):
    """26 levels, each linked twice: 2²⁶ paths to one array."""
    inside = file.create_group("observations")
    for level in range(26):
        below = inside.create_group("a") if level < 25 else inside.create_dataset("a", data=SEEN)
        inside["b"] = below
        inside = below


def claimed(file):
    file.create_dataset("observations", (1 << 34, 3), dtype="f8", chunks=(1024, 3))


def packed(file):
    file.create_dataset("observations", (10**8, 1), dtype="f8", chunks=(10**6, 1), compression="gzip", fillvalue=1.0)


def references(file):
    file["observations"] = np.array([file.ref] * 40, dtype=h5py.ref_dtype)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (linked_by_name, "a link to elsewhere"),
        (linked_to_another_file, "a link to elsewhere"),
        (stored_elsewhere, "whose numbers are in other files"),
        (virtual, "whose numbers are in other files"),
        (circle, "which has 2 names"),
        (shared, "which has 2 names"),
        (claimed, "unpack to more than"),
        (packed, "unpack to more than"),
        (references, "must be numbers"),
    ],
)
def test_hdf5(make, words, log):
    with h5py.File(log, "a") as file:
        make(file)
    refused(log, words)


def test_a_file_with_holes_is_judged_by_what_it_holds(log):
    """A terabyte that is not there allows no more memory."""
    with h5py.File(log, "a") as file:
        claimed(file)
    os.truncate(log, 1 << 40)
    refused(log, "unpack to more than" if log.stat().st_blocks * 512 >= 1 << 40 else "")


@pytest.mark.parametrize("place", [0, 8, 30, 100, 600, 2000])
def test_hdf5_with_damaged_bytes(place, log):
    with h5py.File(log, "a") as file:
        file["observations"] = SEEN
    data = bytearray(log.read_bytes())
    data[place : place + 8] = b"\xff" * 8
    log.write_bytes(data)
    try:
        assert read(log).num_rows > 0
    except InputError as error:
        assert "\n" not in str(error)


# -- LeRobot.


@pytest.fixture
def robot(tmp_path):
    """A folder with its description, whose Parquet files each test writes."""
    (tmp_path / "robot" / "meta").mkdir(parents=True)
    (tmp_path / "robot" / "data").mkdir()
    features = {
        "observation.state": {"dtype": "float32", "shape": [2]},
        "action": {"dtype": "float32", "shape": [1]},
        "episode_index": {"dtype": "int64"},
        "frame_index": {"dtype": "int64"},
    }
    (tmp_path / "robot" / "meta" / "info.json").write_text(json.dumps({"features": features}))
    return tmp_path / "robot"


def parquet(path, rows, wide):
    import pyarrow
    import pyarrow.parquet

    state = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.zeros(rows * wide)), wide)
    one = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.arange(rows) % 7 * 1.0), 1)
    index = pyarrow.array(np.arange(rows))
    columns = {"observation.state": state, "action": one, "episode_index": index, "frame_index": index}
    with pyarrow.parquet.ParquetWriter(path, pyarrow.table(columns).schema, compression="zstd") as writer:
        writer.write_table(pyarrow.table(columns))


def test_an_honest_folder(robot):
    parquet(robot / "data" / "a.parquet", 50, 2)
    assert read(robot, discrete=False).num_rows == 50


def test_a_parquet_file_that_unpacks_to_gigabytes(robot):
    parquet(robot / "data" / "a.parquet", 1000, 20_000)
    for i in range(28):
        shutil.copy(robot / "data" / "a.parquet", robot / "data" / f"{i}.parquet")
    assert sum(path.stat().st_size for path in (robot / "data").iterdir()) < 8 << 20, "4.6 GB of numbers"
    refused(robot, "memory")


def test_no_process_takes_a_gigabyte(robot, log):
    parquet(robot / "data" / "a.parquet", 1000, 20_000)
    for i in range(28):
        shutil.copy(robot / "data" / "a.parquet", robot / "data" / f"{i}.parquet")
    with h5py.File(log, "a") as file:
        packed(file)
    script = (
        "import policyspace, resource, sys\n"
        "for source in sys.argv[1:]:\n"
        "    try: policyspace.read(source)\n"
        "    except policyspace.InputError: print('refused')\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        "print(*[line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')])\n"
    )
    said = [sys.executable, "-c", script, str(robot), str(log)]
    done = subprocess.run(said, capture_output=True, text=True, timeout=60)
    *refusals, others, own = done.stdout.split()
    assert refusals == ["refused", "refused"], done
    assert 50_000 < max(int(own), int(others)) < MOST_MEMORY // 1024


def test_a_pipe_among_the_files(robot):
    parquet(robot / "data" / "a.parquet", 50, 2)
    os.mkfifo(robot / "data" / "b.parquet")
    refused(robot, "expected a regular file, found a pipe")


def test_a_pipe_instead_of_the_description(robot):
    (robot / "meta" / "info.json").unlink()
    os.mkfifo(robot / "meta" / "info.json")
    refused(robot, "a folder of neither Minari nor LeRobot")


# -- Minari.


@pytest.fixture
def episodes(tmp_path):
    minari = pytest.importorskip("minari")
    import gymnasium

    buffers = [
        minari.data_collector.EpisodeBuffer(
            observations=list(np.random.default_rng(i).normal(size=(11, 2)).astype(np.float32)),
            actions=[0, 1] * 5,
            rewards=[0.0] * 10,
            terminations=[False] * 9 + [True],
            truncations=[False] * 10,
        )
        for i in range(3)
    ]
    os.environ["MINARI_DATASETS_PATH"], before = str(tmp_path), os.environ.get("MINARI_DATASETS_PATH")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(
            "walk-v1",
            buffers,
            observation_space=gymnasium.spaces.Box(-9, 9, (2,)),
            action_space=gymnasium.spaces.Discrete(2),
        )
    yield tmp_path / "walk-v1"
    del os.environ["MINARI_DATASETS_PATH"]
    if before is not None:
        os.environ["MINARI_DATASETS_PATH"] = before


def test_an_honest_dataset_by_its_folder_and_by_its_id(episodes):
    assert read(episodes).num_rows == read("walk-v1").num_rows == 30


def test_minari_with_a_link_to_another_file(episodes):
    with h5py.File(episodes / "data" / "main_data.hdf5", "a") as file:
        del file["episode_1"]["rewards"]
        file["episode_1"]["rewards"] = h5py.ExternalLink("/dev/zero", "/")
    refused(episodes, "a link to elsewhere")


def test_minari_with_a_pipe(episodes):
    os.mkfifo(episodes / "data" / "more.hdf5")
    refused(episodes, "expected a regular file, found a pipe")


# -- Wherever the process that reads is started from.


def in_daemon(path, queue):
    queue.put(policyspace.read(path).num_rows)


def test_it_works_in_a_process_that_may_have_no_children(log):
    """Such as a worker of torch's data loader, or of a pool."""
    with h5py.File(log, "a") as file:
        file["observations"] = SEEN
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    worker = context.Process(target=in_daemon, args=(log, queue), daemon=True)
    worker.start()
    assert queue.get(timeout=60) == 40
    worker.join(10)


def test_it_works_where_the_program_is_no_file(log):
    """As in a notebook, or typed in: nothing imports `__main__` again."""
    with h5py.File(log, "a") as file:
        file["observations"] = SEEN
    text = f"import policyspace; print(policyspace.read({str(log)!r}).num_rows)"
    done = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, timeout=60)
    assert done.stdout == "40\n", done.stderr


FORKED = """
import os, signal, sys
import policyspace
policyspace.read(sys.argv[1])
child = os.fork()
if not child:
    signal.alarm(20)
    policyspace.identify([[0.0], [1.0], [2.0], [1.0]] * 5, [0.0, 1.0, 0.5, 2.0] * 5)
    try:
        policyspace.read(sys.argv[1])
    except policyspace.InputError as error:
        print(error, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_says_that_it_cannot_read_instead_of_waiting_for_ever(tmp_path):
    path = tmp_path / "log.parquet"
    policyspace.write(policyspace.Sample.from_arrays(SEEN, np.sin(SEEN[:, 0])), path)
    done = subprocess.run([sys.executable, "-c", FORKED, str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "multiprocessing.get_context('spawn')" in done.stdout, done


def test_a_forked_process_reads_where_nothing_was_read_before(tmp_path):
    path = tmp_path / "log.parquet"
    policyspace.write(policyspace.Sample.from_arrays(SEEN, np.sin(SEEN[:, 0])), path)
    script = FORKED.replace("policyspace.read(sys.argv[1])\nchild", "child")
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, ""), done
