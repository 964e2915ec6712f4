"""`python -m onlineic`: the command line."""

import sys

from onlineic.cli import main

if __name__ == "__main__":
    sys.exit(main())
