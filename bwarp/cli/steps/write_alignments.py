"""Write the loci of a batch, with the alignments of bwarp extend-candidates: BAM, TSV or PAF.

The last step of the chain except bwarp merge-loci, after bwarp extend-candidates. The
output is byte-identical to that of bwarp allmap for these reads. The ends of pairs are reported
independently or, with --insert-size or --estimated-insert-size, as proper pairs. Proper pairs
require that bwarp seed-reads searched for all loci (--report all).
"""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np

from bwarp.allmap.chain_files import (
    aligned_of_file,
    alignments_at,
    check_all_loci,
    check_most_loci,
    check_rounds,
    options_of_file,
    stored_aligned,
    stored_rounds,
)
from bwarp.allmap.find import Certificate, LociTask, SearchedChunk, finish_chunk
from bwarp.allmap.find_cpu import load
from bwarp.allmap.rounds import joined_rounds
from bwarp.cli.locus_options import open_locus_output, outputs_of, write_certificate
from bwarp.cli.options import warn_of_unmapped_reads
from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs
from bwarp.io.chunk_files import open_chunk_file
from bwarp.mapping.extension_cpu import both_strands
from bwarp.mapping.insert_size import InsertSize, given_insert_size, read_insert_size
from bwarp.mapping.parameters import mapping_parameters
from bwarp.options.common import INDEX_FOLDER, PAIRS_OF_READS, chunk_file
from bwarp.options.mapping import ALL, ALLMAP, estimated_insert_size
from bwarp.options.option import File, Option, yes_no
from bwarp.runtime.chunks import in_order, read_ahead
from bwarp.runtime.progress import progress, say

EXAMPLES = """
bwarp write-alignments --index genome.index --reads batches/0.reads --loci 0.loci -o 0.bam \\
    --stats 0.stats.json
bwarp write-alignments --index genome.index --reads batches/0.reads --loci 0.1.loci 0.2.loci \\
    -o 0.tsv
bwarp write-alignments --index genome.index --reads batches/1.reads --loci 1.loci -o 1.bam \\
    --estimated-insert-size insert_size.json --report best
"""


def parse_options():
    return program_parser(
        __doc__,
        EXAMPLES,
        INDEX_FOLDER,
        chunk_file("reads", "bwarp batch-reads"),
        Option(
            "loci",
            File("LOCI"),
            "files written by bwarp extend-candidates, one per round",
            required=True,
            many=True,
        ),
        ALLMAP["output"],
        *PAIRS_OF_READS,
        estimated_insert_size("bwarp allmap-insert-size"),
        ALLMAP["report"],
        *ALLMAP.only("max_places", "xa", "read_group", "sort_memory", "stats"),
        yes_no(
            "uncompressed",
            "write a BAM for bwarp merge-loci, uncompressed and without an index, which is faster",
        ),
    )


def main(options):
    outputs = outputs_of(
        options.output, options.stats, options.read_group, options.xa, options.uncompressed
    )
    inputs = [options.index, options.reads, *options.loci, options.estimated_insert_size]
    check_outputs(outputs, inputs)
    insert = _insert_size(options)
    index = load_index(options.index)
    genome = load(index.reference, options.threads)
    certificate = Certificate()
    with ExitStack() as files:
        reads = files.enter_context(open_chunk_file(options.reads, "reads"))
        readers = [files.enter_context(open_chunk_file(path, "loci")) for path in options.loci]
        limits, aligned = options_of_file(readers[0]), aligned_of_file(readers[0])
        for reader in readers:
            reader.check_index(index.text_checksum, index.folder)
            same = stored_aligned(aligned_of_file(reader)) == stored_aligned(aligned)
            if options_of_file(reader) != limits or not same:
                raise InputError(
                    f"{reader.path}: searched or aligned with other options than "
                    f"{readers[0].path}: give the rounds of one search"
                )
            check_most_loci(reader, options.max_places, insert is not None)
        if insert is not None:
            check_all_loci(readers[0])
            limits = replace(limits, strata=options.report)
        task = LociTask(limits, options.max_places)
        encode, write = files.enter_context(
            open_locus_output(
                options, limits, index.reference, genome.blocks, certificate, insert is not None,
                aligned.extension,
            )
        )  # fmt: skip
        report = files.enter_context(progress("read", files=[options.reads]))

        def finish(of_chunk):
            chunk, rounds, counts = of_chunk
            if insert is not None and chunk.ends == 1:
                raise UsageError(
                    f"--reads {options.reads}: no pairs: omit --insert-size and "
                    "--estimated-insert-size"
                )
            check_rounds(readers, rounds, np.diff(chunk.offsets))
            both = both_strands(chunk.codes, chunk.offsets)
            strata = limits.strata if insert is None else ALL
            loci = joined_rounds([one.found for one in rounds], chunk.n_reads, strata)
            align = partial(alignments_at, readers, rounds)
            searched = SearchedChunk(chunk, both, loci, counts, align)
            found = finish_chunk(genome, searched, task, insert)
            return encode(found), found.certificate

        chunks = stored_rounds(reads, readers, index.reference)
        for texts, counts in in_order(finish, read_ahead(chunks), options.threads):
            write(texts)
            certificate.add(counts)
            report(certificate.reads, counted(certificate.loci, "locus"))
    say(certificate.sentence())
    warn_of_unmapped_reads(certificate.reads, certificate.aligned + certificate.over)
    if options.stats:
        write_certificate(options.stats, certificate)


def _insert_size(options) -> InsertSize | None:
    """Return the given or estimated insert size, or None for unpaired reads."""
    if options.estimated_insert_size:
        if options.insert_size or options.orientation:
            raise UsageError(
                "--estimated-insert-size cannot be combined with --insert-size or --orientation"
            )
        return read_insert_size(options.estimated_insert_size)
    if options.insert_size:
        sizes = {"insert_size": options.insert_size, "orientation": options.orientation}
        return given_insert_size(mapping_parameters(**sizes))
    if options.orientation or options.report != ALL:
        raise UsageError(
            "--orientation and --report require --insert-size or --estimated-insert-size"
        )
    return None
