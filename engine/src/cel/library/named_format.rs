//! Named string formats: `format.dns1123Label().validate(…)`.

use super::arguments::{opaque, text, texts};
use super::network::downcast;
use super::since;
use crate::cel::cost::{Cost, Estimate, actual, model};
use crate::cel::eval::Value;
use crate::cel::eval::value::{KeyKind, Opaque};
use crate::cel::function::{Function, Overload};
use crate::cel::types::Type;
use crate::meta::format::Format;
use crate::meta::{names, url};

/// The length that the estimate assumes for a format's regular expression.
const REGEX_SIZE_MAX: f64 = 128.0;

/// The text is matched; the estimate assumes the longest regular expression of all formats.
const VALIDATE: Cost = Cost::of_name(
    |sizes| Estimate::of(sizes.size(1).scale(model::TRAVERSAL).scale(REGEX_SIZE_MAX * model::REGEX)),
    |called| match called.first() {
        Value::Opaque(format) => match format.format_regex_size() {
            Some(regex_size) => actual::match_regex(called.size(1), regex_size),
            None => model::CALL,
        },
        _ => model::CALL,
    },
);

/// Declares `format.NAME()`.
macro_rules! format {
    ($name:literal, $format:expr) => {
        Function::new($name, [Overload::global($name, [], format_type(), Cost::One, |_, _| Ok(Value::opaque($format)))])
    };
}

pub(super) fn functions() -> Vec<Function> {
    let functions = vec![
        format!("format.byte", NamedFormat::Byte),
        format!("format.date", NamedFormat::Date),
        format!("format.datetime", NamedFormat::DateTime),
        format!("format.dns1035Label", NamedFormat::Dns1035Label { prefix: false }),
        format!("format.dns1035LabelPrefix", NamedFormat::Dns1035Label { prefix: true }),
        format!("format.dns1123Label", NamedFormat::Dns1123Label { prefix: false }),
        format!("format.dns1123LabelPrefix", NamedFormat::Dns1123Label { prefix: true }),
        format!("format.dns1123Subdomain", NamedFormat::Dns1123Subdomain { prefix: false }),
        format!("format.dns1123SubdomainPrefix", NamedFormat::Dns1123Subdomain { prefix: true }),
        format!("format.labelValue", NamedFormat::LabelValue),
        format!("format.qualifiedName", NamedFormat::QualifiedName),
        format!("format.uri", NamedFormat::Uri),
        format!("format.uuid", NamedFormat::Uuid),
        Function::new(
            "format.named",
            [Overload::global(
                "format-named",
                [Type::String],
                Type::optional(format_type()),
                Cost::One,
                |_, arguments| {
                    let format = NamedFormat::of(text(arguments, 0)?);
                    Ok(format.map_or(Value::OPTIONAL_NONE, |format| Value::optional_of(Value::opaque(format))))
                },
            )],
        ),
        Function::new(
            "validate",
            [Overload::member(
                "format-validate",
                [format_type(), Type::String],
                Type::optional(Type::list(Type::String)),
                VALIDATE,
                |_, arguments| {
                    let faults = opaque::<NamedFormat>(arguments, 0)?.faults(text(arguments, 1)?);
                    Ok(if faults.is_empty() { Value::OPTIONAL_NONE } else { Value::optional_of(texts(faults)) })
                },
            )
            .formerly(35, |_, arguments| {
                let format = opaque::<NamedFormat>(arguments, 0)?;
                let faults: Vec<String> =
                    format.faults(text(arguments, 1)?).iter().map(|fault| former(fault)).collect();
                Ok(if faults.is_empty() { Value::OPTIONAL_NONE } else { Value::optional_of(texts(faults)) })
            })],
        ),
    ];
    since(31, functions)
}

/// A fault in the wording of Kubernetes before 1.35.
fn former(fault: &str) -> String {
    fault.replace("a valid label key must", "a qualified name must").replace(" bytes", " characters")
}

fn format_type() -> Type {
    Type::object("kubernetes.NamedFormat")
}

/// `kubernetes.NamedFormat`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamedFormat {
    Dns1123Label { prefix: bool },
    Dns1123Subdomain { prefix: bool },
    Dns1035Label { prefix: bool },
    QualifiedName,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

impl NamedFormat {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "dns1123Label" => NamedFormat::Dns1123Label { prefix: false },
            "dns1123Subdomain" => NamedFormat::Dns1123Subdomain { prefix: false },
            "dns1035Label" => NamedFormat::Dns1035Label { prefix: false },
            "qualifiedName" => NamedFormat::QualifiedName,
            "dns1123LabelPrefix" => NamedFormat::Dns1123Label { prefix: true },
            "dns1123SubdomainPrefix" => NamedFormat::Dns1123Subdomain { prefix: true },
            "dns1035LabelPrefix" => NamedFormat::Dns1035Label { prefix: true },
            "labelValue" => NamedFormat::LabelValue,
            "uri" => NamedFormat::Uri,
            "uuid" => NamedFormat::Uuid,
            "byte" => NamedFormat::Byte,
            "date" => NamedFormat::Date,
            "datetime" => NamedFormat::DateTime,
            _ => return None,
        })
    }

    /// The faults of `text`; empty if it has the format.
    fn faults(self, text: &str) -> Vec<String> {
        let check = |format: Format, fault: &str| if format.accepts(text) { None } else { Some(fault.to_owned()) };
        let fault = match self {
            NamedFormat::Dns1123Label { prefix } => return names::name_is_dns1123_label(text, prefix),
            NamedFormat::Dns1123Subdomain { prefix } => return names::name_is_dns1123_subdomain(text, prefix),
            NamedFormat::Dns1035Label { prefix } => return names::name_is_dns1035_label(text, prefix),
            NamedFormat::QualifiedName => return names::is_qualified_name(text),
            NamedFormat::LabelValue => return names::is_valid_label_value(text),
            NamedFormat::Uri => url::parse_request(text).err().map(|error| error.to_string()),
            NamedFormat::Uuid => check(Format::Uuid, "does not match the UUID format"),
            NamedFormat::Byte => check(Format::Byte, "invalid base64"),
            NamedFormat::Date => check(Format::Date, "invalid date"),
            NamedFormat::DateTime => check(Format::DateTime, "invalid datetime"),
        };
        fault.into_iter().collect()
    }
}

impl Opaque for NamedFormat {
    fn ty(&self) -> Type {
        format_type()
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        downcast(other).map(|other| self == other)
    }

    fn go_type(&self) -> &'static str {
        "cel.Format"
    }

    fn as_key(&self) -> KeyKind {
        KeyKind::Unhashable
    }

    /// The length of the regular expression by which a check is priced, whatever the check does.
    fn format_regex_size(&self) -> Option<u64> {
        Some(match self {
            NamedFormat::Dns1123Label { .. } | NamedFormat::Dns1035Label { .. } => 30,
            NamedFormat::Dns1123Subdomain { .. } | NamedFormat::QualifiedName => 60,
            NamedFormat::LabelValue => 40,
            NamedFormat::Uri => 1103,
            NamedFormat::Uuid => 70,
            NamedFormat::Byte => 84,
            NamedFormat::Date | NamedFormat::DateTime => 71,
        })
    }
}
