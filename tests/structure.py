"""How the project reads, in figures: ``python -m tests.structure [TREE]``, of this tree or of another.

Folders and their files, names of files and classes that repeat, circles of imports, lines, the words of the
map, and how often the words stand that the field has better ones for.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path

from tests.test_imports import DECLARED, circles, imports, name_of, needed

__all__ = ["figures", "private_words"]

HERE = Path(__file__).parent.parent
FULL = 20
"""A folder has so many files at most."""
PRIVATE = (
    "tells?|told|telling|given?|gives|gave|giving|shown|settled?|settles|settling|holds?|held|holding|keeps?|kept"
    "|keeping|lives|lifetimes?|clocks?|upto|promises?|promised|endings?|box(?:es)?|var(?:y|ies|ied|ying)|folded"
    "|touched|cells?|cascades?|seals?|sealed|few|asked|gathered|feeds|flows?|blocks?|stages?|staged|steps?"
)
"""The words that the glossary replaces, as an expression; some have a plain use too, which counts as well."""


TERMS = r"\btime[- ]varying\b|\bquery blocks?\b|\bstate lifetime\b"
"""What the field and the glossary call so, in which such words stand."""


def private_words(text: str) -> Counter[str]:
    """How often each word of the project's own stands in a text.

    >>> sorted(private_words("Rows that were told are kept. It tells and keeps no box.").items())
    [('box', 1), ('keeps', 1), ('kept', 1), ('tells', 1), ('told', 1)]
    """
    return Counter(re.findall(rf"\b(?:{PRIVATE})\b", text.lower()))


def prose_of(source: str) -> str:
    """The comments, strings and names of a module, names apart at their underscores.

    >>> prose_of("told_rows = 1  # what is kept")
    'told rows # what is kept'
    """
    kinds = (tokenize.COMMENT, tokenize.STRING, tokenize.NAME)
    parts = [
        part.string for part in tokenize.generate_tokens(StringIO(source).readline) if part.type in kinds
    ]
    return " ".join(part.replace("_", " ").strip() for part in parts)


def prose_of_page(page: str) -> str:
    """A page without its code and the targets of its links, whose words are names of columns and files.

    >>> prose_of_page("Rows with `on_late='keep'` are [late](live.md).\\n```sql\\nSELECT step\\n```")
    'Rows with  are [late].\\n'
    """
    without = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`|(?<=\])\([^)]*\)", "", without)


def figures(root: Path = HERE) -> Iterator[tuple[str, str]]:
    """What is counted in a tree of the project, and how much of it there is."""
    package = root / "src" / "windrow"
    modules = sorted(package.rglob("*.py"))
    sources = {module: module.read_text(encoding="utf-8") for module in modules}
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    rooms = Counter(
        module.parent.relative_to(root / "src") for module in modules if module.name != "__init__.py"
    )
    names = Counter(module.name for module in modules if module.name != "__init__.py")
    twins = {path.name for path in (package / "kernels" / "reference").glob("*.py")}
    repeated = {name: count for name, count in names.items() if count > 1}
    apart = {name for name, count in repeated.items() if name != "errors.py" and count > 1 + (name in twins)}
    yield "modules", f"{len(modules)}"
    yield "lines of src", f"{sum(source.count(chr(10)) for source in sources.values()):,}"
    yield (
        "modules of more than 600 lines",
        listed(
            {
                str(module.relative_to(root / "src")): source.count("\n")
                for module, source in sources.items()
                if source.count("\n") > 600
            }
        ),
    )
    yield (
        f"folders of more than {FULL} modules",
        listed({str(room): count for room, count in rooms.items() if count > FULL}),
    )
    yield "the fullest folder", listed({str(room): count for room, count in rooms.most_common(1)})
    yield "file names that repeat", f"{len(repeated)}: {', '.join(sorted(repeated))}"
    # a definition in `reference/` has the name of what it defines, and `spark/` has errors of its own
    yield "the same without these", f"{len(apart)}: {', '.join(sorted(apart))}"
    classes = Counter(name for source in sources.values() for name in public_classes(source))
    twice = sorted(name for name, count in classes.items() if count > 1)
    yield "public classes named in two modules", f"{len(twice)}: {', '.join(twice)}"
    yield "circles of imports", f"{len(circles(graph_of(modules, package)))}"
    texts = {
        "pages": "\n".join(page.read_text(encoding="utf-8") for page in pages),
        "the prose of pages": "\n".join(prose_of_page(page.read_text(encoding="utf-8")) for page in pages),
        "src": "\n".join(prose_of(source) for source in sources.values()),
    }
    yield "words of docs/architecture.md", f"{words_of((root / 'docs' / 'architecture.md').read_text()):,}"
    for name, text in texts.items():
        found, words = private_words(text), words_of(text)
        yield f"words of {name}", f"{words:,}"
        yield f"private words in {name}, per 1,000", f"{1000 * found.total() / words:.1f}"
        others = private_words(re.sub(TERMS, "", text.lower())).total()
        yield f"the same without terms of the field in {name}", f"{1000 * others / words:.1f}"
        yield f"the commonest in {name}", listed(dict(found.most_common(8)))


def public_classes(source: str) -> list[str]:
    """The names of a module's public classes.

    >>> public_classes("class A: ...\\nclass _C: ...")
    ['A']
    """
    names = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    return [name for name in names if not name.startswith("_")]


def graph_of(modules: list[Path], package: Path) -> dict[str, set[str]]:
    """Which modules each module needs; the package does not need what it declares for type checkers alone."""
    found = {module: [name for _, name in imports(module, package)] for module in modules}
    own = package / "__init__.py"
    found[own] = [name for name in found.get(own, []) if name not in DECLARED]
    return needed({name_of(module, package): names for module, names in found.items()})


def words_of(text: str) -> int:
    return len(re.findall(r"[A-Za-z]+", text))


def listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


if __name__ == "__main__":
    for name, figure in figures(Path(sys.argv[1]) if sys.argv[1:] else HERE):
        print(f"{name:45} {figure}")
