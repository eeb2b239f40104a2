//! The table that the bench prints at its end: the medians of this run, their ratios, and the upper and lower bounds.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use kaos_operator::embedded;
use kaos_tests::{page, policies, shipped};
use serde_json::Value;

use crate::whole;

/// The upper bound for the time to compile one kilobyte of a component, in milliseconds.
const COMPILE: f64 = 1.0;
/// The lower bound for a ratio: the time to compile, divided by the time to load from the cache.
const CACHED: f64 = 100.0;
/// The upper bound for a ratio: the time of a pass in a sandbox, divided by the time of a native pass.
const SANDBOX: f64 = 2.5;
/// The upper bound for a ratio: the time of `render` for a thousand objects, divided by the time of the passes over
/// these objects.
const THOUSAND: f64 = 3.0;

/// Prints the table. With `UPDATE_PERFORMANCE`, also writes the table into the performance page. Returns a message for
/// each bound that a figure violates.
pub(crate) fn write() -> Result<Vec<String>> {
    let mut missed = Vec::new();
    page::publish("policies", &table(&mut missed)?)?;
    Ok(missed)
}

fn table(missed: &mut Vec<String>) -> Result<String> {
    let mut rows: [String; 12] = [
        "component, KB",
        "component, gzipped, KB",
        "compile, ms",
        "compile, ms/KB (aim: 1)",
        "compile in a child, ms",
        "load from the cache, times faster than compile (aim: 100)",
        "questions, native, µs",
        "questions, sandbox, µs",
        "questions, sandbox / native (aim: 2.5)",
        "whole pass, native, µs",
        "whole pass, sandbox, µs",
        "memory of a live sandbox, KB linear / resident",
    ]
    .map(|name| format!("| {name} |"));
    let (mut head, mut rule) = ("| |".to_owned(), "|---|".to_owned());
    let policies = policies::wasm()?;
    for policy in &policies {
        let name = &policy.id().name;
        let embedded = embedded::DEFAULTS.iter().find(|it| policy.id().digest.hex().starts_with(it.digest));
        let component = embedded.context("a policy that is not embedded")?.component;
        let kilobytes = number(component.len()) / 1000.0;
        let median = |what| criterion_median(what, name);
        let (compile, cached) = (median("compile")?, median("cached")?);
        let (native, sandbox) = (median("questions-native")?, median("questions-sandbox")?);
        let (linear, resident) = whole::memory(policy)?;
        let (for_each, faster, longer) = (compile / 1e6 / kilobytes, compile / cached, sandbox / native);
        let mut aim = |met: bool, what: String| missed.extend((!met).then(|| format!("{name}: {what}")));
        aim(for_each <= COMPILE, format!("compiling takes {for_each:.2} ms/KB, but the aim is at most {COMPILE}"));
        aim(
            faster >= CACHED,
            format!(
                "loading from the cache is {faster:.0} times faster than compiling, but the aim is at least {CACHED}"
            ),
        );
        aim(
            longer <= SANDBOX,
            format!("a pass takes {longer:.2} times as long in a sandbox, but the aim is at most {SANDBOX}"),
        );
        write!(head, " {name} |")?;
        rule.push_str("---:|");
        let cells = [
            format!("{kilobytes:.0}"),
            // Compress the component like `policy pack`.
            format!("{:.0}", number(shipped::gzipped(component, 9)?.len()) / 1000.0),
            format!("{:.0}", compile / 1e6),
            format!("{for_each:.2}"),
            format!("{:.0}", milliseconds(whole::child(component)?)),
            format!("{faster:.0}"),
            format!("{:.0}", native / 1e3),
            format!("{:.0}", sandbox / 1e3),
            format!("{longer:.2}"),
            format!("{:.0}", median("pass-native")? / 1e3),
            format!("{:.0}", median("pass-sandbox")? / 1e3),
            format!("{:.0} / {:.0}", number(linear) / 1000.0, number(resident) / 1000.0),
        ];
        for (row, cell) in rows.iter_mut().zip(cells) {
            write!(row, " {cell} |")?;
        }
    }
    let agents = policies.iter().find(|policy| policy.id().name == "agent").context("no policy for Agents")?;
    let (whole, compiling, passes) = whole::thousand(agents)?;
    let (whole, compiling, passes) = (milliseconds(whole), milliseconds(compiling), milliseconds(passes));
    if whole > THOUSAND * passes {
        missed.push(format!(
            "rendering 1,000 objects takes {:.2} times as long as their passes, but the aim is at most {THOUSAND}",
            whole / passes
        ));
    }
    Ok(format!(
        "{head}\n{rule}\n{}\n\n`render` of 1,000 Agents from one file, in a process of its own that finds the policies \
         in the cache: {whole:.0} ms; the passes alone {passes:.0} ms: {:.2} times as long (aim: 3). A process that \
         compiles the policies first takes {compiling:.0} ms. {} processors.\n",
        rows.join("\n"),
        whole / passes,
        std::thread::available_parallelism()?,
    ))
}

/// Returns the folder of criterion's results.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/criterion")
}

/// Returns a median from criterion's results, in nanoseconds.
fn criterion_median(what: &str, name: &str) -> Result<f64> {
    let file = folder().join(format!("{what}_{name}")).join("new/estimates.json");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let median = serde_json::from_str::<Value>(&text)?["median"]["point_estimate"].as_f64();
    median.context("criterion wrote no median")
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[allow(clippy::cast_precision_loss, reason = "sizes are small")]
fn number(count: usize) -> f64 {
    count as f64
}
