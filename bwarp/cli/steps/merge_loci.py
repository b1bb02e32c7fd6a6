"""Merge the loci of batches, written by bwarp write-alignments as BAM, TSV or PAF.

The tables .over.tsv and .skipped.tsv and the counts .stats.json of the batches are merged as well.
The output is byte-identical to that of bwarp allmap with all reads.
"""

import gzip
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

from bwarp.allmap.find import Certificate
from bwarp.allmap.locus_bam import CERTIFICATE, certificate_line
from bwarp.allmap.locus_text import LOCI_HEADERS, SIBLING_HEADERS, SIBLINGS, format_of
from bwarp.bam.header import BamHeader
from bwarp.bam.sorted_file import merge_files
from bwarp.cli.locus_options import outputs_of, write_certificate
from bwarp.cli.options import warn_of_unmapped_reads
from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.atomic_output import atomic_files, check_outputs, private_folder
from bwarp.options.common import output
from bwarp.records.alignment_file import put_in_place
from bwarp.runtime.progress import say
from bwarp.seeding.seed_tables import sibling

EXAMPLES = """
bwarp merge-loci 0.bam 1.bam 2.bam -o sample.bam
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES, output("OUT", "file to write, in the same format"))
    parser.add_argument("batches", nargs="+", metavar="BATCH", help="files of loci, in order")
    return parser


def main(options):
    form = format_of(options.output)
    for path in [options.output, *options.batches]:
        if path == "-":
            raise UsageError("-: batches are merged from files to a file: give the name of a file")
        if format_of(path) != form:
            raise UsageError(f"{path}: all files must have the format of the output, {form}")
    inputs = [file for batch in options.batches for file in [batch, *beside(batch)]]
    outputs = outputs_of(options.output, stats_of(options.output))
    check_outputs(outputs, inputs)
    certificate = Certificate()
    for batch in options.batches:
        certificate.add(Certificate.read(stats_of(batch)))
    tables = [
        [(sibling(batch, kind), header) for batch in options.batches]
        for kind, header in zip(SIBLINGS, SIBLING_HEADERS, strict=True)
    ]
    paths = [sibling(options.output, kind) for kind in SIBLINGS]
    if form == "bam":
        with private_folder(options.output) as folder, atomic_files(paths) as files:
            for file, parts in zip(files, tables, strict=True):
                join(file, parts)
            made = folder.absolute() / "out.bam"

            def with_certificate(header: BamHeader) -> BamHeader:
                lines = header.text.splitlines(keepends=True)
                kept = b"".join(line for line in lines if not line.startswith(CERTIFICATE))
                return replace(header, text=kept + certificate_line(certificate))

            merge_files(
                options.batches, made, options.threads, options.output,
                change_header=with_certificate,
            )  # fmt: skip
            put_in_place(made, os.path.realpath(options.output))
    else:
        with atomic_files([*paths, options.output]) as (*files, loci):
            for file, parts in zip(files, tables, strict=True):
                join(file, parts)
            if form == "tsv":
                join_loci(loci, [Path(batch) for batch in options.batches])
            else:
                join(loci, [(Path(batch), b"") for batch in options.batches])
    write_certificate(stats_of(options.output), certificate)
    say(
        f"{options.output}: {counted(len(options.batches), 'batch')} merged: "
        f"{certificate.sentence()}"
    )
    warn_of_unmapped_reads(certificate.reads, certificate.aligned + certificate.over)


def stats_of(path: str) -> Path:
    """Return the path of the counts of a file of loci."""
    return sibling(path, "stats").with_suffix(".json")


def beside(path: str) -> list[Path]:
    return [*(sibling(path, kind) for kind in SIBLINGS), stats_of(path)]


def join(file: IO[bytes], parts: list[tuple[Path, bytes]]) -> None:
    """Concatenate tables, with one header."""
    for number, (path, header) in enumerate(parts):
        with opened(path) as part:
            skip_header(part, path, header)
            if number == 0:
                file.write(header)
            shutil.copyfileobj(part, file, 1 << 20)


def join_loci(file: IO[bytes], paths: list[Path]) -> None:
    """Concatenate tables of loci; if some have pairs, single reads get pair 0."""
    headers = [header_of(path) for path in paths]
    if len(set(headers)) == 1:
        join(file, list(zip(paths, headers, strict=True)))
        return
    paired = max(headers, key=len)
    for path, header in zip(paths, headers, strict=True):
        if header not in (paired, paired.replace(b"\tpair\n", b"\n")):
            raise InputError(
                f"{path}: written with a different --extension than other batches: write all with "
                "the same one"
            )
    file.write(paired)
    for path, header in zip(paths, headers, strict=True):
        with opened(path) as part:
            skip_header(part, path, header)
            if header == paired:
                shutil.copyfileobj(part, file, 1 << 20)
            else:
                file.writelines(line[:-1] + b"\t0\n" for line in part)


def header_of(path: Path) -> bytes:
    """Return the first line of a table of loci; for other files, the start of such a line."""
    with opened(path) as part:
        line = part.readline()
    return line if line in LOCI_HEADERS else LOCI_HEADERS[0]


def skip_header(part: IO[bytes], path: Path, header: bytes) -> None:
    if part.read(len(header)) != header:
        raise InputError(f"{path}: not a table of bwarp write-alignments: write it again")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    open_file = gzip.open if path.suffix == ".gz" else open
    try:
        with open_file(path, "rb") as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path}: the compressed file is damaged ({error}): download or write it again"
        ) from None
