"""The public interface of a crate as text, from the pages that rustdoc writes.

One line for each item: its kind, its path and, behind `|`, how it is declared. Fields, variants, methods and
implementations of traits have lines of their own; `required` are the methods that implementations have to have. What another crate declares is named and no more."""

import html
import re

KINDS = ["macro", "attr", "derive", "struct", "enum", "union", "trait", "fn", "constant", "static", "type"]
# Where the page of a type goes on with what is not its own.
FOREIGN = re.compile(r'id="(deref-methods-|trait-implementations"|synthetic-implementations"|implementors")')
IMPL = re.compile(r'<section id="[^"]*" class="impl">.*?<h3 class="code-header">(.*?)</h3>', re.S)
MEMBER = re.compile(r'<section id="(ty)?(method|associatedconstant|associatedtype)\.([\w-]+)" class="\2">'
                    r'.*?<h4 class="code-header">(.*?)</h4>', re.S)
FIELD = re.compile(r'<span id="(?:structfield|variant\.(\w+)\.field)\.(\w+)"[^>]*>.*?<code>\w+: (.*?)</code></span>', re.S)
VARIANT = re.compile(r'<section id="variant\.(\w+)" class="variant">.*?<h3 class="code-header">(.*?)</h3>', re.S)
DECLARATION = re.compile(r'<pre class="rust item-decl"><code>(.*?)</code></pre>', re.S)
# Whether rustdoc links the source of what another crate declares depends on which of both it has documented first.
SOURCE = re.compile(r'<span class="sub-heading"><a class="src" href="[./]*/src/(\w+)/')
# Derived for the compiler's sake.
SILENT = {"StructuralPartialEq"}


def text(code):
    """What a reader sees of a piece of HTML, in one line."""
    code = re.sub(r"<summary.*?</summary>", "", code, flags=re.S)
    code = re.sub(r'(<div class="code-attribute">.*?)(</div>)', r"\1 \2", code, flags=re.S)
    code = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", code))).strip()
    return code.replace("( ", "(").replace(", )", ")")


def declaration(page):
    """How an item is declared, without its members and without comments."""
    found = DECLARATION.search(page)
    return re.sub(r" ?(where)? ?\{.*| where$", "", text(found[1])) if found else ""


def own_part(page):
    """The part of a page that has what the item itself declares."""
    found = FOREIGN.search(page)
    return page[: found.start()] if found else page


def members(kind, path, page):
    """The lines of what a type or trait consists of."""
    own = own_part(page)
    for name, signature in VARIANT.findall(own):
        shape = text(signature).removeprefix(name).strip()
        yield f"variant {path}::{name}" + (f" | {shape}" if shape else "")
    for variant, name, signature in FIELD.findall(own):
        yield f"field {'::'.join(filter(None, [path, variant, name]))} | {text(signature)}"
    for required, what, name, signature in MEMBER.findall(own):
        yield f"{'required ' if required else ''}{what} {path}::{name} | {text(signature)}"
    if kind != "trait":
        _, _, rest = page.partition('id="trait-implementations-list"')
        rest = re.split(r'id="(?:synthetic|blanket)-implementations', rest)[0]
        for header in IMPL.findall(rest):
            trait, _, subject = re.sub(r"^impl(<.*?>)? ", "", text(header)).partition(" for ")
            if trait not in SILENT:
                yield f"impl {path}: {trait}" + (f" for {subject}" if re.sub("<.*", "", subject) != path.split("::")[-1] else "")


def item(kind, path, page, crate):
    """The lines of an item."""
    source = SOURCE.search(page)
    if not source or source[1] != crate:
        return [f"{kind} {path} | of another crate"]
    decl = DECLARATION.search(page)
    whole = text(decl[1]) if decl and kind in ("fn", "constant", "static", "type") else declaration(page)
    return [f"{kind} {path} | {whole}", *members(kind, path, page)]


def listing(folder):
    """The interface of the crate whose pages are in `folder`, as sorted lines."""
    crate = folder.name
    lines = []
    for href in re.findall(r'<li><a href="([^"]*)">', (folder / "all.html").read_text(encoding="utf-8")):
        found = re.fullmatch(r"((?:\w+/)*)(\w+)\.(\w+)\.html", href)
        if not found or found[2] not in KINDS:
            raise ValueError(f"{folder}/all.html: a page of an unknown kind: {href}")
        path = "::".join([crate, *found[1].split("/")[:-1], found[3]])
        page = (folder / href).read_text(encoding="utf-8")
        lines += item(found[2], path, page[page.find('id="main-content"'):], crate)
    return sorted(set(lines), key=lambda line: (line.removeprefix("required ").split(" ", 1)[1], line))


def version(folder):
    """Which rustdoc wrote the pages of a crate."""
    page = (folder / "all.html").read_text(encoding="utf-8")
    return re.search(r'data-rustdoc-version="([^"]*)"', page)[1]


def names(lines):
    """Kinds and paths alone, which do not depend on how rustdoc prints signatures."""
    return sorted({line.split(" | ")[0] for line in lines if not line.startswith("impl ")})
