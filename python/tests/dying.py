"""A job that kills its worker the first time that it is done. Workers import this module."""

import os
import pathlib
import signal

DIES = "0-2"


def once(marker, do, name, job, *rest):
    """Does a job as ``do`` does, but the first time the process that is to do job 0-2 is killed."""
    if job == DIES:
        try:
            pathlib.Path(marker).touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return do(name, job, *rest)
