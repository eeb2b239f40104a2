//! Code that came with the program, instead of what a compiler makes each time.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used)]

mod support;

use kaos_policy::{
    clock::SystemClock,
    compile::{Compilation, Compile, CompileError, Order},
    contract::Cluster,
    digest::Digest,
    engine::BuiltIn,
    gate::{AtOnce, Bounds, Candidate, Check, Gate, Known, LoadError, Step},
};

/// There is nothing that compiles.
struct NoCompiler;

impl Compile for NoCompiler {
    fn compile(&self, _: &Order<'_>) -> Result<Compilation, CompileError> {
        Err(CompileError::NotRun("nothing compiles here".to_owned()))
    }
}

fn component() -> Vec<u8> {
    support::hostile("well-behaved")
}

/// The component, at a gate that has this code and no compiler.
fn check(built_in: BuiltIn) -> Check {
    check_of(built_in, component())
}

/// Another component, at the same gate.
fn check_of(built_in: BuiltIn, bytes: Vec<u8>) -> Check {
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
        turns: &AtOnce,
        server: &Known::default(),
    };
    gate.check(&Candidate { bytes, ..Candidate::default() })
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

#[test]
fn bytes_that_nobody_vouched_for_are_not_looked_into_where_they_are_not_compiled() {
    let code = code(&Digest::of(&component()), Vec::new());
    let check = check_of(code, support::endless_types(1000));
    let steps: Vec<Step> = check.steps.iter().filter(|taken| taken.passed).map(|taken| taken.step).collect();
    assert_eq!(steps, [Step::Size, Step::Decompress, Step::Digest]);
    assert!(matches!(check.result, Err(LoadError::Compile(CompileError::NotRun(_)))), "{:?}", check.result);
}
