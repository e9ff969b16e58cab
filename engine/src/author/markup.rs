//! Texts of others in Markdown and HTML.
//!
//! In: any text. Out: the same text, which no reader of Markdown or HTML takes for anything else.

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
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or_default();
    let (fence, space) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
    if text.is_empty() { String::new() } else { format!("{fence}{space}{text}{space}{fence}") }
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
        assert_eq!(html("<a href=\"x\" onclick='y'>&"), "&lt;a href=&quot;x&quot; onclick=&#39;y&#39;&gt;&amp;");
    }
}
