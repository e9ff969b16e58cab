//! The reference as HTML: pages that need nothing but themselves.

use std::fmt::Write as _;

use super::super::explain::ExplainedRule;
use super::super::markup::{html, html_description, html_sentence};
use super::{ReferenceField, Section, title, words};

/// Nothing is fetched or run, whatever a definition says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = ":root{color-scheme:light dark;--line:#d0d7de;--soft:#57606a;--code:#f3f4f6}\
@media(prefers-color-scheme:dark){:root{--line:#3d444d;--soft:#9198a1;--code:#1c2128}}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
code,pre{font:14px/1.45 ui-monospace,monospace;background:var(--code);border-radius:4px;overflow-wrap:anywhere}\
code{padding:.1em .3em}pre{padding:.8rem;overflow-x:auto}pre code{padding:0}\
section{border-top:1px solid var(--line);margin-top:2rem}h3{margin-bottom:.2rem}.type{color:var(--soft);margin:0}";

/// The list of the pages.
pub fn index(pages: &[(String, &[Section<'_>])]) -> String {
    let mut body = "<h1>Reference</h1>\n<nav><ul>\n".to_owned();
    for (name, sections) in pages {
        for section in *sections {
            // Writing to a String can't fail.
            let _ = writeln!(
                body,
                "<li><a href=\"{}#{}\">{}</a></li>",
                html(name),
                section.anchor(),
                html(&section.title())
            );
        }
    }
    body.push_str("</ul></nav>\n");
    whole("Reference", &body)
}

/// A page of some kinds.
pub fn page(sections: &[Section<'_>]) -> String {
    let title = title(sections);
    let mut body = format!("<h1>{}</h1>\n", html(&title));
    if sections.len() > 1 {
        body.push_str("<nav><ul>\n");
        for section in sections {
            let _ = writeln!(body, "<li><a href=\"#{}\">{}</a></li>", section.anchor(), html(&section.title()));
        }
        body.push_str("</ul></nav>\n");
    }
    sections.iter().for_each(|section| add(&mut body, section));
    whole(&title, &body)
}

fn whole(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"{POLICY}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        html(title)
    )
}

fn add(out: &mut String, section: &Section<'_>) {
    let _ = writeln!(out, "<section id=\"{}\">\n<h2>{}</h2>\n<ul>", section.anchor(), html(&section.title()));
    for (name, fact) in section.facts() {
        let _ = writeln!(out, "<li>{name}: {}</li>", html_sentence(&fact));
    }
    out.push_str("</ul>\n");
    section.fields.iter().for_each(|field| add_field(out, field));
    for (name, object) in &section.examples {
        let _ = writeln!(out, "<p>Example: {}</p>\n<pre><code>{}</code></pre>", html(name), html(object.trim_end()));
    }
    out.push_str("</section>\n");
}

fn add_field(out: &mut String, field: &ReferenceField) {
    let explained = &field.explained;
    if !field.path.is_empty() {
        let required = if explained.is_required { ", required" } else { "" };
        let _ = writeln!(
            out,
            "<h3 id=\"{0}\"><a href=\"#{0}\"><code>{1}</code></a></h3>\n<p class=\"type\">{2}{required}</p>",
            field.anchor,
            html(&field.path),
            html(&explained.type_)
        );
    }
    out.push_str(&html_description(&explained.description));
    let constraints = explained.constraints.iter().map(|text| html_sentence(text));
    let lines: Vec<String> = constraints.chain(explained.rules.iter().map(rule)).collect();
    if !lines.is_empty() {
        out.push_str("<ul>\n");
        lines.iter().for_each(|line| _ = writeln!(out, "<li>{line}</li>"));
        out.push_str("</ul>\n");
    }
}

fn rule(of: &ExplainedRule) -> String {
    let ExplainedRule { rule, message, .. } = of;
    let mut line = match words(of) {
        Some(words) => format!("{} (<code>{}</code>)", html_sentence(words), html(rule)),
        None => format!("<code>{}</code>", html(rule)),
    };
    if let Some(message) = message {
        let _ = write!(line, "; else: {}", html_sentence(message));
    }
    line
}
