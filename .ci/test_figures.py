#!/usr/bin/env python3
"""Whether figures.py tells right from wrong, with documents and sources made up for it."""

import pathlib
import tempfile
import unittest

from figures import Sources, number, said_in, shows, wrong_bounds, wrong_marks, wrong_sentences

SOURCES = Sources([
    ("crates/proto/src/a.rs", "const MAX_A: usize = 64 << 10;\npub(crate) const MAX_B: u64 = MAX_A as u64 + 3;\n"),
    ("crates/proto/src/config.rs", "    pub max_things: usize,\n            max_things: 100_000,\n"
     "            above: Some(500),\n"),
    ("crates/h3/src/a.rs", "const MAX_A: usize = 7;\nconst LIMIT: Duration = Duration::from_secs(20);\n"
     "#[cfg(test)]\nmod tests {\nconst LIMIT: u64 = 1;\n}\n"),
    ("crates/cli/src/serve.rs", '#[arg(long, default_value = "16")]\n#[arg(value_parser = x)]\nmax_viewers: u16,\n'),
])


def complaints(bound, where):
    table = f"| what | bound | where |\n|---|---|---|\n| things | {bound} | {where} |\n"
    return [what for _, what in wrong_bounds(table, SOURCES)[0]]


class Bounds(unittest.TestCase):
    def test_what_the_sources_say_is_right(self):
        for bound, where in [
            ("64 KiB", "`MAX_A` in `proto/src/a.rs`"),
            ("7 each", "`MAX_A` in `h3`"),
            ("64 KiB, or a little more", "`MAX_B` in `proto`"),
            ("100,000; 500", "`max_things`, `above` of `Config` in `proto/src/config.rs`"),
            ("20 s", "`LIMIT` in `h3`"),
            ("16 unless configured", "`--max-viewers`"),
            ("what is open", "`proto/src/a.rs`"),
        ]:
            self.assertEqual(complaints(bound, where), [], bound)

    def test_a_wrong_number_is_noticed(self):
        for bound, where, wrong in [
            ("32 KiB", "`MAX_A` in `proto/src/a.rs`", 2),
            ("64 KiB", "`MAX_A` in `h3`", 2),
            ("100,000; 5", "`max_things`, `above` in `proto/src/config.rs`", 2),
            ("100,000; 500", "`max_things` in `proto/src/config.rs`", 1),
            ("100,000", "`max_things`, `above` in `proto/src/config.rs`", 1),
            ("1 s", "`LIMIT` in `h3`", 2),
            ("17", "`--max-viewers`", 2),
            ("12", "`proto/src/a.rs`", 1),
        ]:
            self.assertEqual(len(complaints(bound, where)), wrong, (bound, complaints(bound, where)))

    def test_a_constant_in_a_sentence_has_its_value(self):
        for text, wrong in [
            ("at most `MAX_B`, 64 KiB", 0), ("at most `MAX_B`, 32 KiB", 1), ("64 KiB wait (`MAX_B`)", 0),
            ("63 KiB wait (`MAX_B`)", 1), ("`MAX_OTHER`, 5", 0),
        ]:
            self.assertEqual(len(wrong_sentences(text, SOURCES)[0]), wrong, text)

    def test_numbers_have_units(self):
        values = [value for value, _ in said_in("1,024; 8 with 16 KiB, 16 Mi pixels, 2 million, 20 s (`MAX_9`)")]
        self.assertEqual(values, [1024, 8, 16 << 10, 16 << 20, 2_000_000, 20])
        self.assertEqual(number("(1 << 20) + 64 * 1024"), 1_114_112)
        self.assertIsNone(number("u64::MAX"))


class Marks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "docs/results").mkdir(parents=True)
        (self.root / "docs/results/x.md").write_text("| a | 1.362 | 4,096 | 19.3 |\n", encoding="utf-8")

    def tearDown(self):
        self.folder.cleanup()

    def complaints(self, text):
        return [what for _, what in wrong_marks(text, pathlib.Path("docs/page.md"), self.root)[0]]

    def test_figures_are_those_of_the_page(self):
        for prose, mark in [("1.362 times", "1.362"), ("1.36 times, of 19 KiB", "1.36, 19"), ("4,096", "4,096")]:
            self.assertEqual(self.complaints(f"{prose}\n<!-- from results/x.md: {mark} -->\n"), [])

    def test_other_figures_are_noticed(self):
        for prose, mark in [("1.363", "1.363"), ("1.362", "1.363"), ("25.9", "25.9"), ("18 KiB", "18"), ("62", "62")]:
            self.assertNotEqual(self.complaints(f"{prose}\n<!-- from results/x.md: {mark} -->\n"), [], prose)
        self.assertNotEqual(self.complaints("1\n<!-- from results/y.md: 1 -->"), [], "no such page")
        self.assertNotEqual(self.complaints("1.362\n\nelsewhere\n<!-- from results/x.md: 1.362 -->"), [])

    def test_a_number_is_not_part_of_another(self):
        self.assertTrue(shows("from 19.34 on", "19.3"))
        self.assertFalse(shows("119.3 and 19.36", "19.3"))


if __name__ == "__main__":
    unittest.main()
