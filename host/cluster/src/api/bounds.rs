//! Limits the depth of objects and the work of JSON patches.
//!
//! All code that visits the values of an object, or drops an object, is recursive, and a stack overflow kills the
//! process. So no object may become too deep. The parsers of bodies limit the depth themselves. A patch can nest
//! existing values, so this module checks each operation before the cluster applies it.

use http::StatusCode;
use json_patch::{Patch, PatchOperation};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::status::ApiError;

/// The maximum number of nested maps and lists in an object. A real server allows 10,000 levels, but no object needs so
/// many.
pub(super) const LEVELS: usize = 100;

/// The maximum number of operations in a JSON patch, as on a real server.
const OPERATIONS: usize = 10_000;

/// The maximum number of bytes that a JSON patch can copy in total, as on a real server.
const COPIED: usize = 3 << 20;

/// Refuses an object that is too deep. Does not check metadata: managed fields are only a few levels deeper than the
/// object's own fields, and all other metadata has a fixed shape.
pub(super) fn check(object: &Value) -> Result<(), ApiError> {
    let mut fields = object.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata");
    if fields.any(|(_, field)| measure(field).0 >= LEVELS) {
        return Err(too_deep());
    }
    Ok(())
}

/// Returns the error about an object that is too deep.
pub(super) fn too_deep() -> ApiError {
    ApiError::bad_request(format!("the object is nested too deep: it may have at most {LEVELS} levels"))
}

/// Applies a JSON patch.
pub(super) fn json_patched(document: &Value, body: &Value) -> Result<Value, ApiError> {
    let patch =
        Patch::deserialize(body).map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    let count = patch.0.len();
    if count > OPERATIONS {
        let message = format!("The allowed maximum operations in a JSON patch is {OPERATIONS}, got {count}");
        return Err(ApiError::too_large(&message));
    }
    let mut new = document.clone();
    let mut copied = 0;
    for operation in &patch.0 {
        foresee(&new, operation, &mut copied)?;
        json_patch::patch(&mut new, std::slice::from_ref(operation))
            .map_err(|_| refusal("the server rejected our request due to an error in our request".into()))?;
    }
    Ok(new)
}

/// Refuses an operation that would make the document too deep or exceed the copy limit.
fn foresee(document: &Value, operation: &PatchOperation, copied: &mut usize) -> Result<(), ApiError> {
    let (to, value, copies) = match operation {
        PatchOperation::Add(add) => (add.path.as_str(), Some(&add.value), false),
        PatchOperation::Replace(replace) => (replace.path.as_str(), Some(&replace.value), false),
        PatchOperation::Copy(copy) => (copy.path.as_str(), document.pointer(copy.from.as_str()), true),
        PatchOperation::Move(moved) => {
            let (from, to) = (moved.from.as_str(), moved.path.as_str());
            if levels_above(to) <= levels_above(from) {
                return Ok(());
            }
            // The copy limit also counts moved values, because this function measures each of them.
            (to, document.pointer(from), true)
        }
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
    };
    // If the document has no value at `from`, the operation itself fails later.
    let Some(value) = value else { return Ok(()) };
    let (levels, bytes) = measure(value);
    if levels_above(to) + levels > LEVELS {
        let message = format!(
            "the server rejected our request due to an error in our request: the object would be nested too deep: it may have at most {LEVELS} levels"
        );
        return Err(refusal(message));
    }
    if copies {
        *copied += bytes;
    }
    if *copied > COPIED {
        let message = format!(
            "the server rejected our request due to an error in our request: the accumulated size of the copies is {copied}, exceeding the limit {COPIED}"
        );
        return Err(refusal(message));
    }
    Ok(())
}

fn refusal(message: String) -> ApiError {
    let mut error = ApiError::plain(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
    error.details = Some(json!({}));
    error
}

/// Returns the number of maps and lists above the target of a JSON pointer.
fn levels_above(pointer: &str) -> usize {
    pointer.matches('/').count()
}

/// Returns the number of levels of a value, and its approximate size as JSON. Does not recurse, because the value can
/// have any depth.
fn measure(value: &Value) -> (usize, usize) {
    let (mut levels, mut bytes) = (0, 0);
    let mut open = vec![(value, 1)];
    while let Some((value, level)) = open.pop() {
        bytes += 4;
        match value {
            Value::Array(items) => {
                levels = levels.max(level);
                open.extend(items.iter().map(|item| (item, level + 1)));
            }
            Value::Object(fields) => {
                levels = levels.max(level);
                bytes += fields.keys().map(|name| name.len() + 4).sum::<usize>();
                open.extend(fields.values().map(|field| (field, level + 1)));
            }
            Value::String(text) => bytes += text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    (levels, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(document: &Value, body: &Value) -> (u16, String) {
        let error = json_patched(document, body).unwrap_err();
        (error.code.as_u16(), error.message)
    }

    #[test]
    fn a_patch_that_nests_an_object_in_itself_is_refused_before_it_is_too_deep() {
        let copies = vec![json!({"op": "copy", "from": "/spec", "path": "/spec/podSpec"}); 4000];
        let (code, message) = refused(&json!({"spec": {}}), &json!(copies));
        assert_eq!(code, 422);
        assert!(message.ends_with("it may have at most 100 levels"), "{message}");
        let nested = json_patched(&json!({"spec": {}}), &json!(copies[..98])).unwrap();
        assert_eq!(measure(&nested).0, LEVELS);
    }

    #[test]
    fn a_moved_value_counts_with_its_new_depth() {
        let deep = (0..90).fold(json!({}), |inner, _| json!([inner]));
        let document = json!({"deep": deep, "a": {"b": {"c": {}}}});
        let to = |path: &str| json!([{"op": "move", "from": "/deep", "path": path}]);
        assert!(json_patched(&document, &to("/a/b/c/d")).is_ok());
        let document = json_patched(&document, &to("/a/b/c/d")).unwrap();
        let again = json!([{"op": "add", "path": "/e", "value": [[[[[[[{}]]]]]]]},
            {"op": "move", "from": "/a", "path": "/e/0/0/0/0/0/0/0/f"}]);
        assert_eq!(refused(&document, &again).0, 422);
    }

    #[test]
    fn all_copies_of_a_patch_together_have_a_limit() {
        let copies: Vec<Value> =
            (0..40).map(|at| json!({"op": "copy", "from": "/a", "path": format!("/b{at}")})).collect();
        let (code, message) = refused(&json!({"a": "x".repeat(100_000)}), &json!(copies));
        assert_eq!(code, 422);
        assert!(message.ends_with("exceeding the limit 3145728"), "{message}");
    }

    #[test]
    fn a_patch_has_at_most_ten_thousand_operations() {
        let tests = |count: usize| json!(vec![json!({"op": "test", "path": "/a", "value": 1}); count]);
        assert!(json_patched(&json!({"a": 1}), &tests(10_000)).is_ok());
        let (code, message) = refused(&json!({"a": 1}), &tests(10_001));
        assert_eq!(code, 413);
        assert!(message.contains("maximum operations in a JSON patch is 10000, got 10001"), "{message}");
    }
}
