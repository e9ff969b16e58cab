//! The custom resources that were read from their definitions so far.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use imbl::HashMap;

use super::resource::Resource;

type ByName = HashMap<Arc<str>, Arc<Resource>>;

/// Resources, by the names of their definitions. A copy costs nothing.
#[derive(Default)]
pub struct KnownResources {
    by_name: RwLock<ByName>,
    /// How often any of them was asked for.
    asked: AtomicU64,
}

impl KnownResources {
    fn read(&self) -> RwLockReadGuard<'_, ByName> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ByName> {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The resource of a definition.
    pub fn get(&self, name: &str) -> Option<Arc<Resource>> {
        let found = self.read().get(name).cloned()?;
        found.last_asked.store(self.asked.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(found)
    }

    pub fn insert(&self, name: Arc<str>, resource: Arc<Resource>) {
        self.write().insert(name, resource);
    }

    pub fn remove(&self, name: &str) {
        if self.read().contains_key(name) {
            self.write().remove(name);
        }
    }

    /// Drops the resources of definitions that are not stored any more, if there are more than so many.
    pub fn retain(&self, count: usize, is_stored: impl Fn(&str) -> bool) {
        if self.read().len() > count {
            self.write().retain(|name, _| is_stored(name));
        }
    }

    /// Forgets the compiled schemas of half of the resources that nothing uses at the moment: of those that were not
    /// asked for for longest.
    pub fn forget_schemas(&self) {
        let is_idle = |resource: &Arc<Resource>| Arc::strong_count(resource) == 1 && resource.has_schemas();
        if !self.read().values().any(is_idle) {
            return;
        }
        let mut known = self.write();
        let idle = known.iter().filter(|(_, resource)| is_idle(resource));
        let mut idle: Vec<_> =
            idle.map(|(name, resource)| (resource.last_asked.load(Ordering::Relaxed), Arc::clone(name))).collect();
        idle.sort_unstable();
        idle.truncate(idle.len().div_ceil(2));
        for (_, name) in idle {
            if let Some(resource) = known.get_mut(&name) {
                *resource = Arc::new(resource.without_schemas());
            }
        }
    }
}

impl Clone for KnownResources {
    fn clone(&self) -> Self {
        KnownResources { by_name: RwLock::new(self.read().clone()), asked: AtomicU64::default() }
    }
}

#[cfg(test)]
mod tests {
    use crate::registry::Registry;
    use crate::registry::fixture;
    use crate::store::Encoded;
    use crate::value::yaml;

    async fn define(registry: &Registry, plural: &str) {
        let names = format!("{{plural: {plural}, singular: {plural}, kind: K{plural}, listKind: L{plural}}}");
        let text = format!(
            "{{metadata: {{name: {plural}.example.com}}, spec: {{group: example.com, scope: Namespaced, names: {names}, \
             versions: [{{name: v1, served: true, storage: true, \
             schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object}}}}}}}}}}]}}, \
             status: {{acceptedNames: {names}, conditions: [{{type: Established, status: 'True'}}]}}}}"
        );
        let definition = yaml::decode(text.as_bytes()).expect("the test is YAML");
        let (definitions, name) = (registry.definitions.collection(), format!("{plural}.example.com"));
        fixture::store(&registry.storage, &definitions, (&name, plural), Encoded::of(&definition)).await;
    }

    #[tokio::test]
    async fn schemas_are_made_on_first_use_and_forgotten_where_nothing_uses_them() {
        let registry = fixture::registry().await;
        let plurals = ["as", "bs", "cs", "ds"];
        for plural in plurals {
            define(&registry, plural).await;
        }
        let known = &registry.definitions.known;
        let with_schemas = || {
            let has = |plural: &&str| known.read()[format!("{plural}.example.com").as_str()].has_schemas();
            plurals.into_iter().filter(has).collect::<String>()
        };
        registry.resources().await.expect("the store works");
        assert_eq!(with_schemas(), "");
        let mut held = None;
        for plural in plurals {
            let resource =
                registry.resolve("example.com", plural).await.expect("the store works").expect("it is there");
            assert!(resource.first().structural.properties.contains_key("spec"));
            held.get_or_insert(resource);
        }
        assert_eq!(with_schemas(), "asbscsds");
        known.forget_schemas();
        assert_eq!(with_schemas(), "asds");
        known.forget_schemas();
        known.forget_schemas();
        assert_eq!(with_schemas(), "as", "it is used");
        let again = registry.resolve("example.com", "bs").await.expect("the store works").expect("it is there");
        assert!(again.first().structural.properties.contains_key("spec"));
    }
}
