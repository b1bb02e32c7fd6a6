"""Memory that is given back is used again, and not asked of the system once more."""

import platform
import subprocess
import sys

import pytest

from bwarp.runtime import freed_memory
from bwarp.runtime.freed_memory import keep_freed_memory

PROGRAM = """
import resource
from bwarp.runtime.freed_memory import keep_freed_memory

def faults(times):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        bytearray(b"x") * (40 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

{call}
print(faults(1), faults(20))
"""


def faults(call: str) -> list[int]:
    """Pages that a program was given the first time, and in twenty times after that."""
    command = [sys.executable, "-c", PROGRAM.format(call=call)]
    return list(map(int, subprocess.check_output(command).split()))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_what_is_freed_is_used_again():
    once, twenty_times = faults("")
    assert twenty_times > 10 * once
    once, twenty_times = faults("keep_freed_memory()")
    assert twenty_times < once


def test_another_c_library_is_left_as_it_is(monkeypatch):
    class Library:
        def __init__(self, _name):
            pass

    monkeypatch.setattr(freed_memory.ctypes, "CDLL", Library)
    keep_freed_memory()
