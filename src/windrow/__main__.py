"""``python -m windrow``: the command line, where no directory of programs is on PATH."""

from windrow.cli.main import run

if __name__ == "__main__":
    run()
