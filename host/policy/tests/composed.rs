//! Tests components that are composed of other components. Each inner component has its own instances and its own
//! memory. A call between two inner components copies values between their memories.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use kaos_policy::{
    failure::Failure,
    gate::{Bounds, InspectError, LoadError, Part, inspect},
};
use wasm_encoder::{
    ComponentExportKind, ComponentInstanceSection, ComponentSection as _, ComponentSectionId, RawSection,
};
use wasmparser::{Parser, Payload};

use crate::support::{hostile, load};

/// Returns a component with two inner components. When the second component starts, it calls the first component with a
/// text. The first component returns the text by a tail call. If another text arrives, the second component traps. Each
/// inner component has a memory with this number of pages.
fn pair(pages: u32) -> Vec<u8> {
    let text = format!(
        r#"(component
            (component $echo
                (core module $m
                    (memory (export "memory") {pages})
                    (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
                    (func $answer (param i32 i32) (result i32)
                        (i32.store (i32.const 16) (local.get 0))
                        (i32.store (i32.const 20) (local.get 1))
                        i32.const 16)
                    (func (export "say") (param i32 i32) (result i32)
                        (return_call $answer (local.get 0) (local.get 1))))
                (core instance $i (instantiate $m))
                (func (export "say") (param "text" string) (result string)
                    (canon lift (core func $i "say") (memory $i "memory") (realloc (func $i "realloc")))))
            (component $asks
                (import "say" (func $say (param "text" string) (result string)))
                (core module $memory
                    (memory (export "memory") {pages})
                    (data (i32.const 64) "four")
                    (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 2048))
                (core instance $memory (instantiate $memory))
                (core func $say
                    (canon lower (func $say) (memory $memory "memory") (realloc (func $memory "realloc"))))
                (core module $m
                    (import "say" "say" (func $say (param i32 i32 i32)))
                    (import "memory" "memory" (memory 1))
                    (func $start
                        (call $say (i32.const 64) (i32.const 4) (i32.const 32))
                        (if (i32.ne (i32.load (i32.load (i32.const 32))) (i32.load (i32.const 64)))
                            (then unreachable))
                        (if (i32.ne (i32.load (i32.const 36)) (i32.const 4)) (then unreachable)))
                    (start $start))
                (core instance (instantiate $m
                    (with "say" (instance (export "say" (func $say))))
                    (with "memory" (instance $memory)))))
            (instance $echo (instantiate $echo))
            (instance (instantiate $asks (with "say" (func $echo "say")))))"#
    );
    wat::parse_str(text).unwrap()
}

/// Returns the well-behaved policy with other components inside of the policy. The policy instantiates these
/// components.
fn with_policy(others: &[Vec<u8>]) -> Vec<u8> {
    let mut whole = hostile("well-behaved");
    let first = own_components(&whole);
    let mut instances = ComponentInstanceSection::new();
    for (component, other) in (first..).zip(others) {
        RawSection { id: ComponentSectionId::Component.into(), data: other }.append_to_component(&mut whole);
        instances.instantiate::<[(&str, ComponentExportKind, u32); 0], &str>(component, []);
    }
    instances.append_to_component(&mut whole);
    whole
}

/// Returns the number of components directly inside of a component.
fn own_components(component: &[u8]) -> u32 {
    let (mut level, mut count) = (0, 0);
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::ComponentSection { .. } if level == 1 => count += 1,
            Payload::Version { .. } => level += 1,
            Payload::End(_) => level -= 1,
            _ => {}
        }
    }
    count
}

#[test]
fn a_composed_policy_passes_the_gate() {
    let policy = load(with_policy(&[pair(1)])).unwrap();
    assert_eq!(policy.id().name, "hostile");
}

#[test]
fn the_memories_of_all_parts_together_have_the_limit_of_one_pass() {
    // Each of the two memories has 20 MiB, and the limit is 32 MiB.
    let error = load(with_policy(&[pair(320)])).unwrap_err();
    let LoadError::Instantiate(Failure::OutOfMemory { wanted, .. }) = error else { panic!("{error:?}") };
    assert!(wanted > 40 << 20, "{wanted}");
}

#[test]
fn memories_and_tables_of_all_parts_are_counted() {
    let refused = |component: &[u8]| inspect(component, &Bounds::default()).unwrap_err();
    let error = refused(&with_policy(&[pair(1), pair(1)]));
    assert_eq!(error, InspectError::TooMany { part: Part::Memories, count: 5, limit: 4 });
    let many = |item: &str| wat::parse_str(format!("(component (core module {}))", item.repeat(100))).unwrap();
    assert!(matches!(refused(&many("(memory 1)")), InspectError::TooMany { part: Part::Memories, .. }));
    assert!(matches!(refused(&many("(table 1 funcref)")), InspectError::TooMany { part: Part::Tables, .. }));
}

#[test]
fn data_and_element_segments_of_all_parts_are_counted() {
    let inspected = |count: usize| {
        let half = "(data \"\")".repeat(count / 2);
        let rest = "(data \"\")".repeat(count.div_ceil(2));
        let component = wat::parse_str(format!("(component (core module {half}) (core module {rest}))")).unwrap();
        inspect(&component, &Bounds::default())
    };
    let error = inspected(65_537).unwrap_err();
    assert_eq!(error, InspectError::TooMany { part: Part::Segments, count: 65_537, limit: 65_536 });
    assert!(!matches!(inspected(65_536), Err(InspectError::TooMany { .. })));
}

#[test]
fn a_component_with_more_instances_than_a_sandbox_has_is_refused() {
    let instances = "(core instance (instantiate $m))".repeat(100);
    let many = wat::parse_str(format!("(component (core module $m) {instances})")).unwrap();
    assert!(load(with_policy(&[many])).is_err());
}
