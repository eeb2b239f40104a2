//! Asks the policies in the background which objects each object uses. So a page can also show which objects use its
//! object. Sends no requests: if no watch keeps an object in memory, the policies see the object as missing.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kaos_policy::contract::{ResourceType, Target};
use serde_json::Value;

use super::{
    objects::{Unconnected, identity_of},
    state::Model,
};
use crate::{
    backoff::Backoff,
    cli::{
        health::{Sources, Survey},
        output::complain,
    },
    error_text::with_causes,
    input::Identity,
    live::{KnownObjects, KnownType},
};

/// The number of objects for which the console asks at once.
const SHARE: usize = 32;
/// After a change, the console waits for this time, because changes often come in groups.
const QUIET: Duration = Duration::from_millis(300);
/// The delays after an error.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(5), max: Duration::from_mins(1) };

/// Keeps the connections up to date while the process runs.
pub(super) async fn follow(model: Arc<Model>) {
    let (mut failures, mut rng) = (0, fastrand::Rng::new());
    loop {
        let (policies, open) = model.unconnected(SHARE);
        if open.is_empty() {
            model.has_unconnected().await;
            tokio::time::sleep(QUIET).await;
            continue;
        }
        let asked = Arc::clone(&model);
        let objects: Vec<Arc<Value>> = open.iter().map(|it| Arc::clone(&it.object)).collect();
        match model.blocking(async move |_| uses(&asked, &objects).await).await {
            Ok(mut found) => {
                failures = 0;
                let with_uses = |it: Unconnected| {
                    let uses = found.remove(&it.identity).unwrap_or_default();
                    (it, uses)
                };
                model.connect(policies, open.into_iter().map(with_uses).collect());
            }
            Err(error) => {
                failures += 1;
                complain("note", format_args!("cannot determine what objects use: {}", with_causes(error.as_ref())));
                tokio::time::sleep(BACKOFF.after(failures, &mut rng)).await;
            }
        }
    }
}

/// Returns for each of the `objects` the objects that it uses. Leaves out used objects of kinds for which no policy
/// answers.
async fn uses(model: &Arc<Model>, objects: &[Arc<Value>]) -> anyhow::Result<BTreeMap<Identity, Vec<Identity>>> {
    let known: Arc<dyn KnownObjects> = Arc::new(OnlyKnown(Arc::clone(model)));
    let sources = Sources { known, ..model.sources() };
    let mut survey = Survey::new(&sources);
    survey.uses(objects, 1).await?;
    #[cfg(test)]
    model.evaluations.fetch_add(objects.len() as u64, std::sync::atomic::Ordering::Relaxed);
    let answer = survey.answer();
    let of = |object: &Arc<Value>| {
        let identity = identity_of(object);
        let used =
            answer.uses(&identity).into_iter().filter(|used| model.is_kind_claimed(&used.group, &used.kind)).collect();
        (identity, used)
    };
    Ok(objects.iter().map(of).collect())
}

/// Answers from memory only.
struct OnlyKnown(Arc<Model>);

impl KnownObjects for OnlyKnown {
    fn find(&self, target: &Target) -> Option<Vec<Arc<Value>>> {
        Some(self.0.find(target).unwrap_or_default())
    }

    fn served(&self, of: &ResourceType) -> KnownType {
        match self.0.served(of) {
            KnownType::Served(served) => KnownType::Served(served),
            KnownType::Unserved | KnownType::Unasked => KnownType::Unserved,
        }
    }

    fn owned_by(&self, uid: &str) -> Vec<Arc<Value>> {
        self.0.owned_by(uid)
    }
}
