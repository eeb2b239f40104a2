//! Tests that a namespace's own policy does not slow down passes in other namespaces. The guard also prevents such a
//! policy from changing objects of other namespaces, but other tests check this.

use std::time::Duration;

use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::{Fault, World, play};
use serde_json::{Value, json};

use crate::support::{
    define, namespace, package, package_in, revisions, scenario, states, until_edition, until_state, widget, widget_in,
};

/// The number of Widgets in the namespace `greedy`. The policy of this namespace burns as much fuel as possible.
const MANY: usize = 60;

/// Returns whether the status shows the object's current generation.
fn is_observed(widget: &Value) -> bool {
    widget["status"]["observedGeneration"] == widget["metadata"]["generation"]
}

fn burning(number: usize, round: usize) -> Value {
    widget_in("greedy", &format!("a{number}"), &json!({"fragile": true, "round": round}))
}

async fn all_observed(world: &World) -> bool {
    let all = world.list_in(Kind::named("Widget"), "greedy").await;
    all.len() == MANY && all.iter().all(is_observed)
}

#[test]
fn a_policy_that_burns_fuel_delays_no_other_namespace() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&namespace("greedy")).await;
        world.apply(&package("widgets", "1", "")).await;
        world.apply(&package_in("greedy", "own", "2 burns", "")).await;
        until_state(world, "own", "Active").await;
        world.apply(&widget("calm", &json!({"round": 0}))).await;
        for number in 0..MANY {
            world.apply(&burning(number, 0)).await;
        }
        let calm = until_edition(world, "ConfigMap/calm", "1").await;
        world.until_true("every status is current", async || all_observed(world).await).await;
        until_edition(world, "greedy:ConfigMap/a0", "2").await;
        world.quiet().await;
        let before = world.counted("kaos_operator_passes_total", &["kind=\"Widget\""]);

        world.break_it(Fault::on_writes().slow(Duration::from_millis(100)));
        for round in 1..=5 {
            for number in 0..MANY {
                world.apply(&burning(number, round)).await;
            }
            world.forget_requests();
            world.apply(&widget("calm", &json!({"round": round}))).await;
            world.until("the Widget of the other namespace is served", "Widget/calm", is_observed).await;
            let overtaken = world.requests(Sort::Write).len();
            assert!(overtaken < MANY / 2, "{overtaken} writes came before the write of the other namespace");
            assert!(!all_observed(world).await, "the busy namespace has no work left, so the test proves nothing");
            world.until_true("every status is current", async || all_observed(world).await).await;
        }
        world.mend();
        world.quiet().await;
        let passes = world.counted("kaos_operator_passes_total", &["kind=\"Widget\""]) - before;
        assert!(passes >= f64::from(5 * 61), "some Widgets got too few passes: {passes}");
        assert!(world.counted("kaos_operator_passes_total", &["result=\"failed\""]) < 1.0, "no pass failed");
        let same = world.look("ConfigMap/calm").await;
        assert_eq!(
            same["metadata"]["resourceVersion"], calm["metadata"]["resourceVersion"],
            "the Widget did not change"
        );
    });
}

#[test]
fn policies_beyond_the_limit_of_a_namespace_delay_no_other_namespace() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&namespace("greedy")).await;
        for number in 0..18 {
            world.apply(&package_in("greedy", &format!("own-{number:02}"), "2", "")).await;
        }
        world.apply(&package("widgets", "1", "")).await;
        let too_many = async || {
            let all = world.list_in(Kind::named("PolicyRevision"), "kaos-system").await;
            let many = all.iter().filter(|it| it["status"]["reason"] == "TooManyPolicies");
            many.map(|it| it["spec"]["source"]["configMap"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        world.until_true("only own-16 exceeds the limit", async || too_many().await == ["own-16"]).await;
        until_state(world, "widgets", "Active").await;
        until_state(world, "own-00", "Active").await;
        until_state(world, "own-15", "Conflict").await;
        world.delete("greedy:ConfigMap/own-07").await;
        world.until_true("only own-17 exceeds the limit", async || too_many().await == ["own-17"]).await;
        until_state(world, "own-16", "Conflict").await;
    });
}

#[test]
fn few_removed_packages_of_a_namespace_are_kept() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&namespace("greedy")).await;
        let kept = async || {
            let all = world.list_in(Kind::named("PolicyRevision"), "kaos-system").await;
            all.iter().filter(|it| it["spec"]["source"]["namespace"] == "greedy").count()
        };
        for number in 0..6 {
            let name = format!("own-{number}");
            world.apply(&package_in("greedy", &name, "2", "")).await;
            until_state(world, &name, "Active").await;
            world.delete(&format!("greedy:ConfigMap/{name}")).await;
            until_state(world, &name, "Superseded").await;
        }
        world.until_true("the oldest revisions are gone", async || kept().await == 3).await;
    });
}

/// Returns whether a package has a revision in this state.
async fn is_in(world: &World, source: &str, state: &str) -> bool {
    states(world, source).await.iter().any(|it| it == state)
}

#[test]
fn an_endless_check_delays_nothing_and_ends_with_its_config_map() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&namespace("greedy")).await;
        world.apply(&package("widgets", "1", "")).await;
        world.apply(&widget("w", &json!({}))).await;
        until_edition(world, "ConfigMap/w", "1").await;

        world.hold_compiler_over(Some("EDITION=2"));
        world.apply(&package_in("greedy", "own", "2", "")).await;
        world.until_meanwhile("the operator checks the tenant's package", async || world.held() == (1, 1)).await;
        assert!(is_in(world, "own", "Checking").await);

        world.apply(&package("widgets", "3", "")).await;
        let serves = async || is_in(world, "widgets", "Superseded").await && is_in(world, "widgets", "Active").await;
        world.until_meanwhile("the owner's next package serves", serves).await;
        world.until_meanwhile("the operator checks the tenant's package again", async || world.held() == (1, 2)).await;
        let told = revisions(world, "own").await.remove(0);
        assert_eq!((&told["status"]["state"], &told["status"]["attempts"]), (&json!("Checking"), &json!(1)), "{told}");

        world.delete("kaos-system:ConfigMap/widgets").await;
        let is_gone = async || !is_in(world, "widgets", "Active").await;
        world.until_meanwhile("the removed package serves no more", is_gone).await;
        world.delete("greedy:ConfigMap/own").await;
        world.until_meanwhile("the check of the removed package has ended", async || world.held() == (0, 2)).await;
        world.until_true("the removed package has no revision", async || states(world, "own").await.is_empty()).await;

        world.hold_compiler_over(None);
        world.apply(&package_in("greedy", "own", "2", "")).await;
        until_state(world, "own", "Active").await;
    });
}
