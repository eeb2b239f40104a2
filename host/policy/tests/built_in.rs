//! Tests built-in code: compiled code that is part of the program's file.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used)]

use kaos_policy::{
    clock::SystemClock,
    compile::{Compilation, Compile, CompileError, Order},
    contract::Cluster,
    digest::Digest,
    engine::BuiltIn,
    gate::{AtOnce, Bounds, Candidate, Check, Gate, KnownServer, LoadError, Step},
};

/// A compiler that always fails.
struct NoCompiler;

impl Compile for NoCompiler {
    fn compile(&self, _: &Order<'_>) -> Result<Compilation, CompileError> {
        Err(CompileError::NotRun("nothing compiles here".to_owned()))
    }
}

fn component() -> Vec<u8> {
    crate::support::hostile("well-behaved")
}

/// Checks the component at a gate that has this built-in code and no working compiler.
fn check(built_in: BuiltIn) -> Check {
    check_of(built_in, component())
}

/// Like [`check`], but checks a component with these bytes.
fn check_of(built_in: BuiltIn, bytes: Vec<u8>) -> Check {
    let gate = Gate {
        engine: crate::support::engine(),
        compiler: &NoCompiler,
        built_in: &[built_in],
        script_engine: None,
        cache: None,
        bounds: Bounds::default(),
        limits: crate::support::limits(),
        kinds: &[],
        cluster: Cluster::default(),
        clock: &SystemClock::start(),
        turns: &AtOnce,
        server: &KnownServer::default(),
    };
    gate.check(&Candidate { bytes, ..Candidate::default() })
}

fn is_compiled_again(built_in: BuiltIn) -> bool {
    matches!(check(built_in).result, Err(LoadError::Compile(CompileError::NotRun(_))))
}

/// Returns built-in code with a static lifetime, like a constant of the program.
fn code(of: &Digest, made: Vec<u8>) -> BuiltIn {
    // SAFETY: some tests pass code of another component. These tests verify that the engine refuses the code before
    // loading it, or that the gate does not use the code.
    unsafe { BuiltIn::new(*of, made.leak()) }
}

#[test]
fn a_component_with_built_in_code_is_not_compiled() {
    let code = code(&Digest::of(&component()), BuiltIn::make(&component()).unwrap());
    code.fits(crate::support::engine()).unwrap();
    let check = check(code);
    assert!(check.result.is_ok(), "{:?}", check.result);
    let compile = check.steps.iter().find(|taken| taken.step == Step::Compile).unwrap();
    assert_eq!(compile.outcome, "compiled with this program");
}

#[test]
fn built_in_code_is_used_for_its_own_component_only() {
    assert!(is_compiled_again(code(&Digest::of(b"another"), BuiltIn::make(&component()).unwrap())));
}

#[test]
fn built_in_code_of_another_version_or_with_other_options_is_ignored() {
    let digest = Digest::of(&component());
    // Change only the fingerprint, so that the code itself stays valid.
    let mut of_another = BuiltIn::make(&component()).unwrap();
    of_another[0] ^= 1;
    let told = code(&digest, of_another.clone()).fits(crate::support::engine()).unwrap_err().to_string();
    assert!(told.contains("another version of the engine compiled the code"), "{told}");
    assert!(is_compiled_again(code(&digest, of_another)));
    let mut cut = BuiltIn::make(&component()).unwrap();
    cut.truncate(cut.len() / 2);
    for broken in [cut, Vec::new()] {
        assert!(code(&digest, broken.clone()).fits(crate::support::engine()).is_err());
        assert!(is_compiled_again(code(&digest, broken)));
    }
}

#[test]
fn unchecked_bytes_are_inspected_in_the_compile_child_only() {
    let code = code(&Digest::of(&component()), Vec::new());
    let check = check_of(code, crate::support::endless_types(1000));
    let steps: Vec<Step> = check.steps.iter().filter(|taken| taken.passed).map(|taken| taken.step).collect();
    assert_eq!(steps, [Step::Size, Step::Decompress, Step::Digest]);
    assert!(matches!(check.result, Err(LoadError::Compile(CompileError::NotRun(_)))), "{:?}", check.result);
}
