//! Events about what the repair of services finds.

use std::sync::Arc;

use super::identity::MANAGER;
use super::recorder::{RecordedEvent, Recorder};
use crate::registry::{Finding, Registry};

/// Records them.
pub struct FindingEvents(Recorder);

impl FindingEvents {
    pub fn start(registry: &Arc<Registry>) -> Self {
        FindingEvents(Recorder::start_by(registry, MANAGER))
    }

    pub fn record(&self, finding: Finding) {
        let Finding { object, component, action, reason, message } = finding;
        self.0.record(RecordedEvent::new(component, &object, "Warning", reason.into(), message).during(action));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::object;
    use crate::registry::fixture;
    use crate::store::Collection;
    use crate::value::{Value, json};

    #[tokio::test]
    async fn a_finding_becomes_an_event_in_the_newer_form() {
        let registry = fixture::registry().await;
        let metadata = object! { "name" => "a", "namespace" => "default", "uid" => "u" };
        let object = object! { "kind" => "Service", "apiVersion" => "v1", "metadata" => metadata };
        let component = "ipallocator-repair-controller";
        // It writes as long as somebody holds it.
        let recorded = FindingEvents::start(&registry);
        recorded.record(Finding {
            object,
            component,
            action: "ClusterIPAllocation",
            reason: "ClusterIPNotAllocated",
            message: "m".to_owned(),
        });
        let events = Collection::new("", "events");
        let made = async {
            loop {
                let snapshot = registry.storage.snapshot(&events, crate::store::At::Newest).await;
                let first = snapshot.unwrap_or_else(|_| panic!("the store works")).range("", None).next().cloned();
                match first {
                    Some(stored) => break json::decode(&stored.bytes).expect("it is JSON"),
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let event: Value = tokio::time::timeout(Duration::from_secs(30), made).await.expect("an event comes");
        let told = ["reason", "action", "type", "reportingComponent"].map(|field| event.str_at(&[field]));
        assert_eq!(told, ["ClusterIPNotAllocated", "ClusterIPAllocation", "Warning", component]);
        assert_eq!(event.items_at(&["metadata", "managedFields"])[0].str_at(&["manager"]), "kube-apiserver");
        assert_eq!(event.at(&["involvedObject", "uid"]), Some(&Value::from("u")));
    }
}
