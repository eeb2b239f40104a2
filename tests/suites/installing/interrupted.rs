//! Tests an operator that ends while it checks a package. It ends only once by chance, or again and again because of
//! the package.

use std::time::Duration;

use kaos_tests::harness::{Fault, World, play};
use serde_json::Value;

use crate::support::{package, retry, revisions, scenario, until_edition, until_state, widget_waits};

/// Creates a Widget, and a package that can serve the Widget. No operator runs yet.
async fn package_waits(world: &World) {
    widget_waits(world).await;
    world.apply(&package("widgets", "1", "")).await;
}

/// Starts an operator, and waits until the operator begins to check the package. This check hangs.
async fn checks(world: &World) {
    let hour = Duration::from_hours(1);
    world.break_it(Fault::on(&["create"]).of("selfsubjectrulesreviews").slow(hour));
    let before = told(world, "attempts").await;
    world.spawn();
    world
        .until_true("the operator checks the package", async || {
            told(world, "state").await == "Checking" && told(world, "attempts").await != before
        })
        .await;
    world.until_hit().await;
    world.mend();
}

/// Starts an operator, and kills it in the middle of the check.
async fn killed_while_it_checks(world: &World) {
    checks(world).await;
    world.crash().await;
}

async fn told(world: &World, field: &str) -> Value {
    revisions(world, "widgets").await.first().map(|revision| revision["status"][field].clone()).unwrap_or_default()
}

#[test]
fn a_package_serves_after_an_operator_was_killed_during_its_check() {
    play(scenario().idle(), async |world| {
        package_waits(world).await;
        killed_while_it_checks(world).await;
        killed_while_it_checks(world).await;
        assert_eq!(told(world, "attempts").await, 2);
        world.start().await;
        until_edition(world, "ConfigMap/w", "1").await;
        let active = until_state(world, "widgets", "Active").await;
        assert!(active["status"]["attempts"].is_null(), "{active}");
    });
}

#[test]
fn a_package_that_crashes_the_operator_repeatedly_waits_for_a_retry_request() {
    play(scenario().idle(), async |world| {
        package_waits(world).await;
        for _ in 0..3 {
            killed_while_it_checks(world).await;
        }
        world.start().await;
        let refused = until_state(world, "widgets", "Refused").await;
        assert_eq!(refused["status"]["reason"], "EndedTheOperator");
        assert!(refused["status"]["message"].as_str().unwrap().contains("kaos.tools/retry"), "{refused}");
        world.restart().await;
        world.quiet().await;
        assert_eq!(told(world, "reason").await, "EndedTheOperator");
        retry(world, &refused).await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn an_orderly_stop_does_not_count_as_an_interrupted_check() {
    play(scenario().idle(), async |world| {
        package_waits(world).await;
        for _ in 0..4 {
            checks(world).await;
            world.stop_all().await;
            assert_eq!(told(world, "state").await, "Pending");
        }
        world.start().await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}
