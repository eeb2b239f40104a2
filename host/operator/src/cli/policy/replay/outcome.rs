//! The outcomes of replays, and the messages about them.

use super::{
    super::{UNUSABLE, explain::shown, output::complain},
    files::CaseFile,
};
use crate::{
    error_text::with_causes,
    record::Case,
    replay::{ReplayError, Replayed},
};

/// The exit code if an answer differs.
pub(super) const DIFFERS: u8 = UNUSABLE;

/// The result for one case. `None` if the candidate does not concern the object.
pub(super) type Outcome = Result<Option<Replayed>, ReplayError>;

/// Prints why a case cannot be replayed.
pub(super) fn complain_of(file: &CaseFile, error: &ReplayError) {
    complain("error", format_args!("{}: {}", file.name, with_causes(error)));
}

/// Prints the objects that the policies need now and that the case lacks. Returns whether there are such objects.
pub(super) fn complain_of_unknown(file: &CaseFile, Replayed { unknown, .. }: &Replayed) -> bool {
    let Case { object, .. } = &file.case;
    for target in unknown {
        let target = shown(target);
        complain("unknown", format_args!("{}: {object}: the policies read {target}, which the case lacks", file.name));
    }
    !unknown.is_empty()
}
