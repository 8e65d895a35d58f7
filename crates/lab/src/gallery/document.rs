//! The parts that all pages share.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{Options, Parser};
use sutura_analysis::table::{Cell, Table};

/// The style sheet of all pages, in the folder of the index.
pub const STYLE: &str = include_str!("style.css");

/// A page. `root` is the way from its folder to that of the index: "", or "../" for each folder above it.
pub fn document(title: &str, root: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href={ (root) "style.css" };
            }
            body {
                @if !root.is_empty() { nav { a href={ (root) "index.html" } { "All papers and experiments" } } }
                main { (body) }
            }
        }
    };
    page.into_string()
}

/// A paragraph of Markdown. HTML in it is shown as it is written.
pub fn paragraph(text: &str) -> Markup {
    let events = Parser::new_ext(text, Options::empty()).map(|event| match event {
        pulldown_cmark::Event::Html(text) | pulldown_cmark::Event::InlineHtml(text) => {
            pulldown_cmark::Event::Text(text)
        }
        event => event,
    });
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, events);
    PreEscaped(out)
}

/// A table. Numbers are aligned to the right.
pub fn table(table: &Table) -> Markup {
    let class = |cell: &Cell| if cell.number().is_some() { "number" } else { "text" };
    html! {
        div.scroll {
            table {
                thead { tr { @for column in &table.columns { th scope="col" { (inline(column)) } } } }
                tbody {
                    @for row in &table.rows {
                        tr { @for cell in row { td class=(class(cell)) { (inline(&cell.to_string())) } } }
                    }
                }
            }
        }
    }
}

/// Text of a cell, in which backticks are code as in Markdown.
pub fn inline(text: &str) -> Markup {
    let parts = text.split('`').count();
    html! {
        @for (index, part) in text.split('`').enumerate() {
            // Without a partner, a backtick is itself.
            @if index % 2 == 1 && index + 1 < parts { code { (part) } }
            @else if index % 2 == 1 { "`" (part) }
            @else { (part) }
        }
    }
}

/// A picture, with its name for those who cannot see it.
pub fn picture(file: &str, name: &str) -> Markup {
    html! { figure { a href=(file) { img src=(file) alt=(name) loading="lazy"; } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_and_not_run() {
        let page = document("<T>", "../", &paragraph("a `b<c` <script>x</script>"));
        assert!(page.contains("<title>&lt;T&gt;</title>"), "{page}");
        assert!(page.contains("<code>b&lt;c</code> &lt;script&gt;"), "{page}");
        assert!(page.contains(r#"href="../style.css""#), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }

    #[test]
    fn cells_have_code_and_stray_backticks() {
        assert_eq!(inline("a `b` c").into_string(), "a <code>b</code> c");
        assert_eq!(inline("a ` <").into_string(), "a ` &lt;");
        assert_eq!(inline("`a` `b").into_string(), "<code>a</code> `b");
    }

    #[test]
    fn numbers_are_told_from_labels() {
        let mut rows = Table::new("caption", ["name", "late"]);
        rows.row([Cell::from("a|b"), Cell::Share(0.5)]);
        let text = table(&rows).into_string();
        assert!(
            text.contains(r#"<td class="text">a|b</td><td class="number">50.0 %</td>"#),
            "{text}"
        );
    }
}
