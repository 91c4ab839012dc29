"""The tasks of the hello flow: plain functions. What they print is their log."""

import random
import time

WORDS = ["workflows", "without", "a", "platform"]


def fetch(name):
    print(f"fetching words for {name}")
    return WORDS


def count(fetch):
    print(f"counting {len(fetch)} words")
    return len(fetch)


def shout(fetch):
    print("making them loud")
    return [word.upper() for word in fetch]


def translate(fetch, ctx):
    """Fails the first time, to show a retry."""
    attempts = ctx.scratch.get("translate_attempts", 0) + 1
    ctx.scratch["translate_attempts"] = attempts
    print(f"asking a flaky service (attempt {attempts})")
    time.sleep(0.2 + random.random() / 10)
    if attempts == 1:
        raise ConnectionError("the service did not answer; it will be asked again")
    return [word[::-1] for word in fetch]


def report(name, count, shout, translate):
    print("writing the report")
    return f"Hello, {name}! {count} words: {' '.join(shout)} / {' '.join(translate)}"
