"""Ends a measurement that cannot be made on this machine."""
import sys

SKIPPED = 77


def skip(why):
    """Prints one line that says why, and exits with code 77."""
    print(f"skipped: {why}")
    sys.exit(SKIPPED)
