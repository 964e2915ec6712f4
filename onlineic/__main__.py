"""`python -m onlineic`: the command line."""

import sys

from onlineic.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
