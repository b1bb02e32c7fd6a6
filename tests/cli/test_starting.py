"""Python's garbage collector is off during imports, and on afterwards."""

import subprocess
import sys

GARBAGE = """
import gc
import weakref

class Node:
    pass

def is_collected(collect):
    node = Node()
    node.itself = node
    of_node = weakref.ref(node)
    del node
    collect()
    return of_node() is None
"""


def said(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", GARBAGE + code], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_garbage_is_collected_after_the_imports():
    code = """
from bwarp.cli.starting import guard
guard()
print(gc.isenabled())
from bwarp.cli.program import (program_parser, run_program)

def main(options):
    print(gc.isenabled(), gc.get_freeze_count() > 10_000)
    print(is_collected(gc.collect))
    print(is_collected(lambda: [[] for _ in range(100_000)]))

run_program(program_parser("Look.", "look"), main, [])
"""
    assert said(code) == ["False", "True True", "True", "True"]


def test_a_process_with_other_code_keeps_its_garbage_collection():
    code = """
from bwarp.cli.starting import begin_work
begin_work()
print(gc.isenabled(), gc.get_freeze_count())
gc.disable()
begin_work()
print(gc.isenabled())
"""
    assert said(code) == ["True 0", "False"]
