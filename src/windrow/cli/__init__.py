"""The command line: ``windrow run``, ``explain``, ``check``, ``demo``, ``doctor`` and ``datasets``.

:mod:`~windrow.cli.main` declares the commands and imports nothing heavy, so that ``--help`` is instant; what
a command does is in a module of its own, imported when it is called.
"""
