//! The roles of the scheduler and of the controllers of workloads, and of clients that request or approve certificates.

use super::{Controller, EVENTS, READ, Role, User, named, resources, role};

const MANAGE: &str = "create delete get list patch update watch";
const CORE: &[&str] = &[""];
const APPS: &[&str] = &["apps", "extensions"];
const CERTIFICATES: &[&str] = &["certificates.k8s.io"];
const DEVICES: &[&str] = &["resource.k8s.io"];

pub(super) static ROLES: &[Role] = &[
    role(
        "system:controller:cronjob-controller",
        &[
            resources("get list update watch", &["batch"], "cronjobs"),
            resources(MANAGE, &["batch"], "jobs"),
            resources("update", &["batch"], "cronjobs/finalizers cronjobs/status"),
            resources("delete list watch", CORE, "pods"),
            EVENTS,
        ],
        &[Controller("cronjob-controller")],
    ),
    role(
        "system:controller:daemon-set-controller",
        &[
            resources(READ, APPS, "daemonsets"),
            resources("update", APPS, "daemonsets/finalizers daemonsets/status"),
            resources("list watch", CORE, "nodes"),
            resources("create delete list patch watch", CORE, "pods"),
            resources("create", CORE, "pods/binding"),
            resources(MANAGE, &["apps"], "controllerrevisions"),
            EVENTS,
        ],
        &[Controller("daemon-set-controller")],
    ),
    role(
        "system:controller:deployment-controller",
        &[
            resources("get list update watch", APPS, "deployments"),
            resources("update", APPS, "deployments/finalizers deployments/status"),
            resources(MANAGE, APPS, "replicasets"),
            resources("get list update watch", CORE, "pods"),
            EVENTS,
        ],
        &[Controller("deployment-controller")],
    ),
    role(
        "system:controller:disruption-controller",
        &[
            resources(READ, APPS, "deployments"),
            resources(READ, APPS, "replicasets"),
            resources(READ, CORE, "replicationcontrollers"),
            resources(READ, &["policy"], "poddisruptionbudgets"),
            resources(READ, &["apps"], "statefulsets"),
            resources("update", &["policy"], "poddisruptionbudgets/status"),
            resources("patch update", CORE, "pods/status"),
            resources("get", &["*"], "*/scale"),
            EVENTS,
        ],
        &[Controller("disruption-controller")],
    ),
    role(
        "system:controller:endpoint-controller",
        &[
            resources(READ, CORE, "pods services"),
            resources("create delete get list update watch", CORE, "endpoints"),
            resources("create", CORE, "endpoints/restricted"),
            EVENTS,
        ],
        &[Controller("endpoint-controller")],
    ),
    role(
        "system:controller:endpointslice-controller",
        &[
            resources(READ, CORE, "nodes pods services"),
            resources("update", CORE, "services/finalizers"),
            resources("create delete get list update watch", &["discovery.k8s.io"], "endpointslices"),
            resources("create", &["discovery.k8s.io"], "endpointslices/restricted"),
            EVENTS,
        ],
        &[Controller("endpointslice-controller")],
    ),
    role(
        "system:controller:endpointslicemirroring-controller",
        &[
            resources(READ, CORE, "endpoints services"),
            resources("update", CORE, "services/finalizers"),
            resources("update", CORE, "endpoints/finalizers"),
            resources("create delete get list update watch", &["discovery.k8s.io"], "endpointslices"),
            resources("create", &["discovery.k8s.io"], "endpointslices/restricted"),
            EVENTS,
        ],
        &[Controller("endpointslicemirroring-controller")],
    ),
    role(
        "system:controller:expand-controller",
        &[
            resources("get list patch update watch", CORE, "persistentvolumes"),
            resources("patch update", CORE, "persistentvolumeclaims/status"),
            resources(READ, CORE, "persistentvolumeclaims"),
            EVENTS,
        ],
        &[Controller("expand-controller")],
    ),
    role(
        "system:controller:ephemeral-volume-controller",
        &[
            resources(READ, CORE, "pods"),
            resources("update", CORE, "pods/finalizers"),
            resources("create get list watch", CORE, "persistentvolumeclaims"),
            EVENTS,
        ],
        &[Controller("ephemeral-volume-controller")],
    ),
    role(
        "system:controller:horizontal-pod-autoscaler",
        &[
            resources(READ, &["autoscaling"], "horizontalpodautoscalers"),
            resources("update", &["autoscaling"], "horizontalpodautoscalers/status"),
            resources("get update", &["*"], "*/scale"),
            resources("list watch", CORE, "pods"),
            resources("list watch", &["metrics.k8s.io"], "pods"),
            resources(READ, &["custom.metrics.k8s.io"], "*"),
            resources(READ, &["external.metrics.k8s.io"], "*"),
            EVENTS,
        ],
        &[Controller("horizontal-pod-autoscaler")],
    ),
    role(
        "system:controller:job-controller",
        &[
            resources("get list patch update watch", &["batch"], "jobs"),
            resources("update", &["batch"], "jobs/status"),
            resources("update", &["batch"], "jobs/finalizers"),
            resources("create delete list patch watch", CORE, "pods"),
            EVENTS,
        ],
        &[Controller("job-controller")],
    ),
    role(
        "system:controller:node-controller",
        &[
            resources("delete get list patch update watch", CORE, "nodes"),
            resources("patch update", CORE, "nodes/status"),
            resources("patch update", CORE, "pods/status"),
            resources("delete get list watch", CORE, "pods"),
            EVENTS,
        ],
        &[Controller("node-controller")],
    ),
    role(
        "system:controller:persistent-volume-binder",
        &[
            resources("create delete get list update watch", CORE, "persistentvolumes"),
            resources("update", CORE, "persistentvolumes/status"),
            resources("get list update watch", CORE, "persistentvolumeclaims"),
            resources("update", CORE, "persistentvolumeclaims/status"),
            resources("create delete get list watch", CORE, "pods"),
            resources(READ, &["storage.k8s.io"], "storageclasses"),
            resources("list watch", CORE, "nodes"),
            EVENTS,
            resources("watch", CORE, "events"),
        ],
        &[Controller("persistent-volume-binder")],
    ),
    role(
        "system:controller:pod-garbage-collector",
        &[
            resources("delete list watch", CORE, "pods"),
            resources(READ, CORE, "nodes"),
            resources("patch", CORE, "pods/status"),
        ],
        &[Controller("pod-garbage-collector")],
    ),
    role(
        "system:controller:replicaset-controller",
        &[
            resources("get list update watch", APPS, "replicasets"),
            resources("update", APPS, "replicasets/status"),
            resources("update", APPS, "replicasets/finalizers"),
            resources("create delete list patch watch", CORE, "pods"),
            EVENTS,
        ],
        &[Controller("replicaset-controller")],
    ),
    role(
        "system:controller:replication-controller",
        &[
            resources("get list update watch", CORE, "replicationcontrollers"),
            resources("update", CORE, "replicationcontrollers/status"),
            resources("update", CORE, "replicationcontrollers/finalizers"),
            resources("create delete list patch watch", CORE, "pods"),
            EVENTS,
        ],
        &[Controller("replication-controller")],
    ),
    role(
        "system:controller:resourcequota-controller",
        &[resources("list watch", &["*"], "*"), resources("update", CORE, "resourcequotas/status"), EVENTS],
        &[Controller("resourcequota-controller")],
    ),
    role(
        "system:controller:service-controller",
        &[
            resources(READ, CORE, "services"),
            resources("patch update", CORE, "services/status"),
            resources("list watch", CORE, "nodes"),
            EVENTS,
        ],
        &[Controller("service-controller")],
    ),
    role(
        "system:controller:statefulset-controller",
        &[
            resources("list watch", CORE, "pods"),
            resources(READ, &["apps"], "statefulsets"),
            resources("update", &["apps"], "statefulsets/status"),
            resources("update", &["apps"], "statefulsets/finalizers"),
            resources("create delete get patch update", CORE, "pods"),
            resources(MANAGE, &["apps"], "controllerrevisions"),
            resources("create get list watch", CORE, "persistentvolumeclaims"),
            resources("delete update", CORE, "persistentvolumeclaims"),
            resources("update", CORE, "pods/finalizers"),
            EVENTS,
        ],
        &[Controller("statefulset-controller")],
    ),
    role(
        "system:controller:certificate-controller",
        &[
            resources("delete get list watch", CERTIFICATES, "certificatesigningrequests"),
            resources("update", CERTIFICATES, "certificatesigningrequests/approval certificatesigningrequests/status"),
            named("approve", CERTIFICATES, "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
            named(
                "sign",
                CERTIFICATES,
                "signers",
                "kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown",
            ),
            resources("create", &["authorization.k8s.io"], "subjectaccessreviews"),
            EVENTS,
        ],
        &[Controller("certificate-controller")],
    ),
    role(
        "system:controller:pvc-protection-controller",
        &[
            resources("get list update watch", CORE, "persistentvolumeclaims"),
            resources("update", CORE, "persistentvolumeclaims/status"),
            resources(READ, CORE, "pods"),
            EVENTS,
        ],
        &[Controller("pvc-protection-controller")],
    ),
    role(
        "system:controller:pv-protection-controller",
        &[resources("get list update watch", CORE, "persistentvolumes"), EVENTS],
        &[Controller("pv-protection-controller")],
    ),
    role(
        "system:controller:ttl-after-finished-controller",
        &[resources("delete get list watch", &["batch"], "jobs"), EVENTS],
        &[Controller("ttl-after-finished-controller")],
    ),
    role(
        "system:kube-controller-manager",
        &[
            EVENTS,
            resources("create", &["coordination.k8s.io"], "leases"),
            named("get update", &["coordination.k8s.io"], "leases", "kube-controller-manager"),
            resources("create", CORE, "secrets serviceaccounts"),
            resources("delete", CORE, "secrets"),
            resources("get", CORE, "configmaps namespaces secrets serviceaccounts"),
            resources("update", CORE, "secrets serviceaccounts"),
            resources("create", &["authentication.k8s.io"], "tokenreviews"),
            resources("create", &["authorization.k8s.io"], "subjectaccessreviews"),
            resources("list watch", &["*"], "*"),
            resources("create", CORE, "serviceaccounts/token"),
        ],
        &[User("system:kube-controller-manager")],
    ),
    role(
        "system:kube-scheduler",
        &[
            EVENTS,
            resources("create", &["coordination.k8s.io"], "leases"),
            named("get list update watch", &["coordination.k8s.io"], "leases", "kube-scheduler"),
            resources(
                "create delete deletecollection get list patch update watch",
                &["coordination.k8s.io"],
                "leasecandidates",
            ),
            resources(READ, CORE, "nodes"),
            resources("delete get list watch", CORE, "pods"),
            resources("create", CORE, "bindings pods/binding"),
            resources("patch update", CORE, "pods/status"),
            resources(READ, CORE, "replicationcontrollers services"),
            resources(READ, APPS, "replicasets"),
            resources(READ, &["apps"], "statefulsets"),
            resources(READ, &["policy"], "poddisruptionbudgets"),
            resources(READ, CORE, "persistentvolumeclaims persistentvolumes"),
            resources("create", &["authentication.k8s.io"], "tokenreviews"),
            resources("create", &["authorization.k8s.io"], "subjectaccessreviews"),
            resources(READ, &["storage.k8s.io"], "csinodes"),
            resources(READ, &["storage.k8s.io"], "volumeattachments"),
            resources(READ, CORE, "namespaces"),
            resources(READ, &["storage.k8s.io"], "csidrivers"),
            resources(READ, &["storage.k8s.io"], "csistoragecapacities"),
            resources(READ, DEVICES, "deviceclasses"),
            resources("get list patch update watch", DEVICES, "resourceclaims"),
            resources("get list patch update watch", DEVICES, "resourceclaims/status"),
            resources("update", CORE, "pods/finalizers"),
            resources(READ, DEVICES, "resourceslices"),
            resources("create delete", DEVICES, "resourceclaims"),
            // Behind a gate in 1.36; 1.37 has the kind in v1.
            resources(READ, DEVICES, "devicetaintrules"),
            resources("patch update", DEVICES, "resourceclaims/binding"),
        ],
        &[User("system:kube-scheduler")],
    ),
    role(
        "system:volume-scheduler",
        &[
            resources("get list patch update watch", CORE, "persistentvolumes"),
            resources(READ, &["storage.k8s.io"], "storageclasses"),
            resources("get list patch update watch", CORE, "persistentvolumeclaims"),
        ],
        &[User("system:kube-scheduler")],
    ),
    role(
        "system:node-bootstrapper",
        &[resources("create get list watch", CERTIFICATES, "certificatesigningrequests")],
        &[],
    ),
    role(
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        &[resources("create", CERTIFICATES, "certificatesigningrequests/nodeclient")],
        &[],
    ),
    role(
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        &[resources("create", CERTIFICATES, "certificatesigningrequests/selfnodeclient")],
        &[],
    ),
    role(
        "system:certificates.k8s.io:legacy-unknown-approver",
        &[named("approve", CERTIFICATES, "signers", "kubernetes.io/legacy-unknown")],
        &[],
    ),
    role(
        "system:certificates.k8s.io:kubelet-serving-approver",
        &[named("approve", CERTIFICATES, "signers", "kubernetes.io/kubelet-serving")],
        &[],
    ),
    role(
        "system:certificates.k8s.io:kube-apiserver-client-approver",
        &[named("approve", CERTIFICATES, "signers", "kubernetes.io/kube-apiserver-client")],
        &[],
    ),
    role(
        "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
        &[named("approve", CERTIFICATES, "signers", "kubernetes.io/kube-apiserver-client-kubelet")],
        &[],
    ),
];

#[cfg(test)]
mod tests {
    use super::super::Rule;
    use super::*;

    #[test]
    fn the_scheduler_may_allocate_devices() {
        let role = ROLES.iter().find(|role| role.name == "system:kube-scheduler").expect("it is one of them");
        let verbs = |of: &str, what: &str| {
            let mut verbs = Vec::new();
            for rule in role.rules {
                if let Rule::Resources { verbs: more, groups, resources } = rule
                    && groups.contains(&of)
                    && resources.split(' ').any(|resource| resource == what)
                {
                    verbs.extend(more.split(' '));
                }
            }
            verbs.sort_unstable();
            verbs.join(" ")
        };
        let check = |what: &str, expected: &str| assert_eq!(verbs("resource.k8s.io", what), expected, "{what}");
        check("deviceclasses", "get list watch");
        check("resourceclaims", "create delete get list patch update watch");
        check("resourceclaims/status", "get list patch update watch");
        check("resourceclaims/binding", "patch update");
        check("resourceslices", "get list watch");
        assert_eq!(verbs("", "pods/finalizers"), "update");
    }
}
