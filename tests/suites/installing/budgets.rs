//! Tests budgets: the fuel and the passes that the objects of a kind in a namespace may use each minute.
//!
//! If a budget is used up, the objects of this kind in this namespace wait for their turns.

use std::time::Duration;

use kaos_operator::operator::Options;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::{Scenario, World, play};
use serde_json::{Value, json};

use crate::support::{
    define, namespace, package, package_in, revisions, scenario, until_edition, until_state, widget, widget_in,
};

const MANY: usize = 40;

fn limited(tune: fn(&mut Options)) -> Scenario {
    scenario().installing(true).tuned(tune)
}

/// Returns the number of Widgets in the namespace `greedy` whose status shows their current generation.
async fn observed(world: &World) -> usize {
    let all = world.list_in(Kind::named("Widget"), "greedy").await;
    all.iter().filter(|widget| widget["status"]["observedGeneration"] == widget["metadata"]["generation"]).count()
}

async fn over_budget(world: &World, package: &str) -> Vec<Value> {
    revisions(world, package).await.iter().map(|revision| revision["status"]["namespacesOverBudget"].clone()).collect()
}

async fn with_many_widgets(world: &World) {
    define(world).await;
    world.apply(&namespace("greedy")).await;
    world.apply(&package("widgets", "1", "")).await;
    world.apply(&package_in("greedy", "own", "2", "")).await;
    until_state(world, "widgets", "Active").await;
    until_state(world, "own", "Active").await;
    for number in 0..MANY {
        world.apply(&widget_in("greedy", &format!("a{number}"), &json!({}))).await;
    }
}

#[test]
fn objects_wait_if_the_budget_is_used_up_and_the_revision_says_so() {
    play(limited(|options| options.budget.passes = Some(10)), async |world| {
        with_many_widgets(world).await;
        let is_used_up = async || over_budget(world, "own").await == [json!(["greedy"])];
        world.until_true("the budget is used up", is_used_up).await;
        assert!(observed(world).await < MANY, "the namespace has no work left, so the test proves nothing");
        // Objects in other namespaces do not wait.
        world.apply(&widget("calm", &json!({}))).await;
        until_edition(world, "ConfigMap/calm", "1").await;
        assert_eq!(over_budget(world, "widgets").await, [Value::Null]);
        assert!(world.counted("kaos_operator_passes_total", &["result=\"over_budget\""]) >= 1.0);
        assert!(world.counted("kaos_operator_objects_over_budget", &[]) >= 1.0);
        assert!(world.counted("kaos_operator_namespace_passes", &["object_namespace=\"greedy\""]) > 0.0);
        assert!(observed(world).await < MANY);
        // Each object gets its turn.
        world.until_true("every status is current", async || observed(world).await == MANY).await;
        world.until_true("no object waits", async || over_budget(world, "own").await == [Value::Null]).await;
    });
}

#[test]
fn a_wait_for_fuel_is_shown_as_long_as_it_lasts() {
    play(limited(|options| options.budget.fuel = Some(1)), async |world| {
        define(world).await;
        world.apply(&namespace("greedy")).await;
        world.apply(&package("widgets", "1 holds", "")).await;
        until_state(world, "widgets", "Active").await;
        // A pass uses much more than the fuel of a minute, so the next object waits for at least a day.
        world.apply(&widget_in("greedy", "first", &json!({}))).await;
        world.until_true("the first Widget is served", async || observed(world).await == 1).await;
        world.apply(&widget_in("greedy", "second", &json!({}))).await;
        let is_used_up = async || over_budget(world, "widgets").await == [json!(["greedy"])];
        world.until_true("the budget is used up", is_used_up).await;
        tokio::time::sleep(Duration::from_mins(30)).await;
        assert_eq!((observed(world).await, is_used_up().await), (1, true));
        // The operator cleans up after a deleted object although the budget is used up.
        world.delete("greedy:Widget/first").await;
        world.until_gone("greedy:Widget/first").await;
        world.delete("greedy:Widget/second").await;
        world.until_true("no object waits", async || over_budget(world, "widgets").await == [Value::Null]).await;
    });
}
