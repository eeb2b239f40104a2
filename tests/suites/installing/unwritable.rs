//! Tests an operator that cannot write or delete one PolicyRevision. The failed writes must not delay the activation or
//! the quarantine of other packages.

use kaos_cluster::faults::Failure;
use kaos_tests::harness::read::name;
use kaos_tests::harness::{Fault, World, play};
use serde_json::{Value, json};

use crate::support::{
    define, first_edition_serves, namespace, package, revisions, scenario, until_edition, until_state, widget,
    widget_in, widget_waits,
};

/// Makes all further writes of one PolicyRevision's status fail.
fn cannot_be_written(world: &World, record: &Value) {
    let writes = Fault::on(&["patch"]).of("policyrevisions").under("status").named(name(record));
    world.break_it(writes.fail(Failure::Server(500)));
}

/// Installs the first edition for the cluster and the second edition for the namespace `canary`. Creates a Widget for
/// each of the two editions.
async fn two_places_are_served(world: &World) {
    define(world).await;
    world.apply(&namespace("canary")).await;
    world.apply(&package("widgets", "1", "")).await;
    world.apply(&package("canary", "2", "scope: {namespaces: [canary]}")).await;
    world.apply(&widget("w", &json!({"fragile": true}))).await;
    world.apply(&widget_in("canary", "w", &json!({"fragile": true}))).await;
    until_edition(world, "ConfigMap/w", "1").await;
    until_edition(world, "canary:ConfigMap/w", "2").await;
}

/// Asserts that the operator continues to put failing revisions into quarantine, and to activate new revisions.
async fn policies_are_looked_after(world: &World) {
    world.apply(&package("widgets", "2 traps", "")).await;
    until_state(world, "widgets", "Quarantined").await;
    world.delete("ConfigMap/w").await;
    until_edition(world, "ConfigMap/w", "1").await;
    world.apply(&package("widgets", "4", "")).await;
    until_edition(world, "ConfigMap/w", "4").await;
}

#[test]
fn a_policy_serves_although_its_record_cannot_be_written() {
    play(scenario(), async |world| {
        two_places_are_served(world).await;
        world.apply(&package("late", "3", "scope: {namespaces: [canary]}")).await;
        let record = until_state(world, "late", "Conflict").await;
        cannot_be_written(world, &record);
        world.delete("kaos-system:ConfigMap/canary").await;
        until_edition(world, "canary:ConfigMap/w", "3").await;
        world.until_hit().await;
        policies_are_looked_after(world).await;
        until_state(world, "late", "Conflict").await;
        world.mend();
        until_state(world, "late", "Active").await;
    });
}

#[test]
fn a_replaced_policy_stops_serving_although_its_record_cannot_be_written() {
    play(scenario(), async |world| {
        two_places_are_served(world).await;
        let record = until_state(world, "canary", "Active").await;
        cannot_be_written(world, &record);
        world.apply(&package("canary", "3", "scope: {namespaces: [canary]}")).await;
        until_edition(world, "canary:ConfigMap/w", "3").await;
        world.until_hit().await;
        policies_are_looked_after(world).await;
        world.mend();
        until_state(world, "canary", "Superseded").await;
    });
}

#[test]
fn an_unloadable_policy_keeps_its_place_although_its_record_cannot_be_written() {
    play(scenario(), async |world| {
        two_places_are_served(world).await;
        let record = until_state(world, "canary", "Active").await;
        world.stop_all().await;
        world.delete(&format!("kaos-system:ConfigMap/{}", name(&record))).await;
        world.patch("kaos-system:ConfigMap/canary", &json!({"data": null, "binaryData": null})).await;
        cannot_be_written(world, &record);
        world.spawn();
        world.until_hit().await;
        policies_are_looked_after(world).await;
        world.mend();
        world
            .until_true("the revision reports that the operator cannot load it", async || {
                revisions(world, "canary").await.iter().any(|it| it["status"]["reason"] == "NotLoaded")
            })
            .await;
    });
}

#[test]
fn a_failing_policy_is_quarantined_although_its_record_cannot_be_written() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2 traps", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.quiet().await;
        let serving = revisions(world, "widgets").await;
        let record = serving.iter().find(|it| it["status"]["state"] == "Active").unwrap();
        cannot_be_written(world, record);
        world.apply(&widget("w", &json!({"fragile": true}))).await;
        world.until_hit().await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.mend();
        until_state(world, "widgets", "Quarantined").await;
    });
}

#[test]
fn only_the_record_that_cannot_be_deleted_stays() {
    play(scenario(), async |world| {
        widget_waits(world).await;
        world.apply(&package("widgets", "1", "")).await;
        until_edition(world, "ConfigMap/w", "1").await;
        let record = until_state(world, "widgets", "Active").await;
        world.break_it(Fault::on(&["delete"]).of("policyrevisions").named(name(&record)).fail(Failure::Server(500)));
        for edition in 2..=7 {
            world.apply(&package("widgets", &edition.to_string(), "")).await;
            until_edition(world, "ConfigMap/w", &edition.to_string()).await;
        }
        world.until_hit().await;
        let left = async || revisions(world, "widgets").await;
        world.until_true("the other records are deleted", async || left().await.len() == 4).await;
        assert!(left().await.iter().any(|it| name(it) == name(&record)));
        world.mend();
        world.until_true("the last record is deleted, too", async || left().await.len() == 3).await;
    });
}
