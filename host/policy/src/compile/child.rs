//! The compile child: the same binary with a hidden subcommand. The child limits its own resources before it reads a
//! byte.
//!
//! The child first writes the result of the inspection, as a line of JSON, and later the compiled code. So if the time
//! is up, the parent knows whether the inspection or the compilation took too long.

use std::{
    ffi::OsString,
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{Compilation, Compile, CompileError, CompileLimits, Order, resident};
use crate::{
    clock::{Clock, SystemClock},
    engine::Engine,
    inspect::{Bounds, InspectError, Inspection, inspect},
};

/// The exit code of a child that did not understand its arguments or could not set its limits.
const UNUSABLE: u8 = 64;
/// The exit code if the compiler refused the component. The reason is on standard error.
const REFUSED: u8 = 65;
/// The exit code if the bytes are not a policy. The reason is on standard output.
const UNFIT: u8 = 66;
/// The interval at which the parent checks whether the child has ended, and how much memory the child uses.
const LOOK: Duration = Duration::from_millis(5);
/// The maximum number of bytes that the parent reads from the child's standard error.
const COMPLAINT: u64 = 4 << 10;
/// The maximum length of the line with the inspection's result, in bytes.
const HEADER: u64 = 4 << 20;
/// The maximum number of compiler threads. Each thread takes memory, and the child's memory is limited.
const THREADS: usize = 4;

/// The result of inspecting a component, which the child sends before the compilation.
#[derive(Serialize, Deserialize)]
struct Header {
    inspection: Inspection,
    inspecting: Duration,
}

/// Compiles in a child process: runs a program that calls [`compile_child_main`].
pub struct ChildCompiler<C> {
    program: PathBuf,
    arguments: Vec<OsString>,
    limits: CompileLimits,
    threads: usize,
    clock: C,
}

impl<C: Clock> ChildCompiler<C> {
    /// Creates a compiler that runs `program` with `arguments`. The program must pass all further arguments to
    /// [`compile_child_main`].
    pub fn new(program: PathBuf, arguments: Vec<OsString>, limits: CompileLimits, clock: C) -> Self {
        let threads = thread::available_parallelism().map_or(1, |most| most.get().min(THREADS));
        Self { program, arguments, limits, threads, clock }
    }

    fn spawn(&self, bounds: &Bounds) -> std::io::Result<Child> {
        Command::new(&self.program)
            .args(&self.arguments)
            .args(self.limits.arguments())
            .arg(serde_json::to_string(bounds)?)
            .env_clear()
            .env("RAYON_NUM_THREADS", self.threads.to_string())
            // The kernel limits the child's address space. So the allocator of `kaos-operator` must not reserve a
            // gigabyte at its start, as it does by default.
            .env("MIMALLOC_ARENA_RESERVE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// Waits until the child ends, exceeds a limit of memory or time, or the caller no longer needs the result.
    fn wait(&self, child: &mut Running, is_wanted: &dyn Fn() -> bool) -> Result<ExitStatus, CompileError> {
        let start = self.clock.now();
        loop {
            if let Some(status) = child.0.try_wait().map_err(|error| not_run(&error))? {
                return Ok(status);
            }
            if !is_wanted() {
                return Err(CompileError::Unwanted);
            }
            if resident::memory(child.0.id()).is_some_and(|bytes| bytes > self.limits.memory) {
                return Err(CompileError::TooMuchMemory { limit: self.limits.memory });
            }
            if self.clock.now().saturating_sub(start) > self.limits.wall {
                return Err(CompileError::Starved { seconds: self.limits.wall.as_secs() });
            }
            thread::sleep(LOOK);
        }
    }

    fn verdict(&self, status: ExitStatus, told: Vec<u8>, complaint: &str) -> Result<Compilation, CompileError> {
        let garbled = |_| CompileError::NotRun("the output of the compile child is malformed".to_owned());
        if status.code() == Some(i32::from(UNFIT)) {
            return Err(serde_json::from_slice::<InspectError>(&told).map_err(garbled)?.into());
        }
        if status.code() == Some(i32::from(REFUSED)) {
            return Err(CompileError::Refused(complaint.to_owned()));
        }
        if status.code() == Some(i32::from(UNUSABLE)) {
            return Err(CompileError::NotRun(complaint.to_owned()));
        }
        let header = told.iter().position(|byte| *byte == b'\n');
        if !status.success() {
            return Err(self.ended_by(status, header.is_some()));
        }
        let (header, mut code) = (header.unwrap_or_default(), told);
        let Header { inspection, inspecting } =
            serde_json::from_slice(code.get(..header).unwrap_or_default()).map_err(garbled)?;
        code.drain(..=header);
        let limit = self.limits.code;
        if code.len() as u64 > limit {
            return Err(CompileError::TooMuchCode { limit });
        }
        Ok(Compilation { inspection, inspecting, code })
    }

    /// Returns the error for a child that ended without a result.
    fn ended_by(&self, status: ExitStatus, was_inspected: bool) -> CompileError {
        match status.signal().and_then(rustix::process::Signal::from_named_raw) {
            // The kernel sends this signal when the child has used up its processor time.
            Some(rustix::process::Signal::XCPU) if was_inspected => {
                CompileError::TookTooLong { seconds: self.limits.cpu_seconds }
            }
            Some(rustix::process::Signal::XCPU) => {
                InspectError::TookTooLong { seconds: self.limits.inspecting() }.into()
            }
            Some(rustix::process::Signal::KILL | rustix::process::Signal::TERM) => CompileError::Killed,
            _ => CompileError::Died { how: status.to_string(), memory: self.limits.memory },
        }
    }
}

fn not_run(error: &std::io::Error) -> CompileError {
    CompileError::NotRun(error.to_string())
}

/// A running child. Dropping this handle kills the child. Threads that read the child's pipes wait until the child
/// ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Ignore the errors: both calls fail if the child has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl<C: Clock> Compile for ChildCompiler<C> {
    fn compile(&self, order: &Order<'_>) -> Result<Compilation, CompileError> {
        let mut child = Running(self.spawn(&order.bounds).map_err(|error| not_run(&error))?);
        let (stdin, stdout, stderr) = (child.0.stdin.take(), child.0.stdout.take(), child.0.stderr.take());
        let component = order.component;
        thread::scope(|scope| {
            // A child that ends early closes its pipe. Ignore the error here: the exit status gives the reason.
            scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(component)));
            // Read one byte more than the limit, to detect code that is too large.
            let told = scope.spawn(|| read(stdout, self.limits.code.saturating_add(HEADER)));
            let complaint = scope.spawn(|| read(stderr, COMPLAINT));
            let status = self.wait(&mut child, order.is_wanted);
            // Drop the child before joining the reading threads: these threads end only when the child ends.
            drop(child);
            let told = told.join().unwrap_or_default();
            let complaint = String::from_utf8_lossy(&complaint.join().unwrap_or_default()).trim().to_owned();
            self.verdict(status?, told, &complaint)
        })
    }
}

fn read(pipe: Option<impl Read>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // After a read error, keep the bytes so far: the exit status shows whether the output is complete.
        let _ = pipe.by_ref().take(limit).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    }
    bytes
}

/// Runs the hidden subcommand. `arguments` contain the limits: bytes of memory, seconds of processor time for the
/// inspection and in total, the niceness, and the bounds of a component. Applies the limits to this process. After
/// that, inspects and compiles the component on standard input, and writes the inspection and the code to standard
/// output.
pub fn compile_child_main(arguments: &[OsString]) -> ExitCode {
    match compile(arguments) {
        Ok(code) => code,
        Err((code, message)) => {
            let _ = writeln!(std::io::stderr(), "{message}");
            ExitCode::from(code)
        }
    }
}

fn compile(arguments: &[OsString]) -> Result<ExitCode, (u8, String)> {
    let unusable = |error: &dyn std::fmt::Display| (UNUSABLE, error.to_string());
    let Some((memory, inspecting, cpu_seconds, niceness, bounds)) = understood(arguments) else {
        return Err(unusable(
            &"expected bytes of memory, two limits in seconds of processor time, niceness, and bounds",
        ));
    };
    CompileLimits::confine(memory, inspecting, cpu_seconds, niceness).map_err(|error| unusable(&error))?;
    let mut component = Vec::new();
    std::io::stdin().read_to_end(&mut component).map_err(|error| unusable(&error))?;
    let clock = SystemClock::start();
    let inspection = match inspect(&component, &bounds) {
        Ok(inspection) => inspection,
        Err(error) => {
            serde_json::to_writer(std::io::stdout(), &error).map_err(|error| unusable(&error))?;
            return Ok(ExitCode::from(UNFIT));
        }
    };
    let header = Header { inspection, inspecting: clock.now() };
    let header = serde_json::to_string(&header).map_err(|error| unusable(&error))? + "\n";
    let mut out = std::io::stdout();
    out.write_all(header.as_bytes()).and_then(|()| out.flush()).map_err(|error| unusable(&error))?;
    CompileLimits::go_on(cpu_seconds).map_err(|error| unusable(&error))?;
    let engine = Engine::compiling().map_err(|error| unusable(&error))?;
    let code = engine.compile(&component).map_err(|error| (REFUSED, error.to_string()))?;
    out.write_all(&code).and_then(|()| out.flush()).map_err(|error| unusable(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn understood(arguments: &[OsString]) -> Option<(u64, u64, u64, i32, Bounds)> {
    let [memory, inspecting, cpu_seconds, niceness, bounds] = arguments else { return None };
    let number = |text: &OsString| text.to_str()?.parse().ok();
    let bounds = serde_json::from_str(bounds.to_str()?).ok()?;
    let niceness = niceness.to_str()?.parse().ok()?;
    Some((number(memory)?, number(inspecting)?, number(cpu_seconds)?, niceness, bounds))
}
