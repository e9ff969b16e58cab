//! `#[skiff::test]` of helpers/rust, with kube.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Discovery, ResourceExt as _};
use skiff::{ControlPlane, Error, Options};

const PROGRAM: &str = env!("CARGO_BIN_EXE_skiff");
/// How long a server may take to go, also on a busy machine.
const GONE_MAX: Duration = Duration::from_secs(60);

#[skiff::test(program = PROGRAM)]
async fn a_test_gets_what_it_asks_for(client: Client, plane: ControlPlane) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&PostParams::default(), &named("settings")).await?;
    let asked = "create /api/v1/namespaces/default/configmaps? 201 ";
    // A line is told behind its answer.
    while !plane.log().iter().any(|line| line.starts_with(asked)) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

#[skiff::test(program = PROGRAM, crds = ["crd-examples/rules/crd.yaml"])]
async fn definitions_are_served_from_the_start(client: Client) {
    let discovery = Discovery::new(client).run().await.expect("the server answers");
    let release = GroupVersionKind::gvk("rules.example.com", "v1", "Release");
    assert!(discovery.resolve_gvk(&release).is_some());
}

#[skiff::test(program = PROGRAM)]
#[should_panic(expected = "as it should")]
async fn a_test_may_be_expected_to_panic() {
    panic!("as it should");
}

/// A hundred tests on as many threads as there are processors.
#[test]
fn a_hundred_tests_see_their_own_objects_alone() {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            scope.spawn(move || (worker..100).step_by(workers).for_each(one_of_a_hundred));
        }
    });
}

fn one_of_a_hundred(number: usize) {
    // helpers/measure sets the variable.
    let options = options().own_process(env::var_os("SKIFF_TEST_OWN_PROCESS").is_some());
    skiff::run(options, async |plane| {
        let maps: Api<ConfigMap> = Api::namespaced(plane.client().await.expect("it is ready"), "default");
        let name = format!("settings-{number}");
        maps.create(&PostParams::default(), &named(&name)).await.expect("there is none");
        let kept = maps.list(&ListParams::default()).await.expect("the server answers");
        let mut names = kept.iter().map(|map| map.name_any()).filter(|name| name != "kube-root-ca.crt");
        assert_eq!((names.next(), names.next()), (Some(name), None));
    });
}

fn options() -> Options {
    Options::new().program(PROGRAM)
}

fn named(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..Default::default() }, ..Default::default() }
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let failed = ControlPlane::start(options().crds(["nowhere"]));
    assert!(matches!(failed, Err(Error::Start(said)) if said.contains("nowhere")));
}

#[test]
fn nothing_is_left_at_the_end() {
    let plane = ControlPlane::start(options().arguments(["--authorization-mode=RBAC"])).expect("it starts");
    let kubeconfig = plane.kubeconfig().to_owned();
    assert!(kubeconfig.exists());
    drop(plane);
    assert!(!folder_of(&kubeconfig).exists());
}

/// This program runs itself for the two tests of what a process leaves.
const PART: &str = "SKIFF_TEST_PART";

#[test]
fn nothing_is_left_after_a_kill() {
    if env::var_os(PART).is_some() {
        let plane = ControlPlane::start(options()).expect("it starts");
        println!("\nkubeconfig {}", plane.kubeconfig().display());
        std::thread::sleep(GONE_MAX);
        return;
    }
    let mut killed = part().stdout(Stdio::piped()).spawn().expect("it runs");
    let lines = std::io::BufRead::lines(std::io::BufReader::new(killed.stdout.take().expect("it is a pipe")));
    let told = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("kubeconfig ").map(PathBuf::from));
    let kubeconfig = told.expect("it says where");
    killed.kill().expect("it runs");
    killed.wait().expect("it is ours");
    let begun = std::time::Instant::now();
    while folder_of(&kubeconfig).exists() {
        assert!(begun.elapsed() < GONE_MAX, "{} is there", kubeconfig.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn tests_with_the_same_options_have_one_server() {
    let folder = |options: Options| {
        let folder = skiff::run(options, async |plane| Ok::<_, Error>(folder_of(plane.kubeconfig()).to_owned()));
        folder.expect("the test passes")
    };
    let first = folder(options());
    assert_eq!(folder(options()), first);
    for other in [options().arguments(["--authorization-mode=RBAC"]), options().own_process(true)] {
        assert_ne!(folder(other), first);
    }
}

/// What is told of a test that fails is what its control plane alone was asked.
#[test]
fn a_failed_test_is_told_what_its_control_plane_was_asked() {
    if env::var_os(PART).is_some() {
        let failing = async |plane: ControlPlane| {
            let others = plane.fork().await.expect("it is copied");
            ask(&others, "others").await;
            ask(&plane, "own").await;
            panic!("on purpose");
        };
        return skiff::run_prepared(options(), async |_: ControlPlane| (), failing);
    }
    let failed = part().output().expect("it runs");
    assert!(!failed.status.success());
    let told = String::from_utf8_lossy(&failed.stderr);
    assert!(told.contains("skiff: https://127.0.0.1:") && told.contains(" was asked\n"), "{told}");
    assert!(told.contains("\nget /api/v1/namespaces/default/configmaps/own 404 "), "{told}");
    assert!(!told.contains("configmaps/others"), "{told}");
}

/// Asks for what is not there, and waits until that is told, which is behind the answer.
async fn ask(plane: &ControlPlane, name: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(plane.client().await.expect("it is ready"), "default");
    maps.get(name).await.expect_err("there is none");
    while !plane.log().iter().any(|line| line.contains(&format!("/configmaps/{name} 404 "))) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The running test again, which is to do its part.
fn part() -> Command {
    let mut command = Command::new(env::current_exe().expect("the system tells"));
    let test = std::thread::current().name().expect("tests have names").to_owned();
    command.args(["--exact", "--nocapture", "--test-threads=2", &test]).env(PART, "1");
    command
}

fn folder_of(kubeconfig: &Path) -> &Path {
    kubeconfig.parent().expect("it is in a folder")
}
