"""The package declares what it imports, and each pinned version is given once."""

import ast
import re
import subprocess
import sys
import tomllib

import pytest
import yaml

DISTRIBUTIONS = {
    "yaml": "pyyaml", "Bio": "biopython", "cuda": "cuda-cccl", "llvmlite": "numba",
    "nvidia": "nvidia-libnvcomp-cu13",
}  # fmt: skip


@pytest.fixture(scope="module")
def project(checkout):
    return tomllib.loads((checkout / "pyproject.toml").read_text())["project"]


def names(requirements):
    """Return the names of the packages in a list of requirements."""
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def imported(paths):
    """Return the external packages that Python files import anywhere, including in functions."""
    found = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module.partition(".")[0])
    found -= {"bwarp", "_environment", *(path.stem for path in paths), *sys.stdlib_module_names}
    return {DISTRIBUTIONS.get(name, name.replace("_", "-")) for name in found}


def test_a_plain_installation_has_what_the_library_and_the_programs_import_and_no_more(
    checkout, project
):
    extras = project["optional-dependencies"]
    optional = names(extras["gpu-cu13"]) | names(extras["parquet"]) | names(extras["report"])
    assert imported([*checkout.glob("bwarp/**/*.py")]) - optional == names(project["dependencies"])


def test_the_extra_workflow_adds_what_the_workflow_imports(checkout, project):
    extra = names(project["optional-dependencies"]["workflow"])
    # The rules, which are not plain Python, import Snakemake.
    assert imported([*checkout.glob("workflow/lib/*.py")]) == extra - {"snakemake"}
    assert "from snakemake" in (checkout / "workflow/Snakefile").read_text()
    assert not extra & names(project["dependencies"])


def test_only_functions_that_return_frames_import_pandas(checkout):
    modules = checkout.glob("bwarp/**/*.py")
    users = {module.parent.name for module in modules if "pandas" in imported([module])}
    assert users == {"api"}


def test_every_folder_of_the_library_is_packaged(checkout):
    for module in (checkout / "bwarp").glob("**/*.py"):
        assert (module.parent / "__init__.py").is_file(), module


def test_both_gpu_extras_are_the_same_but_for_the_version(project):
    extras = project["optional-dependencies"]
    assert [line.replace("cu12", "cu13") for line in extras["gpu-cu12"]] == extras["gpu-cu13"]


def pins(path):
    return dict(re.findall(r"^([\w.-]+)==(.+)$", path.read_text(), re.MULTILINE))


def test_everything_that_is_installed_is_pinned(checkout, project):
    pinned = {name.lower().replace("_", "-") for name in pins(checkout / "envs/constraints.txt")}
    extras = project["optional-dependencies"]
    wanted = [lines for extra, lines in extras.items() if not extra.startswith(("gpu", "peers"))]
    # bwarp[...] are other extras.
    assert names(sum(wanted, project["dependencies"])) - {"bwarp"} <= pinned
    for version in ("12", "13"):
        of_cuda = pins(checkout / f"envs/constraints-cu{version}.txt")
        assert names(extras[f"gpu-cu{version}"]) <= pinned | set(of_cuda)
        assert pinned.isdisjoint(of_cuda)


@pytest.mark.parametrize("environment", ["cpu", "gpu", "report"])
def test_conda_environments_pin_the_same_versions(checkout, project, environment):
    pinned = pins(checkout / "envs/constraints.txt") | pins(checkout / "envs/constraints-cu13.txt")
    pinned = {name.lower(): version for name, version in pinned.items()}
    parts = yaml.safe_load((checkout / "envs" / f"{environment}.yaml").read_text())["dependencies"]
    installed = {}
    for line in parts[-1]["pip"]:
        name, version = line.split("==")
        installed[name.partition("[")[0]] = version
    assert installed == {name: pinned[name] for name in installed}
    wanted = names(project["dependencies"])
    if environment == "gpu":
        wanted |= names(project["optional-dependencies"]["gpu-cu13"])
    if environment == "report":
        wanted |= names(project["optional-dependencies"]["report"]) | {"snakemake"}
    assert wanted <= set(installed)


def test_versions_agree(checkout):
    from bwarp import __version__

    citation = yaml.safe_load((checkout / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert f"## {__version__}" in (checkout / "CHANGELOG.md").read_text()


def make(checkout, *arguments):
    process = subprocess.run(
        ["make", "-C", checkout, "--no-print-directory", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr


def test_make_alone_lists_every_target(checkout):
    rc, stdout, _ = make(checkout)
    assert rc == 0
    targets = re.search(r"^\.PHONY: (.*)$", (checkout / "Makefile").read_text(), re.MULTILINE)[1]
    assert re.findall(r"^make ([\w-]+)", stdout, re.MULTILINE) == [
        *(target for target in targets.split() if target != "help"),
        "help",
    ]


def test_make_without_a_usable_python(checkout, tmp_path):
    folder = tmp_path / "cløne with spaces"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        (folder / name).write_text((checkout / name).read_text())
    (folder / "envs").symlink_to(checkout / "envs")
    rc, _, stderr = make(folder, "run", "PYTHON=false", "CUDA=")
    assert rc == 2
    assert stderr.startswith(
        "bwarp needs Python 3.11 or newer, and 'false' is not: "
        "name one with make PYTHON=/path/to/python3.12 ...\n"
    )
    assert not (folder / ".venv").exists()


def test_no_rule_breaks_where_a_blank_is_in_the_path_of_python(checkout):
    # Snakemake does not quote the path of Python for `script:`.
    for rules in (checkout / "workflow").rglob("*.smk"):
        assert not re.search(r"^\s*(script|notebook):\s*$", rules.read_text(), re.MULTILINE), rules
