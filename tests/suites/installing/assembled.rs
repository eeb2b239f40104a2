//! Tests packages in several ConfigMaps, policies for several kinds, and overlays over an existing policy.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kaos_operator::package::INDEX_ANNOTATION;
use kaos_tests::guests;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::read::variable;
use kaos_tests::harness::{World, play, reason, samples};
use serde_json::{Value, json};

use crate::support::{
    define, package, packed, read_in, revisions, scenario, until_edition, until_state, widget, widget_waits,
};

const PIECES: usize = 3;

/// Splits the component of a package into chunks. Returns the ConfigMaps of the chunks, and the package's ConfigMap,
/// which lists them (the index).
fn in_pieces(name: &str, edition: &str) -> (Vec<Value>, Value) {
    let mut index = package(name, edition, "");
    let zipped = index["binaryData"]["policy.wasm.gz"].as_str().unwrap();
    let zipped = BASE64_STANDARD.decode(zipped).unwrap();
    let piece = |(number, bytes): (usize, &[u8])| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"part": BASE64_STANDARD.encode(bytes)},
            "metadata": {"name": format!("{name}-{number}"), "namespace": "kaos-system",
                "labels": {"kaos.tools/policy": "chunk"}, "annotations": {INDEX_ANNOTATION: name}}})
    };
    let pieces: Vec<Value> = zipped.chunks(zipped.len().div_ceil(PIECES)).enumerate().map(piece).collect();
    let names: Vec<&str> = pieces.iter().filter_map(|piece| piece["metadata"]["name"].as_str()).collect();
    index["data"]["policy.chunks"] = json!(names.join("\n"));
    index.as_object_mut().unwrap().remove("binaryData");
    (pieces, index)
}

/// Waits until the status of a package's revision reports a missing or wrong chunk. `why` is a part of the message.
async fn until_incomplete(world: &World, source: &str, why: &str) {
    let tells = |revision: &Value| {
        let message = revision["status"]["message"].as_str();
        revision["status"]["reason"] == "Incomplete" && message.is_some_and(|message| message.contains(why))
    };
    let told = async || revisions(world, source).await.iter().any(tells);
    world.until_true(&format!("{source} is incomplete: {why}"), told).await;
}

#[test]
fn chunks_may_come_in_any_order_and_the_swap_waits_for_the_last() {
    play(scenario(), async |world| {
        widget_waits(world).await;
        let (pieces, index) = in_pieces("widgets", "1");
        world.apply(&index).await;
        until_incomplete(world, "widgets", "widgets-0").await;
        for piece in pieces.iter().rev() {
            world.apply(piece).await;
        }
        until_edition(world, "ConfigMap/w", "1").await;
        until_state(world, "widgets", "Active").await;

        // Apply the ConfigMaps of another edition, first the index and then the chunks. The operator must not combine
        // chunks of two editions.
        let (pieces, index) = in_pieces("widgets", "2");
        world.apply(&index).await;
        until_incomplete(world, "widgets", "sha256").await;
        world.apply(&pieces[0]).await;
        world.quiet().await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1", "the older revision keeps serving");
        for piece in &pieces {
            world.apply(piece).await;
        }
        until_edition(world, "ConfigMap/w", "2").await;
    });
}

#[test]
fn a_deleted_or_replaced_chunk_leaves_the_active_revision_unchanged() {
    play(scenario(), async |world| {
        widget_waits(world).await;
        let (pieces, index) = in_pieces("widgets", "1");
        for object in pieces.iter().chain([&index]) {
            world.apply(object).await;
        }
        until_edition(world, "ConfigMap/w", "1").await;
        world.delete("kaos-system:ConfigMap/widgets-1").await;
        until_incomplete(world, "widgets", "widgets-1").await;
        let mut other = pieces[1].clone();
        other["binaryData"]["part"] = json!(BASE64_STANDARD.encode("something else"));
        world.apply(&other).await;
        until_incomplete(world, "widgets", "sha256").await;
        world.restart().await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.apply(&pieces[1]).await;
        world
            .until_true("one revision is active again", async || {
                revisions(world, "widgets").await.iter().filter(|it| it["status"]["state"] == "Active").count() == 1
            })
            .await;
        world.quiet().await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

/// Moves a package's ConfigMap into the namespace `test`.
fn of_tenant(mut config_map: Value) -> Value {
    config_map["metadata"]["namespace"] = json!("test");
    config_map
}

#[test]
fn a_package_of_a_namespace_may_consist_of_labelled_chunks() {
    play(scenario().installing(true), async |world| {
        widget_waits(world).await;
        let (pieces, index) = in_pieces("widgets", "1");
        let pieces: Vec<Value> = pieces.into_iter().map(of_tenant).collect();
        world.apply(&of_tenant(index)).await;
        until_incomplete(world, "widgets", "widgets-0").await;
        world.apply_all(&pieces[..2]).await;
        let mut bare = pieces[2].clone();
        bare["metadata"].as_object_mut().unwrap().remove("labels");
        world.apply(&bare).await;
        until_incomplete(world, "widgets", "widgets-2").await;
        world.quiet().await;
        assert!(
            !read_in(world, "test").contains(&"widgets-2".to_owned()),
            "the operator read a ConfigMap without the label"
        );
        world.apply(&pieces[2]).await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.delete("ConfigMap/widgets-1").await;
        until_incomplete(world, "widgets", "widgets-1").await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn a_too_long_list_of_chunks_is_refused_unread() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        let (pieces, mut index) = in_pieces("many", "1");
        let names: Vec<String> = (0..101).map(|number| format!("many-{number}")).collect();
        for name in &names {
            let mut piece = of_tenant(pieces[0].clone());
            piece["metadata"]["name"] = json!(name);
            world.apply(&piece).await;
        }
        index["data"]["policy.chunks"] = json!(names.join("\n"));
        world.apply(&of_tenant(index)).await;
        let refused = until_state(world, "many", "Refused").await;
        assert!(refused["status"]["message"].as_str().unwrap().contains("more than 100"), "{refused}");
        assert_eq!(read_in(world, "test"), ["many"]);
    });
}

/// Returns a Kite. An edition of the Widgets' policy can also claim the kind `Kite`.
fn kite(name: &str) -> Value {
    json!({"apiVersion": "sky.io/v1", "kind": "Kite", "metadata": {"name": name}, "spec": {}})
}

#[test]
fn a_component_may_claim_several_kinds_and_drop_one() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&samples::definition("sky.io", "kites", "Kite")).await;
        world.apply(&widget("w", &json!({}))).await;
        world.apply(&kite("k")).await;
        world.apply(&package("both", "1 and kites", "")).await;
        until_edition(world, "ConfigMap/w", "1").await;
        let made = until_edition(world, "ConfigMap/k", "1").await;
        assert_eq!(made["metadata"]["ownerReferences"][0]["kind"], "Kite");
        world.until_ready("Kite/k").await;
        let active = until_state(world, "both", "Active").await;
        assert_eq!(active["status"]["kinds"], json!(["test.example.com/v1 Widget", "sky.io/v1 Kite"]));
        world.apply(&package("both", "2 and kites", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        until_edition(world, "ConfigMap/k", "2").await;

        world.apply(&package("both", "3", "")).await;
        until_edition(world, "ConfigMap/w", "3").await;
        world
            .until("Kite/k has the reason NoPolicy for Accepted", "Kite/k", |kite| {
                reason(kite, "Accepted") == "NoPolicy"
            })
            .await;
        assert_eq!(world.look("ConfigMap/k").await["data"]["edition"], "2", "the existing child stays unchanged");
        world.apply(&package("kites", "4 and kites", "scope: {namespaces: [elsewhere]}")).await;
        until_state(world, "kites", "Active").await;
        until_edition(world, "ConfigMap/w", "3").await;
    });
}

#[test]
fn an_overlay_changes_variables_and_its_removal_restores_them() {
    play(scenario(), async |world| {
        let overlay = guests::example("loglevel").unwrap();
        world.apply_all(&[samples::model_api("llm"), samples::agent("a", "llm", &json!({}))]).await;
        world.until_ready("Agent/a").await;
        let before = world.look(AGENT).await;
        world.apply(&packed("loud", Some(&overlay), "settings: {level: DEBUG}")).await;
        let loud = world.until("the new log level applies", AGENT, |live| variable(live, "LOG_LEVEL") == "DEBUG").await;
        assert_eq!(image(&loud), image(&before), "the overlay changed more than variables");
        let active = until_state(world, "loud", "Active").await;
        assert_eq!(active["status"]["policy"], "log-level");
        assert_eq!(world.look("Agent/a").await["status"]["policy"]["name"], "agent");
        world.apply(&packed("loud", Some(&overlay), "settings: {level: ERROR}")).await;
        world
            .until("the new settings of the overlay apply", AGENT, |live| variable(live, "LOG_LEVEL") == "ERROR")
            .await;
        world.delete("kaos-system:ConfigMap/loud").await;
        let after = world
            .until("the former log level applies", AGENT, |live| {
                variable(live, "LOG_LEVEL") == variable(&before, "LOG_LEVEL")
            })
            .await;
        assert_eq!(after["spec"]["template"], before["spec"]["template"]);
        world.quiet().await;
        assert_eq!(
            world.list_in(Kind::named("ReplicaSet"), "test").await.len(),
            4,
            "each of the changes starts one rollout"
        );
    });
}

const AGENT: &str = "Deployment/agent-a";

fn image(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["image"]
}
