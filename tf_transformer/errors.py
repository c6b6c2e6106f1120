"""The exception class for errors that a user can correct."""


class InputError(ValueError):
    """Bad input, files or options. The text says what was expected, what came, and what to do.

    The commands print the text without a traceback and exit with status 1. Any other exception is a
    defect of the program and keeps its traceback.
    """
