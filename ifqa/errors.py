"""The one exception meant for the user's eyes."""


class IfqaError(Exception):
    """The user's input is wrong: one line saying what was found, what was wanted and how to mend it.

    The command line prints it and exits with 2. Everything else that is raised is a bug and keeps its traceback.
    """
