//! The digest of the operator's own program. Two builds of the same source can decide differently, for example because
//! of other Cargo features. So a proof is valid only for the program file that made it.

use std::{fs::File, sync::OnceLock};

use kaos_policy::digest::Digest;

/// A link to the file of the running program. On Linux, the link stays valid even after the file was replaced or
/// deleted.
const PROGRAM: &str = "/proc/self/exe";

/// The digest of the running program, after the first call of [`digest`].
static READ: OnceLock<Option<Digest>> = OnceLock::new();

/// Returns the digest of the running program; `None` if the file is not readable. The first call reads the whole file.
pub(crate) fn digest() -> Option<Digest> {
    *READ.get_or_init(read)
}

fn read() -> Option<Digest> {
    let read = File::open(PROGRAM).and_then(Digest::of_read);
    read.inspect_err(|error| {
        tracing::warn!(%error, "{PROGRAM} is not readable, so a restart asks the policies about all objects");
    })
    .ok()
}
