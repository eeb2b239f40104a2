//! `ReplicaSet`s: creates and deletes pods until the number of pods is right.

use std::time::Duration;

use serde_json::json;

use super::{Moment, adopt, controlled, pod_status, pods as pod_objects, replica_set_objects, served, workers};
use crate::{
    api,
    kinds::count,
    state::State,
    storage::{Key, meta},
};

/// The delay after a failure to create pods.
const RETRY: Duration = Duration::from_secs(5);

pub(super) fn sync(state: &mut State, key: &Key, moment: &Moment<'_>) -> Option<Duration> {
    let set = state.store.get(&replica_set_objects(), key).cloned()?;
    let uid = meta(&set, "uid").to_owned();
    if meta(&set, "deletionTimestamp").is_empty() {
        adopt::orphans(state, &pod_objects(), &set, "ReplicaSet", moment);
    }
    let (going, mut staying): (Vec<_>, Vec<_>) = controlled(state, &pod_objects(), &key.namespace, &uid)
        .into_iter()
        .partition(|pod| !meta(pod, "deletionTimestamp").is_empty());
    let mut failure = None;
    if meta(&set, "deletionTimestamp").is_empty() {
        let wanted = workers::bounded(state, &set, count(&set["spec"]["replicas"]), moment);
        let wanted = usize::try_from(wanted).unwrap_or_default();
        if staying.len() < wanted {
            failure = workers::missing_account(state, &set);
        }
        for _ in staying.len()..if failure.is_some() { 0 } else { wanted } {
            staying.extend(workers::create(state, &set, None, moment, |_| ()));
        }
        // Delete unready pods first, then the youngest pods.
        staying.sort_by_cached_key(|pod| (!pod_status::is_ready(pod), std::cmp::Reverse(meta(pod, "name").to_owned())));
        staying.reverse();
        while staying.len() > wanted {
            let Some(pod) = staying.pop() else { break };
            workers::delete(state, &pod, moment);
        }
    }
    let min_ready = u64::try_from(count(&set["spec"]["minReadySeconds"])).unwrap_or_default();
    let available: Vec<_> = staying.iter().map(|pod| pod_status::availability(pod, min_ready, moment.now)).collect();
    let retry = failure.is_some().then_some(RETRY);
    let again = available.iter().filter_map(|pod| pod.err().flatten()).chain(retry).min();
    let resource = served(state, &replica_set_objects())?;
    let set = state.store.get(&replica_set_objects(), key).cloned()?;
    let now = moment.text();
    api::controller_update(state, &resource, "status", &set, &now, |object| {
        let ready = staying.iter().filter(|pod| pod_status::is_ready(pod)).count();
        let available = available.iter().filter(|pod| pod.is_ok()).count();
        let mut status = json!({"replicas": staying.len(), "observedGeneration": object["metadata"]["generation"],
            "terminatingReplicas": going.len()});
        for (field, number) in
            [("fullyLabeledReplicas", staying.len()), ("readyReplicas", ready), ("availableReplicas", available)]
        {
            if number > 0 {
                status[field] = json!(number);
            }
        }
        if let Some(message) = failure {
            let known = object["status"]["conditions"][0]["lastTransitionTime"].clone();
            let since = if known.is_null() { json!(now) } else { known };
            status["conditions"] = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
                "message": message, "lastTransitionTime": since}]);
        }
        object["status"] = status;
    });
    again
}
