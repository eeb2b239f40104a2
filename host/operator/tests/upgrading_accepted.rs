//! Tests that `kaos-operator upgrade-check` names the changes of protection that the values accept.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;

use crate::{support::Folder, today::sample, upgrading::check};

#[test]
fn a_change_that_the_values_accept_says_so_and_a_name_without_effect_is_told() {
    let folder = Folder::new("upgrade-accepted");
    let with = |values: &str| {
        let values = folder.write("values.yaml", values);
        check(&["-f", &sample("19-operator-config.yaml"), "--values", &values, "-o", "json"]).json()
    };
    let remedy = |told: &Value| {
        let found = told["findings"].as_array().unwrap();
        let it = found.iter().find(|it| it["about"].as_str().unwrap().starts_with("security.pdp.enabled:")).unwrap();
        it["do"].as_str().unwrap().to_owned()
    };
    assert!(remedy(&with("{}")).ends_with("unless security.acceptUnserved lists security.pdp.enabled"));
    let accepted = with("{security: {acceptUnserved: [security.pdp.enabled, security.tls.mode]}}");
    assert!(remedy(&accepted).ends_with("security.acceptUnserved accepts this change"));
    let stale: Vec<&Value> = accepted["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["about"] == "security.acceptUnserved")
        .map(|it| &it["message"])
        .collect();
    assert_eq!(stale, ["lists security.tls.mode, but the upgrade does not change this protection"]);
    let all = with("{security: {acceptUnserved: true}}");
    let stops = |it: &Value| it["sort"] == "stops" && it["about"] == "security.acceptUnserved";
    assert!(all["findings"].as_array().unwrap().iter().any(stops), "{all}");
    let broker = with("{security: {agentAuth: {adminUrl: 'http://broker'}}}");
    let is_broker =
        |it: &Value| it["about"] == "security.agentAuth.identity.provider, because of security.agentAuth.adminUrl,";
    assert!(broker["findings"].as_array().unwrap().iter().any(is_broker), "{broker}");
}
