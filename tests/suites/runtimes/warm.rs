//! A process of `tests/runtimes/node/warm.py`. It imports the LiteLLM proxy once, and then runs containers one after
//! the other.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::images::{self, Image};

/// The process, which runs at most one container at a time.
pub(crate) struct Warm {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Warm {
    /// Starts the process, and waits until it has imported the packages.
    pub(crate) fn new() -> Result<Self> {
        let file = images::of_tests().join("node/warm.py").display().to_string();
        let command = ["python".to_owned(), file];
        let (name, value) = images::LOCAL_PRICES;
        let mut process = Image::named("litellm")?
            .program(&command)?
            .env(name, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = process.stdin.take().context("no standard input")?;
        let answers = BufReader::new(process.stdout.take().context("no standard output")?);
        let mut warm = Self { process, orders, answers };
        warm.hear("warm")?;
        Ok(warm)
    }

    /// Runs a container. `warm.py` documents the fields of `container`.
    pub(crate) fn run(&mut self, container: &Value) -> Result<()> {
        Ok(writeln!(self.orders, "{container}")?)
    }

    /// Ends the container.
    pub(crate) fn end(&mut self) -> Result<()> {
        writeln!(self.orders)?;
        self.hear("ended")
    }

    fn hear(&mut self, word: &str) -> Result<()> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(line.trim_end() == word, "the warm process says {line:?} and not {word:?}");
        Ok(())
    }
}

impl Drop for Warm {
    fn drop(&mut self) {
        // First ask the process to end the container: a signal would end only the warm process, and the container would
        // continue to run.
        let _ = self.orders.write_all(b"\n");
        let _ = self.hear("ended");
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
