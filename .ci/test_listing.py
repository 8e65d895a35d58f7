#!/usr/bin/env python3
"""What listing.py reads from pages as rustdoc writes them, made up for it."""

import pathlib
import tempfile
import unittest

import listing

HEAD = '<div id="rustdoc-vars" data-rustdoc-version="1.95.0 (5980)"></div>'
U64 = '<a class="primitive" href="https://doc.rust-lang.org/std/primitive.u64.html">u64</a>'


def page(declaration, rest="", origin="one"):
    return (f'<section id="main-content"><span class="sub-heading"><a class="src" href="../src/{origin}/a.rs.html#1">'
            f'Source</a> </span><pre class="rust item-decl"><code>{declaration}</code></pre>{rest}</section>')


def section(ident, kind, signature):
    level = "h3" if kind in ("variant", "impl") else "h4"
    return f'<section id="{ident}" class="{kind}"><{level} class="code-header">{signature}</{level}></section>'


CONFIG = page(
    '<div class="code-attribute">#[non_exhaustive]</div>pub struct Config {<details class="toggle"><summary>'
    f"<span>Show 13 fields</span></summary>\n    pub a: {U64},\n</details>}}",
    f'<span id="structfield.a" class="structfield section-header"><code>a: Option&lt;{U64}&gt;</code></span>'
    + section("method.with_a", "method", f"pub fn <a>with_a</a>(\n    self,\n    a: {U64},\n) -&gt; Self")
    + '<h2 id="deref-methods-Other">Methods</h2>' + section("method.borrowed", "method", "pub fn borrowed()")
    + '<h2 id="trait-implementations" class="x">Trait</h2><div id="trait-implementations-list">'
    + section("impl-Clone-for-Config", "impl", "impl Clone for Config")
    + section("method.clone", "method trait-impl", "fn clone(&amp;self) -&gt; Self")
    + section("impl-From", "impl", "impl From&lt;Config&gt; for Other")
    + section("impl-S", "impl", "impl StructuralPartialEq for Config") + "</div>"
    + '<div id="synthetic-implementations-list">' + section("impl-Send", "impl", "impl Send for Config") + "</div>")
EVENT = page("pub enum Event {\n    Done,\n}", section("variant.Done", "variant", "Done")
             + section("variant.At", "variant", f"At({U64})") + section("variant.Late", "variant", "Late")
             + f'<span id="variant.Late.field.by" class="section-header"><code>by: {U64}</code></span>')
POLICY = page("pub trait Policy: Send {\n    // Required method\n    fn next(&amp;self);\n}",
              section("tymethod.next", "method", "fn next(&amp;self)")
              + section("method.other", "method", "fn other(&amp;self)")
              + '<h2 id="implementors">Implementors</h2>' + section("impl-P", "impl", "impl Policy for Config"))
PAGES = {"struct.Config.html": CONFIG, "enum.Event.html": EVENT, "policy/trait.Policy.html": POLICY,
         "constant.MAX.html": page(f"pub const MAX: {U64} = 20;"), "struct.Foreign.html": page("pub struct Foreign;",
                                                                                               origin="two")}


class Listing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "one"
        (self.folder / "policy").mkdir(parents=True)
        self.write(PAGES)

    def write(self, pages):
        items = "".join(f'<li><a href="{href}">x</a></li>' for href in pages)
        (self.folder / "all.html").write_text(f"{HEAD}<ul>{items}</ul>", encoding="utf-8")
        for href, text in pages.items():
            (self.folder / href).write_text(text, encoding="utf-8")

    def test_every_item_has_a_line_and_so_has_each_of_its_members(self):
        self.assertEqual(listing.version(self.folder), "1.95.0 (5980)")
        self.assertEqual(listing.listing(self.folder), [
            "struct one::Config | #[non_exhaustive] pub struct Config",
            "impl one::Config: Clone",
            "impl one::Config: From<Config> for Other",
            "field one::Config::a | Option<u64>",
            "method one::Config::with_a | pub fn with_a(self, a: u64) -> Self",
            "enum one::Event | pub enum Event",
            "variant one::Event::At | (u64)",
            "variant one::Event::Done",
            "variant one::Event::Late",
            "field one::Event::Late::by | u64",
            "struct one::Foreign | of another crate",
            "constant one::MAX | pub const MAX: u64 = 20;",
            "trait one::policy::Policy | pub trait Policy: Send",
            "required method one::policy::Policy::next | fn next(&self)",
            "method one::policy::Policy::other | fn other(&self)",
        ])

    def test_what_another_crate_declares_is_the_same_with_and_without_a_link(self):
        linked = listing.listing(self.folder)
        self.write(PAGES | {"struct.Foreign.html": PAGES["struct.Foreign.html"].replace('class="src"', "")})
        self.assertEqual(listing.listing(self.folder), linked)

    def test_names_are_kinds_and_paths(self):
        lines = ["method one::f | fn f()", "impl one::Config: Clone", "variant one::Event::Done"]
        self.assertEqual(listing.names(lines), ["method one::f", "variant one::Event::Done"])

    def test_unknown_kinds_are_noticed(self):
        self.write({"gadget.Config.html": CONFIG})
        with self.assertRaises(ValueError):
            listing.listing(self.folder)


if __name__ == "__main__":
    unittest.main()
