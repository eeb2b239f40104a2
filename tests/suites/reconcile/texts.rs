//! A15: a text arrives in a child as it stands in the object, whatever characters it has.

use kaos_tests::gadget::gadget;
use kaos_tests::harness::{Scenario, play};
use kube::api::PostParams;
use serde_json::json;

/// Characters of one object: so many that its ConfigMap stays below the server's limit.
const AT_ONCE: usize = 1 << 16;

#[test]
fn every_character_of_unicode_arrives_in_a_child_as_it_was_written() {
    play(Scenario::default(), async |w| {
        // Nobody can write a NUL into a ConfigMap that a file is made of.
        let all: Vec<char> = ('\u{1}'..=char::MAX).collect();
        let texts: Vec<String> = all.chunks(AT_ONCE).map(|some| some.iter().collect()).collect();
        for (at, text) in texts.iter().enumerate() {
            // By a create, whose body no server reads as YAML.
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
