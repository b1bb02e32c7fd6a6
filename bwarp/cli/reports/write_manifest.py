"""Write a manifest of a run as JSON: checksums of its files, versions and parameters."""

import json

from bwarp.cli.program import program_parser
from bwarp.errors import UsageError
from bwarp.io.atomic_output import check_outputs, write_text
from bwarp.options.common import output
from bwarp.report.manifest import manifest

EXAMPLES = """
bwarp write-manifest --inputs genome.fa R1.fq.gz R2.fq.gz --outputs sample.bam -o manifest.json
"""


def parse_options():
    parser = program_parser(
        __doc__ + " Checksums are MD5; each file is read once.",
        EXAMPLES,
        output("OUT.json", "file to write"),
    )
    parser.add_argument(
        "--inputs", nargs="+", required=True, metavar="FILE", help="files, or folders of files"
    )
    parser.add_argument(
        "--outputs", nargs="*", default=[], metavar="FILE", help="files, or folders of files"
    )
    parser.add_argument(
        "--parameters",
        default="{}",
        metavar="JSON",
        help="further entries, as a JSON object (default: none)",
    )
    return parser


def main(options):
    check_outputs([options.output], [*options.inputs, *options.outputs])
    try:
        parameters = json.loads(options.parameters)
    except ValueError:
        parameters = None
    if not isinstance(parameters, dict):
        raise UsageError('--parameters is not a JSON object: write one such as {"mode": "local"}')
    made = manifest(options.inputs, options.outputs, parameters, options.threads)
    write_text(options.output, json.dumps(made, indent=1) + "\n")
