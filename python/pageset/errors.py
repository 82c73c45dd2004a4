"""What goes wrong, in the words of the command."""


class Error(Exception):
    """Something cannot be read, or cannot be done. Its text names the place and the remedy."""


class FileError(Error, OSError):
    """The system has refused a file."""


class OutOfMemoryError(Error, MemoryError):
    """A pool has no more pages."""
