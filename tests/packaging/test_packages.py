"""Packages: the wheel contains all that the commands need, the container is secure, the citation is valid."""

import fnmatch
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from hatchling.build import build_wheel

import translucid

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "translucid"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The unpacked wheel, in a folder without any other file of this project."""
    folder = tmp_path_factory.mktemp("wheel")
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        name = build_wheel(str(folder))
    finally:
        os.chdir(before)
    with zipfile.ZipFile(folder / name) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def files(folder):
    return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts}


def test_the_wheel_holds_every_file_of_the_package_and_the_recipes(wheel):
    recipes = {f"recipes/{name}" for name in files(ROOT / "recipes")}
    assert files(wheel / "translucid") == files(SOURCE) | recipes
    assert len(recipes) >= 6
    kinds = {Path(name).suffix for name in files(wheel / "translucid")}
    assert {".py", ".html", ".css", ".js", ".yaml", ".typed"} <= kinds


def test_the_wheel_contains_nothing_else(wheel):
    assert {path.name for path in wheel.iterdir()} == {
        "translucid",
        f"translucid-{translucid.__version__}.dist-info",
    }


def test_commands_find_the_recipes_with_nothing_but_the_wheel(wheel, tmp_path):
    code = (
        "import translucid; print(translucid.__file__); from translucid.cli.main import run; "
        "run(['models']); run(['train', '--help'])"
    )
    environment = {**os.environ, "PYTHONPATH": str(wheel)}
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    first, *listed = completed.stdout.splitlines()
    assert first == f"{wheel / 'translucid' / '__init__.py'}", completed.stderr
    for recipe in (ROOT / "recipes").glob("*.yaml"):
        assert any(line.startswith(f"{recipe.stem} ") for line in listed), recipe


def instructions():
    """Return the Dockerfile with one instruction per line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    return [line.split(maxsplit=1) for line in re.sub(r"\\\n\s*", "", text).splitlines() if line]


def test_the_docker_context_contains_the_copied_files():
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()[0] == "*"
    copied = [w for what, rest in instructions() if what == "COPY" and "--from" not in rest for w in rest.split()[:-1]]
    assert ignored and copied
    for name in copied:
        assert (ROOT / name).exists()
        assert any(fnmatch.fnmatch(name, pattern) for pattern in let_in)
    build = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert build["services"]["translucid"]["build"] == "."


def test_the_container_runs_without_privileges_and_read_only():
    users = [rest for what, rest in instructions() if what == "USER"]
    assert users and all(user.split(":")[0].isdecimal() and int(user.split(":")[0]) > 0 for user in users)
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["translucid"]
    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert all(volume.endswith(":ro") for volume in service["volumes"] if volume.startswith("."))
    # A page in a browser of the same machine reaches the published port, also by a name of its own.
    assert service["environment"]["TRANSLUCID_ORIGINS"] == "${ORIGINS:-none}"
    assert "*" not in service["environment"]["TRANSLUCID_HOSTS"]


def test_the_container_asks_for_training_until_there_is_a_model(tmp_path):
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    shell, option, script = services["translucid"]["entrypoint"]
    run, programs = tmp_path / "runs" / "demo", tmp_path / "bin"
    programs.mkdir()
    for name, does in (("sleep", f"mkdir -p {run}; touch {run}/model.safetensors"), ("translucid", 'echo "done: $*"')):
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    variables = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "TRANSLUCID_RUNS": str(run)}
    command = [shell, option, script.replace("$$", "$")]
    completed = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
    assert (completed.returncode, completed.stdout) == (0, "done: serve\n")
    assert "Train first: docker compose run --rm train" in completed.stderr and completed.stderr.count("\n") == 1
    assert services["train"]["command"].split()[:2] == ["demo", "--out"]
    assert services["train"]["volumes"] == ["./runs:/runs"]


def test_the_health_check_is_a_command_that_parses():
    (check,) = (rest for what, rest in instructions() if what == "HEALTHCHECK")
    command = json.loads(check.split("CMD", 1)[1])
    compile(command[2], "health", "exec")
    assert command[:2] == ["python", "-c"] and "/health" in command[2]


def test_the_citation_names_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == translucid.__version__
    assert cited["license"] == "Apache-2.0"
