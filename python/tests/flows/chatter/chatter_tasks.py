"""A task that writes numbered lines."""


def talk(lines: int) -> int:
    for number in range(lines):
        print(f"line {number}", flush=True)
    return lines
