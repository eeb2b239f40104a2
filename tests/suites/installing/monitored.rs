//! Tests the metrics about failing policies, which the chart's alerts use.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use kaos_cluster::faults::{Failure, Verb};
use kaos_operator::watch::Scope;
use kaos_tests::gadget::gadget;
use kaos_tests::harness::faults::OPERATOR;
use kaos_tests::harness::scenario::SYSTEM;
use kaos_tests::harness::{Fault, World, condition, play, reason};
use serde_json::json;

use crate::support::{
    define, first_edition_serves, next_edition_traps_on_one, package, package_in, scenario, until_edition, until_state,
    widget,
};

/// The file with the chart's alerts.
const ALERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/helm/kaos-operator/files/monitoring/alerts.yaml");

/// A metric whose labels name requests and their results.
///
/// The test skips this metric, because each of its counters appears only with the first request that has these labels.
const OPEN: &str = "kaos_operator_api_calls_total";

/// Returns the counters to which an alert applies `rate` or `increase`, except [`OPEN`].
fn rated() -> Vec<String> {
    let alerts = fs::read_to_string(ALERTS).unwrap();
    let calls = ["rate(", "increase("].into_iter().flat_map(|call| alerts.split(call).skip(1));
    let names = calls.filter_map(|rest| rest.split(['{', '[']).next());
    names.filter(|name| *name != OPEN).map(str::to_owned).collect()
}

/// Waits until the metric counts `objects` unserved objects of `kind` for the reason `why`, and 0 for every other
/// reason.
async fn until_unserved(world: &World, kind: &str, why: &str, objects: f64) {
    let counted = |labels: &[&str]| world.counted("kaos_operator_objects_unserved", labels);
    let kind = format!("kind=\"{kind}\"");
    let because = format!("reason=\"{why}\"");
    let holds = async || [counted(&[&kind, &because]), counted(&[&kind])].iter().all(|it| (it - objects).abs() < 0.5);
    world.until_true(&format!("{objects} objects are unserved: {why}"), holds).await;
}

#[test]
fn counters_of_alerts_exist_before_their_first_increment() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "")).await;
        let answers = async || world.counted("kaos_operator_policy_info", &["kind=\"Widget\""]) > 0.0;
        world.until_true("the policy answers", answers).await;
        let page = world.metrics();
        let names = rated();
        assert!(names.len() > 1, "{names:?}");
        for name in names {
            let sample = |line: &&str| line.starts_with(&format!("{name}{{")) && line.contains("kind=\"Widget\"");
            let samples: Vec<&str> = page.lines().filter(sample).collect();
            assert!(!samples.is_empty(), "{name} is not there\n{page}");
            assert!(samples.iter().all(|line| line.ends_with(" 0")), "{samples:#?}");
        }
        let failures = r#"kaos_operator_policy_failures_total{policy="widget",version="1.0.0",reason="Trap"} 0"#;
        assert!(page.contains(failures), "{page}");
    });
}

#[test]
fn a_lost_right_to_watch_policies_is_reported_and_missed_packages_are_found() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        for (resource, kind, edition) in [("configmaps", "ConfigMap", "2"), ("policyrevisions", "PolicyRevision", "3")]
        {
            world.embedded().authorise(move |attempt| {
                let follows = !attempt.verb.is_write() && attempt.verb != Verb::Get;
                !follows || (&*attempt.resource, &*attempt.namespace, &*attempt.user) != (resource, SYSTEM, OPERATOR)
            });
            world.embedded().cut_watches();
            let said = format!("the operator is not allowed to list {resource}");
            let says = async || world.probe().ready().is_err_and(|missing| missing.iter().any(|it| it.contains(&said)));
            world.until_true("readiness tells", says).await;
            let kind = format!("kind=\"{kind}\"");
            let forbidden = || world.counted("kaos_operator_watch_state", &["state=\"forbidden\"", &kind, "} 1"]);
            assert!((forbidden() - 1.0).abs() < 0.5, "{}", world.metrics());
            world.apply(&package("widgets", edition, "")).await;
            world.pass_time(Duration::from_secs(20)).await;
            world.embedded().allow_everything();
            until_edition(world, "ConfigMap/w", edition).await;
            world.until_true("the operator is ready", async || world.probe().ready().is_ok()).await;
            assert!(forbidden() < 0.5, "{}", world.metrics());
        }
    });
}

#[test]
fn a_broken_watch_of_policies_recovers_without_changes() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.quiet().await;
        world.break_it(Fault::on(&["watch"]).of("policyrevisions").fail(Failure::Server(500)).times(1));
        world.embedded().cut_watches();
        let state = |state: &str| {
            let state = format!("state=\"{state}\"");
            world.counted("kaos_operator_watch_state", &[&state, "kind=\"PolicyRevision\"", "} 1"])
        };
        world.until_true("the watch is broken", async || state("failing") > 0.5).await;
        world.until_true("the watch works again", async || state("synced") > 0.5).await;
    });
}

/// Returns the versions of the Widgets' policy that the metrics contain.
fn versions(world: &World) -> BTreeSet<String> {
    let page = world.metrics();
    let version = |line: &str| Some(line.split_once("version=\"")?.1.split_once('"')?.0.to_owned());
    page.lines().filter(|line| line.contains("policy=\"widget\"")).filter_map(version).collect()
}

#[test]
fn metrics_omit_revisions_that_can_no_longer_answer() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&widget("w", &json!({}))).await;
        for edition in 1..=7 {
            world.apply(&package_in("test", "own", &edition.to_string(), "")).await;
            until_edition(world, "ConfigMap/w", &edition.to_string()).await;
        }
        // The metrics may contain four versions of the policy: the active version, its two predecessors, and a fourth
        // version. A pass that began before the last swap could still use this fourth version.
        let old = ["1.0.0", "2.0.0", "3.0.0"];
        let no_more = async || versions(world).iter().all(|version| !old.contains(&version.as_str()));
        world.until_true("the metrics omit the old versions", no_more).await;
        assert!(versions(world).is_superset(&["6.0.0", "7.0.0"].map(str::to_owned).into()), "{}", world.metrics());
        world.apply(&package_in("test", "own", "1", "")).await;
        until_edition(world, "ConfigMap/w", "1").await;
        let anew = r#"kaos_operator_policy_failures_total{policy="widget",version="1.0.0",reason="Trap"} 0"#;
        world
            .until_true("the metrics contain the version that serves again", async || world.metrics().contains(anew))
            .await;
    });
}

#[test]
fn an_object_with_a_failing_policy_is_counted_while_it_fails() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1 traps", "")).await;
        world.apply(&widget("fragile", &json!({"fragile": true}))).await;
        world.apply(&widget("sturdy", &json!({}))).await;
        until_edition(world, "ConfigMap/sturdy", "1").await;
        until_unserved(world, "Widget", "PolicyFailed", 1.0).await;
        assert!(world.counted("kaos_operator_policy_failures_total", &["policy=\"widget\"", "reason=\"Trap\""]) > 0.0);
        world.restart().await;
        until_unserved(world, "Widget", "PolicyFailed", 1.0).await;
        world.apply(&widget("fragile", &json!({"fragile": false}))).await;
        until_unserved(world, "Widget", "PolicyFailed", 0.0).await;
        world.apply(&widget("fragile", &json!({"fragile": true}))).await;
        until_unserved(world, "Widget", "PolicyFailed", 1.0).await;
        world.delete("Widget/fragile").await;
        until_unserved(world, "Widget", "PolicyFailed", 0.0).await;
    });
}

#[test]
fn an_object_whose_policy_fails_to_assess_it_is_counted() {
    play(scenario(), async |world| {
        world.apply(&gadget("web", &json!({"does": "faint"}))).await;
        until_unserved(world, "Gadget", "PolicyFailed", 1.0).await;
        assert!(world.counted("kaos_operator_policy_failures_total", &["policy=\"gadget\"", "reason=\"Trap\""]) > 0.0);
        let told = world.look("Gadget/web").await;
        assert_eq!(reason(&told, "Accepted"), "Accepted", "the plan was accepted: {told:#}");
        world.apply(&gadget("web", &json!({"image": "registry.example/gadget:1", "port": 80}))).await;
        until_unserved(world, "Gadget", "PolicyFailed", 0.0).await;
    });
}

#[test]
fn an_object_on_a_fallback_is_counted_until_the_fallback_ends() {
    play(scenario(), async |world| {
        next_edition_traps_on_one(world).await;
        until_unserved(world, "Widget", "FellBack", 1.0).await;
        let told = world.look("Widget/fragile").await;
        assert_eq!(condition(&told, "PolicyFallback")["status"], "True", "{told:#}");
        world.apply(&package("widgets", "3", "")).await;
        until_edition(world, "ConfigMap/fragile", "3").await;
        until_unserved(world, "Widget", "FellBack", 0.0).await;
    });
}

#[test]
fn a_ready_object_that_lost_its_policy_is_counted() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.until_ready("Widget/w").await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        until_unserved(world, "Widget", "NoPolicy", 1.0).await;
        let is_ready = ["kind=\"Widget\"", "ready=\"true\""];
        assert!(world.counted("kaos_operator_objects", &is_ready) > 0.0, "{}", world.metrics());
        world.apply(&package("widgets", "2", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        until_unserved(world, "Widget", "NoPolicy", 0.0).await;
    });
}

#[test]
fn a_refused_package_is_current_only_while_its_config_map_exists() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let refused = |current: bool| {
            let current = format!("current=\"{current}\"");
            world.counted("kaos_operator_policy_revisions", &["state=\"Refused\"", &current]) > 0.0
        };
        let mut broken = package("widgets", "2", "");
        broken["binaryData"]["policy.wasm.gz"] = json!("AGFzbQ==");
        world.apply(&broken).await;
        until_state(world, "widgets", "Refused").await;
        world.until_true("the metric counts the package as current", async || refused(true) && !refused(false)).await;
        world.apply(&package("widgets", "3", "")).await;
        until_edition(world, "ConfigMap/w", "3").await;
        world
            .until_true("the metric counts the package as not current", async || refused(false) && !refused(true))
            .await;
    });
}

#[test]
fn metrics_distinguish_operators_for_listed_and_for_all_namespaces() {
    let everywhere = |world: &World| {
        world.spawn();
        world.metrics().lines().find_map(|line| line.strip_prefix("kaos_operator_everywhere ").map(str::to_owned))
    };
    play(scenario().idle(), async |world| assert_eq!(everywhere(world).as_deref(), Some("1")));
    let listed = scenario().idle().tuned(|options| options.namespaces = Scope::Listed(["test".to_owned()].into()));
    play(listed, async |world| assert_eq!(everywhere(world).as_deref(), Some("0")));
}
