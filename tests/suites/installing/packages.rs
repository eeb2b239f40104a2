//! Tests packages whose ConfigMaps users write in parts, empty, rename, delete or relabel.

use std::collections::BTreeSet;

use kaos_cluster::faults::Failure;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::read;
use kaos_tests::harness::{Fault, World, play, reason};
use serde_json::{Value, json};

use crate::support::{
    define, first_edition_serves, namespace, package, revisions, scenario, settings, until_edition, until_state,
    widget, widget_waits,
};

#[test]
fn an_emptied_config_map_leaves_the_active_revision_unchanged() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.patch("kaos-system:ConfigMap/widgets", &json!({"data": null, "binaryData": null})).await;
        let refused = until_state(world, "widgets", "Refused").await;
        assert!(refused["status"]["message"].as_str().unwrap().contains("is empty"), "{refused}");
        world.restart().await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn a_deleted_or_unlabelled_config_map_no_longer_serves() {
    play(scenario(), async |world| {
        define(world).await;
        for gone in [true, false] {
            world.apply(&package("widgets", "1", "")).await;
            world.apply(&widget("w", &json!({}))).await;
            until_edition(world, "ConfigMap/w", "1").await;
            // Wait until the package serves. If the test deleted the package's ConfigMap during the check, the operator
            // would create no revision.
            until_state(world, "widgets", "Active").await;
            if gone {
                world.delete("kaos-system:ConfigMap/widgets").await;
            } else {
                let label = json!({"metadata": {"labels": {"kaos.tools/policy": null}}});
                world.patch("kaos-system:ConfigMap/widgets", &label).await;
            }
            let revision = until_state(world, "widgets", "Superseded").await;
            assert_eq!(revision["status"]["reason"], "SourceDeleted");
            assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1", "the existing child stays unchanged");
        }
    });
}

#[test]
fn the_last_three_of_config_maps_with_generated_names_are_kept() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&widget("w", &json!({}))).await;
        for edition in 1..=6 {
            world.apply(&package(&format!("widgets-{edition}"), &edition.to_string(), "")).await;
            if edition > 1 {
                until_state(world, &format!("widgets-{edition}"), "Conflict").await;
                world.delete(&format!("kaos-system:ConfigMap/widgets-{}", edition - 1)).await;
            }
            until_edition(world, "ConfigMap/w", &edition.to_string()).await;
        }
        let left = async || {
            let all = world.list_in(Kind::named("PolicyRevision"), "kaos-system").await;
            all.iter().map(|it| it["spec"]["source"]["configMap"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
        };
        let kept = ["widgets-3", "widgets-4", "widgets-5", "widgets-6"].map(str::to_owned).into();
        world.until_true("the oldest revisions are gone", async || left().await == kept).await;
    });
}

#[test]
fn objects_report_the_removal_of_their_policy_also_after_a_restart() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        world
            .until("Widget/w has the reason NoPolicy for Accepted", "Widget/w", |widget| {
                reason(widget, "Accepted") == "NoPolicy"
            })
            .await;
        world.restart().await;
        world.apply(&widget("late", &json!({}))).await;
        world
            .until("the later Widget reports that no policy answers", "Widget/late", |late| {
                reason(late, "Accepted") == "NoPolicy"
            })
            .await;
        world.apply(&package("widgets", "2", "")).await;
        until_edition(world, "ConfigMap/late", "2").await;
    });
}

#[test]
fn objects_outside_of_every_scope_report_no_policy_also_after_a_restart() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&namespace("elsewhere")).await;
        world.apply(&package("widgets", "1", "scope: {namespaces: [elsewhere]}")).await;
        until_state(world, "widgets", "Active").await;
        world.apply(&widget("w", &json!({}))).await;
        world
            .until("Widget/w has the reason NoPolicy for Accepted", "Widget/w", |widget| {
                reason(widget, "Accepted") == "NoPolicy"
            })
            .await;
        world.restart().await;
        world.apply(&widget("late", &json!({}))).await;
        world
            .until("the later Widget reports that no policy answers", "Widget/late", |late| {
                reason(late, "Accepted") == "NoPolicy"
            })
            .await;
    });
}

/// Replaces a package by a package of another name that contains the second edition.
///
/// The second edition fails on the Widget that the first edition serves, and goes into quarantine.
async fn renamed_is_put_aside(world: &World) {
    first_edition_serves(world, &json!({"fragile": true})).await;
    world.delete("kaos-system:ConfigMap/widgets").await;
    until_state(world, "widgets", "Superseded").await;
    world.apply(&package("renamed", "2 traps", "")).await;
    until_state(world, "renamed", "Quarantined").await;
}

#[test]
fn a_renamed_package_falls_back_to_the_old_one() {
    play(scenario(), async |world| {
        renamed_is_put_aside(world).await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

/// Returns packages in the namespace `test`, which together claim five places.
fn of_a_namespace(prefix: &str) -> Vec<Value> {
    let of_settings = |(policy, tree): (&str, &str)| {
        settings(&format!("{prefix}-{policy}"), &format!("{{name: {policy}, settings: {tree}}}"))
    };
    let trees = [
        ("widget", "{size: 2}"),
        ("agent", "{imagePullPolicy: Never}"),
        ("mcpserver", "{imagePullPolicy: Never}"),
        ("modelapi", "{proxy: {imagePullPolicy: Never}}"),
    ];
    let mut all = vec![package(&format!("{prefix}-own"), "1", "")];
    all.extend(trees.map(of_settings));
    for package in &mut all {
        package["metadata"]["namespace"] = json!("test");
    }
    all
}

#[test]
fn packages_renamed_together_each_fall_back_to_their_old_package() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        let source = |package: &Value| read::name(package).to_owned();
        let (old, renamed) = (of_a_namespace("old"), of_a_namespace("new"));
        world.apply_all(&old).await;
        let mut before = Vec::new();
        for package in &old {
            before.push(until_state(world, &source(package), "Active").await["metadata"]["name"].clone());
        }
        for package in &old {
            world.delete(&format!("test:ConfigMap/{}", source(package))).await;
        }
        for package in &old {
            until_state(world, &source(package), "Superseded").await;
        }
        world.apply_all(&renamed).await;
        for (package, before) in renamed.iter().zip(before) {
            let active = until_state(world, &source(package), "Active").await;
            assert_eq!(active["status"]["predecessor"], before, "{active}");
        }
    });
}

#[test]
fn a_renamed_package_falls_back_also_if_the_old_name_is_deleted_later() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({"fragile": true})).await;
        // Let time pass, so that the first package's ConfigMap is older than that of the second package.
        world.pass_time(std::time::Duration::from_secs(5)).await;
        world.apply(&package("renamed", "2 traps", "")).await;
        until_state(world, "renamed", "Conflict").await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        until_state(world, "renamed", "Quarantined").await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn the_old_package_serves_until_the_renamed_one_passes_the_gate() {
    play(scenario(), async |world| {
        renamed_is_put_aside(world).await;
        until_state(world, "widgets", "Active").await;
        world.patch("kaos-system:ConfigMap/renamed", &json!({"data": null, "binaryData": null})).await;
        until_state(world, "renamed", "Refused").await;
        for restarts in [false, true] {
            if restarts {
                world.restart().await;
            }
            world.quiet().await;
            world.delete("ConfigMap/w").await;
            until_edition(world, "ConfigMap/w", "1").await;
        }
        world.apply(&package("renamed", "3", "")).await;
        until_edition(world, "ConfigMap/w", "3").await;
        until_state(world, "renamed", "Active").await;
        world.delete("kaos-system:ConfigMap/renamed").await;
        world
            .until("no policy answers for the Widget", "Widget/w", |widget| reason(widget, "Accepted") == "NoPolicy")
            .await;
    });
}

#[test]
fn only_the_last_revisions_and_their_bytes_are_kept() {
    play(scenario(), async |world| {
        widget_waits(world).await;
        for edition in 1..=6 {
            world.apply(&package("widgets", &edition.to_string(), "")).await;
            until_edition(world, "ConfigMap/w", &edition.to_string()).await;
        }
        world.quiet().await;
        assert_eq!(revisions(world, "widgets").await.len(), 3);
        let kept = world.list_in(Kind::named("ConfigMap"), "kaos-system").await;
        let bytes: Vec<&Value> =
            kept.iter().filter(|map| map["metadata"]["labels"]["kaos.tools/policy-revision"].is_string()).collect();
        assert_eq!(bytes.len(), 3);
        assert!(bytes.iter().all(|map| map["immutable"] == true));
    });
}

#[test]
fn a_record_that_cannot_be_deleted_delays_nothing() {
    play(scenario(), async |world| {
        widget_waits(world).await;
        world.break_it(Fault::on(&["delete"]).of("policyrevisions").fail(Failure::Server(500)));
        for edition in 1..=6 {
            world.apply(&package("widgets", &edition.to_string(), "")).await;
            until_edition(world, "ConfigMap/w", &edition.to_string()).await;
        }
        world.until_hit().await;
        world.apply(&settings("lost", "{name: nobody, settings: {size: 1}}")).await;
        until_state(world, "lost", "Refused").await;
        world.delete("kaos-system:ConfigMap/lost").await;
        world.apply(&widget("v", &json!({}))).await;
        world.apply(&package("widgets", "7", "")).await;
        until_edition(world, "ConfigMap/w", "7").await;
        let counts = |revision: &Value| revision["status"]["state"] == "Active" && revision["status"]["objects"] == 2;
        world
            .until_true("the status of a revision counts the Widget", async || {
                revisions(world, "widgets").await.iter().any(counts)
            })
            .await;
        world.mend();
        world.until_true("the old records are deleted", async || revisions(world, "widgets").await.len() == 3).await;
        world
            .until_true("the record of the deleted package is deleted", async || {
                revisions(world, "lost").await.is_empty()
            })
            .await;
    });
}

#[test]
fn stored_bytes_that_were_replaced_do_not_run() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let active = until_state(world, "widgets", "Active").await;
        world.stop_all().await;
        let name = format!("kaos-system:ConfigMap/{}", read::name(&active));
        let mut kept = world.look(&name).await;
        world.delete(&name).await;
        kept["binaryData"] = package("widgets", "2", "")["binaryData"].clone();
        kept["metadata"] = json!({"name": kept["metadata"]["name"], "namespace": "kaos-system"});
        world.apply(&kept).await;
        world.patch("kaos-system:ConfigMap/widgets", &json!({"data": null, "binaryData": null})).await;
        world.spawn();
        let withheld = world
            .until(
                "the operator detects the replaced bytes",
                &name.replace("ConfigMap", "PolicyRevision"),
                |revision| revision["status"]["reason"] == "NotLoaded",
            )
            .await;
        assert_eq!(withheld["status"]["state"], "Active", "the revision keeps its place");
        assert!(withheld["status"]["message"].as_str().unwrap().contains("BytesLost"), "{withheld}");
        world.quiet().await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1");
    });
}

#[test]
fn a_config_map_that_blocks_the_storage_of_bytes_is_named() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let revision = until_state(world, "widgets", "Active").await;
        let name = read::name(&revision).to_owned();
        world.delete("kaos-system:ConfigMap/widgets").await;
        until_state(world, "widgets", "Superseded").await;
        world.delete(&format!("kaos-system:PolicyRevision/{name}")).await;
        let kept = format!("kaos-system:ConfigMap/{name}");
        world.until_gone(&kept).await;
        world
            .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "kaos-system"}, "data": {"some": "thing"}}))
            .await;
        world.apply(&package("widgets", "1", "")).await;
        let waits = until_state(world, "widgets", "Pending").await;
        world
            .until_true("the revision reports that the name is taken", async || {
                revisions(world, "widgets").await.iter().any(|it| it["status"]["reason"] == "NameTaken")
            })
            .await;
        assert_eq!(waits["metadata"]["name"], name, "the revision did not change");
        world.delete(&kept).await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn the_record_names_limits_above_those_of_the_operator() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "limits: {fuel: 900000000}")).await;
        let active = until_state(world, "widgets", "Active").await;
        let told = "limits.fuel of policy.yaml is 900,000,000, but the operator allows at most 500,000,000 in a pass";
        assert_eq!(active["status"]["message"], told, "{active:#}");
        world.apply(&package("widgets", "2", "")).await;
        world.apply(&widget("w", &json!({}))).await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
}
