//! The child: the same binary under a hidden subcommand, confined before it reads a byte.

use std::{
    ffi::OsString,
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use super::{Compile, CompileError, CompileLimits};
use crate::{clock::Clock, engine::Engine};

/// The child was told something that it does not understand, or could not confine itself.
const UNUSABLE: u8 = 64;
/// The compiler refused the component; why is on standard error.
const REFUSED: u8 = 65;
/// How often the parent looks whether the child is done.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes of the child's standard error that are read.
const COMPLAINT: u64 = 4 << 10;
/// Threads that compile: each takes address space, of which a child has little.
const THREADS: usize = 4;

/// Runs a program that ends in [`compile_child_main`].
pub struct ChildCompiler<C> {
    program: PathBuf,
    arguments: Vec<OsString>,
    limits: CompileLimits,
    threads: usize,
    clock: C,
}

impl<C: Clock> ChildCompiler<C> {
    /// `program` with `arguments` must call [`compile_child_main`] with what follows these arguments.
    pub fn new(program: PathBuf, arguments: Vec<OsString>, limits: CompileLimits, clock: C) -> Self {
        let threads = thread::available_parallelism().map_or(1, |most| most.get().min(THREADS));
        Self { program, arguments, limits, threads, clock }
    }

    fn spawn(&self) -> std::io::Result<Child> {
        Command::new(&self.program)
            .args(&self.arguments)
            .args(self.limits.arguments())
            .env_clear()
            .env("RAYON_NUM_THREADS", self.threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// Waits, and ends the child when its time is up. However this ends, the child has ended.
    fn wait(&self, child: &mut Running) -> std::io::Result<Option<ExitStatus>> {
        let start = self.clock.now();
        loop {
            if let Some(status) = child.0.try_wait()? {
                return Ok(Some(status));
            }
            if self.clock.now().saturating_sub(start) > self.limits.wall {
                return Ok(None);
            }
            thread::sleep(LOOK);
        }
    }

    fn verdict(&self, status: ExitStatus, code: Vec<u8>, complaint: &str) -> Result<Vec<u8>, CompileError> {
        if status.success() {
            let limit = self.limits.code;
            return if code.len() as u64 > limit { Err(CompileError::TooMuchCode { limit }) } else { Ok(code) };
        }
        if status.code() == Some(i32::from(REFUSED)) {
            return Err(CompileError::Refused(complaint.to_owned()));
        }
        if status.code() == Some(i32::from(UNUSABLE)) {
            return Err(CompileError::NotRun(complaint.to_owned()));
        }
        match status.signal().and_then(rustix::process::Signal::from_named_raw) {
            // The kernel's way to say that the processor time is up.
            Some(rustix::process::Signal::XCPU) => Err(CompileError::TookTooLong { seconds: self.limits.cpu_seconds }),
            Some(rustix::process::Signal::KILL | rustix::process::Signal::TERM) => Err(CompileError::Killed),
            _ => Err(CompileError::Died { how: status.to_string(), memory: self.limits.memory }),
        }
    }
}

/// A child that does not outlive this. Whoever reads from it waits until it ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when it has ended, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl<C: Clock> Compile for ChildCompiler<C> {
    fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        let not_run = |error: std::io::Error| CompileError::NotRun(error.to_string());
        let mut child = Running(self.spawn().map_err(not_run)?);
        let (stdin, stdout, stderr) = (child.0.stdin.take(), child.0.stdout.take(), child.0.stderr.take());
        thread::scope(|scope| {
            // A child that dies early closes its end; what became of it is in its status.
            scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(component)));
            // One byte too many tells that it is too much.
            let code = scope.spawn(|| read(stdout, self.limits.code.saturating_add(1)));
            let complaint = scope.spawn(|| read(stderr, COMPLAINT));
            let status = self.wait(&mut child);
            // Before the readers are waited for: they end when the child does.
            drop(child);
            let code = code.join().unwrap_or_default();
            let complaint = String::from_utf8_lossy(&complaint.join().unwrap_or_default()).trim().to_owned();
            match status.map_err(not_run)? {
                Some(status) => self.verdict(status, code, &complaint),
                None => Err(CompileError::Starved { seconds: self.limits.wall.as_secs() }),
            }
        })
    }
}

fn read(pipe: Option<impl Read>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // Whatever came before an error is all there is; the status tells whether it is all there should be.
        let _ = pipe.by_ref().take(limit).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    }
    bytes
}

/// What the hidden subcommand does: confines the process as `arguments` say (bytes of memory, seconds of
/// processor time), compiles the component on standard input, writes the code to standard output.
pub fn compile_child_main(arguments: &[OsString]) -> ExitCode {
    match compile(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            let _ = writeln!(std::io::stderr(), "{message}");
            ExitCode::from(code)
        }
    }
}

fn compile(arguments: &[OsString]) -> Result<(), (u8, String)> {
    let unusable = |message: &str| (UNUSABLE, message.to_owned());
    let number = |index: usize| arguments.get(index)?.to_str()?.parse().ok();
    let (Some(memory), Some(cpu_seconds), 2) = (number(0), number(1), arguments.len()) else {
        return Err(unusable("expected bytes of memory and seconds of processor time"));
    };
    CompileLimits::confine(memory, cpu_seconds).map_err(|error| (UNUSABLE, error.to_string()))?;
    let mut component = Vec::new();
    std::io::stdin().read_to_end(&mut component).map_err(|error| (UNUSABLE, error.to_string()))?;
    let engine = Engine::compiling().map_err(|error| (UNUSABLE, error.to_string()))?;
    let code = engine.compile(&component).map_err(|error| (REFUSED, error.to_string()))?;
    std::io::stdout().write_all(&code).map_err(|error| (UNUSABLE, error.to_string()))
}
