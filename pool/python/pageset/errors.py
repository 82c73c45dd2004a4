"""What goes wrong, in the words of the command."""

import errno


class Error(Exception):
    """Something cannot be read, or cannot be done. Its text names the place and the remedy."""


class FileError(Error, OSError):
    """The system has refused a file. ``errno`` is the system's number and ``filename`` the file, where they are known."""

    def __str__(self) -> str:
        return self.strerror or super().__str__()


class FileMissing(FileError, FileNotFoundError):
    """There is no such file."""


class FilePresent(FileError, FileExistsError):
    """There is such a file already."""


class FileDenied(FileError, PermissionError):
    """This user may not do that with the file."""


class FileIsDirectory(FileError, IsADirectoryError):
    """A directory stands where a file is wanted."""


class OutOfMemoryError(Error, MemoryError):
    """A pool has no more pages."""


_OF_ERRNO = {
    errno.ENOENT: FileMissing,
    errno.EEXIST: FilePresent,
    errno.EACCES: FileDenied,
    errno.EPERM: FileDenied,
    errno.EISDIR: FileIsDirectory,
}


def of_file(text: str, number: int | None, filename: str | None) -> FileError:
    """The exception for an error of the system: also the one that Python raises for the same number."""
    kind: type[FileError] = FileError if number is None else _OF_ERRNO.get(number, FileError)
    return kind(number, text, filename)
