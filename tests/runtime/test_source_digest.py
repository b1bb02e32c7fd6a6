"""The digest of a program changes with the code it runs, and with nothing else."""

import shutil

import pytest

from bwarp.runtime.source_digest import program_digest

SOURCES = {
    "pack/__init__.py": "",
    "pack/used.py": "import pack.deep.inner\n",
    "pack/deep/__init__.py": "VERSION = 1\n",
    "pack/deep/inner.py": "from pack import circle\n",
    "pack/circle.py": "import pack.used\nimport numpy as np\n",
    "pack/late.py": "",
    "pack/unused.py": "",
    "program.py": "from pack.used import thing\ndef main():\n    from pack import late\n",
    "other.py": "",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in SOURCES.items():
        path = tmp_path / "a" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "a"


def digest(tree):
    return program_digest(tree / "program.py", tree / "pack")


@pytest.mark.parametrize("name", SOURCES)
def test_an_edit_changes_the_digest_if_the_program_runs_that_code(tree, name):
    before = digest(tree)
    (tree / name).write_text(SOURCES[name] + "# edited\n")
    assert (digest(tree) != before) == (name not in ("pack/unused.py", "other.py"))


def test_the_folder_does_not_matter(tree, tmp_path):
    shutil.copytree(tree, tmp_path / "b")
    assert digest(tmp_path / "b") == digest(tree)


def test_swapped_contents_change_the_digest(tree):
    (tree / "pack/used.py").write_text("import pack.used\nimport pack.late\n")
    (tree / "pack/late.py").write_text("import pack.late\nimport pack.used\n")
    before = digest(tree)
    (tree / "pack/used.py").write_text("import pack.late\nimport pack.used\n")
    (tree / "pack/late.py").write_text("import pack.used\nimport pack.late\n")
    assert digest(tree) != before


def test_the_programs_of_this_checkout_have_digests(checkout):
    programs = sorted((checkout / "scripts").glob("*.py"))
    assert len(programs) >= 3
    digests = [program_digest(program, checkout / "bwarp") for program in programs]
    assert len(set(digests)) == len(programs)
