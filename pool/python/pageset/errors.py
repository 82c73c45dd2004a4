"""Exceptions, with the messages of the command ``pageset``."""

import errno


class Error(Exception):
    """The base of this package's exceptions. The message names the place of the failure and the remedy."""


class FileError(Error, OSError):
    """The system refused an operation on a file. ``errno`` is the system's number, and ``filename`` is the
    file, if this package knows them."""

    def __str__(self) -> str:
        return self.strerror or super().__str__()


class FileMissing(FileError, FileNotFoundError):
    """The file does not exist."""


class FilePresent(FileError, FileExistsError):
    """The file exists already."""


class FileDenied(FileError, PermissionError):
    """This user lacks the permission for the file."""


class FileIsDirectory(FileError, IsADirectoryError):
    """The path is a directory, not a file."""


class OutOfMemoryError(Error, MemoryError):
    """A pool has no free pages for the request."""


_OF_ERRNO = {
    errno.ENOENT: FileMissing,
    errno.EEXIST: FilePresent,
    errno.EACCES: FileDenied,
    errno.EPERM: FileDenied,
    errno.EISDIR: FileIsDirectory,
}


def of_file(text: str, number: int | None, filename: str | None) -> FileError:
    """Makes the exception for an error of the system. The class of the exception is also the class that
    Python raises for the same number."""
    kind: type[FileError] = FileError if number is None else _OF_ERRNO.get(number, FileError)
    return kind(number, text, filename)
