//! From state to state: each package is seen, checked, let in, serves, and is replaced or put aside.

mod admission;
mod census;
mod erased;
mod judgement;
mod late;
mod lost;
mod naming;
mod renaming;
mod restoring;
mod serving;
mod turn;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kaos_crds::{PolicyRevisionStatus, RevisionState};
use kaos_policy::settings::{Layer, Origin};
use tokio::time::Instant;

use self::turn::Turn;
pub(crate) use self::{late::NOT_LOADED, lost::is_withheld};
use super::{
    ATTEMPTS, Gatekeeper, Installing, LOOK_AGAIN, PATIENCE, StepError, Tools,
    fitted::Fitted,
    news::News,
    records::Records,
    roster::{Content, Roster},
    sources::{Found, Held, Sources},
    store::Store,
    turns::Turns,
};
use crate::package::Package;

/// Everything about policies that somebody installs.
pub(super) struct Lifecycle {
    tools: Tools,
    settings: Vec<Layer>,
    /// What the process began with of the operator's own ConfigMap.
    began_with: Option<Layer>,
    gatekeeper: Gatekeeper,
    sources: Sources,
    records: Records,
    store: Store,
    fitted: Fitted,
    news: News,
    turns: Turns,
    roster: Roster,
    /// Whether what served before this process began is loaded.
    restored: bool,
    /// What was installed last, and under which settings of the operator's own ConfigMap, to tell whether something else is
    /// to be.
    installed: Option<(BTreeSet<String>, Option<Layer>)>,
    /// Under which settings of that ConfigMap packages were looked at last, whether or not they fit.
    looked_under: Option<Layer>,
    /// Why that ConfigMap is not used, as it was told.
    misfit: Option<String>,
    /// Revisions that this process began to check.
    checking: BTreeSet<String>,
    /// Revisions that passed the gate and wait for something that is not their own.
    waiting: BTreeMap<String, Content>,
    /// When revisions are looked at again that something else than their content stands in the way of.
    due: BTreeMap<String, Instant>,
    /// What a person had asked for when a revision was last loaded again: what they ask for now does not wait.
    tried_for: BTreeMap<String, Option<String>>,
    /// What serves and may be kept no longer: of which package each revision is, until that is kept again.
    unkept: BTreeMap<String, Arc<Package>>,
    /// When that is tried again; none if it was not tried yet.
    keep_due: Option<Instant>,
    /// Revisions of which all objects were seen since this process began, or that it let in itself.
    counted: BTreeSet<String>,
}

impl Lifecycle {
    pub(super) fn new(
        tools: Tools,
        Installing { own, settings, gatekeeper, .. }: Installing,
        sources: Sources,
        records: Records,
        store: Store,
    ) -> Self {
        let is_copy = |layer: &Layer| layer.origin == Origin::OperatorConfig;
        let (copies, settings): (Vec<_>, Vec<_>) = settings.into_iter().partition(is_copy);
        let began_with = copies.into_iter().next();
        let fitted = Fitted::new(tools.client.clone(), &tools.duties.operator_namespace);
        let news = News::new(tools.client.clone(), tools.instance.clone());
        let turns = Turns::new(&tools.duties.operator_namespace);
        let roster = Roster { own, entries: BTreeMap::new() };
        Self {
            tools,
            settings,
            began_with,
            gatekeeper,
            sources,
            records,
            store,
            fitted,
            news,
            turns,
            roster,
            restored: false,
            installed: None,
            looked_under: None,
            misfit: None,
            checking: BTreeSet::new(),
            waiting: BTreeMap::new(),
            due: BTreeMap::new(),
            tried_for: BTreeMap::new(),
            unkept: BTreeMap::new(),
            keep_due: None,
            counted: BTreeSet::new(),
        }
    }

    /// Waits until packages or records changed.
    pub(super) async fn changed(&self) {
        tokio::select! {
            () = self.sources.changed() => {}
            () = self.records.changed() => {}
        }
    }

    /// Takes every step that can be taken now. Gives when to look again, if nothing happens before.
    pub(super) async fn settle(&mut self) -> Result<Option<Duration>, StepError> {
        if !self.sources.are_known() {
            self.tools.catalogue.waits_for("the policy ConfigMaps were not listed yet".to_owned());
            return Ok(None);
        }
        let found = self.sources.packages().await;
        if !self.records.are_known() {
            if found.is_empty() && !self.restored {
                // Where nobody installs anything there need not be a place to write that down.
                self.serve().await?;
                self.keep_fitted().await?;
                return Ok(None);
            }
            self.tools.catalogue.waits_for(
                "PolicyRevisions were not listed yet: is policyrevisions.kaos.tools installed (kaos-operator crds)?"
                    .to_owned(),
            );
            return Ok(None);
        }
        self.records.refresh();
        let begins = !self.restored;
        if begins {
            self.tools.catalogue.remember(self.records.answered());
            self.restore(&found).await?;
            self.restored = true;
        }
        // What cannot be written again now counts as it was, and holds nothing else up.
        let written = self.write_again(&found).await;
        let config = self.config();
        if self.looked_under != config {
            // Whatever waits for settings that fit is looked at again; once, however long these do not.
            self.due.clear();
            self.looked_under = config;
        }
        // What cannot be followed up now holds nothing else up.
        let followed_up = self.follow_up(&found).await;
        // Whatever served goes on before anything new is looked at. On a fresh cluster, all that is new comes first, so that
        // nothing is made twice.
        let is_fresh = self.installed.is_none() && self.roster.entries.is_empty();
        if begins && (found.is_empty() || !is_fresh) {
            self.serve().await?;
        }
        self.retire(&found).await?;
        let (wait, advanced) = self.advance_all(&found, is_fresh).await?;
        // What cannot be put aside now is in the next round, and holds nothing else up. What could be by halves is followed up
        // then, before it decides what serves.
        let judged = self.judge(&found).await;
        // Loading takes its time, and comes when everything else was seen to.
        let late = self.load_late(&found).await;
        if judged.is_ok() {
            self.serve().await?;
        }
        let tidied = self.tidy(&found).await;
        let counted = self.count(&found).await;
        // Only another process needs what is kept: that it cannot be now holds nothing up.
        let mut wait = [wait, late, self.keep_again().await].into_iter().flatten().min();
        if let Err(error) = self.keep_fitted().await {
            tracing::warn!(%error, "settings that fit are not kept for the next process, which is tried again");
            wait = Some(wait.unwrap_or(LOOK_AGAIN).min(PATIENCE.0 * 10));
        }
        match written.and(followed_up).and(advanced).and(judged).and(tidied).and(counted) {
            // Whatever cannot be done is tried again in the next round, which does not wait for that.
            Err(error) if self.turns.is_taken() => {
                tracing::warn!(%error, "policies cannot be looked after, and are looked at again");
                Ok(Some(PATIENCE.0))
            }
            done => done.map(|()| wait),
        }
    }

    /// Takes the next step with each package, as far as their turns go, and has serve what comes of it. Gives when to look
    /// again, and what went wrong.
    async fn advance_all(
        &mut self,
        found: &[Found],
        is_fresh: bool,
    ) -> Result<(Option<Duration>, Result<(), StepError>), StepError> {
        let (mut wait, mut advanced) = (self.sources.again(), Ok(()));
        let sources: Vec<_> = found.iter().map(|found| &found.source).collect();
        for package in self.turns.begin(&sources).into_iter().map(|at| &found[at]) {
            match self.advance(package).await {
                Ok(false) => {}
                Ok(true) => {
                    let due = self.name_of(package).and_then(|name| self.due.get(&name));
                    let due = due.map_or(LOOK_AGAIN, |due| due.saturating_duration_since(Instant::now()));
                    wait = Some(wait.map_or(due, |wait: Duration| wait.min(due)));
                }
                // One package holds no other up, nor those behind it in its namespace.
                Err(error) => {
                    if self.turns.is_taken()
                        && let Some(name) = self.name_of(package)
                    {
                        self.due.insert(name, Instant::now() + LOOK_AGAIN);
                    }
                    advanced = advanced.and(Err(error));
                }
            }
            if !is_fresh {
                self.serve().await?;
            }
            if self.turns.is_taken() {
                // The rest has its turn in the next round, after whatever came meanwhile.
                wait = Some(Duration::ZERO);
                break;
            }
        }
        if is_fresh {
            self.serve().await?;
        }
        Ok((wait, advanced))
    }

    /// The process ends in order: what it was about to try is tried by the next.
    pub(super) async fn lay_down(mut self) {
        for name in std::mem::take(&mut self.checking) {
            if self.records.status(&name).state != RevisionState::Checking {
                continue;
            }
            let state =
                Turn::new(RevisionState::Pending, "Interrupted", "the operator was stopped while it checked this");
            // One that was broken off says nothing about the package.
            let unbegun = |status: &mut PolicyRevisionStatus| {
                status.attempts = status.attempts.map(|attempts| attempts - 1).filter(|attempts| *attempts > 0);
            };
            if let Err(error) = self.enter(&name, state, unbegun).await {
                tracing::warn!(%error, "a check that was interrupted looks like one that brought the process down");
            }
        }
    }

    /// Takes the next step with a package. Says whether it is to be looked at again although nothing happens, which is when
    /// it is due.
    async fn advance(&mut self, found: &Found) -> Result<bool, StepError> {
        // Of what was not read yet there is nothing to check.
        let (Some(name), Some(held)) = (self.name_of(found), &found.held) else { return Ok(false) };
        if self.records.get(&name).is_none() {
            self.records.create(&name, self.spec_of(found, held)).await?;
        }
        let status = self.records.status(&name);
        let asked = self.asked(&name);
        let retried = self.is_asked_for(&name);
        if retried {
            self.tools.catalogue.ledger().absolve(&name);
        }
        match status.state {
            state if state.is_let_in() && self.roster.entries.contains_key(&name) => {
                // There is nothing to try, and asked once must not let it off whatever it does from then on.
                if retried && self.roster.entries.get(&name).is_some_and(|entry| entry.content.is_loaded()) {
                    self.records.write(&name, PolicyRevisionStatus { retried: asked, ..status }).await?;
                }
                Ok(false)
            }
            RevisionState::Refused | RevisionState::Quarantined if !retried && !self.is_overtaken(held, &status) => {
                Ok(false)
            }
            RevisionState::Pending | RevisionState::Superseded
                if asked.is_none() && self.put_aside_as(&name).is_some() =>
            {
                self.put_aside_again(&name).await?;
                Ok(false)
            }
            _ if !retried && self.due.get(&name).is_some_and(|due| Instant::now() < *due) => Ok(true),
            RevisionState::Checking if !retried && !self.checking.contains(&name) => {
                self.unended(&name, status.attempts.unwrap_or(1)).await
            }
            _ => {
                if retried {
                    self.due.remove(&name);
                }
                self.admit(&name, found, held, asked).await
            }
        }
    }

    /// A process ended while it checked a package. It may have been killed for any reason, so the package is tried again,
    /// each time later, and put aside when that ends the process again and again.
    async fn unended(&mut self, name: &str, attempts: i64) -> Result<bool, StepError> {
        if attempts >= ATTEMPTS {
            let message = format!(
                "the operator ended {attempts} times while it checked this, so it is not tried again by itself: {}",
                self.remedy(name)
            );
            self.enter(name, Turn::new(RevisionState::Refused, "EndedTheOperator", message), |_| {}).await?;
            return Ok(false);
        }
        let wait = PATIENCE.0 * u32::try_from(attempts * 10).unwrap_or(1);
        let message = format!("the operator ended while it checked this ({attempts} of {ATTEMPTS}): it is tried again");
        self.due.insert(name.to_owned(), Instant::now() + wait);
        self.enter(name, Turn::new(RevisionState::Pending, "Interrupted", message), |_| {}).await?;
        Ok(true)
    }
}

/// Revisions of a source that serve, other than one.
fn others_of<'a>(
    roster: &'a Roster,
    serving: &'a BTreeSet<String>,
    name: &'a str,
    found: &'a Found,
) -> impl Iterator<Item = &'a String> {
    serving.iter().filter(move |other| {
        *other != name && roster.entries.get(*other).is_some_and(|entry| entry.source == found.source)
    })
}
