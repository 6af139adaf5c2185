"""The documentation is true: every block of it is run, every link leads somewhere.

``python -m tests.test_docs --update [PAGE …]`` runs the same blocks and writes what they print into the
pages.

A page is Markdown. Its fenced blocks are run in order, in a directory of their own, over one session:

=========== ========================================================================================
sql         statements, the last one's rows shown; ``EXPLAIN`` as the text that it is
python      in one namespace per page, which begins with `session`; `answer` is the relation of the last
            sql block; what is printed is shown
sh          one command of Windrow's a line (``\\`` goes on to the next), standard output shown
shell       what is entered at the prompt of ``windrow shell``, in one shell per page
text        directly below one of these: what it shows. A line ``…`` stands for any lines
others      not run: grammar, json, csv, …
=========== ========================================================================================

A comment on a line of its own before a block says how the block is to be taken:

| ``<!-- not run: REASON -->``     it cannot be run here
| ``<!-- fails: CONDITION -->``    it is refused with this condition; the text below is the message
| ``<!-- tables: NAME, … -->``     these tables of `windrow.datasets` exist from here on
| ``<!-- by Spark: the same rows -->``  run by Spark alone; it shows what the sql block before shows
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import windrow
from windrow.datasets import DATASETS
from windrow.statements.scripts.handled_conditions import CONDITIONS
from windrow.syntax.query_parts import split_statements
from windrow.syntax.streams.create_stream import parse_create_stream
from windrow.syntax.streams.other_dialects import spelled
from windrow.syntax.tokens import tokenize

ROOT = Path(__file__).parents[1]
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md")), *sorted(ROOT.glob("docs/**/*.md"))]
UPDATE = "WINDROW_UPDATE_DOCS"

RUNNABLE = ("sql", "python", "sh", "shell")
ANY_LINES = "…"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the first and last line of that text (0-based, half open).

    `directives` are the comments between the block before and this one, by their word.
    """

    language: str
    text: str
    start: int
    stop: int
    directives: Mapping[str, str]

    @property
    def is_run(self) -> bool:
        return self.language in RUNNABLE and "not run" not in self.directives


@dataclass(frozen=True)
class Page:
    """A page and its blocks; `output[n]` is the block that shows what block n prints."""

    path: Path
    lines: list[str]
    blocks: list[Block]
    output: dict[int, Block]


def read(path: Path) -> Page:
    lines = path.read_text(encoding="utf-8").split("\n")
    blocks: list[Block] = []
    output: dict[int, Block] = {}
    directives: dict[str, str] = {}
    between = False  # whether prose stands between the last block and this line
    at = 0
    while at < len(lines):
        fence = re.fullmatch(r"( *)(```+) *(\w*)", lines[at])
        if fence is None:
            if comment := re.fullmatch(r"\s*<!-- (not run|fails|tables|by Spark): (.*?) -->\s*", lines[at]):
                directives[comment[1]] = comment[2]
            between = between or bool(lines[at].strip())
            at += 1
            continue
        stop = next(n for n in range(at + 1, len(lines)) if lines[n].strip() == fence[2])
        text = "\n".join(line.removeprefix(fence[1]) for line in lines[at + 1 : stop])
        block = Block(fence[3], text, at + 1, stop, directives)
        if block.language == "text" and not between and blocks and blocks[-1].language in RUNNABLE:
            output[len(blocks) - 1] = block
        blocks.append(block)
        directives, between = {}, False
        at = stop + 1
    return Page(path, lines, blocks, output)


def identify(path: Path) -> str:
    return str(path.relative_to(ROOT))


# -- without Spark ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=identify)
def test_every_block_has_a_language_and_every_reason_is_given(path):
    for block in read(path).blocks:
        assert block.language, f"line {block.start}: a block without a language"
        assert block.directives.get("not run", "a reason").strip(), f"line {block.start}: no reason"


@pytest.mark.parametrize("path", PAGES, ids=identify)
def test_blocks_that_cannot_be_run_are_read(path):
    for block in read(path).blocks:
        if block.is_run:
            continue
        if block.language == "python":
            compile(block.text, f"{identify(path)}:{block.start}", "exec")
        elif block.language == "sql":
            tokens = tokenize(block.text)
            for start, stop in split_statements(tokens):
                parse_create_stream(tokens, start, stop)
                spelled(tokens, start, stop)


@pytest.mark.parametrize("path", PAGES, ids=identify)
def test_every_link_leads_to_a_file_and_heading(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.exists(), f"{target}: no such file"
        assert file.is_relative_to(ROOT), f"{target}: leaves the project"
        if anchor:
            assert anchor in anchors(file), f"{target}: no such heading"


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_question_of_the_gallery_is_listed_and_answered_by_spark_too():
    index = (ROOT / "docs/gallery/index.md").read_text(encoding="utf-8")
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in set((ROOT / "docs/gallery").glob("*.md")) - {ROOT / "docs/gallery/index.md"}:
        page = read(path)
        assert f"| [{page.lines[0].removeprefix('# ')}]({path.name}) |" in index
        assert f": gallery/{path.name}" in site
        asked = [number for number, block in enumerate(page.blocks) if block.language == "sql"]
        (at,) = (number for number in asked if "by Spark" in page.blocks[number].directives)
        assert asked[asked.index(at) - 1] in page.output, f"{path.name}: no answer to compare with"


def test_every_public_name_is_in_the_python_reference():
    text = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    missing = [name for name in windrow.__all__ if not re.search(rf"\b{name}\b", text)]
    assert missing == []
    shown = re.findall(
        r"^::: ([\w.]+)\.(\w+)$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {name for name in windrow.__all__ if name != "__version__"} <= {name for _, name in shown}
    assert all(hasattr(importlib.import_module(module), name) for module, name in shown)


def test_every_condition_raised_is_explained():
    pages = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    raised = {
        condition
        for module in (ROOT / "src").rglob("*.py")
        for condition in re.findall(r'condition="([A-Z_.]+)"', module.read_text(encoding="utf-8"))
    }
    missing = sorted(condition for condition in raised if f"`{condition}`" not in pages)
    assert missing == [], "add them to the tables of errors in docs/"


def test_scripts_know_the_conditions_in_the_tables_of_the_pages_about_sql_and_streams():
    pages = [path.read_text(encoding="utf-8") for path in PAGES if path.parent.name in ("sql", "streams")]
    tables = [one for page in pages for one in re.findall(r"^\| condition \|.*\n((?:\|.*\n)+)", page, re.M)]
    rows = [row.split(" | ")[0] for table in tables for row in table.splitlines()]
    assert {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row)} == CONDITIONS


def test_pages_name_nothing_of_one_machine():
    for path in PAGES:
        found = re.search(r"(?<![\w./<-])/(home|work|tmp|root|Users)/", path.read_text(encoding="utf-8"))
        assert found is None, f"{identify(path)}: {found[0]}"


# -- with Spark ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=identify)
def test_every_block_runs_and_prints_what_the_page_says(path, spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # a terminal's width and colours are not the page's
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    page = read(path)
    shown: dict[int, str] = {}
    problems: list[str] = []
    spark = spark.newSession()  # without the views and settings of others
    for name in ("spark.sql.codegen.wholeStage", "spark.sql.adaptive.enabled"):  # of use for many rows
        spark.conf.set(name, "false")
    spark.createDataFrame([], "nothing INT")  # makes it the active one, which `windrow.Session()` takes
    with clean_catalogue(spark):
        runner = Runner(spark)
        for number, block in enumerate(page.blocks):
            runner.prepare(block)
            if not block.is_run:
                continue
            try:
                shown[number] = runner.run(block)
            except AssertionError as error:
                problems.append(f"{identify(path)}:{block.start}: {error}")
    problems += [f"{identify(path)}: {told}" for told in compare_pictures(page, tmp_path)]
    if os.environ.get(UPDATE):
        update(page, shown)
    else:
        for number, text in shown.items():
            wanted = page.output.get(number)
            if wanted is not None and not agrees(text, wanted.text):
                problems.append(
                    f"{identify(path)}:{wanted.start}: the page says\n{wanted.text}\nbut it is\n{text}"
                )
    if problems:
        pytest.fail("\n\n".join(problems), pytrace=False)


def test_a_block_that_spark_alone_answers_otherwise_is_reported(spark):
    runner = Runner(spark.newSession())
    by_spark = {"by Spark": "the same rows"}
    runner.run(Block("sql", "SELECT id AS a FROM range(2) ORDER BY a", 0, 1, {}))
    runner.run(Block("sql", "SELECT * FROM VALUES (0L), (1L) AS t(a)", 0, 1, by_spark))
    for other in ("SELECT id AS a FROM range(3) ORDER BY a", "SELECT id AS b FROM range(2) ORDER BY b"):
        with pytest.raises(AssertionError, match="Spark gives"):
            runner.run(Block("sql", other, 0, 1, by_spark))
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        runner.run(Block("sql", "SELECT 1 AS a FROM range(2) WINDOW BY w AS (TYPE TUMBLING)", 0, 1, by_spark))


def compare_pictures(page: Page, made: Path) -> Iterator[str]:
    """What is wrong with the pictures that a page shows and its blocks have made, which updates them.

    They are compared by what is written in them: lengths differ with the fonts of a machine.
    """
    for name in re.findall(r"!\[[^]]*\]\(([^)]*\.svg)\)", "\n".join(page.lines)):
        kept, new = page.path.parent / name, made / Path(name).name
        if not any(new.name in block.text for block in page.blocks if block.is_run):
            continue  # the picture of another page
        if not new.exists():
            yield f"no block makes the picture {name}"
        elif os.environ.get(UPDATE):
            kept.parent.mkdir(exist_ok=True)
            shutil.copyfile(new, kept)
        elif words_of(new) != words_of(kept):
            yield f"the picture {name} says {words_of(kept)}, but it is {words_of(new)}"


def words_of(picture: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))


def agrees(found: str, wanted: str) -> bool:
    """Whether the text is the one wanted, in which a line `…` stands for any lines."""
    pieces = [re.escape(line) if line != ANY_LINES else r"(?:.*\n)*?.*" for line in wanted.split("\n")]
    return re.fullmatch("\n".join(pieces), found) is not None


def update(page: Page, shown: Mapping[int, str]) -> None:
    lines = list(page.lines)
    for number in sorted(shown, reverse=True):
        block = page.output.get(number)
        if block is not None and not agrees(shown[number], block.text):
            lines[block.start : block.stop] = shown[number].split("\n")
    page.path.write_text("\n".join(lines), encoding="utf-8")


@contextlib.contextmanager
def clean_catalogue(spark: Any) -> Iterator[None]:
    """Drop the tables and views, and undo the settings, that a page leaves behind."""
    before = {table.name for table in spark.catalog.listTables()}
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        yield
    finally:
        for table in spark.catalog.listTables():
            if table.name not in before:
                kind = "VIEW" if table.tableType == "TEMPORARY" else "TABLE"
                spark.sql(f"DROP {kind} IF EXISTS `{table.name}`")
        spark.conf.set("spark.sql.session.timeZone", zone)


class Runner:
    """Runs the blocks of one page."""

    def __init__(self, spark: Any) -> None:
        self.session = windrow.Session(spark)
        self.namespace: dict[str, Any] = {"session": self.session, "spark": spark, "__name__": "__docs__"}
        self.rows: str | None = None  # what the last sql block showed

    def prepare(self, block: Block) -> None:
        for name in filter(None, re.split(r",\s*", block.directives.get("tables", ""))):
            frame = self.session.spark.createDataFrame(DATASETS[name].make())
            self.session.register(name, frame)

    def run(self, block: Block) -> str:
        """What the block prints; an AssertionError where it does not do what it should."""
        expected, by_spark = block.directives.get("fails"), "by Spark" in block.directives
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                run = {
                    "sql": self.sql, "by Spark": self.spark_sql, "python": self.python, "sh": self.sh,
                    "shell": self.shell,
                }  # fmt: skip
                run["by Spark" if by_spark else block.language](block.text)
        except windrow.WindrowError as error:
            if error.getCondition() != expected:
                raise AssertionError(f"the block is refused:\n{error}") from None
            return str(error)
        if expected is not None:
            raise AssertionError(f"the block is not refused with {expected}")
        shown = "\n".join(line.rstrip() for line in printed.getvalue().strip("\n").split("\n"))
        if by_spark and shown != self.rows:
            raise AssertionError(f"Spark gives\n{shown}\nwhere the block before it gives\n{self.rows}")
        if block.language == "sql":
            self.rows = shown
        return shown

    def sql(self, text: str) -> None:
        session = self.namespace["session"]  # the page may make one
        relation = self.namespace["answer"] = session.script(text)[-1]
        if relation.df.columns == ["plan"]:
            print(relation.collect()[0][0])
        elif relation.df.columns:
            relation.show(100, truncate=False)

    def spark_sql(self, text: str) -> None:
        self.session.spark.sql(text).show(100, truncate=False)

    def python(self, text: str) -> None:
        exec(compile(text, "<page>", "exec"), self.namespace)

    def shell(self, text: str) -> None:
        self.prompt.run_lines(text)
        assert not self.prompt.has_failed, "the shell has told an error"

    @cached_property
    def prompt(self) -> Any:
        from windrow.cli.connection import Connection
        from windrow.cli.shell.backend import Backend
        from windrow.cli.shell.loop import Shell

        return Shell(Backend(Connection("local[2]"), lambda _: self.session.spark))

    def sh(self, text: str) -> None:
        for line in re.sub(r"\\\n\s*", "", text).splitlines():
            words = shlex.split(line, comments=True)
            if words:
                assert words[0] == "windrow", f"not a command of Windrow's: {line}"
                command(words[1:])


def command(arguments: list[str]) -> None:
    """Run a command in this process, its output to standard output."""
    from typer.testing import CliRunner

    from windrow.cli.main import app

    result = CliRunner().invoke(app, arguments)
    print(result.stdout, end="")
    assert result.exit_code == 0, f"windrow {shlex.join(arguments)}: {result.exit_code}\n{result.output}"


if __name__ == "__main__":
    if sys.argv[1:2] != ["--update"]:
        raise SystemExit("usage: python -m tests.test_docs --update [PAGE …]")
    os.environ[UPDATE] = "1"
    chosen = [
        f"{__file__}::test_every_block_runs_and_prints_what_the_page_says[{page}]" for page in sys.argv[2:]
    ]
    raise SystemExit(pytest.main(chosen or [f"{__file__}", "-k", "test_every_block_runs"]))
