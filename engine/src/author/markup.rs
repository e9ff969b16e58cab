//! Texts of others in Markdown and HTML.
//!
//! Input: any text. Output: the same text, which no reader of Markdown or HTML takes for anything else; of sentences what stands
//! between backticks as code, of descriptions paragraphs and lists, too.

use std::fmt::Write as _;

use super::prose::{Span, TextBlock, blocks, quoted, spans};

/// A text within Markdown: nothing in it is markup, and it stays in its paragraph.
pub fn escaped(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    // What makes a line a heading, a list or a rule stands at its beginning.
    let number = text.chars().take_while(char::is_ascii_digit).count();
    let marks_line = |at: usize, sign: char| {
        (at == 0 && "#+-=".contains(sign)) || (at == number && number > 0 && ".)".contains(sign))
    };
    for (at, sign) in text.char_indices() {
        let next = text[at + sign.len_utf8()..].chars().next();
        match sign {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // An address would become a link.
            ':' if next == Some('/') => out.push_str("&#58;"),
            '.' if is_www(&text[..at]) => out.push_str("&#46;"),
            '@' => out.push_str("&#64;"),
            '(' if before == ']' => out.push_str("\\("),
            sign if "\\`*_[]|~$".contains(sign) || marks_line(at, sign) => out.extend(['\\', sign]),
            sign if sign.is_control() => out.push('\u{fffd}'),
            sign => out.push(sign),
        }
        before = sign;
    }
    out
}

fn is_www(text: &str) -> bool {
    text.len().checked_sub(3).and_then(|start| text.get(start..)).is_some_and(|word| word.eq_ignore_ascii_case("www"))
}

/// A text as code within Markdown, on one line.
pub fn code(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text: String = text.chars().map(|sign| if sign.is_control() { '\u{fffd}' } else { sign }).collect();
    if text.is_empty() { String::new() } else { quoted(&text) }
}

/// Lines as code within Markdown, which nothing in them ends.
pub fn lines(text: &str, language: &str) -> String {
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let text: String =
        text.chars().map(|sign| if sign.is_control() && !"\n\t".contains(sign) { '\u{fffd}' } else { sign }).collect();
    format!("{fence}{language}\n{text}\n{fence}")
}

/// A sentence within Markdown, with its code.
pub fn sentence(text: &str) -> String {
    markdown_of(&spans(text))
}

/// A description within Markdown: blocks with an empty line between them.
pub fn description(text: &str) -> String {
    let block = |block: &TextBlock| match block {
        TextBlock::Paragraph(spans) => markdown_of(spans),
        TextBlock::Bullets(items) => joined(items, |_, item| format!("* {}", markdown_of(item))),
        TextBlock::Numbered(from, items) => joined(items, |at, item| format!("{}. {}", from + at, markdown_of(item))),
        TextBlock::Code(code) => lines(code, ""),
    };
    blocks(text).iter().map(block).collect::<Vec<_>>().join("\n\n")
}

fn joined(items: &[Vec<Span>], line: impl Fn(usize, &[Span]) -> String) -> String {
    items.iter().enumerate().map(|(at, item)| line(at, item)).collect::<Vec<_>>().join("\n")
}

fn markdown_of(spans: &[Span]) -> String {
    let mut out = String::new();
    for span in spans {
        match span {
            Span::Code(text) => out.push_str(&code(text)),
            Span::Text(text) => {
                let space = |is_there: bool| if is_there { " " } else { "" };
                let before = space(text.starts_with(char::is_whitespace) && !out.is_empty());
                let behind = space(text.ends_with(char::is_whitespace));
                // Writing to a String can't fail.
                let _ = write!(out, "{before}{}{behind}", escaped(text));
            }
        }
    }
    out.trim_end().to_owned()
}

/// A sentence within HTML, with its code.
pub fn html_sentence(text: &str) -> String {
    html_of(&spans(text))
}

/// A description within HTML, a block a line or more.
pub fn html_description(text: &str) -> String {
    let items =
        |items: &[Vec<Span>]| items.iter().map(|item| format!("<li>{}</li>\n", html_of(item))).collect::<String>();
    let block = |block: &TextBlock| match block {
        TextBlock::Paragraph(spans) => format!("<p>{}</p>\n", html_of(spans)),
        TextBlock::Bullets(all) => format!("<ul>\n{}</ul>\n", items(all)),
        TextBlock::Numbered(from, all) => format!("<ol start=\"{from}\">\n{}</ol>\n", items(all)),
        TextBlock::Code(code) => format!("<pre><code>{}</code></pre>\n", html(code)),
    };
    blocks(text).iter().map(block).collect()
}

fn html_of(spans: &[Span]) -> String {
    let span = |span: &Span| match span {
        Span::Text(text) => html(text),
        Span::Code(text) => format!("<code>{}</code>", html(text)),
    };
    spans.iter().map(span).collect()
}

/// A text within HTML, also within quotes.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(sign),
            sign if sign.is_control() => out.push('\u{fffd}'),
            sign => out.push(sign),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_stays_text() {
        assert_eq!(escaped("<img src=x>\n\n# [a](http://b) `c`"), r"&lt;img src=x&gt; # \[a\]\(http&#58;//b) \`c\`");
        assert_eq!(
            ["# a", "- a", "12. a", "www.a: b@c"].map(escaped),
            [r"\# a", r"\- a", r"12\. a", "www&#46;a: b&#64;c"]
        );
        assert_eq!([code("a `` b\nc"), code("a")], ["``` a `` b c ```", "`a`"]);
        assert_eq!(sentence("# is `a_b` or _c_ `<d>`"), r"\# is `a_b` or \_c\_ `<d>`");
        let text = "a:\n* `b`\n* # c\n\n1. x\n\n```\n</code>`` `\n```";
        let expected = "a:\n\n* `b`\n* \\# c\n\n1. x\n\n```\n</code>`` `\n```";
        assert_eq!(description(text), expected);
        let expected = "<p>a:</p>\n<ul>\n<li><code>b</code></li>\n<li># c</li>\n</ul>\n<ol start=\"1\">\n<li>x</li>\n</ol>\n\
                        <pre><code>&lt;/code&gt;`` `</code></pre>\n";
        assert_eq!(html_description(text), expected);
        assert_eq!(description("18446744073709551615. a\n1. b"), "18446744073709551615\\. a\n\n1. b");
        assert_eq!(lines("```", "yaml"), "````yaml\n```\n````");
        assert_eq!(html("<a href=\"x\" onclick='y'>&"), "&lt;a href=&quot;x&quot; onclick=&#39;y&#39;&gt;&amp;");
    }
}
