"""Changes that make good input bad: of bytes, of values in JSON, of cells in tables."""

import copy
import random
from typing import Any

NUMBERS = [
    0, -1, 1, 2, 5, 0.5, -0.0, 1e-320, 1e308, -1e308, 2**31, 2**53 + 1, 2**63, 2**64, 10**30, 10**400, float("nan"),
    float("inf"), float("-inf"),
]  # fmt: skip
TEXTS = [
    "",
    "x",
    "NaN",
    "[bold]x[/bold]",
    "a\nb",
    "\x1b[31m",
    "\u202e",
    "\0",
    "é" * 40,
    "../x",
    "1e999",
    "nan",
    "'; --",
]
VALUES: list[Any] = [None, True, False, [], {}, [[]], [None], {"a": 1}, [1, "x"], *NUMBERS, *TEXTS]
CELLS = [
    "", " ", "nan", "inf", "-inf", "NA", "null", "1e400", "1e-400", "1e308", "-1e308", "9" * 45, "9" * 400, "0x10", "1_000",
    "true", "False", "2020-01-01", "12:30", '"', '""', '"a', 'a"b', "a,b", "\t", "é", "\u202e", "\x1b[31m", "\0", "=1+1",
    "1;2", "٣", "1e", "--1", "1.5.2", "+5", "-0", "0.1", "7", "go", "stop", "[red]go",
]  # fmt: skip


def bytes_of(rng: random.Random, content: bytes) -> bytes:
    """A few random changes anywhere in a file, most of them small."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        where = rng.randrange(len(data) + 1)
        kind = rng.randrange(7)
        if kind == 0 and data:
            data[where % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1 and data:
            data[where % len(data)] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif kind == 2:
            del data[where : where + rng.choice([1, 2, 8, 64])]
        elif kind == 3:
            data[where:where] = rng.randbytes(rng.choice([1, 2, 8, 64]))
        elif kind == 4:
            data[where:where] = data[where : where + rng.choice([1, 8, 64, 512])]
        elif kind == 5:
            del data[where:]
        else:
            width = rng.choice([2, 4, 8])
            data[where : where + width] = rng.choice([0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1]).to_bytes(8, "little")[
                :width
            ]
    return bytes(data)


def value_of(rng: random.Random, value: Any) -> Any:
    """A copy of a JSON value in which one thing, at any depth, is missing, doubled, of another type or out of range."""
    value = copy.deepcopy(value)
    places = list(_places(value))
    if not places or rng.random() < 0.02:
        return rng.choice(VALUES)
    holder, key = rng.choice(places)
    kind = rng.randrange(4)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif kind == 2 and isinstance(holder, dict):
        holder[rng.choice(TEXTS)] = holder.pop(key)
    else:
        holder[key] = rng.choice(VALUES)
    return value


def _places(value: Any, most: int = 400) -> list[tuple[Any, Any]]:
    found, waiting = [], [value]
    while waiting and len(found) < most:
        holder = waiting.pop()
        if not isinstance(holder, dict | list):
            continue
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))[:12]
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys]
    return found
