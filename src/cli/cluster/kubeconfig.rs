//! A kubeconfig: a server's address, how its certificate is verified, and the client's credentials.
//!
//! Input: the files that kubectl would read. Output: one [`Config`]. Credential plugins are run; proxies
//! and the older auth providers are rejected by name.
//!
//! Source: Kubernetes documentation, "Organizing Cluster Access Using kubeconfig Files" and
//! "client-go credential plugins".

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{env, fs};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::object;
use crate::value::{Map, Value, json, yaml};

/// Why a kubeconfig can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    #[error("the kubeconfig can't be read: {0}")]
    Text(#[from] yaml::YamlError),
    #[error("the kubeconfig `{}` can't be read: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the kubeconfig `{}` can't be read: {source}", path.display())]
    FileText { path: PathBuf, source: yaml::YamlError },
    #[error("no file that KUBECONFIG names is there")]
    NoFile,
    #[error("the kubeconfig has no current context: name one with --context")]
    NoContext,
    #[error("the kubeconfig has no {field} `{name}`")]
    NoEntry { field: &'static str, name: String },
    #[error("the kubeconfig has a proxy-url, which skiff can't use")]
    Proxy,
    #[error("the kubeconfig has an auth-provider, which clients no longer support: use an exec plugin")]
    AuthProvider,
    #[error("the user `{0}` of the kubeconfig has an exec plugin, which is not run here")]
    PluginOf(String),
    #[error("the kubeconfig has a user with as-uid, as-groups or as-user-extra, but without as")]
    NobodyToBe,
    #[error("the exec plugin of the kubeconfig gave neither a token nor a certificate")]
    NoCredential,
    #[error("`{field}-data` of the kubeconfig: {source}")]
    Data { field: String, source: base64::DecodeError },
    #[error("`{}` of the kubeconfig can't be read: {source}", path.display())]
    Named { path: PathBuf, source: io::Error },
    #[error("the exec plugin `{name}` of the kubeconfig: {fault}{}{hint}", if hint.is_empty() { "" } else { "\n" })]
    Plugin {
        name: String,
        hint: String,
        #[source]
        fault: PluginFault,
    },
}

/// Why a credential plugin failed.
#[derive(Debug, thiserror::Error)]
pub enum PluginFault {
    #[error(transparent)]
    Start(#[from] io::Error),
    #[error("{0}")]
    Status(ExitStatus),
    #[error(transparent)]
    Answer(#[from] json::JsonError),
}

/// How to reach a server.
#[derive(Debug, Default)]
pub struct Config {
    /// `https://host:port`, optionally with a path.
    pub server: String,
    /// CA certificates in PEM; empty for those that the system trusts.
    pub authority_pem: Vec<u8>,
    /// Whether the server's certificate is not verified.
    pub is_insecure: bool,
    /// The name that the certificate must match, if not the host.
    pub server_name: Option<String>,
    /// A client certificate and its key, in PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    pub headers: Vec<(String, String)>,
}

/// The credentials of users by name, and the name of the current context's user.
pub type Users = (Vec<(String, Config)>, Option<String>);

/// An entry of a file, and the folder that its relative paths refer to.
struct KubeconfigEntry {
    value: Value,
    folder: PathBuf,
}

impl Config {
    /// Reads the files, and resolves `context` or the current context.
    ///
    /// # Errors
    ///
    /// Something is missing, invalid or not supported.
    pub fn read(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Self, KubeconfigError> {
        Config::find(&read_files(kubeconfig)?, context)
    }

    /// Parses the text of a file without relative paths, and resolves its current context.
    ///
    /// # Errors
    ///
    /// Something is missing, invalid or not supported.
    pub fn parse(text: &str) -> Result<Self, KubeconfigError> {
        let value = yaml::decode(text.as_bytes())?;
        Config::find(&[KubeconfigEntry { value, folder: PathBuf::new() }], None)
    }

    /// The credentials of every user of a file by name, and the user of the current context.
    ///
    /// # Errors
    ///
    /// Something is missing, invalid or not supported: plugins are not run, as their credentials
    /// expire.
    pub fn users(path: &Path) -> Result<Users, KubeconfigError> {
        let file = read_file(path)?;
        let mut users = Vec::new();
        for listed in file.value.items_at(&["users"]) {
            let name = listed.str_at(&["name"]);
            let user =
                KubeconfigEntry { value: listed.get("user").cloned().unwrap_or_default(), folder: file.folder.clone() };
            if user.value.get("exec").is_some_and(|plugin| !plugin.is_null()) {
                return Err(KubeconfigError::PluginOf(name.to_owned()));
            }
            let mut config = Config::default();
            config.add_user(&user)?;
            users.push((name.to_owned(), config));
        }
        let current = file.value.str_at(&["current-context"]);
        let mut contexts = file.value.items_at(&["contexts"]).iter();
        let context = contexts.find(|context| !current.is_empty() && context.str_at(&["name"]) == current);
        let user = context.map(|context| context.str_at(&["context", "user"]).to_owned());
        Ok((users, user.filter(|user| !user.is_empty())))
    }

    fn find(files: &[KubeconfigEntry], context: Option<&str>) -> Result<Self, KubeconfigError> {
        let current = files.iter().map(|file| file.value.str_at(&["current-context"])).find(|name| !name.is_empty());
        let name = context.or(current).ok_or(KubeconfigError::NoContext)?;
        let context = find(files, "contexts", "context", name)?;
        let cluster = find(files, "clusters", "cluster", context.value.str_at(&["cluster"]))?;
        let mut config = Config::of_cluster(&cluster)?;
        let user = context.value.str_at(&["user"]);
        if !user.is_empty() {
            config.add_user(&find(files, "users", "user", user)?)?;
        }
        Ok(config)
    }

    fn of_cluster(cluster: &KubeconfigEntry) -> Result<Self, KubeconfigError> {
        let text = |name: &str| cluster.value.str_at(&[name]);
        if !text("proxy-url").is_empty() {
            return Err(KubeconfigError::Proxy);
        }
        Ok(Config {
            server: text("server").to_owned(),
            authority_pem: cluster.data("certificate-authority")?.unwrap_or_default(),
            is_insecure: cluster.value.get("insecure-skip-tls-verify").and_then(Value::as_bool) == Some(true),
            server_name: Some(text("tls-server-name").to_owned()).filter(|name| !name.is_empty()),
            ..Config::default()
        })
    }

    fn add_user(&mut self, user: &KubeconfigEntry) -> Result<(), KubeconfigError> {
        if user.value.get("auth-provider").is_some() {
            return Err(KubeconfigError::AuthProvider);
        }
        if let (Some(certificate), Some(key)) = (user.data("client-certificate")?, user.data("client-key")?) {
            self.identity = Some((certificate, key));
        }
        let text = |name: &str| user.value.str_at(&[name]);
        let token_file = text("tokenFile");
        if !token_file.is_empty() {
            let token = user.read(token_file)?;
            self.set_token(String::from_utf8_lossy(&token).trim());
        } else if !text("token").is_empty() {
            self.set_token(text("token"));
        } else if !text("username").is_empty() {
            let secret = STANDARD.encode(format!("{}:{}", text("username"), text("password")));
            self.headers.push(("Authorization".to_owned(), format!("Basic {secret}")));
        }
        self.impersonate(&user.value)?;
        match user.value.get("exec").filter(|plugin| !plugin.is_null()) {
            Some(plugin) => self.add_credential(&run_plugin(plugin, &user.folder)?),
            None => Ok(()),
        }
    }

    /// Acts as another user, where the entry of a user asks for it.
    fn impersonate(&mut self, user: &Value) -> Result<(), KubeconfigError> {
        let (name, uid, groups) = (user.str_at(&["as"]), user.str_at(&["as-uid"]), user.items_at(&["as-groups"]));
        let extra = user.get("as-user-extra").and_then(Value::as_object).filter(|extra| !extra.is_empty());
        if name.is_empty() {
            let is_asked = !uid.is_empty() || !groups.is_empty() || extra.is_some();
            return if is_asked { Err(KubeconfigError::NobodyToBe) } else { Ok(()) };
        }
        let mut add = |header: String, value: &str| self.headers.push((header, value.to_owned()));
        add("Impersonate-User".to_owned(), name);
        if !uid.is_empty() {
            add("Impersonate-Uid".to_owned(), uid);
        }
        groups.iter().filter_map(Value::as_str).for_each(|group| add("Impersonate-Group".to_owned(), group));
        for (key, values) in extra.into_iter().flat_map(Map::iter) {
            let values = values.as_array().unwrap_or_default().iter().filter_map(Value::as_str);
            values.for_each(|value| add(format!("Impersonate-Extra-{}", escaped(key)), value));
        }
        Ok(())
    }

    fn set_token(&mut self, token: &str) {
        self.headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }

    /// Adds the credentials that a plugin has printed.
    fn add_credential(&mut self, credential: &Value) -> Result<(), KubeconfigError> {
        let text = |name| credential.str_at(&["status", name]);
        if !text("token").is_empty() {
            self.set_token(text("token"));
        }
        if !text("clientCertificateData").is_empty() {
            let pem = |name| text(name).as_bytes().to_vec();
            self.identity = Some((pem("clientCertificateData"), pem("clientKeyData")));
        }
        if text("token").is_empty() && self.identity.is_none() { Err(KubeconfigError::NoCredential) } else { Ok(()) }
    }
}

impl KubeconfigEntry {
    /// The base64 data of `name-data`, or the contents of the file that `name` refers to.
    fn data(&self, name: &str) -> Result<Option<Vec<u8>>, KubeconfigError> {
        let data = self.value.str_at(&[&format!("{name}-data")]);
        if !data.is_empty() {
            let decoded = STANDARD.decode(data);
            return decoded.map(Some).map_err(|source| KubeconfigError::Data { field: name.to_owned(), source });
        }
        match self.value.str_at(&[name]) {
            "" => Ok(None),
            file => self.read(file).map(Some),
        }
    }

    fn read(&self, file: &str) -> Result<Vec<u8>, KubeconfigError> {
        let path = self.folder.join(file);
        fs::read(&path).map_err(|source| KubeconfigError::Named { path, source })
    }
}

/// A key as a part of a header's name: with percent-escapes for all bytes that are not allowed there, and for `%` itself.
fn escaped(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Reads the files; the first one has precedence.
fn read_files(kubeconfig: Option<&Path>) -> Result<Vec<KubeconfigEntry>, KubeconfigError> {
    if let Some(path) = kubeconfig {
        return Ok(vec![read_file(path)?]);
    }
    let paths = match env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()) {
        // Missing files are skipped.
        Some(paths) => env::split_paths(&paths).filter(|path| path.is_file()).collect(),
        None => vec![env::home_dir().unwrap_or_default().join(".kube/config")],
    };
    if paths.is_empty() {
        return Err(KubeconfigError::NoFile);
    }
    paths.iter().map(|path| read_file(path)).collect()
}

fn read_file(path: &Path) -> Result<KubeconfigEntry, KubeconfigError> {
    let named = || path.to_owned();
    let bytes = fs::read(path).map_err(|source| KubeconfigError::File { path: named(), source })?;
    let value = yaml::decode(&bytes).map_err(|source| KubeconfigError::FileText { path: named(), source })?;
    Ok(KubeconfigEntry { value, folder: path.parent().map(Path::to_owned).unwrap_or_default() })
}

/// The entry `name` of the first file that has it.
fn find(
    files: &[KubeconfigEntry],
    list: &str,
    field: &'static str,
    name: &str,
) -> Result<KubeconfigEntry, KubeconfigError> {
    for file in files {
        let entries = file.value.get(list).and_then(Value::as_array).unwrap_or_default();
        if let Some(entry) = entries.iter().find(|entry| entry.str_at(&["name"]) == name) {
            let value = entry.get(field).cloned().unwrap_or_default();
            return Ok(KubeconfigEntry { value, folder: file.folder.clone() });
        }
    }
    Err(KubeconfigError::NoEntry { field, name: name.to_owned() })
}

/// Runs a credential plugin, which may ask on the terminal, and returns what it prints.
fn run_plugin(plugin: &Value, folder: &Path) -> Result<Value, KubeconfigError> {
    let name = plugin.str_at(&["command"]);
    // A name with a slash is a path relative to the file's folder.
    let program = if name.contains('/') { folder.join(name) } else { PathBuf::from(name) };
    let failed = |fault: PluginFault| {
        let hint = plugin.str_at(&["installHint"]).to_owned();
        KubeconfigError::Plugin { name: name.to_owned(), hint, fault }
    };
    let version = plugin.str_at(&["apiVersion"]);
    let request = object! {
        "apiVersion" => version,
        "kind" => "ExecCredential",
        "spec" => object! { "interactive" => io::stdin().is_terminal() },
    };
    let mut command = Command::new(program);
    command.env("KUBERNETES_EXEC_INFO", json::encode_to_string(&request));
    command.stdin(Stdio::inherit()).stderr(Stdio::inherit());
    let list = |name: &str| plugin.get(name).and_then(Value::as_array).unwrap_or_default();
    command.args(list("args").iter().filter_map(Value::as_str));
    command.envs(list("env").iter().map(|entry| (entry.str_at(&["name"]), entry.str_at(&["value"]))));
    let output = command.output().map_err(|error| failed(error.into()))?;
    if !output.status.success() {
        return Err(failed(PluginFault::Status(output.status)));
    }
    json::decode(&output.stdout).map_err(|error| failed(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headers for a user with these fields.
    fn headers(user: &str) -> Result<Vec<String>, String> {
        let contexts = "contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c";
        let text =
            format!("{{{contexts}, clusters: [{{name: c, cluster: {{}}}}], users: [{{name: u, user: {{{user}}}}}]}}");
        let config = Config::parse(&text).map_err(|error| error.to_string())?;
        Ok(config.headers.into_iter().map(|(name, value)| format!("{name}: {value}")).collect())
    }

    #[test]
    fn another_user_is_impersonated_with_all_that_is_said_of_it() {
        let asked =
            headers("as: jane, as-uid: u1, as-groups: [dev, ops], as-user-extra: {'acme.com/team %': [a, b], x: []}");
        let extra = |value: &str| format!("Impersonate-Extra-acme.com%2Fteam%20%25: {value}");
        let expected =
            ["Impersonate-User: jane", "Impersonate-Uid: u1", "Impersonate-Group: dev", "Impersonate-Group: ops"];
        let expected: Vec<_> = expected.map(str::to_owned).into_iter().chain([extra("a"), extra("b")]).collect();
        assert_eq!(asked, Ok(expected));
    }

    #[test]
    fn parts_of_a_user_are_not_impersonated_without_its_name() {
        let refused =
            Err("the kubeconfig has a user with as-uid, as-groups or as-user-extra, but without as".to_owned());
        for user in ["as-uid: u1", "as-groups: [dev]", "as-user-extra: {x: [a]}"] {
            assert_eq!(headers(user), refused, "{user}");
        }
        assert_eq!(headers("as-groups: [], as-user-extra: {}"), Ok(Vec::new()));
    }
}
