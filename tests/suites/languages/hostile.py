def hostile(title):
    """Does what a policy must not do, and raises an exception with what it saw."""
    import os
    import random
    import time

    if title == "clock":
        saw(time.time())
    if title == "monotonic":
        saw(time.monotonic())
    if title == "random":
        saw(random.random())
    if title == "urandom":
        saw(os.urandom(4).hex())
    if title == "file":
        saw(open("/etc/passwd").read())
    if title == "environment":
        saw(len(os.environ))
    if title == "hash":
        saw(hash("kite"))
    if title == "recursion":
        hostile(title)
    if title == "loop":
        while True:
            pass
    if title == "memory":
        kept = []
        while True:
            kept.append(bytearray(1 << 20))


def saw(value):
    raise ValueError(f"saw {value}")
