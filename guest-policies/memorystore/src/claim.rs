//! Plans the volume claim of a store from the existing volume claim, and reports whether the data stays.
//!
//! The policy changes only the size of an existing volume claim. A volume claim that the store no longer uses stays in
//! the plan while it exists, so no edit deletes data. If the policy cannot read the volume claim, the store waits,
//! because the operator deletes a volume claim that is missing in the plan.

use alloc::{
    borrow::ToOwned,
    string::{String, ToString},
    vec::Vec,
};
use kaos_crds::MemoryStoreSpec;
use kaos_crds::memorystore::StorageType;
use kaos_policy_sdk::need::{named, optional, reference};
use kaos_policy_sdk::plan::Child;
use kaos_policy_sdk::quantity::Quantity;
use kaos_policy_sdk::types::{Condition, Need, Note, Refusal, Subject};
use kaos_policy_sdk::{Lookup, NeedExt as _, Object, SubjectExt, Violations, condition, note, object};
use kaos_workload::{Extra, Workload};
use serde_json::Value;

use crate::settings::Volume;
use crate::wanted::{SIZE, size};

/// The kind of a volume claim.
pub(crate) const KIND: &str = "PersistentVolumeClaim";
/// The id of the need for the store's own PersistentVolumeClaim.
pub(crate) const OWN: &str = "claim";
/// The fields of a PersistentVolumeClaim that the policy reads.
const READ: [&str; 5] = [
    "metadata.ownerReferences",
    "spec.accessModes",
    "spec.resources.requests.storage",
    "spec.storageClassName",
    "status.capacity.storage",
];
/// The annotation of an object that overrides the setting [`Volume::keep`].
const KEEP: &str = "settings.kaos.tools/volume.keep";

/// The volume claims of a store.
#[derive(Debug)]
pub(crate) struct Claims {
    /// The volume claim that the pods mount. `None` if the pods mount no volume claim.
    pub(crate) mounted: Option<String>,
    /// The store's own volume claim. `None` if the plan does not contain this volume claim.
    own: Option<Own>,
    /// Notes for the user.
    pub(crate) notes: Vec<Note>,
}

/// The store's own volume claim.
#[derive(Debug)]
struct Own {
    name: String,
    /// The wanted size.
    size: String,
    /// The current capacity of the existing volume claim. `None` if the volume claim does not exist or is not bound.
    holds: Option<String>,
    /// The requested size of the existing volume claim. `None` if the volume claim does not exist.
    asks: Option<String>,
    access_mode: String,
    storage_class: String,
    is_kept: bool,
}

/// Returns the name of the store's own volume claim.
fn own_name(workload: &Workload<'_>) -> String {
    format!("{}-data", workload.child_name())
}

/// Returns the need for the store's own volume claim.
pub(crate) fn need(workload: &Workload<'_>) -> Need {
    optional(named(OWN, reference("v1", KIND, &own_name(workload)))).fields(READ)
}

impl Claims {
    /// Reads the existing volume claim. Collects a violation if the wanted size is smaller than the size of the volume
    /// claim. If the policy cannot read the volume claim, refuses to plan, so the store waits.
    pub(crate) fn of(
        subject: &Subject,
        workload: &Workload<'_>,
        spec: &MemoryStoreSpec,
        volume: &Volume,
        wrong: &mut Violations,
    ) -> Result<Self, Refusal> {
        let name = own_name(workload);
        let found = match subject.one(OWN) {
            Lookup::Absent => None,
            other => Some(other.or_wait(reference("v1", KIND, &name))?),
        };
        let is_local = spec.storage.type_ == StorageType::Local;
        let given = Some(&volume.claim).filter(|given| is_local && !given.is_empty() && **given != name);
        let mut claims = Self { mounted: None, own: None, notes: Vec::new() };
        if is_local && given.is_none() {
            let own = Own::wanted(name.clone(), size(spec), found.as_ref(), volume, wrong);
            claims.notes.extend(own.as_it_was(volume));
            claims.own = Some(own);
            claims.mounted = Some(name);
            return Ok(claims);
        }
        claims.mounted = given.cloned();
        if let Some(found) = found.filter(|found| is_owned(found, &subject.object())) {
            let message = format!(
                "{KIND} {name} is no longer used and stays, because it may contain memories: to delete them, run \
                 kubectl delete persistentvolumeclaim {name}"
            );
            claims.notes.push(note::at("spec.storage", note::info("ClaimUnused", message)));
            claims.own = Some(Own::left(name, &found, volume));
        }
        Ok(claims)
    }

    /// Returns the names of the PersistentVolumeClaims that stay when a user deletes the store.
    pub(crate) fn kept(&self) -> Vec<String> {
        self.own.iter().filter(|own| own.is_kept).map(|own| own.name.clone()).collect()
    }

    /// Builds the store's own volume claim. Returns `None` if the plan does not contain this volume claim.
    pub(crate) fn child(&self, workload: &Workload<'_>, extra: &Extra<'_>) -> Option<Child> {
        let own = self.own.as_ref()?;
        let mut spec = object! {
            "accessModes": vec![own.access_mode.as_str()],
            "resources": object! { "requests": object! { "storage": own.size.as_str() } },
        };
        if !own.storage_class.is_empty() {
            spec["storageClassName"] = own.storage_class.as_str().into();
        }
        let metadata = workload.metadata(&own.name, extra);
        let claim = object! { "apiVersion": "v1", "kind": KIND, "metadata": metadata, "spec": spec };
        Some(
            extra
                .child(claim)
                .origin("spec.resources.requests.storage", SIZE)
                .origin("spec.accessModes[0]", "settings.volume.accessMode")
                .origin("spec.storageClassName", "settings.volume.storageClass"),
        )
    }

    /// Builds the conditions on the data: whether the data stays when a user deletes the store, and whether the volume
    /// claim has the wanted size.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        let Some(mounted) = &self.mounted else { return Vec::new() };
        let Some(own) = self.own.as_ref().filter(|own| own.name == *mounted) else {
            let message = format!("{KIND} {mounted} does not belong to this store and stays when the store is deleted");
            return vec![condition::yes("DataKept", "GivenClaim", message)];
        };
        let kept = if own.is_kept {
            let message = format!(
                "{KIND} {mounted} stays when this store is deleted, and a new store of this name uses it again"
            );
            condition::yes("DataKept", "Kept", message)
        } else {
            let message = format!(
                "{KIND} {mounted} is deleted with this store, with all memories: to keep the volume claim, annotate \
                 the store with {KEEP}: \"true\""
            );
            condition::no("DataKept", "GoesWithStore", message)
        };
        [kept].into_iter().chain(own.sized()).collect()
    }
}

impl Own {
    /// Returns the store's own volume claim with this `size`. Collects a violation if the existing volume claim would
    /// shrink.
    fn wanted(name: String, size: &str, found: Option<&Object>, volume: &Volume, wrong: &mut Violations) -> Self {
        let asks = found.and_then(requested).map(ToOwned::to_owned);
        let quantity = |text: &str| Quantity::parse(text).ok();
        if let Some(asks) = &asks
            && let (Some(wanted), Some(before)) = (quantity(size), quantity(asks))
            && wanted < before
        {
            let message = format!(
                "is {size}, but {KIND} {name} has {asks}: a volume never shrinks; set {asks} or more, or move the \
                 memories to a new store"
            );
            wrong.add(SIZE, message);
        }
        let holds = found.and_then(|found| found.str_at(&["status", "capacity", "storage"])).map(ToOwned::to_owned);
        let (access_mode, storage_class) = fixed(found, volume);
        Self { name, size: size.to_owned(), holds, asks, access_mode, storage_class, is_kept: volume.keep }
    }

    /// Plans the existing volume claim that the store no longer uses. This volume claim keeps its size and its
    /// class.
    fn left(name: String, found: &Object, volume: &Volume) -> Self {
        let size = requested(found).unwrap_or_default().to_owned();
        let (access_mode, storage_class) = fixed(Some(found), volume);
        Self { name, asks: Some(size.clone()), size, holds: None, access_mode, storage_class, is_kept: volume.keep }
    }

    /// If the existing volume claim has another class or access mode than the settings, builds a note that these
    /// settings have no effect.
    fn as_it_was(&self, volume: &Volume) -> Option<Note> {
        let differs = self.asks.is_some()
            && (self.access_mode != volume.access_mode || self.storage_class != volume.storage_class);
        differs.then(|| {
            let message = format!(
                "{KIND} {name} keeps its class and access mode, which differ from the settings: an existing claim cannot \
                 change them",
                name = self.name
            );
            note::info("ClaimAsItWas", message)
        })
    }

    /// Builds the condition `VolumeSized`, or returns `None` if the volume claim does not exist.
    fn sized(&self) -> Option<Condition> {
        const SIZED: &str = "VolumeSized";
        let quantity = |text: &str| Quantity::parse(text).ok();
        let (asks, wanted) = (self.asks.as_deref()?, quantity(&self.size)?);
        let name = &self.name;
        if quantity(asks).is_some_and(|asks| asks < wanted) {
            let message = format!(
                "{KIND} {name} asks for {asks} and does not grow to {size} yet: if its StorageClass does not allow growth \
                 (allowVolumeExpansion), revert the change",
                size = self.size
            );
            return Some(condition::no(SIZED, "NotGrown", message));
        }
        let holds = self.holds.as_deref()?;
        Some(if quantity(holds).is_some_and(|holds| holds < wanted) {
            let message = format!("{KIND} {name} has {holds} and grows to {size}", size = self.size);
            condition::no(SIZED, "Growing", message)
        } else {
            condition::yes(SIZED, "Sized", format!("{KIND} {name} holds {holds}"))
        })
    }
}

/// Returns the requested size of a volume claim, or `None` if the volume claim has no such field.
fn requested(claim: &Object) -> Option<&str> {
    claim.str_at(&["spec", "resources", "requests", "storage"])
}

/// Returns the access mode and the storage class. The values of an existing volume claim win over the settings.
fn fixed(found: Option<&Object>, volume: &Volume) -> (String, String) {
    let (mode, class) = (volume.access_mode.clone(), volume.storage_class.clone());
    let Some(found) = found else { return (mode, class) };
    let modes = found.at(&["spec", "accessModes"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let has = |wanted: &str| modes.iter().any(|mode| mode.as_str() == Some(wanted));
    let first = modes.first().and_then(Value::as_str).map(ToOwned::to_owned);
    // If the settings name no class, the cluster chose the class of the existing volume claim. This is no difference to
    // report.
    let live = found.str_at(&["spec", "storageClassName"]).unwrap_or_default();
    let class = if class.is_empty() { class } else { live.to_string() };
    (if has(&mode) { mode } else { first.unwrap_or(mode) }, class)
}

/// Returns whether a volume claim belongs to the store and is not being deleted.
fn is_owned(claim: &Object, store: &Object) -> bool {
    let uid = store.str_at(&["metadata", "uid"]);
    let owners = claim.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
    let is_ours = |owner: &Value| uid.is_some() && owner.get("uid").and_then(Value::as_str) == uid;
    claim.at(&["metadata", "deletionTimestamp"]).is_none() && owners.is_some_and(|owners| owners.iter().any(is_ours))
}
