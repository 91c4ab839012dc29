"""Says which wheels this Python runs, the best tags first. The packages that know best are asked; without them, what is certain."""

import importlib
import json
import platform
import sys
import sysconfig

OLD_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


def known():
    for name in ("packaging.tags", "pip._vendor.packaging.tags"):
        try:
            return [str(tag) for tag in importlib.import_module(name).sys_tags()]
        except Exception:
            continue
    return None


def platforms():
    own = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    library, version = platform.libc_ver()
    if own.startswith("linux_") and library == "glibc":
        machine = own[len("linux_") :]
        for minor in range(int(version.split(".")[1]), 4, -1):
            yield f"manylinux_2_{minor}_{machine}"
            if minor in OLD_NAMES:
                yield f"{OLD_NAMES[minor]}_{machine}"
    yield own


def certain():
    minor, systems = sys.version_info[1], list(platforms())
    if sys.implementation.name == "cpython":
        is_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
        own = f"cp3{minor}"
        for abi in [own + "t"] if is_threaded else [own, "abi3", "none"]:
            yield from (f"{own}-{abi}-{system}" for system in systems)
        if not is_threaded:
            for older in range(minor - 1, 1, -1):
                yield from (f"cp3{older}-abi3-{system}" for system in systems)
    pythons = [f"py3{minor}", "py3", *(f"py3{older}" for older in range(minor - 1, -1, -1))]
    for python in pythons:
        yield from (f"{python}-none-{system}" for system in systems)
    yield from (f"{python}-none-any" for python in pythons)


print(json.dumps({"tags": known() or list(certain())}))
