//! CertificateSigningRequest, certificates.k8s.io/v1: a request to a signer for a certificate.
//!
//! The requester is recorded in the spec, which never changes afterwards. Approval and the certificate are written
//! through subresources.
//!
//! Source: `pkg/apis/certificates/validation` and `pkg/registry/certificates/certificates`, release 1.37.

use std::collections::{BTreeMap, BTreeSet};

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::certificates::{self, Request, blocks};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Action, Kind, Part, metadata, prepare, signers};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::object;
use crate::value::{Value, base64, go_quote};

const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const EXPIRATION_SECONDS_MIN: i64 = 600;
/// The subresource that approves or denies a request.
const APPROVAL: &str = "approval";
const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
const FAILED: &str = "Failed";
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// A valid request with the common name `a`.
const EXAMPLE: &str = "metadata: {name: example}\nspec: {signerName: example.com/signer, usages: [client auth], request: \
                       LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHTE1EOENBUUF3RERFS01BZ0dBMVVFQXd3QllUQXFNQVVH\
                       QXl0bGNBTWhBUGxVY2RpOVBIWGdVN2N4cWVkeAowRmQvcVFET2hBRGZCelRUZW1KZ204dHVvQUF3QlFZREsyVndBMEVBQWR3\
                       TDZQeU9yY0k5ZFpuMERndnkyTHVUCmh6Z3Z0dW44RlVxMENCTzdkWGV0bTUwK2QvR1ozU0NUd0RYMGs0OW9vWGlPRTU3YnlV\
                       eWk4RFp4VTM1VkRRPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==}";

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "certificatesigningrequests",
    singular: "certificatesigningrequest",
    short_names: &["csr"],
    scope: Scope::Cluster,
    status: true,
    parts: &[Part::new(APPROVAL, &["get", "patch", "update"], None, Action::Write)],
    selectable_fields: &[".spec.signerName"],
    example: EXAMPLE,
    ..Kind::new("certificates.k8s.io", "v1", "CertificateSigningRequest", &CertificateSigningRequest)
}];

struct CertificateSigningRequest;

impl Strategy for CertificateSigningRequest {
    fn prepare_create_by(&self, _: &ServedVersion, object: &mut Value, user: &dyn Fn() -> Value) {
        let who = user();
        let spec = object.make_object().entry("spec").make_object();
        for name in ["username", "uid", "groups", "extra"] {
            match who.get(name) {
                Some(value) => _ = spec.insert(name, value.clone()),
                None => _ = spec.remove(name),
            }
        }
        prepare::reset(object, "status", object! {});
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        validate(object, &CertificateValidationOptions::default())
    }

    fn prepare_update_at(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value, now: &str) {
        prepare::keep(new, old, &["spec"]);
        match subresource {
            Subresource::Status => {
                keep_conditions(new, old, APPROVED);
                keep_conditions(new, old, DENIED);
                set_times(new, old, now);
            }
            Subresource::Part(APPROVAL) => {
                set_times(new, old, now);
                let conditions = new.at(&["status", "conditions"]).cloned();
                prepare::keep(new, old, &["status"]);
                let status = new.make_object().entry("status").make_object();
                match conditions {
                    Some(conditions) => _ = status.insert("conditions", conditions),
                    None => _ = status.remove("conditions"),
                }
            }
            _ => prepare::keep(new, old, &["status"]),
        }
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(new, &CertificateValidationOptions::by(new, old));
        errors.extend(validate_conditions_kept(new, old, subresource == Subresource::Part(APPROVAL)));
        errors.extend(validate_certificate_kept(new, old, subresource == Subresource::Status));
        errors.extend(metadata::validate_update(new, old));
        errors
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        match subresource {
            Subresource::Status => &[&["spec"], &["status", "conditions"]],
            Subresource::Part(APPROVAL) => &[&["spec"], &["status", "certificate"]],
            _ => &[&["spec"], &["status"]],
        }
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let columns = ["Age", "SignerName", "Requestor", "RequestedDuration", "Condition"];
        let name = Column { format: "name".to_owned(), ..Column::string("Name", "") };
        let columns = std::iter::once(name).chain(columns.map(|name| Column::string(name, "")));
        Some(Table { columns: columns.collect(), cells })
    }
}

fn cells(object: &Value) -> Vec<Cell> {
    let seconds = object.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64);
    let mut cells = Cell::named(object, Vec::new());
    cells.extend([
        Cell::text(Some(object.str_at(&["spec", "signerName"])).filter(|name| !name.is_empty()).unwrap_or("<none>")),
        Cell::text(object.str_at(&["spec", "username"])),
        seconds.map_or_else(|| Cell::text("<none>"), Cell::Lasting),
        Cell::text(&state(object)),
    ]);
    cells
}

fn state(object: &Value) -> String {
    let has = |type_: &str| conditions(object).iter().any(|condition| condition.str_at(&["type"]) == type_);
    let mut state = if has(DENIED) {
        DENIED.to_owned()
    } else if has(APPROVED) {
        APPROVED.to_owned()
    } else {
        "Pending".to_owned()
    };
    if has(FAILED) {
        state.push_str(",Failed");
    }
    if !object.str_at(&["status", "certificate"]).is_empty() {
        state.push_str(",Issued");
    }
    state
}

fn conditions(object: &Value) -> &[Value] {
    object.items_at(&["status", "conditions"])
}

/// The object's conditions of this type.
fn conditions_of<'v>(object: &'v Value, type_: &str) -> Vec<&'v Value> {
    conditions(object).iter().filter(|condition| condition.str_at(&["type"]) == type_).collect()
}

/// Restores the conditions of this type in `new`, if there are as many as in `old`.
fn keep_conditions(new: &mut Value, old: &Value, type_: &str) {
    let before = conditions_of(old, type_);
    if before.len() != conditions_of(new, type_).len() {
        return;
    }
    let Some(Value::Array(conditions)) = new.at_mut(&["status", "conditions"]) else { return };
    let same = conditions.iter_mut().filter(|condition| condition.str_at(&["type"]) == type_);
    for (condition, before) in same.zip(before) {
        *condition = before.clone();
    }
}

/// Sets missing times of conditions; a condition whose status has not changed keeps its transition time.
fn set_times(new: &mut Value, old: &Value, now: &str) {
    let key = |condition: &Value| (condition.str_at(&["type"]).to_owned(), condition.str_at(&["status"]).to_owned());
    let mut changes = BTreeMap::new();
    for before in self::conditions(old) {
        let time = before.str_at(&["lastTransitionTime"]);
        if !time.is_empty() {
            changes.entry(key(before)).or_insert(time);
        }
    }
    let Some(Value::Array(conditions)) = new.at_mut(&["status", "conditions"]) else { return };
    for condition in conditions {
        let changed = changes.get(&key(condition)).copied();
        for (name, time) in [("lastUpdateTime", now), ("lastTransitionTime", changed.unwrap_or(now))] {
            if condition.str_at(&[name]).is_empty() {
                condition.make_object().insert(name, Value::from(time));
            }
        }
    }
}

/// The faults that a stored object may keep, although a new one may not have them.
#[derive(Default)]
struct CertificateValidationOptions {
    both_decisions: bool,
    legacy_signer: bool,
    repeated_conditions: bool,
    empty_condition: bool,
    any_certificate: bool,
    repeated_usages: bool,
    unknown_usages: bool,
}

impl CertificateValidationOptions {
    fn by(new: &Value, old: &Value) -> Self {
        let types: Vec<&str> = conditions(old).iter().map(|condition| condition.str_at(&["type"])).collect();
        let usages: Vec<&str> =
            old.items_at(&["spec", "usages"]).iter().map(|usage| usage.as_str().unwrap_or_default()).collect();
        let certificate = |object: &Value| object.str_at(&["status", "certificate"]).to_owned();
        CertificateValidationOptions {
            both_decisions: types.contains(&APPROVED) && types.contains(&DENIED),
            legacy_signer: old.str_at(&["spec", "signerName"]) == LEGACY_SIGNER,
            repeated_conditions: has_repeated(&types),
            empty_condition: types.contains(&""),
            any_certificate: certificate(new) == certificate(old) || certificate_fault(&certificate(old)).is_some(),
            repeated_usages: has_repeated(&usages),
            unknown_usages: usages.iter().any(|usage| !USAGES.contains(usage)),
        }
    }
}

fn has_repeated(texts: &[&str]) -> bool {
    let mut seen = BTreeSet::new();
    texts.iter().any(|text| !seen.insert(*text))
}

fn validate(object: &Value, allowed: &CertificateValidationOptions) -> ErrorList {
    let mut errors = metadata::validate(object, false, |_, _| Vec::new());
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let request = spec.field("request");
    let pem = base64::decode(request.text()).unwrap_or_default();
    let shown = request.value().cloned().unwrap_or_default();
    errors.extend(Request::verify(&pem).err().map(|why| Error::invalid(request.path(), shown, why.to_string())));
    errors.extend(validate_usages(&spec.field("usages"), allowed));
    let signer = spec.field("signerName");
    if !allowed.legacy_signer && signer.text() == LEGACY_SIGNER {
        errors.push(signer.invalid("the legacy signerName is not allowed via this API version"));
    } else {
        errors.extend(signers::validate_name(&signer));
    }
    let seconds = spec.field("expirationSeconds");
    if seconds.is_set() && seconds.int() < EXPIRATION_SECONDS_MIN {
        errors.push(seconds.invalid("may not specify a duration less than 600 seconds (10 minutes)"));
    }
    let status = root.field("status");
    errors.extend(validate_conditions(&status.field("conditions"), allowed));
    let certificate = status.field("certificate");
    let fault = certificate_fault(certificate.text()).filter(|_| !allowed.any_certificate);
    errors.extend(fault.map(|fault| Error::invalid(certificate.path(), "<certificate data>", fault)));
    errors
}

fn validate_usages(usages: &FieldRef<'_>, allowed: &CertificateValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    if usages.is_empty() {
        errors.push(usages.required(""));
    }
    for usage in usages.items().filter(|usage| !allowed.unknown_usages && !USAGES.contains(&usage.text())) {
        errors.push(usage.not_supported(&USAGES));
    }
    let mut seen = BTreeSet::new();
    for usage in usages.items().filter(|_| !allowed.repeated_usages) {
        if !seen.insert(usage.text().to_owned()) {
            errors.push(usage.duplicate_as_json());
        }
    }
    errors
}

fn validate_conditions(conditions: &FieldRef<'_>, allowed: &CertificateValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for condition in conditions.items() {
        let (type_, status) = (condition.field("type"), condition.field("status"));
        if !allowed.empty_condition && type_.text().is_empty() {
            errors.push(type_.required(""));
        }
        let is_decision = [APPROVED, DENIED, FAILED].contains(&type_.text());
        let statuses: &[&str] = if is_decision { &["True"] } else { &STATUSES };
        if status.text().is_empty() {
            errors.push(status.required(""));
        } else if !statuses.contains(&status.text()) {
            errors.push(status.not_supported(statuses));
        }
        let opposite = match type_.text() {
            APPROVED => DENIED,
            DENIED => APPROVED,
            _ => "",
        };
        if !allowed.both_decisions && !opposite.is_empty() && seen.contains(opposite) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(Error::invalid(conditions.path(), type_.text(), why));
        }
        if !seen.insert(type_.text().to_owned()) && !allowed.repeated_conditions {
            errors.push(type_.duplicate_as_json());
        }
    }
    errors
}

/// The fault of the certificate, in base64, that a signer has issued.
fn certificate_fault(certificate: &str) -> Option<String> {
    if certificate.is_empty() {
        return None;
    }
    let blocks = blocks(&base64::decode(certificate).unwrap_or_default());
    if blocks.is_empty() {
        return Some("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    blocks.iter().find_map(|block| {
        if block.label != "CERTIFICATE" {
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {}", go_quote(&block.label)));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".to_owned());
        }
        block_fault(&block.bytes)
    })
}

/// The fault of a block of certificates, one after the other.
fn block_fault(der: &[u8]) -> Option<String> {
    if der.is_empty() {
        return Some("found CERTIFICATE PEM block containing 0 certificates".to_owned());
    }
    let mut rest = der;
    while !rest.is_empty() {
        rest = match certificates::read_certificate(rest) {
            Ok((_, after)) => after,
            Err(error) => return Some(error.to_string()),
        };
    }
    None
}

/// Checks that decisions are not revoked, and are only made through `/approval`.
fn validate_conditions_kept(new: &Value, old: &Value, may_decide: bool) -> ErrorList {
    let root = FieldRef::root(new);
    let status = root.field("status");
    let at = status.field("conditions");
    let count = |object: &Value, type_: &str| conditions_of(object, type_).len();
    let mut errors = ErrorList::new();
    for type_ in [APPROVED, DENIED, FAILED] {
        if count(new, type_) < count(old, type_) {
            errors.push(at.forbidden(format!("updates may not remove a condition of type {}", go_quote(type_))));
        }
    }
    for type_ in [APPROVED, DENIED].into_iter().filter(|_| !may_decide) {
        if count(new, type_) > count(old, type_) {
            errors.push(at.forbidden(format!("updates may not add a condition of type {}", go_quote(type_))));
        }
    }
    errors
}

/// Checks that a certificate is only issued once, and only through `/status`.
fn validate_certificate_kept(new: &Value, old: &Value, may_issue: bool) -> Option<Error> {
    let root = FieldRef::root(new);
    let status = root.field("status");
    let certificate = status.field("certificate");
    let before = old.str_at(&["status", "certificate"]);
    if certificate.text() == before {
        return None;
    }
    if !may_issue {
        return Some(certificate.forbidden("updates may not set certificate content"));
    }
    (!before.is_empty()).then(|| certificate.forbidden("updates may not modify existing certificate content"))
}
