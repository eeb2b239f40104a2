//! Tests a policy that changes repeatedly while users edit many Agents.
//!
//! `KAOS_SWAP_AGENTS` sets the number of Agents. If this variable is set, one candidate in five is broken; otherwise,
//! one candidate in two is broken. `tests/run swap` uses 2,000 Agents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::{Fault, World, play, samples};
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

use crate::candidates::{BROKEN, Candidate, Fate, MARK, good};
use crate::support::{revisions, scenario, until_state};

/// The number of edits of Agents for each change of the policy.
const EDITS: usize = 20;
/// One Agent in this number is fragile.
///
/// Some broken candidates fail only on fragile Agents, because of the settings of these Agents' pods.
const FRAGILE: usize = 7;
const NAMESPACES: [&str; 2] = ["test", "other"];

/// Returns two numbers: the number of Agents, and a number n. One candidate in n is broken.
fn load() -> (usize, u32) {
    match std::env::var("KAOS_SWAP_AGENTS") {
        Ok(number) => (number.parse().expect("KAOS_SWAP_AGENTS is a number"), 5),
        // Use few Agents and changes: in a debug build, checking a candidate takes most of the time.
        Err(_) => (40, 2),
    }
}

fn name(number: usize) -> String {
    format!("a{number}")
}

fn namespace_of(number: usize) -> &'static str {
    NAMESPACES[number % 2]
}

fn is_fragile(number: usize) -> bool {
    number.is_multiple_of(FRAGILE)
}

/// Returns an Agent as it is after this number of edits.
fn agent(number: usize, edits: usize) -> Value {
    let side = |side: usize| json!({"name": format!("side{side}"), "image": "side:1"});
    let beside: Vec<Value> = if is_fragile(number) { (0..6).map(side).collect() } else { Vec::new() };
    let more = json!({"container": {"env": [{"name": "EDITS", "value": edits.to_string()}]}, "podSpec": {"containers": beside}});
    let mut agent = samples::agent(&name(number), "llm", &more);
    agent["metadata"]["namespace"] = json!(namespace_of(number));
    agent
}

/// All states that the test observed.
#[derive(Default)]
struct Seen {
    /// For each Deployment, the editions that its fields have shown.
    editions: BTreeMap<String, BTreeSet<String>>,
    /// The Deployments whose fields showed two editions at the same time.
    mixed: Vec<String>,
    /// For each Agent, the digests that its status has shown.
    digests: BTreeMap<String, BTreeSet<String>>,
}

/// Returns the editions that the fields of a Deployment show.
///
/// Several fields contain the edition, so a result with two editions shows a mixed plan.
fn editions_of(deployment: &Value) -> BTreeSet<String> {
    let template = &deployment["spec"]["template"];
    let container =
        template["spec"]["containers"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "agent"));
    let container = container.or_else(|| template["spec"]["containers"].get(0)).cloned().unwrap_or_default();
    let level = container["env"].as_array().into_iter().flatten().find(|variable| variable["name"] == "LOG_LEVEL");
    let image = container["image"].as_str().unwrap_or_default().trim_start_matches("agent:").to_owned();
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    [
        image,
        level.map_or_else(|| "none".to_owned(), |level| text(&level["value"])),
        text(&deployment["metadata"]["annotations"][MARK]),
        text(&template["metadata"]["annotations"][MARK]),
    ]
    .into()
}

/// Watches Agents and their Deployments, and records every state that the API server reports.
fn look_at_everything(world: &World) -> Arc<Mutex<Seen>> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    for kind in ["Deployment", "Agent"] {
        let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &Kind::named(kind).resource());
        let seen = Arc::clone(&seen);
        tokio::spawn(async move {
            let mut objects = watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
            while let Some(next) = objects.next().await {
                // Ignore an error, because the watcher opens a broken watch again.
                let Ok(object) = next else { continue };
                let object = serde_json::to_value(object).unwrap();
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let mut seen = seen.lock().unwrap();
                if kind == "Agent" {
                    if let Some(digest) = object["status"]["policy"]["digest"].as_str() {
                        seen.digests.entry(name).or_default().insert(digest.to_owned());
                    }
                } else if object["metadata"]["annotations"][MARK].is_string() {
                    let editions = editions_of(&object);
                    if editions.len() > 1 {
                        seen.mixed.push(format!("{name}: {editions:?}"));
                    }
                    seen.editions.entry(name).or_default().extend(editions);
                }
            }
        });
    }
    seen
}

/// Applies a candidate. If the test expects a refusal or a quarantine, waits for this result. If the test expects that
/// the candidate serves, only waits for a second.
async fn change(world: &World, candidate: &Candidate) {
    world.apply(&candidate.config_map).await;
    match candidate.fate {
        Fate::Serves => tokio::time::sleep(Duration::from_secs(1)).await,
        Fate::Refused(reason) => {
            let refused = async || revisions(world, "agents").await.iter().any(|it| it["status"]["reason"] == reason);
            world.until_true(&format!("a candidate is refused: {reason}"), refused).await;
        }
        Fate::PutAside => drop(until_state(world, "agents", "Quarantined").await),
    }
}

/// Waits until the active edition has served all Agents and the queue is empty.
async fn until_settled(world: &World, edition: u32) {
    let is = format!("e{edition}");
    world
        .until_true(&format!("all Deployments are of edition {is}"), async || {
            for namespace in NAMESPACES {
                let deployments = world.list_in(Kind::named("Deployment"), namespace).await;
                let others = |it: &&Value| {
                    it["metadata"]["annotations"][MARK].is_string() && editions_of(it) != [is.clone()].into()
                };
                if deployments.iter().any(|it| others(&it)) {
                    return false;
                }
            }
            true
        })
        .await;
    world.until_true("the queue is empty", async || world.probe().queue().0 == 0).await;
    world.quiet().await;
}

#[test]
fn policies_swapped_every_second_under_load_give_no_mixed_answer() {
    play(scenario(), async |world| {
        let (count, one_in) = load();
        let changes = u32::try_from(BROKEN.len()).unwrap() * one_in;
        world.apply(&samples::namespace(NAMESPACES[1])).await;
        for namespace in NAMESPACES {
            let mut model = samples::model_api("llm");
            model["metadata"]["namespace"] = json!(namespace);
            world.apply(&model).await;
        }
        world.apply(&good(0).config_map).await;
        until_state(world, "agents", "Active").await;
        let mut edits = vec![0; count];
        for number in 0..count {
            world.apply(&agent(number, 0)).await;
        }
        until_settled(world, 0).await;

        let seen = look_at_everything(world);
        // Slow down requests, so that passes take some time: otherwise, passes would be too short for a swap during a
        // pass.
        world.break_it(
            Fault::on(&["get", "list", "create", "update", "patch", "delete"]).slow(Duration::from_millis(5)),
        );
        let mut candidates = Vec::new();
        let mut next = 0;
        for edition in 1..=changes {
            let broken = BROKEN.get(edition as usize / one_in as usize).filter(|_| edition % one_in == 1);
            let candidate = broken.map_or_else(|| good(edition), |broken| broken(edition));
            for _ in 0..EDITS.min(count) {
                next = (next + 37) % count;
                edits[next] += 1;
                world.apply(&agent(next, edits[next])).await;
            }
            change(world, &candidate).await;
            candidates.push((edition, candidate));
        }
        until_settled(world, changes).await;
        world.mend();

        assert!(world.counted("kaos_operator_passes_total", &["result=\"failed\""]) < 1.0, "no pass failed");
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(seen.mixed, [""; 0], "no pass mixed two policies");
        for (edition, candidate) in &candidates {
            let (edition, digest) = (format!("e{edition}"), &candidate.digest);
            for number in 0..count {
                let told = seen.digests.get(&name(number)).is_some_and(|told| told.contains(digest));
                let made =
                    seen.editions.get(&format!("agent-{}", name(number))).is_some_and(|had| had.contains(&edition));
                let may = match candidate.fate {
                    Fate::Serves => true,
                    Fate::Refused(_) => false,
                    Fate::PutAside => !is_fragile(number),
                };
                assert!(
                    may || !made,
                    "{edition} served {agent}, although its fate is {fate:?}",
                    agent = name(number),
                    fate = candidate.fate
                );
                assert!(may || !told, "the status of {agent} named {edition}", agent = name(number));
            }
        }
        let last = &candidates.last().unwrap().1.digest;
        for (number, edits) in edits.iter().enumerate() {
            let told = world.look(&format!("{}:Agent/{}", namespace_of(number), name(number))).await;
            assert_eq!(told["status"]["policy"]["digest"], **last, "{told}");
            assert_eq!(told["status"]["observedGeneration"], told["metadata"]["generation"]);
            let deployment = format!("{}:Deployment/agent-{}", namespace_of(number), name(number));
            let deployment = world.look(&deployment).await;
            let has = deployment.to_string().contains(&format!("{{\"name\":\"EDITS\",\"value\":\"{edits}\"}}"));
            assert!(has, "edit {edits} is not in {deployment}");
        }
        // Restart the operator. The new operator must have nothing to write: this proves that the children already
        // match the last edits and the last edition.
        world.forget_requests();
        world.restart().await;
        world.until_true("the queue is empty", async || world.probe().queue().0 == 0).await;
        world.quiet().await;
        assert_eq!(world.writes(), [""; 0]);
        let editions = seen.editions.values().map(BTreeSet::len).max().unwrap_or_default();
        println!("{count} Agents, {changes} changes; one Deployment showed up to {editions} editions");
    });
}
