//! `skiff plane`: creates, copies, lists and deletes the control planes of a running server, and
//! sets their clocks.
//!
//! Input: a kubeconfig of the main control plane, found as by kubectl or in a data folder. Output: the
//! responses of its `/skiff/v1`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::Bytes;
use clap::{Args, Subcommand, ValueEnum};
use hyper::Method;

use super::cluster::{ClusterClient, ClusterError, Config, connect};
use super::command_error::CommandError;
use super::print::{output, tell};
use crate::http::MAIN;
use crate::object;
use crate::server::write_private;
use crate::value::{Map, Value, json};

const PLANES: &str = "/skiff/v1/planes";
const CLOCK: &str = "/skiff/v1/clock";

/// Make, copy, list and delete control planes of a running server, and set their clocks
///
/// One `skiff serve` serves many control planes, each with a port, an authority and a kubeconfig of its own: a copy takes
/// milliseconds, and shares what it does not change.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff plane fork --name test-1 --write test-1.kubeconfig\n  kubectl --kubeconfig test-1.kubeconfig get namespaces\n  \
                  skiff plane create empty --profile cluster\n  skiff plane clock test-1 --advance 24h\n  skiff plane delete test-1"
)]
pub struct Plane {
    #[command(subcommand)]
    command: PlaneCommand,
}

#[derive(Subcommand)]
enum PlaneCommand {
    /// Make an empty control plane
    Create(Create),
    /// Make a copy of a control plane
    Fork(Fork),
    /// List the control planes beside the main one
    List(ListPlanes),
    /// Delete control planes; their files stay
    Delete(Delete),
    /// Show the clock of a control plane, or move it
    Clock(Box<ClockArgs>),
}

/// Which server is meant.
#[derive(Args)]
struct Access {
    /// The data folder of the server, in which its kubeconfig is
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    data_dir: Option<PathBuf>,

    /// The kubeconfig of the main control plane, if not that of KUBECONFIG or of ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig, if not the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// What a new one is to be.
#[derive(Args)]
struct New {
    /// Its name; one is made up where there is none
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The SQLite file to keep it in, on the server's machine, in place of memory
    #[arg(long, value_name = "FILE")]
    path: Option<PathBuf>,

    /// Where to write its kubeconfig
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Which controllers `*` stands for, server or cluster, as with `skiff serve`; without this and the two options that
    /// follow, it has the controllers and nodes of the process
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,

    /// Controllers to run, as with `skiff serve`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', allow_hyphen_values = true)]
    controllers: Option<Vec<String>>,

    /// Nodes that nothing is behind, as with `skiff serve`: 3,cpu=8,label=zone=a
    #[arg(long, value_name = "N[,NAME=AMOUNT...]")]
    simulate_nodes: Option<String>,

    #[arg(short, long, value_enum, default_value_t)]
    output: PlaneOutput,

    #[command(flatten)]
    access: Access,
}

#[derive(Args)]
struct Create {
    /// Its name; one is made up where there is none
    #[arg(value_name = "NAME", conflicts_with = "name")]
    named: Option<String>,

    #[command(flatten)]
    new: New,
}

#[derive(Args)]
struct Fork {
    /// What it is a copy of
    #[arg(default_value = MAIN)]
    from: String,

    #[command(flatten)]
    new: New,
}

#[derive(Args)]
struct ListPlanes {
    #[arg(short, long, value_enum, default_value_t)]
    output: PlaneOutput,

    #[command(flatten)]
    access: Access,
}

#[derive(Args)]
struct Delete {
    #[arg(required = true)]
    names: Vec<String>,

    #[command(flatten)]
    access: Access,
}

#[derive(Args)]
struct ClockArgs {
    #[arg(default_value = MAIN)]
    name: String,

    /// The time that it is to show, as in 2030-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "offset")]
    set: Option<String>,

    /// How far it is to be ahead of the machine's clock, as in 1h30m
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    offset: Option<String>,

    /// How far it is to be moved on, or back
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    advance: Option<String>,

    /// Let it stand still
    #[arg(long, conflicts_with = "run")]
    freeze: bool,

    /// Let it run on from where it stands
    #[arg(long)]
    run: bool,

    /// Let it show the machine's time
    #[arg(long, conflicts_with_all = ["set", "offset", "advance", "freeze", "run"])]
    reset: bool,

    #[arg(short, long, value_enum, default_value_t)]
    output: PlaneOutput,

    #[command(flatten)]
    access: Access,
}

/// How the answer is shown
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum PlaneOutput {
    #[default]
    Text,
    Json,
}

impl Plane {
    /// Runs the subcommand. Exit codes: 0 if done, 1 for a failure.
    pub async fn run(self) -> ExitCode {
        let done = match self.command {
            PlaneCommand::Create(Create { named, new }) => {
                New { name: new.name.clone().or(named), ..new }.run(None).await
            }
            PlaneCommand::Fork(Fork { from, new }) => new.run(Some(&from)).await,
            PlaneCommand::List(list) => list.run().await,
            PlaneCommand::Delete(delete) => delete.run().await,
            PlaneCommand::Clock(clock) => clock.run().await,
        };
        match done {
            Ok(text) => output(text, ExitCode::SUCCESS),
            Err(why) => {
                tell(why);
                ExitCode::FAILURE
            }
        }
    }
}

impl Access {
    fn client(&self) -> Result<ClusterClient, ClusterError> {
        let in_folder = self.data_dir.as_ref().map(|folder| folder.join("kubeconfig"));
        let kubeconfig = in_folder.as_ref().or(self.kubeconfig.as_ref());
        connect(kubeconfig.map(PathBuf::as_path), self.context.as_deref())
    }
}

/// Sends a request, and decodes the response. Errors: why there is none, or the server's message.
async fn ask(client: &ClusterClient, method: Method, path: &str, body: Option<&Value>) -> Result<Value, CommandError> {
    let content = body.map(|body| ("application/json", Bytes::from(json::encode(body))));
    let url = client.url();
    let answer = client.call(method, path, content).await;
    let (code, bytes) = answer.map_err(|source| CommandError::Unasked { url: url.to_owned(), source })?;
    let answer = json::decode(&bytes).unwrap_or_default();
    if matches!(code, 200 | 201) {
        return Ok(answer);
    }
    Err(CommandError::Said(match answer.str_at(&["message"]) {
        "" => format!("`{url}{path}` answered {code}"),
        message => message.to_owned(),
    }))
}

impl New {
    async fn run(&self, from: Option<&str>) -> Result<String, CommandError> {
        let client = self.access.client()?;
        // The server has another working directory.
        let path = self.path.as_deref().map(std::path::absolute).transpose()?;
        let path = path
            .as_deref()
            .map(|path| path.to_str().ok_or_else(|| CommandError::said("the path is not UTF-8")))
            .transpose()?;
        let mut wanted = Map::default();
        let texts = [
            ("name", self.name.as_deref()),
            ("from", from),
            ("path", path),
            ("profile", self.profile.as_deref()),
            ("simulateNodes", self.simulate_nodes.as_deref()),
        ];
        for (field, text) in texts {
            if let Some(text) = text {
                wanted.insert(field, Value::from(text));
            }
        }
        if let Some(names) = &self.controllers {
            let names = names.iter().map(|name| Value::from(name.as_str()));
            wanted.insert("controllers", Value::Array(names.collect()));
        }
        let made = ask(&client, Method::POST, PLANES, Some(&Value::Object(wanted))).await?;
        if let Some(file) = &self.write {
            write_kubeconfig(file, &made)?;
        }
        Ok(match self.output {
            PlaneOutput::Json => shown(&made),
            PlaneOutput::Text => format!("{}  {}\n", made.str_at(&["name"]), made.str_at(&["url"])),
        })
    }
}

fn write_kubeconfig(file: &Path, plane: &Value) -> Result<(), CommandError> {
    let written = write_private(file, plane.str_at(&["kubeconfig"]).as_bytes());
    written.map_err(CommandError::write(file))
}

fn shown(value: &Value) -> String {
    let mut text = String::from_utf8_lossy(&json::encode(value)).into_owned();
    text.push('\n');
    text
}

impl ListPlanes {
    async fn run(&self) -> Result<String, CommandError> {
        let all = ask(&self.access.client()?, Method::GET, PLANES, None).await?;
        if self.output == PlaneOutput::Json {
            return Ok(shown(&all));
        }
        let rows: Vec<[&str; 4]> = all
            .items_at(&["items"])
            .iter()
            .map(|plane| ["name", "from", "url", "created"].map(|field| plane.str_at(&[field])))
            .collect();
        let width = |at: usize| rows.iter().map(|row| row[at].len()).max().unwrap_or_default();
        let (name_width, from_width, url_width) = (width(0), width(1), width(2));
        let line = |[name, from, url, created]: &[&str; 4]| {
            format!("{name:<name_width$}  {from:<from_width$}  {url:<url_width$}  {created}\n")
        };
        Ok(rows.iter().map(line).collect())
    }
}

impl Delete {
    async fn run(&self) -> Result<String, CommandError> {
        let client = self.access.client()?;
        for name in &self.names {
            ask(&client, Method::DELETE, &format!("{PLANES}/{name}"), None).await?;
        }
        Ok(String::new())
    }
}

impl ClockArgs {
    async fn run(&self) -> Result<String, CommandError> {
        let main = self.access.client()?;
        let client = if self.name == MAIN {
            main
        } else {
            // Each plane's clock is served on its own port.
            let plane = ask(&main, Method::GET, &format!("{PLANES}/{}", self.name), None).await?;
            ClusterClient::new(Config::parse(plane.str_at(&["kubeconfig"])).map_err(ClusterError::from)?)?
        };
        let clock = match self.change() {
            Some(change) => ask(&client, Method::PUT, CLOCK, Some(&change)).await?,
            None => ask(&client, Method::GET, CLOCK, None).await?,
        };
        if self.output == PlaneOutput::Json {
            return Ok(shown(&clock));
        }
        let stands = if clock.get("frozen").and_then(Value::as_bool) == Some(true) { "  frozen" } else { "" };
        Ok(format!("{}  {}{stands}\n", clock.str_at(&["time"]), clock.str_at(&["offset"])))
    }

    /// The change of the clock; `None` if it is only to be shown.
    fn change(&self) -> Option<Value> {
        let mut change = Map::default();
        for (field, text) in [("time", &self.set), ("offset", &self.offset), ("advance", &self.advance)] {
            if let Some(text) = text {
                change.insert(field, Value::from(text.as_str()));
            }
        }
        if self.freeze || self.run {
            change.insert("frozen", Value::Bool(self.freeze));
        }
        let wanted = self.reset || change.iter().next().is_some();
        wanted.then(|| {
            if self.reset {
                object! {}
            } else {
                Value::Object(change)
            }
        })
    }
}
