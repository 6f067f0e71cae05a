"""Which code made a record: the package's version, and a digest of the source that records depend on."""

from functools import cache
from hashlib import sha256
from pathlib import Path

import policyspace

SHOWING = ("report", "results", "cli")
"""Packages that only show what was found: a picture that is drawn anew leaves a record what it was."""


@cache
def code_version() -> str:
    """As 0.1.0+3f2a9c1b: two that are equal give the same records for the same settings."""
    root = Path(policyspace.__file__).parent
    digest = sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] in SHOWING:
            continue
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return f"{policyspace.__version__}+{digest.hexdigest()[:8]}"
