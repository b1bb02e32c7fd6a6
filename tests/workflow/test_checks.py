"""All problems of a configuration or sheet are reported before anything runs."""

import pytest

from bwarp.options.configuration import configuration_schema

EXTENDED = (
    "Config file config/config.yaml is extended by additional config specified via the command "
    "line.\n"
)


@pytest.fixture(scope="module")
def copy(make_copy):
    return make_copy()


def test_all_problems_of_all_files_at_once(copy):
    (copy / "mine.yaml").write_text(
        "reference: small.fasta\n"
        "samples: mine.tsv\n"
        "backend: gpu\n"
        "index:\n"
        "  occ_rate: 100\n"
        "  sa_rate: 0\n"
        "  prefix_len: 12\n"
        "threads: 8\n"
    )
    (copy / "mine.tsv").write_text(
        "sample\tunit\tfq1\tfq2\n"
        "a\t1\tsmall.fa\tsmall.fa\n"
        "a\t1\tresources/demo/reads_1.fq.gz\n"
        "b c\t\tnone.fq\n"
    )
    sections = ", ".join(configuration_schema()["properties"])
    expected = f"""\
Nothing was run: there are 10 problems in the configuration.
  mine.tsv, line 2, column fq2: small.fa is also in column fq1: give each file once
  mine.tsv, line 3, column unit: a 1 is also in line 2: give each line its own sample and unit
  mine.tsv, line 4, column sample: 'b c' is not valid: write a sample name of letters, digits, \
_ . and -, because it becomes a file name
  mine.tsv, line 4, column fq1: none.fq does not exist: write a path relative to the folder \
in which snakemake starts
  mine.yaml, line 1, reference: small.fasta does not exist: write a path relative to the folder \
in which snakemake starts
  mine.yaml, line 3, backend: 'gpu' is not valid: write auto, cpu or cuda
  mine.yaml, line 5, index.occ_rate: 100 is not valid: write a multiple of 32 from 32 to 1024
  mine.yaml, line 6, index.sa_rate: 0 is not valid: write a whole number from 1 (the complete \
suffix array) to 1024
  mine.yaml, line 7, index.prefix_len: is unknown: did you mean prefix_length?
  mine.yaml, line 8, threads: is unknown: remove it, or write one of {sections}
config/README.md explains every key and column.
"""
    assert copy.snakemake("--configfile", "mine.yaml", rc=2) == EXTENDED + expected


def test_a_section_on_the_command_line(copy):
    """Snakemake converts its numbers to text."""
    typed = "map={clip: 4, mark_duplicates: true, insert_size: '400,60', batch_reads: auto}"
    said = copy.snakemake("-n", "-p", "map", "--config", typed)
    assert "--clip 4 --mark-duplicates --insert-size 400,60" in said
    typed = "map={clip: 4, hic: maybe, batch_reads: -1}"
    assert copy.snakemake("-n", "map", "--config", typed, rc=2) == (
        EXTENDED + "Nothing was run: there are 2 problems in the configuration.\n  --config, "
        "map.hic: 'maybe' is not valid: write true or false\n  --config, map.batch_reads: '-1' "
        "is not valid: write auto, or a whole number from 0 (a unit is mapped by one job) to "
        "1000000000000\nconfig/README.md explains every key and column.\n"
    )


def test_one_problem(copy):
    assert copy.snakemake("--config", "backend=fast", rc=2) == (
        EXTENDED + "Nothing was run: there is a problem in the configuration.\n  --config, "
        "backend: 'fast' is not valid: write auto, cpu or cuda\nconfig/README.md explains every "
        "key and column.\n"
    )


def test_a_configuration_that_is_not_utf_8(copy):
    file = copy / "config/config.yaml"
    before = file.read_bytes()
    file.write_bytes(before + "# für\n".encode("latin-1"))
    line = before.count(b"\n") + 1
    assert copy.snakemake("-n", rc=2) == (
        "Nothing was run: there is a problem in the configuration.\n  config/config.yaml, line "
        f"{line}: not plain text: save it as UTF-8\n"
    )
    file.write_bytes(before)


def test_nothing_was_made(copy):
    assert not (copy / "results").exists()
    assert not (copy / "logs").exists()
