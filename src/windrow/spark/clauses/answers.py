"""The reference interpreter's questions to Spark: each is evaluated once, alone or in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["KnownAnswers"]


class KnownAnswers:
    """The known answers to questions of one kind.

    Parameters
    ----------
    ask
        Answers questions, in their order.
    """

    def __init__(self, ask: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        self._ask = ask
        self.known: dict[str, Any] = {}
        """Answers, by the `repr` of the question."""

    def of(self, question: Any) -> Any:
        """The answer to a question."""
        if repr(question) not in self.known:
            self.add([question])
        return self.known[repr(question)]

    def add(self, questions: Sequence[Any]) -> None:
        """Evaluate questions together."""
        answers = self._ask(questions)
        self.known |= {repr(one): answer for one, answer in zip(questions, answers, strict=True)}
