"""Names that SAM allows; other programs refuse files with other names, or misread them.

A read's name is printable ASCII without blanks, at most 254 characters for BAM, and has no @ at its
start (SAM's text has no @ in it at all, but everybody reads such names).
"""

import re

__all__ = ["LONGEST_READ_NAME", "is_contig_name", "is_read_name"]

#: A record of BAM keeps the length of its name, and a zero at the end, in one byte.
LONGEST_READ_NAME = 254

_CONTIG = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
_READ = re.compile(rf"[!-?A-~][!-~]{{0,{LONGEST_READ_NAME - 1}}}")


def is_contig_name(name: str) -> bool:
    return _CONTIG.fullmatch(name) is not None


def is_read_name(name: str) -> bool:
    return _READ.fullmatch(name) is not None
