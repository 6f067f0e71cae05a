"""Makes Gymnasium know our worlds as soon as both packages are imported, in whichever order, without importing it.

Gymnasium before 1.0 asks the plugin entry point; since then a package must register its environments itself.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


class _AfterGymnasium(MetaPathFinder, Loader):
    """Loads Gymnasium as it would have been loaded, then registers."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "gymnasium" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return None
        self._loader = spec.loader
        spec.loader = self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _register()


def _register() -> None:
    from policyspace.worlds.environments import register_worlds

    register_worlds()


def announce() -> None:
    """Register now if Gymnasium is there, otherwise when it comes."""
    if "gymnasium" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _AfterGymnasium())
