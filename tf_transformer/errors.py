"""The one exception class for what a user can put right."""


class InputError(ValueError):
    """Bad input, files or options: what was expected, what came, what to do.

    The commands print its text without a traceback and exit with status 1; any other exception
    is a defect and keeps its traceback.
    """
