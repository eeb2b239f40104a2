//! Tests of the look-ups.

use serde_json::json;

use super::*;

fn path(text: &str) -> Vec<PathStep> {
    steps(text).unwrap()
}

/// Returns the paths of all places whose value equals the manifest's value at `at`.
fn equal(object: &Value, manifest: &Value, declared: &[(&str, &str)], at: &str) -> Vec<String> {
    let origin = |(path, from): &(&str, &str)| Origin { manifest: 0, path: (*path).into(), from: (*from).into() };
    let declared: Vec<_> = declared.iter().map(origin).collect();
    let manifests = [manifest.clone()];
    let within = Places { object, layers: &[], layer: 0, mapped: None, found: &[] };
    let (origins, breaches) = Origins::read(&declared, &[], &manifests, &Limits::default(), within);
    assert!(breaches.is_empty(), "every origin has a valid path and source");
    let value = path(at).iter().try_fold(manifest, |value, step| step.of(value)).unwrap();
    let places = origins.places(0, manifest, &path(at));
    places.iter().filter(|place| is_equal(place.value, value)).map(|place| written(&place.path)).collect()
}

#[test]
fn an_origin_covers_the_values_below_it() {
    let object = json!({"spec": {"pod": {"a": {"b": 1}, "c": 2}}});
    let manifest = json!({"spec": {"a": {"b": 1}, "c": 3}});
    assert_eq!(equal(&object, &manifest, &[("spec", "spec.pod")], "spec.a.b"), ["spec.pod.a.b"]);
    assert_eq!(equal(&object, &manifest, &[("spec", "spec.pod")], "spec.c"), [""; 0], "the policy changed it");
    assert_eq!(equal(&object, &manifest, &[("spec.a", "spec.pod")], "spec.c"), [""; 0], "not covered");
}

#[test]
fn the_longest_path_comes_first_and_of_equal_paths_the_last_one() {
    let object = json!({"spec": {"x": {"a": 1}, "y": {"a": 1}, "z": 1}});
    let manifest = json!({"spec": {"a": 1}});
    let declared = [("spec.a", "spec.z"), ("spec", "spec.x"), ("spec", "spec.y")];
    assert_eq!(equal(&object, &manifest, &declared, "spec.a"), ["spec.z", "spec.y.a", "spec.x.a"]);
}

#[test]
fn items_of_a_list_are_found_by_their_name_after_a_merge_moved_them() {
    let object =
        json!({"spec": {"pod": {"volumes": [{"name": "b", "x": 1}, {"name": "a", "x": 1}, {"x": 1}, {"x": 2}]}}});
    let manifest = json!({"volumes": [{"name": "a", "x": 1}, {"name": "c", "x": 1}, {"x": 2}]});
    let found = |at: &str| equal(&object, &manifest, &[("", "spec.pod")], at);
    assert_eq!(found("volumes[0].x"), ["spec.pod.volumes[1].x", "spec.pod.volumes[2].x"]);
    assert_eq!(found("volumes[1].x"), ["spec.pod.volumes[2].x"]);
    assert_eq!(found("volumes[2].x"), ["spec.pod.volumes[3].x"]);
}

#[test]
fn a_fraction_without_its_last_digit_is_still_equal() {
    assert!(is_equal(&json!(1.116_156_585_423_264_5e-11), &json!(1.116_156_585_423_264_4e-11)));
    assert!(!is_equal(&json!(1.116_156_585_423_264_5e-11), &json!(1.116e-11)));
    assert!(!is_equal(&json!("1"), &json!(1)));
}
