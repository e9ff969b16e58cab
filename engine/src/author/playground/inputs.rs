//! The texts of the page, parsed as far as they are valid.

use thiserror::Error;

use super::shown::{number, shortened};
use crate::author::policies::case::Setting;
use crate::author::policies::is_policy;
use crate::author::suite::{Case, Expected, WriteTarget};
use crate::meta::minor::{Minor, MinorError};
use crate::object;
use crate::value::Value;
use crate::value::yaml::{Broken, Located, TextPosition, decode_each_located};

/// One of the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    /// Definitions, policies, and what policies look up.
    Definition,
    /// The object that is written.
    Object,
    /// The object before the write.
    Old,
    /// The request: the user and the operation.
    Request,
}

impl Pane {
    const ALL: [Pane; 4] = [Pane::Definition, Pane::Object, Pane::Old, Pane::Request];

    /// The name of its field in the input.
    pub const fn name(self) -> &'static str {
        match self {
            Pane::Definition => "definition",
            Pane::Object => "object",
            Pane::Old => "old",
            Pane::Request => "request",
        }
    }

    /// The pane with that name.
    pub fn named(name: &str) -> Option<Pane> {
        Pane::ALL.into_iter().find(|pane| pane.name() == name)
    }
}

/// A diagnostic at a position of a text.
pub struct Marker {
    pane: Pane,
    place: Option<TextPosition>,
    severity: &'static str,
    message: String,
}

impl Marker {
    /// Makes a marker for something that prevents the object's admission.
    pub fn error(pane: Pane, place: Option<TextPosition>, message: impl Into<String>) -> Marker {
        Marker { pane, place, severity: "error", message: message.into() }
    }

    /// Makes a marker for something that does not prevent admission.
    pub fn warning(pane: Pane, place: Option<TextPosition>, message: impl Into<String>) -> Marker {
        Marker { severity: "warning", ..Marker::error(pane, place, message) }
    }

    /// The JSON for the page; a marker without a position is at the first line.
    pub fn show(&self) -> Value {
        let TextPosition { line, column } = self.place.unwrap_or(TextPosition { line: 1, column: 1 });
        object! {
            "pane" => self.pane.name(),
            "line" => number(line as u64),
            "column" => number(column as u64),
            "severity" => self.severity,
            "message" => shortened(&self.message),
        }
    }
}

/// A field of the input that is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InputError {
    /// The field is not a string.
    #[error("`{0}` is not a text")]
    NotText(&'static str),
    /// The field `minors` is not a list of versions.
    #[error(transparent)]
    Minors(#[from] MinorError),
}

/// The texts, with their documents.
pub struct Inputs {
    texts: [String; 4],
    documents: [Vec<Located>; 4],
    broken: Vec<(Pane, Broken)>,
    /// The index of each document of the definitions in its text, in which empty ones count.
    indices: Vec<usize>,
    /// The minor versions of Kubernetes to evaluate, in ascending order; at least one.
    minors: Vec<Minor>,
}

impl Inputs {
    /// Reads the fields `definition`, `object`, `old` and `request` of `sent`, and `minors`, a list as
    /// [`Minor::parse_list`] reads it. A missing field is empty.
    ///
    /// # Errors
    /// A field is not a string, or `minors` is not a list of versions.
    pub fn read(sent: &Value) -> Result<Inputs, InputError> {
        let mut inputs = Inputs {
            texts: Default::default(),
            documents: Default::default(),
            broken: Vec::new(),
            indices: Vec::new(),
            minors: minors(sent.get("minors"))?,
        };
        for (at, pane) in Pane::ALL.into_iter().enumerate() {
            match sent.get(pane.name()) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => inputs.texts[at] = text.to_string(),
                Some(_) => return Err(InputError::NotText(pane.name())),
            }
            // The parser may only notice after the end of the text that something is missing.
            let last = inputs.texts[at].trim_end().lines().count().max(1);
            for (index, read) in decode_each_located(inputs.texts[at].as_bytes()).into_iter().enumerate() {
                match read {
                    Ok(located) if located.value.is_null() => {}
                    Ok(located) => {
                        if pane == Pane::Definition {
                            inputs.indices.push(index);
                        }
                        inputs.documents[at].push(located);
                    }
                    Err(mut broken) => {
                        broken.place.line = broken.place.line.min(last);
                        inputs.broken.push((pane, broken));
                    }
                }
            }
        }
        Ok(inputs)
    }

    /// The minor versions of Kubernetes to evaluate, in ascending order; at least one.
    pub fn minors(&self) -> &[Minor] {
        &self.minors
    }

    /// The newest of them, whose results are shown in full.
    pub fn minor(&self) -> Minor {
        self.minors.last().copied().unwrap_or_default()
    }

    /// Markers for documents that cannot be parsed, and for duplicate keys.
    pub fn faults(&self) -> Vec<Marker> {
        let broken = self.broken.iter().map(|(pane, fault)| Marker::error(*pane, Some(fault.place), &*fault.problem));
        let repeated = Pane::ALL.into_iter().flat_map(|pane| {
            let keys = self.documents(pane).iter().flat_map(|document| &document.repeated);
            keys.map(move |key| Marker::warning(pane, Some(key.place), key.to_string()))
        });
        broken.chain(repeated).collect()
    }

    /// Whether a part of this text cannot be parsed.
    pub fn is_broken(&self, pane: Pane) -> bool {
        self.broken.iter().any(|(broken, _)| *broken == pane)
    }

    /// A text as it was typed.
    pub fn text(&self, pane: Pane) -> &str {
        &self.texts[pane as usize]
    }

    /// The documents of a text that can be parsed.
    pub fn documents(&self, pane: Pane) -> &[Located] {
        &self.documents[pane as usize]
    }

    /// The first document of a text.
    pub fn first(&self, pane: Pane) -> Option<&Located> {
        self.documents(pane).first()
    }

    /// Definitions, policies, and what policies look up.
    pub fn manifests(&self) -> impl Iterator<Item = &Value> + Clone {
        self.documents(Pane::Definition).iter().map(|document| &document.value)
    }

    /// The definitions among them.
    pub fn definitions(&self) -> impl Iterator<Item = &Located> {
        self.documents(Pane::Definition).iter().filter(|document| is_definition(&document.value))
    }

    /// The index of a document of the definitions in its text.
    pub fn index_in_text(&self, at: usize) -> usize {
        self.indices.get(at).copied().unwrap_or_default()
    }

    /// Whether there are policies among them.
    pub fn has_policies(&self) -> bool {
        self.manifests().any(is_policy)
    }

    /// The write to evaluate; `None` if there is no object.
    pub fn case(&self) -> Option<Case> {
        let object = self.first(Pane::Object)?.value.clone();
        let request = self.first(Pane::Request).map_or(Value::Null, |document| document.value.clone());
        Some(Case {
            name: String::new(),
            path: String::new(),
            object,
            old: self.first(Pane::Old).map(|document| document.value.clone()),
            part: WriteTarget::of(&request),
            setting: Setting::decode(&request, None),
            expected: Expected::Stated(Value::Null),
        })
    }
}

/// The minor versions in the input; by default the newest.
fn minors(sent: Option<&Value>) -> Result<Vec<Minor>, InputError> {
    match sent {
        None | Some(Value::Null) => Ok(vec![Minor::NEWEST]),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(vec![Minor::NEWEST]),
        Some(Value::String(text)) => Ok(Minor::parse_list(text)?),
        Some(_) => Err(InputError::NotText("minors")),
    }
}

/// Whether a manifest is a definition, of whatever version.
pub fn is_definition(manifest: &Value) -> bool {
    manifest.str_at(&["kind"]) == "CustomResourceDefinition"
        && manifest.str_at(&["apiVersion"]).starts_with("apiextensions.k8s.io/")
}
