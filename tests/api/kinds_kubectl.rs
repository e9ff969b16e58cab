//! kubectl's verbs for workloads, services, nodes and certificates, against a server without controllers and kubelets.

use crate::kubectl::Kubectl;
use crate::server::{Folder, Server};

const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: first}";
const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {tier: front}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: nginx, ports: [{containerPort: 80}], args: [old]}
      - {name: side, image: busybox}
";

/// What commands print, in their order.
#[track_caller]
fn check_prints(kubectl: &Kubectl, commands: &[(&str, &str)]) {
    for (command, printed) in commands {
        assert_eq!(kubectl.ok(command), format!("{printed}\n"), "{command}");
    }
}

/// [`DEPLOYMENT`] with other replicas, and without a label, an argument and a container.
fn pruned() -> String {
    let text = DEPLOYMENT.replace(", labels: {tier: front}", "").replace(", args: [old]", "");
    text.replace("replicas: 1", "replicas: 3").replace("      - {name: side, image: busybox}\n", "")
}

/// Replicas, containers and arguments of the deployment.
fn state(kubectl: &Kubectl) -> String {
    kubectl.ok(
        "get deployment web -o jsonpath={.metadata.labels}/{.spec.replicas}/{.spec.template.spec.containers[*].name}/\
         {.spec.template.spec.containers[0].args}",
    )
}

#[test]
fn kubectl_creates_workloads_and_policies_by_its_generators() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    let commands = [
        ("create deployment web --image=nginx --replicas=2", "deployment.apps/web created"),
        ("create job once --image=busybox -- date", "job.batch/once created"),
        ("create cronjob hourly --image=busybox --schedule=@hourly -- date", "cronjob.batch/hourly created"),
        ("create job now --from=cronjob/hourly", "job.batch/now created"),
        ("create service clusterip inner --tcp=80:8080", "service/inner created"),
        ("create service nodeport outer --tcp=80", "service/outer created"),
        ("create service loadbalancer public --tcp=80", "service/public created"),
        ("create service externalname other --external-name=example.com", "service/other created"),
        ("create ingress web --rule=example.com/*=web:80", "ingress.networking.k8s.io/web created"),
        ("create quota few --hard=cpu=1,pods=9", "resourcequota/few created"),
        ("create pdb web --selector=app=web --min-available=1", "poddisruptionbudget.policy/web created"),
        ("create priorityclass high --value=1000", "priorityclass.scheduling.k8s.io/high created"),
        ("run alone --image=nginx --port=80", "pod/alone created"),
        ("expose deployment web --port=80 --target-port=8080", "service/web exposed"),
        ("expose pod alone --port=80", "service/alone exposed"),
        (
            "autoscale deployment web --min=2 --max=4 --cpu-percent=80",
            "horizontalpodautoscaler.autoscaling/web autoscaled",
        ),
    ];
    // A quota needs requests of the pods that come after it.
    let (quota, others): (Vec<_>, Vec<_>) = commands.into_iter().partition(|(command, _)| command.contains("quota"));
    check_prints(&kubectl, &others);
    check_prints(&kubectl, &quota);
    assert_eq!(kubectl.ok("create serviceaccount builder"), "serviceaccount/builder created\n");
    assert_eq!(kubectl.ok("create token builder").split('.').count(), 3);
    for (kind, name, expected) in [
        ("deployment", "web", "0/2     0            0"),
        ("job", "now", "Running   0/1"),
        ("cronjob", "hourly", "@hourly"),
        ("service", "other", "ExternalName   <none>"),
        ("service", "public", "<pending>"),
        ("ingress", "web", "example.com"),
        ("pdb", "web", "N/A"),
        ("priorityclass", "high", "1000"),
        ("pod", "alone", "0/1     Pending   0"),
        ("hpa", "web", "Deployment/web   cpu: <unknown>/80%   2         4         0"),
    ] {
        let wide = kubectl.ok(&format!("get {kind} {name} -o wide"));
        assert!(wide.lines().count() == 2 && wide.contains(expected), "{wide}");
        let described = kubectl.ok(&format!("describe {kind} {name}"));
        assert!(described.starts_with("Name:") && described.contains(name), "{described}");
    }
}

#[test]
fn kubectl_sets_scales_and_rolls_a_deployment() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    kubectl.pipe_ok(DEPLOYMENT, "create -f -");
    check_prints(
        &kubectl,
        &[
            ("set image deployment/web web=nginx:2", "deployment.apps/web image updated"),
            ("set env deployment/web A=b", "deployment.apps/web env updated"),
            ("set resources deployment web --limits=cpu=1", "deployment.apps/web resource requirements updated"),
            ("set serviceaccount deployment web default", "deployment.apps/web serviceaccount updated"),
            ("scale deployment web --current-replicas=1 --replicas=5", "deployment.apps/web scaled"),
            ("rollout restart deployment/web", "deployment.apps/web restarted"),
            ("rollout pause deployment/web", "deployment.apps/web paused"),
            ("rollout resume deployment/web", "deployment.apps/web resumed"),
            ("rollout history deployment/web", "deployment.apps/web \nNo rollout history found."),
            ("label deployment web a=b", "deployment.apps/web labeled"),
            ("annotate deployment web a=b", "deployment.apps/web annotated"),
        ],
    );
    assert_eq!(
        kubectl.ok("get deployment web -o jsonpath={.spec.replicas}/{.spec.template.spec.containers[*].image}"),
        "5/nginx:2 busybox"
    );
    // Nobody makes its replica sets.
    let status = kubectl.run("rollout status deployment/web --timeout=1s");
    assert_eq!(
        (status.code, status.stdout.as_str()),
        (Some(1), "Waiting for deployment spec update to be observed...\n")
    );
    assert!(kubectl.fails("rollout undo deployment/web").contains("no rollout history found"));
    assert!(kubectl.fails("wait --for=condition=Available deployment/web --timeout=1s").contains("timed out"));
    let observed = r#"patch deployment web --subresource=status --type=merge -p {"status":{"observedGeneration":99}}"#;
    kubectl.ok(observed);
    let waited = kubectl.ok("wait --for=jsonpath={.status.observedGeneration}=99 deployment/web --timeout=30s");
    assert_eq!(waited, "deployment.apps/web condition met\n");
}

#[test]
fn kubectl_applies_diffs_replaces_and_edits_a_deployment() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    for (apply, done) in
        [("apply -f -", ["created", "configured"]), ("apply --server-side -f -", ["serverside-applied"; 2])]
    {
        assert_eq!(kubectl.pipe_ok(DEPLOYMENT, apply), format!("deployment.apps/web {}\n", done[0]));
        assert_eq!(state(&kubectl), r#"{"tier":"front"}/1/web side/["old"]"#, "{apply}");
        let diff = kubectl.pipe(&pruned(), "diff -f -");
        assert_eq!(diff.code, Some(1), "{}", diff.stderr);
        assert!(diff.stdout.contains("\n-  replicas: 1\n+  replicas: 3\n"), "{}", diff.stdout);
        assert_eq!(kubectl.pipe_ok(&pruned(), apply), format!("deployment.apps/web {}\n", done[1]));
        assert_eq!(state(&kubectl), "/3/web/", "{apply}");
        kubectl.ok("delete deployment web");
    }
    kubectl.pipe_ok(DEPLOYMENT, "create -f -");
    assert_eq!(kubectl.pipe_ok(&pruned(), "replace -f -"), "deployment.apps/web replaced\n");
    assert_eq!(state(&kubectl), "/3/web/");
    assert_eq!(kubectl.edit("deployment/web", "image: nginx", "image: nginx:3"), "deployment.apps/web edited\n");
    assert_eq!(kubectl.ok("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}"), "nginx:3");
}

#[test]
fn kubectl_cordons_taints_and_drains_a_node() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    kubectl.pipe_ok(NODE, "create -f -");
    check_prints(
        &kubectl,
        &[
            ("cordon first", "node/first cordoned"),
            ("uncordon first", "node/first uncordoned"),
            ("taint nodes first a=b:NoSchedule", "node/first tainted"),
            ("label node first a=b", "node/first labeled"),
            ("annotate node first a=b", "node/first annotated"),
            ("drain first", "node/first cordoned\nnode/first drained"),
        ],
    );
    let wide = kubectl.ok("get node first -o wide");
    assert!(wide.contains("Unknown,SchedulingDisabled"), "{wide}");
    assert!(kubectl.ok("describe node first").contains("a=b:NoSchedule"));
    assert_eq!(kubectl.fails("top nodes"), "error: Metrics API not available\n");
    assert_eq!(kubectl.fails("top pods"), "error: Metrics API not available\n");
}

#[test]
fn kubectl_approves_certificates_explains_and_asks() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    let kind = kubeskiff::kinds::find("certificates.k8s.io", "certificatesigningrequests").expect("it is built in");
    kubectl.pipe_ok(&crate::kinds::example(kind).to_string(), "create -f -");
    let approved = kubectl.ok("certificate approve example");
    assert_eq!(approved, "certificatesigningrequest.certificates.k8s.io/example approved\n");
    assert!(kubectl.ok("get csr example").contains("Approved"));
    assert!(kubectl.fails("certificate deny example").contains("already Approved"));
    assert_eq!(kubectl.ok("auth can-i create deployments"), "yes\n");
    assert!(kubectl.ok("auth whoami").contains("skiff-admin"));
    let explained = kubectl.ok("explain deployment.spec.template.spec.containers");
    let described = "Image to run; can be changed in an existing pod.";
    for expected in
        ["FIELD: containers <[]Container>", "  image\t<string>", "  enum: Always, IfNotPresent, Never", described]
    {
        assert!(explained.contains(expected), "{expected}: {explained}");
    }
}
