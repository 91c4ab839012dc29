def add(x=1, y=2):
    return x + y


def double(add):
    return add * 2
