"""The JSON schema of the workflow's configuration, built from the options."""

from bwarp.options.aligning import PAIRS, SEARCH
from bwarp.options.common import BACKEND
from bwarp.options.finding import GUIDES, MEMS, OFFTARGETS, PRIMERS, SCAN, SEEDS
from bwarp.options.mapping import ALLMAP, INDEX, MAP
from bwarp.options.option import CONFIGURATION, File, Option

#: Keys outside the sections.
SETTINGS = (
    Option(
        "reference", File("REF.fa", "a FASTA file, plain or gz"),
        "the genome: FASTA of DNA or RNA, plain or gz. Its name without `.fa.gz` becomes the name "
        "of the index", required=True, only=CONFIGURATION,
    ),
    Option(
        "samples", File("SHEET", "a sample sheet such as config/samples.tsv"),
        "the sample sheet, a table of samples and their FASTQ files", only=CONFIGURATION,
    ),
    BACKEND,
)  # fmt: skip

#: The sections, one per task.
TASKS = {
    "index": INDEX,
    "map": MAP,
    "allmap": ALLMAP,
    "seeds": SEEDS,
    "offtargets": OFFTARGETS,
    "guides": GUIDES,
    "primers": PRIMERS,
    "mems": MEMS,
    "scan": SCAN,
    "pairs": PAIRS,
    "search": SEARCH,
}


def configuration_schema() -> dict:
    """Return the JSON schema of the configuration.

    The entry `write` of each key completes the error message "... cannot be used; write ...", and
    `file` marks the paths of inputs.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "required": [option.name for option in SETTINGS if option.required],
        "write": "the keys that config/README.md lists",
        "properties": {option.name: option.rule() for option in SETTINGS}
        | {name: task.rule() for name, task in TASKS.items()},
    }
