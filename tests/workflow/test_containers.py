"""The container recipes install pinned versions from existing files. Nothing is built here."""

import re
import tomllib

import pytest

RECIPES = ("Dockerfile", "bwarp.def")


@pytest.fixture(params=RECIPES)
def recipe(request, checkout):
    return (checkout / "envs" / request.param).read_text()


def copied(recipe) -> set[str]:
    """Return the files that a recipe copies from the checkout."""
    lines = re.findall(r"^COPY (.+)$", recipe, re.MULTILINE)
    names = {name for line in lines for name in line.split()[:-1]}
    return names | set(re.findall(r"^    (\S+) /opt/bwarp/$", recipe, re.MULTILINE))


def test_recipes_install_the_declared_packages(recipe, checkout):
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    command = re.search(r"pip install.*?\n.*$", recipe, re.MULTILINE)[0]
    for cuda in ("12", "13"):
        words = re.sub(r"\$\{CUDA\}|\{\{ CUDA \}\}", cuda, command)
        extras = re.search(r'"\.\[(.*)\]"', words)[1].split(",")
        assert set(extras) <= set(project["optional-dependencies"])
        assert f"gpu-cu{cuda}" in extras
        for constraints in re.findall(r"-c (\S+)", words):
            assert (checkout / constraints).is_file()
        assert f"-c envs/constraints-cu{cuda}.txt" in words
    python = re.search(r"^(?:FROM|From:) python:(\d+\.\d+)-slim$", recipe, re.MULTILINE)[1]
    assert python == project["requires-python"].removeprefix(">=")


def test_copied_files_exist_and_suffice(recipe, checkout):
    names = copied(recipe)
    assert all((checkout / name).exists() for name in names)
    assert {"Snakefile", "bwarp", "config", "envs", "profiles", "scripts", "workflow"} < names
    # pip reads these
    project = (checkout / "pyproject.toml").read_text()
    assert {"pyproject.toml", *re.findall(r'"?((?:README|LICENSE)[.\w]*)"', project)} <= names


def test_programs_are_compiled_when_all_is_installed(recipe):
    assert recipe.index("pip install") < recipe.index("python scripts/compile_programs.py")


def test_both_recipes_hold_the_same(checkout):
    docker, apptainer = ((checkout / "envs" / name).read_text() for name in RECIPES)
    assert copied(docker) == copied(apptainer)
    sent = (checkout / "envs/Dockerfile.dockerignore").read_text()
    assert set(re.findall(r"^!(.+)$", sent, re.MULTILINE)) == copied(docker)
