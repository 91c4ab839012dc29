"""A typed client of pyoco-server: submit runs, read, watch and cancel them; create executions, drive their nodes, answer what waits;
submit jobs and follow their logs; upload wheels.

    from pyoco_client import PyocoHttpClient
    client = PyocoHttpClient("http://127.0.0.1:8000")
    print(client.wait_for_end(client.submit_run("hello", {"name": "Ada"})["run_id"])["status"])

`PyocoHttpClient` has the methods of the class of that name in pyoco-server 0.5.1, with the same parameters and answers, and more.
`AsyncPyocoHttpClient` is the same for asyncio. Answers are dictionaries, described in `pyoco_client.types`.
"""

from . import types
from .async_client import AsyncPyocoHttpClient
from .client import PyocoHttpClient
from .connection import package_version
from .errors import BadAnswer, InvalidArgument, PyocoError, StatusError, WaitTimeout

__version__ = package_version()

__all__ = [
    "AsyncPyocoHttpClient",
    "BadAnswer",
    "InvalidArgument",
    "PyocoError",
    "PyocoHttpClient",
    "StatusError",
    "WaitTimeout",
    "types",
]
