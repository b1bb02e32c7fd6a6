"""A `python` for the jobs of a workflow that does not start Python: a server forks for each
program.

A job runs `python SCRIPT ...` in bash. In the environment of a `ForkedPython` this is a function.
Its small program sends arguments, folder, environment and streams to a server that has imported the
package (like `program_server`), waits, and exits with the exit code of the fork.

    bash --- client --- socket --> server --- fork ---> program

It is for tests of the results of several programs. It always uses the package of the checkout, even
in a copy: tests of starting programs, and of copies with changed code, use the real Python.
"""

import json
import os
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.helpers.programs.program_server import become, preload

__all__ = ["ForkedPython"]

#: The program of a job. It ends like the forked program.
CLIENT = """
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
socket.send_fds(server, [b"."], [0, 1, 2])
request = {"words": sys.argv[2:], "cwd": os.getcwd(), "environment": dict(os.environ)}
server.sendall(json.dumps(request).encode() + b"\\n")
code = int(server.makefile().readline())
if code < 0:
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class ForkedPython:
    """A `python` as a bash function and as an executable file, and the server of both.

    Parameters
    ----------
    modules : str
        Modules that the server imports before the first job, as in `ProgramServer`.
    """

    def __init__(self, *modules: str):
        # The name of a socket may have at most about 100 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="python"))
        (self.folder / "client.py").write_text(CLIENT)
        words = [sys.executable, "-IS", str(self.folder / "client.py"), str(self.folder / "socket")]
        (self.folder / "bash").write_text(f'python() {{ {shlex.join(words)} "$@"; }}\n')
        self.executable = self.folder / "python"
        self.executable.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        self.executable.chmod(0o755)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.folder / "socket"))
            listening.listen(64)
            self._server = subprocess.Popen(
                [sys.executable, "-m", __spec__.name, str(listening.fileno()), *modules],
                stdin=subprocess.PIPE,
                pass_fds=[listening.fileno()],
                cwd=Path(__file__).resolve().parents[3],
            )

    @property
    def environment(self) -> dict[str, str]:
        """Return variables for the environment of jobs; bash reads the file when it starts."""
        return {"BASH_ENV": str(self.folder / "bash")}

    def close(self):
        self._server.communicate()
        shutil.rmtree(self.folder)


def _serve(listening: socket.socket) -> None:
    """Fork for each client, and send it the exit code, until the end of standard input."""
    ended, wake = socket.socketpair()
    for end in (ended, wake):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    waiting = selectors.DefaultSelector()
    waiting.register(listening, selectors.EVENT_READ)
    waiting.register(ended, selectors.EVENT_READ)
    waiting.register(sys.stdin, selectors.EVENT_READ)
    clients = {}
    while True:
        for key, _ in waiting.select():
            if key.fileobj is sys.stdin:
                return
            if key.fileobj is ended:
                ended.recv(1000)
                _tell_of_the_ended(clients)
            else:
                client, _ = listening.accept()
                process = os.fork()
                if process == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    listening.close()
                    _be_the_program(client)
                clients[process] = client


def _tell_of_the_ended(clients: dict[int, socket.socket]) -> None:
    while clients:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process == 0:
            return
        with clients.pop(process) as client:
            client.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _be_the_program(client: socket.socket) -> None:
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    with client.makefile() as lines:
        request = json.loads(lines.readline())
    client.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    become(**request)


if __name__ == "__main__":
    number, *modules = sys.argv[1:]
    preload(modules)
    _serve(socket.socket(fileno=int(number)))
