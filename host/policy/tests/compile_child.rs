//! Tests of the compile child: the engine can load the child's code, and the child cannot exceed its limits. These
//! tests have their own executable, because the child runs the executable of the test with a hidden argument.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    ffi::OsString,
    fs::Permissions,
    io::{ErrorKind, Write as _},
    os::unix::{fs::PermissionsExt as _, process::ExitStatusExt as _},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use kaos_policy::{
    cache::Cache,
    clock::SystemClock,
    compile::{ChildCompiler, Compilation, Compile, CompileError, CompileLimits, Order, compile_child_main},
    contract::Cluster,
    gate::{AtOnce, Bounds, Candidate, Check, Gate, InspectError, KnownServer, LoadError, Step},
};

/// The tests use the allocator of `kaos-operator`, because the limits of a child must hold with this allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "compile-child" => return compile_child_main(rest),
        Some((first, _)) if first == "killed-child" => {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            return ExitCode::SUCCESS;
        }
        Some((first, _)) if first == "--list" => return ExitCode::SUCCESS,
        _ => {}
    }
    for (name, test) in TESTS {
        println!("test {name} ...");
        test();
    }
    ExitCode::SUCCESS
}

const TESTS: [(&str, fn()); 13] = [
    ("a_policy_compiled_in_a_child_passes_the_gate", a_policy_compiled_in_a_child_passes_the_gate),
    ("a_bomb_is_stopped_at_its_time_limit", a_bomb_is_stopped_at_its_time_limit),
    ("a_bomb_is_stopped_at_its_memory_limit", a_bomb_is_stopped_at_its_memory_limit),
    ("the_kernel_refuses_memory_to_a_child_without_a_parent", the_kernel_refuses_memory_to_a_child_without_a_parent),
    (
        "types_that_take_for_ever_to_compare_are_stopped_in_time",
        types_that_take_for_ever_to_compare_are_stopped_in_time,
    ),
    ("a_component_that_is_no_longer_wanted_is_not_compiled", a_component_that_is_no_longer_wanted_is_not_compiled),
    ("a_compile_child_runs_with_a_lower_priority", a_compile_child_runs_with_a_lower_priority),
    (
        "a_compile_child_of_a_waiting_parent_has_the_same_priority",
        a_compile_child_of_a_waiting_parent_has_the_same_priority,
    ),
    ("code_without_end_is_not_read", code_without_end_is_not_read),
    ("a_killed_child_says_nothing_about_its_component", a_killed_child_says_nothing_about_its_component),
    ("a_failed_compilation_has_a_reason", a_failed_compilation_has_a_reason),
    ("a_changed_cache_entry_is_ignored", a_changed_cache_entry_is_ignored),
    ("a_cache_that_other_users_may_access_is_refused", a_cache_that_other_users_may_access_is_refused),
];

fn compiler(limits: CompileLimits) -> ChildCompiler<SystemClock> {
    let program = std::env::current_exe().unwrap();
    ChildCompiler::new(program, vec!["compile-child".into()], limits, SystemClock::start())
}

/// Returns a policy with functions of a few hundred kilobytes, which keep a compiler busy for many seconds on any
/// machine.
fn bomb() -> Vec<u8> {
    const FUNCTIONS: usize = 24;
    let mut function = String::from("(func (param i32) (result i32) (local.get 0)");
    for i in 0..150_000 {
        function.push_str(if i % 2 == 0 { "(i32.load (i32.const 0)) i32.add" } else { "(i32.mul (local.get 0))" });
    }
    function.push(')');
    let module = wat::parse_str(format!("(module {} (memory 1))", function.repeat(FUNCTIONS))).unwrap();
    let mut bomb = support::hostile("well-behaved");
    wasm_encoder::Section::append_to(&wasm_encoder::RawSection { id: CORE_MODULE, data: &module }, &mut bomb);
    bomb
}

/// The ID of a component's section that contains a core module.
const CORE_MODULE: u8 = 1;

fn check(cache: Option<&Cache>, compiler: &dyn Compile) -> Check {
    let gate = Gate {
        engine: support::engine(),
        compiler,
        built_in: &[],
        script_engine: None,
        cache,
        bounds: Bounds::default(),
        limits: support::limits(),
        kinds: &[],
        cluster: Cluster::default(),
        clock: &SystemClock::start(),
        turns: &AtOnce,
        server: &KnownServer::default(),
    };
    gate.check(&Candidate { bytes: support::hostile("well-behaved"), ..Candidate::default() })
}

/// Compiles a component, without bounds for the size of the component and of its functions.
fn unbounded(limits: CompileLimits, component: &[u8]) -> Result<Compilation, CompileError> {
    let bounds = Bounds { bytes: usize::MAX, function_bytes: u64::MAX, ..Bounds::default() };
    compiler(limits).compile(&Order { bounds, ..Order::new(component) })
}

fn a_policy_compiled_in_a_child_passes_the_gate() {
    let check = check(None, &compiler(CompileLimits::default()));
    assert!(check.result.is_ok(), "{:?}", check.result);
    let steps: Vec<_> = check.steps.iter().map(|taken| taken.step).collect();
    assert_eq!(steps.first(), Some(&Step::Size));
    assert_eq!(steps.last(), Some(&Step::Conformance));
    assert!(check.steps.iter().all(|taken| taken.passed));
}

fn a_bomb_is_stopped_at_its_time_limit() {
    let limits = CompileLimits { cpu_seconds: 1, memory: 4 << 30, ..CompileLimits::default() };
    // If a compilation unexpectedly succeeds, the test prints only the length of the code.
    let error = |limits, bomb: &[u8]| unbounded(limits, bomb).map(|made| made.code.len()).unwrap_err();
    let bomb = bomb();
    assert_eq!(error(limits, &bomb), CompileError::TookTooLong { seconds: 1 });
    let limits = CompileLimits { wall: Duration::from_millis(50), memory: 4 << 30, ..CompileLimits::default() };
    let starved = error(limits, &bomb);
    assert_eq!(starved, CompileError::Starved { seconds: 0 });
    assert!(!starved.is_lasting(), "if the machine had no free processor, another attempt may succeed");
}

fn a_bomb_is_stopped_at_its_memory_limit() {
    let limits = CompileLimits { memory: 64 << 20, ..CompileLimits::default() };
    let error = unbounded(limits, &bomb()).map(|made| made.code.len()).unwrap_err();
    assert_eq!(error, CompileError::TooMuchMemory { limit: limits.memory });
    assert!(error.is_lasting(), "another attempt would take as much memory");
}

fn the_kernel_refuses_memory_to_a_child_without_a_parent() {
    let bounds = Bounds { bytes: usize::MAX, function_bytes: u64::MAX, ..Bounds::default() };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["compile-child", "1", "30", "30", "0", &serde_json::to_string(&bounds).unwrap()])
        .env("MIMALLOC_ARENA_RESERVE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The child may end before it has read all bytes.
    let _ = child.stdin.take().unwrap().write_all(&bomb());
    let status = child.wait().unwrap();
    let aborted = rustix::process::Signal::ABORT.as_raw();
    assert!(status.signal() == Some(aborted) || status.code().is_some_and(|code| code != 0), "{status}");
}

fn types_that_take_for_ever_to_compare_are_stopped_in_time() {
    let limits = CompileLimits { inspect_seconds: 1, ..CompileLimits::default() };
    let error = compiler(limits).compile(&Order::new(&support::endless_types(500))).map(|made| made.code.len());
    assert_eq!(error, Err(CompileError::Inspect(InspectError::TookTooLong { seconds: 1 })));
    let error = LoadError::from(error.unwrap_err());
    assert_eq!((error.step(), error.reason(), error.is_lasting()), (Step::Inspect, "TypesTooCostly", true));
}

fn a_component_that_is_no_longer_wanted_is_not_compiled() {
    let limits = CompileLimits { memory: 4 << 30, ..CompileLimits::default() };
    let bounds = Bounds { bytes: usize::MAX, function_bytes: u64::MAX, ..Bounds::default() };
    let (bomb, asked) = (bomb(), std::cell::Cell::new(0));
    let is_wanted = || asked.replace(asked.get() + 1) < 3;
    let error = compiler(limits).compile(&Order { component: &bomb, bounds, is_wanted: &is_wanted });
    let error = error.map(|made| made.code.len()).unwrap_err();
    assert_eq!((&error, asked.get()), (&CompileError::Unwanted, 4));
    assert!(!error.is_lasting(), "if the check was stopped, another attempt may succeed");
}

/// Returns the parent and the niceness of a process, as the kernel reports them. `None` if the process has ended.
fn parent_and_niceness(process: &str) -> Option<(u32, i32)> {
    let told = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the program's name in brackets. The name can contain spaces and brackets, so search for the
    // last bracket.
    let fields: Vec<&str> = told.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.get(1)?.parse().ok()?, fields.get(16)?.parse().ok()?))
}

/// Checks that the niceness of a compile child is the niceness of this process plus `more`.
fn runs_with(limits: CompileLimits, more: i32) {
    let limits = CompileLimits { memory: 4 << 30, cpu_seconds: 5, ..limits };
    let bounds = Bounds { bytes: usize::MAX, function_bytes: u64::MAX, ..Bounds::default() };
    let (_, own) = parent_and_niceness("self").unwrap();
    let children = || {
        let processes =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let told = processes.filter_map(|process| parent_and_niceness(&process));
        told.filter(|(parent, _)| *parent == std::process::id()).map(|(_, niceness)| niceness).max()
    };
    let (bomb, seen, asked) = (bomb(), std::cell::Cell::new(None), std::cell::Cell::new(0));
    let expected = Some((own + more).min(19));
    // A child starts with the niceness of its parent, so look several times.
    let is_wanted = || {
        asked.set(asked.get() + 1);
        seen.set(seen.get().max(children()));
        asked.get() < 50 || seen.get() < expected
    };
    let error = compiler(limits).compile(&Order { component: &bomb, bounds, is_wanted: &is_wanted });
    let error = error.map(|made| made.code.len()).unwrap_err();
    assert_eq!((error, seen.get()), (CompileError::Unwanted, expected));
}

fn a_compile_child_runs_with_a_lower_priority() {
    runs_with(CompileLimits::default(), 10);
}

fn a_compile_child_of_a_waiting_parent_has_the_same_priority() {
    runs_with(CompileLimits::default().awaited(), 0);
}

fn code_without_end_is_not_read() {
    let component = support::hostile("well-behaved");
    let within = |code: u64| {
        let compiler = compiler(CompileLimits { code, ..CompileLimits::default() });
        compiler.compile(&Order::new(&component)).map(|made| made.code.len() as u64)
    };
    let code = within(CompileLimits::default().code).unwrap();
    assert_eq!(within(code), Ok(code));
    assert_eq!(within(code - 1), Err(CompileError::TooMuchCode { limit: code - 1 }));
}

fn a_killed_child_says_nothing_about_its_component() {
    let program = std::env::current_exe().unwrap();
    let killed =
        ChildCompiler::new(program, vec!["killed-child".into()], CompileLimits::default(), SystemClock::start());
    let error = killed.compile(&Order::new(b"")).unwrap_err();
    assert_eq!(error, CompileError::Killed);
    assert!(!error.is_lasting());
}

fn a_failed_compilation_has_a_reason() {
    let error = compiler(CompileLimits::default()).compile(&Order::new(b"no component")).unwrap_err();
    assert_eq!(error, CompileError::Inspect(InspectError::NotWasm));
    let program = std::env::current_exe().unwrap().with_file_name("no-such-program");
    let missing = ChildCompiler::new(program, Vec::new(), CompileLimits::default(), SystemClock::start());
    assert!(matches!(missing.compile(&Order::new(b"")), Err(CompileError::NotRun(_))));
}

fn a_changed_cache_entry_is_ignored() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let _ = std::fs::remove_dir_all(&directory);
    let outcome = |cache: &Cache| {
        let check = check(Some(cache), &compiler(CompileLimits::default()));
        assert!(check.result.is_ok());
        check.steps.into_iter().find(|taken| taken.step == Step::Compile).unwrap().outcome
    };
    let open = || Cache::open(directory.clone()).unwrap();
    assert_ne!(outcome(&open()), "from the cache");
    assert_eq!(outcome(&open()), "from the cache");
    let entries = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let entry = entries.into_iter().find(|path| path.extension().is_some_and(|end| end == "code")).unwrap();
    let mut bytes = std::fs::read(&entry).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&entry, bytes).unwrap();
    assert_ne!(outcome(&open()), "from the cache");
    // With a new key, no entry has a valid tag.
    std::fs::remove_file(directory.join("key")).unwrap();
    assert_ne!(outcome(&open()), "from the cache");
}

fn a_cache_that_other_users_may_access_is_refused() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("open-cache");
    let _ = std::fs::remove_dir_all(&directory);
    let allow = |path: &std::path::Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let refused = || Cache::open(directory.clone()).unwrap_err().kind();
    drop(Cache::open(directory.clone()).unwrap());
    allow(&directory.join("key"), 0o640);
    assert_eq!(refused(), ErrorKind::PermissionDenied);
    allow(&directory.join("key"), 0o600);
    allow(&directory, 0o770);
    assert_eq!(refused(), ErrorKind::PermissionDenied);
    allow(&directory, 0o700);
    assert!(Cache::open(directory.clone()).is_ok());
    std::fs::write(directory.join("key"), "short").unwrap();
    assert_eq!(refused(), ErrorKind::InvalidData);
}
