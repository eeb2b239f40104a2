//! Asks the policies in the background what each object uses, so that pages can also show who uses an object. Sends no
//! requests: objects that the watches do not keep count as missing here.

use std::{sync::Arc, time::Duration};

use kaos_policy::contract::{ResourceType, Target};
use serde_json::Value;

use super::{objects::identity_of, state::Model};
use crate::{
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
/// The delay after an error.
const PAUSE: Duration = Duration::from_secs(30);

/// Keeps the connections up to date for as long as the process runs.
pub(super) async fn follow(model: Arc<Model>) {
    let mut changes = model.changes();
    loop {
        changes.mark_unchanged();
        let (policies, open) = model.unconnected(SHARE);
        if open.is_empty() {
            if changes.changed().await.is_err() {
                return;
            }
            tokio::time::sleep(QUIET).await;
            continue;
        }
        let asked = Arc::clone(&model);
        let objects: Vec<Arc<Value>> = open.iter().map(|(_, _, object)| Arc::clone(object)).collect();
        let found = model.blocking(async move || uses(&asked, &objects).await).await;
        match found {
            Ok(found) => {
                let of = |identity: &Identity| {
                    found.iter().find(|(user, _)| user == identity).map(|(_, uses)| uses.clone()).unwrap_or_default()
                };
                model.connect(open.iter().map(|(identity, wanted, _)| (identity, (*wanted, policies), of(identity))));
            }
            Err(error) => {
                complain("note", format_args!("cannot determine what objects use: {}", with_causes(error.as_ref())));
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Returns the objects with a policy that each of the objects uses.
async fn uses(model: &Arc<Model>, objects: &[Arc<Value>]) -> anyhow::Result<Vec<(Identity, Vec<Identity>)>> {
    let known: Arc<dyn KnownObjects> = Arc::new(OnlyKnown(Arc::clone(model)));
    let sources = Sources { known, ..model.sources() };
    let mut survey = Survey::new(&sources);
    survey.uses(objects, 1).await?;
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
