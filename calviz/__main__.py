"""``python -m calviz``: the same as the command ``calviz``."""

from calviz.cli import main

if __name__ == "__main__":
    main()
