//! Named formats of texts: `format.dns1123Label().validate(…)`.

use super::arguments::{opaque, text, texts};
use super::network::downcast;
use crate::cel::eval::value::{KeyKind, Opaque};
use crate::cel::eval::{Function, Value};
use crate::cel::types::Type;
use crate::meta::format::Format;
use crate::meta::{names, url};

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "format-named" => |_, arguments| {
            let format = NamedFormat::of(text(arguments, 0)?);
            Ok(format.map_or(Value::OPTIONAL_NONE, |format| Value::optional_of(Value::opaque(format))))
        },
        "format-validate" => |_, arguments| {
            let faults = opaque::<NamedFormat>(arguments, 0)?.faults(text(arguments, 1)?);
            Ok(if faults.is_empty() { Value::OPTIONAL_NONE } else { Value::optional_of(texts(faults)) })
        },
        "format.dns1123Label" => |_, _| Ok(Value::opaque(NamedFormat::Dns1123Label { prefix: false })),
        "format.dns1123Subdomain" => |_, _| Ok(Value::opaque(NamedFormat::Dns1123Subdomain { prefix: false })),
        "format.dns1035Label" => |_, _| Ok(Value::opaque(NamedFormat::Dns1035Label { prefix: false })),
        "format.qualifiedName" => |_, _| Ok(Value::opaque(NamedFormat::QualifiedName)),
        "format.dns1123LabelPrefix" => |_, _| Ok(Value::opaque(NamedFormat::Dns1123Label { prefix: true })),
        "format.dns1123SubdomainPrefix" => |_, _| Ok(Value::opaque(NamedFormat::Dns1123Subdomain { prefix: true })),
        "format.dns1035LabelPrefix" => |_, _| Ok(Value::opaque(NamedFormat::Dns1035Label { prefix: true })),
        "format.labelValue" => |_, _| Ok(Value::opaque(NamedFormat::LabelValue)),
        "format.uri" => |_, _| Ok(Value::opaque(NamedFormat::Uri)),
        "format.uuid" => |_, _| Ok(Value::opaque(NamedFormat::Uuid)),
        "format.byte" => |_, _| Ok(Value::opaque(NamedFormat::Byte)),
        "format.date" => |_, _| Ok(Value::opaque(NamedFormat::Date)),
        "format.datetime" => |_, _| Ok(Value::opaque(NamedFormat::DateTime)),
        _ => return None,
    })
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

    /// What is wrong with `text`.
    fn faults(self, text: &str) -> Vec<String> {
        let check = |format: Format, fault: &str| if format.accepts(text) { None } else { Some(fault.to_owned()) };
        let fault = match self {
            NamedFormat::Dns1123Label { prefix } => return names::name_is_dns1123_label(text, prefix),
            NamedFormat::Dns1123Subdomain { prefix } => return names::name_is_dns1123_subdomain(text, prefix),
            NamedFormat::Dns1035Label { prefix } => return names::name_is_dns1035_label(text, prefix),
            NamedFormat::QualifiedName => return names::is_qualified_name(text),
            NamedFormat::LabelValue => return names::is_valid_label_value(text),
            NamedFormat::Uri => url::parse_request(text).err(),
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
        Type::object("kubernetes.NamedFormat")
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

    /// What a check is priced as, whatever it does.
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
