//! Tests a policy that refuses an object that its predecessor accepted. The refusal is a valid answer, unless
//! `policy.yaml` says that refusals count as failures.

use kaos_tests::harness::{condition, play};
use serde_json::json;

use crate::last_good::widgets;
use crate::support::{
    define, first_edition_serves, package, restart_writes_nothing, scenario, until_edition, until_state, widget,
};

#[test]
fn a_refusal_is_an_answer_and_causes_no_quarantine() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({"fragile": true})).await;
        world.apply(&package("widgets", "2 refuses", "")).await;
        world
            .until("Widget/w has the reason Unsupported for Accepted", "Widget/w", |widget| {
                condition(widget, "Accepted")["reason"] == "Unsupported"
            })
            .await;
        world.quiet().await;
        until_state(world, "widgets", "Active").await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1", "the existing child stays unchanged");
    });
}

#[test]
fn a_policy_may_ask_for_quarantine_when_it_refuses_served_objects() {
    play(scenario(), async |world| {
        let all = widgets(world).await;
        world.apply(&package("widgets", "2 refuses", "onRefusal: rollBack")).await;
        let aside = until_state(world, "widgets", "Quarantined").await;
        assert!(aside["status"]["message"].as_str().unwrap().contains("the policy refuses the object"), "{aside}");
        for config_map in &all {
            until_edition(world, config_map, "1").await;
        }
        world.restart().await;
        world.quiet().await;
        until_edition(world, &all[1], "1").await;
    });
}

#[test]
fn a_policy_may_leave_refused_objects_to_its_predecessor() {
    play(scenario(), async |world| {
        let all = widgets(world).await;
        world.apply(&package("widgets", "2 refuses", "onRefusal: hold")).await;
        for (number, config_map) in all.iter().enumerate() {
            until_edition(world, config_map, if number % 3 == 0 { "1" } else { "2" }).await;
        }
        world.quiet().await;
        let active = until_state(world, "widgets", "Active").await;
        assert_eq!((&active["status"]["objects"], &active["status"]["outstanding"]), (&json!(8), &json!(0)));
        let held = world.look(&all[0].replace("ConfigMap", "Widget")).await;
        assert_eq!((&held["status"]["ready"], &held["status"]["policy"]["version"]), (&json!(true), &json!("1.0.0")));
        let told = condition(&held, "PolicyFallback")["message"].as_str().unwrap().to_owned();
        assert!(told.contains("the policy refuses the object: refuses"), "{told}");
        restart_writes_nothing(world).await;
        world.delete(&all[0]).await;
        until_edition(world, &all[0], "1").await;
    });
}

#[test]
fn an_object_that_the_predecessor_refuses_too_is_refused() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1 refuses", "")).await;
        world.apply(&widget("w", &json!({"fragile": true}))).await;
        world.apply(&widget("sturdy", &json!({}))).await;
        until_edition(world, "ConfigMap/sturdy", "1").await;
        for (edition, asked) in [("2", "hold"), ("3", "rollBack")] {
            world.apply(&package("widgets", &format!("{edition} refuses"), &format!("onRefusal: {asked}"))).await;
            until_edition(world, "ConfigMap/sturdy", edition).await;
            let version = format!("{edition}.0.0");
            let told = world
                .until("the status names the newest version", "Widget/w", |told| {
                    told["status"]["policy"]["version"] == version
                })
                .await;
            assert_eq!(condition(&told, "Accepted")["reason"], "Unsupported");
            assert!(condition(&told, "PolicyFallback").is_null(), "{told}");
            world.quiet().await;
            until_state(world, "widgets", "Active").await;
        }
    });
}
