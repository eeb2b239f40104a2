//! Runs the real binary.
// Each test executable uses only a part of this file.
#![allow(dead_code)]

use std::{
    ffi::OsStr,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

/// The result of a run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.stdout, self.stderr))
    }
}

/// The path of the binary.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kaos-operator");

/// Returns the binary as a command, with an environment that contains no settings. All runs share one cache of compiled
/// code, like the runs of one user.
pub(crate) fn binary() -> Command {
    isolated(PROGRAM)
}

/// Returns a program as a command, with the same environment as [`binary`].
pub(crate) fn isolated(program: &str) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

pub(crate) fn run(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>, stdin: &str) -> Ran {
    finish(binary().args(arguments), stdin)
}

pub(crate) fn finish(command: &mut Command, stdin: &str) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut input = child.stdin.take().expect("a pipe");
    let text = stdin.to_owned();
    // Write the input in a thread: otherwise a long input and a long output would block each other.
    let writer = std::thread::spawn(move || drop(input.write_all(text.as_bytes())));
    let output = child.wait_with_output().expect("the binary ends");
    writer.join().expect("the input is written");
    ran(output)
}

/// Runs the binary with the given standard output.
pub(crate) fn run_into(stdout: Stdio, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    let mut command = binary();
    command.args(arguments).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    ran(command.output().expect("the binary ends"))
}

fn ran(output: Output) -> Ran {
    let Output { status, stdout, stderr } = output;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the output is UTF-8");
    Ran { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
}

/// Returns a pipe as standard output. The pipe's reader is already closed.
pub(crate) fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// Returns a standard output that behaves like a file on a full disk.
pub(crate) fn full() -> Stdio {
    std::fs::File::options().write(true).open("/dev/full").expect("a full device").into()
}

/// Returns whether child processes ignore this signal from their start. A shell without job control makes background
/// jobs ignore interrupts, and `nohup` makes a program ignore hangups. Child processes inherit the ignored signals.
pub(crate) fn ignores(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// Checks the JSON that a command printed against the command's published schema.
pub(crate) fn fits(verb: &str, answer: &serde_json::Value) {
    let path = format!("{}/../../docs/reference/output/{verb}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(answer).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{verb}: {errors:?} in {answer:#}");
}

/// A directory that is deleted at the end of the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        // Make the path unique: two tests of one process can use the same name.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{made}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder for the file");
        std::fs::write(&path, content).expect("the file is written");
        path.display().to_string()
    }

    pub(crate) fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
