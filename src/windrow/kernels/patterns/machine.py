"""The machine that runs a pattern's program over partitions.

Threads are kept in preference order, those of earlier first rows before those of later ones, and go on row
by row together. A thread is dropped where one before it is at the same instruction with the same registers:
what follows would be the same, and the one before is preferred. So time is linear in the rows for patterns
without registers.

`run` is plain Python over arrays, which numba compiles as it is; `condition` is put beside it where its
source is executed (:mod:`windrow.kernels.patterns.execution`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["CODES", "SKIPS", "run"]

SKIPS = {"past last": 0, "next": 1, "first": 2, "last": 3}
"""Numbers of the ways to go on after a match."""

CODES = {
    "row": -1, "head": -2, "rest": -3, "rows": -4, "label": -5, "label head": -6, "label rest": -7,
    "number": -8, "count": -9,
}  # fmt: skip
"""How a row that is taken changes a register; from 0 on it is the register whose former value it gets."""


# What `run` calls is of each program, and stands beside it where its source is executed.
condition: Callable[..., int]
"""Whether a condition that reads registers holds: 1 true, 0 not, −1 it failed."""

interned: Callable[[int, int], int]
"""The number of a list of rows: the one of this number and a row after it."""


def grown(array: Any) -> Any:
    """The array with room for twice as many."""
    larger = np.empty((2 * array.shape[0],) + array.shape[1:], array.dtype)  # noqa: RUF005 - numba knows no star here
    larger[: array.shape[0]] = array
    return larger


def run(
    op: Any,
    x: Any,
    y: Any,
    bounds: Any,
    complete: Any,
    holds: Any,
    opening: Any,
    dependent: Any,
    update: Any,
    skip: Any,
    targets: Any,
    data: Any,
) -> Any:
    """Find the matches of all partitions.

    Parameters
    ----------
    op, x, y
        The program.
    bounds
        int64, (partitions + 1,): partition p is rows ``bounds[p] : bounds[p + 1]``.
    complete
        bool, (partitions,): whether no more rows of a partition will come.
    holds
        bool, (labels, rows): where the conditions of a label that read no register hold.
    opening
        bool, (rows,): where a match may begin at all.
    dependent
        bool, (labels,): whether `condition` is to be asked too.
    update
        int64, (labels, registers): how a row of the label changes each register, see `CODES`.
    skip
        How the search goes on after a match, a number of `SKIPS`.
    targets
        bool, (labels,): the variables to skip to.
    data
        What `condition` reads.

    Returns
    -------
    partition, start, length, labels, kept, status, place, registers
        Of each match its partition, its first row and how many rows it has, int64; the rows' labels one
        match after the other, int32, negative and one less where the row is excluded. Of each partition the
        first row that is still needed if it is not complete. Status 0, or what went wrong at row `place`: 1
        the target of the skip is absent, 2 it is the first row, from 3 on the condition of label (status −
        3) failed over `registers`.
    """
    registers = update.shape[1]
    m_partition, m_start, m_length = np.empty(256, np.int64), np.empty(256, np.int64), np.empty(256, np.int64)
    matches = 0
    m_labels = np.empty(1024, np.int32)
    written: Any = 0
    kept = np.empty(len(bounds) - 1, np.int64)
    # what threads have taken: nodes with the one before and the label
    n_before, n_label = np.empty(1024, np.int64), np.empty(1024, np.int32)
    # threads at one row: instruction, node, first row, the source whose registers they have
    c_threads, d_threads = np.empty((64, 4), np.int64), np.empty((64, 4), np.int64)
    c_registers, d_registers = (
        np.empty((64, registers), np.int64),
        np.empty((64, registers), np.int64),
    )
    # what was visited at this row: instruction, marks, source, the next in the bucket (of this stamp)
    mask = 1023
    b_head, b_stamp = np.empty(mask + 1, np.int64), np.full(mask + 1, -1, np.int64)
    seen = np.empty((64, 4), np.int64)
    s_pc, s_bits = np.empty(2 * len(op) + 2, np.int64), np.empty(2 * len(op) + 2, np.int64)
    stamp = -1
    for partition in range(len(bounds) - 1):
        first, end = bounds[partition], bounds[partition + 1]
        resume = first
        number = np.int64(1)
        kept[partition] = end
        while resume < end:
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
                        if not holds[label, row]:
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
                            elif old < 0 and c_registers[c_threads[thread, 3], register - 1] >= 0:
                                old = row if code == -3 else label
                            d_registers[sources, register] = old
                        if dependent[label]:
                            answer = condition(label, row, d_registers[sources], first, end, data)  # noqa: F821
                            if answer < 0:
                                return (
                                    m_partition[:matches], m_start[:matches], m_length[:matches],
                                    m_labels[:written], kept, 3 + label, row, d_registers[sources].copy(),
                                )  # fmt: skip
                            if answer == 0:
                                continue
                        if nodes == len(n_before):
                            n_before, n_label = grown(n_before), grown(n_label)
                        n_before[nodes] = c_threads[thread, 1]
                        n_label[nodes] = -1 - label if y[at] else label
                        node = np.int64(nodes)
                        nodes += 1
                        start = c_threads[thread, 2]
                        s_pc[0] = at + 1
                    else:
                        if best_start >= 0 or position >= end or not opening[position]:
                            continue
                        for register in range(registers):
                            d_registers[sources, register] = -1
                        node = np.int64(-1)
                        start = position
                        s_pc[0] = 0
                    mixed = np.int64(0)
                    for register in range(registers):
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
                                    known = True
                                    for register in range(registers):
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
                        seen[visited, 2] = sources
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
                                continue
                            s_pc[depth], s_bits[depth] = target, bits
                            depth += 1
                    sources += 1
                    if cut:
                        break
                c_threads, d_threads = d_threads, c_threads
                c_registers, d_registers = d_registers, c_registers
                current = following
                if position >= end or (current == 0 and best_start >= 0):
                    break
                position += 1
                if current == 0:
                    while position < end and not opening[position]:
                        position += 1
            if not complete[partition] and (current or waiting >= 0):
                open_from = c_threads[0, 2] if current else waiting
                if waiting >= 0:
                    open_from = min(open_from, waiting)
                if best_start < 0 or open_from <= best_start:
                    kept[partition] = open_from
                    break
            if best_start < 0:
                break
            length = best_end - best_start
            if matches == len(m_start):
                m_partition, m_start, m_length = grown(m_partition), grown(m_start), grown(m_length)
            m_partition[matches], m_start[matches], m_length[matches] = partition, best_start, length
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
                resume = best_start + 1
            else:
                found = -1
                for offset in range(length):
                    label = m_labels[written + offset]
                    if targets[label if label >= 0 else -1 - label]:
                        found = offset
                        if skip == 2:
                            break
                if found <= 0:
                    return (
                        m_partition[:matches], m_start[:matches], m_length[:matches],
                        m_labels[: written + length], kept, 1 if found < 0 else 2, best_start,
                        np.empty(0, np.int64),
                    )  # fmt: skip
                resume = best_start + found
            written += length
    return (
        m_partition[:matches], m_start[:matches], m_length[:matches], m_labels[:written], kept,
        0, np.int64(-1), np.empty(0, np.int64),
    )  # fmt: skip
