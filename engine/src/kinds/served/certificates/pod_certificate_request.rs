//! PodCertificateRequest, certificates.k8s.io/v1 and v1beta1: a kubelet's request to a signer for a pod's certificate.
//!
//! The spec never changes. The signer writes the status once. DIFFERS: this does not check that `notBefore` is within
//! five minutes of the server's clock.
//!
//! Source: `pkg/apis/certificates/validation` and `pkg/registry/certificates/podcertificaterequest` of Kubernetes 1.36, with
//! the types of 1.37.

use crate::crd::{Column, ServedVersion};
use crate::kinds::certificates::pod_request::{self, CertificateChain, KeyFault, Validity};
use crate::kinds::network::names::check_domain_prefixed;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::workloads::selector;
use crate::kinds::{Kind, checks, conditions, defaults, metadata, prepare, show_internal, signers};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::{names, time};
use crate::object;
use crate::value::{Value, base64};

const DAY_SECONDS: i64 = 24 * 60 * 60;
const EXPIRATION_SECONDS_MIN: i64 = 60 * 60;
const EXPIRATION_SECONDS_MAX: i64 = 91 * DAY_SECONDS;
const REFRESH_SECONDS_MIN: i64 = 10 * 60;
const UID_BYTES_MAX: i64 = 128;
const KEY_BYTES_MAX: usize = 10 << 10;
const CHAIN_BYTES_MAX: usize = 100 << 10;
const ISSUED: &str = "Issued";
/// The outcomes of a request.
const OUTCOMES: [&str; 3] = [ISSUED, "Denied", "Failed"];

pub static KINDS: [&Kind; 2] = [&V1, &V1BETA1];

static V1: Kind = form("v1", true);
static V1BETA1: Kind = form("v1beta1", false);

const fn form(version: &'static str, is_default: bool) -> Kind {
    Kind {
        plural: "podcertificaterequests",
        singular: "podcertificaterequest",
        status: true,
        selectable_fields: &[".spec.signerName", ".spec.podName", ".spec.nodeName"],
        example: EXAMPLE,
        forms: &KINDS,
        is_default,
        gate: Some(Gate::PodCertificateRequest),
        ..Kind::new("certificates.k8s.io", version, "PodCertificateRequest", &PodCertificateRequest)
    }
}

/// A valid request: its key signs it.
const EXAMPLE: &str = "\
metadata: {name: example}
spec:
  signerName: example.com/signer
  podName: web
  podUID: 11111111-1111-1111-1111-111111111111
  serviceAccountName: default
  serviceAccountUID: 22222222-2222-2222-2222-222222222222
  nodeName: worker
  nodeUID: 33333333-3333-3333-3333-333333333333
  stubPKCS10Request: MIGLMD8CAQAwDDEKMAgGA1UEAwwBYTAqMAUGAytlcAMhAPlUcdi9PHXgU7cxqedx0Fd/qQDOhADfBzTTemJgm8tuoAAwBQYDK2VwA0EAAdwL6PyOrcI9dZn0Dgvy2LuThzgvtun8FUq0CBO7dXetm50+d/GZ3SCTwDX0k49ooXiOE57byUyi8DZxU35VDQ==
";

struct PodCertificateRequest;

impl Strategy for PodCertificateRequest {
    fn set_typed_defaults(&self, object: &mut Value) {
        if let Some(spec) = defaults::field(object, "spec") {
            defaults::set_pointer(spec, "maxExpirationSeconds", DAY_SECONDS);
        }
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! {});
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        errors.extend(validate_spec(&FieldRef::root(object).field("spec")));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::for_update(subresource, new, old);
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        if subresource == Subresource::Status {
            return if errors.is_empty() { validate_status(new, old) } else { errors };
        }
        if !prepare::is_same_part(new, old, "spec") {
            let shown =
                show_internal("certificates.v1.PodCertificateRequestSpec", new.get("spec").unwrap_or(&Value::Null));
            let error = Error::invalid(&Path::new("spec"), Value::Null, "field is immutable");
            errors.push(error.shown_as(shown));
        }
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn knows_namespace_label(&self, _: bool) -> bool {
        false
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        if subresource == Subresource::Status { &[&["spec"]] } else { &[] }
    }

    fn table(&self) -> Option<Table> {
        let name = Column { format: "name".to_owned(), ..Column::string("Name", "") };
        let columns = ["PodName", "ServiceAccountName", "NodeName", "SignerName"].map(|name| Column::string(name, ""));
        let state = Column::string("State", "Is the request Pending, Issued, Denied, or Failed?");
        let annotations = Column::string("UnverifiedUserAnnotations", "");
        Some(Table { columns: [vec![name], columns.into(), vec![state, annotations]].concat(), cells })
    }
}

fn cells(object: &Value) -> Vec<Cell> {
    let spec = |name: &str| Cell::text(object.str_at(&["spec", name]));
    let annotations = selector::set_cell(object.at(&["spec", "unverifiedUserAnnotations"]));
    let mut types = object.items_at(&["status", "conditions"]).iter().map(|condition| condition.str_at(&["type"]));
    let state = types.rfind(|type_| OUTCOMES.contains(type_)).unwrap_or("Pending");
    vec![
        Cell::text(object.str_at(&["metadata", "name"])),
        spec("podName"),
        spec("serviceAccountName"),
        spec("nodeName"),
        spec("signerName"),
        Cell::text(state),
        Cell::text(&annotations),
    ]
}

fn validate_spec(spec: &FieldRef<'_>) -> ErrorList {
    let signer = spec.field("signerName");
    let mut errors = signers::validate_name(&signer);
    let annotations = spec.field("unverifiedUserAnnotations");
    for (key, _) in annotations.entries() {
        errors.extend(check_domain_prefixed(annotations.path(), &key.to_lowercase()));
    }
    for (name, uid) in [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")] {
        let (name, uid) = (spec.field(name), spec.field(uid));
        errors.extend(checks::named(&name, names::is_dns1123_subdomain));
        if uid.text().is_empty() {
            errors.push(Error::invalid(uid.path(), "", "must not be empty"));
        }
        if uid.text().len() as i64 > UID_BYTES_MAX {
            errors.push(uid.too_long(UID_BYTES_MAX));
        }
    }
    let seconds = spec.field("maxExpirationSeconds");
    if !seconds.is_set() {
        errors.push(seconds.required("must be set"));
        return errors;
    }
    let max = if signers::is_of_kubernetes(signer.text()) { DAY_SECONDS } else { EXPIRATION_SECONDS_MAX };
    if !(EXPIRATION_SECONDS_MIN..=max).contains(&seconds.int()) {
        errors.push(seconds.invalid(format!("must be in the range [{EXPIRATION_SECONDS_MIN}, {max}]")));
    }
    errors.extend(validate_key(spec));
    errors
}

/// Checks that either a stub of a request is set, or a key with a proof.
fn validate_key(spec: &FieldRef<'_>) -> Option<Error> {
    let (stub, key, proof) =
        (spec.field("stubPKCS10Request"), spec.field("pkixPublicKey"), spec.field("proofOfPossession"));
    match (stub.text(), key.text(), proof.text()) {
        (text, "", "") if !text.is_empty() => validate_stub(&stub),
        ("", text, proof) if !text.is_empty() && !proof.is_empty() => validate_public_key(spec),
        _ => {
            let why = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
            Some(Error::invalid_omitted(spec.path(), why))
        }
    }
}

fn validate_stub(stub: &FieldRef<'_>) -> Option<Error> {
    let der = bytes(stub);
    if der.len() > KEY_BYTES_MAX {
        return Some(stub.too_long(KEY_BYTES_MAX as i64));
    }
    let KeyFault { shown, why } = pod_request::stub_fault(&der)?;
    Some(match shown {
        Some(shown) => Error::invalid(stub.path(), shown, why),
        None => Error::invalid_omitted(stub.path(), why),
    })
}

fn validate_public_key(spec: &FieldRef<'_>) -> Option<Error> {
    let (key, proof) = (spec.field("pkixPublicKey"), spec.field("proofOfPossession"));
    let (der, signed) = (bytes(&key), bytes(&proof));
    for (field, bytes) in [(&key, &der), (&proof, &signed)] {
        if bytes.len() > KEY_BYTES_MAX {
            return Some(field.too_long(KEY_BYTES_MAX as i64));
        }
    }
    if let Some(KeyFault { shown, why }) = pod_request::public_key_fault(&der) {
        return Some(Error::invalid(key.path(), shown.unwrap_or_else(|| key.text().to_owned()), why));
    }
    let is_proven = pod_request::is_proven(&der, spec.field("podUID").text(), &signed);
    (!is_proven).then(|| Error::invalid_omitted(proof.path(), "could not verify proof-of-possession signature"))
}

fn bytes(field: &FieldRef<'_>) -> Vec<u8> {
    base64::decode(field.text()).unwrap_or_default()
}

/// The outcome of a request: the type of a condition that is true.
fn outcome(object: &Value) -> Option<&str> {
    let conditions = object.items_at(&["status", "conditions"]).iter();
    let mut held = conditions.filter(|condition| condition.str_at(&["status"]) == "True");
    held.find_map(|condition| OUTCOMES.iter().copied().find(|outcome| *outcome == condition.str_at(&["type"])))
}

fn validate_status(new: &Value, old: &Value) -> ErrorList {
    let root = FieldRef::root(new);
    let status = root.field("status");
    let list = status.field("conditions");
    let mut errors = validate_outcomes(&list);
    errors.extend(conditions::validate(&list));
    if !errors.is_empty() {
        return errors;
    }
    let is_same = prepare::is_same_part(new, old, "status");
    let unless = |holds: bool, why: &str| (!holds).then(|| Error::invalid_omitted(status.path(), why));
    let fault = match (outcome(old), outcome(new)) {
        (Some(_), _) => unless(is_same, "immutable after PodCertificateRequest is issued, denied, or failed"),
        (None, Some(ISSUED)) => {
            errors.extend(validate_issued(&root));
            None
        }
        (None, Some(_)) => {
            let others = ["certificateChain", "notBefore", "beginRefreshAt", "notAfter"];
            let has_others = others.iter().any(|name| status.field(name).is_set());
            unless(
                !has_others,
                "non-condition status fields must be empty when denying or failing the PodCertificateRequest",
            )
        }
        (None, None) => {
            unless(is_same, "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"")
        }
    };
    errors.extend(fault);
    errors
}

/// Checks that there is at most one condition, an outcome that is true.
fn validate_outcomes(list: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, condition) in list.items().enumerate() {
        // The reference writes an index like a field.
        let index = format!("[{index}]");
        let at = list.path().child(&index);
        let (type_, held) = (condition.field("type"), condition.field("status"));
        if !OUTCOMES.contains(&type_.text()) {
            errors.push(Error::not_supported(&at.child("type"), type_.text(), &OUTCOMES));
            continue;
        }
        if index != "[0]" {
            let why = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            errors.push(Error::invalid(&at.child("type"), type_.text(), why));
        }
        if held.text() != "True" {
            errors.push(Error::not_supported(&at.child("status"), held.text(), &["True"]));
        }
    }
    errors
}

/// Checks that the certificate is for the requested key, and that the times in the status are consistent with it.
fn validate_issued(root: &FieldRef<'_>) -> ErrorList {
    let (spec, status) = (root.field("spec"), root.field("status"));
    let chain = status.field("certificateChain");
    if chain.text().len() > CHAIN_BYTES_MAX {
        return chain.too_long(CHAIN_BYTES_MAX as i64).into();
    }
    let issued = match CertificateChain::read(chain.text()) {
        Ok(issued) => issued,
        Err(why) => return chain.invalid(why.to_string()).into(),
    };
    let name_faults = issued.name_faults.iter();
    let mut errors: ErrorList =
        name_faults.map(|(name, fault)| Error::invalid(chain.path(), name.as_str(), *fault)).collect();
    if let Some(error) = validate_issued_key(&issued, &spec, &chain) {
        errors.push(error);
        return errors;
    }
    for (name, why) in [
        ("notBefore", "must be present and consistent with the issued certificate"),
        ("notAfter", "must be present and consistent with the issued certificate"),
        ("beginRefreshAt", "must be present and in the range [notbefore+10min, notafter-10min]"),
    ] {
        let time = status.field(name);
        if !time.is_set() {
            errors.push(time.required(why));
        }
    }
    if errors.is_empty() {
        errors.extend(validate_times(issued.validity, &spec, &status));
    }
    if errors.is_empty()
        && let Err(why) = issued.check_others()
    {
        errors.push(chain.invalid(why.to_string()));
    }
    errors
}

/// Checks that the first certificate is for the key of the request.
fn validate_issued_key(issued: &CertificateChain, spec: &FieldRef<'_>, chain: &FieldRef<'_>) -> Option<Error> {
    let (stub, key) = (spec.field("stubPKCS10Request"), spec.field("pkixPublicKey"));
    let (holder, is_for, why) = if stub.is_empty() {
        (&key, issued.is_for_key(&bytes(&key)), "must be a valid PKIX-serialized public key")
    } else {
        (&stub, issued.is_for_request(&bytes(&stub)), "must be a valid PKCS#10 CSR")
    };
    match is_for {
        Some(true) => None,
        Some(false) => Some(chain.invalid("leaf certificate was not issued to the requested public key")),
        None => Some(Error::invalid_omitted(holder.path(), why)),
    }
}

/// Checks the times of the status and of the first certificate, of which the first fault is told.
fn validate_times(
    Validity { not_before, not_after }: Validity,
    spec: &FieldRef<'_>,
    status: &FieldRef<'_>,
) -> Option<Error> {
    const NANOSECONDS: i64 = 1_000_000_000;
    let (from, until, refresh) = (status.field("notBefore"), status.field("notAfter"), status.field("beginRefreshAt"));
    let chain = status.field("certificateChain");
    if seconds(&from) != Some(not_before) {
        return Some(from.invalid("must be set to the NotBefore time encoded in the leaf certificate"));
    }
    if seconds(&until) != Some(not_after) {
        return Some(until.invalid("must be set to the NotAfter time encoded in the leaf certificate"));
    }
    let lifetime = not_after - not_before;
    let max = spec.field("maxExpirationSeconds").int();
    let shown = lifetime.saturating_mul(NANOSECONDS);
    if lifetime < EXPIRATION_SECONDS_MIN {
        return Some(Error::invalid(chain.path(), shown, "leaf certificate lifetime must be >= 1 hour"));
    }
    if lifetime > max {
        let why = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({max})");
        return Some(Error::invalid(chain.path(), shown, why));
    }
    let begin = seconds(&refresh).unwrap_or_default();
    if begin < not_before + REFRESH_SECONDS_MIN {
        return Some(refresh.invalid("must be at least 10 minutes after status.notBefore"));
    }
    (begin > not_after - REFRESH_SECONDS_MIN)
        .then(|| refresh.invalid("must be at least 10 minutes before status.notAfter"))
}

/// A time, in seconds since 1970.
fn seconds(field: &FieldRef<'_>) -> Option<i64> {
    time::parse(field.text()).ok().map(|moment| moment.unix_seconds)
}
