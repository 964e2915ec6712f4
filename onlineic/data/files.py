"""Files of records, opened: what is none is refused by its name, before it is read."""

import io
import os
import stat

from onlineic.errors import (
    InvalidParameterError,
    shown,
)


def opened(path: str | os.PathLike[str]) -> io.FileIO:
    """Return an open file, pipe or terminal, unbuffered.

    Raises:
        InvalidParameterError: If the system does not open it, or it is a device, which need not have an end.
    """
    text = _text(path)
    try:
        file = io.FileIO(text)
        try:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISCHR(mode) and not stat.S_ISBLK(mode):
                return file
            if file.isatty():
                return file
        except BaseException:
            file.close()
            raise
        file.close()
    except (OSError, ValueError) as error:
        raise _refused(text, error) from None
    raise InvalidParameterError(
        f"path must be that of a file, a pipe or a terminal, got the device {shown(text, 300)}; give a file."
    )


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Return whether a file can be read twice: of a pipe what was read is gone.

    Raises:
        InvalidParameterError: If the system does not tell.
    """
    text = _text(path)
    try:
        return stat.S_ISREG(os.stat(text).st_mode)
    except (OSError, ValueError) as error:
        raise _refused(text, error) from None


def _text(path: object) -> str:
    """Return a path as text: a number would be the descriptor of some file of this process."""
    try:
        return os.fsdecode(path)  # type: ignore[arg-type]
    except (TypeError, UnicodeError):
        raise InvalidParameterError(
            f"path must be that of a file, got a {type(path).__name__}; write 'FILE.csv'."
        ) from None


def _refused(path: str, error: OSError | ValueError) -> InvalidParameterError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else "no path of a file"
    return InvalidParameterError(
        f"path must be that of a file that can be read, got {shown(path, 300)}: {why}; correct it, or "
        f"let this "
        "user read it."
    )
