"""Exit statuses of the command line."""

DONE, FAILED, USAGE, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 130, 141
SAID = """\
exit status: 0 done; 1 a line, a file or a check failed; 2 arguments that cannot be used, nothing was paid;
130 after Ctrl-C; 141 if the reader of the output has gone."""
