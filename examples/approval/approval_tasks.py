"""The tasks of the approval flow: plain functions. What they print is their log."""


def draft(to):
    print(f"writing to {to}")
    return f"Dear {to}, it works."


def send(letter, decision):
    """A refusal is a failure, so that the letter can be retried from the question on."""
    if not (isinstance(decision, dict) and decision.get("approved") is True):
        raise PermissionError("the letter was not approved")
    print(f"sending: {letter}")
    return {"sent": letter}
