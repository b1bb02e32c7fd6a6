"""Progress: when messages appear, their text, and other lines on the same terminal."""

import gzip
import io
import time
import types

import numba
import numba.core.event
import pytest

from bwarp.runtime import progress as module
from bwarp.runtime.progress import (
    announce_compilation,
    duration,
    part_read,
    progress,
    quietly,
    say,
    steps,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def good_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


def reported(stream, **options):
    times = iter([0.0, 0.5, 1.5, 2.0, 12.0, 12.5, 40.0])
    with progress("k-mer", stream=stream, clock=lambda: next(times), **options) as report:
        for step in range(6):
            report(1_000_000 * step, f"{10**step:,} hits")
    return stream.getvalue()


def test_a_log_gets_a_line_every_ten_seconds():
    assert reported(io.StringIO()) == (
        "3,000,000 k-mers done, 250,000 per second, 1,000 hits\n5,000,000 k-mers done, 125,000 "
        "per second, 100,000 hits\n"
    )


def test_a_terminal_gets_one_line_rewritten_and_wiped_out_at_the_end():
    assert reported(Terminal()) == (
        "\r\x1b[K1,000,000 k-mers done, 666,667 per second, 10 hits\r\x1b[K3,000,000 k-mers "
        "done, 250,000 per second, 1,000 hits\r\x1b[K5,000,000 k-mers done, 125,000 per second, "
        "100,000 hits\r\x1b[K"
    )


def test_a_terminal_that_cannot_wipe_out_a_line_is_a_log(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in reported(Terminal())


def test_quiet_runs_report_only_warnings():
    stream = io.StringIO()
    with quietly():
        assert reported(stream) == ""
        say("100 reads", stream)
        say("warning: there is no read", stream)
        with quietly(False):
            say("200 reads", stream)
    say("300 reads", stream)
    assert stream.getvalue() == "warning: there is no read\n200 reads\n300 reads\n"


def test_the_time_left_where_the_number_is_known():
    assert reported(io.StringIO(), total=5_000_000) == (
        "3,000,000 k-mers done, 250,000 per second, 1,000 hits, 8 s left\n5,000,000 k-mers "
        "done, 125,000 per second, 100,000 hits\n"
    )


def test_the_time_left_of_a_file_that_is_read_ahead(monkeypatch):
    # 200 more of 1000 reads are read than done; then all are read; then the file is closed.
    parts = iter([0.3, 0.5, 1.0, None])
    monkeypatch.setattr(module, "part_read", lambda files: next(parts))
    times = iter([0.0, 10.0, 30.0, 80.0, 90.0])
    log = io.StringIO()
    with progress("read", files=["a"], stream=log, clock=lambda: next(times)) as report:
        for done in (100, 300, 800, 900):
            report(done)
    assert log.getvalue() == (
        "100 reads done, 10 per second\n300 reads done, 10 per second, 1 min 10 s left\n800 "
        "reads done, 10 per second, 20 s left\n900 reads done, 10 per second, 10 s left\n"
    )


def test_slow_work_has_a_decimal():
    assert module.progress_line("query", 3, "", 12, 20.0) == (
        "3 queries done, 0.1 per second, 1 min 00 s left"
    )


def test_short_work_is_not_reported():
    for stream in (io.StringIO(), Terminal()):
        with progress("read", stream=stream, clock=lambda: 0.0) as report:
            report(1)
        assert stream.getvalue() == ""


def test_steps():
    log = io.StringIO()
    times = iter([0.0, 5.0, 65.0])
    with steps(log, lambda: next(times)) as done:
        done("first")
        done("second")
    assert log.getvalue() == "second: done after 1 min 05 s\n"


def test_a_line_takes_the_place_of_progress_on_a_terminal():
    terminal, log = Terminal(), io.StringIO()
    for stream in (terminal, log):
        say("done", stream)
    assert (terminal.getvalue(), log.getvalue()) == ("\r\x1b[Kdone\n", "done\n")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 00 s"), (3599.6, "1 h 00 min"), (9000, "2 h 30 min")],
)  # fmt: skip
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_how_far_open_files_are_read(tmp_path):
    paths = [tmp_path / "1.fq.gz", tmp_path / "2.fq"]
    with gzip.open(paths[0], "wb", compresslevel=0) as file:
        file.write(bytes(3 << 20))
    paths[1].write_bytes(bytes(1 << 20))
    assert part_read(paths) is None  # no one reads them
    with gzip.open(paths[0]) as first, open(paths[1], "rb") as second:
        assert part_read(paths) is None
        first.read(1 << 20)
        second.read(1 << 19)
        assert part_read(paths) == pytest.approx((1 + 0.5) / (3 + 1), abs=0.02)
        first.read()
        second.read()
        assert part_read(paths) == 1.0


@pytest.mark.parametrize("files", [[], ["-"], ["/dev/null"]])
def test_the_progress_of_a_pipe_is_unknown(files):
    assert part_read(files) is None


def test_slow_compilation_is_announced_once(monkeypatch):
    listeners = []
    events = types.SimpleNamespace(
        Listener=object, register=lambda kind, listener: listeners.append((kind, listener))
    )
    said, timers = [], []

    class Timer:
        def __init__(self, seconds, write, arguments):
            self.seconds, self.say, self.cancelled = seconds, lambda: write(*arguments), False
            timers.append(self)

        def start(self):
            pass

        def cancel(self):
            self.cancelled = True

    monkeypatch.setattr(module.threading, "Timer", Timer)
    announce_compilation(events, "compile", said.append)
    ((kind, listener),) = listeners
    assert kind == "compile"
    # A function of 0.75 s that needs another of 0.5 s, then one of 9 s, then one of 3 s.
    times = iter([0.0, 0.2, 0.7, 0.75, 3.0, 12.0, 13.0, 16.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(times))
    for event in [listener.on_start] * 2 + [listener.on_end] * 2:
        event(None)
    assert timers[0].cancelled
    listener.on_start(None)
    timers[1].say()  # while it is being compiled
    for event in (listener.on_end, listener.on_start, listener.on_end):
        event(None)
    assert [timer.seconds for timer in timers] == [1.0, 0.25]
    assert [line[:26] for line in said] == ["compiling for this machine"]


def test_the_speed_does_not_include_compiling(monkeypatch):
    stream, times = io.StringIO(), iter([0.0, 12.0])
    with progress("read", total=300, stream=stream, clock=lambda: next(times)) as report:
        monkeypatch.setitem(module._compiling, "of the test", 10.0)
        report(100)
    assert stream.getvalue() == "100 reads done, 50 per second, 4 s left\n"


def test_numba_tells_when_it_compiles(monkeypatch):
    monkeypatch.setattr(module, "LONG_TO_COMPILE", 1e-9)
    before = {kind: list(those) for kind, those in numba.core.event._registered.items()}
    # Programs that ran in this process also listen.
    numba.core.event._registered.clear()
    said = []
    announce_compilation(numba.core.event, write=said.append)
    try:
        function = numba.njit(lambda x: x + 1)
        function(1)
        deadline = time.monotonic() + 10
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(said) == 1
        function(2)
        function(2.5)
        assert len(said) == 1
    finally:
        numba.core.event._registered.clear()
        numba.core.event._registered.update(before)


def test_control_characters_are_shown(capsys):
    say("a\x1b[31m\x07.fa\r, read 'x\t\x9b\u202e\udcff':\nwrite it again: µ")
    shown = "a\\x1b[31m\\x07.fa\\r, read 'x\\t\\x9b\\u202e\\udcff':\nwrite it again: µ\n"
    assert capsys.readouterr().err == shown
