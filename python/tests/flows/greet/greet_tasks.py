"""Two tasks that succeed at once, or fail when they are told to."""


def greet(name: str) -> str:
    print(f"greeting {name}")
    if name == "nobody":
        raise ValueError("there is nobody to greet")
    return f"Hello, {name}"


def shout(greet: str) -> str:
    return greet.upper()
