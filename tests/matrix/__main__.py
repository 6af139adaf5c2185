"""``python -m tests.matrix [ENVIRONMENT …]``: try all environments, or some, and write it down."""

from __future__ import annotations

import sys
import time

from tests.matrix.environments import ENVIRONMENTS
from tests.matrix.page import load, save, unexpected
from tests.matrix.running import tried

known = {each.name: each for each in ENVIRONMENTS}
asked = sys.argv[1:] or list(known)
if unknown := [name for name in asked if name not in known]:
    sys.exit(f"no environment {', '.join(unknown)}; there are: {', '.join(known)}")
results = {name: told for name, told in load().items() if name in known}
is_whole = True
for name in asked:
    began = time.monotonic()
    results[name] = told = tried(known[name])
    save(results)
    outcome = told.get("skipped") or ", ".join(
        f"{area} {found['passed']}" + (f" and {len(found['failed'])} failed" if found["failed"] else "")
        for area, found in told["areas"].items()
    )
    print(f"{name}: {outcome} ({time.monotonic() - began:.0f} s)", flush=True)
    for failed in unexpected(known[name], told):
        print(f"  {failed}")
        is_whole = False
sys.exit(0 if is_whole else 1)
