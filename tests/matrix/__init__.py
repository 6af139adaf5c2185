"""What Windrow runs with: environments of other versions, a few tests in each, and the table of the page.

``make test-matrix`` makes the environments in ``build/matrix``, runs the tests of the areas in each, writes
what came of it into ``results.json``, and that as a table into ``docs/compatibility.md``.
"""
