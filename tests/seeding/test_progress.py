"""Progress: when something is said, and what."""

import io

from bwarp.seeding.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def progress_on(stream):
    times = iter([0.0, 0.5, 1.5, 2.0, 12.0, 12.5, 40.0])
    progress = Progress(stream, lambda: next(times))
    for step in range(6):
        progress.report(1_000_000 * step, 10**step)
    return progress


def test_a_log_gets_a_line_every_ten_seconds():
    log = io.StringIO()
    progress_on(log).clear()
    assert log.getvalue() == (
        "3,000,000 k-mers done, 250,000 a second, 1,000 hits\n"
        "5,000,000 k-mers done, 125,000 a second, 100,000 hits\n"
    )


def test_a_terminal_gets_one_line_rewritten():
    terminal = Terminal()
    progress = progress_on(terminal)
    lines = [
        "1,000,000 k-mers done, 666,667 a second, 10 hits",
        "3,000,000 k-mers done, 250,000 a second, 1,000 hits",
        "5,000,000 k-mers done, 125,000 a second, 100,000 hits",
    ]
    assert terminal.getvalue() == "".join("\r" + line for line in lines)
    progress.clear()
    assert terminal.getvalue().endswith("\r" + " " * len(lines[-1]) + "\r")
    before = terminal.getvalue()
    progress.clear()
    assert terminal.getvalue() == before
