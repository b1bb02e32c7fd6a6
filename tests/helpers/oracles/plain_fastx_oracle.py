"""FASTA and FASTQ in the simplest way: lines of bytes and regular expressions."""

import re

from bwarp.sequence import decode, encode

NUCLEOTIDES = b"ACGTURYSWKMBDHVN"
AMINO_ACIDS = b"A-Z*"


def spelled(sequence: bytes, alphabet: bytes) -> bytes:
    """Return a sequence in bwarp's form: T for U, N for ambiguous bases; proteins in upper case."""
    return decode(encode(sequence)) if alphabet == NUCLEOTIDES else sequence.upper()


def plain_records(text: bytes, alphabet: bytes = NUCLEOTIDES):
    """Return (header, sequence in bwarp's form, qualities) of each record.

    If there is an error, return the number of its line instead.
    """
    blank = re.match(rb"(\r?\n)*", text).end()
    if text[blank:] in (b"", b"\r"):
        return []
    if text[blank : blank + 1] == b">":
        return plain_fasta(text, blank, alphabet)
    if text[blank : blank + 1] == b"@":
        return plain_fastq(text + b"\n", blank, alphabet)
    return text.count(b"\n", 0, blank) + 1


def plain_fasta(text: bytes, at: int, alphabet: bytes):
    first_line = text.count(b"\n", 0, at) + 1
    records: list[list[bytes]] = []
    for number, line in enumerate(text[at:].split(b"\n"), first_line):
        line = line.removesuffix(b"\r")
        if line.startswith(b">"):
            if b"\r" in line:
                return number
            records.append([line[1:], b""])
            continue
        bases = line.translate(None, b" \t")
        if not re.fullmatch(rb"[%s]*" % alphabet, bases, re.IGNORECASE):
            return number
        records[-1][1] += spelled(bases, alphabet)
    return [(header, bases, None) for header, bases in records]


def plain_fastq(text: bytes, at: int, alphabet: bytes):
    records = []
    while True:
        while text[at : at + 1] in (b"\r", b"\n"):
            at += 1
        if at == len(text):
            return records
        line = text.count(b"\n", 0, at) + 1
        four = text[at:].split(b"\n", 4)
        if len(four) < 5:
            return line
        header, bases, plus, qualities = (part.removesuffix(b"\r") for part in four[:4])
        if not header.startswith(b"@") or b"\r" in header:
            return line
        if not re.fullmatch(rb"[%s]*" % alphabet, bases, re.IGNORECASE):
            return line + 1
        if plus not in (b"+", b"+" + header[1:]):
            return line + 2
        if not re.fullmatch(rb"[!-~]*", qualities) or len(qualities) != len(bases):
            return line + 3
        records.append((header[1:], spelled(bases, alphabet), qualities))
        at += len(text[at:]) - len(four[4])
