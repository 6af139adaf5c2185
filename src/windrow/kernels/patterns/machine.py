"""The machine that runs a pattern's program over partitions.

Threads are in preference order, those of earlier first rows before those of later ones, and advance together
row by row. A thread is dropped if one before it is at the same instruction with the same registers: both
would continue the same, and the one before is preferred. So time is linear in the rows for patterns without
registers. If all matches are wanted, a thread is dropped only if one before it has taken the same rows with
the same labels.

If the search ends at a row that depends on the first row (`limits`), each first row is searched from
separately. So it is if a register contains the first row (`ANCHORED`): no two threads with different first
rows are the same then, and those of later ones need not be tried while the first one may have a match.

`run` is plain Python over arrays, which numba compiles unchanged. Its source is executed with `condition`
defined beside it (:mod:`windrow.kernels.patterns.execution`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["ANCHORED", "CODES", "EVERY", "FRAMED", "FULL", "SHARED", "SKIPS", "run"]

SKIPS = {"past last": 0, "next": 1, "first": 2, "last": 3}
"""Numbers for the places where the search resumes after a match."""

CODES = {
    "row": -1, "head": -2, "rest": -3, "rows": -4, "label": -5, "label head": -6, "label rest": -7,
    "number": -8, "count": -9, "labelled rows": -10,
}  # fmt: skip
"""How a taken row changes a register; codes from 0 on are the register whose earlier value it copies."""


EVERY, FULL, ANCHORED, FRAMED, SHARED = 1, 2, 4, 8, 16
"""What to search for, as bits.

* `EVERY`: all matches.
* `FULL`: matches that reach the limit of their first row.
* `ANCHORED`: matches that begin at the row from which the search starts.
* `FRAMED`: for each row, a match that takes and reads rows up to the row's limit.
* `SHARED`: rows up to this one with the same limit find the same match, or none.
"""


# What `run` calls is of each program, and stands beside it where its source is executed.
condition: Callable[..., int]
"""Whether a condition that reads registers is true: 1 true, 0 false, −1 it failed."""

interned: Callable[[int, int], int]
"""The number of the list of rows that extends list `before` by a row.

If labels count, the row is that of the table repeated once for each label.
"""


def grown(array: Any) -> Any:
    """The array with twice the capacity."""
    larger = np.empty((2 * array.shape[0],) + array.shape[1:], array.dtype)  # noqa: RUF005 - numba knows no star here
    flat = larger.reshape(larger.size)  # as slices, numba takes three seconds for the error of unlike shapes
    for at, value in enumerate(array.flat):
        flat[at] = value
    return larger


def run(
    op: Any,
    x: Any,
    y: Any,
    bounds: Any,
    begin: Any,
    limit: Any,
    alive: Any,
    emitted: Any,
    complete: Any,
    satisfied: Any,
    opening: Any,
    dependent: Any,
    update: Any,
    skip: Any,
    targets: Any,
    mode: Any,
    limits: Any,
    since: Any,
    edge: Any,
    data: Any,
) -> Any:
    """Find the matches of all partitions.

    Parameters
    ----------
    op, x, y
        The program.
    bounds
        int64, (partitions + 1,): partition p is rows ``bounds[p] : bounds[p + 1]``.
    begin, limit
        int64, (partitions,): the search is over the rows ``begin[p] : limit[p]``; conditions may read rows
        beside them.
    alive
        bool, (rows,): whether a match that begins at the row may include later rows.
    emitted
        int64, (partitions,): the number of a partition's earlier matches.
    complete
        bool, (partitions,): whether a partition receives no more rows.
    satisfied
        bool, (variants, labels, rows): where conditions of a label that read no register are true. There is
        one variant unless rows are `FRAMED`, see `edge`.
    opening
        bool, (rows,): where a match may begin at all.
    dependent
        bool, (labels,): whether `condition` must be evaluated too.
    update
        int64, (labels, registers): how a row of the label changes each register, see `CODES`.
    skip
        Where the search resumes after a match, a number of `SKIPS`.
    targets
        bool, (labels,): the variables to skip to.
    mode
        Which of `EVERY`, `FULL`, `ANCHORED`, `FRAMED` and `SHARED` are set.
    limits
        int64, (rows,): where the search from each row ends; beyond the partition's end if that is unknown.
        Empty: at the partition's end. If rows are `FRAMED`, a search whose limit is known goes beyond
        `limit`, because its conditions read nothing outside of the frame.
    since
        int64, (partitions,): of all matches, only those that end after this row are returned; without limits.
    edge
        How many rows before and after a row its conditions read: rows with fewer of them in the frame have
        separate variants, ``min(rows before, edge[0]) * (edge[1] + 1) + min(rows after, edge[1])``.
    data
        The data that `condition` reads.

    Returns
    -------
    found, labels, undecided_from, status, place, registers
        For each match its partition, its first row, its number of rows, and the row from which it was
        searched for: int64, (matches, 4); the concatenated labels of the rows, int32, negative and one less
        for an excluded row. For each partition, the first row that is still needed if it is not complete.
        Status 0, or the error at row `place`: 1 the target of the skip is absent, 2 it is the first row, from
        3 on the condition of label (status − 3) failed over `registers`.
    """
    registers = update.shape[1]
    every, full, anchored, framed = mode & 1 != 0, mode & 2 != 0, mode & 4 != 0, mode & 8 != 0
    shared = mode & 16 != 0
    limited = len(limits) > 0
    found = np.empty((256, 4), np.int64)
    matches = 0
    m_labels = np.empty(1024, np.int32)
    written: Any = 0
    undecided_from = np.empty(len(bounds) - 1, np.int64)
    # what threads have taken: nodes with the one before and the label
    n_before, n_label = np.empty(1024, np.int64), np.empty(1024, np.int32)
    n_next = np.empty(1024 if every else 0, np.int64)  # in the bucket of nodes made at this row
    # threads at one row: instruction, node, first row, the source whose registers they have
    c_threads, d_threads = np.empty((64, 4), np.int64), np.empty((64, 4), np.int64)
    c_registers, d_registers = (
        np.empty((64, registers), np.int64),
        np.empty((64, registers), np.int64),
    )
    # what was visited at this row: instruction, marks, source (of all matches: node), the next in the
    # bucket (of this stamp)
    mask = 1023
    k_head, k_stamp = np.empty(mask + 1, np.int64), np.full(mask + 1, -1, np.int64)
    b_head, b_stamp = np.empty(mask + 1, np.int64), np.full(mask + 1, -1, np.int64)
    seen = np.empty((64, 4), np.int64)
    s_pc, s_bits = np.empty(2 * len(op) + 2, np.int64), np.empty(2 * len(op) + 2, np.int64)
    stamp = -1
    for partition in range(len(bounds) - 1):
        first, end = bounds[partition], bounds[partition + 1]
        beyond = limit[partition]
        until = end if framed else beyond
        resume = begin[partition]
        number = emitted[partition] + 1
        undecided_from[partition] = until
        while resume < until:
            stop = limits[resume] if limited else beyond
            low, high = (resume, stop) if framed else (first, end)
            decided = stop <= until
            if not decided:
                stop = beyond
                if resume >= stop:
                    undecided_from[partition] = resume
                    break
            if anchored and not opening[resume]:
                resume += 1
                continue
            best_start, best_end, best_node = np.int64(-1), np.int64(-1), np.int64(-1)
            nodes = 0
            current = 0
            waiting = np.int64(-1)  # the first row of a thread that waits for the end
            position = resume
            while True:
                stamp += 1
                following = 0
                visited = 0
                sources = 0
                cut = False
                for thread in range(current + 1):
                    if sources == d_registers.shape[0]:
                        d_registers = grown(d_registers)
                    if thread < current:
                        at = c_threads[thread, 0]
                        label = x[at]
                        row = position - 1
                        variant = 0
                        if framed:
                            variant = min(row - low, edge[0]) * (edge[1] + 1) + min(high - 1 - row, edge[1])
                        if not satisfied[variant, label, row]:
                            continue
                        for register in range(registers):
                            code = update[label, register]
                            old = c_registers[c_threads[thread, 3], register]
                            if code >= 0:
                                old = c_registers[c_threads[thread, 3], code]
                            elif code == -1:
                                old = row
                            elif code == -5:
                                old = label
                            elif code == -4:
                                old = interned(old, row)  # noqa: F821 - of the program
                            elif code == -8:
                                old = number
                            elif code == -9:
                                old = old + 1 if old > 0 else 1
                            elif code == -2 or code == -6:
                                if old < 0:
                                    old = row if code == -2 else label
                            elif code == -10:
                                old = interned(old, row + label * satisfied.shape[2])  # noqa: F821
                            elif old < 0 and c_registers[c_threads[thread, 3], register - 1] >= 0:
                                old = row if code == -3 else label
                            d_registers[sources, register] = old
                        if dependent[label]:
                            answer = condition(label, row, d_registers[sources], low, high, data)  # noqa: F821
                            if answer < 0:
                                return (
                                    found[:matches], m_labels[:written], undecided_from, 3 + label, row,
                                    d_registers[sources].copy(),
                                )  # fmt: skip
                            if answer == 0:
                                continue
                        before = c_threads[thread, 1]
                        signed = -1 - label if y[at] else label
                        node = np.int64(-1)
                        bucket = (before * 31 + signed) & mask
                        if every and k_stamp[bucket] == stamp:
                            node = k_head[bucket]
                            while node >= 0 and not (n_before[node] == before and n_label[node] == signed):
                                node = n_next[node]
                        elif every:
                            k_stamp[bucket], k_head[bucket] = stamp, -1
                        if node < 0:
                            if nodes == len(n_before):
                                n_before, n_label = grown(n_before), grown(n_label)
                                if every:
                                    n_next = grown(n_next)
                            n_before[nodes], n_label[nodes] = before, signed
                            node = np.int64(nodes)
                            nodes += 1
                            if every:
                                n_next[node], k_head[bucket] = k_head[bucket], node
                        start = c_threads[thread, 2]
                        s_pc[0] = at + 1
                    else:
                        if best_start >= 0 or position >= stop or not opening[position]:
                            continue
                        if anchored and position > resume:
                            continue
                        for register in range(registers):
                            d_registers[sources, register] = -1
                        # where all are wanted, matches of other first rows are others
                        node = np.int64(-2 - position) if every else np.int64(-1)
                        start = position
                        s_pc[0] = 0
                    mixed = np.int64(node if every else 0)
                    for register in range(0 if every else registers):
                        mixed = (mixed * 31 + d_registers[sources, register]) & 0xFFFFFFF
                    s_bits[0] = 0
                    depth = 1
                    while depth:
                        depth -= 1
                        pc, bits = s_pc[depth], s_bits[depth]
                        bucket = (mixed * 7 + pc + bits * 131) & mask
                        known = False
                        if b_stamp[bucket] == stamp:
                            entry = b_head[bucket]
                            while entry >= 0 and not known:
                                if seen[entry, 0] == pc and seen[entry, 1] == bits:
                                    known = not every or seen[entry, 2] == node
                                    for register in range(0 if every else registers):
                                        if (
                                            d_registers[seen[entry, 2], register]
                                            != d_registers[sources, register]
                                        ):
                                            known = False
                                            break
                                entry = seen[entry, 3]
                        else:
                            b_stamp[bucket] = stamp
                            b_head[bucket] = -1
                        if known:
                            continue
                        if visited == seen.shape[0]:
                            seen = grown(seen)
                        seen[visited, 0] = pc
                        seen[visited, 1] = bits
                        seen[visited, 2] = node if every else sources
                        seen[visited, 3] = b_head[bucket]
                        b_head[bucket] = visited
                        visited += 1
                        kind = op[pc]
                        if kind == 0:
                            if following == d_threads.shape[0]:
                                d_threads = grown(d_threads)
                            d_threads[following, 0] = pc
                            d_threads[following, 1] = node
                            d_threads[following, 2] = start
                            d_threads[following, 3] = sources
                            following += 1
                        elif kind == 1:
                            if depth + 2 > len(s_pc):
                                s_pc, s_bits = grown(s_pc), grown(s_bits)
                            s_pc[depth], s_bits[depth] = y[pc], bits
                            s_pc[depth + 1], s_bits[depth + 1] = x[pc], bits
                            depth += 2
                        elif kind == 7 and full and (position != stop or not decided):
                            if position == stop and waiting < 0:
                                waiting = start
                            continue
                        elif kind == 7 and every:
                            length = position - start
                            if (
                                not limited
                                and position <= since[partition]
                                and (length or start < since[partition])
                            ):
                                continue
                            if matches == len(found):
                                found = grown(found)
                            found[matches, 0], found[matches, 1] = partition, start
                            found[matches, 2], found[matches, 3] = length, start
                            matches += 1
                            while written + length > len(m_labels):
                                m_labels = grown(m_labels)
                            written += length
                            place = written
                            last = node
                            while last >= 0:
                                place -= 1
                                m_labels[place] = n_label[last]
                                last = n_before[last]
                        elif kind == 7:
                            best_start, best_end, best_node = start, position, node
                            cut = True
                            break
                        else:
                            target = pc + 1
                            if kind == 2:
                                target = x[pc]
                            elif kind == 3:
                                if position != first:
                                    continue
                            elif kind == 4:
                                if position != end:
                                    continue
                                if not complete[partition]:
                                    if waiting < 0:
                                        waiting = start
                                    continue
                            elif kind == 5:
                                bits = bits | (1 << x[pc])
                            elif (bits >> x[pc]) & 1:
                                target = y[pc]
                                bits = bits - (1 << x[pc])
                            s_pc[depth], s_bits[depth] = target, bits
                            depth += 1
                    sources += 1
                    if cut:
                        break
                c_threads, d_threads = d_threads, c_threads
                c_registers, d_registers = d_registers, c_registers
                current = following
                if position >= stop or (current == 0 and (best_start >= 0 or anchored)):
                    break
                position += 1
                if current == 0:
                    nodes = 0
                    while position < stop and not opening[position]:
                        position += 1
            if limited and not framed:
                if (current and not decided) or waiting >= 0:
                    undecided_from[partition] = resume
                    break
            elif not complete[partition] and not (framed and decided):
                open_from = waiting
                for thread in range(current):
                    start = c_threads[thread, 2]
                    if alive[start]:
                        if open_from < 0 or start < open_from:
                            open_from = start
                        break
                if framed and (open_from >= 0 or (best_start < 0 and not anchored)):
                    undecided_from[partition] = resume
                    break
                if open_from >= 0 and (best_start < 0 or open_from <= best_start):
                    undecided_from[partition] = open_from
                    break
            if best_start < 0:
                if not (limited or anchored):
                    break
                resume += 1
                while shared and resume < beyond and limits[resume] == limits[resume - 1]:
                    resume += 1
                continue
            length = best_end - best_start
            last_row = resume  # the last one of those that have this match
            while shared and skip == 1 and last_row < best_start and limits[last_row + 1] == limits[resume]:
                last_row += 1
            for origin in range(resume, last_row + 1):
                written += length if origin > resume else 0
                if matches == len(found):
                    found = grown(found)
                found[matches, 0], found[matches, 1] = partition, best_start
                found[matches, 2], found[matches, 3] = length, origin
                matches += 1
                number += 1
                while written + length > len(m_labels):
                    m_labels = grown(m_labels)
                place = written + length
                node = best_node
                while node >= 0:
                    place -= 1
                    m_labels[place] = n_label[node]
                    node = n_before[node]
            if skip == 0:
                resume = best_end if length else best_start + 1
            elif skip == 1:
                resume = (last_row if framed else best_start) + 1
            else:
                target = -1
                for offset in range(length):
                    label = m_labels[written + offset]
                    if targets[label if label >= 0 else -1 - label]:
                        target = offset
                        if skip == 2:
                            break
                if target <= 0:
                    return (
                        found[:matches], m_labels[: written + length], undecided_from, 1 if target < 0 else 2,
                        best_start, np.empty(0, np.int64),
                    )  # fmt: skip
                resume = best_start + target
            written += length
    return (
        found[:matches], m_labels[:written], undecided_from, 0, np.int64(-1), np.empty(0, np.int64),
    )  # fmt: skip
