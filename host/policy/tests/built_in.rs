//! Code that came with the program, instead of what a compiler makes each time.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use kaos_policy::{
    clock::SystemClock,
    compile::{Compile, CompileError},
    contract::Cluster,
    digest::Digest,
    engine::{BuiltIn, Engine},
    gate::{Bounds, Candidate, Check, Gate, LoadError, Step},
};

/// There is nothing that compiles.
struct None;

impl Compile for None {
    fn compile(&self, _: &[u8]) -> Result<Vec<u8>, CompileError> {
        Err(CompileError::NotRun("nothing compiles here".to_owned()))
    }
}

fn check(built_in: &[BuiltIn]) -> Check {
    let gate = Gate {
        engine: support::engine(),
        compiler: &None,
        built_in,
        cache: Option::None,
        bounds: Bounds::default(),
        limits: support::limits(),
        cluster: Cluster::default(),
        clock: &SystemClock::start(),
    };
    gate.check(&Candidate { bytes: support::hostile("well-behaved"), ..Candidate::default() })
}

/// As a program holds it.
fn packed(code: &[u8]) -> &'static [u8] {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(code).unwrap();
    packed.finish().unwrap().leak()
}

/// Code for every machine of this architecture.
fn portable() -> &'static [u8] {
    let code = Engine::portable().unwrap().compile(&support::hostile("well-behaved")).unwrap();
    packed(&code)
}

#[test]
fn a_component_whose_code_came_with_the_program_is_not_compiled() {
    // SAFETY: it was made by the engine, just now.
    let code = unsafe { BuiltIn::new(Digest::of(&support::hostile("well-behaved")), portable()) };
    code.fits(support::engine()).unwrap();
    let check = check(&[code]);
    assert!(check.result.is_ok(), "{:?}", check.result);
    let compile = check.steps.iter().find(|taken| taken.step == Step::Compile).unwrap();
    assert_eq!(compile.outcome, "compiled with this program");
}

#[test]
fn code_is_for_its_component_alone() {
    // SAFETY: it was made by the engine, just now.
    let code = unsafe { BuiltIn::new(Digest::of(b"another"), portable()) };
    let refused = check(&[code]).result.unwrap_err();
    assert!(matches!(refused, LoadError::Compile(CompileError::NotRun(_))), "{refused:?}");
}

#[test]
fn code_that_the_engine_does_not_take_is_as_if_it_were_not_there() {
    for code in [packed(b"of another version"), b"not packed"] {
        // SAFETY: it is no code, and that is seen.
        let code = unsafe { BuiltIn::new(Digest::of(&support::hostile("well-behaved")), code) };
        assert!(code.fits(support::engine()).is_err());
        let refused = check(&[code]).result.unwrap_err();
        assert!(matches!(refused, LoadError::Compile(CompileError::NotRun(_))), "{refused:?}");
    }
}
