"""Prints a line for a shell: it puts the commands of the sandbox's packages on the path, which lie in none of its own.

eval "$(python3 foreign_programs.py)"
"""

import os
import shlex
import tempfile

from foreign_view import commands, write_command


def main():
    """Write the commands to a folder of their own."""
    folder = tempfile.mkdtemp()
    for place in filter(None, os.environ.get("PYTHONPATH", "").split(":")):
        for name, where in commands(place):
            write_command(folder, name, where)
    print(f'export PATH={shlex.quote(folder)}:"$PATH"')


if __name__ == "__main__":
    main()
