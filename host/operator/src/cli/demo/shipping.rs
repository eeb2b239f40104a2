//! Another component that the demo ships: what a policy of the binary would be after another build, with other bytes and
//! another `policy.yaml`.

use anyhow::Context;
use kaos_policy::{gate, manifest::PolicyFile};

use crate::{
    embedded::DEFAULTS,
    policies::{Candidate, Origin},
};

/// What comes with it.
pub(super) const FILE: (&str, &str) =
    ("docs/examples/settings/team-policy.yaml", include_str!("../../../../../docs/examples/settings/team-policy.yaml"));

/// The candidate. Its origin is not the binary, so it is checked as anybody's is.
pub(super) fn candidate() -> anyhow::Result<Candidate> {
    let (name, text) = FILE;
    let file = PolicyFile::parse(text).context(name)?;
    let named = |manifest: &str| PolicyFile::parse(manifest).is_ok_and(|embedded| embedded.name == file.name);
    let embedded = DEFAULTS.iter().find(|policy| named(policy.manifest));
    let component = embedded.with_context(|| format!("{name}: there is no embedded policy of this name"))?.component;
    let inner = gate::Candidate { bytes: [component, BUILD].concat(), file };
    Ok(Candidate { origin: Origin::File(name.into()), inner })
}

/// A custom section: its id, its length, the length of its name, its name, its content.
const BUILD: &[u8] = b"\x00\x08\x05build2\x0a";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::{Loader, sample_cluster};

    #[test]
    fn it_passes_the_checks_with_a_digest_of_its_own() {
        let loader = Loader::new(sample_cluster()).unwrap();
        let shipped = Candidate { origin: Origin::Embedded, ..candidate().unwrap() };
        let policy = loader.check(&shipped).result.unwrap();
        let own = loader.load(&[]).unwrap();
        let same = own.iter().find(|own| own.policy.id().name == policy.id().name).unwrap();
        assert_ne!(same.policy.id().digest, policy.id().digest);
    }
}
