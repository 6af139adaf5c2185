"""``windrow shell``: statements from a prompt, one after the other, in one session.

    prompt (main thread) ─▶ loop ─▶ worker (a thread of its own, in which Spark starts and everything runs)

:mod:`~windrow.cli.shell.loop` reads and dispatches, :mod:`~windrow.cli.shell.dot_commands` has what begins
with a dot, :mod:`~windrow.cli.shell.backend` the session behind. What the prompt needs imports neither
PySpark nor SQLGlot: it is there before they are.
"""
