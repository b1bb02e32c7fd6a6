"""Starting programs without importing NumPy, Numba or Snakemake each time.

A server is a Python process that has imported them. For each program it forks, and the fork runs
the program like `python SCRIPT ...` or `python -m MODULE ...`: with its own arguments, folder,
standard streams and exit code. Otherwise tests of programs would mostly wait for imports.

    test process --- {"words": [...], "cwd": ..., ...} --> server --- fork ---> program
                 <-- process number, then exit code -----'
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path

__all__ = ["ProgramServer", "become", "preload"]


class ProgramServer:
    """A process that has imported some modules, and forks for each program.

    Parameters
    ----------
    modules : str
        The modules to import. `module:function` is also called, for its effects in memory.
    """

    def __init__(self, *modules: str):
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        command = [sys.executable, __file__, str(requests), str(answers), *modules]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[requests, answers]
        )
        os.close(requests)
        os.close(answers)
        self._answers = open(self._answers)  # noqa: SIM115

    def run(
        self, words, *, cwd=None, environment=(), stdin="", merged=False, timeout=280, end=None
    ):
        """Run a script with arguments, or -m and a module with arguments.

        `end` is a signal to send, and the seconds before that.

        `environment` is added to that of the server; variables that are read during imports cannot
        be changed. Returns the exit code, standard output and standard error; `merged` puts both
        streams into the first, in the order of writing.
        """
        with tempfile.TemporaryDirectory() as folder:
            streams = [Path(folder, name) for name in ("in", "out", "err")]
            streams[0].write_text(stdin)
            if merged:
                streams[2] = streams[1]
            request = {
                "words": list(map(str, words)),
                "cwd": str(cwd or os.getcwd()),
                "environment": dict(environment),
                "streams": list(map(str, streams)),
            }
            os.write(self._requests, json.dumps(request).encode() + b"\n")
            process = int(self._answers.readline())
            number, seconds = end or (signal.SIGKILL, timeout)
            killer = threading.Timer(seconds, _end, (process, number))
            killer.start()
            rc = int(self._answers.readline())
            killer.cancel()
            out, err = (stream.read_text() for stream in streams[1:])
        if rc == -signal.SIGKILL and not end:
            raise subprocess.TimeoutExpired(words, timeout, out, err)
        return rc, out, "" if merged else err

    def close(self):
        os.close(self._requests)
        self._answers.close()
        self._process.wait()


def preload(names: list[str]) -> None:
    """Import modules, call functions given as `module:function`, and get ready to fork."""
    for name in names:
        module, _, function = name.partition(":")
        imported = importlib.import_module(module)
        if function:
            getattr(imported, function)()
    # Forks would copy the memory of all these objects, and collect garbage among them.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)


def _end(process: int, number: int) -> None:
    """Send a signal to a process that may have just ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _serve(requests: int, answers: int) -> None:
    with open(requests) as lines:
        for line in lines:
            process = os.fork()
            if process == 0:
                os.close(requests)
                os.close(answers)
                _run(**json.loads(line))
            os.write(answers, f"{process}\n".encode())
            _, status = os.waitpid(process, 0)
            os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _run(streams: list[str], **request) -> None:
    for number, (path, mode) in enumerate(zip(streams, ("r", "a", "a"), strict=True)):
        with open(path, mode) as file:
            os.dup2(file.fileno(), number)
    become(**request)


def become(words: list[str], cwd: str, environment: dict[str, str]) -> None:
    """Become a program until it ends: a script, or -m and a module, with arguments.

    With -P before -m, the working directory has no modules.
    """
    os.chdir(cwd)
    os.environ.update(environment)
    # If a shell started the tests in the background, they ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 0
    try:
        is_safe = words[0] == "-P"
        words = words[is_safe:]
        if words[0] == "-m":
            sys.argv = words[1:]
            if not is_safe:
                sys.path.insert(0, cwd)
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            sys.path.insert(0, str(Path(words[0]).absolute().parent))
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
        if left.code is not None and not isinstance(left.code, int):
            print(left.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    # Programs import from the checkout, not from this script's own folder.
    sys.path[0] = str(Path(__file__).parents[3])
    preload(sys.argv[3:])
    _serve(int(sys.argv[1]), int(sys.argv[2]))
