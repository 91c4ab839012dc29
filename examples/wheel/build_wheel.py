"""Builds the wheel of this example with nothing but the standard library: python3 build_wheel.py VERSION FOLDER

Your own project needs no such script: `uv build --wheel` or `python -m build --wheel` does the same from a pyproject.toml.
"""

import base64
import hashlib
import pathlib
import sys
import zipfile

GREETINGS = {"1.0.0": "Hello", "2.0.0": "Good day"}

METADATA = """Metadata-Version: 2.1
Name: greeter
Version: {version}
Summary: Greets people, for a flow that runs on every worker
Project-URL: Documentation, https://example.com/greeter

A task `greeter:greet` with one parameter, `name`. Version 1 says hello, version 2 is more formal.
"""

MODULE = '''"""Tasks that greet."""

__version__ = "{version}"


def greet(name):
    return f"{greeting}, {{name}} (greeter {{__version__}})"


def register(registry):
    registry.register_callable(greet, name="greet")
'''


def build(version, folder):
    info = f"greeter-{version}.dist-info"
    files = {
        "greeter.py": MODULE.format(version=version, greeting=GREETINGS[version]),
        f"{info}/METADATA": METADATA.format(version=version),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: example\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[pyoco.tasks]\ngreeter = greeter:register\n",
    }
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text.encode())}\n"
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    path = pathlib.Path(folder) / f"greeter-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in files.items():
            # A fixed date: the same source makes the same wheel, byte by byte.
            wheel.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), text)
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in GREETINGS:
        sys.exit(f"usage: build_wheel.py {'|'.join(GREETINGS)} FOLDER")
    print(build(sys.argv[1], sys.argv[2]))
