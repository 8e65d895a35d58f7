#!/usr/bin/env python3
"""Examples of pages that results.py accepts and refuses."""

import pathlib
import unittest

import results

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {"benches/Cargo.toml": ({"rounds", "report"}, {"load", "per", "second"})}


def complaints(text):
    return list(results.complaints_of(ROOT, "x.md", text, {"flec-bulk"}, dict(SOURCES)))


class Pages(unittest.TestCase):
    MEASURED = "# X\n\nMade by `cargo run --manifest-path benches/Cargo.toml -- --rounds 5` here.\n\n"

    def test_what_can_be_made_again_is_right(self):
        table = "| load | per second |\n| --- | --- |\n| a | 1 |\n"
        self.assertEqual(complaints(self.MEASURED + table), [])

    def test_a_renamed_column_is_told(self):
        table = "| load | per minute |\n| --- | --- |\n| a | 1 |\n"
        self.assertEqual(complaints(self.MEASURED + table),
                         ["x.md: no column of the program has the word `minute`"])

    def test_unknown_options_programs_and_experiments_are_told(self):
        told = complaints(self.MEASURED.replace("--rounds", "--laps"))
        self.assertEqual(told, ["x.md: the program knows no --laps"])
        self.assertIn("no such program", complaints("Made by `make`")[0])
        self.assertEqual(complaints("Nothing"), ["x.md: it does not say what made it"])
        self.assertEqual(complaints("Made by `sutura lab flec-bulk`"), [])
        self.assertEqual(complaints("Made by `sutura lab nothing`"), ["x.md: no experiment nothing"])
        self.assertEqual(complaints("Made by `interop/nothing.sh`"), ["x.md: no script interop/nothing.sh"])


if __name__ == "__main__":
    unittest.main()
