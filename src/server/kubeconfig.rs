//! Writes the kubeconfig for kubectl.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::certificates::Identity;
use crate::object;
use crate::private;
use crate::value::{Value, yaml};

/// A kubeconfig with one cluster, one user and one context, everything embedded.
pub struct Kubeconfig<'a> {
    /// `https://host:port`.
    pub server: &'a str,
    pub authority_pem: &'a str,
    pub user: &'a str,
    pub identity: &'a Identity,
}

impl Kubeconfig<'_> {
    /// The file's text.
    pub fn to_yaml(&self) -> String {
        let Kubeconfig { server, user, .. } = self;
        let authority = STANDARD.encode(self.authority_pem);
        let certificate = STANDARD.encode(&self.identity.certificate_pem);
        let key = STANDARD.encode(&self.identity.key_pem);
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: skiff
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: skiff
  context:
    cluster: skiff
    user: {user}
current-context: skiff
"
        )
    }

    /// Writes the file with mode 0600. A reader sees the old file or the new one, never half of one.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_private(path, self.to_yaml().as_bytes())
    }
}

/// Why a context can't be added to a kubeconfig.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Yaml(#[from] yaml::YamlError),
    #[error("it is not a kubeconfig")]
    NotKubeconfig,
    /// The lock file exists.
    #[error("another program is writing it; if none is, remove `{}`", .0.display())]
    Locked(PathBuf),
}

impl Kubeconfig<'_> {
    /// Adds the context `name`, with its cluster and user of the same name, to the kubeconfig at `path`, and makes it
    /// the current one. Existing entries of these names are replaced; the rest stays.
    ///
    /// # Errors
    ///
    /// Another program is writing the file, it is not a kubeconfig, or it can't be written.
    pub fn merge(&self, path: &Path, name: &str) -> Result<(), MergeError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.map_or(Ok(()), fs::create_dir_all)?;
        let _lock = Lock::take(path)?;
        let mut merged = match fs::read(path) {
            Ok(bytes) => yaml::decode(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Value::Null,
            Err(error) => return Err(error.into()),
        };
        let own = yaml::decode(self.to_yaml().as_bytes())?;
        if merged.is_null() {
            merged = object! { "apiVersion" => "v1", "kind" => "Config" };
        }
        let fields = merged.as_object_mut().ok_or(MergeError::NotKubeconfig)?;
        for (list, content) in [("clusters", "cluster"), ("users", "user"), ("contexts", "context")] {
            let mut entry = object! { "name" => name };
            let own = own.items_at(&[list]).first().and_then(|own| own.get(content)).cloned().unwrap_or_default();
            entry.make_object().insert(content, own);
            if list == "contexts" {
                entry.make_object().insert(content, object! { "cluster" => name, "user" => name });
            }
            let others = fields.get(list).and_then(Value::as_array).unwrap_or_default().iter();
            let mut entries: Vec<Value> = others.filter(|other| other.str_at(&["name"]) != name).cloned().collect();
            entries.push(entry);
            fields.insert(list, entries.into());
        }
        fields.insert("current-context", name.into());
        Ok(write_private(path, yaml::encode(&merged).as_bytes())?)
    }
}

/// A lock that keeps other programs from writing a kubeconfig: a file next to it. Source: client-go, `clientcmd`.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> Result<Self, MergeError> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".lock");
        let beside = PathBuf::from(beside);
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            Ok(_) => Ok(Lock(beside)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(MergeError::Locked(beside)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Anyone who finds it there reads what to do.
        _ = fs::remove_file(&self.0);
    }
}

/// Writes a file that only its owner may read. A reader sees the old file or the new one, never half of one.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let written = private::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&beside)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // A leftover file is worthless; the first error is the one to report.
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_file_is_replaced_whole_and_private() {
        let folder = std::env::temp_dir().join(format!("kubeskiff-kubeconfig-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder is ours");
        let path = folder.join("kubeconfig");
        fs::write(&path, "before").expect("the folder is ours");
        let identity = Identity { certificate_pem: "certificate".to_owned(), key_pem: "key".to_owned() };
        let server = "https://127.0.0.1:6443";
        let kubeconfig = Kubeconfig { server, authority_pem: "ca", user: "skiff-admin", identity: &identity };
        kubeconfig.write(&path).expect("the folder is ours");

        let text = fs::read_to_string(&path).expect("it was written");
        assert!(text.contains("certificate-authority-data: Y2E=\n"), "{text}");
        assert_eq!(fs::metadata(&path).expect("it was written").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 1);
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    #[test]
    fn a_context_joins_those_that_are_there() {
        let folder = std::env::temp_dir().join(format!("kubeskiff-merged-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder is ours");
        let path = folder.join("config");
        let before = "{kind: Config, contexts: [{name: a, context: {user: b}}, {name: x}], current-context: a, \
                      preferences: {colors: true}}";
        fs::write(&path, before).expect("the folder is ours");
        let identity = Identity { certificate_pem: "certificate".to_owned(), key_pem: "key".to_owned() };
        let server = "https://127.0.0.1:6443";
        let kubeconfig = Kubeconfig { server, authority_pem: "ca", user: "skiff-admin", identity: &identity };
        kubeconfig.merge(&path, "x").expect("the folder is ours");
        kubeconfig.merge(&path, "x").expect("it may be merged again");

        let merged = yaml::decode(&fs::read(&path).expect("it was written")).expect("it is YAML");
        assert_eq!(merged.str_at(&["current-context"]), "x");
        let names: Vec<&str> = merged.items_at(&["contexts"]).iter().map(|entry| entry.str_at(&["name"])).collect();
        assert_eq!(names, ["a", "x"]);
        assert_eq!(merged.items_at(&["contexts"])[1].str_at(&["context", "user"]), "x");
        assert_eq!(merged.items_at(&["clusters"])[0].str_at(&["cluster", "server"]), server);
        assert_eq!(merged.at(&["preferences", "colors"]), Some(&Value::Bool(true)));
        fs::write(folder.join("config.lock"), "").expect("the folder is ours");
        assert!(kubeconfig.merge(&path, "x").is_err_and(|error| matches!(error, MergeError::Locked(_))));
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
