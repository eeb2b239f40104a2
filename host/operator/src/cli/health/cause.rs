//! The possible root causes if an object is not ready, each with its remedy.

use std::fmt;

use super::super::program::as_called;

/// A root cause. The text says what is wrong, and [`RootCause::remedy`] says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RootCause {
    /// No operator has worked on the object, or on its newest generation.
    #[error("no operator has worked on {what} yet")]
    NotSeen { what: &'static str, namespace: String, home: String },
    /// An object that the object uses does not exist.
    #[error("{object} does not exist")]
    NotThere { object: String },
    /// The cause that the operator wrote into a condition of the object.
    #[error("{reason}: {message}")]
    Condition { reason: String, message: String },
    /// Objects wait for each other.
    #[error("these objects wait for each other: {0}")]
    Circle(String),
    /// An object is being deleted.
    #[error("the object is being deleted{}", Joined(", and waits for the finalizers ", .finalizers))]
    Deleted { finalizers: Vec<String> },
    /// A node cannot get an image.
    #[error("the node cannot pull image {image} of container {container}: {message}")]
    Image { container: String, image: String, message: String },
    /// A container ends again and again.
    #[error("container {container} {how}; restarts: {restarts}")]
    Crash { container: String, how: String, restarts: i64, out_of_memory: bool, logs: String },
    /// The kubelet cannot start a container.
    #[error("container {container} cannot start: {message}")]
    NotStartable { container: String, message: String },
    /// A container runs, but is not ready.
    #[error("container {container} runs, but is not ready{}", .probe.as_ref().map_or_else(String::new, |it| format!(": {it}")))]
    Probe { container: String, probe: Option<String>, logs: String },
    /// No node takes the pod.
    #[error("no node takes the pod: {message}")]
    Unschedulable { message: String },
    /// A volume cannot be mounted.
    #[error("a volume of the pod cannot be mounted: {message}")]
    Volume { message: String },
    /// A volume claim has no volume.
    #[error("PersistentVolumeClaim {claim} is not bound{}", .message.as_ref().map_or_else(String::new, |it| format!(": {it}")))]
    Unbound { claim: String, message: Option<String> },
    /// Kubernetes cannot create pods.
    #[error("Kubernetes cannot create the pods: {message}")]
    NotCreated { message: String },
    /// A pod ended.
    #[error("the pod ended: {message}")]
    Ended { message: String },
    /// A workload has no pods, because its spec asks for 0 replicas.
    #[error("the workload is scaled to 0 replicas")]
    ScaledToZero { scale: String },
    /// The pods are starting.
    #[error("still starting: {message}")]
    Starting { message: String },
    /// The user may not read the objects that would show the cause.
    #[error("the cause is not visible with the rights of this user")]
    NotVisible,
}

/// Displays a text and then a list of names. Displays nothing if the list is empty.
struct Joined<'a>(&'static str, &'a [String]);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1.is_empty() { Ok(()) } else { write!(f, "{}{}", self.0, self.1.join(", ")) }
    }
}

impl RootCause {
    /// Returns the cause in one word, for scripts. If the cause is a condition, returns the reason of the condition.
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::NotSeen { .. } => "NotReconciled",
            Self::NotThere { .. } => "NotFound",
            Self::Condition { reason, .. } => reason,
            Self::Circle(_) => "Circle",
            Self::Deleted { .. } => "BeingDeleted",
            Self::Image { .. } => "ImageNotPulled",
            Self::Crash { out_of_memory: true, .. } => "OutOfMemory",
            Self::Crash { .. } => "ContainerCrashes",
            Self::NotStartable { .. } => "ContainerNotStartable",
            Self::Probe { .. } => "ProbeFails",
            Self::Unschedulable { .. } => "Unschedulable",
            Self::Volume { .. } => "VolumeNotMounted",
            Self::Unbound { .. } => "ClaimNotBound",
            Self::NotCreated { .. } => "PodsNotCreated",
            Self::Ended { .. } => "PodEnded",
            Self::ScaledToZero { .. } => "ScaledToZero",
            Self::Starting { .. } => "Starting",
            Self::NotVisible => "NotVisible",
        }
    }

    /// Returns the remedy: what a person can do about the cause.
    pub(super) fn remedy(&self) -> String {
        as_called(&self.advice())
    }

    fn advice(&self) -> String {
        match self {
            Self::NotSeen { namespace, home, .. } => format!(
                "check that the operator runs (`kubectl -n {home} get pods,lease`), and that its flag --namespaces, if \
                 set, lists namespace {namespace}"
            ),
            Self::NotThere { .. } => {
                "create the object, or correct its name in the object that refers to it; then the operator continues \
                 without further action"
                    .to_owned()
            }
            Self::Condition { reason, .. } => of_reason(reason).to_owned(),
            Self::Circle(_) => {
                "remove one of the references, or set waitForDependencies: false on one Agent".to_owned()
            }
            Self::Deleted { finalizers } if finalizers.is_empty() => {
                "wait until Kubernetes has deleted the children".to_owned()
            }
            Self::Deleted { .. } => {
                "check that the controller of each finalizer runs; `kaos-operator release --dry-run` lists the \
                 finalizers of KAOS"
                    .to_owned()
            }
            Self::Image { .. } => {
                "check the name and the tag of the image, and the login to its registry (imagePullSecrets)".to_owned()
            }
            Self::Crash { out_of_memory: true, .. } => {
                "raise resources.limits.memory of the container, or let it use less memory".to_owned()
            }
            Self::Crash { logs, .. } => format!("read the log of the last run: `{logs} --previous`"),
            Self::NotStartable { .. } => {
                "create the Secret, ConfigMap or key that the message names, or correct the container".to_owned()
            }
            Self::Probe { logs, .. } => format!("read the log of the container: `{logs}`"),
            Self::Unschedulable { .. } => {
                "free or add the resources that the message names; check nodeSelector, affinity and tolerations"
                    .to_owned()
            }
            Self::Volume { .. } => "create the object that the message names, or correct the volume".to_owned(),
            Self::Unbound { .. } => {
                "check the storage class of the claim, and that its provisioner runs (`kubectl get storageclass`)"
                    .to_owned()
            }
            Self::NotCreated { .. } => {
                "correct what the message names: a quota, an admission rule or the service account of the pods"
                    .to_owned()
            }
            Self::Ended { .. } => "read the pod's log, and delete the pod if no new pod replaces it".to_owned(),
            Self::ScaledToZero { scale } => format!("scale the workload up: `{scale}`"),
            Self::Starting { .. } => "wait; `kaos-operator status -w` prints each change".to_owned(),
            Self::NotVisible => "ask an administrator for the rights that the notes name".to_owned(),
        }
    }
}

/// Returns the remedy for a condition with this reason.
fn of_reason(reason: &str) -> &'static str {
    match reason {
        "InvalidSpec" => "correct the field that the message names, and apply the object again",
        "Unsupported" => "change the spec, or install a policy that supports it",
        "NoPolicy" => "install a policy for this kind: `kaos-operator policy list --all` shows the existing ones",
        "PolicyFailed" => {
            "tell the owner of the policy; `kaos-operator policy rollback` restores the previous revision"
        }
        "GuardRefused" => "change the policy, the settings or the object that the message names",
        "PolicyNotFound" => "correct or remove the annotation kaos.tools/policy of the object",
        "NotFound" => "create the object that the message names, or correct its name in the spec",
        "NotPermitted" => "give the operator the right: `kaos-operator rbac` prints all rights that the operator needs",
        "TooManyNeeds" => "refer to fewer objects, or move objects to another namespace",
        "OwnershipConflict" => "rename the object, or delete the object of the other owner",
        "ApplyFailed" => "follow the message of the API server; if a field is immutable, delete the child",
        "Gated" | "Waiting" => "check the object that the message names",
        _ => "follow the message; docs/reference/conditions.md explains each reason",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_text_and_a_remedy_without_gaps() {
        let text = String::new;
        let logs = || "kaos-operator logs widget/a".to_owned();
        let (container, message) = (|| "main".to_owned(), || "m".to_owned());
        let all = [
            RootCause::NotSeen { what: "this object", namespace: text(), home: text() },
            RootCause::NotThere { object: "Widget t/a".to_owned() },
            RootCause::Condition { reason: "InvalidSpec".to_owned(), message: message() },
            RootCause::Circle("a, b".to_owned()),
            RootCause::Deleted { finalizers: vec!["a/b".to_owned()] },
            RootCause::Deleted { finalizers: Vec::new() },
            RootCause::Image { container: container(), image: "x:1".to_owned(), message: message() },
            RootCause::Crash {
                container: container(),
                how: message(),
                restarts: 2,
                out_of_memory: false,
                logs: logs(),
            },
            RootCause::Crash { container: container(), how: message(), restarts: 2, out_of_memory: true, logs: logs() },
            RootCause::NotStartable { container: container(), message: message() },
            RootCause::Probe { container: container(), probe: None, logs: logs() },
            RootCause::Unschedulable { message: message() },
            RootCause::Volume { message: message() },
            RootCause::Unbound { claim: "c".to_owned(), message: None },
            RootCause::NotCreated { message: message() },
            RootCause::Ended { message: message() },
            RootCause::ScaledToZero { scale: "kubectl scale".to_owned() },
            RootCause::Starting { message: message() },
            RootCause::NotVisible,
        ];
        for cause in all {
            let (told, remedy) = (cause.to_string(), cause.remedy());
            assert!(!told.is_empty() && !told.ends_with([' ', ':', ',']), "{told:?}");
            assert!(remedy.len() > 10 && !remedy.ends_with('.'), "{cause:?}: {remedy}");
        }
    }
}
