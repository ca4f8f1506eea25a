"""`python -m tinygrad_ext`: see tinygrad_ext/cli."""

import sys

from tinygrad_ext.cli import main

sys.exit(main())
