//! Selectors of nodes: by their labels, or by their names.

use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;

use crate::kinds::checks;

/// Labels of nodes that have another name by now, and what is said of them.
const DEPRECATED_LABELS: [(&str, &str); 4] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    ("failure-domain.beta.kubernetes.io/region", "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
];
