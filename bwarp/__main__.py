"""`python -m bwarp` is the command `bwarp`."""

from bwarp.cli.main import main

if __name__ == "__main__":
    main()
