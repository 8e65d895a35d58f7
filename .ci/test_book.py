#!/usr/bin/env python3
"""Examples of links and tables of contents that book.py accepts and refuses."""

import pathlib
import tempfile
import unittest

import book


class Book(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name).resolve()
        self.put("docs/a.md", "# A\n\n## What `b` is: `c_d`\n\n## Twice\n\n## Twice\n")
        self.put("docs/results/small/x.md", "")

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def broken(self, text):
        return list(book.broken(self.root, self.put("docs/page.md", text), text))

    def test_the_table_of_contents_has_each_page_once(self):
        self.put("docs/SUMMARY.md", "- [A](a.md)\n")
        self.assertEqual(list(book.summary(self.root)), [])
        self.put("docs/b.md", "")
        self.assertEqual(list(book.summary(self.root)), ["docs/SUMMARY.md does not name b.md"])
        self.put("docs/SUMMARY.md", "- [A](a.md)\n- [B](b.md)\n- [B](b.md)\n")
        self.assertEqual(list(book.summary(self.root)), ["docs/SUMMARY.md names b.md more than once"])

    def test_links_lead_somewhere(self):
        right = "[a](a.md), [it](a.md#what-b-is-c_d), [this](a.md#twice-1), [web](https://x.org/#y)\n\n[r]: a.md\n"
        self.assertEqual(self.broken(right), [])
        self.assertEqual(self.broken("[`b`](b.md)"), ["docs/page.md: there is no b.md"])
        self.assertEqual(self.broken("[r]: b.md"), ["docs/page.md: there is no b.md"])
        self.assertEqual(self.broken("![f](f.svg)"), ["docs/page.md: there is no f.svg"])
        self.assertEqual(self.broken("[a](a.md#no)"), ["docs/page.md: a.md has no heading #no"])
        self.assertEqual(self.broken("[a](#no)"), ["docs/page.md: the page has no heading #no"])

    def test_code_has_no_links(self):
        self.assertEqual(self.broken("```text\n[a](b.md)\n```\n`[a](b.md)`"), [])
        self.assertEqual(list(book.anchors("```sh\n# no heading\n```\n# Yes\n")), ["yes"])

    def test_names_of_the_library_are_those_of_its_interface(self):
        self.put("docs/api/a.txt", "method a::T::m | pub fn m()\nstruct a::T | pub struct T\n")
        known = set(book.interface(self.root))
        table = "| other | Sutura |\n|---|---|\n| `X::y` | `T::m`, `T::n` |\n"
        self.assertEqual(list(book.unknown(table, known)), ["3: there is no `T::n`"])
        self.assertEqual(list(book.unknown(table.replace("Sutura", "ours"), known)), [])


if __name__ == "__main__":
    unittest.main()
