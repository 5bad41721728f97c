"""Run ``python -m calviz``, the same as the command ``calviz``."""

from __future__ import annotations

if __name__ == "__main__":
    try:
        from calviz.cli import main
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    main()
