//! A15: every text reaches a child unchanged, whatever characters it contains. D13: the text of a policy cannot control
//! a terminal.

use kaos_tests::gadget::gadget;
use kaos_tests::harness::read::text;
use kaos_tests::harness::{Scenario, condition, play, reason};
use kube::api::PostParams;
use serde_json::json;

use crate::support::web_with;

/// The number of characters in one object. With this number, the object's ConfigMap stays below the server's size
/// limit.
const AT_ONCE: usize = 1 << 16;

#[test]
fn every_unicode_character_reaches_a_child_unchanged() {
    play(Scenario::default(), async |w| {
        // Leave out NUL: a ConfigMap that a container mounts as a file cannot contain NUL.
        let all: Vec<char> = ('\u{1}'..=char::MAX).collect();
        let texts: Vec<String> = all.chunks(AT_ONCE).map(|some| some.iter().collect()).collect();
        for (at, text) in texts.iter().enumerate() {
            // Use a create request instead of an apply, because the server parses the body of a create request as JSON
            // and not as YAML.
            w.create(&gadget(&format!("text{at:02}"), &json!({"config": {"k": text}})), &PostParams::default()).await;
        }
        for (at, text) in texts.iter().enumerate() {
            let child = format!("ConfigMap/text{at:02}");
            let map = w.until("the ConfigMap exists", &child, |map| !map.is_null()).await;
            let found = map["data"]["k"].as_str().unwrap_or_default();
            let differs = text.chars().zip(found.chars()).find(|(wanted, found)| wanted != found);
            assert_eq!((differs, text.len()), (None, found.len()), "{child}");
        }
    });
}

/// A text that clears the screen, starts a new line, and reverses the writing direction of a terminal.
const STEERS: &str = "all is well\u{1b}[2J\r\nINFO forged\u{202e}ydaer";
const WRITTEN_OUT: &str = "all is well\\u{1b}[2J\\r\\nINFO forged\\u{202e}ydaer";

#[test]
fn d13_policy_messages_reach_status_and_events_without_control_characters() {
    play(Scenario::default(), async |w| {
        w.apply(&web_with(&json!({"says": STEERS}))).await;
        let told = w.until_ready("Gadget/web").await;
        assert_eq!(text(&told["status"]["message"]), WRITTEN_OUT);
        assert_eq!(condition(&told, "Ready")["message"], WRITTEN_OUT);
        assert_eq!(condition(&told, "ServiceReady")["message"], WRITTEN_OUT);
        let endpoint = text(&told["status"]["endpoint"]);
        assert_eq!(endpoint, WRITTEN_OUT.replace("\\n", "\n"), "a field may have lines");
        w.apply(&web_with(&json!({"says": STEERS, "does": "refuse"}))).await;
        let told = w
            .until("Gadget/web has the reason InvalidSpec for Accepted", "Gadget/web", |g| {
                reason(g, "Accepted") == "InvalidSpec"
            })
            .await;
        assert_eq!(condition(&told, "Accepted")["message"], format!("spec.does: {WRITTEN_OUT}"));
        w.quiet().await;
        let events = w.events("Gadget/web").await;
        assert!(events.iter().any(|event| format!("{event:?}").contains("forged")), "{events:?}");
        let texts = [
            format!("{:#}", w.look("Gadget/web").await["status"]),
            events.into_iter().map(|(a, b, c)| [a, b, c].concat()).collect(),
        ];
        for text in texts {
            assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text}");
        }
    });
}
