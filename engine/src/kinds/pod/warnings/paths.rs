//! Files of a volume that are in each other's way: the same path twice, or one below another.

use crate::meta::field_ref::FieldRef;
use crate::value::{Value, go_quote};

/// DIFFERS: how many pairs of paths of a volume are compared. Kubernetes compares all of them.
const PAIRS_MAX: usize = 100_000;

/// A file, and its source if that is not the volume itself.
struct File {
    path: String,
    source: String,
}

impl File {
    fn new(path: &str, source: &str) -> Self {
        File { path: path.trim_end_matches('/').to_owned(), source: source.to_owned() }
    }

    fn show(&self) -> String {
        let path = go_quote(&self.path);
        if self.source.is_empty() { path } else { format!("{path} ({})", self.source) }
    }

    /// Whether the two paths conflict.
    fn overlaps(&self, other: &File) -> bool {
        let is_below = |path: &str, root: &str| path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
        let (this, other) = (self.path.as_str(), other.path.as_str());
        !this.is_empty() && !other.is_empty() && (this == other || is_below(this, other) || is_below(other, this))
    }
}

/// The warnings of all volumes.
pub fn of(volumes: &FieldRef<'_>) -> Vec<String> {
    let volumes = volumes.value().and_then(Value::as_array).unwrap_or_default();
    volumes.iter().flat_map(of_volume).collect()
}

fn of_volume(volume: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let name = go_quote(volume.str_at(&["name"]));
    let sources = [
        ("configMap", format!("ConfigMap {}", go_quote(volume.str_at(&["configMap", "name"])))),
        ("secret", format!("Secret {}", go_quote(volume.str_at(&["secret", "secretName"])))),
        ("downwardAPI", "DownwardAPI".to_owned()),
    ];
    for (source, told) in sources {
        let files = items(volume.items_at(&[source, "items"]), "");
        warnings.extend(overlaps(&files).map(|pair| format!("volume {name} ({told}): overlapping paths: {pair}")));
    }
    let mut files = Vec::new();
    for source in volume.items_at(&["projected", "sources"]) {
        if source.as_object().is_none_or(|source| source.values().all(Value::is_null)) {
            warnings.push(format!("volume {name} (Projected) has no sources provided"));
        }
        files.extend(projected(source));
    }
    warnings.extend(overlaps(&files).map(|pair| format!("volume {name} (Projected): overlapping paths: {pair}")));
    warnings
}

fn items(items: &[Value], source: &str) -> Vec<File> {
    items.iter().map(|item| File::new(item.str_at(&["path"]), source)).collect()
}

/// The files of a source of a projected volume: of the first one that it has.
fn projected(source: &Value) -> Vec<File> {
    let named = |kind: &str, what: &str| format!("{what} {}", go_quote(source.str_at(&[kind, "name"])));
    for (kind, told) in [
        ("configMap", named("configMap", "ConfigMap")),
        ("secret", named("secret", "Secret")),
        ("downwardAPI", "DownwardAPI".to_owned()),
    ] {
        let listed = source.items_at(&[kind, "items"]);
        if !listed.is_empty() {
            return items(listed, &told);
        }
    }
    if let Some(token) = source.get("serviceAccountToken").filter(|token| !token.is_null()) {
        return vec![File::new(token.str_at(&["path"]), "ServiceAccountToken")];
    }
    if let Some(bundle) = source.get("clusterTrustBundle").filter(|bundle| !bundle.is_null()) {
        let name = bundle.get("name").or_else(|| bundle.get("signerName")).and_then(Value::as_str);
        let told = format!("ClusterTrustBundle {}", go_quote(name.unwrap_or_default()));
        return vec![File::new(bundle.str_at(&["path"]), &told)];
    }
    let paths = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    let files = paths.iter().map(|(name, told)| File::new(source.str_at(&["podCertificate", name]), told));
    files.filter(|file| !file.path.is_empty()).collect()
}

/// Each file with those before it that are in its way.
fn overlaps(files: &[File]) -> impl Iterator<Item = String> {
    let pairs = files.iter().enumerate().flat_map(|(at, file)| files[..at].iter().map(move |before| (file, before)));
    let pairs = pairs.take(PAIRS_MAX).inspect(|_| crate::work::step());
    pairs
        .filter(|(file, before)| file.overlaps(before))
        .map(|(file, before)| format!("{} with {}", file.show(), before.show()))
}
