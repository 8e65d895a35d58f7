#!/usr/bin/env python3
"""Whether papers.py tells right from wrong, with documents and sources made up for it."""

import pathlib
import tempfile
import unittest

from papers import COLUMNS, SUMMARY, Names, wrong

NAMES = Names([
    ("crates/proto/src/a.rs", 'pub trait Policy {\n    fn decide(&self);\n}\n'
     'pub const LIMIT: u32 = 3;\nconst ENTRY: Entry = Entry::new("block", "parity of blocks", "code=rs", |p| {\n'
     'match p.take("code") { Some("2d") => 1, _ => 2 } });\n'),
    ("crates/proto/src/b.rs", "#[derive(Debug)]\npub struct View {\n    pub missing: u32,\n}\n"
     "impl<'a> View {\n    pub fn span(&self) {}\n}\npub enum Turn {\n    First,\n    Protected,\n}\n"),
    ("crates/proto/src/c.rs", "pub struct Other {\n    pub added: u32,\n}\n"),
    ("crates/cli/src/d.rs", '#[arg(long = "cc", value_parser = x)]\npub congestion: A,\n'
     "/// What.\n#[arg(long, value_name = \"N\")]\nloss_reaction: B,\n#[arg(short)]\nquiet: bool,\n"),
])


class Papers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs").mkdir()
        (self.root / "docs/reasons.md").write_text("why", encoding="utf-8")

    def complaints(self, *rows, counts=None):
        """What is wrong with these rows, if the counts are right or `counts`."""
        states = [row.split("|")[4].strip() for row in rows]
        tests = [row.split("|")[3].strip() for row in rows]
        right = [str(states.count(state)) for state in SUMMARY[1:5]] + [str(len(rows)), str(tests.count("none"))]
        line = counts or " | ".join(right)
        table = lambda columns: f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
        text = table(SUMMARY) + f"| A 2020 | {line} |\n| all | {line} |\n\n## A 2020\n\n" + table(COLUMNS)
        text += "".join(f"|{row}|\n" for row in rows)
        return [what for _, what in wrong(text, NAMES, self.root, self.root / "docs")[0]]

    def test_what_is_there_is_found(self):
        for name in ["Policy", "LIMIT", "Policy::decide", "View::missing", "View::span()", "span()", "Turn::First",
                     "block", "block:code=2d", "--cc", "--loss-reaction", "docs/reasons.md"]:
            self.assertEqual(self.complaints(f" I | it | `{name}` | `a::b` | as described | "), [], name)

    def test_what_is_not_there_is_noticed(self):
        for name in ["Polity", "View::added", "Turn::Last", "width()", "blocks", "block:code=ldpc", "block:source=20",
                     "--quiet", "--loss_reaction", "docs/nothing.md", "Nothing::span"]:
            row = f" I | it | `Policy`, `{name}` | `a::b` | as described | "
            self.assertEqual(self.complaints(row), [f"there is no `{name}`"], name)

    def test_a_row_says_what_its_state_demands(self):
        for row, wrong_things in [
            (" I | it | `Policy` | none | as described | ", 0),
            (" I | it | `Policy` |  | as described | ", 1),
            (" I | it | | none | as described | ", 1),
            (" I | it | | none | missing | it is not there", 0),
            (" I | it | | none | missing | ", 1),
            (" I | it | `Policy` | `a::b` | differs | ", 1),
            (" I | it | `Policy` | `a::b` | reason | slower, [why](reasons.md#slow)", 0),
            (" I | it | `Policy` | `a::b` | reason | slower", 1),
            (" I | it | `Policy` | `a::b` | reason | slower, [why](other.md)", 1),
        ]:
            self.assertEqual(len(self.complaints(row)), wrong_things, (row, self.complaints(row)))
        self.assertIn("`fine` is no state", self.complaints(" I | it | `Policy` | none | fine | x"))
        complaints = self.complaints(" I | it | `Policy` | none | as described | | more ")
        self.assertTrue(complaints[0].startswith("the row has other columns"), complaints)

    def test_the_counts_are_those_of_the_rows(self):
        rows = [" I | a | `Policy` | `a::b` | as described | ", " II | b | | none | missing | all of it"]
        self.assertEqual(self.complaints(*rows), [])
        self.assertEqual(self.complaints(*rows, counts="1 | 0 | 0 | 1 | 2 | 1"), [])
        for counts in ["2 | 0 | 0 | 0 | 2 | 1", "1 | 0 | 0 | 1 | 2 | 0", "1 | 0 | 0 | 1 | 3 | 1"]:
            complaints = self.complaints(*rows, counts=counts)
            self.assertEqual(complaints, [f"{name}: the counts are 1, 0, 0, 1, 2, 1" for name in ("A 2020", "all")])


if __name__ == "__main__":
    unittest.main()
