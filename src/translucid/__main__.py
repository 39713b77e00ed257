"""`python -m translucid` is the command `translucid`."""

from translucid.cli.main import main

if __name__ == "__main__":
    main()
