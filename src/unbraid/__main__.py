"""`python -m unbraid` is the command `unbraid`."""

from unbraid.cli import main

if __name__ == "__main__":
    main()
