"""Spark's Java classes, kept for the sessions to come."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from windrow.cli import keep_java_classes
from windrow.spark.runtime import java_classes
from windrow.spark.runtime.java import JavaRuntime, ensure_java
from windrow.spark.runtime.java_classes import file_of, options, save, state, tried_file, was_tried

DAY = 24 * 3600
ANSWER = "from windrow.spark.runtime.local import local_session\nprint(local_session().range(3).count())\n"
MAPPED = (
    "from windrow.spark.runtime.local import local_session\n"
    "spark = local_session(conf={'spark.driver.extraJavaOptions': '-Xshare:on'})\n"
    "print(spark.range(3).count())\n"
)


def java_that(home: Path, does: str) -> JavaRuntime:
    """A Java that is a shell script."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
    program.chmod(0o755)
    return JavaRuntime(home, "17.0.15", "JAVA_HOME")


# Makes what it is told to make; as the program of Spark's that tells how Java is started, it says so.
MAKES = """\
for each do case $each in
  -XX:SharedArchiveFile=*) file=${each#*=} ;;
  -Xshare:dump) made=yes ;;
  org.apache.spark.launcher.Main) printf 'java\\0-cp\\0a:b\\0' ;;
esac done
if [ "$made" ]; then echo kept > "$file"; fi"""
FAILS = "echo 'there is no room' >&2; exit 1"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty directory of caches, and an environment that says nothing about kept classes."""
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("WINDROW_JAVA_CLASSES", "HADOOP_CONF_DIR", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


def test_a_file_is_kept_for_each_java_and_each_spark(cache, tmp_path, monkeypatch):
    java = java_that(tmp_path / "java", MAKES)
    assert file_of(java) == file_of(java)
    others = [JavaRuntime(tmp_path, java.version, "PATH"), JavaRuntime(java.home, "17.0.16", "PATH")]
    spark = tmp_path / "spark"
    (spark / "jars").mkdir(parents=True)
    files = {file_of(each) for each in (java, *others)}
    monkeypatch.setenv("SPARK_HOME", str(spark))
    files.add(file_of(java))
    archive = spark / "jars" / "a.jar"
    for content in ("", "changed"):
        archive.write_text(content, encoding="utf-8")
        files.add(file_of(java))
    os.utime(archive, (0, 0))
    files.add(file_of(java))
    assert len(files) == 7
    assert {file.parent for file in files} == {cache}


def test_kept_classes_are_used_as_soon_as_they_are_there_and_no_sooner(cache, tmp_path):
    java = java_that(tmp_path / "java", MAKES)
    assert options(java) == ""
    assert state(java).startswith("not cached yet")
    kept = save(java, tmp_path / "names")
    assert options(java).split()[0] == f"-XX:SharedArchiveFile={kept}"
    assert state(java).startswith(f"cached in {kept} (")
    assert list(cache.iterdir()) == [kept]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("WINDROW_JAVA_CLASSES", "off", "WINDROW_JAVA_CLASSES is off"),
        ("HADOOP_CONF_DIR", "/etc/hadoop", "HADOOP_CONF_DIR adds to Spark's classes"),
        ("SPARK_CONF_DIR", "/etc/spark", "SPARK_CONF_DIR adds to Spark's classes"),
    ],
)
def test_kept_classes_are_not_used_where_they_are_not_wanted_or_not_all(
    cache, tmp_path, monkeypatch, name, value, said
):
    java = java_that(tmp_path / "java", MAKES)
    save(java, tmp_path / "names")
    monkeypatch.setenv(name, value)
    assert options(java) == ""
    assert state(java) == f"not cached: {said}"


def test_what_java_cannot_make_is_not_there(cache, tmp_path):
    java = java_that(tmp_path / "java", FAILS)
    with pytest.raises(RuntimeError, match=r"^there is no room$"):
        save(java, tmp_path / "names")
    assert list(cache.iterdir()) == []


def test_what_no_session_has_used_for_a_month_goes_away(cache, tmp_path):
    java = java_that(tmp_path / "java", MAKES)
    kept = save(java, tmp_path / "names")
    unused, used, killed, made, others = (
        cache / name for name in ("classes-1.jsa", "classes-2.jsa", ".classes-3", ".classes-4", "kernels")
    )
    hours = {unused: 31 * 24, used: 29 * 24, killed: 2, made: 0, others: 99 * 24, kept: 99 * 24}
    for path, age in hours.items():
        if path != kept:
            path.mkdir() if path in (killed, made, others) else path.touch()
        os.utime(path, times=(time.time() - age * 3600,) * 2)
    # Used now, whenever it was made.
    assert options(java)
    assert set(cache.iterdir()) == {used, made, others, kept}


def test_what_went_wrong_is_said_and_tried_again_after_a_day(cache, tmp_path, monkeypatch):
    java = java_that(tmp_path / "java", FAILS)
    monkeypatch.setattr(keep_java_classes, "ensure_java", lambda: java)
    monkeypatch.setattr(keep_java_classes, "_lower_priority", lambda: None)
    monkeypatch.setattr(keep_java_classes, "_store", lambda _: save(java, tmp_path / "names"))
    keep_java_classes.main()
    kept = file_of(java)
    assert state(java) == "not cached: there is no room"
    assert was_tried(kept)
    os.utime(tried_file(kept), times=(time.time() - DAY,) * 2)
    assert not was_tried(kept)
    (java.home / "bin" / "java").write_text(f"#!/bin/sh\n{MAKES}\n", encoding="utf-8")
    keep_java_classes.main()
    assert list(cache.iterdir()) == [kept]


def test_one_that_goes_on_stands_in_the_way_and_one_that_was_killed_does_not(cache, tmp_path):
    java = java_that(tmp_path / "java", MAKES)
    cache.mkdir()
    tried = tried_file(file_of(java))
    tried.write_text(f"{os.getpid()}\n", encoding="utf-8")
    assert was_tried(file_of(java))
    assert state(java) == "not cached yet: being made"
    # Its number is that of another process by now.
    os.utime(tried, times=(time.time() - 3600,) * 2)
    assert not was_tried(file_of(java))
    ended = subprocess.Popen(["true"])
    ended.wait()
    tried.write_text(f"{ended.pid}\n", encoding="utf-8")
    assert not was_tried(file_of(java))
    assert state(java).startswith("not cached yet: after the next")


def test_a_cache_that_cannot_be_written_does_no_harm_and_is_told_of(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "file"))
    java = java_that(tmp_path / "java", MAKES)
    monkeypatch.setattr(keep_java_classes, "ensure_java", lambda: java)
    assert options(java) == ""
    assert state(java) == f"not cached: {tmp_path / 'file'} cannot be written"
    keep_java_classes.main()
    assert (tmp_path / "file").is_file()


def test_a_full_disk_is_told_of_before_anything_is_made(cache, tmp_path, monkeypatch):
    java = java_that(tmp_path / "java", MAKES)
    monkeypatch.setattr(keep_java_classes, "ensure_java", lambda: java)
    monkeypatch.setattr(java_classes, "_ROOM", 2**80)
    keep_java_classes.main()
    assert not cache.exists()
    assert state(java).startswith(f"not cached: {tmp_path} has less than ")


@pytest.mark.parametrize("name", ["a cache", "a:cache"])
def test_a_path_that_java_does_not_take_is_told_of(tmp_path, monkeypatch, name):
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / name))
    java = java_that(tmp_path / "java", MAKES)
    assert options(java) == ""
    assert state(java).startswith("not cached: Java's options take no path with a space or :")


def test_a_session_without_kept_classes_is_followed_by_a_process_that_keeps_them(
    cache, tmp_path, monkeypatch
):
    started, registered = [], []
    java = java_that(tmp_path / "java", MAKES)
    monkeypatch.setattr(keep_java_classes, "ensure_java", lambda: java)
    monkeypatch.setattr("atexit.register", registered.append)

    def start(*given: Any, **options: Any) -> SimpleNamespace:
        started.append((given, options))
        return SimpleNamespace()

    starts = SimpleNamespace(DEVNULL=None, Popen=start)
    monkeypatch.setattr(keep_java_classes, "subprocess", starts)
    keep_java_classes.keep_after(session_with(""))
    (at_the_end,) = registered
    at_the_end()
    (((command,), how),) = started
    assert command == [sys.executable, "-P", "-m", "windrow.cli.keep_java_classes"]
    assert how["cwd"] == "/"
    assert how["start_new_session"]
    # None where another process has been sooner, and none after a session that had them.
    cache.mkdir()
    tried_file(file_of(java)).write_text(f"{os.getpid()}\n", encoding="utf-8")
    at_the_end()
    save(java, tmp_path / "names")
    at_the_end()
    keep_java_classes.keep_after(session_with(options(java)))
    monkeypatch.setenv("WINDROW_JAVA_CLASSES", "off")
    keep_java_classes.keep_after(session_with(""))
    assert (len(started), len(registered)) == (1, 1)


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="Linux alone groups sessions")
def test_it_gives_way_to_other_sessions_and_leaves_that_of_a_terminal_alone():
    script = (
        "from pathlib import Path; from windrow.cli.keep_java_classes import _lower_priority\n"
        "group = Path('/proc/self/autogroup')\n"
        "before = group.read_text(); _lower_priority(); print(before == group.read_text(), group.read_text())"
    )
    command = [sys.executable, "-c", script]
    assert subprocess.check_output(command, text=True, start_new_session=True).endswith(" nice 19\n\n")
    assert subprocess.check_output(command, text=True).startswith("True ")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_person_at_a_terminal_is_told_of_the_process(cache, tmp_path, monkeypatch, capsys, is_terminal):
    java = java_that(tmp_path / "java", MAKES)
    monkeypatch.setattr(keep_java_classes, "ensure_java", lambda: java)
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    registered: list[Any] = []
    monkeypatch.setattr("atexit.register", registered.append)
    starts = SimpleNamespace(DEVNULL=None, Popen=lambda *_, **__: SimpleNamespace())
    monkeypatch.setattr(keep_java_classes, "subprocess", starts)
    keep_java_classes.keep_after(session_with(""))
    (at_the_end,) = registered
    at_the_end()
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (keep_java_classes.ANNOUNCED if is_terminal else "")
    if is_terminal:
        assert "WINDROW_JAVA_CLASSES=off" in told.err
    # nothing is said where none is started
    cache.mkdir()
    tried_file(file_of(java)).write_text(f"{os.getpid()}\n", encoding="utf-8")
    at_the_end()
    assert capsys.readouterr().err == ""


def session_with(java_options: str) -> Any:
    """As much of a session as says which options its Java has."""
    conf = {"spark.driver.extraJavaOptions": java_options}
    return SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: conf))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
def test_spark_starts_with_the_kept_classes_and_without_torn_ones(tmp_path, monkeypatch):
    monkeypatch.delenv("WINDROW_JAVA_CLASSES", raising=False)
    monkeypatch.setattr(keep_java_classes, "_lower_priority", lambda: None)
    # In the user's cache, as `make test` does: it takes a minute.
    keep_java_classes.main()
    kept = file_of(ensure_java())
    assert state(ensure_java()).startswith(f"cached in {kept} (")
    # Java ends at once where it cannot map the file, as if Spark had started it with other classes.
    assert output(MAPPED) == "3\n"
    torn = tmp_path / kept.name
    torn.write_bytes(kept.read_bytes()[: kept.stat().st_size // 2])
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert output(ANSWER) == "3\n"
    # One that is damaged where Java does not look ends it at once: it goes away, and Java starts without.
    content = kept.read_bytes()
    torn.write_bytes(content[: 20 * 2**20] + bytes(60 * 2**20) + content[80 * 2**20 :])
    assert output(ANSWER).endswith("\n3\n")
    assert not torn.exists()


def output(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout
