use kaos_crds::PreviewInputs;
use kaos_policy::{digest::Digest, policy::PolicyId};
use serde_json::json;

use super::*;

fn object(name: &str) -> Reference {
    Reference { api_version: "x.io/v1".into(), kind: "Widget".into(), namespace: Some("n".into()), name: name.into() }
}

fn side(said: Said, fuel: u64) -> Side {
    let policy = PolicyId { name: "p".into(), version: "1.0.0".into(), digest: Digest::of(b"p") };
    Side { policy, overlays: Vec::new(), fuel, said }
}

/// Returns the difference of an object whose Deployment changes in these fields.
fn changed(name: &str, fields: &[(&str, Value, Value)]) -> Difference {
    let field = |(path, before, after): &(&str, Value, Value)| Field {
        path: (*path).to_owned(),
        before: Some(before.clone()).filter(|value| !value.is_null()),
        after: Some(after.clone()).filter(|value| !value.is_null()),
    };
    let fields: Vec<Field> = fields.iter().map(field).collect();
    let child = Reference { kind: "Deployment".into(), api_version: "apps/v1".into(), ..object(name) };
    let change = Change::Changed(fields.clone());
    let children = if fields.is_empty() {
        Vec::new()
    } else {
        vec![Child { child, change, rolls: true, refused: None, manifest: None, removed: None, pods: 2 }]
    };
    Difference {
        object: object(name),
        before: Some(side(Said::Planned, 10)),
        after: Some(side(Said::Planned, 20)),
        children,
        pods: 2,
        newest: [None, None],
        waits_for: Vec::new(),
    }
}

fn refused(name: &str) -> Difference {
    let after = Some(side(Said::Refused("Invalid".into(), vec!["spec.a: is too large".into()]), 5));
    Difference { after, ..changed(name, &[]) }
}

#[test]
fn equal_changes_are_one_path_with_three_examples_and_the_largest_is_first() {
    let both = [("spec.a", json!("x"), json!("y")), ("spec.b", json!(1), json!(null))];
    let mut effect = Effect::default();
    for number in 0..9 {
        effect.set(&changed(&format!("w{number}"), if number < 2 { &both } else { &both[..1] }));
    }
    effect.set(&refused("w9"));
    effect.set(&changed("same", &[]));
    assert_eq!(effect.paths.len(), 2, "objects share the paths");
    let preview = effect.preview(PreviewInputs::default());
    assert_eq!(preview.summary, "10 of 11 objects change, 18 pods replaced, 1 refused");
    assert_eq!((preview.objects, preview.unchanged, preview.children, preview.pods), (11, 1, 9, 22));
    let told =
        preview.paths.iter().map(|it| (it.path.as_deref().unwrap(), it.change.as_str(), it.value.as_deref(), it.count));
    let expected = [("spec.a", "Changed", Some("string"), 9), ("spec.b", "Removed", Some("number"), 2)];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert_eq!(preview.paths[0].examples.len(), 3);
    assert_eq!(preview.paths[0].examples[0].object, "n/w0");
    let problem = &preview.problems[0];
    assert_eq!((problem.object.as_str(), problem.problem.as_str()), ("Widget n/w9", "Refused"));
    assert_eq!((preview.fuel.median_before, preview.fuel.max_after), (10, 20));
}

#[test]
fn a_later_difference_replaces_the_earlier_one_of_the_same_object() {
    let change = [("spec.a", json!("x"), json!("y"))];
    let mut effect = Effect::default();
    effect.set(&changed("w", &change));
    effect.set(&changed("w", &[]));
    assert!(effect.preview(PreviewInputs::default()).paths.is_empty());
    effect.set(&refused("w"));
    effect.set(&changed("w", &change));
    assert_eq!(effect.counts(), Effect::of([&changed("w", &change)]).counts());
    effect.forget(&object("w"));
    assert_eq!(effect.counts(), Counts::default());
}

#[test]
fn an_effect_on_any_number_of_objects_fits_into_a_status() {
    let mut effect = Effect::default();
    let long = "x".repeat(5000);
    for number in 0..3000 {
        let paths: Vec<String> = (0..3).map(|at| format!("spec.{}.{long}", number * 3 + at)).collect();
        let fields: Vec<_> = paths.iter().map(|path| (path.as_str(), json!(long), json!(format!("{long}y")))).collect();
        let name = format!("{number:04}{}", "n".repeat(240));
        effect.set(&if number % 3 == 0 { refused(&name) } else { changed(&name, &fields) });
    }
    let preview = effect.preview(PreviewInputs::default());
    let size = serde_json::to_string(&preview).unwrap().len();
    assert!(size < 100_000, "{size} bytes");
    assert!(!preview.paths.is_empty() && !preview.problems.is_empty());
    let shown = i64::try_from(preview.problems.len()).unwrap();
    assert_eq!((preview.refused, shown + preview.more_problems), (1000, 1000));
}

#[test]
fn frozen_paths_that_change_are_counted_by_object() {
    let mut effect = Effect::new(vec![FrozenPath::new("spec.a"), FrozenPath::new("spec.c")]);
    effect.set(&changed("v", &[("spec.a.b", json!(1), json!(2)), ("spec.a.c", json!(1), json!(2))]));
    effect.set(&changed("w", &[("spec.a", json!(1), json!(2))]));
    effect.set(&changed("x", &[("spec.b", json!(1), json!(2))]));
    assert_eq!(effect.frozen_changes(), [("spec.a", 2)]);
}

#[test]
fn a_deleted_child_with_a_frozen_path_counts() {
    let removed = |name: &str, manifest: Value| {
        let mut difference = changed(name, &[("spec.x", json!(1), json!(2))]);
        (difference.children[0].change, difference.children[0].removed) = (Change::Removed, Some(manifest));
        difference
    };
    let mut effect = Effect::new(vec![FrozenPath::new("spec.containers.image")]);
    effect.set(&removed("v", json!({"spec": {"containers": [{"name": "a", "image": "x"}]}})));
    effect.set(&removed("w", json!({"spec": {"containers": []}})));
    assert_eq!(effect.frozen_changes(), [("spec.containers.image", 1)]);
}

#[test]
fn only_objects_that_were_served_count_as_refused() {
    let planned = changed("w", &[]).before;
    let after = |before: Option<Side>, after: Option<Side>| {
        Effect::of([&Difference { before, after, ..changed("w", &[]) }]).counts()
    };
    let failed = |message: &str| Some(side(Said::Failed(message.into()), 1));
    assert_eq!(after(planned.clone(), refused("w").after).refused, 1);
    assert_eq!(after(planned.clone(), None).refused, 1, "no policy answers any more");
    assert_eq!(after(None, refused("w").after).refused, 0);
    assert_eq!(after(failed("f"), refused("w").after).refused, 0);
    assert_eq!(after(refused("w").after, None).refused, 0);
    assert_eq!(after(failed("f"), failed("g")).failed, 0);
    assert_eq!(after(planned, failed("f")).failed, 1);
}

#[test]
fn messages_about_secrets_are_masked() {
    let said = Said::Refused("Invalid".into(), vec!["spec.password: canary-1".into()]);
    let preview =
        Effect::of([&Difference { after: Some(side(said, 1)), ..changed("w", &[]) }]).preview(PreviewInputs::default());
    assert!(!serde_json::to_string(&preview).unwrap().contains("canary-1"), "{preview:?}");
}

#[test]
fn an_answer_that_changes_is_told_like_a_field() {
    let mut accepted = changed("w", &[]);
    accepted.before = refused("w").after;
    let mut effect = Effect::of([&accepted]);
    effect.set(&Difference { before: None, ..changed("new", &[]) });
    let preview = effect.preview(PreviewInputs::default());
    let told: Vec<_> = preview.paths.iter().map(|it| (it.change.as_str(), it.child.as_deref())).collect();
    assert_eq!(told, [("Added", None), ("Changed", None)]);
    assert_eq!(preview.paths[1].examples[0].after.as_deref(), Some("planned"));
    assert_eq!(preview.refused, 0);
}
