"""The command ``pageset``, as the script that the package installs, and as ``python -m pageset``."""

import os
import signal
import sys

from . import _native


def main() -> int:
    """Runs the command with the arguments of this process. Returns the process's exit status."""
    # The command handles interrupts itself, as it does without Python.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The Python that works on a sweep's runs elsewhere.
    os.environ.setdefault("PAGESET_PYTHON", sys.executable)
    return _native.command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
