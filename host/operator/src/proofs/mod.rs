//! Proofs that objects are settled, for the next process. A proof is a digest of everything that a pass over an object
//! depends on. A pass that found everything as planned, and wrote nothing, makes the proof. If the digest is the same
//! after a restart, a pass would read the same inputs, and again write nothing. So the operator skips this pass.
//!
//! | module | content |
//! |---|---|
//! | `executable` | the digest of the operator's own program |
//! | `record` | proofs as bytes |
//! | `store` | the ConfigMaps that keep these bytes |
//!
//! `reconcile/proof.rs` makes and checks proofs. `operator/proof_keeper.rs` writes proofs in quiet times and at
//! shutdown. A proof is valid for a state, at any time: if the object and its inputs return to an earlier state, the
//! old proof of this state is valid again. So stored proofs may be older than the objects, and the ConfigMaps with
//! proofs may have different ages.

mod executable;
mod record;
mod store;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use kaos_policy::{contract::Followed, digest::Digest};
use tokio::time::Instant;

pub(crate) use executable::digest as digest_of_program;
pub(crate) use store::{MAX_CONFIG_MAPS, ProofStore, config_map_name, parts};

use crate::{locking::lock, watch::ObjectKey};

/// The maximum time for which checks of proofs wait for needed objects that the watch has not listed yet. The time
/// starts when the first check must wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// A recorded proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    /// The needs of the object. Objects with equal needs share this list.
    pub(crate) needs: Arc<[Followed]>,
    pub(crate) digest: Digest,
}

/// The state of an object's proof, in the memory of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ProofState {
    /// The last pass made no proof. Another pass can make one.
    #[default]
    Open,
    /// The operator requested a pass to get a proof, but this pass could not make one. The operator requests no further
    /// pass for a proof.
    Impossible,
    /// The object is settled, and the proof is this digest.
    Settled(Digest),
}

/// The proofs of earlier processes, and the objects for which this process requested a pass to get a proof.
#[derive(Debug)]
pub(crate) struct Proofs {
    /// The digest of the program file and of the text `options`.
    program: OnceLock<Digest>,
    options: String,
    recorded: Mutex<BTreeMap<ObjectKey, Proof>>,
    wanted: Mutex<BTreeSet<ObjectKey>>,
    /// The time at which a check of a proof first had to wait for needed objects.
    began: OnceLock<Instant>,
}

impl Proofs {
    /// Starts without proofs. The text `options` differs if the operator's options let a pass see other objects.
    pub(crate) fn new(options: String) -> Arc<Self> {
        Arc::new(Self {
            program: OnceLock::new(),
            options,
            recorded: Mutex::default(),
            wanted: Mutex::default(),
            began: OnceLock::new(),
        })
    }

    /// Sets the digest of the program. Without this digest, the operator makes no proofs.
    pub(crate) fn set_program(&self, program: Digest) {
        self.program.get_or_init(|| Digest::of(format!("{program} {}", self.options).as_bytes()));
    }

    /// Returns the digest of the program file and of the text `options`; `None` before
    /// [`set_program`](Self::set_program).
    pub(crate) fn program(&self) -> Option<Digest> {
        self.program.get().copied()
    }

    /// Adds the proofs of earlier processes, before the first pass.
    pub(crate) fn recall(&self, proofs: BTreeMap<ObjectKey, Proof>) {
        lock(&self.recorded).extend(proofs);
    }

    /// Returns the proof of an earlier process for an object.
    pub(crate) fn recorded(&self, key: &ObjectKey) -> Option<Proof> {
        lock(&self.recorded).get(key).cloned()
    }

    /// Returns the proofs of earlier processes for objects that had no pass in this process yet.
    pub(crate) fn unused(&self) -> BTreeMap<ObjectKey, Proof> {
        lock(&self.recorded).clone()
    }

    /// Removes an object's proof of an earlier process, because a pass of this process has used it or replaced it.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        lock(&self.recorded).remove(key);
    }

    /// Removes all proofs of earlier processes.
    pub(crate) fn forget_all(&self) {
        lock(&self.recorded).clear();
    }

    /// Returns whether checks of proofs may still wait for needed objects that the watch has not listed yet.
    pub(crate) fn can_wait(&self) -> bool {
        self.began.get_or_init(Instant::now).elapsed() < PATIENCE
    }

    /// Records that the next passes over these objects must make proofs, if they can.
    pub(crate) fn want(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        lock(&self.wanted).extend(keys);
    }

    /// Returns whether the operator requested the next pass over an object to get a proof. A second call returns
    /// `false`.
    pub(crate) fn take_wanted(&self, key: &ObjectKey) -> bool {
        lock(&self.wanted).remove(key)
    }
}
