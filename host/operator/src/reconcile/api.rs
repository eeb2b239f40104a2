//! The requests of a pass to the API server. They use no typed objects, because manifests and answers are JSON.

use kaos_policy::{contract::Reference, stamp::MANAGER};
use kube::{
    Client,
    api::{
        ApiResource, DeleteParams, DynamicObject, GetParams, Patch, PatchParams, Preconditions, PropagationPolicy,
        Request,
    },
    core::Resource,
};
use serde_json::{Value, json};
use tracing::{Instrument as _, Span};

use super::error::{CallError, Class};
use crate::trace::step;

/// A resource version that no object has, because it is the version of an empty etcd. An apply with this version
/// creates a missing object, and conflicts with every existing object.
const BEFORE_ALL: &str = "1";

/// The server's prefix for messages of admission webhooks.
const WEBHOOK: &str = "admission webhook ";

/// The requests for objects of one type in one namespace.
pub(crate) struct Calls<'a> {
    client: &'a Client,
    path: String,
    kind: String,
    plural: String,
    namespace: String,
}

type CallResult = Result<Value, CallError>;
type Built = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

impl<'a> Calls<'a> {
    /// Returns the requests for objects of a namespaced type.
    pub(crate) fn namespaced(client: &'a Client, resource: &ApiResource, namespace: &str) -> Self {
        let path = DynamicObject::url_path(resource, Some(namespace));
        let (kind, plural) = (resource.kind.clone(), resource.plural.clone());
        Self { client, path, kind, plural, namespace: namespace.to_owned() }
    }

    /// Returns the requests for objects of a cluster-scoped type.
    pub(crate) fn cluster(client: &'a Client, resource: &ApiResource) -> Self {
        let path = DynamicObject::url_path(resource, None);
        let (kind, plural) = (resource.kind.clone(), resource.plural.clone());
        Self { client, path, kind, plural, namespace: String::new() }
    }

    /// Reads the object with its managed fields. Returns `None` if the object does not exist.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Value>, CallError> {
        let request = Request::new(&self.path).get(name, &GetParams::default());
        match self.send("get", name, request).await {
            Err(error) if error.class == Class::Gone => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Reads a document of the API server that is not an object, such as a part of the `OpenAPI` document. Returns
    /// `None` if the server does not serve it.
    pub(crate) async fn document(&self, path: &str) -> Result<Option<Value>, CallError> {
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::core::request::Error::BuildRequest);
        match self.send("read", path, request).await {
            Err(error) if error.class == Class::Gone => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Sends a server-side apply with the operator's field manager to the object with this UID. Returns `None` if this
    /// object is gone; another object of the same name stays unchanged. The apply takes over fields of other managers,
    /// because the caller has checked that the operator owns the object.
    pub(crate) async fn apply(
        &self,
        name: &str,
        body: &Value,
        uid: &str,
        dry_run: bool,
    ) -> Result<Option<Value>, CallError> {
        self.apply_if(name, body, ("uid", uid), dry_run).await
    }

    /// Creates an object with a server-side apply and the operator's field manager. Returns `None` if the object
    /// already exists; the object then stays unchanged.
    pub(crate) async fn apply_new(&self, name: &str, body: &Value, dry_run: bool) -> Result<Option<Value>, CallError> {
        self.apply_if(name, body, ("resourceVersion", BEFORE_ALL), dry_run).await
    }

    /// Sends a server-side apply with a precondition: an existing object must have this `value` in this `field` of its
    /// metadata. Returns `None` if the existing object has another value in this field.
    async fn apply_if(
        &self,
        name: &str,
        body: &Value,
        (field, value): (&str, &str),
        dry_run: bool,
    ) -> Result<Option<Value>, CallError> {
        let mut body = body.clone();
        body["metadata"][field] = json!(value);
        let request = Request::new(&self.path).patch(name, &applying(dry_run), &Patch::Apply(&body));
        let what = || self.what(verb(dry_run), name);
        let span = if dry_run { Span::none() } else { step!("apply", kind = %self.kind, name) };
        match self.client.request::<Value>(built(what, request)?).instrument(span).await {
            Ok(answer) => Ok(Some(answer)),
            Err(kube::Error::Api(status)) if is_another(&status, &self.plural, name) => Ok(None),
            Err(error) => Err(CallError::new(what(), &error)),
        }
    }

    /// Sends a server-side apply of the status with the operator's field manager.
    pub(crate) async fn apply_status(&self, name: &str, body: &Value) -> CallResult {
        let request = Request::new(&self.path).patch_subresource("status", name, &applying(false), &Patch::Apply(body));
        self.send("apply status of", name, request).await
    }

    /// Sends a JSON patch. The `operations` must themselves test their preconditions.
    pub(crate) async fn patch(&self, name: &str, operations: &Value) -> CallResult {
        let request = json_patch(operations).and_then(|patch| {
            let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            Request::new(&self.path).patch(name, &parameters, &Patch::<Value>::Json(patch))
        });
        self.send("patch", name, request).await
    }

    /// Replaces the managed fields of the object `read`. Fails if the object has changed after the operator read it.
    pub(crate) async fn manage(&self, read: &Value, entries: &[Value]) -> CallResult {
        let metadata = &read["metadata"];
        let operations = json!([
            {"op": "replace", "path": "/metadata/managedFields", "value": entries},
            unchanged(metadata),
        ]);
        self.patch(metadata["name"].as_str().unwrap_or_default(), &operations).await
    }

    /// Deletes the object with this UID. If a version is given, deletes the object only at this version. Returns the
    /// object if the object waits for finalizers.
    pub(crate) async fn delete(
        &self,
        name: &str,
        uid: &str,
        version: Option<&str>,
        propagation: PropagationPolicy,
    ) -> Result<Option<Value>, CallError> {
        let resource_version = version.map(str::to_owned);
        let parameters = DeleteParams {
            propagation_policy: Some(propagation),
            preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version }),
            ..DeleteParams::default()
        };
        match self.send("delete", name, Request::new(&self.path).delete(name, &parameters)).await {
            Err(error) if error.class == Class::Gone => Ok(None),
            // If the object is gone immediately, the server answers with a `Status` instead of the object.
            answer => answer.map(|answer| Some(answer).filter(|object| object["metadata"]["uid"] == uid)),
        }
    }

    async fn send(&self, verb: &str, name: &str, request: Built) -> CallResult {
        let what = || self.what(verb, name);
        self.client.request::<Value>(built(what, request)?).await.map_err(|error| CallError::new(what(), &error))
    }

    fn what(&self, verb: &str, name: &str) -> String {
        format!("{verb} {} {}/{name}", self.kind, self.namespace)
    }
}

/// Returns whether the server's error means that the object already exists, has another version, or has another UID.
/// Quotas and admission webhooks also answer 409 and 422, but with other reasons or causes.
fn is_another(status: &kube::core::Status, plural: &str, name: &str) -> bool {
    let Some(details) = status.details.as_ref().filter(|details| details.name == name) else { return false };
    if status.message.starts_with(WEBHOOK) {
        return false;
    }
    match (status.code, status.reason.as_str()) {
        (409, "Conflict" | "AlreadyExists") => details.kind == plural,
        (422, "Invalid") => details.causes.iter().any(|cause| cause.field == "metadata.uid"),
        _ => false,
    }
}

fn applying(dry_run: bool) -> PatchParams {
    PatchParams { dry_run, ..PatchParams::apply(MANAGER).force() }
}

fn verb(dry_run: bool) -> &'static str {
    if dry_run { "try" } else { "apply" }
}

/// Returns the request. An invalid request is a bug, because the names in requests come from the server or passed the
/// guard.
fn built(what: impl Fn() -> String, request: Built) -> Result<http::Request<Vec<u8>>, CallError> {
    request.map_err(|error| CallError { what: what(), class: Class::Permanent, message: error.to_string() })
}

fn json_patch(operations: &Value) -> Result<json_patch::Patch, kube::core::request::Error> {
    serde_json::from_value(operations.clone()).map_err(kube::core::request::Error::SerializeBody)
}

/// Returns the operations that remove a finalizer. Returns `None` if the object does not have this finalizer. The
/// operations test the position of the finalizer, so that they remove no other finalizer.
pub(crate) fn without_finalizer(object: &Value, finalizer: &str) -> Option<Value> {
    let finalizers = object["metadata"]["finalizers"].as_array()?;
    let at = finalizers.iter().position(|held| held == finalizer)?;
    let path = format!("/metadata/finalizers/{at}");
    Some(json!([{"op": "test", "path": path, "value": finalizer}, {"op": "remove", "path": path}]))
}

/// Returns the operations that add a finalizer.
pub(crate) fn with_finalizer(object: &Value, finalizer: &str) -> Value {
    let metadata = &object["metadata"];
    if metadata["finalizers"].as_array().is_some_and(|held| !held.is_empty()) {
        let uid = json!({"op": "test", "path": "/metadata/uid", "value": metadata["uid"]});
        json!([uid, {"op": "add", "path": "/metadata/finalizers/-", "value": finalizer}])
    } else {
        // Test the version, because another client may have added a finalizer in the meantime: the operation `add`
        // would replace the whole list `finalizers`.
        json!([unchanged(metadata), {"op": "add", "path": "/metadata/finalizers", "value": [finalizer]}])
    }
}

/// Returns the operations that add an annotation. The object must come from the server: the watch removes some
/// annotations from its copy, and the patch would delete these annotations.
pub(crate) fn with_annotation(object: &Value, name: &str, value: &str) -> Value {
    let metadata = &object["metadata"];
    let annotation = if metadata["annotations"].is_object() {
        let path = format!("/metadata/annotations/{}", name.replace('~', "~0").replace('/', "~1"));
        json!({"op": "add", "path": path, "value": value})
    } else {
        json!({"op": "add", "path": "/metadata/annotations", "value": {name: value}})
    };
    json!([unchanged(metadata), annotation])
}

/// Returns an operation that makes the patch fail if the object has changed: it sets the version that the operator
/// knows, and the server answers an outdated version with a conflict.
fn unchanged(metadata: &Value) -> Value {
    json!({"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]})
}

/// Returns the child's kind and name, for messages.
pub(crate) fn named(reference: &Reference) -> String {
    format!("{} {}", reference.kind, reference.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_conflict_about_the_very_object_says_that_it_is_another() {
        let is_another = |status: Value| is_another(&serde_json::from_value(status).unwrap(), "services", "web");
        let conflict = |kind: &str, name: &str, message: &str| json!({"code": 409, "reason": "Conflict", "message": message, "details": {"kind": kind, "name": name}});
        let modified = "the object has been modified";
        assert!(is_another(conflict("services", "web", modified)));
        assert!(!is_another(conflict("resourcequotas", "web", modified)), "the conflict is about the quota");
        assert!(!is_another(conflict("services", "other", modified)));
        assert!(!is_another(conflict("services", "web", "admission webhook \"x\" denied the request: no")));
        assert!(!is_another(json!({"code": 409, "reason": "Conflict", "message": "no"})), "without details");
        let exists = json!({"code": 409, "reason": "AlreadyExists", "details": {"kind": "services", "name": "web"}});
        assert!(is_another(exists));
        let cause = |field: &str| {
            let causes = json!([{"reason": "FieldValueInvalid", "message": "immutable", "field": field}]);
            json!({"code": 422, "reason": "Invalid", "details": {"kind": "Service", "name": "web", "causes": causes}})
        };
        assert!(is_another(cause("metadata.uid")));
        assert!(!is_another(cause("spec.selector")));
        let changed = |field: &str, value: Value| {
            let mut status = cause("metadata.uid");
            status[field] = value;
            status
        };
        let denied = "admission webhook \"uids.example.com\" denied the request: no such UID here";
        assert!(!is_another(changed("message", json!(denied))), "the webhook's words reach the user");
        assert!(!is_another(changed("code", json!(403))) && !is_another(changed("code", json!(500))));
        assert!(!is_another(changed("reason", json!("Forbidden"))));
        let mut other = cause("metadata.uid");
        other["details"]["name"] = json!("other");
        assert!(!is_another(other));
    }

    #[test]
    fn a_finalizer_is_taken_off_only_where_it_was_seen() {
        let object = json!({"metadata": {"finalizers": ["x/a", "x/b"]}});
        assert_eq!(
            without_finalizer(&object, "x/b"),
            Some(json!([
                {"op": "test", "path": "/metadata/finalizers/1", "value": "x/b"},
                {"op": "remove", "path": "/metadata/finalizers/1"},
            ]))
        );
        assert_eq!(without_finalizer(&object, "x/c"), None);
        assert_eq!(without_finalizer(&json!({}), "x/c"), None);
    }

    #[test]
    fn a_finalizer_is_added_behind_those_of_others() {
        let some = with_finalizer(&json!({"metadata": {"uid": "u", "finalizers": ["x/a"]}}), "x/b");
        assert_eq!(some[1], json!({"op": "add", "path": "/metadata/finalizers/-", "value": "x/b"}));
        assert_eq!(some[0], json!({"op": "test", "path": "/metadata/uid", "value": "u"}));
        let none = with_finalizer(&json!({"metadata": {"uid": "u", "resourceVersion": "7"}}), "x/b");
        assert_eq!(none[1]["value"], json!(["x/b"]));
        let version = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"});
        assert_eq!(none[0], version, "without the version, the patch could remove another new finalizer");
    }

    #[test]
    fn an_annotation_is_added_to_those_of_others() {
        let some = with_annotation(&json!({"metadata": {"annotations": {"a": "b"}}}), "x.io/n", "v");
        assert_eq!(some[1], json!({"op": "add", "path": "/metadata/annotations/x.io~1n", "value": "v"}));
        let none = with_annotation(&json!({"metadata": {"resourceVersion": "7"}}), "x.io/n", "v");
        assert_eq!(none[1]["value"], json!({"x.io/n": "v"}));
        assert_eq!(
            none[0]["path"], "/metadata/resourceVersion",
            "without the version, the patch could remove other new annotations"
        );
    }
}
