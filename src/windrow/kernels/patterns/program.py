"""Compiles a pattern to a linear program, and lists it.

The instructions are those of a Pike machine (R. Pike's sam; R. Cox, "Regular Expression Matching: the Virtual
Machine Approach"), with two more for iterations that may take no row:

    match v     take the row if the condition of variable v is true, and go on
    split x, y  go on at x, and at y if x leads to no match
    jump x      go on at x
    start, end  go on at the start, or at the end, of the partition only
    mark k      an iteration of quantifier k begins
    check k, x  go on if a row has been taken since the mark, and at x if not
    done        a match
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from windrow.errors import AnalysisError
from windrow.kernels.patterns.tree import AnyOrder, Choice, Edge, Label, Repeat, Sequence, Tree, is_nullable

__all__ = [
    "CHECK", "DONE", "END", "JUMP", "MARK", "MATCH", "SPLIT", "START", "PatternProgram", "compile_pattern",
    "first_labels", "listing",
]  # fmt: skip

MATCH, SPLIT, JUMP, START, END, MARK, CHECK, DONE = range(8)
_NAMES = ("match", "split", "jump", "start", "end", "mark", "check", "done")
_LONGEST = 5_000
_MOST_MARKS = 30


@dataclass(frozen=True)
class PatternProgram:
    """Instructions: `op` and its arguments `x` and `y`, int64 arrays of one length.

    The arguments of ``match`` are the label and whether the row is excluded.
    """

    op: np.ndarray
    x: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.op)


def compile_pattern(tree: Tree) -> PatternProgram:
    """Compile a pattern.

    Raises
    ------
    AnalysisError
        ``PATTERN_TOO_LONG``, without a position.
    """
    compiler = _Compiler()
    compiler.add_tree(tree)
    compiler.add(DONE)
    columns = np.array(compiler.code, np.int64).T
    return PatternProgram(*(np.ascontiguousarray(column) for column in columns))


def listing(program: PatternProgram, names: tuple[str, ...]) -> list[str]:
    """The program as text, one line for each instruction; `names` are those of the labels.

    >>> tree = Sequence((Label(0), Repeat(Label(1), 0, None)))
    >>> print(chr(10).join(listing(compile_pattern(tree), ("A", "B"))))
    0 match A
    1 split 2, 4
    2 match B
    3 jump 1
    4 done
    """
    lines = []
    for at, (op, x, y) in enumerate(zip(program.op, program.x, program.y, strict=True)):
        match int(op):
            case 0:
                rest = f" {names[x]}{' excluded' if y else ''}"
            case 1 | 6:
                rest = f" {x}, {y}"
            case 2 | 5:
                rest = f" {x}"
            case _:
                rest = ""
        lines.append(f"{at} {_NAMES[op]}{rest}")
    return lines


def first_labels(program: PatternProgram) -> frozenset[int] | None:
    """The labels that the first row of a match may have; None if a match may be empty.

    >>> first_labels(compile_pattern(Sequence((Repeat(Label(0), 0, 1), Label(1)))))
    frozenset({0, 1})
    """
    found: set[int] = set()
    seen: set[int] = set()
    ahead = [0]
    while ahead:
        at = ahead.pop()
        if at in seen:
            continue
        seen.add(at)
        match int(program.op[at]):
            case 0:
                found.add(int(program.x[at]))
            case 1:
                ahead += [int(program.x[at]), int(program.y[at])]
            case 2:
                ahead.append(int(program.x[at]))
            case 6:
                ahead += [at + 1, int(program.y[at])]
            case 7:
                return None
            case _:
                ahead.append(at + 1)
    return frozenset(found)


class _Compiler:
    def __init__(self) -> None:
        self.code: list[tuple[int, int, int]] = []
        self.depth = 0

    def add(self, op: int, x: int = 0, y: int = 0) -> int:
        """Add an instruction and return its place."""
        if len(self.code) == _LONGEST or self.depth > _MOST_MARKS:
            raise AnalysisError(
                "pattern is too long",
                condition="PATTERN_TOO_LONG",
                sqlstate="54001",
                hint="write smaller numbers in { }, or + and *",
            )
        self.code.append((op, x, y))
        return len(self.code) - 1

    def add_tree(self, tree: Tree) -> None:
        match tree:
            case Label(number=number, excluded=excluded):
                self.add(MATCH, number, int(excluded))
            case Sequence(parts=parts):
                for part in parts:
                    self.add_tree(part)
            case Choice(parts=parts):
                self.choice(parts)
            case AnyOrder(parts=parts):
                self.any_order(parts)
            case Repeat():
                self.repeat(tree)
            case Edge(is_start=is_start):
                self.add(START if is_start else END)

    def choice(self, parts: tuple[Tree, ...]) -> None:
        jumps = []
        for part in parts[:-1]:
            split = self.add(SPLIT)
            self.add_tree(part)
            jumps.append(self.add(JUMP))
            self.code[split] = (SPLIT, split + 1, len(self.code))
        self.add_tree(parts[-1])
        for jump in jumps:
            self.code[jump] = (JUMP, len(self.code), 0)

    def any_order(self, parts: tuple[Tree, ...]) -> None:
        """One choice for each set of taken parts, not for each order of them."""
        numbers = range(len(parts))
        begins: dict[frozenset[int], int] = {}
        jumps: list[tuple[int, frozenset[int]]] = []
        for size in numbers:
            for chosen in map(frozenset, combinations(numbers, size)):
                begins[chosen] = len(self.code)
                *others, last = (number for number in numbers if number not in chosen)
                for number in others:
                    split = self.add(SPLIT)
                    self.add_tree(parts[number])
                    jumps.append((self.add(JUMP), chosen | {number}))
                    self.code[split] = (SPLIT, split + 1, len(self.code))
                self.add_tree(parts[last])
                jumps.append((self.add(JUMP), chosen | {last}))
        begins[frozenset(numbers)] = len(self.code)
        for jump, chosen in jumps:
            self.code[jump] = (JUMP, begins[chosen], 0)

    def repeat(self, tree: Repeat) -> None:
        part, low, high = tree.part, tree.low, tree.high
        if low != high and is_nullable(part):
            self.repeat_what_may_be_empty(tree)
            return
        loops = high is None and low > 0
        for _ in range(low - 1 if loops else low):
            self.add_tree(part)
        if loops:  # the last of the least iterations is the loop: L: part, split L, out
            first = len(self.code)
            self.add_tree(part)
            self.split(self.add(SPLIT), first, len(self.code), greedy=tree.greedy)
        elif high is None:
            split = self.add(SPLIT)
            self.add_tree(part)
            self.add(JUMP, split)
            self.split(split, split + 1, len(self.code), greedy=tree.greedy)
        else:
            splits = []
            for _ in range(high - low):
                splits.append(self.add(SPLIT))
                self.add_tree(part)
            for split in splits:
                self.split(split, split + 1, len(self.code), greedy=tree.greedy)

    def repeat_what_may_be_empty(self, tree: Repeat) -> None:
        """From the last required iteration on, an iteration without a row ends the repetition."""
        part, low, high = tree.part, tree.low, tree.high
        for _ in range(low - 1):
            self.add_tree(part)
        checks = [self.iteration(part)] if low else []
        splits = []
        for _ in range(1 if high is None else high - low):
            splits.append(self.add(SPLIT))
            checks.append(self.iteration(part))
        if high is None:
            self.add(JUMP, splits[0])
        out = len(self.code)
        for split in splits:
            self.split(split, split + 1, out, greedy=tree.greedy)
        for check in checks:
            self.code[check] = (CHECK, self.depth, out)

    def iteration(self, part: Tree) -> int:
        """One iteration between mark and check; the place of its check."""
        self.add(MARK, self.depth)
        self.depth += 1
        self.add_tree(part)
        self.depth -= 1
        return self.add(CHECK)

    def split(self, at: int, more: int, out: int, *, greedy: bool) -> None:
        self.code[at] = (SPLIT, more, out) if greedy else (SPLIT, out, more)
