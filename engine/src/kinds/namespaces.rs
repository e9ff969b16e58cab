//! Namespaces, and what each of them has from the start.

use crate::object;
use crate::value::Value;

/// Namespaces that are there from the start.
pub const INITIAL: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The subresource by which a finalizer in the spec is taken away.
pub const FINALIZE: &str = "finalize";

/// A namespace to be created.
pub fn new(name: &str) -> Value {
    object! { "apiVersion" => "v1", "kind" => "Namespace", "metadata" => object! { "name" => name } }
}

/// The account that every namespace has.
pub fn default_account() -> Value {
    object! { "apiVersion" => "v1", "kind" => "ServiceAccount", "metadata" => object! { "name" => "default" } }
}

/// The ConfigMap that every namespace has: the authority to trust, in PEM.
pub fn root_authority(authority_pem: &str) -> Value {
    const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                               endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                               guaranteed across distributions of Kubernetes clusters.";
    object! {
        "apiVersion" => "v1",
        "kind" => "ConfigMap",
        "metadata" => object! {
            "name" => "kube-root-ca.crt",
            "annotations" => object! { "kubernetes.io/description" => DESCRIPTION },
        },
        "data" => object! { "ca.crt" => authority_pem },
    }
}
