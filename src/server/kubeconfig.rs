//! The file that lets kubectl in.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::certificates::Identity;

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

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // What is left over is worth nothing; the first error is the one to tell.
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
}
