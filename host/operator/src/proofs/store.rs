//! Keeps proofs in ConfigMaps of the operator's namespace.

use std::{collections::BTreeMap, io};

use k8s_openapi::{ByteString, api::core::v1::ConfigMap};
use kaos_policy::digest::Digest;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::{
    Proof,
    record::{pack, unpack},
};
use crate::{config_maps::SETTLED_CONFIG, watch::ObjectKey};

/// The maximum number of ConfigMaps.
pub(crate) const MAX_CONFIG_MAPS: usize = 16;
/// The maximum average number of objects in a ConfigMap, unless [`MAX_CONFIG_MAPS`] is reached.
const OBJECTS: usize = 3_000;
/// The maximum size of the data of one ConfigMap. A proof takes about 60 bytes.
const MAX_BYTES: usize = 900 << 10;
/// The maximum number of needs of an object whose proof stays in a ConfigMap that would be too large otherwise.
const MAX_NEEDS: usize = 10;
/// The label of these ConfigMaps.
const LABEL: &str = "kaos.tools/settled";
/// The key of the data.
const DATA: &str = "proofs";
/// The field manager of these ConfigMaps.
const MANAGER: &str = "kaos-operator-settled";
/// The description in each ConfigMap, for users who read it.
const ABOUT: &str = "The operator writes this ConfigMap, so that it need not ask the policies about settled objects \
    after a restart. You can delete this ConfigMap at any time.";

/// Returns the name of a ConfigMap with proofs.
pub(crate) fn config_map_name(number: usize) -> String {
    format!("{SETTLED_CONFIG}{number}")
}

/// Reads and writes the ConfigMaps with proofs.
pub(crate) struct ProofStore {
    api: Api<ConfigMap>,
    /// The digest of the data that the ConfigMaps had after the last write.
    kept: Option<Digest>,
}

impl ProofStore {
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), kept: None }
    }

    /// Reads all proofs of this program. Ignores ConfigMaps with other content.
    pub(crate) async fn load(&self, program: Digest) -> kube::Result<BTreeMap<ObjectKey, Proof>> {
        let stored = self.stored().await?.into_values().map(|data| unpack(program, &data).unwrap_or_default());
        Ok(stored.flatten().collect())
    }

    /// Returns the data of the ConfigMaps with proofs, by name. Ignores ConfigMaps with other names, because any user
    /// can set the label.
    async fn stored(&self) -> kube::Result<BTreeMap<String, Vec<u8>>> {
        let labelled = self.api.list(&ListParams::default().labels(LABEL)).await?.items;
        let mut labelled: BTreeMap<String, ConfigMap> =
            labelled.into_iter().map(|config_map| (config_map.name_any(), config_map)).collect();
        let named = (0..MAX_CONFIG_MAPS).map(config_map_name).filter_map(|name| labelled.remove_entry(&name));
        let data = |config_map: ConfigMap| config_map.binary_data.and_then(|mut data| data.remove(DATA));
        Ok(named.map(|(name, config_map)| (name, data(config_map).unwrap_or_default().0)).collect())
    }

    /// Deletes all proofs, for an uninstall.
    pub(crate) async fn delete_all(&self) -> kube::Result<()> {
        for name in self.stored().await?.into_keys() {
            self.delete(&name).await?;
        }
        Ok(())
    }

    /// Writes the data of the ConfigMaps, and deletes the ConfigMaps that are no longer needed. Sends no requests if
    /// the last write had the same data. But the last write of the process (`is_last`) always reads the ConfigMaps
    /// first, because a user may have deleted one.
    pub(crate) async fn keep(&mut self, parts: &[Vec<u8>], is_last: bool) -> kube::Result<()> {
        let digest = Digest::of_written(&parts);
        if self.kept == Some(digest) && !is_last {
            return Ok(());
        }
        let stored = self.stored().await?;
        for (number, part) in parts.iter().enumerate() {
            let name = config_map_name(number);
            if stored.get(&name) != Some(part) {
                self.write(&name, part).await?;
            }
        }
        for name in (parts.len()..MAX_CONFIG_MAPS).map(config_map_name).filter(|name| stored.contains_key(name)) {
            self.delete(&name).await?;
        }
        self.kept = Some(digest);
        Ok(())
    }

    async fn delete(&self, name: &str) -> kube::Result<()> {
        match self.api.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    async fn write(&self, name: &str, data: &[u8]) -> kube::Result<()> {
        let metadata = json!({
            "name": name,
            "labels": {"app.kubernetes.io/name": "kaos-operator", (LABEL): "proofs"},
            "annotations": {"kubernetes.io/description": ABOUT},
        });
        let data = json!({DATA: ByteString(data.to_vec())});
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data});
        self.api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&body)).await.map(drop)
    }
}

/// Packs proofs into the data of several ConfigMaps. A digest of the object's kind and name decides the ConfigMap for
/// its proof, so that a changed proof changes only one ConfigMap.
pub(crate) fn parts(program: Digest, proofs: &BTreeMap<ObjectKey, Proof>) -> io::Result<Vec<Vec<u8>>> {
    if proofs.is_empty() {
        return Ok(Vec::new());
    }
    let count = proofs.len().div_ceil(OBJECTS).next_power_of_two().min(MAX_CONFIG_MAPS);
    let mut parts: Vec<Vec<(&ObjectKey, &Proof)>> = vec![Vec::new(); count];
    for proof in proofs {
        parts[place(proof.0, count)].push(proof);
    }
    parts.into_iter().map(|part| packed(program, &part)).collect()
}

/// Returns the number of the ConfigMap for an object.
fn place(key: &ObjectKey, count: usize) -> usize {
    let hex = Digest::of(key.to_string().as_bytes()).hex();
    usize::from_str_radix(&hex[..4], 16).unwrap_or_default() % count
}

/// Packs the proofs of one ConfigMap. If the proofs are too large, leaves out the objects with many needs. If the
/// remaining proofs are still too large, leaves out all proofs of this ConfigMap.
fn packed(program: Digest, part: &[(&ObjectKey, &Proof)]) -> io::Result<Vec<u8>> {
    let with_few_needs = part.iter().copied().filter(|(_, proof)| proof.needs.len() <= MAX_NEEDS).collect();
    for proofs in [part.to_vec(), with_few_needs] {
        if let Some(packed) = pack(program, proofs.into_iter())?.filter(|packed| packed.len() <= MAX_BYTES) {
            return Ok(packed);
        }
        tracing::warn!("the records of some settled objects are too large, so a restart asks the policies about them");
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kaos_policy::contract::{Fields, Followed, Reference, ResourceType, Target};

    use super::*;

    fn program() -> Digest {
        Digest::of(b"program")
    }

    /// Returns the proof of an object with this number of needs. No other object has the same needs.
    fn proof(name: &str, needs: usize) -> (ObjectKey, Proof) {
        let noise = |number: usize| Digest::of(format!("{name} {number}").as_bytes()).hex();
        let need = |number: usize| {
            let (api_version, kind) = ("v1".to_owned(), "ConfigMap".to_owned());
            let reference = Reference { api_version, kind, namespace: Some("n".to_owned()), name: noise(number) };
            Followed { target: Target::Named(reference), fields: Fields::whole() }
        };
        let needs: Arc<[Followed]> = (0..needs).map(need).collect();
        let key = ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), "n", name);
        (key, Proof { needs, digest: Digest::of(name.as_bytes()) })
    }

    fn read(parts: &[Vec<u8>]) -> BTreeMap<ObjectKey, Proof> {
        parts.iter().flat_map(|part| unpack(program(), part).unwrap_or_default()).collect()
    }

    #[test]
    fn a_change_of_one_object_changes_one_config_map() {
        let mut proofs: BTreeMap<ObjectKey, Proof> =
            (0..5 * OBJECTS).map(|number| proof(&number.to_string(), 0)).collect();
        let before = parts(program(), &proofs).unwrap();
        assert_eq!((before.len(), read(&before) == proofs), (8, true));
        proofs.extend([proof("new", 0)]);
        let after = parts(program(), &proofs).unwrap();
        assert_eq!(before.iter().zip(&after).filter(|(before, after)| before != after).count(), 1);
        assert_eq!(parts(program(), &BTreeMap::new()).unwrap(), [[0; 0]; 0]);
    }

    #[test]
    fn objects_with_many_needs_do_not_displace_other_objects() {
        let small = (0..100).map(|number| proof(&format!("small-{number}"), 1));
        let large = (0..200).map(|number| proof(&format!("large-{number}"), 200));
        let kept = read(&parts(program(), &small.chain(large).collect()).unwrap());
        assert_eq!(kept.len(), 100);
        assert!(kept.keys().all(|key| key.name.starts_with("small-")));
    }
}
