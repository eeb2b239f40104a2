"""Leaves the text of an exception in the memory of the sandbox, where the host finds it. Do not edit this module."""

import functools

from componentize_py_types import Err

# The text that the host reads after an exception.
_words = None


def guarded(function):
    """Returns the function with a guard. The guard leaves the text of every exception but refusals for the host."""

    @functools.wraps(function)
    def call(*arguments):
        try:
            return function(*arguments)
        except Err:
            raise
        except BaseException as error:
            _leave(error)
            raise

    return call


def _leave(error):
    global _words
    # The module traceback is of no use here, because it would open the source files.
    at = error.__traceback__
    while at.tb_next is not None:
        at = at.tb_next
    place = f"{at.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{at.tb_lineno}: "
    told = f"{place}{type(error).__name__}: {error}".encode()[:900]
    # The mark must occur only in this record. So the code spells the mark backwards and never forward.
    record = bytearray(16) + len(told).to_bytes(4, "little") + told
    for at, letter in enumerate(reversed(b":sdrow-tsal:soak")):
        record[at] = letter
    # The record must be at an address that is a multiple of 16, but Python does not reveal addresses. So there are 16
    # copies whose addresses have 16 different remainders modulo 16: one of them fits.
    _words = (record + bytes(-len(record) % 16 + 1)) * 16
