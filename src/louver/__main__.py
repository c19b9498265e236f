"""`python -m louver`."""

from louver.cli import main

main()
