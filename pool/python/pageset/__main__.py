"""The command ``pageset``, as the script that the package installs, and as ``python -m pageset``."""

import os
import signal
import sys

from . import _native


def main() -> int:
    """Runs the command with the arguments of this process. Returns the process's exit status."""
    # The command handles interrupts itself, as the command does without Python.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The Python program that does a sweep's runs on other computers.
    os.environ.setdefault("PAGESET_PYTHON", sys.executable)
    return _native.command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
