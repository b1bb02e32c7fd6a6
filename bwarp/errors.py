"""The two ways a run can be refused: what was typed, or what was read.

Every message is one sentence that says what is wrong, where (file, line or record, value), and
what to type or do instead. The programs print it as their last line and exit with `exit_code`.
"""


class BwarpError(Exception):
    """A problem the user can mend; never a bug in bwarp."""

    exit_code = 1


class InputError(BwarpError):
    """A file, or what stands in it, cannot be used."""

    exit_code = 1


class UsageError(BwarpError):
    """An option or a config value cannot be used."""

    exit_code = 2


class GpuMemoryError(UsageError):
    """The GPU has too little memory for what was asked of it; `reason` says just that."""

    def __init__(self, reason: str):
        super().__init__(f"{reason}: use --backend cpu, or a GPU with more memory")
        self.reason = reason
