//! A study's page, which is Markdown, as a part of the report.
//!
//! A record may come from anybody. Markup in its page is shown as text, and links and pictures as their text alone: nothing in it
//! can leave the page or load anything.
#![forbid(unsafe_code)]

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A study's first-level heading belongs under the chapter's, which is second-level.
fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

/// The Markdown as HTML.
pub(super) fn html(markdown: &str) -> String {
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| {
        Some(match event {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::HtmlBlock)
            | Event::End(TagEnd::Link | TagEnd::Image | TagEnd::HtmlBlock) => return None,
            Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
                level: lower(level),
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            }),
            Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(lower(level))),
            // A code block's language would become a class.
            Event::Start(Tag::CodeBlock(_)) => Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)),
            other => other,
        })
    });
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, events);
    // A wide table scrolls by itself; the page does not. No text of the record can be mistaken for a tag here: all of it
    // has been escaped.
    out.replace(
        "<table>",
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table\"><table>",
    )
    .replace("</table>", "</table></div>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_lists_become_theirs_under_the_chapters_heading() {
        let page = html("# Which?\n\n| a | b |\n|---|--:|\n| x | ×1.02 |\n\n## Verdict\n\n- it **holds**\n");
        for part in
            ["<h3>Which?</h3>", "<th>a</th>", "×1.02</td>", "<h4>Verdict</h4>", "<strong>holds</strong>"]
        {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert_eq!(page.matches("<div class=\"scroll\"").count(), 1);
        assert_eq!(page.matches("</table></div>").count(), 1);
    }

    #[test]
    fn nothing_of_a_strangers_leads_out_or_runs() {
        let page = html(
            "<script>alert(1)</script>\n\ntext <img src=x> [words](javascript:alert) ![picture](http://x/y.png) <http://auto.link>\n\n\
             ```\" onload=\"x\n<table>\n```\n\n# h {#id .class onclick=x}\n",
        );
        for tag in ["<script", "<img", "<a ", "href", "src=\"", "id=\"", "onload=\"", "<table>"] {
            assert!(!page.contains(tag), "{tag} is in {page}");
        }
        assert!(
            page.contains("&lt;script&gt;") && page.contains("words") && page.contains("&lt;table&gt;"),
            "{page}"
        );
    }
}
