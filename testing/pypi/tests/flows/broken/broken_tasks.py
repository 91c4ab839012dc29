def fall():
    raise ValueError("fällt um")


def after():
    return "never"
