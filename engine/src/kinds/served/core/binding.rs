//! Binding, core/v1: assigns a pod to a node. It is not stored; the pod's subresource `/binding` does the same.

use crate::crd::Scope;
use crate::kinds::{Kind, Review};

pub static KINDS: [&Kind; 1] = [&BINDING];

/// `Binding`, which assigns a Pod to a Node and is never stored.
pub static BINDING: Kind = Kind {
    plural: "bindings",
    singular: "binding",
    scope: Scope::Namespaced,
    example: "metadata: {name: example}\ntarget: {kind: Node, name: example}",
    ..Kind::question("", Review::Binding, "Binding")
};
