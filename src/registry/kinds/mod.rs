//! The built-in kinds: a strategy each, over the same steps as every custom kind.

mod definition;
mod namespace;

use std::sync::Arc;

use super::Resource;

/// Every built-in resource.
pub fn all() -> Vec<Arc<Resource>> {
    vec![Arc::new(namespace::resource()), Arc::new(definition::resource())]
}

pub use namespace::{INITIAL as INITIAL_NAMESPACES, new as new_namespace};
