"""Which columns distinguish the rows of a relation at the instants at which they enter and leave."""

from __future__ import annotations

from collections.abc import Callable

from windrow.plan.nodes import Aggregate, Filter, Input, Join, Node, Project, StreamWindow, TimeWindows

__all__ = ["net_by"]


def net_by(
    node: Node,
    of_input: Callable[[Input | StreamWindow], frozenset[str] | None],
    is_net: Callable[[Aggregate], bool],
) -> frozenset[str] | None:
    """Columns for which no row leaves at the instant at which a row with the same values enters.

    None if no columns are certain to have this property.

    Parameters
    ----------
    of_input
        The same for a relation that exists before the query runs.
    is_net
        Whether neighbouring rows of a group always differ.
    """
    match node:
        case Input() | StreamWindow():
            return of_input(node)
        case Filter():
            return net_by(node.input, of_input, is_net)
        case Project():
            inside = net_by(node.input, of_input, is_net)
            unchanged: dict[str, str] = {}
            for column, one in node.outputs:
                if one.column is not None:
                    unchanged.setdefault(one.column, column.id)
            if inside is None or not inside <= unchanged.keys():
                return None
            return frozenset(unchanged[column] for column in inside)
        case TimeWindows():
            # a row changes its session at an instant
            return None if node.kind == "SESSION" else net_by(node.spelled, of_input, is_net)
        case Aggregate() if node.keys and is_net(node):
            return frozenset(column.id for column in node.columns)
        case Join(kind="inner") if _of_windows(node):
            # a pair enters at the later rowtime of its rows
            left, right = (net_by(side, of_input, is_net) for side in (node.left, node.right))
            return None if left is None or right is None else left | right
    return None


def _of_windows(node: Node) -> bool:
    """Whether each row is one of a window, or a pair of these; such windows are net by rowtimes."""
    match node:
        case StreamWindow():
            return True
        case Filter() | Project():
            return _of_windows(node.input)
        case Join(kind="inner"):
            return _of_windows(node.left) and _of_windows(node.right)
    return False
