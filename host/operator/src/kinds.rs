//! Finds the kind that a user names on the command line.
//!
//! A policy must not claim a kind whose name differs from a kind in [`SERVED`] only in upper and lower case, such as
//! `AGENT`. The cluster would never have an object of the claimed kind, and a word such as `agent` would be ambiguous.
//! Both kinds would have the same plural, so RBAC rules could not distinguish them.

use std::sync::LazyLock;

use kaos_crds::{API_VERSION, manifests};
use kaos_policy::contract::ResourceType;

use crate::watch::Served;

/// The kinds that every cluster with an operator serves: the kinds of the operator's own CRDs, and Secrets.
pub(crate) static SERVED: LazyLock<Vec<ResourceType>> = LazyLock::new(|| {
    let own = manifests::KINDS.map(|kind| ResourceType::new(API_VERSION, kind));
    own.into_iter().chain([ResourceType::new("v1", "Secret")]).collect()
});

/// The error for a word that does not name exactly one kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KindError {
    /// No policy answers for a kind with this name.
    #[error("{word}: no policy answers for this kind, only for {}", .kinds.join(", "))]
    Unknown {
        /// The word.
        word: String,
        /// The kinds that policies answer for.
        kinds: Vec<String>,
    },
    /// Policies answer for several kinds with this name.
    #[error("{word}: names several kinds, write {}", .kinds.join(" or "))]
    Several {
        /// The word.
        word: String,
        /// For each of these kinds, a word that names only this kind.
        kinds: Vec<String>,
    },
}

/// Returns the kind that the user's word names, among the kinds that policies answer for. The word may be the kind, the
/// plural, the singular or a short name, as the cluster serves it. A dot and the group may follow. The word is not
/// case-sensitive.
pub(crate) fn meant<'a>(
    word: &str,
    kinds: impl IntoIterator<Item = &'a ResourceType>,
    served: impl Fn(&ResourceType) -> Option<Served>,
) -> Result<&'a ResourceType, KindError> {
    let kinds: Vec<&ResourceType> = kinds.into_iter().collect();
    let is_meant = |of: &&&ResourceType| {
        let served = served(of);
        let names = served.iter().flat_map(|served| served.nicknames.iter().chain([&served.resource.plural]));
        names.chain([&of.kind]).any(|name| {
            let qualified = format!("{name}.{}", of.group());
            [name, &qualified].iter().any(|name| name.eq_ignore_ascii_case(word))
        })
    };
    let found: Vec<&ResourceType> = kinds.iter().filter(is_meant).copied().collect();
    let word = word.to_owned();
    match found[..] {
        [of] => Ok(of),
        [] => Err(KindError::Unknown { word, kinds: kinds.iter().map(|of| of.kind.clone()).collect() }),
        _ => {
            let kinds = found.iter().map(|of| format!("{}.{}", of.kind, of.group())).collect();
            Err(KindError::Several { word, kinds })
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ApiResource, GroupVersionKind};

    use super::*;

    #[test]
    fn a_kind_is_meant_by_every_name_that_the_cluster_serves_it_under() {
        let kinds = [
            ResourceType::new("net.example/v1", "Proxy"),
            ResourceType::new("other.example/v1", "Proxy"),
            ResourceType::new("net.example/v1", "Kite"),
        ];
        let served = |of: &ResourceType| {
            let (plural, short) = match (of.kind.as_str(), of.group()) {
                ("Proxy", "net.example") => ("proxies", "px"),
                ("Proxy", _) => ("otherproxies", "op"),
                _ => return None,
            };
            let resource =
                ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(of.group(), "v1", &of.kind), plural);
            Some(Served { resource, namespaced: true, nicknames: vec!["proxy".to_owned(), short.to_owned()] })
        };
        let meant = |word: &str| meant(word, &kinds, served);
        for word in ["proxies", "PX", "Proxy.net.example", "proxies.net.example", "px.net.example"] {
            assert_eq!(meant(word), Ok(&kinds[0]), "{word}");
        }
        assert_eq!(meant("op"), Ok(&kinds[1]));
        assert_eq!(meant("kite"), Ok(&kinds[2]), "the cluster does not serve this kind, so its only name is the kind");
        assert_eq!(
            meant("proxy").unwrap_err().to_string(),
            "proxy: names several kinds, write Proxy.net.example or Proxy.other.example"
        );
        let unknown = meant("kites").unwrap_err().to_string();
        assert_eq!(unknown, "kites: no policy answers for this kind, only for Proxy, Proxy, Kite");
    }
}
