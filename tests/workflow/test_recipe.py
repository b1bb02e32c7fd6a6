"""The recipe for Bioconda agrees with pyproject.toml, and has what Bioconda requires."""

import re
import tomllib

import jinja2
import pytest
import yaml

from bwarp import __version__

#: Names on conda-forge and Bioconda, where they differ from those on PyPI.
CONDA_NAMES = {"isal": "python-isal", "cuda-cccl": "cccl-python"}

#: Packages that only PyPI has in the form that bwarp loads.
PYPI_ONLY = {"nvidia-libnvcomp-cu13"}


@pytest.fixture(scope="module")
def project(checkout):
    return tomllib.loads((checkout / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def recipe(checkout):
    """Render the recipe as conda-build does, with its functions replaced."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    text = environment.from_string((checkout / "recipe/meta.yaml").read_text()).render(
        PYTHON="python", pin_subpackage=lambda name, max_pin: f"{name} {max_pin}"
    )
    return yaml.safe_load(text)


def as_conda(requirements):
    """Return requirements of pip as conda writes them."""
    found = set()
    for requirement in requirements:
        name, versions = re.fullmatch(r"([\w-]+)(?:\[.*\])?(.*)", requirement).groups()
        if name not in PYPI_ONLY:
            found.add(f"{CONDA_NAMES.get(name, name)} {versions}")
    return found


def test_name_and_version(recipe):
    assert recipe["package"] == {"name": "bwarp", "version": __version__}
    assert recipe["source"]["url"].endswith(f"/b/bwarp/bwarp-{__version__}.tar.gz")
    assert re.fullmatch("[0-9a-f]{64}", recipe["source"]["sha256"])


def test_dependencies(recipe, project, checkout):
    requirements = recipe["requirements"]
    python = f"python {project['requires-python']}"
    assert set(requirements["run"]) == {python, *as_conda(project["dependencies"])}
    gpu = project["optional-dependencies"]["gpu-cu13"]
    assert set(requirements["run_constrained"]) == as_conda(gpu)
    build = tomllib.loads((checkout / "pyproject.toml").read_text())["build-system"]["requires"]
    assert set(requirements["host"]) == {python, "pip", *as_conda(build)}


def test_programs(recipe, project):
    scripts = [f"{name} = {function}" for name, function in project["scripts"].items()]
    assert recipe["build"]["entry_points"] == scripts


def test_what_bioconda_requires(recipe, checkout, project):
    text = (checkout / "recipe/meta.yaml").read_text()
    assert recipe["build"]["noarch"] == "python"
    assert recipe["build"]["number"] == 0
    assert recipe["build"]["run_exports"] == ["bwarp x.x"]
    # A package for all platforms cannot select one.
    assert not re.search(r"#\s*\[", text)
    # Bioconda runs these in a shell of a container, which would expand brackets.
    assert not [line for line in recipe["test"]["commands"] if re.search(r"[][{}()]", line)]
    about = recipe["about"]
    assert (about["license"], about["license_file"]) == (project["license"], "LICENSE")
    assert about["home"] == project["urls"]["Homepage"]
    assert about["summary"]
    assert recipe["extra"]["recipe-maintainers"]
