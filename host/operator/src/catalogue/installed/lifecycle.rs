//! From state to state: each package is seen, checked, let in, serves, and is replaced or put aside.

mod admission;
mod advancing;
mod census;
mod erased;
mod judgement;
mod late;
mod lost;
mod naming;
mod renaming;
mod restoring;
mod serving;
mod transition;
mod trial;
mod trying;
mod turn;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use kaos_crds::{PolicyRevisionStatus, RevisionState};
use kaos_policy::settings::{Layer, Origin};
use tokio::time::Instant;

pub(crate) use self::lost::is_withheld;
use self::{transition::Turn, trial::Trial};
use super::{
    Installing, StepError, Tools,
    checks::Checks,
    fitted::Fitted,
    news::News,
    pace::{ATTEMPTS, LOOK_AGAIN, PATIENCE},
    questions::Questions,
    records::Records,
    roster::{Content, Roster},
    sources::{Found, Held, Sources},
    store::Store,
    turns::Turns,
};
use crate::{package::Package, server::Asking};

/// Everything about policies that somebody installs.
pub(super) struct Lifecycle {
    tools: Tools,
    settings: Vec<Layer>,
    /// What the process began with of the operator's own ConfigMap.
    began_with: Option<Layer>,
    checks: Checks,
    questions: Questions,
    sources: Sources,
    records: Records,
    store: Store,
    fitted: Fitted,
    news: News,
    turns: Turns,
    roster: Roster,
    /// Whether what served before this process began is loaded, but for what is `loading`.
    restored: bool,
    /// Namespaces' own policies that served before this process began and are loaded beside everything else: for each what
    /// is left to load, which is what it may fall back to and then itself.
    loading: BTreeMap<String, VecDeque<String>>,
    /// What is compiled to serve again in place of what is put aside, and whether nothing serves there meanwhile.
    restoring: BTreeMap<String, bool>,
    /// What was installed last, and under which settings of the operator's own ConfigMap, to tell whether something else is
    /// to be.
    installed: Option<(BTreeSet<String>, Option<Layer>)>,
    /// Under which settings of that ConfigMap packages were looked at last, whether or not they fit.
    looked_under: Option<Layer>,
    /// Why that ConfigMap is not used, as it was told.
    misfit: Option<String>,
    /// What it was tried for last.
    trial: Option<Trial>,
    /// Which of its variables are probably misspelt, as it was told.
    misspelt: String,
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
    /// The record that could not be removed when that was tried last.
    stuck: Option<String>,
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
        let server = Arc::new(Asking::new(tools.client.clone()));
        let checks = Checks::new(gatekeeper, tools.processors.clone(), server, &tools.duties.operator_namespace);
        let questions = Questions::new(tools.client.clone(), &tools.duties.operator_namespace);
        let roster = Roster { own, entries: BTreeMap::new() };
        Self {
            tools,
            settings,
            began_with,
            checks,
            questions,
            sources,
            records,
            store,
            fitted,
            news,
            turns,
            roster,
            restored: false,
            loading: BTreeMap::new(),
            restoring: BTreeMap::new(),
            installed: None,
            looked_under: None,
            misfit: None,
            trial: None,
            misspelt: String::new(),
            checking: BTreeSet::new(),
            waiting: BTreeMap::new(),
            due: BTreeMap::new(),
            tried_for: BTreeMap::new(),
            unkept: BTreeMap::new(),
            keep_due: None,
            counted: BTreeSet::new(),
            stuck: None,
        }
    }

    /// Waits until packages or records changed, or a check or a question came to its end.
    pub(super) async fn changed(&self) {
        tokio::select! {
            () = self.sources.changed() => {}
            () = self.records.changed() => {}
            () = self.checks.changed() => {}
            () = self.questions.changed() => {}
        }
    }

    /// Takes every step that can be taken now. Gives when to look again, if nothing happens before, and what went wrong.
    pub(super) async fn settle(&mut self) -> (Option<Duration>, Result<(), StepError>) {
        let mut wait = None;
        let done = self.round(&mut wait).await;
        (wait, done)
    }

    async fn round(&mut self, wait: &mut Option<Duration>) -> Result<(), StepError> {
        if !self.sources.are_known() {
            self.tools.catalogue.waits_for("the policy ConfigMaps were not listed yet".to_owned());
            return Ok(());
        }
        let found = self.sources.packages().await;
        if !self.records.are_known() {
            if found.is_empty() && !self.restored {
                // Where nobody installs anything there need not be a place to write that down.
                self.serve().await?;
                self.keep_fitted().await?;
                return Ok(());
            }
            self.tools.catalogue.waits_for(
                "PolicyRevisions were not listed yet: is policyrevisions.kaos.tools installed (kaos-operator crds)?"
                    .to_owned(),
            );
            return Ok(());
        }
        self.records.refresh();
        self.records.settle().await;
        let current = self.current(&found);
        self.questions.keep(|name| current.contains(name));
        self.forget_what_loads_no_more();
        let restoring = std::mem::take(&mut self.restoring);
        self.checks.keep(|name| {
            let is_loading = || self.loading.values().flatten().any(|it| it == name);
            current.contains(name)
                || self.roster.entries.contains_key(name)
                || restoring.contains_key(name)
                || is_loading()
        });
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
        let retired = self.retire(&found).await;
        let (due, advanced) = self.advance_all(&found, is_fresh).await?;
        // What cannot be put aside now is in the next round, and holds nothing else up. What could be by halves is followed up
        // then, before it decides what serves.
        let judged = self.judge(&found).await;
        // Loading takes its time, and comes when everything else was seen to.
        let late = self.load_late(&found).await;
        if judged.is_ok() {
            self.serve().await?;
        }
        let tidied = self.tidy(&found).await;
        self.count(&found).await;
        // Only another process needs what is kept: that it cannot be now holds nothing up.
        *wait = [due, late, self.keep_again().await].into_iter().flatten().min();
        if let Err(error) = self.keep_fitted().await {
            tracing::warn!(%error, "settings that fit are not kept for the next process, which is tried again");
            *wait = Some(wait.unwrap_or(LOOK_AGAIN).min(PATIENCE.0 * 10));
        }
        let settled = self.records.settled();
        match written.and(followed_up).and(retired).and(advanced).and(judged).and(tidied).and(settled) {
            // Whatever cannot be done is tried again in the next round, which does not wait for that.
            Err(error) if self.turns.is_taken() => {
                tracing::warn!(%error, "policies cannot be looked after, and are looked at again");
                *wait = Some(PATIENCE.0);
                Ok(())
            }
            done => done,
        }
    }

    /// The process ends in order: what it was about to try is tried by the next.
    pub(super) async fn lay_down(mut self) {
        self.records.settle().await;
        self.checks.keep(|_| false);
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
}
