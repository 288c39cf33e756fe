"""``python -m candide`` is the command ``candide``."""

from candide.cli import main

if __name__ == "__main__":
    main()
