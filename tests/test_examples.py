"""The examples in the docstrings of the packages run, and print what they say."""

import doctest
from importlib import import_module

import pytest

from release.house import MODULES

WITH_EXAMPLES = [name for name, module in MODULES.items() if ">>> " in module.text]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert not found.failed
