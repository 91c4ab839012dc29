"""Says each call of a function of a module to the test, over the socket beside this file.

The functions themselves stay as they are: a wrapper would have another signature and another type.
"""

import os
import socket
import sys

LINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "calls")


def calls_of(path):
    def look(frame, event, _argument):
        code = frame.f_code
        if event == "call" and code.co_filename == path and not code.co_name.startswith("<"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
                line.sendto(code.co_name.encode("utf-8"), LINE)

    sys.setprofile(look)
