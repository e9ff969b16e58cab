//! Checks of objects: whether their kind and the known policies admit their creation.

use super::super::workspace::Workspace;
use super::{LocatedDocument, Manifest, Severity};
use crate::author::near::KnownNames;
use crate::author::policies::admit::{AdmissionSetup, Admitted, SentRequest};
use crate::author::{BuiltIn, CheckOptions, Checked, create};
use crate::meta::minor::Minor;
use crate::value::Value;
use crate::value::yaml::Located;

/// The maximum number of items of a List that are checked.
const ITEMS_MAX: usize = 10_000;

/// Adds the diagnostics of a document's objects.
pub fn check(workspace: &Workspace, document: &mut LocatedDocument<'_>, located: &Located) {
    for manifest in manifests(located) {
        match admit(workspace, manifest.value) {
            Some(admitted) => {
                document.checked(&manifest, &admitted.checked);
                let range = document.range(located.place(&manifest.path("kind")));
                for warning in admitted.warnings {
                    document.tell(range.clone(), Severity::Warning, "warning", warning);
                }
                if let Some(denial) = admitted.denial {
                    document.tell(range, Severity::Error, "policy", denial.message);
                }
            }
            // It has the kind that is assumed for objects without one.
            None if manifest.value.str_at(&["kind"]).is_empty() && !workspace.assumed.kind.is_empty() => {}
            None => {
                let range = document.range(located.place(&manifest.path("kind")));
                let (api_version, kind) = (manifest.value.str_at(&["apiVersion"]), manifest.value.str_at(&["kind"]));
                let why = KnownNames::of(&workspace.catalog).why_unchecked(api_version, kind);
                document.tell(range, Severity::Warning, "unknown-kind", why);
            }
        }
    }
}

fn manifests(located: &Located) -> Vec<Manifest<'_>> {
    let value = &located.value;
    let is_list = value.str_at(&["apiVersion"]) == "v1" && value.str_at(&["kind"]) == "List";
    if !is_list {
        return vec![Manifest { value, located, within: String::new() }];
    }
    let items = value.items_at(&["items"]).iter().take(ITEMS_MAX).enumerate();
    items.map(|(index, value)| Manifest { value, located, within: format!("items[{index}]") }).collect()
}

/// The result of creating an object, by its kind and the policies; `None` if the kind is unknown.
pub fn admit(workspace: &Workspace, object: &Value) -> Option<Admitted> {
    let by_kind = |object: &Value| {
        let custom = workspace
            .catalog
            .of(object)
            .map(|kind| create(kind, object, CheckOptions { skips_holding: true, ..CheckOptions::default() }));
        custom.or_else(|| check_built_in(workspace.minor(), object))
    };
    if workspace.policies.is_empty() {
        return Some(Admitted { checked: by_kind(object)?, ..Admitted::default() });
    }
    let request_user = workspace.administrator();
    let admission = AdmissionSetup {
        policies: &workspace.policies,
        catalog: &workspace.catalog,
        request_user: &request_user,
        beside: &[],
        namespace: "default",
        home: "",
    };
    let sent = SentRequest { object, old: None, subresource: "", operation: None };
    let mut known = |object: &Value| by_kind(object).unwrap_or_default();
    let admitted = admission.admit(sent, &mut known, &mut |_| {});
    admitted.or_else(|| Some(Admitted { checked: by_kind(object)?, ..Admitted::default() }))
}

/// The result of creating an object of a built-in kind; `None` if it is not of one.
pub fn check_built_in(minor: Minor, object: &Value) -> Option<Checked> {
    let kind = BuiltIn::of_in(minor, object.str_at(&["apiVersion"]), object.str_at(&["kind"]))?;
    Some(kind.write(object, None).unwrap_or_else(|error| Checked::refuse(object.clone(), &error)))
}
