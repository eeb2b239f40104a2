//! Reads the objects that a command shows, with the rights of the user. These are the objects for which policies
//! answer, the objects that they use, and the children and pods of all these objects. `graph` connects the objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::bail;
use kaos_policy::{
    contract::{Cluster, Reference, ResourceType, Selector, Target},
    kubernetes::Checks,
    stamp::{MANAGED_BY, MANAGER, pod_template},
};
use kube::Client;
use serde_json::Value;

use super::{
    super::{connection::is_answered, facts::OperatorFacts, output::complain, policy::serving},
    graph::{Graph, ObjectNeeds},
    pod,
    rights::{MissingRight, resource},
    state::health_of_claimed,
};
use crate::{
    catalogue::Snapshot,
    discovery,
    input::{Document, Identity},
    live::{Gathered, LiveError},
    offline::{At, Bound, Started, StoredObjects, World},
};

/// Which objects the reader follows. For a followed object, it reads the objects that the object uses, or the children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowedObjects {
    /// All objects for which a policy answers.
    All,
    /// The objects for which a policy answers, if they are not ready.
    Open,
}

/// Reads objects, and remembers the missing rights.
pub(super) struct StateReader {
    client: Client,
    gathered: Gathered,
    snapshot: Arc<Snapshot>,
    started: Started,
    missing: BTreeSet<MissingRight>,
    denied: BTreeSet<Target>,
    needs: ObjectNeeds,
    /// The only objects to follow; `None` for all objects.
    only: Option<BTreeSet<Identity>>,
}

impl StateReader {
    /// Creates a reader without objects. Reads which policies serve, because the policies decide which kinds the
    /// command shows and which objects an object uses.
    pub(super) async fn start(client: Client, operator: OperatorFacts) -> anyhow::Result<Self> {
        let snapshot = serving(&client, &operator).await?;
        Ok(Self::with(Gathered::new(client.clone()), client, operator.cluster, snapshot))
    }

    /// Creates a reader from the policies that serve.
    pub(super) fn with(gathered: Gathered, client: Client, cluster: Cluster, snapshot: Arc<Snapshot>) -> Self {
        Self {
            gathered,
            client,
            snapshot,
            started: Started { cluster, grantable: None, checks: Checks::Values },
            missing: BTreeSet::new(),
            denied: BTreeSet::new(),
            needs: ObjectNeeds::new(),
            only: None,
        }
    }

    /// Follows only these objects from now on.
    #[cfg(feature = "console")]
    pub(super) fn follow_only(&mut self, only: BTreeSet<Identity>) {
        self.only = Some(only);
    }

    /// Returns whether the reader had to fetch at least one target. The caller's watches do not report changes of
    /// fetched objects.
    #[cfg(feature = "console")]
    pub(super) fn has_fetched(&self) -> bool {
        self.gathered.has_fetched()
    }

    /// Adds an object that the caller has already read.
    #[cfg(feature = "console")]
    pub(super) fn add(&mut self, object: &Value) {
        self.gathered.add(object);
    }

    /// Returns every kind that a policy answers for.
    pub(super) fn kinds(&self) -> BTreeSet<ResourceType> {
        self.snapshot.kinds().map(|(of, _)| of.clone()).collect()
    }

    /// Returns the kind that a word of the user names, such as `agents`.
    pub(super) async fn meant(&self, word: &str) -> anyhow::Result<ResourceType> {
        Ok(discovery::meant(&self.client, &self.kinds(), word).await?)
    }

    /// Reads one object. Fails if the object does not exist, or if the user may not read it.
    pub(super) async fn object(&mut self, word: &str, namespace: &str, name: &str) -> anyhow::Result<Identity> {
        let of = self.meant(word).await?;
        let read = self.gathered.object(&of, namespace, name).await;
        match self.unless_denied(&of, "get", Some(namespace), read)? {
            Ok(Some(identity)) => Ok(identity),
            Ok(None) => {
                let kind = &of.kind;
                bail!("{kind} {namespace}/{name} does not exist: `kubectl get {kind} -A` lists the existing ones")
            }
            Err(missing) => Err(missing.into()),
        }
    }

    /// Lists the objects of these kinds. Fails only if the user lacks the right to list each of the kinds.
    pub(super) async fn objects(
        &mut self,
        kinds: &BTreeSet<ResourceType>,
        namespace: Option<&str>,
    ) -> anyhow::Result<()> {
        let mut denied = Vec::new();
        for of in kinds {
            let read = self.gathered.list(of, namespace).await;
            denied.extend(self.unless_denied(of, "list", namespace, read)?.err());
        }
        if denied.len() < kinds.len() {
            self.missing.extend(denied);
            return Ok(());
        }
        denied.into_iter().next().map_or(Ok(()), |missing| Err(missing.into()))
    }

    /// Asks the policies which objects the followed objects use, and reads the used objects. The used objects can use
    /// objects too, so the reader repeats both steps until no object is left to read.
    pub(super) async fn uses(&mut self, followed: FollowedObjects) -> anyhow::Result<()> {
        let wishes: Vec<ResourceType> =
            self.snapshot.kinds().flat_map(|(_, answers)| answers.claims()).flat_map(|it| it.wishes.clone()).collect();
        for wish in wishes {
            self.gathered.serves(&wish).await?;
        }
        loop {
            let asked = self.asked(followed);
            self.needs.extend(asked);
            let targets: BTreeSet<Target> = self
                .needs
                .values()
                .flatten()
                .map(|need| need.target.clone())
                .filter(|it| !self.is_denied(it))
                .collect();
            let mut any = false;
            for target in targets {
                any |= self.target(target).await?;
            }
            if !any {
                return Ok(());
            }
        }
    }

    /// Reads the children of the followed objects, the pods below them, and the volume claims of these pods.
    pub(super) async fn below(&mut self, followed: FollowedObjects) -> anyhow::Result<()> {
        let owners = self.gathered.iter().filter(|document| self.is_followed(document, followed));
        let mut places: BTreeMap<String, BTreeSet<ResourceType>> = BTreeMap::new();
        for owner in owners {
            let answers = self.snapshot.of(&ResourceType::of_object(&owner.object));
            let (Some(answers), Some(place)) = (answers, &owner.identity.namespace) else { continue };
            let emitted = answers.claims().flat_map(|claim| claim.emits.clone());
            places.entry(place.clone()).or_default().extend(emitted);
        }
        for (namespace, emitted) in places {
            for of in emitted {
                let labels = vec![(MANAGED_BY.to_owned(), MANAGER.to_owned())];
                self.target(Target::Labelled(Selector { of, namespace: Some(namespace.clone()), labels })).await?;
            }
            self.pods(&namespace).await?;
        }
        Ok(())
    }

    /// Lists the Events of a namespace.
    pub(super) async fn events(&mut self, namespace: &str) -> anyhow::Result<()> {
        self.list(&ResourceType::new("v1", "Event"), namespace).await
    }

    /// For each object that is not ready, reads the objects that it uses, its children and its pods. Does the same for
    /// used objects that are not ready. Also reads the Events in the namespaces of the objects that are not ready.
    pub(super) async fn explain(&mut self) -> anyhow::Result<()> {
        self.uses(FollowedObjects::Open).await?;
        self.below(FollowedObjects::Open).await?;
        let open = self.gathered.iter().filter(|document| self.is_followed(document, FollowedObjects::Open));
        let namespaces: BTreeSet<String> = open.filter_map(|document| document.identity.namespace.clone()).collect();
        for namespace in namespaces {
            self.events(&namespace).await?;
        }
        Ok(())
    }

    /// Returns a graph of the objects that the reader has read so far, with their connections.
    pub(super) fn graph(&self) -> Graph {
        let is_claimed = |object: &Value| self.is_claimed(object);
        let is_denied = |target: &Target| self.is_denied(target);
        let is_hidden = |of: &ResourceType| self.gathered.hidden(of).is_some();
        Graph::new(self.gathered.documents(), &self.needs, is_claimed, is_denied, is_hidden)
    }

    fn is_claimed(&self, object: &Value) -> bool {
        self.snapshot.of(&ResourceType::of_object(object)).is_some()
    }

    fn is_followed(&self, Document { identity, object, .. }: &Document, followed: FollowedObjects) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(identity))
            && self.is_claimed(object)
            && (followed == FollowedObjects::All || health_of_claimed(object).state.is_open())
    }

    /// Returns the missing rights.
    pub(super) fn missing(&self) -> Vec<MissingRight> {
        self.missing.iter().cloned().collect()
    }

    /// Prints a note for each missing right.
    pub(super) fn tell_missing(&self) {
        for missing in &self.missing {
            complain("note", missing);
        }
    }

    /// If a namespace has workloads, lists its pods, and the ReplicaSets and Jobs between the workloads and the pods.
    /// Then reads the volume claims of the pods.
    async fn pods(&mut self, namespace: &str) -> anyhow::Result<()> {
        let is = |kind: &str| self.in_namespace(namespace).any(|document| document.identity.kind == kind);
        if !self.in_namespace(namespace).any(|document| pod_template(&document.object).is_some()) {
            return Ok(());
        }
        let (replica_sets, jobs) = (is("Deployment"), is("CronJob"));
        if replica_sets {
            self.list(&ResourceType::new("apps/v1", "ReplicaSet"), namespace).await?;
        }
        if jobs {
            self.list(&ResourceType::new("batch/v1", "Job"), namespace).await?;
        }
        self.list(&ResourceType::new("v1", "Pod"), namespace).await?;
        self.claims_of_pods(namespace).await
    }

    async fn claims_of_pods(&mut self, namespace: &str) -> anyhow::Result<()> {
        let pods = self.in_namespace(namespace).filter(|document| document.identity.kind == "Pod");
        let claims: BTreeSet<Reference> =
            pods.flat_map(|document| pod::claims(&document.object, Some(namespace))).collect();
        for claim in claims {
            self.target(Target::Named(claim)).await?;
        }
        Ok(())
    }

    /// Reads the pods of a workload, the `ReplicaSets` between them, and the volume claims of the pods.
    #[cfg(feature = "console")]
    pub(super) async fn pods_of(&mut self, workload: &Value) -> anyhow::Result<()> {
        let selected = workload["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
        let labels: Vec<(String, String)> =
            selected.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
        let Some(namespace) = workload["metadata"]["namespace"].as_str().filter(|_| !labels.is_empty()) else {
            return Ok(());
        };
        let is_deployment = workload["kind"] == "Deployment";
        let types = is_deployment.then_some(("apps/v1", "ReplicaSet")).into_iter().chain([("v1", "Pod")]);
        for (api_version, kind) in types {
            let of = ResourceType::new(api_version, kind);
            let selector = Selector { of, namespace: Some(namespace.to_owned()), labels: labels.clone() };
            self.target(Target::Labelled(selector)).await?;
        }
        self.claims_of_pods(namespace).await
    }

    fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Document> {
        self.gathered.iter().filter(move |document| document.identity.namespace.as_deref() == Some(namespace))
    }

    async fn list(&mut self, of: &ResourceType, namespace: &str) -> anyhow::Result<()> {
        let read = self.gathered.list(of, Some(namespace)).await;
        let denied = self.unless_denied(of, "list", Some(namespace), read)?.err();
        self.missing.extend(denied);
        Ok(())
    }

    /// Reads a target. Returns whether the reader sent a request and the request succeeded.
    async fn target(&mut self, target: Target) -> anyhow::Result<bool> {
        let of = target.of();
        let (verb, place) = match &target {
            Target::Named(_) => ("get", target.namespace().map(str::to_owned)),
            Target::Labelled(_) => ("list", target.namespace().map(str::to_owned)),
        };
        let read = self.gathered.read([target.clone()]).await;
        match self.unless_denied(&of, verb, place.as_deref(), read)? {
            Ok(any) => Ok(any),
            Err(missing) => {
                self.missing.insert(missing);
                self.denied.insert(target);
                Ok(false)
            }
        }
    }

    fn is_denied(&self, target: &Target) -> bool {
        self.denied.contains(target)
    }

    /// Renders the followed objects, and returns their needs. If the policy gives no plan for an object, returns no
    /// needs for the object, because its status already shows the reason.
    fn asked(&self, followed: FollowedObjects) -> ObjectNeeds {
        let documents = self.gathered.documents();
        let stored = StoredObjects::new(&documents, &self.gathered.scopes());
        let hidden = |of: &ResourceType| self.gathered.hidden(of);
        let mut bound = Bound::default();
        let objects = documents.iter().map(|document| &document.object);
        if let Err(error) = bound.bind(&self.snapshot, objects, &self.started, |of| hidden(of).is_none()) {
            complain("note", format_args!("cannot determine which objects other objects use: {error}"));
            return ObjectNeeds::new();
        }
        let at = At { snapshot: &self.snapshot, bound: &bound, before: None };
        let world = World::new(&stored, &at, &hidden);
        let positions = documents.iter().enumerate().filter(|(_, document)| self.is_followed(document, followed));
        let needs = positions.filter_map(|(position, document)| {
            let entry = world.entry(position)?.ok()?;
            Some((document.identity.clone(), entry.rendered.needs.clone()))
        });
        needs.collect()
    }

    /// Converts an error with status code 403 into the right that the user lacks. Returns every other error unchanged.
    fn unless_denied<T>(
        &self,
        of: &ResourceType,
        verb: &'static str,
        namespace: Option<&str>,
        read: Result<T, LiveError>,
    ) -> anyhow::Result<Result<T, MissingRight>> {
        let error = match read {
            Ok(read) => return Ok(Ok(read)),
            Err(error) => anyhow::Error::from(error),
        };
        if !is_answered(&error, 403) {
            return Err(error);
        }
        let resource = resource(self.gathered.plural(of), of);
        Ok(Err(MissingRight { verb, resource, namespace: namespace.map(str::to_owned) }))
    }
}
