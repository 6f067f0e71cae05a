"""What users may rely on, as it is recorded: public names, their parameters and defaults, and the options of each command.

`python -m tests.golden_record public_interface` makes the record anew: do so only when it is meant to change.
"""

import pytest
from golden_record.public_interface import interface
from golden_record.record import plain, read


@pytest.mark.quick
def test_the_public_interface_is_the_one_of_the_record():
    found, recorded = plain(interface()), read("public_interface")
    assert list(found) == list(recorded)
    for name in recorded:
        assert found[name] == recorded[name], name
