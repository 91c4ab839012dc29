// A small wheel of nothing, for the server to keep.
import { execFileSync } from 'node:child_process';

const script = `
import base64, hashlib, io, sys, zipfile
name, version = sys.argv[1:]
info = f"{name}-{version}.dist-info"
files = {
    f"{name}/__init__.py": b"",
    f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n".encode(),
    f"{info}/WHEEL": b"Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}
digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
record = "".join(f"{path},sha256={digest(data)},{len(data)}\\n" for path, data in files.items())
files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\\n".encode()
out = io.BytesIO()
with zipfile.ZipFile(out, "w") as wheel:
    for path, data in files.items():
        wheel.writestr(path, data)
sys.stdout.buffer.write(out.getvalue())
`;

export interface Wheel {
  file: string;
  bytes: Uint8Array<ArrayBuffer>;
}

export const wheel = (name: string, version: string): Wheel => ({
  file: `${name}-${version}-py3-none-any.whl`,
  bytes: new Uint8Array(execFileSync('python3', ['-c', script, name, version])),
});
