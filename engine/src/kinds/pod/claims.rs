//! Validation of the claims of a pod, and of the containers' references to them.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::annotations::MIRROR;
use crate::kinds::{checks, show_internal};
use crate::meta::field::{Error, ErrorList, ErrorType, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

/// The names that containers may refer to.
pub fn names<'v>(claims: &FieldRef<'v>) -> BTreeSet<&'v str> {
    let claims = claims.value().and_then(Value::as_array).unwrap_or_default();
    claims.iter().map(|claim| claim.str_at(&["name"])).filter(|name| !name.is_empty()).collect()
}

/// The claims of a pod. `metadata` is that of a Pod.
pub fn validate(claims: &FieldRef<'_>, metadata: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_mirror = metadata.and_then(|metadata| metadata.at(&["annotations", MIRROR])).is_some();
    let mut seen = HashSet::new();
    for claim in claims.items() {
        if is_mirror {
            errors.push(Error::forbidden(&Path::new(""), "static pods do not support resource claims"));
            continue;
        }
        let name = claim.field("name");
        if !name.is_empty() && !seen.insert(claim.text_of("name")) {
            errors.push(name.duplicate());
        } else {
            errors.extend(checks::required_label(&name));
        }
        let references = ["resourceClaimName", "resourceClaimTemplateName"].map(|name| claim.field(name));
        let why = match references.iter().filter(|reference| reference.is_set()).count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
        };
        let shown = || claim.value().map(|claim| show_internal("core.v1.PodResourceClaim", claim)).unwrap_or_default();
        errors.extend(why.map(|why| claim.invalid(why).shown_as(shown())));
        for reference in references.iter().filter(|reference| reference.is_set()) {
            errors.extend(checks::named(reference, names::is_dns1123_subdomain));
        }
    }
    errors
}

/// The claims that a container refers to, each once as a whole or once by each of its requests.
pub fn validate_references(references: &FieldRef<'_>, known: &BTreeSet<&str>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut whole = HashSet::new();
    let mut requests: HashMap<&str, HashSet<&str>> = HashMap::new();
    for reference in references.items() {
        let (name, request) = (reference.text_of("name"), reference.field("request"));
        if name.is_empty() {
            errors.push(reference.required(""));
            continue;
        }
        if whole.contains(name) {
            errors.push(Error::duplicate(reference.path(), name));
        } else if request.is_empty() {
            let count = requests.get(name).map_or(0, HashSet::len);
            (0..count).for_each(|_| errors.push(Error::duplicate(reference.path(), name)));
            whole.insert(name);
        } else {
            errors.extend(checks::named(&request, names::is_dns1123_label));
            if !requests.entry(name).or_default().insert(reference.text_of("request")) {
                errors.push(Error::duplicate(reference.path(), format!("{name}/{}", request.text())));
            }
        }
        if !known.contains(name) {
            errors.push_with(ErrorType::NotFound, || unknown(&reference, name, known));
        }
    }
    errors
}

fn unknown(reference: &FieldRef<'_>, name: &str, known: &BTreeSet<&str>) -> Error {
    let names: Vec<&str> = known.iter().copied().collect();
    let which = if names.is_empty() { " which is empty".to_owned() } else { format!(": {}", names.join(", ")) };
    let detail = format!("must be one of the names in pod.spec.resourceClaims{which}");
    Error { detail, ..Error::not_found(reference.path(), name) }
}
