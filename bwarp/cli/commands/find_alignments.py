"""Find every locus where reads align with at most the given number of edits; none is missed."""

from functools import partial

from bwarp.allmap.find import Certificate, LociTask, load, reads_a_chunk
from bwarp.bam.compression_engine import WHILE_MAPPING, compression_for
from bwarp.cli.locus_options import (
    given_extension,
    locus_options,
    open_locus_output,
    outputs_of,
    pair_options,
    write_certificate,
)
from bwarp.cli.options import read_files, warn_of_unmapped_reads
from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.counted import counted
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs, named_together
from bwarp.options.mapping import ALLMAP
from bwarp.reads.read_chunks import pairs_alone
from bwarp.reads.read_files import chunks_of_files
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.chunks import read_ahead
from bwarp.runtime.progress import progress, say

EXAMPLES = """
bwarp allmap --index genome.index -1 reads.fq.gz -o loci.tsv --edits 4
bwarp allmap --index genome.index -1 reads.fq.gz -o loci.tsv --edits 3% \\
    --report best
bwarp allmap --index genome.index -1 probes.fa -o probes.tsv --edits 3 --gaps 0 \\
    --max-places 1000
bwarp allmap --index genome.index -1 reads.fq.gz -o loci.bam --edits 4 \\
    --extension local
"""


def parse_options():
    return program_parser(__doc__, EXAMPLES, ALLMAP)


def main(options):
    limits = locus_options(options, options.filter)
    task = LociTask(limits, options.max_places, pair_options(options), given_extension(options))
    outputs = outputs_of(options.output, options.stats, options.read_group, options.xa)
    files = read_files(options)
    check_outputs(outputs, [options.index, *files.names])
    backend = choose_engine(options.backend, options.gpus)
    compression = compression_for(options.compress, backend)
    compression.begin(WHILE_MAPPING)
    size = reads_a_chunk(backend, task)
    index = load_index(options.index)
    # Compile in parallel before anything compiles on its own.
    compile_first(backend, options, *files.names)
    # Read the first chunks while the genome is loaded.
    chunks = chunks_of_files(files, size, options.threads)
    chunks = read_ahead(pairs_alone(options.first[0], chunks))
    load_on = partial(load, index, task, threads=options.threads, gpus=options.gpus)
    _, engine = or_on_cpu(options.backend, backend, load_on, say)
    certificate = Certificate()
    with named_together():
        with (
            open_locus_output(
                options,
                limits,
                index.reference,
                engine.genome.blocks,
                certificate,
                task.pairing is not None,
                task.extension,
                compression,
            ) as (encode, write),
            progress("read", files=files.names) as report,
        ):
            for texts, counts in engine.find_loci(chunks, encode):
                write(texts)
                certificate.add(counts)
                report(certificate.reads, counted(certificate.loci, "locus"))
        if options.stats:
            write_certificate(options.stats, certificate)
    say(certificate.sentence())
    warn_of_unmapped_reads(certificate.reads, certificate.aligned + certificate.over, files.names)
