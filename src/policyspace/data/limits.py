"""How much a file or an option may ask of the machine: settings, each changed by the environment variable of its name."""

import os
from types import MappingProxyType

from policyspace.errors import InputError

DEFAULTS = MappingProxyType(
    {
        "POLICYSPACE_MAX_TEXT_BYTES": 4 << 30,  # of a CSV or TSV file
        "POLICYSPACE_MAX_LINE_BYTES": 16 << 20,  # of one of its lines
        "POLICYSPACE_MAX_UNPACKED_BYTES": 512 << 20,  # that a compressed file may become
        "POLICYSPACE_MAX_UNPACKING_RATIO": 10,  # unless it is less than so many times its own size
        "POLICYSPACE_MAX_BYTES_AT_ONCE": 256 << 20,  # of a data set that is read whole; a larger one is read in passes
        "POLICYSPACE_MAX_CLUSTERS": 4_000_000,  # episodes or subjects of one that is read in passes
        "POLICYSPACE_MAX_PRODUCTS": 3 * 10**12,  # of numbers in the lean test of one that is read in passes
        "POLICYSPACE_MAX_COLUMNS": 10_000,  # of a table
        "POLICYSPACE_MAX_SETTINGS_BYTES": 4 << 20,  # of a TOML or JSON file
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
