//! Checks the cache after random errors: it contains the same objects as the server, and the watch woke every concerned
//! object.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fastrand::Rng;
use kaos_cluster::faults::{Attempt, EventFate, FaultPlan, NoFaults, SeededFaults, Verdict};
use kaos_objects::{
    Target,
    lookup::{Lookup as _, Sighting},
};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::support::*;
use crate::{object_key::ObjectKey, watch::WatchOptions};

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const MANAGERS: [&str; 2] = ["helm", "kaos-operator"];

/// Lets some requests and some events of the operator fail. Requests of users never fail.
struct OfOperator(SeededFaults, f64);

impl FaultPlan for OfOperator {
    fn request(&mut self, attempt: &Attempt, rng: &mut Rng) -> Verdict {
        if attempt.user == "operator" { self.0.request(attempt, rng) } else { Verdict::default() }
    }

    fn event(&mut self, watch: &Attempt, kind: &str, rng: &mut Rng) -> EventFate {
        match self.0.event(watch, kind, rng) {
            EventFate::Deliver if kind != "BOOKMARK" && rng.f64() < self.1 => EventFate::Drop,
            fate => fate,
        }
    }
}

/// Returns the objects of a type on the server, by name, in their cached form.
fn truth(bench: &Bench, group: &str, plural: &str, ours: bool) -> BTreeMap<String, Value> {
    let objects = bench.cluster.objects(group, plural);
    let kept = objects.iter().filter(|object| {
        object["metadata"]["namespace"] == "t"
            && (!ours || object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "kaos-operator")
    });
    kept.map(|object| {
        let mut object = (**object).clone();
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        (object["metadata"]["name"].as_str().unwrap().to_owned(), object)
    })
    .collect()
}

async fn edit(bench: &Bench, rng: &mut Rng) {
    let of = [widget(), gadget(), of("v1 ConfigMap"), of("v1 Secret")][rng.usize(..4)].clone();
    let name = format!("n{}", rng.u8(..5));
    let api = api(&bench.client, &of, "t");
    let value = rng.u8(..4).to_string();
    match rng.u8(..6) {
        0 => drop(api.delete(&name, &DeleteParams::default()).await),
        1 if of == widget() => {
            let patch = Patch::Merge(json!({"status": {"x": value}}));
            drop(api.patch_status(&name, &PatchParams::default(), &patch).await);
        }
        _ => {
            let mut object = match of.kind.as_str() {
                "ConfigMap" => config_map(&name, &value),
                "Secret" => secret(&name, &value),
                _ => object(&of, &name, json!({"x": value})),
            };
            if rng.bool() {
                object["metadata"]["labels"] = json!({MANAGED_BY: MANAGERS[usize::from(rng.bool())]});
            }
            bench.put(object).await;
        }
    }
}

async fn run(seed: u64, streaming_lists: bool, dropped: f64) {
    let relist = Duration::from_mins(30);
    let backoff = crate::backoff::Backoff { first: Duration::from_millis(100), max: Duration::from_secs(5) };
    let bench = Bench::start_with(WatchOptions { streaming_lists, relist, backoff, seed, ..options() }).await;
    let mut rng = Rng::with_seed(seed);
    let mut targets: Vec<Target> = (0..5)
        .flat_map(|i| {
            let name = format!("n{i}");
            [gadget(), of("v1 ConfigMap"), of("v1 Secret")].map(|of| named(&of, "t", &name))
        })
        .collect();
    targets.extend(MANAGERS.map(|manager| labelled(&of("v1 ConfigMap"), MANAGED_BY, manager)));
    // In every second run, there are so many needs that one watch replaces the separate watches.
    let more = if seed.is_multiple_of(2) { 0..0 } else { 0..10 };
    targets.extend(more.map(|i| labelled(&of("v1 ConfigMap"), "nobody-has", &i.to_string())));
    bench.watch.set_needs(&Bench::key("needy"), &targets).unwrap();
    bench.quiet().await;
    bench.cluster.set_faults(OfOperator(SeededFaults::everything(0.08), dropped));
    for _ in 0..120 {
        edit(&bench, &mut rng).await;
        match rng.u8(..40) {
            0 => bench.cluster.cut_watches(),
            1 => bench.cluster.compact(),
            2 => drop(bench.watch.set_needs(&Bench::key("needy"), &targets[..rng.usize(..targets.len())])),
            3 => drop(bench.watch.set_needs(&Bench::key("needy"), &targets)),
            4..20 => tokio::time::sleep(Duration::from_millis(rng.u64(..900))).await,
            _ => {}
        }
    }
    bench.watch.set_needs(&Bench::key("needy"), &targets).unwrap();
    bench.cluster.set_faults(NoFaults);
    let quiet = if dropped > 0.0 { Duration::from_hours(1) } else { Duration::from_mins(2) };
    tokio::time::sleep(quiet).await;
    check(&bench, &targets, seed);
}

fn check(bench: &Bench, targets: &[Target], seed: u64) {
    assert!(bench.watch.synced().is_ok(), "seed {seed}: {:?}", bench.watch.synced());
    let kept = |of: &kaos_objects::ResourceType, names: BTreeSet<String>| {
        let objects = names.into_iter().filter_map(|name| {
            let seen = bench.watch.live(of, "t", &name)?;
            Some((name, seen.object().unwrap()))
        });
        objects.collect::<BTreeMap<_, _>>()
    };
    let all = || (0..5).map(|i| format!("n{i}")).collect::<BTreeSet<_>>();
    assert_eq!(kept(&widget(), all()), truth(bench, "test.io", "widgets", false), "seed {seed}");
    assert_eq!(kept(&gadget(), all()), truth(bench, "test.io", "gadgets", false), "seed {seed}");
    assert_eq!(kept(&of("v1 ConfigMap"), all()), truth(bench, "", "configmaps", true), "seed {seed}");
    let keys: Vec<ObjectKey> = bench.watch.keys(&widget());
    assert_eq!(keys.len(), truth(bench, "test.io", "widgets", false).len(), "seed {seed}");
    let lookup = bench.watch.lookup();
    let maps = truth(bench, "", "configmaps", false);
    let secrets = truth(bench, "", "secrets", false);
    for target in targets {
        let reference = match target {
            Target::Named(reference) => reference,
            Target::Labelled(selector) => {
                let carries = |map: &&Value| {
                    selector.labels.iter().all(|(key, value)| map["metadata"]["labels"][key.as_str()] == **value)
                };
                let Sighting::Objects(found) = lookup.look_up(target) else { panic!("seed {seed}: {selector:?}") };
                let found: Vec<&Value> = found.iter().map(AsRef::as_ref).collect();
                assert_eq!(found, maps.values().filter(carries).collect::<Vec<_>>(), "seed {seed}: {selector:?}");
                continue;
            }
        };
        match (reference.kind.as_str(), lookup.look_up(target)) {
            ("ConfigMap", Sighting::Objects(found)) => {
                let found: Vec<&Value> = found.iter().map(AsRef::as_ref).collect();
                assert_eq!(
                    found,
                    maps.get(&reference.name).into_iter().collect::<Vec<_>>(),
                    "seed {seed}: {reference}"
                );
            }
            ("Secret", Sighting::Secret(facts)) => {
                let secret = secrets.get(&reference.name);
                let wanted = secret.map(|secret| crate::watch::secret_metadata::secret_facts(secret, b"key").digest);
                assert_eq!(facts.digest, wanted.unwrap_or_default(), "seed {seed}: {reference}");
            }
            ("Gadget", Sighting::Objects(_)) => {}
            (_, other) => panic!("seed {seed}: {reference}: {other:?}"),
        }
    }
    assert!(lookup.pending().is_empty(), "seed {seed}: {:?}", lookup.pending());
}

#[tokio::test(start_paused = true)]
async fn after_any_fault_the_cache_equals_the_server_once_changes_stop() {
    for seed in 0..10 {
        run(seed, false, 0.0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_with_streaming_lists() {
    for seed in 100..110 {
        run(seed, true, 0.0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_lost_events_the_cache_equals_the_server_once_all_types_were_listed_again() {
    for seed in 200..210 {
        run(seed, seed % 2 == 0, 0.1).await;
    }
}
