//! Code that came with the program, instead of what a compiler makes each time.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used)]

mod support;

use kaos_policy::{
    clock::SystemClock,
    compile::{Compile, CompileError},
    contract::Cluster,
    digest::Digest,
    engine::BuiltIn,
    gate::{Bounds, Candidate, Check, Gate, LoadError, Step},
};

/// There is nothing that compiles.
struct NoCompiler;

impl Compile for NoCompiler {
    fn compile(&self, _: &[u8]) -> Result<Vec<u8>, CompileError> {
        Err(CompileError::NotRun("nothing compiles here".to_owned()))
    }
}

fn component() -> Vec<u8> {
    support::hostile("well-behaved")
}

/// The component, at a gate that has this code and no compiler.
fn check(built_in: BuiltIn) -> Check {
    let gate = Gate {
        engine: support::engine(),
        compiler: &NoCompiler,
        built_in: &[built_in],
        cache: None,
        bounds: Bounds::default(),
        limits: support::limits(),
        kinds: &[],
        cluster: Cluster::default(),
        clock: &SystemClock::start(),
    };
    gate.check(&Candidate { bytes: component(), ..Candidate::default() })
}

fn is_compiled_anew(built_in: BuiltIn) -> bool {
    matches!(check(built_in).result, Err(LoadError::Compile(CompileError::NotRun(_))))
}

/// What a program would hold.
fn code(of: &Digest, made: Vec<u8>) -> BuiltIn {
    // SAFETY: what is not what the engine made of this component is refused before it is loaded, or never asked for; the
    // tests see to that.
    unsafe { BuiltIn::new(*of, made.leak()) }
}

#[test]
fn a_component_whose_code_came_with_the_program_is_not_compiled() {
    let code = code(&Digest::of(&component()), BuiltIn::make(&component()).unwrap());
    code.fits(support::engine()).unwrap();
    let check = check(code);
    assert!(check.result.is_ok(), "{:?}", check.result);
    let compile = check.steps.iter().find(|taken| taken.step == Step::Compile).unwrap();
    assert_eq!(compile.outcome, "compiled with this program");
}

#[test]
fn code_is_for_its_component_alone() {
    assert!(is_compiled_anew(code(&Digest::of(b"another"), BuiltIn::make(&component()).unwrap())));
}

#[test]
fn code_of_another_version_or_with_other_options_is_as_if_it_were_not_there() {
    let digest = Digest::of(&component());
    // The head says who made it: the code itself is as good as before.
    let mut of_another = BuiltIn::make(&component()).unwrap();
    of_another[0] ^= 1;
    let told = code(&digest, of_another.clone()).fits(support::engine()).unwrap_err().to_string();
    assert!(told.contains("made by another version"), "{told}");
    assert!(is_compiled_anew(code(&digest, of_another)));
    let mut cut = BuiltIn::make(&component()).unwrap();
    cut.truncate(cut.len() / 2);
    for broken in [cut, Vec::new()] {
        assert!(code(&digest, broken.clone()).fits(support::engine()).is_err());
        assert!(is_compiled_anew(code(&digest, broken)));
    }
}
