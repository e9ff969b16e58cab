//! Copies of a control plane, faults and clocks by helpers/rust, with kube.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt as _};
use skiff::{ControlPlane, End, Error, Fault, Lost, Options, Workloads};
use tokio::task::JoinSet;

const PROGRAM: &str = env!("CARGO_BIN_EXE_skiff");

fn named(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..Default::default() }, ..Default::default() }
}

fn maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, "default")
}

async fn made(client: Client, name: &str) -> kube::Result<ConfigMap> {
    maps(client).create(&PostParams::default(), &named(name)).await
}

#[tokio::test]
async fn a_hundred_copies_have_faults_and_clocks_of_their_own() {
    let prepared = ControlPlane::start(Options::new().program(PROGRAM)).expect("it starts");
    made(prepared.client().await.expect("it is ready"), "prepared").await.expect("there is none");
    let mut tests: JoinSet<()> = (0..100).map(|number| one_of_a_hundred(prepared.clone(), number)).collect();
    while let Some(test) = tests.join_next().await {
        test.expect("the test passes");
    }
}

async fn one_of_a_hundred(prepared: ControlPlane, number: usize) {
    let plane = prepared.fork().await.expect("it is copied");
    let year = (2030 + number).to_string();
    plane.clock().set(&format!("{year}-01-01T00:00:00Z")).await.expect("it moves");
    let fault = Fault::error(403).verbs(["create"]).resource("configmaps").times(1);
    let fault = plane.inject(fault).await.expect("it makes sense");
    let client = plane.client().await.expect("it is ready");
    let name = format!("settings-{number}");
    let refused = made(client.clone(), &name).await.expect_err("the first is refused");
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
    let map = made(client.clone(), &name).await.expect("the second is not");
    let created = map.creation_timestamp().expect("it has one").0.to_string();
    assert!(created.starts_with(&year), "{created}");
    assert_eq!(fault.hits().await.expect("it is there"), 1);
    fault.remove().await.expect("it is there");
    let kept = maps(client).list(&ListParams::default()).await.expect("the server answers");
    let names = kept.iter().map(|map| map.name_any()).filter(|name| name != "kube-root-ca.crt");
    assert_eq!(names.collect::<Vec<_>>(), ["prepared", &name]);
}

#[skiff::test(program = PROGRAM)]
async fn a_copy_of_a_copy_knows_what_it_was_asked(plane: ControlPlane) -> Result<(), Error> {
    let fork = plane.fork().await?;
    let second = fork.fork().await?;
    maps(second.client().await?).get("none").await.expect_err("there is none");
    while !second.log().iter().any(|line| line.starts_with("get /api/v1/namespaces/default/configmaps/none 404")) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!fork.log().iter().any(|line| line.contains("none")));
    Ok(())
}

async fn with_an_object(client: Client) -> kube::Result<()> {
    // A second time it would be refused.
    made(client, "prepared").await.map(|_| ())
}

#[skiff::test(program = PROGRAM, prepared = with_an_object)]
async fn a_test_begins_with_what_is_prepared(client: Client) -> kube::Result<()> {
    maps(client).get("prepared").await.map(|_| ())
}

#[skiff::test(program = PROGRAM, prepared = with_an_object)]
async fn what_is_prepared_is_prepared_once(client: Client) -> kube::Result<()> {
    maps(client).get("prepared").await.map(|_| ())
}

#[skiff::test(program = PROGRAM, prepared = with_an_object, own_process = true)]
async fn a_server_of_its_own_is_prepared_too(client: Client) -> kube::Result<()> {
    maps(client).get("prepared").await.map(|_| ())
}

async fn refused(client: Client) -> kube::Result<ConfigMap> {
    maps(client).get("none").await
}

#[skiff::test(program = PROGRAM, prepared = refused)]
#[should_panic(expected = "the control plane can't be prepared: Api(")]
async fn what_can_not_be_prepared_says_why() {}

#[skiff::test(program = PROGRAM)]
async fn a_copy_has_controllers_and_nodes_of_its_own(plane: ControlPlane) -> Result<(), Error> {
    let workloads = Workloads::cluster().controllers(["*", "-cronjob"]).simulate_nodes("1,cpu=4");
    let fork = plane.fork_with(workloads).await?;
    let nodes: Api<Node> = Api::all(fork.client().await?);
    let node = loop {
        if let Some(node) = nodes.get_opt("node-0").await.map_err(Error::Client)? {
            break node;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    let capacity = node.status.and_then(|status| status.capacity).expect("it says what it has");
    assert_eq!(capacity["cpu"].0, "4");
    let bare = plane.fork().await?;
    let none: Api<Node> = Api::all(bare.client().await?);
    assert!(none.list(&ListParams::default()).await.map_err(Error::Client)?.items.is_empty());
    let refused = plane.fork_with(Workloads::default().controllers(["nonsense"])).await.expect_err("it is not known");
    assert!(refused.to_string().contains("nonsense"), "{refused}");
    Ok(())
}

#[skiff::test(program = PROGRAM)]
async fn a_clock_is_frozen_moved_and_reset(plane: ControlPlane) -> Result<(), Error> {
    let clock = plane.clock();
    clock.freeze().await?;
    clock.set("2031-02-03T04:05:06Z").await?;
    clock.advance(Duration::from_secs(90 * 60)).await?;
    assert_eq!(clock.now().await?, "2031-02-03T05:35:06Z");
    clock.run().await?;
    clock.reset().await?;
    assert!(!clock.now().await?.starts_with("2031"));
    Ok(())
}

#[skiff::test(program = PROGRAM)]
async fn faults_say_all_that_the_server_takes(plane: ControlPlane) -> Result<(), Error> {
    let (soon, everything) =
        (Duration::from_millis(1), Fault::watch(End::Expired).after_events(3).after(Duration::ZERO));
    for fault in [
        everything.verbs(["watch"]).group("").resource("pods").namespace("a").name("b").user("c").path("/api/*"),
        Fault::error(429).retry_after_seconds(3).message("slow down").subresource("status").delayed(soon),
        Fault::error(410).reason("Gone").skip(1).times(2),
        Fault::lose(Lost::Answer).probability(0.5, 7),
        Fault::lose(Lost::Request),
        Fault::watch(End::Closed),
        Fault::watch(End::Cut),
        Fault::watch(End::Stalled),
        Fault::delay(soon),
        Fault::stale(5),
        Fault::conflict(),
    ] {
        plane.inject(fault).await?.remove().await?;
    }
    let refused = plane.inject(Fault::conflict().reason("Gone")).await.expect_err("it makes no sense");
    assert!(refused.to_string().contains("unknown field `reason`"), "{refused}");
    Ok(())
}
