//! Answers the reads of passes from memory, without requests to the API server.

use std::{cell::RefCell, sync::Arc};

use kaos_objects::{
    Fields, Reference, ResourceType, SecretFacts, Target,
    lookup::{Lookup, MAX_FOUND_BYTES, Sighting},
};
use serde_json::Value;

use super::{
    cached_object::{CachedObject, parse},
    coverage::{can_exist, is_guarded},
    fetched_objects::Fetched,
    look::Look,
    plan::Select,
    selected,
    shared::Shared,
    slot::Slot,
    state::State,
    text::Text,
};

/// The view of the cluster for one pass. If the state of a target is unknown, the target looks absent, and the lookup
/// records the target as pending. The caller must discard an answer that depends on a pending target.
pub struct PassLookup {
    shared: Arc<Shared>,
    pending: RefCell<Vec<Target>>,
}

impl PassLookup {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, pending: RefCell::default() }
    }

    /// Returns whether the pass looked up a target with an unknown state. After a call of
    /// [`Watch::set_needs`](super::Watch::set_needs), the watch finds out the state.
    pub fn is_pending(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    /// Returns all pending targets.
    #[cfg(test)]
    pub fn pending(&self) -> Vec<Target> {
        self.pending.borrow().clone()
    }

    fn look(&self, target: &Target) -> Look {
        let look = self.shared.with(|state| look(state, target));
        if matches!(look, Look::Pending) {
            let mut pending = self.pending.borrow_mut();
            if !pending.contains(target) {
                pending.push(target.clone());
            }
        }
        look
    }
}

impl std::fmt::Debug for PassLookup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PassLookup").field("pending", &self.pending).finish_non_exhaustive()
    }
}

impl Lookup for PassLookup {
    fn look_up(&self, target: &Target) -> Sighting {
        sighting(self.look(target))
    }

    fn look_up_fields(&self, target: &Target, fields: &Fields, room: &mut usize) -> Sighting {
        match self.look(target) {
            Look::Objects(texts) if !fields.is_whole() => Sighting::Objects(parsed_fields(&texts, fields, room)),
            look => sighting(look),
        }
    }

    fn is_absent(&self, target: &Target) -> bool {
        match self.look(target) {
            Look::Pending => true,
            Look::Objects(texts) => texts.is_empty(),
            Look::Secret(facts) => !facts.present,
            Look::Unserved | Look::Forbidden(_) => false,
        }
    }

    fn is_cluster_scoped(&self, of: &ResourceType) -> bool {
        self.shared.with(|state| is_cluster_scoped(state, of))
    }
}

fn sighting(look: Look) -> Sighting {
    match look {
        Look::Pending => Sighting::Objects(Vec::new()),
        Look::Objects(texts) => Sighting::Objects(parsed(&texts)),
        Look::Secret(facts) => Sighting::Secret(facts),
        Look::Unserved => Sighting::Unserved,
        Look::Forbidden(why) => Sighting::Forbidden(why),
    }
}

/// Parses objects one after the other, and keeps only the given fields, without the resource version. Stops when the
/// found fields exceed [`MAX_FOUND_BYTES`]. Also stops, and sets `room` to 0, if the next object does not fit into the
/// remaining `room` bytes.
fn parsed_fields(texts: &[(Text, u64)], fields: &Fields, room: &mut usize) -> Vec<Arc<Value>> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    for (text, _) in texts {
        let Some(left) = room.checked_sub(text.len()).filter(|left| *left > 0) else {
            *room = 0;
            break;
        };
        if bytes > MAX_FOUND_BYTES {
            break;
        }
        *room = left;
        let part = fields.of(&serde_json::from_slice(&text.plain()).unwrap_or_default());
        bytes += part.to_string().len();
        found.push(Arc::new(part));
    }
    found
}

/// Parses objects up to the size limit of a pass. The pass ignores all further objects.
fn parsed(texts: &[(Text, u64)]) -> Vec<Arc<Value>> {
    let mut bytes = 0;
    let looked_at = texts.iter().take_while(|(text, _)| {
        let is_wanted = bytes <= MAX_FOUND_BYTES;
        bytes += text.len();
        is_wanted
    });
    looked_at.map(|(text, version)| Arc::new(parse(text, *version))).collect()
}

pub(super) fn is_cluster_scoped(state: &State, of: &ResourceType) -> bool {
    state.served.get(of).is_some_and(|served| served.as_ref().is_some_and(|served| !served.namespaced))
}

/// Returns the known state of a target.
pub(super) fn look(state: &State, target: &Target) -> Look {
    let of = target.of();
    if of.is_secret() && !state.secrets {
        let why = "the operator does not look at Secrets: start the operator with --watch-secrets, so that policies \
            see whether a Secret exists, its keys, and its changes";
        return Look::Forbidden(why.to_owned());
    }
    let namespaced = match state.served.get(&of) {
        None => return Look::Pending,
        Some(None) => return Look::Unserved,
        Some(Some(served)) => served.namespaced,
    };
    let namespace = if namespaced { target.namespace().unwrap_or_default() } else { "" };
    if namespaced && !state.reaches(target) {
        return Look::Forbidden(format!("the operator does not watch namespace {namespace}"));
    }
    if !namespaced && state.scope.places(false).is_empty() {
        let why = format!("{of} is cluster-scoped, but with --namespaces, the operator reads only namespaced objects");
        return Look::Forbidden(why);
    }
    if is_guarded(&of) && !state.coverage.is_primary(&of) {
        if of.is_secret() && matches!(target, Target::Labelled(_)) {
            return Look::Forbidden("Secrets are read by name, never by label".to_owned());
        }
        if !can_exist(target) {
            return absent(of.is_secret());
        }
        return state.answering(target).map_or(Look::Pending, |(spec, slot)| match target {
            Target::Named(reference) if spec.by_metadata() => fact(slot, &reference.name),
            Target::Labelled(selector) if spec.by_metadata() => {
                unknown(slot).unwrap_or_else(|| selected::with_labels(slot, &selector.labels))
            }
            _ => objects(slot, namespace, target),
        });
    }
    match state.store(&of, namespace) {
        Some((spec, slot)) if spec.select == Select::Whole => objects(slot, namespace, target),
        _ if state.coverage.is_read(&of) => Look::Pending,
        _ => Look::Forbidden(format!("no active policy reads {of}")),
    }
}

fn objects(slot: &Slot, namespace: &str, target: &Target) -> Look {
    if let Some(look) = unknown(slot) {
        return look;
    }
    let text = |item: &CachedObject| (item.text().clone(), item.version);
    Look::Objects(match target {
        Target::Named(reference) => slot.cache.get(namespace, &reference.name).map(text).into_iter().collect(),
        Target::Labelled(selector) => {
            let all = slot.cache.iter(Some(namespace)).map(|(.., item)| item);
            all.filter(|item| item.carries(&selector.labels)).map(text).collect()
        }
    })
}

fn fact(slot: &Slot, name: &str) -> Look {
    if let Some(look) = unknown(slot) {
        return look;
    }
    match slot.fetched.get(name) {
        None => Look::Pending,
        Some(Fetched::Absent) => absent(slot.of.is_secret()),
        Some(Fetched::Object(item)) => Look::Objects(vec![(item.text().clone(), item.version)]),
        Some(Fetched::Secret(facts)) => Look::Secret(facts.clone()),
        Some(Fetched::Forbidden(why)) => Look::Forbidden(why.clone()),
    }
}

fn absent(is_secret: bool) -> Look {
    if is_secret {
        Look::Secret(SecretFacts { present: false, keys: Vec::new(), digest: String::new() })
    } else {
        Look::Objects(Vec::new())
    }
}

/// Returns `None` if a watch can answer from its cache. Otherwise returns what lookups report: the refusal of the API
/// server, or that the first list is not complete.
fn unknown(slot: &Slot) -> Option<Look> {
    match &slot.cache.trouble {
        Some(trouble) if slot.cache.withheld => Some(Look::Forbidden(trouble.text.clone())),
        _ if !slot.cache.synced => Some(Look::Pending),
        _ => None,
    }
}

/// The facts about a child that the watch stores.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The child's type.
    pub of: ResourceType,
    /// The child's namespace.
    pub namespace: String,
    /// The child's name.
    pub name: String,
    /// The child's UID.
    pub uid: String,
    /// The child's resource version, as a number for comparisons.
    pub version: u64,
    /// The UID of the child's controller.
    pub owner: Option<String>,
    /// Whether another field manager owns a part of the spec.
    pub shared: bool,
    /// The last time at which a user changed the spec. Known only for objects of claimed kinds.
    pub changed: Option<String>,
    /// `None` if the watch knows only the metadata, because the child lacks the operator's label.
    text: Option<Text>,
}

impl Seen {
    fn new(of: &ResourceType, namespace: &str, name: &str, item: &CachedObject) -> Self {
        Self {
            of: of.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: item.uid.clone().into_string(),
            version: item.version,
            owner: item.owner.clone().map(Into::into),
            shared: item.shared,
            changed: item.changed.clone().map(Into::into),
            text: Some(item.text().clone()),
        }
    }

    /// Returns a reference to the child.
    pub fn reference(&self) -> Reference {
        let ResourceType { api_version, kind } = self.of.clone();
        Reference { api_version, kind, namespace: Some(self.namespace.clone()), name: self.name.clone() }
    }

    /// Returns whether the watch stores the whole child. If an earlier operator created the child without the label,
    /// the watch stores only its metadata.
    pub fn is_known(&self) -> bool {
        self.text.is_some()
    }

    /// Returns the parsed object without managed fields. Returns `None` if the watch knows only the metadata.
    pub fn object(&self) -> Option<Value> {
        self.text.as_ref().map(|text| parse(text, self.version))
    }
}

/// Returns the object of this type, namespace and name from its store, or `None` if the store does not contain the
/// object.
pub(super) fn live(state: &State, of: &ResourceType, namespace: &str, name: &str) -> Option<Seen> {
    let (_, slot) = state.store(of, namespace)?;
    slot.cache.get(namespace, name).map(|item| Seen::new(of, namespace, name, item))
}

/// Returns all known children of an owner.
pub(super) fn children(state: &State, owner: &str) -> Vec<Seen> {
    let seen = |place: super::owners::ChildPlace| {
        if !state.coverage.is_emitted(&place.of) {
            return None;
        }
        if let Some(stray) = state.owners.stray_at(&place) {
            return Some(Seen {
                of: ResourceType::clone(&place.of),
                namespace: place.namespace.to_string(),
                name: place.name.to_string(),
                uid: stray.uid.clone().into_string(),
                version: stray.version,
                owner: Some(owner.to_owned()),
                shared: false,
                changed: None,
                text: None,
            });
        }
        live(state, &place.of, &place.namespace, &place.name)
    };
    state.owners.of(owner).into_iter().filter_map(seen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::dictionary::Dictionary;

    #[test]
    fn fields_are_read_from_one_object_after_the_other_within_the_room() {
        let text: Text =
            format!(r#"{{"metadata":{{"name":"a"}},"data":{{"k":"v","x":"{}"}}}}"#, "x".repeat(1 << 20)).into();
        let texts = vec![(Dictionary::default().packed(text), 7); 40];
        let text = &texts[0].0;
        let fields = Fields::parse(&["data.k".to_owned()]).unwrap();
        let mut room = 64 << 20;
        let parts = parsed_fields(&texts, &fields, &mut room);
        assert_eq!((parts.len(), &parts[39]["data"]), (40, &serde_json::json!({"k": "v"})));
        assert_eq!(room, (64 << 20) - 40 * text.len());
        assert_eq!(parsed_fields(&texts, &fields, &mut room).len(), 23);
        assert_eq!(room, 0, "the caller sees that something is missing");
        let all = Fields::parse(&["data".to_owned()]).unwrap();
        let mut room = 64 << 20;
        let parts = parsed_fields(&texts, &all, &mut room);
        assert!(parts.len() * text.len() > MAX_FOUND_BYTES && parts.len() < 6 && room > 0, "{}", parts.len());
    }

    #[test]
    fn of_very_much_no_more_is_parsed_than_is_too_much() {
        let text: Text = format!(r#"{{"metadata":{{}},"data":"{}"}}"#, "x".repeat(1 << 20)).into();
        let texts = |count: usize| vec![(text.clone(), 7); count];
        assert_eq!(parsed(&texts(3)).len(), 3);
        let some = parsed(&texts(200));
        assert!(some.len() * text.len() > MAX_FOUND_BYTES && some.len() < 6, "{}", some.len());
        assert_eq!(some[0]["metadata"]["resourceVersion"], "7");
    }
}
