"""Linking stored code once for many programs, which takes most of the time of a short one."""

import importlib
from contextlib import suppress

from bwarp.cli.first_use.listed_functions import listed_functions


def link_stored() -> None:
    """Link all functions of programs whose code is stored."""
    for one in listed_functions():
        module, _, name = one.function.rpartition(".")
        with suppress(ImportError, AttributeError):  # the list may be outdated
            function = getattr(importlib.import_module(module), name)
            # Others are stored later, by the program that calls them first.
            if function.is_stored(one.types):
                function.linked(one.types)
