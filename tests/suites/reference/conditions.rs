//! People write `docs/reference/conditions.md` by hand. The page must have a row for every word that the sources can
//! put into a condition, an Event, a revision or a note.
//!
//! This test treats every string literal in `CamelCase` in the sources as one of these words, except the literals in
//! `OTHER_WORDS`. So the test fails if an author forgets to document a new reason. The phases of objects and the states
//! of revisions come from the CustomResourceDefinitions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{page::ROOT, sources};

const FOLDERS: [&str; 10] = [
    "host/kube-io/src",
    "host/operator/src",
    "host/policy/src",
    "guest-policies/agent/src",
    "guest-policies/authorization/src",
    "guest-policies/mcpserver/src",
    "guest-policies/memorystore/src",
    "guest-policies/modelapi/src",
    "guest-policies/sdk/src",
    "guest-policies/workload/src",
];

/// Folders that the test skips. Their words are values of Kubernetes' own fields, values that `policy conform` tries,
/// or headings of the console's pages.
const OTHER_FOLDERS: [&str; 4] = [
    "host/policy/src/kubernetes/",
    "host/operator/src/fuzz/",
    "host/operator/src/conform/",
    "host/operator/src/cli/console/page/",
];

/// Words in `CamelCase` that the page need not document: types and names of Kubernetes, units, Rust types and values.
const OTHER_WORDS: &str = "
    AccessGrant Added Agent AuthorizationPolicy AlreadyExists Always Apply Backend Binding Cache Catalogue Changed
    Cluster ClusterFirst ClusterIP ClusterRole ComponentStatus ConfigMap CronJob CustomResourceDefinition DaemonSet
    DecisionKey Default Deployment DeviceClass Egress Ei EndpointSlice Endpoints Engine EnvoyExtensionPolicy Failure
    False FieldsV1 File Filesystem FlowSchema Gateway GatewayClass Gi HorizontalPodAutoscaler IfNotPresent Ingress
    IngressClass Inline IntOrString Invalid Job Ki KiB Kind Kustomization List LoadBalancer Masked MemoryStore Metrics
    Mi MiB ModelAPI Name Namespace NamespaceTerminating NetworkPolicy Never Node NodePort NonIndexed Normal Null OnDelete
    OrderedReady PassLookup PathPrefix PersistentVolume PersistentVolumeClaim Pi Pod PodDisruptionBudget
    PodSecurityPolicy Policy PolicyRevision PriorityLevelConfiguration Probe Proxy Quantity Queue ReadWriteOnce
    Reconcile Recreate Ref ReferenceGrant Removed Renamed ReplacePrefixMatch ReplicaFailure RequestHeaderModifier
    ReplicaSet ResourceSlice RollingUpdate RuntimeClass Schema Secret SecurityPolicy Service ServiceAccount ServiceCIDR
    ServiceUnavailable StatefulSet Status StorageVersion String Ti TooManyRequests True Unconfined Update User
    VolumeSnapshotClass VolumeSnapshotContent Warning Watch WatchOptions Website Bound Complete ContainerCreating
    CrashLoopBackOff ErrImageNeverPull ErrImagePull Event Exists FailedAttachVolume FailedBinding FailedCreate
    FailedMapVolume FailedMount ImageInspectError ImagePullBackOff InvalidImageName PodInitializing PodScheduled
    ProvisioningFailed RegistryUnavailable Succeeded Unhealthy WaitForFirstConsumer";

/// Fails if a word in the sources has no row on the page, or if a row contains no word of the sources.
pub(crate) fn check() {
    let others: BTreeSet<&str> = OTHER_WORDS.split_whitespace().collect();
    let mut words: BTreeMap<String, String> = BTreeMap::new();
    for (file, text) in sources::of(&FOLDERS).into_iter().filter(|(file, _)| is_searched(file)) {
        for word in text.split('"').filter(|word| is_reason(word)) {
            words.entry(word.to_owned()).or_insert_with(|| file.clone());
        }
    }
    let page = fs::read_to_string(Path::new(ROOT).join("docs/reference/conditions.md")).unwrap();
    let cells = page.lines().flat_map(first_cells).flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let headings = page.lines().filter_map(|line| line.strip_prefix("### ")).filter(|heading| is_reason(heading));
    let rows: BTreeSet<&str> = cells.chain(headings).collect();
    for word in states() {
        words.entry(word).or_insert_with(|| "the definitions".to_owned());
    }
    let missing: Vec<String> = words
        .iter()
        .filter(|(word, _)| !others.contains(word.as_str()) && !rows.contains(word.as_str()))
        .map(|(word, file)| format!("{word} of {file}"))
        .collect();
    assert!(missing.is_empty(), "docs/reference/conditions.md has no row for: {missing:#?}");
    let unknown: Vec<&&str> = rows.iter().filter(|word| is_reason(word) && !words.contains_key(**word)).collect();
    assert!(
        unknown.is_empty(),
        "docs/reference/conditions.md has rows for words that are not in the sources: {unknown:?}"
    );
    let unused: Vec<&&str> = others.iter().filter(|word| !words.contains_key(**word)).collect();
    assert!(unused.is_empty(), "these words are not in the sources any more: {unused:?}");
}

/// Returns all phases of objects, and all states of revisions.
fn states() -> Vec<String> {
    let definitions = kaos_crds::manifests::ALL.map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
    let values = definitions.iter().flat_map(|definition| {
        let status = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
        ["phase", "state"].map(|field| status["properties"][field]["enum"].as_array().cloned().unwrap_or_default())
    });
    values.flatten().filter_map(|value| Some(value.as_str()?.to_owned())).collect()
}

fn is_searched(file: &str) -> bool {
    !OTHER_FOLDERS.iter().any(|folder| file.starts_with(folder))
}

fn is_reason(word: &str) -> bool {
    word.len() > 1
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_alphanumeric())
        && word.chars().nth(1).is_some_and(|c| c.is_ascii_lowercase())
}

/// Returns the first two cells of a table row: a condition and its reason, or a reason and the object with this reason.
fn first_cells(line: &str) -> impl Iterator<Item = &str> {
    line.strip_prefix("| ").into_iter().flat_map(|line| line.split(" | ").take(2))
}
