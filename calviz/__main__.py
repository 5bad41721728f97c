"""Run ``python -m calviz``, the same as the command ``calviz``."""

if __name__ == "__main__":
    try:
        from calviz.cli import main
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    main()
