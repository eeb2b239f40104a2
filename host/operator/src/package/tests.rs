use std::{cell::Cell, collections::BTreeMap, convert::Infallible, future::ready};

use futures_util::FutureExt as _;
use k8s_openapi::ByteString;
use kaos_policy::manifest::{Grants, ReadGrant, Scope};
use serde_json::json;

use super::{read::MAX_CHUNKS, write::ROOM, *};

/// Returns bytes that gzip cannot compress.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

fn file() -> PolicyFile {
    PolicyFile {
        name: Some("kite".into()),
        scope: Scope { namespaces: vec!["a".into(), "b".into()], ..Scope::default() },
        settings: json!({"image": "registry.example/kite:2", "none": null, "list": [], "text": "a\n b: c\n"}),
        grants: Grants {
            reads: vec![ReadGrant {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: None,
                names: vec!["sizes".into()],
            }],
            ..Grants::default()
        },
        ..PolicyFile::default()
    }
}

fn code(component: &[u8]) -> PolicyCode {
    PolicyCode::component(component.to_vec())
}

fn script(text: &str) -> PolicyCode {
    PolicyCode { form: CodeForm::Script, bytes: text.to_owned().into_bytes().into() }
}

fn packed(file: &PolicyFile, component: Option<&[u8]>) -> Packed {
    pack("kite", "home", file, component.map(code).as_ref()).unwrap()
}

fn read(packed: &Packed) -> Result<Package, PackageError> {
    let Packed { index, chunks } = packed;
    unpack(index, |name| chunks.iter().find(|chunk| chunk.metadata.name.as_deref() == Some(name)))
}

fn problem(packed: &Packed) -> Problem {
    *read(packed).unwrap_err().problem
}

/// Returns an index with these keys.
fn index(texts: &[(&str, &str)], binaries: &[(&str, &[u8])]) -> Packed {
    let mut index = packed(&file(), Some(b"component")).index;
    index.data = Some(texts.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect());
    index.binary_data =
        Some(binaries.iter().map(|(key, bytes)| ((*key).to_owned(), ByteString(bytes.to_vec()))).collect());
    Packed { index, chunks: Vec::new() }
}

fn large() -> Packed {
    let packed = packed(&file(), Some(&noise(2 * ROOM)));
    assert_eq!(packed.chunks.len(), 3);
    packed
}

#[test]
fn a_packed_package_unpacks_to_the_same_package() {
    for component in [noise(10), noise(ROOM + 1), vec![0; 3 << 20]] {
        let packed = packed(&file(), Some(&component));
        let package = read(&packed).unwrap();
        assert_eq!((package.name.as_str(), package.namespace.as_str()), ("kite", "home"));
        assert_eq!(package.file, PolicyFile { sha256: Some(Digest::of(&component)), ..file() });
        let PolicyCode { form, bytes } = package.component.unwrap();
        assert_eq!(form, CodeForm::Component);
        assert_eq!(unpacked(&bytes, &readable()).unwrap(), component);
        assert!(is_index(&packed.index.metadata) && !is_chunk(&packed.index.metadata));
        for chunk in &packed.chunks {
            assert!(is_chunk(&chunk.metadata) && !is_index(&chunk.metadata));
        }
    }
}

#[test]
fn each_config_map_is_small_enough_and_the_index_comes_last() {
    let packed = large();
    let size = |map: &ConfigMap| {
        let texts: usize = map.data.iter().flatten().map(|(key, text)| key.len() + text.len()).sum();
        texts + map.binary_data.iter().flatten().map(|(key, bytes)| key.len() + bytes.0.len()).sum::<usize>()
    };
    assert!(packed.config_maps().all(|map| size(map) < 1 << 20));
    assert_eq!(packed.config_maps().last(), Some(&packed.index));
    assert!(packed.chunks.iter().all(|chunk| chunk.immutable == Some(true)));
}

#[test]
fn the_same_package_has_the_same_digest_however_it_is_cut_packed_and_written() {
    let component = noise(2 * ROOM);
    let packed = packed(&file(), Some(&component));
    let Package { name, namespace, .. } = read(&packed).unwrap();
    let plain = Package { name, namespace, file: file(), component: Some(code(&component)) };
    assert_eq!(read(&packed).unwrap().digest(), plain.digest());
    assert_eq!(pack("kite", "home", &file(), read(&packed).unwrap().component.as_ref()).unwrap(), packed);
    let elsewhere = Package { name: "other".into(), namespace: "other".into(), ..plain.clone() };
    assert_eq!(elsewhere.digest(), plain.digest());
    assert_eq!(plain.component_digest(), Some(Digest::of(&component)));
}

#[test]
fn another_file_component_or_pin_changes_the_digest() {
    let package = read(&packed(&file(), Some(b"component"))).unwrap();
    let mut digests = vec![package.digest()];
    let mut changed = |change: &dyn Fn(&mut Package)| {
        let mut package = package.clone();
        change(&mut package);
        digests.push(package.digest());
    };
    changed(&|package| package.component = Some(code(b"Component")));
    changed(&|package| package.component = Some(script("component")));
    changed(&|package| package.component = None);
    changed(&|package| package.file.settings = json!({}));
    changed(&|package| package.file.scope = Scope::default());
    changed(&|package| package.file.sha256 = Some(Digest::of(b"something else")));
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 7);
}

#[test]
fn the_digest_of_a_large_component_does_not_depend_on_the_size_class_of_the_gate() {
    let component = vec![0; 12 << 20];
    let package = read(&packed(&file(), Some(&component))).unwrap();
    assert_eq!(package.component_digest(), Some(Digest::of(&component)));
}

#[test]
fn a_bomb_has_a_digest_and_is_not_unpacked() {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), 64 << 20), &mut bomb).unwrap();
    let bomb = bomb.finish().unwrap();
    let package = read(&index(&[(FILE, "{}")], &[(GZIPPED, &bomb)])).unwrap();
    assert_eq!(package.component_digest(), Some(Digest::of(&bomb)));
}

#[test]
fn a_package_with_settings_only_names_its_policy() {
    let file = PolicyFile { name: Some("kite".into()), settings: json!({"image": "x"}), ..PolicyFile::default() };
    let package = read(&packed(&file, None)).unwrap();
    assert_eq!((package.component, package.file), (None, file));
    let nameless = index(&[(FILE, "settings: {image: x}")], &[]);
    assert_eq!(problem(&nameless), Problem::NoName);
    assert_eq!(problem(&index(&[(FILE, "name: kite")], &[])), Problem::Nothing);
}

#[test]
fn fields_for_a_component_are_refused_without_one() {
    for (text, field) in [
        ("{name: kite, settings: {}, version: '1'}", "version"),
        ("{name: kite, settings: {}, limits: {fuel: 1}}", "limits"),
        ("{name: kite, settings: {}, grants: {secrets: [a]}}", "grants"),
        // These packages lack their component: the user forgot it, or will apply it later.
        (&format!("{{name: kite, settings: {{}}, sha256: {}}}", Digest::of(b"a")), "sha256"),
    ] {
        assert_eq!(problem(&index(&[(FILE, text)], &[])), Problem::WithoutComponent(field));
    }
}

#[test]
fn an_incomplete_config_map_is_reported_with_the_missing_keys() {
    let none: &[(&str, &[u8])] = &[];
    assert_eq!(problem(&index(&[], none)), Problem::Empty);
    assert!(matches!(problem(&index(&[], &[(COMPONENT, b"x")])), Problem::MissingKey { key: FILE, .. }));
    assert!(matches!(problem(&index(&[(FILE, " \n")], none)), Problem::EmptyKey { key: FILE, .. }));
    assert!(matches!(problem(&index(&[(FILE, "{}")], &[(GZIPPED, b"")])), Problem::EmptyKey { key: GZIPPED, .. }));
    let several = index(&[(FILE, "{}"), (CHUNKS, "a")], &[(COMPONENT, b"x")]);
    assert_eq!(problem(&several), Problem::SeveralComponents(vec![COMPONENT, CHUNKS]));
    let text = index(&[(FILE, "{}"), (COMPONENT, "AGFzbQ==")], none);
    assert_eq!(problem(&text), Problem::WrongField { key: COMPONENT, field: "binaryData" });
    let misspelt = index(&[(FILE, "{}")], &[("policy.wasm.gzip", b"x")]);
    assert_eq!(problem(&misspelt), Problem::UnknownKey { key: "policy.wasm.gzip".into(), hint: Some(GZIPPED) });
    let mut emptied = packed(&file(), Some(b"component"));
    (emptied.index.data, emptied.index.binary_data) = (None, None);
    assert_eq!(
        read(&emptied).unwrap_err().to_string(),
        "ConfigMap home/kite: is empty: write policy.yaml and a component, or delete the ConfigMap"
    );
}

#[test]
fn a_policy_file_that_does_not_parse_is_named_with_its_line() {
    let broken = index(&[(FILE, "name: kite\nscope:\n  namespace: [a]\n")], &[(COMPONENT, b"x")]);
    let told = read(&broken).unwrap_err().to_string();
    assert!(told.starts_with("ConfigMap home/kite: policy.yaml is invalid: "), "{told}");
    assert!(told.contains("line 3") && told.contains("namespace"), "{told}");
}

#[test]
fn a_missing_chunk_is_waited_for_by_name() {
    let mut packed = large();
    let gone = packed.chunks.remove(1).metadata.name.unwrap();
    let error = read(&packed).unwrap_err();
    assert!(error.is_incomplete());
    assert_eq!(*error.problem, Problem::MissingChunk { name: gone, number: 2, count: 3 });
}

#[test]
fn swapped_emptied_or_replaced_chunks_never_make_a_component() {
    let mut swapped = large();
    let names = chunk_names(&swapped.index).unwrap();
    let list = [&names[1], &names[0], &names[2]].map(|name| format!("{name}\n")).concat();
    swapped.index.data.as_mut().unwrap().insert(CHUNKS.to_owned(), list);
    assert!(matches!(problem(&swapped), Problem::OtherChunks { .. }));
    assert!(read(&swapped).unwrap_err().is_incomplete());

    let part = |bytes: &[u8]| Some(BTreeMap::from([(PART.to_owned(), ByteString(bytes.to_vec()))]));
    let mut emptied = large();
    emptied.chunks[2].binary_data = part(b"");
    let error = read(&emptied).unwrap_err();
    assert!(error.config_map.starts_with("home/kite-") && error.config_map.ends_with("-3"), "{error}");
    assert!(matches!(*error.problem, Problem::EmptyKey { key: PART, .. }));
    emptied.chunks[2].binary_data = None;
    assert!(matches!(problem(&emptied), Problem::MissingKey { key: PART, .. }));

    let mut replaced = large();
    replaced.chunks[2].binary_data = part(b"other bytes");
    assert!(matches!(problem(&replaced), Problem::OtherChunks { .. }));
}

#[test]
fn a_chunk_of_no_index_or_of_another_index_is_refused() {
    let mut foreign = large();
    foreign.chunks[0].metadata.annotations = Some([(INDEX_ANNOTATION.to_owned(), "other".to_owned())].into());
    let expected = Problem::ForeignChunk { index: "kite".into(), annotated: Some("other".into()) };
    assert_eq!(problem(&foreign), expected);
    foreign.chunks[0].metadata.annotations = None;
    assert_eq!(problem(&foreign), Problem::ForeignChunk { index: "kite".into(), annotated: None });
}

#[test]
fn chunks_need_a_pin_and_a_proper_list() {
    let listed = |list: &str, file: &str| problem(&index(&[(FILE, file), (CHUNKS, list)], &[]));
    assert_eq!(listed("a\n", "{}"), Problem::NotPinned);
    assert!(matches!(listed("\n \n", "{}"), Problem::EmptyKey { key: CHUNKS, .. }));
    assert!(matches!(listed("a\n\nA b\n", "{}"), Problem::BadChunkName { line: 3, .. }));
    assert!(matches!(listed("a\nb\na\n", "{}"), Problem::BadChunkName { line: 3, .. }));
}

#[test]
fn chunks_that_never_end_are_cut_off() {
    let mut packed = large();
    let part = packed.chunks[0].clone();
    let names: Vec<String> = (0..40).map(|number| format!("part-{number}")).collect();
    packed.index.data.as_mut().unwrap().insert(CHUNKS.to_owned(), names.join("\n"));
    let error = unpack(&packed.index, |_| Some(&part)).unwrap_err();
    assert!(matches!(*error.problem, Problem::TooLarge { key: CHUNKS, .. }), "{error}");
    assert!(!error.is_incomplete());
}

#[test]
fn chunks_are_read_in_order_up_to_the_limit() {
    let mut packed = large();
    let part = packed.chunks[0].clone();
    let asked = |packed: &mut Packed, count: usize, there: bool| {
        let names: Vec<String> = (0..count).map(|number| format!("part-{number}")).collect();
        packed.index.data.as_mut().unwrap().insert(CHUNKS.to_owned(), names.join("\n"));
        let asked = Cell::new(0);
        let chunk = |name: String| {
            assert_eq!(name, format!("part-{}", asked.get()));
            asked.set(asked.get() + 1);
            ready(Ok::<_, Infallible>(there.then_some(&part)))
        };
        let read = unpack_reading(&packed.index, chunk).now_or_never().unwrap().unwrap();
        (*read.unwrap_err().problem, asked.get())
    };
    let (problem, count) = asked(&mut packed, 40, true);
    assert!(matches!(problem, Problem::TooLarge { key: CHUNKS, .. }), "{problem}");
    assert_eq!(count, 28, "as many as pass the bound");
    let (problem, count) = asked(&mut packed, 40, false);
    assert_eq!((problem, count), (Problem::MissingChunk { name: "part-0".into(), number: 1, count: 40 }, 1));
    assert!(matches!(asked(&mut packed, MAX_CHUNKS, false), (Problem::MissingChunk { .. }, 1)));
    assert_eq!(asked(&mut packed, MAX_CHUNKS + 1, true), (Problem::TooManyChunks { limit: MAX_CHUNKS }, 0));
}

#[test]
fn an_invalid_package_is_refused_when_it_is_packed() {
    let refused = |name: &str, file: &PolicyFile, component: Option<&[u8]>| {
        *pack(name, "home", file, component.map(code).as_ref()).unwrap_err().problem
    };
    assert_eq!(refused("Kite", &file(), Some(b"x")), Problem::BadName);
    assert_eq!(refused(&"a".repeat(201), &file(), Some(b"x")), Problem::BadName);
    let pinned = PolicyFile { sha256: Some(Digest::of(b"y")), ..file() };
    assert!(matches!(refused("kite", &pinned, Some(b"x")), Problem::Component(_)));
    let wordy = PolicyFile { settings: json!({"a": "b".repeat(ROOM)}), ..file() };
    assert!(matches!(refused("kite", &wordy, Some(b"x")), Problem::TooLarge { key: FILE, .. }));
    assert_eq!(refused("kite", &file(), None), Problem::WithoutComponent("grants"));
    assert!(matches!(refused("kite", &file(), Some(&vec![0; 25 << 20])), Problem::Component(_)));
}

#[test]
fn a_policy_file_too_large_to_be_kept_is_refused() {
    let long = format!("name: agent\nsettings: {{image: {}}}\n", "x".repeat(300_000));
    let index: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "long", "namespace": "kaos-system", "labels": {LABEL: "package"}},
        "data": {FILE: long},
    }))
    .unwrap();
    let error = unpack(&index, |_| None::<&ConfigMap>).unwrap_err();
    assert!(matches!(*error.problem, Problem::TooLarge { key: FILE, .. }), "{error}");
}

#[test]
fn a_script_needs_no_policy_file_and_is_packed_as_text_without_a_pin() {
    let bare = index(&[(SCRIPT, "export function describe() {}")], &[]);
    let package = read(&bare).unwrap();
    assert_eq!(
        (&package.file, package.component.clone()),
        (&PolicyFile::default(), Some(script("export function describe() {}")))
    );
    assert_eq!(package.component_digest(), Some(Digest::of(b"export function describe() {}")));
    let packed = pack("kite", "home", &package.file, package.component.as_ref()).unwrap();
    let data = packed.index.data.clone().unwrap();
    assert_eq!((data[SCRIPT].as_str(), data[FILE].trim()), ("export function describe() {}", "{}"));
    assert_eq!(read(&packed).unwrap().digest(), package.digest());
}

#[test]
fn a_script_beside_a_component_an_empty_script_and_one_that_is_no_text_are_refused() {
    let both = index(&[(FILE, "{}"), (SCRIPT, "1")], &[(COMPONENT, b"x")]);
    assert_eq!(problem(&both), Problem::SeveralComponents(vec![COMPONENT, SCRIPT]));
    let empty = index(&[(SCRIPT, " \n")], &[]);
    assert!(matches!(problem(&empty), Problem::EmptyKey { key: SCRIPT, .. }));
    let binary = index(&[], &[(SCRIPT, b"\xff")]);
    let told = read(&binary).unwrap_err().to_string();
    assert!(told.contains("`policy.js` is under binaryData") && told.ends_with("save the script as UTF-8"), "{told}");
    let misspelled = index(&[("policy.jss", "1")], &[]);
    assert_eq!(problem(&misspelled), Problem::UnknownKey { key: "policy.jss".into(), hint: Some(SCRIPT) });
    let pinned = PolicyFile { sha256: Some(Digest::of(b"y")), ..PolicyFile::default() };
    let refused = pack("kite", "home", &pinned, Some(&script("x"))).unwrap_err();
    assert!(matches!(*refused.problem, Problem::Component(_)), "{refused}");
}
