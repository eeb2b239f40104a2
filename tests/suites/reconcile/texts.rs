//! A15: every text reaches a child unchanged, whatever characters it contains.

use kaos_tests::gadget::gadget;
use kaos_tests::harness::{Scenario, play};
use kube::api::PostParams;
use serde_json::json;

/// The number of characters in one object. With this number, its ConfigMap stays below the server's size limit.
const AT_ONCE: usize = 1 << 16;

#[test]
fn every_unicode_character_reaches_a_child_unchanged() {
    play(Scenario::default(), async |w| {
        // Leave out NUL: a ConfigMap that a container mounts as a file cannot contain it.
        let all: Vec<char> = ('\u{1}'..=char::MAX).collect();
        let texts: Vec<String> = all.chunks(AT_ONCE).map(|some| some.iter().collect()).collect();
        for (at, text) in texts.iter().enumerate() {
            // Use a create request, because the server reads its body as JSON, and not as YAML.
            w.create(&gadget(&format!("text{at:02}"), &json!({"config": {"k": text}})), &PostParams::default()).await;
        }
        for (at, text) in texts.iter().enumerate() {
            let child = format!("ConfigMap/text{at:02}");
            let map = w.until("it is there", &child, |map| !map.is_null()).await;
            let found = map["data"]["k"].as_str().unwrap_or_default();
            let differs = text.chars().zip(found.chars()).find(|(wanted, found)| wanted != found);
            assert_eq!((differs, text.len()), (None, found.len()), "{child}");
        }
    });
}
