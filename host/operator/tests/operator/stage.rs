//! An embedded cluster with a running operator, in simulated time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kaos_cluster::{Cluster, TokioClock, faults::Verb};
use kaos_operator::{
    catalogue::Catalogue,
    metrics::Metrics,
    operator::{Clock, Compute, Operator, OperatorError, Options, Probe},
};
use kaos_policy::{contract::ResourceType, policy::Stack};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::kite;

/// The start of the simulated time.
const START: &str = "2026-01-01T00:00:00Z";

pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    client: Client,
    running: Option<(CancellationToken, JoinHandle<Result<(), OperatorError>>)>,
    probe: Option<Probe>,
    compute: Compute,
    stacks: BTreeMap<ResourceType, Stack>,
}

impl Stage {
    pub(crate) async fn start() -> Self {
        Self::start_on(Compute::Inline).await
    }

    /// Like `start`, but `compute` decides on which threads policies run.
    pub(crate) async fn start_on(compute: Compute) -> Self {
        Self::start_all(compute, kite::stacks(), &[]).await
    }

    /// Like `start`, with other policies. The cluster contains `objects` before the operator starts.
    pub(crate) async fn start_with(stacks: BTreeMap<ResourceType, Stack>, objects: &[Value]) -> Self {
        Self::start_all(Compute::Inline, stacks, objects).await
    }

    async fn start_all(compute: Compute, stacks: BTreeMap<ResourceType, Stack>, objects: &[Value]) -> Self {
        let cluster = Cluster::builder().clock(TokioClock::starting_at(START.parse().unwrap())).start();
        cluster.add_user("user", "user");
        let mut stage =
            Self { client: Client::new(cluster.service(), "t"), cluster, running: None, probe: None, compute, stacks };
        stage.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t"}})).await;
        stage.apply(&kite::definition()).await;
        stage.cluster.settled().await;
        for object in objects {
            stage.apply(object).await;
            stage.cluster.settled().await;
        }
        stage.start_operator().await;
        stage
    }

    pub(crate) async fn start_operator(&mut self) {
        let options = Options {
            compute: self.compute,
            // Disable the cache for answers: with a cached answer, the policy would not run.
            memo: if self.compute == Compute::Pool { 0 } else { Options::default().memo },
            clock: Clock::starting_at(START.parse().unwrap()),
            workers: 2,
            ..Options::default()
        };
        let catalogue = Arc::new(Catalogue::new(&self.stacks, &[]).unwrap());
        let client = Client::new(self.cluster.service(), "t");
        let operator = Operator::new(client, catalogue, Arc::new(Metrics::new()), options);
        let probe = operator.probe();
        let stop = CancellationToken::new();
        self.probe = Some(probe.clone());
        self.running = Some((stop.clone(), tokio::spawn(operator.run(stop))));
        self.until("the operator is ready", |_| probe.ready().ok()).await;
    }

    /// Returns the operator's explanation of a Kite, or `None` if the operator has no record of it.
    pub(crate) async fn explained(&self, name: &str) -> Option<Value> {
        self.probe.as_ref()?.explain("Kite", "t", name).await.ok()
    }

    pub(crate) async fn stop(&mut self) {
        let (stop, running) = self.running.take().unwrap();
        stop.cancel();
        running.await.unwrap().unwrap();
    }

    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.start_operator().await;
    }

    fn api(&self, of: &Value) -> Api<DynamicObject> {
        let api_version = of["apiVersion"].as_str().unwrap();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, of["kind"].as_str().unwrap()));
        match of["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Applies an object like a user.
    pub(crate) async fn apply(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams::apply("user").force();
        self.api(object).patch(name, &parameters, &Patch::Apply(object)).await.unwrap();
    }

    fn child_api(&self, group: &str, plural: &str) -> Api<DynamicObject> {
        let all = self.cluster.objects(group, plural);
        let child = all.iter().find(|object| object["metadata"]["namespace"] == "t").unwrap();
        self.api(child)
    }

    pub(crate) async fn patch(&self, group: &str, plural: &str, name: &str, patch: Value) {
        let parameters = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        self.child_api(group, plural).patch(name, &parameters, &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn delete(&self, group: &str, plural: &str, name: &str) {
        self.child_api(group, plural).delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) fn child(&self, group: &str, plural: &str, name: &str) -> Option<Value> {
        self.cluster.object(group, plural, "t", name).map(|object| (*object).clone())
    }

    pub(crate) async fn until<T>(&self, what: &str, found: impl Fn(&Self) -> Option<T>) -> T {
        for _ in 0..3000 {
            if let Some(found) = found(self) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let kites: Vec<String> = self.cluster.objects("sky.io", "kites").iter().map(ToString::to_string).collect();
        panic!("not in five minutes: {what}\n{}\n{}", kites.join("\n"), self.requests(|_| true).join("\n"));
    }

    pub(crate) async fn until_none<T>(&self, what: &str, found: impl Fn(&Self) -> Option<T>) {
        self.until(&format!("{what} is gone"), |stage| found(stage).is_none().then_some(())).await;
    }

    pub(crate) async fn until_ready(&self, name: &str) -> Value {
        self.until_condition(name, "Ready", "Ready").await
    }

    /// Waits until a condition has a reason for the current generation.
    pub(crate) async fn until_condition(&self, name: &str, of: &str, reason: &str) -> Value {
        self.until(&format!("{name} is {of} with {reason}"), |stage| {
            let object = stage.child("sky.io", "kites", name)?;
            let conditions = object["status"]["conditions"].as_array()?;
            let found = conditions.iter().any(|condition| {
                condition["type"] == of
                    && condition["reason"] == reason
                    && condition["observedGeneration"] == object["metadata"]["generation"]
            });
            found.then_some(object)
        })
        .await
    }

    /// Waits long enough in simulated time for all passes to end.
    pub(crate) async fn rest(&self) {
        tokio::time::sleep(Duration::from_secs(30)).await;
    }

    pub(crate) fn events(&self, name: &str) -> Vec<String> {
        let events = self.cluster.objects("", "events");
        let mut of_object: Vec<_> = events.iter().filter(|event| event["involvedObject"]["name"] == name).collect();
        of_object.sort_by_key(|event| event["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap());
        of_object.iter().map(|event| event["reason"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the operator's write requests, except Events.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.requests(Verb::is_write)
    }

    /// Returns the operator's read requests, except watches.
    pub(crate) fn reads(&self) -> Vec<String> {
        self.requests(|verb| matches!(verb, Verb::Get | Verb::List))
    }

    pub(crate) fn requests(&self, fits: impl Fn(Verb) -> bool) -> Vec<String> {
        let entries = self.cluster.journal().entries();
        let of_operator = entries.iter().filter(|entry| {
            let attempt = &entry.attempt;
            fits(attempt.verb)
                && attempt.resource != "events"
                && !(attempt.resource == "kites" && attempt.subresource.is_empty() && attempt.verb.is_write())
                && !["namespaces", "replicasets", "pods"].contains(&attempt.resource.as_str())
        });
        let text = |entry: &kaos_cluster::faults::Entry| {
            let attempt = &entry.attempt;
            let slash = if attempt.subresource.is_empty() { "" } else { "/" };
            format!("{} {}{slash}{} {}", attempt.verb.name(), attempt.resource, attempt.subresource, attempt.name)
        };
        of_operator.map(text).collect()
    }

    /// Changes the children of an object so that they look like children of the Go operator. Removes this operator's
    /// labels and annotations. Adds the Go operator's hash and field manager, and a field that is not in the plan.
    pub(crate) async fn make_it_look_earlier(&self, name: &str) {
        for (group, plural) in [("", "configmaps"), ("", "services"), ("apps", "deployments")] {
            let api = self.child_api(group, plural);
            let mut child = serde_json::to_value(api.get(name).await.unwrap()).unwrap();
            let metadata = child["metadata"].as_object_mut().unwrap();
            metadata.remove("annotations");
            if let Some(labels) = metadata["labels"].as_object_mut() {
                labels.remove("app.kubernetes.io/managed-by");
            }
            for entry in metadata["managedFields"].as_array_mut().unwrap() {
                if entry["manager"] == "kaos-operator" {
                    entry["manager"] = json!("manager");
                    entry["operation"] = json!("Update");
                }
            }
            if plural == "deployments" {
                child["spec"]["paused"] = json!(true);
                child["spec"]["template"]["metadata"]["annotations"]["kaos.tools/pod-spec-hash"] = json!("theirs");
                for entry in child["metadata"]["managedFields"].as_array_mut().unwrap() {
                    if entry["manager"] == "manager" {
                        entry["fieldsV1"]["f:spec"]["f:paused"] = json!({});
                    }
                }
            }
            self.cluster.plant(group, plural, child);
        }
    }
}
