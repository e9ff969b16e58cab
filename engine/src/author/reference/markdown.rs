//! The reference as Markdown.

use std::fmt::Write as _;

use super::super::explain::ExplainedRule;
use super::super::markup::{code, description, escaped, lines, sentence};
use super::{ReferenceField, Section, title, words};

/// The list of the pages.
pub fn index(pages: &[(String, &[Section<'_>])]) -> String {
    let mut out = "# Reference\n\n".to_owned();
    for (name, sections) in pages {
        for section in *sections {
            // Writing to a String can't fail.
            let _ = writeln!(out, "- [{}]({name}#{})", escaped(&section.title()), section.anchor());
        }
    }
    out
}

/// A page of some kinds.
pub fn page(sections: &[Section<'_>]) -> String {
    let mut out = String::new();
    if sections.len() > 1 {
        let _ = writeln!(out, "# {}\n", escaped(&title(sections)));
        for section in sections {
            let _ = writeln!(out, "- [{}](#{})", escaped(&section.title()), section.anchor());
        }
        out.push('\n');
    }
    for section in sections {
        add(&mut out, section);
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn add(out: &mut String, section: &Section<'_>) {
    let _ = writeln!(out, "<a id=\"{}\"></a>\n\n## {}\n", section.anchor(), escaped(&section.title()));
    for (name, fact) in section.facts() {
        let _ = writeln!(out, "- {name}: {}", sentence(&fact));
    }
    out.push('\n');
    section.fields.iter().for_each(|field| add_field(out, field));
    for (name, object) in &section.examples {
        let _ = writeln!(out, "Example: {}\n\n{}\n", escaped(name), lines(object.trim_end(), "yaml"));
    }
}

fn add_field(out: &mut String, field: &ReferenceField) {
    let explained = &field.explained;
    if !field.path.is_empty() {
        let required = if explained.is_required { ", required" } else { "" };
        let _ = writeln!(
            out,
            "<a id=\"{}\"></a>\n\n### {}\n\n{}{required}\n",
            field.anchor,
            code(&field.path),
            code(&explained.type_)
        );
    }
    let said = description(&explained.description);
    if !said.is_empty() {
        let _ = writeln!(out, "{said}\n");
    }
    let lines: Vec<String> =
        explained.constraints.iter().map(|text| sentence(text)).chain(explained.rules.iter().map(rule)).collect();
    lines.iter().for_each(|line| _ = writeln!(out, "- {line}"));
    if !lines.is_empty() {
        out.push('\n');
    }
}

fn rule(of: &ExplainedRule) -> String {
    let ExplainedRule { rule, message, .. } = of;
    let mut line = match words(of) {
        Some(words) => format!("{} ({})", sentence(words), code(rule)),
        None => code(rule),
    };
    if let Some(message) = message {
        let _ = write!(line, "; else: {}", sentence(message));
    }
    line
}
