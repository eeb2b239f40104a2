//! Tests an active policy that the operator can no longer load.

use kaos_cluster::faults::Failure;
use kaos_tests::harness::read::{name, uid};
use kaos_tests::harness::{Fault, World, condition, play};
use serde_json::{Value, json};

use crate::support::{
    first_edition_serves, package, retry, revisions, scenario, settings, until_edition, until_state,
    until_written_again, widget,
};

/// Waits until the second edition serves the Widget `w` and has created its second ConfigMap. Returns the UID of this
/// ConfigMap.
async fn second_edition_keeps(world: &World) -> String {
    first_edition_serves(world, &json!({})).await;
    world.apply(&package("widgets", "2 keeps", "")).await;
    let kept = world.until("ConfigMap/w-kept exists", "ConfigMap/w-kept", |kept| !kept.is_null()).await;
    until_edition(world, "ConfigMap/w", "2").await;
    uid(&kept).to_owned()
}

/// Waits until the first edition serves the Widget as the fallback for the active edition. Also waits until the status
/// of the Widget and the status of the revision show the fallback.
async fn until_stood_in(world: &World) -> Value {
    until_edition(world, "ConfigMap/w", "1").await;
    let told = world
        .until("the condition PolicyFallback of Widget/w is True", "Widget/w", |widget| {
            condition(widget, "PolicyFallback")["status"] == "True"
        })
        .await;
    assert!(condition(&told, "PolicyFallback")["message"].as_str().unwrap().contains("cannot be loaded"), "{told}");
    let withheld = until_state(world, "widgets", "Active").await;
    assert_eq!(withheld["status"]["reason"], "NotLoaded", "{withheld}");
    withheld
}

#[test]
fn the_predecessor_of_an_unloadable_revision_serves_as_fallback_only() {
    play(scenario(), async |world| {
        let kept = second_edition_keeps(world).await;
        world.refuse_to_compile(Some("EDITION=2"));
        world.restart().await;
        let withheld = until_stood_in(world).await;
        let message = withheld["status"]["message"].as_str().unwrap();
        assert!(message.contains("DoesNotCompile") && message.contains("rollback"), "{message}");
        world.until_warned(&format!("kaos-system:PolicyRevision/{}", name(&withheld)), "NotLoaded").await;
        world.quiet().await;
        assert_eq!(uid(&world.look("ConfigMap/w-kept").await), kept, "the fallback deletes nothing");

        world.restart().await;
        until_stood_in(world).await;
        world.quiet().await;
        assert_eq!(uid(&world.look("ConfigMap/w-kept").await), kept);

        world.refuse_to_compile(None);
        world.restart().await;
        until_edition(world, "ConfigMap/w", "2").await;
        let told = world
            .until("the revision serves again", "Widget/w", |widget| condition(widget, "PolicyFallback").is_null())
            .await;
        assert_eq!(told["status"]["policy"]["version"], "2.0.0");
        assert_eq!(until_state(world, "widgets", "Active").await["status"]["reason"], "Active");
        assert_eq!(uid(&world.look("ConfigMap/w-kept").await), kept);
    });
}

#[test]
fn an_unloadable_revision_is_tried_again_on_request() {
    play(scenario(), async |world| {
        second_edition_keeps(world).await;
        world.refuse_to_compile(Some("EDITION=2"));
        world.restart().await;
        let withheld = until_stood_in(world).await;
        world.refuse_to_compile(None);
        retry(world, &withheld).await;
        until_edition(world, "ConfigMap/w", "2").await;
        let active = until_state(world, "widgets", "Active").await;
        assert_eq!((&active["status"]["reason"], &active["status"]["retried"]), (&json!("Active"), &json!("please")));
    });
}

#[test]
fn a_requested_load_that_fails_for_now_is_retried_automatically() {
    play(scenario(), async |world| {
        second_edition_keeps(world).await;
        world.refuse_to_compile(Some("EDITION=2"));
        world.restart().await;
        let withheld = until_stood_in(world).await;
        world.kill_compiler_over(Some("EDITION=2"));
        retry(world, &withheld).await;
        world.until_hit().await;
        until_stood_in(world).await;
        world.kill_compiler_over(None);
        until_edition(world, "ConfigMap/w", "2").await;
    });
}

#[test]
fn a_package_in_conflict_keeps_waiting_for_an_unloadable_revision() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("younger", "3", "")).await;
        until_state(world, "younger", "Conflict").await;
        world.quiet().await;
        let before = world.look("ConfigMap/w").await;
        world.refuse_to_compile(Some("EDITION=1"));
        world.restart().await;
        until_told(world, "widgets", "cannot be loaded").await;
        world.apply(&package("youngest", "4", "")).await;
        until_state(world, "youngest", "Conflict").await;
        let waits = until_state(world, "younger", "Conflict").await;
        assert_eq!(waits["status"]["reason"], "PlaceTaken", "{waits}");
        world.quiet().await;
        assert_eq!(world.look("ConfigMap/w").await, before, "the child did not change");

        world.refuse_to_compile(None);
        world.restart().await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        until_edition(world, "ConfigMap/w", "3").await;
    });
}

#[test]
fn a_revision_that_no_longer_fits_the_admitted_ones_delays_nothing() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2 small", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.refuse_to_compile(Some("EDITION=2"));
        world.restart().await;
        let withheld = until_stood_in(world).await;
        world.apply(&settings("sizes", "{name: widget, settings: {size: 5}}")).await;
        world.until("the settings apply", "ConfigMap/w", |live| live["data"]["size"] == "5").await;
        world.refuse_to_compile(None);
        retry(world, &withheld).await;
        until_told(world, "widgets", "BadSettings").await;

        world.restart().await;
        world.delete("ConfigMap/w").await;
        until_stood_in(world).await;
        until_told(world, "widgets", "BadSettings").await;
        world.apply(&settings("sizes", "{name: widget, settings: {size: 6}}")).await;
        world.until("the changed settings apply", "ConfigMap/w", |live| live["data"]["size"] == "6").await;

        world.apply(&settings("sizes", "{name: widget, settings: {size: 2}}")).await;
        world.until("the new settings apply", "ConfigMap/w", |live| live["data"]["size"] == "2").await;
        world.restart().await;
        until_edition(world, "ConfigMap/w", "2").await;
        assert_eq!(until_state(world, "widgets", "Active").await["status"]["reason"], "Active");
    });
}

#[test]
fn a_rollback_from_an_unloadable_revision_deletes_its_children() {
    play(scenario(), async |world| {
        second_edition_keeps(world).await;
        world.refuse_to_compile(Some("EDITION=2"));
        world.restart().await;
        until_stood_in(world).await;
        world.apply(&package("widgets", "1", "")).await;
        world.until_gone("ConfigMap/w-kept").await;
        until_state(world, "widgets", "Superseded").await;
        world
            .until("the first edition serves, but not as a fallback", "Widget/w", |widget| {
                condition(widget, "PolicyFallback").is_null()
            })
            .await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1");
    });
}

#[test]
fn a_revision_with_lost_bytes_serves_again_once_they_are_back() {
    play(scenario(), async |world| {
        let kept = second_edition_keeps(world).await;
        let active = until_state(world, "widgets", "Active").await;
        let bytes = format!("kaos-system:ConfigMap/{}", name(&active));
        let empty = json!({"data": null, "binaryData": null});
        world.patch("kaos-system:ConfigMap/widgets", &empty).await;
        until_state(world, "widgets", "Refused").await;
        world.stop_all().await;
        world.delete(&bytes).await;
        world.start().await;
        let withheld = until_stood_in(world).await;
        assert!(withheld["status"]["message"].as_str().unwrap().contains("BytesLost"), "{withheld}");
        world.quiet().await;
        assert_eq!(uid(&world.look("ConfigMap/w-kept").await), kept);

        world.apply(&package("widgets", "2 keeps", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.until("the bytes are stored again", &bytes, |bytes| !bytes.is_null()).await;
        world.patch("kaos-system:ConfigMap/widgets", &empty).await;
        until_state(world, "widgets", "Refused").await;
        world.restart().await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "2").await;
        assert_eq!(uid(&world.look("ConfigMap/w-kept").await), kept);
    });
}

#[test]
fn settings_with_lost_bytes_are_reported_and_apply_again_once_they_are_back() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let sizes = settings("sizes", "{name: widget, settings: {size: 5}}");
        world.apply(&sizes).await;
        let is_five = |live: &Value| live["data"]["size"] == "5";
        world.until("the settings apply", "ConfigMap/w", is_five).await;
        let active = until_state(world, "sizes", "Active").await;
        world.patch("kaos-system:ConfigMap/sizes", &json!({"data": null})).await;
        until_state(world, "sizes", "Refused").await;
        world.stop_all().await;
        world.delete(&format!("kaos-system:ConfigMap/{}", name(&active))).await;
        world.start().await;
        world
            .until("the condition PolicyFallback of Widget/w is True", "Widget/w", |widget| {
                condition(widget, "PolicyFallback")["status"] == "True"
            })
            .await;
        world.apply(&sizes).await;
        world
            .until("the status no longer reports a fallback", "Widget/w", |widget| {
                condition(widget, "PolicyFallback").is_null()
            })
            .await;
        world.until("the settings apply again", "ConfigMap/w", is_five).await;
    });
}

#[test]
fn the_deleted_record_of_an_unloadable_revision_is_written_again() {
    play(scenario(), async |world| {
        let kept = second_edition_keeps(world).await;
        world.refuse_to_compile(Some("EDITION=2"));
        world.restart().await;
        let withheld = until_stood_in(world).await;
        retry(world, &withheld).await;
        let at = format!("kaos-system:PolicyRevision/{}", name(&withheld));
        world
            .until("the operator has handled the retry request", &at, |record| record["status"]["retried"] == "please")
            .await;
        world.delete(&at).await;
        until_written_again(world, "widgets", &withheld).await;
        until_stood_in(world).await;
        world.quiet().await;
        assert_eq!(uid(&world.look("ConfigMap/w-kept").await), kept, "the fallback deletes nothing");

        world.refuse_to_compile(None);
        retry(world, &withheld).await;
        until_edition(world, "ConfigMap/w", "2").await;
        assert_eq!(uid(&world.look("ConfigMap/w-kept").await), kept);
    });
}

#[test]
fn a_rollback_skips_unloadable_revisions() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        let second = until_state(world, "widgets", "Active").await;
        world.apply(&package("widgets", "3 traps", "")).await;
        until_edition(world, "ConfigMap/w", "3").await;
        let write = Fault::on(&["patch"]).of("policyrevisions").under("status").named(name(&second));
        world.break_it(write.fail(Failure::Server(500)));
        world.apply(&widget("w", &json!({"fragile": true}))).await;
        until_state(world, "widgets", "Quarantined").await;
        world.until_hit().await;
        world.stop_all().await;
        world.mend();
        world.delete(&format!("kaos-system:ConfigMap/{}", name(&second))).await;
        world.start().await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

/// Waits until the message in the status of a package's active revision contains this text.
async fn until_told(world: &World, source: &str, text: &str) {
    let says = |revision: &Value| {
        let status = &revision["status"];
        status["state"] == "Active" && status["message"].as_str().is_some_and(|message| message.contains(text))
    };
    world.until_true(&format!("{source} says {text}"), async || revisions(world, source).await.iter().any(says)).await;
}
