//! The rules of volumes, with the texts of the reference.

use super::*;
use crate::meta::field::Path;
use crate::value::yaml;

/// The errors of volumes in a pod `p`.
fn errors(text: &str) -> Vec<String> {
    let volumes = yaml::decode(text.as_bytes()).expect("it is YAML");
    let field = FieldRef::new(Some(&volumes), Path::new("volumes"));
    let metadata = crate::object! { "name" => "p" };
    let options = PodValidationOptions { resource_is_pod: true, ..PodValidationOptions::default() };
    let (_, errors) = validate_volumes(&field, Some(&metadata), &options);
    errors.into_vec().into_iter().map(|error| error.to_string()).collect()
}

#[test]
fn a_volume_has_one_source_and_a_name_of_its_own() {
    assert!(errors("[{name: a, emptyDir: {}}, {name: b, hostPath: {path: /x, type: ''}}]").is_empty());
    assert_eq!(errors("[{name: a}]"), ["volumes[0]: Required value: must specify a volume type"]);
    assert_eq!(
        errors("[{name: a, emptyDir: {}, downwardAPI: {}}]"),
        ["volumes[0].downwarAPI: Forbidden: may not specify more than 1 volume type"]
    );
    assert_eq!(
        errors("[{name: a, emptyDir: {}}, {name: a, emptyDir: {}}, {emptyDir: {}}]"),
        ["volumes[1].name: Duplicate value: \"a\"", "volumes[2].name: Required value"]
    );
}

#[test]
fn sources_are_checked_where_the_reference_says() {
    for (source, expected) in [
        ("gcePersistentDisk: {partition: 256}", "volumes[0].persistentDisk.pdName: Required value"),
        (
            "hostPath: {path: /a/../b, type: ''}",
            "volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        ),
        ("nfs: {server: s, path: a}", "volumes[0].nfs.path: Invalid value: \"a\": must be an absolute path"),
        ("fc: {targetWWNs: [a]}", "volumes[0].fc.lun: Required value: lun is required if targetWWNs is specified"),
        (
            "iscsi: {targetPortal: p, iqn: a, lun: 1}",
            "volumes[0].iscsi.iqn: Invalid value: \"a\": must be valid format starting with iqn, eui, or naa",
        ),
        (
            "flexVolume: {driver: d, options: {a.k8s.io/b: c}}",
            "volumes[0].flexVolume.options[a.k8s.io/b]: Invalid value: \"a.k8s.io/b\": kubernetes.io and k8s.io namespaces are \
             reserved",
        ),
        (
            "secret: {secretName: s, items: [{key: k, path: ..x}]}",
            "volumes[0].secret.items[0].path: Invalid value: \"..x\": must not start with '..'",
        ),
        (
            "downwardAPI: {items: [{path: a, fieldRef: {apiVersion: v1, fieldPath: spec.host}}]}",
            "volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value: \"spec.nodeName\": supported values: \
             \"metadata.annotations\", \"metadata.labels\", \"metadata.name\", \"metadata.namespace\", \"metadata.uid\"",
        ),
        ("image: {pullPolicy: Always}", "volumes[0].image.reference: Required value"),
    ] {
        assert_eq!(errors(&format!("[{{name: a, {source}}}]")).first().map(String::as_str), Some(expected), "{source}");
    }
}

#[test]
fn projected_sources_share_no_path() {
    let volume = "[{name: a, projected: {sources: [{secret: {name: s, items: [{key: k, path: x}]}}, \
                  {configMap: {name: c, items: [{key: k, path: x}]}}, {serviceAccountToken: {path: t, expirationSeconds: 1}}]}}]";
    assert_eq!(
        errors(volume),
        [
            "volumes[0].projected: Invalid value: \"c\": conflicting duplicate paths",
            "volumes[0].projected.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a \
             duration less than 10 minutes"
        ]
    );
}

#[test]
fn the_claim_of_an_ephemeral_volume_is_nobody_elses() {
    let claim = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}";
    let volume = format!("{{name: a, ephemeral: {{volumeClaimTemplate: {{metadata: {{name: x}}, {claim}}}}}}}");
    assert_eq!(
        errors(&format!("[{volume}, {{name: b, persistentVolumeClaim: {{claimName: p-a}}}}]")),
        [
            "volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
            "volumes[1].persistentVolumeClaim.claimName: Invalid value: \"p-a\": must not reference a PVC that gets created \
             for an ephemeral volume"
        ]
    );
}
