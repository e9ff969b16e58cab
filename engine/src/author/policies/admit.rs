//! A request on its way past policies and the checks of its kind, in the order of a server.

use std::collections::BTreeMap;

use super::lookup::DEFAULT_NAMESPACE;
use super::{Policies, PolicyRequest, PolicyTarget, RequestUser, Tell};
use crate::author::{Catalog, Checked};
use crate::crd::nested::{set_nested, split_path};
use crate::meta::Status;
use crate::policy::Operation;
use crate::value::Value;
use crate::write::metadata::metadata_mut;
use crate::write::scale;

const SCALE: &str = "scale";

/// What requests meet.
pub struct AdmissionSetup<'a> {
    /// The policies, with what they look up.
    pub policies: &'a Policies,
    /// The kinds of definitions.
    pub catalog: &'a Catalog,
    /// The user who asks.
    pub request_user: &'a RequestUser,
    /// Parameters and namespaces that go before those among the manifests.
    pub beside: &'a [Value],
    /// Where objects are that name no namespace; empty for `default`.
    pub namespace: &'a str,
    /// Where manifests are that name no namespace, parameters among them; empty for `default`.
    pub home: &'a str,
}

/// A request.
#[derive(Clone, Copy)]
pub struct SentRequest<'a> {
    /// As the client sends it.
    pub object: &'a Value,
    /// What was there before.
    pub old: Option<&'a Value>,
    /// `""`, `status` or `scale`; the objects are whole ones all the same.
    pub subresource: &'a str,
    /// `None` for what follows from the object: an update of what was there, a connection for its options, else a creation.
    pub operation: Option<Operation>,
}

/// What came of it.
#[derive(Default)]
pub struct Admitted {
    /// What the kind has against the object as mutating policies leave it.
    pub checked: Checked,
    /// The refusal of a policy.
    pub denial: Option<PolicyRefusal>,
    /// What policies warn of.
    pub warnings: Vec<String>,
    /// Annotations of the audit log.
    pub annotations: BTreeMap<String, String>,
    /// Whether mutating policies have changed the object.
    pub is_mutated: bool,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRefusal {
    /// What the user is told.
    pub message: String,
    /// The reason of the status.
    pub reason: String,
    /// The code of the answer.
    pub code: u16,
}

impl PolicyRefusal {
    fn of(status: Status) -> Self {
        PolicyRefusal { message: status.message, reason: status.reason, code: status.code }
    }
}

impl AdmissionSetup<'_> {
    /// What becomes of a request. `check` is what its kind has against an object, and is asked about the object as mutating
    /// policies leave it. `None` where the kind is not known.
    pub fn admit(
        &self,
        sent: SentRequest<'_>,
        check: &mut dyn FnMut(&Value) -> Checked,
        tell: Tell<'_>,
    ) -> Option<Admitted> {
        if sent.subresource == SCALE {
            return self.admit_scale(sent, check, tell);
        }
        let target = PolicyTarget::of(sent.object, sent.subresource, self.catalog)?;
        let operation = sent.operation.unwrap_or_else(|| target.operation(sent.old.is_some()));
        let namespace = self.namespace_of(&target, sent.object);
        let object = placed(&target, sent.object, &namespace);
        let old = match (operation, sent.old) {
            (Operation::Update, Some(old)) => self.decoded(&target, old, &namespace),
            (Operation::Delete, old) => self.decoded(&target, old.unwrap_or(&object), &namespace),
            _ => Value::Null,
        };
        let asked = PolicyRequest {
            target: &target,
            operation,
            old: &old,
            name: sent.object.str_at(&["metadata", "name"]),
            namespace: &namespace,
            request_user: self.request_user,
            catalog: self.catalog,
            home: self.home,
            beside: self.beside,
        };
        Some(match operation {
            Operation::Delete => {
                let checked = Checked { object: object.clone(), ..Checked::default() };
                self.finish(&asked, Admitted { checked, ..Admitted::default() }, &Value::Null, tell)
            }
            _ => self.written(&asked, &object, check, tell),
        })
    }

    /// The update of a Scale. What the kind has against the object is asked with the replicas of the Scale in it.
    fn admit_scale(
        &self,
        sent: SentRequest<'_>,
        check: &mut dyn FnMut(&Value) -> Checked,
        tell: Tell<'_>,
    ) -> Option<Admitted> {
        let refused = |status: Status| Admitted { denial: Some(PolicyRefusal::of(status)), ..Admitted::default() };
        let whole = PolicyTarget::of(sent.object, "", self.catalog)?;
        let Some(fields) = &whole.version.scale else { return Some(refused(Status::not_found_generic())) };
        let namespace = self.namespace_of(&whole, sent.object);
        let scale_of = |object: &Value| {
            let scale = scale::of_object(fields, &self.decoded(&whole, object, &namespace));
            scale.map(|(scale, _)| scale).map_err(|error| Status::plain(500, &error.to_string()))
        };
        let (scale, old) = match (scale_of(sent.object), scale_of(sent.old.unwrap_or(sent.object))) {
            (Ok(scale), Ok(old)) => (scale, old),
            (Err(status), _) | (_, Err(status)) => return Some(refused(status)),
        };
        let target = PolicyTarget::of(sent.object, SCALE, self.catalog)?;
        let asked = PolicyRequest {
            target: &target,
            operation: Operation::Update,
            old: &old,
            name: sent.object.str_at(&["metadata", "name"]),
            namespace: &namespace,
            request_user: self.request_user,
            catalog: self.catalog,
            home: self.home,
            beside: self.beside,
        };
        let mut check_whole = |changed: &Value| {
            let mut object = sent.object.clone();
            let replicas = |scale: &Value| scale.at(&["spec", "replicas"]).and_then(Value::as_i64).unwrap_or_default();
            if replicas(changed) != replicas(&scale) {
                let path = split_path(&fields.spec_replicas_path);
                set_nested(&mut object, &path, Value::Int(replicas(changed))).expect("the Scale was read from it");
            }
            check(&object)
        };
        Some(self.written(&asked, &scale, &mut check_whole, tell))
    }

    fn written(
        &self,
        asked: &PolicyRequest<'_>,
        object: &Value,
        check: &mut dyn FnMut(&Value) -> Checked,
        tell: Tell<'_>,
    ) -> Admitted {
        let mut admitted = Admitted::default();
        let mut changed = None;
        if self.policies.may_mutate(asked, object)
            && let Ok(decoded) = asked.target.decode(object)
        {
            match self.policies.mutate(asked, decoded.clone(), tell) {
                Ok(mutated) => changed = Some(mutated).filter(|mutated| *mutated != decoded),
                Err(status) => admitted.denial = Some(PolicyRefusal::of(status)),
            }
        }
        let sends_options = asked.operation == Operation::Connect || asked.target.takes_others();
        let final_object = changed.as_ref().unwrap_or(object);
        admitted.is_mutated = changed.is_some();
        admitted.checked = if asked.target.subresource == SCALE {
            Checked { object: final_object.clone(), prepared: final_object.clone(), ..check(final_object) }
        } else if sends_options {
            Checked { object: final_object.clone(), prepared: final_object.clone(), ..Checked::default() }
        } else {
            check(final_object)
        };
        if admitted.is_mutated && !sends_options {
            // What the client sent is told of, not what policies made of it.
            admitted.checked.unknown = check(object).unknown;
        }
        if admitted.denial.is_some() || !admitted.checked.errors.is_empty() {
            return admitted;
        }
        let prepared = admitted.checked.prepared.clone();
        self.finish(asked, admitted, &prepared, tell)
    }

    /// Asks validating policies.
    fn finish(&self, asked: &PolicyRequest<'_>, mut admitted: Admitted, object: &Value, tell: Tell<'_>) -> Admitted {
        let said = self.policies.validate(asked, object, tell);
        let version = &asked.target.version;
        admitted.annotations = said.annotations(version.minor);
        admitted.warnings = said.warnings;
        let name = asked.target.name_in(asked.name, object);
        let refusal = |denial: crate::policy::Denial| {
            PolicyRefusal::of(denial.into_status(&version.group, &version.names.plural, &name))
        };
        admitted.denial = said.denial.map(refusal);
        admitted
    }

    fn decoded(&self, target: &PolicyTarget, object: &Value, namespace: &str) -> Value {
        let placed = placed(target, object, namespace);
        let decoded = target.decode(&placed).unwrap_or(placed);
        target.convert(&decoded, &target.version).unwrap_or(decoded)
    }

    /// The namespace of an object; empty for cluster scope.
    fn namespace_of(&self, target: &PolicyTarget, object: &Value) -> String {
        let own = object.str_at(&["metadata", "namespace"]);
        match (target.version.is_namespaced(), own, self.namespace) {
            (false, ..) => String::new(),
            (true, "", "") => DEFAULT_NAMESPACE.to_owned(),
            (true, "", asked) => asked.to_owned(),
            (true, own, _) => own.to_owned(),
        }
    }
}

/// `object` in its namespace. Options of connections are in none.
fn placed(target: &PolicyTarget, object: &Value, namespace: &str) -> Value {
    let mut placed = object.clone();
    let has_one = !object.str_at(&["metadata", "namespace"]).is_empty();
    if !namespace.is_empty() && !has_one && !target.takes_others() {
        metadata_mut(&mut placed).insert("namespace", Value::from(namespace));
    }
    placed
}
