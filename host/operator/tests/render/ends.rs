//! Tests that `render` ends without an error message if the reader of its output goes away, and that an interrupt ends
//! `render` at once.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::{Duration, Instant},
};

use super::{LLM, READY, writer};
use crate::support::{Folder, binary, ignores, run_into, unread};

#[test]
fn render_succeeds_if_its_reader_goes_away() {
    let mut input = LLM.to_owned() + READY;
    for number in 0..200 {
        input += &format!("---\n{}", writer(&format!("a{number}")));
    }
    let folder = Folder::new("pipe");
    let file = folder.write("a.yaml", input);
    let mut child =
        binary().args(["render", "-f", &file]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let output = child.wait_with_output().expect("ends");
    assert!(line.starts_with("# "), "{line}");
    assert_eq!(output.status.code(), Some(0));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.lines().all(|line| line.starts_with("note: ")), "{stderr}");
}

#[test]
fn render_of_a_waiting_object_ends_with_1_without_a_reader() {
    let folder = Folder::new("unread");
    let file = folder.write("a.yaml", format!("{LLM}---\n{}", writer("writer")));
    for form in ["yaml", "json", "table"] {
        let ran = run_into(unread(), ["render", "-f", &file, "-o", form]);
        assert_eq!(ran.code, 1, "{form}: {}", ran.stderr);
        assert!(!ran.stderr.contains("error: "), "{form}: {}", ran.stderr);
    }
}

#[test]
#[cfg(unix)]
fn interrupt_ends_render_at_once() {
    if ignores(2) {
        return;
    }
    let mut child =
        binary().args(["render", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("starts");
    std::thread::sleep(Duration::from_millis(200));
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
    let deadline = Instant::now() + Duration::from_mins(2);
    while child.try_wait().expect("its state").is_none() {
        assert!(Instant::now() < deadline, "the process keeps running after an interrupt");
        std::thread::sleep(Duration::from_millis(20));
    }
}
