//! What a pass comes to when an object that it looks at says too much.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/widget.rs"]
mod widget;

use std::sync::Arc;

use kaos_policy::{
    contract::{Answer, Refusal},
    lookup::Fixed,
    memo::Memo,
};
use serde_json::{Map, Value, json};
use widget::{renderer, widget};

/// A ConfigMap with that many keys, and nothing else.
fn holding(keys: usize) -> Fixed {
    let data: Map<String, Value> = (0..keys).map(|n| (format!("k{n}"), json!("v"))).collect();
    Fixed::new([
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": data}),
    ])
}

#[test]
fn an_object_that_says_too_much_is_waited_for_and_looked_at_again_when_it_says_less() {
    let renderer = renderer("{}", &[]).with_memo(Arc::new(Memo::new(1 << 20)));
    let object = widget(json!({"needs": [{"name": "c"}]}));
    for _ in 0..2 {
        let rendered = renderer.render(&object, &holding(20_000)).unwrap();
        let Some(Refusal::Waiting(blockers)) = rendered.refused() else { panic!("{:?}", rendered.verdict) };
        let [blocker] = &blockers[..] else { panic!("{blockers:?}") };
        assert_eq!((blocker.on.to_string().as_str(), blocker.reason.as_str()), ("ConfigMap n/c", "TooLarge"));
        assert!(blocker.message.contains("data: 20000 fields are too many, at most 10000"), "{}", blocker.message);
        assert_eq!(rendered.needs.len(), 1, "it is watched all the same");
        let Answer::Objects(shown) = &rendered.subject().found[0].answer else { panic!("no object") };
        assert!(shown[0].len() < 1_000, "who reports on the pass is shown no more");
        assert!(!rendered.recalled());
    }
    let rendered = renderer.render(&object, &holding(5)).unwrap();
    assert!(rendered.planned().is_some() && !rendered.recalled());
    assert!(renderer.render(&object, &holding(5)).unwrap().recalled());
    assert!(renderer.render(&object, &holding(20_000)).unwrap().refused().is_some());
}
