//! The credentials of the server as configured by the flags of kube-apiserver: its certificates,
//! the CAs that it trusts, the headers of authenticating proxies, and the origins of web pages.
//!
//! Source: `k8s.io/apiserver/pkg/server/options` and `k8s.io/component-base/cli/flag`, release
//! 1.36.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::super::credentials::{GivenCredentials, server_names};
use super::files::PathError;
use super::flags::Flags;
use crate::auth::RequestHeader;
use crate::private;
use crate::server::{AllowedOrigins, Authority, CertificateError, Identity, NamedIdentity, OriginError, Trust};
use crate::value::go_quote;

const DEFAULT_CERTIFICATES: &str = "/var/run/kubernetes";

/// Why the credentials can't be loaded, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The CA of clients is also the CA of proxies, and any proxy name is allowed.
    #[error(
        "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; \
         --requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating \
         proxy headers for arbitrary users"
    )]
    OverlappingAuthorities,
    #[error("--cors-allowed-origins has an invalid regular expression: {0}, help: {ORIGINS_HELP}")]
    Origins(#[from] OriginError),
    #[error("invalid argument {} for \"--tls-sni-cert-key\" flag: {why}", go_quote(.text))]
    NamedIdentity { text: String, why: &'static str },
    #[error("failed to load SNI cert and key: {0}")]
    NamedFile(PathError),
    #[error(transparent)]
    File(#[from] PathError),
    #[error("--{flag} {path}: data does not contain any valid RSA or ECDSA certificates")]
    NoCertificates { flag: &'static str, path: String },
    #[error("missing filename for serving cert")]
    HalfIdentity,
    #[error(transparent)]
    Make(#[from] CertificateError),
    #[error("error creating self-signed certificates: {}: {source}", .folder.display())]
    Keep { folder: PathBuf, source: io::Error },
}

/// The help for invalid origins. Source: apiserver 1.36.
const ORIGINS_HELP: &str = "List of allowed origins for CORS, comma separated. An allowed origin can be a regular expression to \
support subdomain matching. If this list is empty CORS will not be enabled. Please ensure each expression matches the entire \
hostname by anchoring to the start with '^' or including the '//' prefix, and by anchoring to the end with '$' or including the \
':' port separator suffix. Examples of valid expressions are '//example\\.com(:|$)' and '^https://example\\.com(:|$)'";

/// Loads the credentials that the flags configure.
///
/// # Errors
///
/// A file can't be read or is invalid, or flags contradict each other.
pub fn credentials(flags: &Flags, listen: SocketAddr) -> Result<GivenCredentials, CredentialsError> {
    let trust = Trust {
        clients: certificates(flags, "client-ca-file")?,
        proxies: certificates(flags, "requestheader-client-ca-file")?,
        proxy_names: flags.list("requestheader-allowed-names"),
    };
    if trust.proxy_names.is_empty() && trust.proxies.iter().any(|one| trust.clients.contains(one)) {
        return Err(CredentialsError::OverlappingAuthorities);
    }
    let names = |name: &str| flags.list(name).into_iter().map(|header| header.to_lowercase()).collect();
    let request_header = RequestHeader {
        user: names("requestheader-username-headers"),
        group: names("requestheader-group-headers"),
        uid: names("requestheader-uid-headers"),
        extra_prefixes: names("requestheader-extra-headers-prefix"),
    };
    let allowed_origins = allowed_origins(flags)?;
    Ok(GivenCredentials {
        identity: identity(flags, listen)?,
        named: named(flags)?,
        trust,
        request_header,
        allowed_origins,
    })
}

/// The origins of web pages that may read responses.
fn allowed_origins(flags: &Flags) -> Result<Arc<AllowedOrigins>, CredentialsError> {
    Ok(Arc::new(AllowedOrigins::parse(&flags.list("cors-allowed-origins"))?))
}

/// The certificates for certain server names.
fn named(flags: &Flags) -> Result<Vec<NamedIdentity>, CredentialsError> {
    flags.texts("tls-sni-cert-key").iter().map(|text| named_identity(text)).collect()
}

/// Parses `CERTIFICATE,KEY[:NAME,NAME...]`, and reads the files.
fn named_identity(text: &str) -> Result<NamedIdentity, CredentialsError> {
    let invalid = |why| CredentialsError::NamedIdentity { text: text.to_owned(), why };
    let (files, names) = text.split_once(':').map_or((text, None), |(files, names)| (files, Some(names.trim())));
    if names == Some("") {
        return Err(invalid("empty names list is not allowed"));
    }
    let files: Vec<&str> = files.split(',').map(str::trim).collect();
    let [certificate, key] = files[..] else {
        return Err(invalid("expected comma separated certificate and key file paths"));
    };
    let read =
        |path: &str| fs::read_to_string(path).map_err(PathError::open(path)).map_err(CredentialsError::NamedFile);
    let identity = Identity { certificate_pem: read(certificate)?, key_pem: read(key)? };
    let names = names.into_iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned());
    Ok(NamedIdentity { identity, names: names.collect() })
}

/// All certificates in the file of a flag.
fn certificates(flags: &Flags, name: &'static str) -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
    let Some(path) = flags.text(name) else { return Ok(Vec::new()) };
    let text = fs::read(path).map_err(PathError::open(path))?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&text).filter_map(Result::ok).collect();
    if found.is_empty() {
        Err(CredentialsError::NoCertificates { flag: name, path: path.to_owned() })
    } else {
        Ok(found)
    }
}

/// The server's certificate: the given one, or the one in the certificate folder, which is created
/// if it is missing.
fn identity(flags: &Flags, listen: SocketAddr) -> Result<Identity, CredentialsError> {
    let read = |path: &Path| fs::read_to_string(path).map_err(PathError::open(path.display()));
    match (flags.text("tls-cert-file"), flags.text("tls-private-key-file")) {
        (Some(certificate), Some(key)) => {
            return Ok(Identity { certificate_pem: read(Path::new(certificate))?, key_pem: read(Path::new(key))? });
        }
        (None, None) => {}
        _ => return Err(CredentialsError::HalfIdentity),
    }
    let folder = PathBuf::from(flags.text("cert-dir").unwrap_or(DEFAULT_CERTIFICATES));
    let (certificate, key) = (folder.join("apiserver.crt"), folder.join("apiserver.key"));
    if certificate.exists() && key.exists() {
        return Ok(Identity { certificate_pem: read(&certificate)?, key_pem: read(&key)? });
    }
    let identity = make_identity(listen)?;
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&certificate, &identity.certificate_pem))
        .and_then(|()| write_private(&key, &identity.key_pem));
    match written {
        Ok(()) => Ok(identity),
        Err(source) => Err(CredentialsError::Keep { folder, source }),
    }
}

/// Issues a certificate, followed by that of the new CA that signed it; the CA's key is not kept.
fn make_identity(listen: SocketAddr) -> Result<Identity, CertificateError> {
    let authority = Authority::generate()?;
    let identity = authority.issue_server(&server_names(listen))?;
    let chain = format!("{}{}", identity.certificate_pem, authority.certificate_pem());
    Ok(Identity { certificate_pem: chain, key_pem: identity.key_pem })
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use io::Write as _;
    private::options().write(true).create(true).truncate(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::flags::{Manner, Table};
    use super::*;

    #[test]
    fn half_an_identity_is_not_taken() {
        let listen = SocketAddr::from(([127, 0, 0, 1], 1));
        let of = |argument: &str| {
            let table = Table::new(Manner::Pflag, include_str!("../../../schemas/kube-apiserver-flags.txt"));
            let flags = table.parse([argument.to_owned()]).expect("it is taken");
            identity(&flags, listen).err().map(|error| error.to_string())
        };
        let missing = Some("missing filename for serving cert".to_owned());
        assert_eq!([of("--tls-cert-file=/x"), of("--tls-private-key-file=/x")], [missing.clone(), missing]);
    }

    #[test]
    fn certificates_for_names_are_two_files_and_the_names() {
        let fault = |text: &str| named_identity(text).err().map(|error| error.to_string());
        let invalid =
            |text: &str, why: &str| Some(format!("invalid argument {text:?} for \"--tls-sni-cert-key\" flag: {why}"));
        assert_eq!(fault("a"), invalid("a", "expected comma separated certificate and key file paths"));
        assert_eq!(fault("a,b:"), invalid("a,b:", "empty names list is not allowed"));
        let missing = "failed to load SNI cert and key: open /nonexistent: no such file or directory";
        assert_eq!(fault("/nonexistent,b:n").as_deref(), Some(missing));
    }
}
