//! Proofs as bytes: JSON, compressed. Objects with equal needs share one copy of the needs, because most objects of a
//! namespace need the same objects.

use std::{
    collections::BTreeMap,
    io::{self, Read as _, Write as _},
    sync::Arc,
};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use kaos_policy::{
    contract::{Fields, Followed, ResourceType, Target},
    digest::Digest,
};
use serde::{Deserialize, Serialize};

use super::Proof;
use crate::watch::ObjectKey;

/// The version of this format. The operator ignores records of other versions.
const VERSION: u32 = 1;
/// The maximum size of an unpacked record, in bytes.
pub(super) const MAX_UNPACKED: usize = 4 << 20;

#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    /// The digest of the program file and of its options. Another program can decide differently.
    program: Digest,
    types: Vec<ResourceType>,
    needs: Vec<Vec<RecordedNeed>>,
    objects: Vec<RecordedProof>,
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RecordedNeed {
    target: Target,
    /// The paths of the fields that the policy reads; empty for the whole object.
    fields: Vec<String>,
}

/// A proof: the index of the object's type, the index of its needs, its namespace, its name, and the digest.
#[derive(Serialize, Deserialize)]
struct RecordedProof(usize, usize, String, String, Digest);

/// Packs proofs of this program. The result depends only on the arguments. Returns `None` if the proofs are too large
/// for one record.
pub(super) fn pack<'a>(
    program: Digest,
    proofs: impl Iterator<Item = (&'a ObjectKey, &'a Proof)>,
) -> io::Result<Option<Vec<u8>>> {
    let (mut types, mut needs): (Vec<ResourceType>, Vec<Vec<RecordedNeed>>) = Default::default();
    let (mut number_of_type, mut number_of_needs) = (BTreeMap::new(), BTreeMap::new());
    let mut objects = Vec::new();
    for (key, proof) in proofs {
        let of = *number_of_type.entry(key.of.clone()).or_insert_with(|| {
            types.push(key.of.clone());
            types.len() - 1
        });
        let recorded: Vec<RecordedNeed> = proof.needs.iter().map(recorded).collect();
        let need = *number_of_needs.entry(recorded.clone()).or_insert_with(|| {
            needs.push(recorded);
            needs.len() - 1
        });
        objects.push(RecordedProof(of, need, key.namespace.clone(), key.name.clone(), proof.digest));
    }
    let text = serde_json::to_vec(&Record { version: VERSION, program, types, needs, objects })?;
    if text.len() > MAX_UNPACKED {
        return Ok(None);
    }
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&text)?;
    packed.finish().map(Some)
}

/// Unpacks proofs. Returns `None` if the bytes are not a record of this version and of this program.
pub(super) fn unpack(program: Digest, packed: &[u8]) -> Option<BTreeMap<ObjectKey, Proof>> {
    let mut text = Vec::new();
    ZlibDecoder::new(packed).take(MAX_UNPACKED as u64).read_to_end(&mut text).ok()?;
    let record: Record = serde_json::from_slice(&text).ok()?;
    let Record { version, types, needs, objects, .. } = record;
    if version != VERSION || record.program != program {
        return None;
    }
    let followed = |needs: Vec<RecordedNeed>| needs.into_iter().map(followed).collect::<Option<Arc<[Followed]>>>();
    let needs: Vec<Arc<[Followed]>> = needs.into_iter().map(followed).collect::<Option<_>>()?;
    let proof = |RecordedProof(of, need, namespace, name, digest): RecordedProof| {
        let key = ObjectKey::new(types.get(of)?.clone(), namespace, name);
        Some((key, Proof { needs: Arc::clone(needs.get(need)?), digest }))
    };
    objects.into_iter().map(proof).collect()
}

fn recorded(Followed { target, fields }: &Followed) -> RecordedNeed {
    RecordedNeed { target: target.clone(), fields: fields.paths().to_vec() }
}

fn followed(RecordedNeed { target, fields }: RecordedNeed) -> Option<Followed> {
    let fields = if fields.is_empty() { Fields::whole() } else { Fields::parse(&fields).ok()? };
    Some(Followed { target, fields })
}

#[cfg(test)]
mod tests {
    use kaos_policy::contract::{Reference, Selector};

    use super::*;

    fn program() -> Digest {
        Digest::of(b"program")
    }

    fn proofs() -> BTreeMap<ObjectKey, Proof> {
        let of = |kind: &str| ResourceType::new("x.io/v1", kind);
        let named = |name: &str| {
            let (api_version, kind) = ("x.io/v1".to_owned(), "Gadget".to_owned());
            Target::Named(Reference { api_version, kind, namespace: Some("n".to_owned()), name: name.to_owned() })
        };
        let whole = Followed { target: named("a"), fields: Fields::whole() };
        let part = Followed {
            target: named("b"),
            fields: Fields::parse(&["spec.a".to_owned(), "status".to_owned()]).unwrap(),
        };
        let labels = [("l".to_owned(), "v".to_owned())].into();
        let selector = Selector { of: of("Gadget"), namespace: Some("n".to_owned()), labels };
        let labelled = Followed { target: Target::Labelled(selector), fields: Fields::whole() };
        let lists: [Arc<[Followed]>; 3] = [Arc::new([]), Arc::new([whole]), Arc::new([labelled, part])];
        let proof = |number: usize| {
            let key = ObjectKey::new(of(["Widget", "Gadget"][number % 2]), "n", format!("o{number}"));
            (key, Proof { needs: Arc::clone(&lists[number % 3]), digest: Digest::of(&number.to_be_bytes()) })
        };
        (0..1_000).map(proof).collect()
    }

    #[test]
    fn proofs_are_the_same_after_packing_and_share_their_needs() {
        let before = proofs();
        let packed = pack(program(), before.iter()).unwrap().unwrap();
        assert!(packed.len() < 60 * before.len(), "{} bytes", packed.len());
        let after = unpack(program(), &packed).unwrap();
        assert_eq!(after, before);
        let distinct: std::collections::BTreeSet<_> = after.values().map(|proof| Arc::as_ptr(&proof.needs)).collect();
        assert_eq!(distinct.len(), 3);
    }

    #[test]
    fn damaged_records_and_records_of_another_version_or_program_have_no_proofs() {
        let packed = pack(program(), proofs().iter()).unwrap().unwrap();
        assert_eq!(unpack(Digest::of(b"another program"), &packed), None);
        for cut in [0, 1, packed.len() / 2, packed.len() - 1] {
            assert_eq!(unpack(program(), &packed[..cut]), None, "{cut}");
        }
        let record = |text: &str| {
            let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
            packed.write_all(text.as_bytes()).unwrap();
            packed.finish().unwrap()
        };
        let none = BTreeMap::new();
        let of = |version: u32, objects: &str| {
            let program = serde_json::to_string(&program()).unwrap();
            format!(r#"{{"version":{version},"program":{program},"types":[],"needs":[],"objects":[{objects}]}}"#)
        };
        assert_eq!(unpack(program(), &record(&of(1, ""))), Some(none));
        for odd in [of(2, ""), of(1, r#"[0,0,"n","o","00"]"#), "[]".to_owned()] {
            assert_eq!(unpack(program(), &record(&odd)), None, "{odd}");
        }
    }

    #[test]
    fn a_record_above_the_maximum_size_is_neither_written_nor_read() {
        let proofs = proofs();
        let (key, proof) = proofs.iter().next().unwrap();
        let large = ObjectKey::new(key.of.clone(), key.namespace.clone(), "x".repeat(MAX_UNPACKED));
        assert!(pack(program(), [(&large, proof)].into_iter()).unwrap().is_none());
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&b" ".repeat(MAX_UNPACKED)).unwrap();
        packed.write_all(b"{}").unwrap();
        assert_eq!(unpack(program(), &packed.finish().unwrap()), None);
    }
}
