//! Annotations for a GitHub Actions workflow: one command per line, which GitHub shows beside the
//! changed text.
//!
//! Source: "Workflow commands for GitHub Actions".

use super::{Annotation, AnnotationLevel};

pub fn show(annotations: &[Annotation]) -> String {
    annotations.iter().map(command).collect()
}

fn command(annotation: &Annotation) -> String {
    let Annotation { file, place, level, id, message } = annotation;
    let level = match level {
        AnnotationLevel::Error => "error",
        AnnotationLevel::Warning => "warning",
        AnnotationLevel::Note => "notice",
    };
    let place = place.map_or(String::new(), |place| format!(",line={},col={}", place.line, place.column));
    format!("::{level} file={}{place},title={}::{}\n", property(file), property(id), data(message))
}

/// Escapes the characters that have a meaning in a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml::TextPosition;

    #[test]
    fn what_has_a_meaning_is_escaped() {
        let annotation = Annotation {
            file: "a,b:c.yaml".to_owned(),
            place: Some(TextPosition { line: 3, column: 7 }),
            level: AnnotationLevel::Note,
            id: "phase".to_owned(),
            message: "100%: one\ntwo".to_owned(),
        };
        let expected = "::notice file=a%2Cb%3Ac.yaml,line=3,col=7,title=phase::100%25: one%0Atwo\n";
        assert_eq!(show(&[annotation]), expected);
    }
}
