//! For people: each error under the line that causes it, with the rule beside it.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::{Fault, Item, Verdict};
use crate::value::yaml::Place;

/// How many values of parts of a rule are shown.
const PARTS_MAX: usize = 12;

pub fn show(items: &[Item], is_styled: bool) -> String {
    let renderer = if is_styled { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for item in items {
        for fault in &item.faults {
            out.push_str(&show_fault(item, fault, &renderer));
            out.push_str("\n\n");
        }
        for warning in &item.warnings {
            out.push_str(&format!("{}: {}: {warning}\n", item.file, item.title()));
        }
    }
    let count = |verdict| items.iter().filter(|item| item.verdict == verdict).count();
    let documents = if items.len() == 1 { "document" } else { "documents" };
    out.push_str(&format!("{} {documents}: {} valid", items.len(), count(Verdict::Valid)));
    for (verdict, words) in [(Verdict::Invalid, "invalid"), (Verdict::Unchecked, "not checked")] {
        if count(verdict) > 0 {
            out.push_str(&format!(", {} {words}", count(verdict)));
        }
    }
    out.push('\n');
    out
}

fn show_fault(item: &Item, Fault { rejected, place, is_strict }: &Fault, renderer: &Renderer) -> String {
    let title = match is_strict {
        true => format!("{}: {}", item.title(), rejected.error.detail),
        false => format!("{}: {}", item.title(), rejected.error),
    };
    let mut report =
        Level::ERROR.primary_title(title.as_str()).elements(std::iter::empty::<annotate_snippets::Message<'_>>());
    let label = rejected.rule.as_deref().map(|rule| format!("rule: {}", one_line(rule)));
    let excerpt = place.and_then(|place| Some((place, span(&item.source, place)?)));
    match excerpt {
        Some((place, (line, span))) => {
            let annotation = AnnotationKind::Primary.span(span).label(label.unwrap_or_default());
            let snippet = Snippet::source(line).line_start(place.line).path(item.file.as_str());
            report = report.element(snippet.annotation(annotation));
        }
        None => {
            let file = format!("in {}", item.file);
            report = report.element(Level::NOTE.message(file));
            report = report.elements(label.map(|label| Level::NOTE.message(label)));
        }
    }
    let parts = rejected.parts.iter().skip(1).take(PARTS_MAX);
    for part in parts {
        report = report.element(Level::NOTE.no_name().message(format!("{} is {}", one_line(&part.text), part.value)));
    }
    if let Some(template) = &item.template {
        report = report.element(Level::NOTE.no_name().message(format!("from {template}")));
    }
    renderer.render(&[report])
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The line of a place, and what of it is meant.
fn span(source: &str, place: Place) -> Option<(&str, Range<usize>)> {
    let line = source.lines().nth(place.line.checked_sub(1)?)?;
    let (start, _) = line.char_indices().nth(place.column.checked_sub(1)?)?;
    let rest = &line[start..];
    let length = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].find(quote).map_or(rest.len(), |end| end + 2),
        _ => {
            let within_flow = line[..start].contains(['{', '[']);
            let is_end = |(at, character): &(usize, char)| match character {
                ':' => rest[at + 1..].is_empty() || rest[at + 1..].starts_with(' '),
                '#' => rest[..*at].ends_with(' '),
                ',' | '}' | ']' => within_flow,
                _ => false,
            };
            let end = rest.char_indices().find(is_end).map_or(rest.len(), |(at, _)| at);
            rest[..end].trim_end().len()
        }
    };
    Some((line, start..start + length.max(1).min(rest.len())))
}
