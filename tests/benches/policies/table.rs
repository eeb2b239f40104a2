//! The table at the end: medians of this run, their ratios, and the aims.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kaos_operator::embedded;
use kaos_tests::{page, policies};
use serde_json::Value;

use crate::{Result, whole};

/// Prints the table, and puts it into the page where that is asked for.
pub(crate) fn write() -> Result<()> {
    Ok(page::publish("policies", &table()?)?)
}

fn table() -> Result<String> {
    let mut rows: [String; 9] = [
        "component, KB",
        "compile, ms",
        "compile, ms/KB (aim: 1)",
        "compile in a child, ms",
        "load from the cache, times faster than compile (aim: 100)",
        "pass, native, µs",
        "pass, sandbox, µs",
        "pass, sandbox / native (aim: 2.5)",
        "memory of a live sandbox, KB linear / resident",
    ]
    .map(|name| format!("| {name} |"));
    let (mut head, mut rule) = ("| |".to_owned(), "|---|".to_owned());
    let policies = policies::wasm()?;
    for policy in &policies {
        let name = &policy.id().name;
        let embedded = embedded::DEFAULTS.iter().find(|it| policy.id().digest.hex().starts_with(it.digest));
        let component = embedded.ok_or("a policy that is not embedded")?.component;
        let kilobytes = number(component.len()) / 1000.0;
        let [compile, cached, native, sandbox] =
            ["compile", "cached", "pass-native", "pass-sandbox"].map(|what| criterion_median(what, name));
        let (compile, cached, native, sandbox) = (compile?, cached?, native?, sandbox?);
        let (linear, resident) = whole::memory(policy)?;
        write!(head, " {name} |")?;
        rule.push_str("---:|");
        let cells = [
            format!("{kilobytes:.0}"),
            format!("{:.0}", compile / 1e6),
            format!("{:.2}", compile / 1e6 / kilobytes),
            format!("{:.0}", milliseconds(whole::child(component)?)),
            format!("{:.0}", compile / cached),
            format!("{:.0}", native / 1e3),
            format!("{:.0}", sandbox / 1e3),
            format!("{:.2}", sandbox / native),
            format!("{:.0} / {:.0}", number(linear) / 1000.0, number(resident) / 1000.0),
        ];
        for (row, cell) in rows.iter_mut().zip(cells) {
            write!(row, " {cell} |")?;
        }
    }
    let agents = policies.iter().find(|policy| policy.id().name == "agent").ok_or("no policy for Agents")?;
    let (whole, passes) = whole::thousand(agents)?;
    let (whole, passes) = (milliseconds(whole), milliseconds(passes));
    Ok(format!(
        "{head}\n{rule}\n{}\n\n`render` of 1,000 Agents from one file, in a process of its own that also compiles the \
         policies: {whole:.0} ms; the passes alone {passes:.0} ms: {:.2} times as long (aim: 3).\n",
        rows.join("\n"),
        whole / passes
    ))
}

/// Where criterion keeps what it measures.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/criterion")
}

/// Nanoseconds, as criterion keeps them.
fn criterion_median(what: &str, name: &str) -> Result<f64> {
    let text = std::fs::read_to_string(folder().join(what).join(name).join("new/estimates.json"))?;
    let median = serde_json::from_str::<Value>(&text)?["median"]["point_estimate"].as_f64();
    Ok(median.ok_or("criterion wrote no median")?)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[allow(clippy::cast_precision_loss, reason = "sizes are small")]
fn number(count: usize) -> f64 {
    count as f64
}
