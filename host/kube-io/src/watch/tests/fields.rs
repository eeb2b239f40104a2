//! Tests needs with paths of fields. A change must wake an object if the answer to one of the object's needs differs
//! after the change, and must wake no other object. The watch must not miss a change during a pass.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fastrand::Rng;
use kaos_objects::{Fields, Followed, Target, lookup::Lookup as _};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::support::*;
use crate::watch::WatchOptions;

/// Paths of fields. Each reader reads some of these paths.
const PATHS: [&str; 10] = [
    "metadata.labels",
    "metadata.annotations?",
    "spec.a",
    "spec.a.b",
    "spec.list",
    r#"spec.list[="x"]"#,
    r#"spec.list[name="y"].v"#,
    "spec.c?",
    "data.x",
    r#"status.x[="x"]"#,
];
const WORDS: [&str; 3] = ["x", "y", "z"];
const READERS: [&str; 5] = ["r0", "r1", "r2", "r3", "r4"];

fn word(rng: &mut Rng) -> &'static str {
    WORDS[rng.usize(..WORDS.len())]
}

/// Returns targets: Gadgets and ConfigMaps, by name and by label. With `is_wide`, there are so many selectors that one
/// watch on metadata replaces the watches on ConfigMaps.
fn targets(is_wide: bool) -> Vec<Target> {
    let maps = of("v1 ConfigMap");
    let mut all = vec![
        named(&gadget(), "t", "n0"),
        named(&gadget(), "t", "n1"),
        labelled(&gadget(), "l", "x"),
        named(&maps, "t", "n0"),
        labelled(&maps, "l", "x"),
    ];
    let more = if is_wide { 0..10 } else { 0..0 };
    all.extend(more.map(|at| labelled(&maps, "nobody-has", &at.to_string())));
    all
}

fn needs(rng: &mut Rng, targets: &[Target]) -> Vec<Followed> {
    let need = |target: &Target, rng: &mut Rng| {
        let paths: Vec<String> = PATHS.iter().filter(|_| rng.u8(..3) == 0).map(|path| (*path).to_owned()).collect();
        Followed { target: target.clone(), fields: Fields::parse(&paths).unwrap() }
    };
    let some: Vec<&Target> = targets.iter().filter(|target| is_unused(target) || rng.bool()).collect();
    some.into_iter().map(|target| need(target, rng)).collect()
}

/// Returns whether a target selects no object, so that it only increases the number of selectors.
fn is_unused(target: &Target) -> bool {
    matches!(target, Target::Labelled(selector) if selector.labels[0].0 == "nobody-has")
}

/// Returns the answers to needs, without the versions of objects. `None` if the answer to a need is not known yet.
fn answers(bench: &Bench, needs: &[Followed]) -> Option<Vec<String>> {
    let (lookup, mut room) = (bench.watch.lookup(), 1 << 30);
    let mut answer = |need: &Followed| match lookup.look_up_fields(&need.target, &need.fields, &mut room) {
        kaos_objects::Sighting::Objects(objects) => {
            let without_version = |object: &std::sync::Arc<Value>| {
                let mut object = Value::clone(object);
                object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
                object.to_string()
            };
            objects.iter().map(without_version).collect::<Vec<_>>().join("\n")
        }
        other => format!("{other:?}"),
    };
    let answers = needs.iter().map(&mut answer).collect();
    (!lookup.is_pending()).then_some(answers)
}

fn spec(rng: &mut Rng) -> Value {
    let item = |rng: &mut Rng| match rng.u8(..3) {
        0 => json!({"name": word(rng), "v": word(rng), "w": word(rng)}),
        _ => json!(word(rng)),
    };
    let list: Vec<Value> = (0..rng.usize(..4)).map(|_| item(rng)).collect();
    let a = if rng.bool() { json!({"b": word(rng), "c": word(rng)}) } else { json!(word(rng)) };
    let mut spec = json!({"a": a, "list": list});
    if rng.bool() {
        spec["c"] = json!(word(rng));
    }
    spec
}

/// Changes, creates or deletes an object.
async fn edit(bench: &Bench, rng: &mut Rng) {
    let of = if rng.bool() { gadget() } else { of("v1 ConfigMap") };
    let name = format!("n{}", rng.u8(..2));
    let api = api(&bench.client, &of, "t");
    match rng.u8(..8) {
        0 => drop(api.delete(&name, &DeleteParams::default()).await),
        1 => {
            let patch = Patch::Merge(json!({"status": {"x": word(rng)}}));
            drop(api.patch_status(&name, &PatchParams::default(), &patch).await);
        }
        _ => {
            let mut object = match of.kind.as_str() {
                "ConfigMap" => config_map(&name, word(rng)),
                _ => object(&of, &name, spec(rng)),
            };
            for field in ["labels", "annotations"] {
                if rng.bool() {
                    object["metadata"][field] = json!({"l": word(rng), "m": word(rng)});
                }
            }
            bench.put(object).await;
        }
    }
}

async fn exactly_the_readers_are_woken(seed: u64) {
    let bench = Bench::start_with(WatchOptions { seed, ..options() }).await;
    let mut rng = Rng::with_seed(seed);
    let targets = targets(seed % 2 == 1);
    let of_reader: BTreeMap<&str, Vec<Followed>> =
        READERS.into_iter().map(|reader| (reader, needs(&mut rng, &targets))).collect();
    for (reader, needs) in &of_reader {
        bench.watch.set_needs(&Bench::key(reader), needs.iter().cloned()).unwrap();
    }
    bench.quiet().await;
    let all = |bench: &Bench| -> BTreeMap<&str, Option<Vec<String>>> {
        of_reader.iter().map(|(reader, needs)| (*reader, answers(bench, needs))).collect()
    };
    let (mut before, mut spared) = (all(&bench), 0);
    for step in 0..60 {
        bench.woken();
        edit(&bench, &mut rng).await;
        bench.quiet().await;
        let after = all(&bench);
        let differs = |reader: &&&str| before[**reader] != after[**reader];
        let wanted: BTreeSet<String> = of_reader.keys().filter(differs).map(|reader| format!("t/{reader}")).collect();
        assert_eq!(bench.woken(), wanted, "seed {seed}, step {step}");
        spared += usize::from(wanted.len() < READERS.len());
        before = after;
    }
    assert!(spared > 10, "only {spared} changes concerned some readers and not all readers");
}

#[tokio::test(start_paused = true)]
async fn a_change_wakes_exactly_the_objects_whose_answer_it_changes() {
    for seed in 0..12 {
        exactly_the_readers_are_woken(seed).await;
    }
}

/// Runs passes that register needs and read the answers, while objects change and watches break. If an answer changed
/// after a pass read it, the watch must have woken the object of the pass.
async fn no_wake_is_lost(seed: u64) {
    let backoff = crate::backoff::Backoff { first: Duration::from_millis(100), max: Duration::from_secs(5) };
    let bench = Bench::start_with(WatchOptions { backoff, seed, ..options() }).await;
    let mut rng = Rng::with_seed(seed);
    let targets = targets(seed % 2 == 1);
    let mut last: BTreeMap<&str, (Vec<Followed>, Option<Vec<String>>)> = BTreeMap::new();
    let mut woken: BTreeSet<String> = BTreeSet::new();
    for _ in 0..200 {
        match rng.u8(..10) {
            0 => bench.cluster.cut_watches(),
            1 => tokio::time::sleep(Duration::from_millis(rng.u64(..300))).await,
            2..6 => {
                let reader = READERS[rng.usize(..READERS.len())];
                let needs = match last.get(reader) {
                    Some((needs, _)) if rng.bool() => needs.clone(),
                    _ => needs(&mut rng, &targets),
                };
                woken.extend(bench.woken());
                woken.remove(&format!("t/{reader}"));
                let is_known = bench.watch.set_needs(&Bench::key(reader), needs.iter().cloned()).unwrap();
                let answers = if is_known { answers(&bench, &needs) } else { None };
                last.insert(reader, (needs, answers));
            }
            _ => edit(&bench, &mut rng).await,
        }
    }
    bench.quiet().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    woken.extend(bench.woken());
    for (reader, (needs, seen)) in last {
        let now = answers(&bench, &needs);
        assert!(now.is_some(), "seed {seed}: {reader}");
        assert!(
            seen == now || woken.contains(&format!("t/{reader}")),
            "seed {seed}: {reader}: {seen:?} is now {now:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_under_way_misses_no_change() {
    for seed in 0..30 {
        no_wake_is_lost(seed).await;
    }
}
