"""The programs of pyoco-server under their own names.

The package carries one binary, `pyoco-server`, which does what the name says that it is called by. The scripts of the other names
(`python/data/scripts`) become that binary. Nothing that takes time is imported here.
"""

import os
import sys


def become(name: str) -> None:
    """Goes on as the program of this name, in the same process."""
    # It was installed beside the script that called us, also where that is reached through a link.
    program = os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), "pyoco-server")
    try:
        os.execv(program, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: {program}: {error.strerror}; install pyoco-server-rs again")
