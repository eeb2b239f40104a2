//! Tests packages in namespaces other than the operator's. The operator watches the metadata of all ConfigMaps in these
//! namespaces, and reads only the ConfigMaps of packages.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kaos_cluster::faults::Failure;
use kaos_operator::catalogue::CodeShare;
use kaos_operator::operator::Options;
use kaos_policy::compile::{Compile as _, InProcessCompiler, Order};
use kaos_policy::engine::Engine;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::{Fault, World, play};
use kaos_tests::widgets::component;
use serde_json::json;

use crate::support::{
    define, namespace, own_edition_serves, package, package_in, read_in, revisions, scenario, states, until_edition,
    until_state, widget, widget_in,
};

/// A tenth of the size of one edition's compiled code, in bytes. A namespace may have compiled code of `CODE` times
/// this size, and all namespaces together of (`CODE` + 10) times this size.
static TENTH: AtomicUsize = AtomicUsize::new(0);
static CODE: AtomicUsize = AtomicUsize::new(0);

/// Limits the compiled code of a namespace to `tenths` tenths of an edition's compiled code. The limit applies to
/// operators that start later.
fn limit_code(tenths: usize) {
    let component = component("1").unwrap();
    let compiled = InProcessCompiler(Engine::new().unwrap()).compile(&Order::new(&component)).unwrap();
    TENTH.store(compiled.code.len().div_ceil(10), Ordering::Relaxed);
    CODE.store(tenths, Ordering::Relaxed);
}

fn with_little_code(options: &mut Options) {
    let of = |tenths: usize| tenths * TENTH.load(Ordering::Relaxed);
    let code = CODE.load(Ordering::Relaxed);
    options.code_share = CodeShare { namespace: of(code), tenants: of(code + 10) };
}

#[test]
fn compiled_code_of_tenants_has_a_limit_also_after_a_restart() {
    limit_code(25);
    play(scenario().installing(true).tuned(with_little_code), async |world| {
        define(world).await;
        for other in ["other", "third"] {
            world.apply(&namespace(other)).await;
        }
        world.apply(&package_in("test", "own-1", "1", "")).await;
        until_state(world, "own-1", "Active").await;
        world.apply(&package_in("test", "own-2", "2", "")).await;
        until_state(world, "own-2", "Conflict").await;
        world.apply(&package_in("test", "own-3", "3", "")).await;
        let refused = until_state(world, "own-3", "Refused").await;
        assert_eq!(refused["status"]["reason"], "TooMuchCode");
        let told = refused["status"]["message"].as_str().unwrap();
        for part in [
            "the policies of namespace test, including this one, would have ",
            " of compiled code in total, but the limit is ",
            "delete one",
            "annotate",
        ] {
            assert!(told.contains(part), "{told}");
        }
        world.apply(&package_in("other", "theirs", "2", "")).await;
        until_state(world, "theirs", "Active").await;
        world.apply(&package_in("third", "last", "2", "")).await;
        let refused = until_state(world, "last", "Refused").await;
        let told = refused["status"]["message"].as_str().unwrap();
        assert!(
            told.contains("the policies outside the operator's namespace, including this one, would have "),
            "{told}"
        );
        world.apply(&widget("w", &json!({}))).await;
        until_edition(world, "ConfigMap/w", "1").await;

        limit_code(15);
        world.restart().await;
        until_state(world, "own-2", "Refused").await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
        assert_eq!(states(world, "own-1").await, ["Active"]);
        assert_eq!(states(world, "theirs").await, ["Active"]);
    });
}

fn own(number: usize) -> String {
    format!("own-{number:02}")
}

/// Waits until the operator has read exactly these ConfigMaps of the namespace `greedy`.
async fn until_read(world: &World, names: &[String]) {
    world
        .until_true("the operator has read as many ConfigMaps as expected", async || {
            read_in(world, "greedy").len() >= names.len()
        })
        .await;
    world.quiet().await;
    assert_eq!(read_in(world, "greedy"), names);
}

#[test]
fn only_packages_within_the_limit_of_a_namespace_are_read_and_only_once() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&namespace("greedy")).await;
        for number in 0..20 {
            world.apply(&package_in("greedy", &own(number), "2", "")).await;
        }
        let chunk = json!({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"part": "AAAA"},
            "metadata": {"name": "of-nobody", "namespace": "greedy", "labels": {"kaos.tools/policy": "chunk"}}});
        world.apply(&chunk).await;
        until_state(world, &own(0), "Active").await;
        until_state(world, &own(15), "Conflict").await;
        let taken: Vec<String> = (0..16).map(own).collect();
        until_read(world, &taken).await;
        world.forget_requests();
        world.restart().await;
        until_read(world, &taken).await;
    });
}

#[test]
fn a_repeatedly_edited_package_is_read_once_per_version() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&package_in("test", "own", "1", "")).await;
        until_state(world, "own", "Active").await;
        world.forget_requests();
        for edition in 2..=6 {
            world.apply(&package_in("test", "own", &edition.to_string(), "")).await;
        }
        world.apply(&widget("w", &json!({}))).await;
        until_edition(world, "ConfigMap/w", "6").await;
        world.quiet().await;
        let read = read_in(world, "test").into_iter().filter(|name| name == "own").count();
        assert!((1..=5).contains(&read), "the package was read {read} times");
    });
}

#[test]
fn an_unreadable_package_keeps_serving_and_delays_nothing() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&namespace("other")).await;
        world.apply(&package_in("test", "own", "1", "")).await;
        world.apply(&widget("w", &json!({}))).await;
        until_edition(world, "ConfigMap/w", "1").await;
        until_state(world, "own", "Active").await;

        world.break_it(Fault::on(&["get"]).of("configmaps").named("own").fail(Failure::Server(500)));
        world.apply(&package_in("test", "own", "2", "")).await;
        world.apply(&package_in("other", "theirs", "2", "")).await;
        world.apply(&widget_in("other", "w", &json!({}))).await;
        until_edition(world, "other:ConfigMap/w", "2").await;
        world.apply(&package("widgets", "3", "")).await;
        until_state(world, "widgets", "Active").await;
        assert_eq!(states(world, "own").await, ["Active"]);

        // The API server rejects every read of the package's ConfigMap, so the new process can load the policy only
        // from the stored bytes.
        world.restart().await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.apply(&package("widgets", "4", "")).await;
        world.until_true("the next revision exists", async || states(world, "widgets").await.len() == 2).await;
        world.quiet().await;
        assert_eq!(states(world, "own").await, ["Active"]);

        world.mend();
        until_edition(world, "ConfigMap/w", "2").await;
        world.delete("ConfigMap/own").await;
        until_edition(world, "ConfigMap/w", "4").await;
    });
}

#[test]
fn an_unreadable_package_keeps_its_recorded_state() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&package_in("test", "own", "1", "")).await;
        world.apply(&widget("w", &json!({"fragile": true}))).await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.apply(&package_in("test", "own", "2 traps", "")).await;
        until_state(world, "own", "Quarantined").await;
        until_state(world, "own", "Active").await;
        world.break_it(Fault::on(&["get"]).of("configmaps").named("own").fail(Failure::Server(503)));
        world.restart().await;
        world.until_hit().await;
        world.quiet().await;
        let mut known = states(world, "own").await;
        known.sort();
        assert_eq!(known, ["Active", "Quarantined"]);
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.mend();
        // The operator must read the package again, and the package's revision must stay in quarantine.
        world.forget_requests();
        world
            .until_true("the operator has read the package", async || {
                read_in(world, "test").contains(&"own".to_owned())
            })
            .await;
        world.quiet().await;
        let all = world.list_in(Kind::named("PolicyRevision"), "kaos-system").await;
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1");
    });
}

#[test]
fn a_policy_that_cannot_be_loaded_yet_delays_no_other_namespace() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&namespace("other")).await;
        world.apply(&package("widgets", "3", "")).await;
        world.apply(&package_in("test", "own", "1", "")).await;
        world.apply(&package_in("other", "theirs", "2", "")).await;
        world.apply(&widget("w", &json!({}))).await;
        world.apply(&widget_in("other", "w", &json!({}))).await;
        until_edition(world, "ConfigMap/w", "1").await;
        until_edition(world, "other:ConfigMap/w", "2").await;
        world.quiet().await;
        let before = world.look("ConfigMap/w").await;

        world.kill_compiler_over(Some("EDITION=1"));
        world.restart().await;
        world.delete("other:ConfigMap/w").await;
        until_edition(world, "other:ConfigMap/w", "2").await;
        let told = until_state(world, "own", "Active").await;
        assert_eq!(told["status"]["reason"], "NotLoaded", "{told}");
        assert!(told["status"]["message"].as_str().unwrap().contains("memory"), "{told}");
        world.pass_time(Duration::from_mins(5)).await;
        let after = world.look("ConfigMap/w").await;
        assert_eq!(after, before, "the policy for the cluster must not serve the objects of the unloaded policy");

        world.kill_compiler_over(None);
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
        let told = until_state(world, "own", "Active").await;
        assert_eq!(told["status"]["reason"], "Active", "{told}");
        assert_eq!(revisions(world, "own").await.len(), 1);
    });
}

#[test]
fn an_unloadable_policy_is_replaced_by_its_next_revision_or_removed() {
    play(scenario().installing(true), async |world| {
        own_edition_serves(world).await;
        world.kill_compiler_over(Some("EDITION=1"));
        world.restart().await;
        world.until_hit().await;
        world.apply(&package_in("test", "own", "2", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        until_state(world, "own", "Superseded").await;

        world.kill_compiler_over(Some("EDITION=2"));
        world.restart().await;
        world.until_hit().await;
        world.delete("ConfigMap/own").await;
        until_edition(world, "ConfigMap/w", "3").await;
    });
}
