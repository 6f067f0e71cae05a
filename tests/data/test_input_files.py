"""Files from outside: judged before they are read, by limits that are settings."""

import gzip
import io
import os
import socket
import stat
import tempfile
import tracemalloc
import zipfile

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyspace import InputError, read
from policyspace import safe_io as input_files
from policyspace.errors import repeated
from policyspace.runtime import DEFAULTS, check_seed, limit
from policyspace.safe_io import guarded, lines_of, parse_json, read_archive, read_npy, read_toml, settings_text


def refused(call, *parts):
    with pytest.raises(InputError) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


def header(shape, kind="<f8"):
    out = io.BytesIO()
    np.lib.format.write_array_header_2_0(out, {"descr": kind, "fortran_order": False, "shape": shape})
    return out.getvalue()


def archive(path, **entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".feather", ".npz"])
@pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
def test_only_regular_files_are_opened(suffix, kind, tmp_path, monkeypatch):
    """Behind a link too. The device is one of our own, and endless."""
    monkeypatch.chdir(tmp_path)
    if kind == "pipe":
        os.mkfifo("other")
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind("other")
    else:
        try:
            os.mknod("other", stat.S_IFCHR | 0o600, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only an administrator can make a device")
    (tmp_path / f"log{suffix}").symlink_to("other")
    refused(lambda: read(f"log{suffix}", actions="a"), "regular file")


def test_settings_are_read_from_regular_files_too(tmp_path):
    os.mkfifo(tmp_path / "a.toml")
    refused(lambda: settings_text(tmp_path / "a.toml"), "regular file")
    refused(lambda: settings_text(tmp_path), "folder")
    refused(lambda: settings_text(tmp_path / "none.toml"), "no such file")


def test_a_gzip_bomb_is_unpacked_only_up_to_its_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("POLICYSPACE_MAX_UNPACKED_BYTES", str(8 << 20))
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"x,a\n" + b"1,b\n" * (64 << 18)))
    tracemalloc.start()
    refused(lambda: read(path, actions="a"), "MAX_UNPACKED_BYTES")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 << 20


def test_unzipping_in_pieces_is_unzipping(tmp_path):
    """Several members, padding, and pieces of any size: as Python's own gzip module."""
    rng = np.random.default_rng(0)
    text = b"".join(rng.bytes(50).hex().encode() + b"\n" for _ in range(100_000))
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(text) + gzip.compress(b"more\n") + b"\0" * 100)
    assert lines_of(path, packed=True) == gzip.decompress(path.read_bytes())
    path.write_bytes(path.read_bytes()[:-200])
    refused(lambda: lines_of(path, packed=True), "last bytes are missing")


@pytest.mark.parametrize(
    "content", [b"a" * 3000, b"x,a\n" + b"1" * 3000 + b"\n1,b\n", b'x,a\n"' + b"1\n" * 1500 + b'",b\n']
)
def test_a_line_without_end_is_refused(content, tmp_path, monkeypatch):
    """A quoted cell may hold many lines, which are one."""
    monkeypatch.setenv("POLICYSPACE_MAX_LINE_BYTES", "2000")
    monkeypatch.setattr(input_files, "CHUNK", 256)
    (tmp_path / "a.csv").write_bytes(content)
    refused(lambda: read(tmp_path / "a.csv", actions="a"), "MAX_LINE_BYTES")


@given(st.lists(st.text('a"\n', max_size=30), max_size=20), st.integers(1, 7))
def test_the_longest_record_is_found_whatever_the_chunks(rows, chunk):
    """Against a plain loop over the characters."""
    text = "".join(rows).encode()
    longest, length, quoted = 0, 0, False
    for byte in text:
        quoted ^= byte == ord('"')
        if byte == ord("\n") and not quoted:
            length = 0
            continue
        length += 1
        longest = max(longest, length)
    found, record, opened = 0, 0, False
    for start in range(0, len(text), chunk):
        part = text[start : start + chunk]
        first, last, opened = input_files.record_ends(part, opened)
        found = max(found, record + (len(part) if first is None else first))
        record = record + len(part) if last is None else len(part) - last
    assert found <= longest <= found + chunk  # records inside one chunk need not be measured


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_many_columns_are_refused_before_they_are_read(suffix, tmp_path, monkeypatch):
    monkeypatch.setenv("POLICYSPACE_MAX_COLUMNS", "50")
    path, frame = tmp_path / f"wide{suffix}", polars.DataFrame({f"c{j}": [1.0, 2.0] for j in range(60)})
    if suffix == ".csv":
        frame.write_csv(path)
    elif suffix == ".parquet":
        frame.write_parquet(path)
    else:
        np.savez(path, features=frame.to_numpy(), actions=[0, 1])
    refused(lambda: read(path, actions="c0"), "MAX_COLUMNS", "50")
    monkeypatch.setenv("POLICYSPACE_MAX_COLUMNS", "100")
    assert read(path, actions=None if suffix == ".npz" else "c0").num_rows == 2


def test_rows_that_take_no_room_are_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("POLICYSPACE_MAX_UNPACKED_BYTES", str(1 << 20))
    path = tmp_path / "bomb.parquet"
    polars.DataFrame({"x": np.zeros(1_000_000), "a": np.zeros(1_000_000)}).write_parquet(path)
    refused(lambda: read(path, actions="a"), "MAX_UNPACKED_BYTES")


CLAIMS = {
    "more": (10**12, 2), "little more": (9,), "overflow": (2**40, 2**40), "negative": (-5, 2), "negative twice": (-2, -2),
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMS)
def test_an_array_that_claims_more_than_it_has(name, tmp_path):
    content = header(CLAIMS[name]) + b"\0" * 64
    refused(lambda: read_archive(archive(tmp_path / "a.npz", x=content)), "'x'", "claims")
    (tmp_path / "a.npy").write_bytes(content)
    refused(lambda: read_npy(tmp_path / "a.npy"), "claims")


def test_an_archive_that_unpacks_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setenv("POLICYSPACE_MAX_UNPACKED_BYTES", str(1 << 20))
    content = header((1 << 20,)) + b"\0" * (8 << 20)
    refused(lambda: read_archive(archive(tmp_path / "a.npz", x=content)), "MAX_UNPACKED_BYTES")


@given(st.sampled_from(["f8", "i4", "u1", "?", "U3", ">f8"]), st.lists(st.integers(0, 4), max_size=3), st.booleans())
def test_arrays_are_read_as_numpy_reads_them(kind, shape, by_columns):
    made = np.arange(int(np.prod(shape))).astype(kind).reshape(shape)
    made = np.asfortranarray(made) if by_columns else made
    out = io.BytesIO()
    np.savez_compressed(out, x=made, y=made[..., :0] if made.ndim else made)
    found = read_archive(out.getvalue())
    with np.load(io.BytesIO(out.getvalue())) as expected:
        for name in ("x", "y"):
            assert found[name].dtype == expected[name].dtype
            assert np.array_equal(found[name], expected[name])


DEEP = {
    "arrays": "a = " + "[" * 50_000, "tables": "a = " + "{a=" * 50_000, "key": ".".join(["a"] * 30_000) + " = 1",
    "quoted key": ".".join(['"a,"'] * 30_000) + " = 1", "header": "[" + ".".join(["a"] * 30_000) + "]",
    "digits": "a = " + "9" * 5000, "no end": "a = '",
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP)
def test_toml_without_end(name, tmp_path):
    (tmp_path / "a.toml").write_text(DEEP[name])
    refused(lambda: read_toml(tmp_path / "a.toml"), "TOML")


def test_good_toml_is_read(tmp_path):
    (tmp_path / "a.toml").write_text("a.b.c = [" + "1.5, " * 2000 + "]\n")
    assert read_toml(tmp_path / "a.toml") == {"a": {"b": {"c": [1.5] * 2000}}}


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "NaN", "[1e999]", "-Infinity", "9" * 5000, "", None, b"\xff"]
)
def test_json_without_end(text):
    refused(lambda: parse_json(text), "JSON")


def test_limits_are_settings(tmp_path, monkeypatch):
    (tmp_path / "a.toml").write_text("a = 1\n" * 3)
    monkeypatch.setenv("POLICYSPACE_MAX_SETTINGS_BYTES", "10")
    refused(lambda: read_toml(tmp_path / "a.toml"), "POLICYSPACE_MAX_SETTINGS_BYTES", "at most 10", "found 18")
    for nonsense in ("", "-1", "0", "x", "1e9", "9" * 40):
        monkeypatch.setenv("POLICYSPACE_MAX_SETTINGS_BYTES", nonsense)
        refused(lambda: limit("MAX_SETTINGS_BYTES"), "POLICYSPACE_MAX_SETTINGS_BYTES", "positive whole number")


def test_every_limit_is_on_the_page():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    assert all(name in page for name in DEFAULTS)


@pytest.mark.parametrize("seed", [-1, 2**63, 10**400, 0.5, "0", None, True])
def test_seeds_beyond_64_bits_are_refused(seed):
    refused(lambda: check_seed(seed), "2^63")
    assert check_seed(2**63 - 1) is None


@given(st.lists(st.text("ab", max_size=2)))
def test_the_first_repeated_name(names):
    expected = next((name for i, name in enumerate(names) if name in names[:i]), None)
    assert repeated(names) == expected


# -- The guard itself: whatever a parser does, the next one too.

PARSER = """
import os, time
def honest(source, content): content.write(b"12345"); return {"name": source}
def hangs(source, content): time.sleep(100)
def spins(source, content):
    while True: pass
def grows(source, content): content.write(b"x" * (2 << 30))
def crashes(source, content): os.abort()
def leaves(source, content): os._exit(7)
def prints(source, content): print("hello"); os.write(1, b"hello"); os.write(2, b"hello")
def fails(source, content): raise RuntimeError("no such thing\\nas this")
"""


@pytest.fixture
def parser(tmp_path, monkeypatch):
    (tmp_path / "parser_of_somebody.py").write_text(PARSER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("POLICYSPACE_MAX_PARSER_SECONDS", "1")
    return "parser_of_somebody:"


def test_what_a_parser_finds_comes_back(parser):
    with tempfile.TemporaryFile() as content:
        assert guarded(f"{parser}honest", "a\nb é", [], content) == {"name": "a\nb é"}
        assert content.read() == b"12345"
    with tempfile.TemporaryFile() as content:
        assert guarded(f"{parser}prints", "a", [], content) is None
        assert content.read() == b""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hangs", "takes more than 1 seconds: if that is meant, set POLICYSPACE_MAX_PARSER_SECONDS"),
        ("spins", "takes more than 1 seconds"),
        ("grows", "bytes of memory: if that is meant, set POLICYSPACE_MAX_PARSER_BYTES"),
        ("crashes", "was stopped (SIGABRT)"),
        ("leaves", "was stopped (exit code 7)"),
        ("fails", "found otherwise (no such thing)"),
    ],
)
def test_what_a_parser_may_do(name, words, parser):
    with pytest.raises(InputError) as error, tempfile.TemporaryFile() as content:
        guarded(f"{parser}{name}", "a", [], content)
    assert words in str(error.value)
