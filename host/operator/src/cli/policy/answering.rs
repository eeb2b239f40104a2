//! What answers for which object: the operator's own arrangement, for a question that somebody asks.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use anyhow::{Context, bail};
use jiff::Timestamp;
use kaos_crds::PolicySource;
use kaos_policy::{
    contract::{Cluster, ResourceType},
    kubernetes::Checks,
    manifest::{PolicyFile, Privilege, Scope},
    memo::Memo,
    near::nearest,
    policy::{Policy, PolicyId},
    render::Renderer,
    settings::Layer,
};
use serde_json::Value;

use crate::{
    catalogue::{
        Age, Answer, Arranged, Catalogue, Conflict, Kind, Offer, Reach, Snapshot,
        installed::{Content, Entry, Roster, Unfit},
    },
    offline::Answering,
    policies::{Loaded, select},
};

/// Bytes of answers that are remembered: what many objects need is decided once on each side.
const MEMORY: usize = 256 << 20;

/// How what is not shipped yet is called among revisions; no name of one has blanks.
pub(super) const PLANNED: &str = "what is to be shipped";

/// Something that was shipped, or is to be.
#[derive(Debug, Clone)]
pub(super) struct Shipped {
    /// Its revision, or what it is called here.
    pub(super) revision: Arc<str>,
    /// The namespace and the name of its ConfigMap.
    pub(super) source: (String, String),
    /// Its policy; none for settings alone.
    pub(super) policy: Option<Arc<Policy>>,
    /// What its `policy.yaml` says.
    pub(super) file: PolicyFile,
    /// How old it is.
    pub(super) age: Age,
    /// Since when it serves: of two that can be the reason for a failure, the newer is blamed.
    pub(super) since: Option<Timestamp>,
    /// The revision that served its place before.
    pub(super) predecessor: Option<String>,
}

/// Everything that answers at one time.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    /// What the operator brought along.
    own: Vec<Offer>,
    /// Settings that hold everywhere.
    shared: Vec<Layer>,
    /// What was shipped.
    pub(super) shipped: Vec<Shipped>,
    /// What served before that, and answers for objects that it fails on.
    pub(super) before: Vec<Shipped>,
    /// Where the operator lives.
    home: String,
}

impl Standing {
    /// Only what the operator brought along.
    pub(super) fn new(own: &[Loaded], shared: Vec<Layer>, home: &str) -> anyhow::Result<Self> {
        let stacks = select(own)?;
        let own = stacks.iter().flat_map(|(of, stack)| Offer::of_process(of, stack)).collect();
        Ok(Self { own, shared, shipped: Vec::new(), before: Vec::new(), home: home.to_owned() })
    }

    /// The same, with something shipped in place of what its ConfigMap holds now. That goes on to answer for objects
    /// that name it.
    pub(super) fn with(&self, new: Shipped) -> Self {
        let mut standing = self.clone();
        match standing.shipped.iter_mut().find(|old| old.source == new.source) {
            Some(place) => {
                let (age, predecessor) = (place.age.clone(), Some(place.revision.to_string()));
                let old = std::mem::replace(place, Shipped { age, predecessor, ..new });
                standing.before.push(old);
            }
            None => standing.shipped.push(new),
        }
        standing
    }

    /// The same, when these revisions serve no more. They are remembered, as what served before others.
    pub(super) fn without(&self, gone: &BTreeSet<Arc<str>>) -> Self {
        let mut standing = self.clone();
        let (went, shipped) = standing.shipped.into_iter().partition(|shipped| gone.contains(&shipped.revision));
        standing.shipped = shipped;
        standing.before.extend::<Vec<Shipped>>(went);
        standing
    }

    /// Fails for settings of a policy that there is not. Nothing would change, and an operator would refuse them.
    pub(super) fn has_policy_for(&self, new: &Shipped) -> anyhow::Result<()> {
        let Some(named) = new.file.name.as_deref().filter(|_| new.policy.is_none()) else { return Ok(()) };
        let shipped = self.shipped.iter().chain(&self.before).filter_map(|shipped| shipped.policy.as_deref());
        let own = self.own.iter().map(|offer| &*offer.member.policy);
        let names: BTreeSet<&str> = own.chain(shipped).map(|policy| policy.id().name.as_str()).collect();
        if names.contains(named) {
            return Ok(());
        }
        match nearest(named, names.iter().copied()) {
            Some(near) => bail!("there is no policy {named}: did you mean {near}?"),
            None => bail!("there is no policy {named}: there are {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        }
    }

    /// Where what is shipped takes the place of something that holds elsewhere: where that does, and where the new one would.
    pub(super) fn moved_by(&self, new: &Shipped) -> Option<(String, String)> {
        let old = self.shipped.iter().find(|old| old.source == new.source)?;
        moved(&old.file.scope, &new.file.scope)
    }

    /// The same, under other settings that hold everywhere.
    pub(super) fn under(&self, shared: Vec<Layer>) -> Self {
        Self { shared, ..self.clone() }
    }

    /// Why all of it does not go together, if it does not.
    pub(super) fn misfit(&self) -> Option<String> {
        self.arranged().err().map(|unfit| unfit.message)
    }

    fn arranged(&self) -> Result<Arranged, Unfit> {
        let entry = |shipped: &Shipped| (shipped.revision.to_string(), shipped.entry(&self.home));
        let entries: BTreeMap<String, Entry> = self.shipped.iter().chain(&self.before).map(entry).collect();
        let serving: BTreeSet<String> = self.shipped.iter().map(|shipped| shipped.revision.to_string()).collect();
        let mut roster = Roster { own: self.own.clone(), entries };
        if let Some(new) = self.shipped.iter().find(|shipped| *shipped.revision == *PLANNED) {
            let replaces: Vec<String> = new.predecessor.iter().cloned().collect();
            let before = serving.iter().filter(|it| *it != PLANNED).chain(&replaces).cloned().collect();
            let (earlier, waiting) = (roster.claimed(&replaces), roster.kept_waiting(&before));
            roster.claim(PLANNED, earlier, &serving, &waiting, Timestamp::MAX);
        }
        // As when the operator lets it in: a namespace's own policy gives way to what it does not go with.
        roster.arrange_with(Some(PLANNED), &serving, &self.shared)
    }

    /// Lets a catalogue hold what comes of it. Fails if what is to be shipped would not serve: that others do not keeps
    /// nobody from asking.
    pub(super) fn install(&self, catalogue: &Catalogue) -> anyhow::Result<Installed> {
        let Arranged { answers, conflicts } = self.arranged()?;
        if let Some(why) = conflicts.get(PLANNED) {
            bail!("{PLANNED} would not serve: {why}");
        }
        catalogue.install(answers);
        Ok(Installed { snapshot: catalogue.load().context("nothing answers")?, conflicts })
    }
}

/// Where something held, and where it holds instead, if these are different places.
pub(super) fn moved(from: &Scope, to: &Scope) -> Option<(String, String)> {
    let places = |scope: &Scope| scope.namespaces.iter().cloned().collect::<BTreeSet<_>>();
    let shown = |places: BTreeSet<String>| match places.len() {
        0 => "the whole cluster".to_owned(),
        _ => places.into_iter().collect::<Vec<_>>().join(", "),
    };
    let (from, to) = (places(from), places(to));
    (from != to).then(|| (shown(from), shown(to)))
}

/// What comes of everything that answers at one time.
pub(super) struct Installed {
    /// What answers.
    pub(super) snapshot: Arc<Snapshot>,
    /// Revisions that do not serve, and why.
    pub(super) conflicts: BTreeMap<Arc<str>, Conflict>,
}

impl Shipped {
    /// The same, as the operator has what it let in.
    fn entry(&self, home: &str) -> Entry {
        let Self { revision: _, source: (namespace, config_map), policy, file, age, since, predecessor } = self;
        let content = match policy {
            Some(policy) => Content::Policy(Arc::clone(policy), file.settings.clone()),
            None => Content::Settings(file.name.clone().unwrap_or_default(), file.settings.clone()),
        };
        Entry {
            source: PolicySource { namespace: namespace.clone(), config_map: config_map.clone() },
            age: age.clone(),
            reach: Reach::of_package(namespace, &file.scope.namespaces, home),
            pinned: file.scope.pinned,
            content,
            on_refusal: file.on_refusal,
            since: *since,
            predecessor: predecessor.clone(),
        }
    }
}

/// How the operator was started, as far as it decides answers and somebody said it.
pub(super) struct Started {
    /// The facts of its cluster, without what is served.
    pub(super) cluster: Cluster,
    /// The privileges that settings may raise which somebody installs; all, where none are listed.
    pub(super) grantable: Option<BTreeSet<Privilege>>,
    /// What is found out of manifests before an API server refuses them.
    pub(super) checks: Checks,
}

/// Policies bound to their settings, shared by all snapshots.
#[derive(Default)]
pub(super) struct Bound {
    renderers: Vec<Renderer>,
    of_kinds: HashMap<usize, usize>,
}

/// What one snapshot answers.
pub(super) struct At<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) bound: &'a Bound,
    /// What answered before, if that is known: it holds on for an object that names a policy that there is not.
    pub(super) before: Option<&'a Snapshot>,
}

impl Bound {
    /// Binds what a snapshot answers these objects with.
    pub(super) fn bind<'a>(
        &mut self,
        snapshot: &Snapshot,
        objects: impl IntoIterator<Item = &'a Value>,
        started: &Started,
        is_served: impl Fn(&ResourceType) -> bool,
    ) -> anyhow::Result<()> {
        let memo = Arc::new(Memo::new(MEMORY));
        for object in objects {
            let Some(kind) = answer(snapshot, object) else { continue };
            let key = key(&kind);
            if self.of_kinds.contains_key(&key) {
                continue;
            }
            let renderer = renderer(&kind, started, &is_served)?;
            // Settings for another policy change nothing here.
            let at = self.renderers.iter().position(|known| is_same(known, &renderer)).unwrap_or_else(|| {
                self.renderers.push(renderer.with_memo(Arc::clone(&memo)));
                self.renderers.len() - 1
            });
            self.of_kinds.insert(key, at);
        }
        Ok(())
    }
}

/// A kind's policies, bound to their settings.
pub(super) fn renderer(
    kind: &Kind,
    Started { cluster, grantable, checks }: &Started,
    is_served: impl Fn(&ResourceType) -> bool,
) -> anyhow::Result<Renderer> {
    let renderer = kind.renderer(cluster, is_served)?;
    Ok(renderer.with_grantable_privileges(grantable.clone()).with_checks(*checks))
}

/// Whether two answer alike: the same policies, with the same settings from the same places.
fn is_same(one: &Renderer, other: &Renderer) -> bool {
    one.layers().count() == other.layers().count()
        && one.layers().zip(other.layers()).all(|((policy, settings), (other, others))| {
            policy.id() == other.id()
                && policy.grants() == other.grants()
                && policy.limits() == other.limits()
                && settings == others
        })
}

/// The same, but something else for one object.
pub(super) struct Instead<'a> {
    pub(super) usual: At<'a>,
    pub(super) object: &'a Value,
    pub(super) renderer: &'a Renderer,
}

impl Answering for Instead<'_> {
    fn renderer(&self, object: &Value) -> Option<&Renderer> {
        let is_it = ["apiVersion", "kind"].iter().all(|field| object[field] == self.object[field])
            && ["namespace", "name"].iter().all(|field| object["metadata"][field] == self.object["metadata"][field]);
        if is_it { Some(self.renderer) } else { self.usual.renderer(object) }
    }
}

impl Answering for At<'_> {
    fn renderer(&self, object: &Value) -> Option<&Renderer> {
        let holds_on = self.before.filter(|_| named_in_vain(self.snapshot, object).is_some());
        let kind = answer(holds_on.unwrap_or(self.snapshot), object)?;
        self.bound.renderers.get(*self.bound.of_kinds.get(&key(&kind))?)
    }
}

/// What answers for an object; for one that names a policy that there is not, what would without the name.
pub(super) fn answer(snapshot: &Snapshot, object: &Value) -> Option<Arc<Kind>> {
    snapshot.answer_for(object).kind()
}

/// The policies that an object may name, if it names one that there is not: the operator leaves what exists as it is.
pub(super) fn named_in_vain(snapshot: &Snapshot, object: &Value) -> Option<Vec<PolicyId>> {
    match snapshot.answer_for(object) {
        Answer::NoSuchPolicy(_, choice) => Some(choice),
        Answer::Kind(_) | Answer::Nothing => None,
    }
}

/// Snapshots that have something in common have it at the same place.
fn key(kind: &Arc<Kind>) -> usize {
    Arc::as_ptr(kind).addr()
}
