//! `policy bench`: measures the passes of a policy.

mod measured;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::Args;
use kaos_policy::{
    code::Code,
    gate::{Check as Checked, Step, Taken},
    limits::Limits,
    policy::Policy,
    units::{bytes, count},
};
use serde_json::{Value, json};

use super::{
    HELD_BACK, OutputFormat, UNUSABLE,
    conform::layers,
    facts::ClusterFacts,
    objects::{catalogue, claim, documents_if_named},
    output::{Output, complain},
    table::Table,
};
use crate::{
    conform::{Passes, Spread},
    policies::{Candidate, Loaded, Loader},
};
use measured::Measured;

/// Arguments of `policy bench`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = the policy was measured; 1 = the policy does not pass the gate; 2 = the input \
                  is invalid."
)]
pub(super) struct Bench {
    /// The component or the script; the command also reads a policy.yaml in the same directory
    file: PathBuf,
    /// File or directory with objects in YAML or JSON, or - for standard input; the command measures these objects like
    /// the policy's samples
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    filenames: Vec<String>,
    /// CRDs of further kinds
    #[arg(long, value_name = "FILE|DIR|-")]
    crds: Vec<String>,
    /// File with settings as YAML: a section for each policy, or settings for every policy that declares them
    #[arg(long, value_name = "FILE")]
    settings: Option<String>,
    /// Number of passes over each object
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    passes: u32,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    facts: ClusterFacts,
}

impl Bench {
    /// Compiles the policy, measures all passes, and prints percentiles.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { file, filenames, crds, settings, passes, output, facts } = self;
        let Some(mut known) = catalogue(&crds)? else { return Ok(ExitCode::from(UNUSABLE)) };
        let candidate = Candidate::read(&file)?;
        let cluster = facts.cluster();
        // Without the cache, the gate always compiles the component, so the command can measure the compilation.
        let loader = Loader::new(cluster.clone())?.accepting_all();
        let Checked { steps, result, .. } = loader.check(&candidate);
        let policy = match result {
            Ok(policy) => policy,
            Err(error) => {
                complain("error", format_args!("{}: {error}", file.display()));
                return Ok(ExitCode::from(HELD_BACK));
            }
        };
        claim(&mut known, [&policy]);
        let Some(files) = documents_if_named(&filenames, &known) else { return Ok(ExitCode::from(UNUSABLE)) };
        let size = candidate.inner.bytes.len();
        let manifest = &candidate.inner.file;
        let measured = Arc::new(Measured::new(&policy));
        let code: Arc<dyn Code> = measured.clone();
        let same = Policy::admit(code, policy.id().digest, manifest, Limits::default())
            .context("admit the measured policy")?;
        let loaded = Loaded { origin: candidate.origin, policy: Arc::new(same), settings: manifest.settings.clone() };
        let layers = layers(&loaded, settings.as_deref())?;
        let ready = Passes::new(&loaded.policy, &layers, &cluster, &known, &files)?;
        let (mut times, mut fuel, mut memory) = (Vec::new(), Vec::new(), Vec::new());
        let mut of_each = vec![BTreeSet::new(); ready.count()];
        for _ in 0..passes {
            for (number, counts) in of_each.iter_mut().enumerate() {
                let began = Instant::now();
                let used = ready.run(number)?;
                times.push(nanoseconds(began.elapsed()));
                fuel.push(used);
                counts.insert(used);
                memory.push(measured.take() as u64);
            }
        }
        let figures = Figures {
            policy: &policy,
            objects: ready.count(),
            passes: times.len(),
            times: Spread::of(times),
            fuel: Spread::of(fuel),
            fuel_counts: of_each.iter().map(BTreeSet::len).max().unwrap_or_default(),
            memory: Spread::of(memory),
            compile: steps.iter().find(|taken| taken.step == Step::Compile),
            size,
        };
        match output {
            OutputFormat::Json => out.json(&figures.json())?,
            OutputFormat::Text => out.text(&figures.text())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The measured figures.
struct Figures<'a> {
    policy: &'a Policy,
    objects: usize,
    passes: usize,
    /// The time of a pass in nanoseconds.
    times: Option<Spread>,
    fuel: Option<Spread>,
    /// How many different amounts of fuel the passes over one object took, for the object with the most amounts. This
    /// number is 1 if all passes over each object took the same fuel.
    fuel_counts: usize,
    /// The memory of a pass in bytes.
    memory: Option<Spread>,
    /// The compilation; `None` for code that needs no compilation.
    compile: Option<&'a Taken>,
    /// The size of the policy's file in bytes.
    size: usize,
}

impl Figures<'_> {
    fn json(&self) -> Value {
        let Self { policy, objects, passes, times, fuel, fuel_counts, memory, compile, size } = self;
        let Limits { fuel: fuel_limit, memory: memory_limit, .. } = policy.limits();
        json!({
            "policy": policy.id(),
            "objects": objects,
            "passes": passes,
            "passNanoseconds": times,
            "fuel": fuel,
            "fuelCounts": fuel_counts,
            "fuelLimit": fuel_limit,
            "memoryBytes": memory,
            "memoryLimit": memory_limit,
            "compileMilliseconds": compile.map(|taken| taken.time.as_secs_f64() * 1e3),
            "sizeBytes": size,
            "compiledBytes": policy.code().bytes(),
            "scriptEngineBytes": policy.code().shared_bytes(),
        })
    }

    fn text(&self) -> String {
        let Self { policy, objects, passes, times, fuel, fuel_counts, memory, compile, size } = self;
        let mut table = Table::new(&["MEASURED", "P50", "P90", "P99", "MOST", "LIMIT"]);
        let mut row = |what: &str, spread: &Option<Spread>, shown: &dyn Fn(u64) -> String, limit: String| {
            if let Some(Spread { p50, p90, p99, most }) = *spread {
                table.row([what.to_owned(), shown(p50), shown(p90), shown(p99), shown(most), limit]);
            }
        };
        let as_bytes = |number: u64| bytes(usize::try_from(number).unwrap_or(usize::MAX));
        row(
            "time of a pass",
            times,
            &|time| format!("{:.2} ms", Duration::from_nanos(time).as_secs_f64() * 1e3),
            String::new(),
        );
        row("fuel of a pass", fuel, &|fuel| count(fuel), count(policy.limits().fuel));
        row("memory of a pass", memory, &as_bytes, bytes(policy.limits().memory));
        let mut facts = Table::new(&["POLICY", &policy.id().to_string()]);
        facts.row(["passes".to_owned(), format!("{passes} over {objects} objects")]);
        let same = match fuel_counts {
            1 => "every pass over an object took the same fuel".to_owned(),
            many => format!("the passes over one object took {many} different amounts of fuel"),
        };
        facts.row(["fuel".to_owned(), same]);
        facts.row(["size".to_owned(), format!("{size} bytes, {} bytes of compiled code", policy.code().bytes())]);
        if policy.code().shared_bytes() > 0 {
            let engine = format!("{} bytes of compiled code, which all scripts share", policy.code().shared_bytes());
            facts.row(["script engine".to_owned(), engine]);
        }
        if let Some(Taken { time, outcome, .. }) = compile {
            facts.row(["compilation".to_owned(), format!("{:.1} ms ({outcome})", time.as_secs_f64() * 1e3)]);
        }
        format!("{table}\n{facts}")
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
