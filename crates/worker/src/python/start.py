import json, os, sys, types

def take(size):
    parts = []
    while size:
        part = os.read(0, size)
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)

for name, source in json.loads(take(int.from_bytes(take(4), "little"))).items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, "<pyoco task host>", "exec"), module.__dict__)
sys.modules["pyoco_task_host"].main()
