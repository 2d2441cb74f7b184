"""What the tests have child processes do; imports no torch."""

import os
import signal
import time

from litert_torch.errors import InvalidInputError


def add(a, b):
    return a + b


def refuse():
    raise InvalidInputError("no")


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def leave():
    os.write(2, b"the last words")
    os._exit(7)


def sleep():
    time.sleep(60)
