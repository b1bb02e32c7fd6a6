"""Estimate the insert size from the best hits of the first pairs, as bwarp map does.

Run it once per unit that is mapped in parts, with the same scores. The output is JSON: mean,
standard deviation, bounds of proper pairs, and orientation; - is standard output.
"""

from bwarp.cli.program import program_parser
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs, write_text
from bwarp.mapping.engine import reads_a_chunk
from bwarp.mapping.extension_cpu import genome_of
from bwarp.mapping.insert_size import insert_size_text
from bwarp.mapping.parameters import mapping_parameters
from bwarp.mapping.pipeline import CpuMapEngine
from bwarp.options.common import INDEX_FOLDER, output
from bwarp.options.mapping import ALIGNMENT, BATCHES, MAP
from bwarp.reads.stored_reads import part_of_batches, reads_of_files

EXAMPLES = """
bwarp map-insert-size --index genome.index --batches batches -o insert_size.json
"""


def parse_options():
    return program_parser(
        __doc__,
        EXAMPLES,
        INDEX_FOLDER,
        BATCHES._replace(required=True),
        output("OUT.json", "file to write"),
        *MAP.only(*ALIGNMENT, "B"),
    )


def main(options):
    check_outputs([options.output], [options.index, options.batches])
    given = {name: getattr(options, name) for name in ALIGNMENT}
    parameters = mapping_parameters(least_score=given.pop("min_score"), **given)
    files = part_of_batches(options.batches, 1, 1)
    index = load_index(options.index)
    genome = genome_of(index.reference, options.threads)
    engine = CpuMapEngine(index, genome, parameters, options.threads)
    chunks = reads_of_files(files, reads_a_chunk("cpu", options.threads))
    write_text(options.output, insert_size_text(engine.first_insert_size(chunks)))
