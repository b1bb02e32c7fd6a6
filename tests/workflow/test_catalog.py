"""Requirements of the Snakemake workflow catalog for standardised usage."""

import yaml


def test_requirements_of_the_catalog(checkout):
    usage = yaml.safe_load((checkout / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert usage["mandatory-flags"]["flags"] == ""
    for way in ("conda", "apptainer", "apptainer+conda"):
        assert isinstance(usage["software-stack-deployment"][way], bool)
    assert (checkout / "workflow/Snakefile").is_file()
    assert (checkout / "config/README.md").is_file()
    assert (checkout / "config/config.yaml").is_file()
    page = (checkout / "README.md").read_text().lower()
    assert "snakemake" in page
    assert "workflow" in page


def test_every_rule_that_runs_a_command_has_an_environment(checkout):
    """The file for the catalog says that all rules can run with conda."""
    for file in (checkout / "workflow/rules").glob("*.smk"):
        for rule in file.read_text().split("\nrule ")[1:]:
            if "\n    shell:" in rule:
                assert "\n    conda:\n" in rule.partition("\n    shell:")[0], rule.partition(":")[0]


def test_the_small_run_of_the_catalog(make_copy):
    """It maps the reads of the demo, in its own folder."""
    copy = make_copy(forks=True)
    before = {path.name for path in copy.folder.iterdir()}
    own = ("-s", "workflow/Snakefile", "--directory", ".test", "--cores", 2)
    assert "Congratulations" in copy.snakemake(*own, "--lint")
    said = copy.snakemake(*own)
    assert "9,798 reads are mapped correctly" in said
    assert (copy / ".test/results/map/demo.bam.bai").is_file()
    assert "Nothing to be done" in copy.snakemake(*own)
    assert {path.name for path in copy.folder.iterdir()} <= before | {".snakemake"}
