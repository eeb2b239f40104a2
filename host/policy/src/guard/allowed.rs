//! Decides whether the author of a privileged value may raise the privilege. The plan declares the value's origins. The
//! guard looks up each origin to find out who wrote the value there.
//!
//! The guard compares the leaves of a value and ignores nulls, because a policy may merge two values and remove nulls.

use super::{GuardedManifest, UserPrivileges, power::Raised, reason, rules::Rules};
use crate::{
    origins::{Author, OriginPlace, PathStep, is_equal, leaves, setting, written},
    settings::{self, Origin},
};

/// The decision about a privileged value. The guard decides about each leaf of the value, and the worst of these
/// decisions is the decision about the value.
pub(super) enum Decision<'a> {
    /// The author of the value may raise the privilege.
    Allowed,
    /// The value comes from the settings of a namespace. The variant has the name of the setting's policy, the path of
    /// the setting, and the source of the setting's value.
    OfNamespace(&'a str, settings::Path, &'a settings::Source),
    /// Refused: the value comes from this path of the object, and users must not raise privileges.
    OfUser(String),
    /// No other decision applies: no declared origin with this value can justify the privilege. The text gives the
    /// reason.
    Unknown(String),
}

impl Decision<'_> {
    fn rank(&self) -> u8 {
        match self {
            Self::Allowed => 0,
            Self::OfNamespace(..) => 1,
            Self::OfUser(_) => 2,
            Self::Unknown(_) => 3,
        }
    }
}

/// Decides about a field of a manifest that raises privilege.
pub(super) fn decide<'a>(raised: &Raised<'_>, stage: &GuardedManifest<'a, '_>, rules: &Rules<'a>) -> Decision<'a> {
    let (first, rest) = raised.field;
    let names: Vec<&str> = std::iter::once(first).chain(rest.iter().copied()).collect();
    let mut worst = Decision::Allowed;
    let mut leaves = leaves(raised.value);
    if leaves.is_empty() {
        // The value has only nulls, so the field itself raises the privilege.
        leaves.push((Vec::new(), raised.value));
    }
    for (below, value) in leaves {
        let path = [raised.path.as_slice(), &below].concat();
        let names: Vec<&str> = names.iter().copied().chain(below.iter().filter_map(PathStep::name)).collect();
        let places = stage.origins.places(stage.index, stage.manifest, &path);
        let decisions = places.iter().filter(|place| is_equal(place.value, value) && is_named(place, &names));
        let decisions = decisions.filter_map(|place| by_author(place, raised, below.len(), rules));
        let decision = decisions.min_by_key(Decision::rank).unwrap_or_else(|| {
            let is_its = |place: &OriginPlace<'_>| is_named(place, &names);
            let rule = format!("the path must end in {}", names.join("."));
            Decision::Unknown(reason::of(stage, &path, &places, value, is_its, &rule))
        });
        if decision.rank() > worst.rank() {
            worst = decision;
        }
    }
    worst
}

/// Decides by the author of the value in `place`, which equals the privileged value. `below` is the number of steps
/// from the raised field to the privileged value. Returns `None` if the value in `place` can justify no value of this
/// field.
fn by_author<'a>(
    place: &OriginPlace<'a>,
    raised: &Raised<'_>,
    below: usize,
    rules: &Rules<'a>,
) -> Option<Decision<'a>> {
    match place.author {
        Author::Object => {
            // A plan can declare an origin for a single item of a list in the value. So the path that the origin names
            // can have fewer than `below` steps.
            let field = place.path.get(..place.path.len().saturating_sub(below)).unwrap_or_default();
            (place.is_of_the_spec() && is_for(place, raised)).then(|| by_user(written(field), rules))
        }
        Author::Setting(_, source) if place.is_below && source.origin != Origin::Annotation => None,
        Author::Setting(policy, source) => match &source.origin {
            Origin::Annotation => is_for(place, raised).then(|| {
                let key = source.via.as_deref().unwrap_or_default();
                by_user(format!("metadata.annotations[\"{key}\"]"), rules)
            }),
            Origin::NamespacePolicy(_) => Some(Decision::OfNamespace(policy, setting(&place.path), source)),
            origin => {
                let is_beyond = rules.is_beyond(raised.privilege);
                (origin.is_of_operator() && (!is_beyond || origin.is_of_flags())).then_some(Decision::Allowed)
            }
        },
        Author::Found(_) => None,
    }
}

fn by_user<'a>(path: String, rules: &Rules<'_>) -> Decision<'a> {
    match rules.user_privileges {
        UserPrivileges::Allowed => Decision::Allowed,
        UserPrivileges::Forbidden => Decision::OfUser(path),
    }
}

/// Returns whether a place in the user's object is for the same container or pod as the raised field. A value for one
/// container allows nothing for another container. A value for no particular container applies to the pod and to its
/// main container.
fn is_for(place: &OriginPlace<'_>, raised: &Raised<'_>) -> bool {
    match (place.container, raised.container) {
        (None, None) => true,
        (None, Some(of)) => of.is_main,
        (Some(name), Some(of)) => name == of.name,
        (Some(_), None) => false,
    }
}

/// Returns whether the place of an origin has the name of the raised field: the path of the place ends in the names of
/// the field. So `spec.debug: true` is never the origin of `hostNetwork: true`. In settings, the first name may have a
/// word before it: `podSecurityContext`.
fn is_named(place: &OriginPlace<'_>, names: &[&str]) -> bool {
    let own: Vec<&str> = place.path.iter().filter_map(PathStep::name).collect();
    let Some(own) = own.len().checked_sub(names.len()).map(|before| &own[before..]) else { return false };
    let Some(((first, rest), (own_first, own_rest))) = names.split_first().zip(own.split_first()) else { return false };
    let is_setting = matches!(place.author, Author::Setting(..));
    own_rest == rest && (own_first == first || (is_setting && ends_with_word(own_first, first)))
}

/// Returns whether a name in camel case ends with a word: `serviceType` ends with `type`.
fn ends_with_word(name: &str, word: &str) -> bool {
    let mut letters = word.chars();
    let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
    name.strip_suffix(letters.as_str()).is_some_and(|before| before.ends_with(|letter| Some(letter) == capital))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_a_whole_word() {
        assert!(ends_with_word("podSecurityContext", "securityContext") && ends_with_word("serviceType", "type"));
        assert!(!ends_with_word("prototype", "type") && !ends_with_word("type", "serviceType"));
    }
}
