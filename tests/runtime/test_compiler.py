"""What happens before the first function is compiled."""

import importlib
import threading

import pytest

from bwarp.runtime import compiler

SLOW = """
from bwarp.runtime import compiler
from tests.runtime.test_compiler import importing, waiting

importing.set()
waiting.wait(0.5)
compiler.when_compiling(list)
"""

importing, waiting = threading.Event(), threading.Event()


@pytest.mark.timeout(120)
def test_a_thread_that_imports_and_one_that_compiles_do_not_wait_for_each_other(
    tmp_path, monkeypatch
):
    (tmp_path / "imported_slowly.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    called = []

    def begin():
        importlib.import_module("imported_slowly")
        called.append(True)

    monkeypatch.setattr(compiler, "_has_begun", False)
    monkeypatch.setattr(compiler, "_to_begin_with", [begin])
    works = (lambda: importlib.import_module("imported_slowly"), compiler.begin_compiling)
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
        assert importing.wait(10)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert called == [True]
    assert compiler._has_begun
    compiler.begin_compiling()
    assert called == [True]
    late = []
    compiler.when_compiling(lambda: late.append(True))
    assert late == [True]


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_function_that_raises_is_called_again_and_so_are_those_after_it(monkeypatch, is_nested):
    called = []

    def begin():
        called.append("first")
        if is_nested:  # it compiles a function itself
            compiler.begin_compiling()
        if called.count("first") == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(compiler, "_has_begun", False)
    monkeypatch.setattr(compiler, "_to_begin_with", [begin, lambda: called.append("second")])
    with pytest.raises(KeyboardInterrupt):
        compiler.begin_compiling()
    compiler.begin_compiling()
    assert sorted(called) == ["first", "first", "second"]
    compiler.begin_compiling()
    assert len(called) == 3
