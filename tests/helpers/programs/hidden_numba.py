"""Numba that programs of a server seem to import anew, without the time that this takes."""

import copy
import sys

import numba
from numba.core.entrypoints import init_all

__all__ = ["hide"]


class _Hidden:
    """Finds and loads the modules of Numba, which have been imported before."""

    def __init__(self):
        names = [name for name in sys.modules if name.partition(".")[0] == "numba"]
        self.modules = {name: sys.modules.pop(name) for name in names}

    def find_spec(self, name, _path=None, _target=None):
        if name not in self.modules:
            return None
        spec = copy.copy(self.modules[name].__spec__)
        spec.loader = self
        return spec

    def create_module(self, spec):
        return self.modules[spec.name]

    def exec_module(self, _module):
        sys.modules.update(self.modules)


def hide() -> None:
    """Prepare Numba for compiling; then remove it from the modules that are imported."""
    init_all()
    numba.njit(no_cfunc_wrapper=True)(lambda x: x + 1)(1)
    sys.meta_path.insert(0, _Hidden())
