"""What tests share: the program to compare with, and a cluster."""

import os
import pathlib
import subprocess

import pytest

SUTURA = os.environ.get("SUTURA", str(pathlib.Path(__file__).parents[2] / "target/debug/sutura"))


@pytest.fixture(scope="session")
def cli():
    """Runs ``sutura lab`` with these arguments and returns what it prints."""

    def run(*arguments):
        command = [SUTURA, "lab", *map(str, arguments)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    return run
