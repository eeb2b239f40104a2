//! What a policy costs: to compile, to load from the cache of compiled code, and for one pass, in a sandbox and
//! natively. `cargo bench -p kaos-tests` measures, and prints the ratios that matter at the end.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::Criterion;
use kaos_operator::embedded;
use kaos_operator::policies::Candidate;
use kaos_policy::cache::Cache;
use kaos_policy::clock::SystemClock;
use kaos_policy::compile::InProcessCompiler;
use kaos_policy::contract::Cluster;
use kaos_policy::engine::Engine;
use kaos_policy::gate::{Bounds, Check, Gate, Step};
use kaos_policy::limits::Limits;
use kaos_policy::lookup::Fixed;
use kaos_policy::policy::Policy;
use kaos_policy::render::Renderer;
use kaos_tests::policies;
use serde_json::Value;

type Main = Result<(), Box<dyn std::error::Error>>;

fn main() -> Main {
    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    compiling(&mut criterion)?;
    passes(&mut criterion)?;
    criterion.final_summary();
    summary()
}

/// From bytes to compiled code, and from the cache; what both have in common is in both.
fn compiling(criterion: &mut Criterion) -> Main {
    let engine = Engine::new()?;
    let folder = std::env::temp_dir().join(format!("policies-bench-{}", std::process::id()));
    let cache = Cache::new(folder.clone(), b"the key of this bench")?;
    let clock = SystemClock::start();
    let compiler = InProcessCompiler(engine.clone());
    for candidate in Candidate::embedded()? {
        let gate = Gate {
            engine: &engine,
            compiler: &compiler,
            cache: Some(&cache),
            bounds: Bounds::default(),
            limits: Limits::default(),
            cluster: Cluster::default(),
            clock: &clock,
        };
        let name = gate.load(&candidate.inner)?.id().name.clone();
        criterion.bench_function(&format!("compile/{name}"), |bench| {
            bench.iter(|| engine.compile(black_box(&candidate.inner.bytes)));
        });
        criterion.bench_function(&format!("cached/{name}"), |bench| {
            bench.iter_custom(|times| (0..times).map(|_| compiled(&gate.check(black_box(&candidate.inner)))).sum());
        });
    }
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// How long a check took from a validated component to a sandbox that opens.
fn compiled(check: &Check) -> Duration {
    let steps = check.steps.iter().filter(|taken| matches!(taken.step, Step::Compile | Step::Instantiate));
    steps.map(|taken| taken.time).sum()
}

/// Needs, map-env and translate of one object of each kind, as the controller runs them, without the memo.
fn passes(criterion: &mut Criterion) -> Main {
    for (how, policies) in [("native", policies::native()?), ("sandbox", policies::wasm()?)] {
        for policy in &policies {
            let (renderer, object, lookup) = sample(policy)?;
            criterion.bench_function(&format!("pass-{how}/{}", policy.id().name), |bench| {
                bench.iter(|| renderer.render(black_box(&object), &lookup));
            });
        }
    }
    Ok(())
}

/// The claim's fullest sample, with what stands beside it.
fn sample(policy: &Arc<Policy>) -> Result<(Renderer, Value, Fixed), Box<dyn std::error::Error>> {
    let samples = &policy.descriptor().claims[0].samples;
    let fullest = samples.iter().max_by_key(|sample| sample.object.len()).ok_or("no samples")?;
    let beside = fullest.beside.iter().map(|text| serde_json::from_str(text)).collect::<Result<Vec<Value>, _>>()?;
    let stack = kaos_policy::policy::Stack::single(Arc::clone(policy))?;
    let renderer = Renderer::new(&stack, &[], Cluster::default())?;
    Ok((renderer, serde_json::from_str(&fullest.object)?, Fixed::new(beside)))
}

/// Medians of this run, and their ratios.
fn summary() -> Main {
    let sizes: BTreeMap<String, usize> = policies::wasm()?
        .iter()
        .map(|policy| policy.id())
        .filter_map(|id| {
            let policy = embedded::DEFAULTS.iter().find(|policy| id.digest.hex().starts_with(policy.digest))?;
            Some((id.name.clone(), policy.component.len()))
        })
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/criterion");
    let median = |what: &str, name: &str| -> Option<f64> {
        let text = std::fs::read_to_string(folder.join(what).join(name).join("new/estimates.json")).ok()?;
        serde_json::from_str::<Value>(&text).ok()?["median"]["point_estimate"].as_f64()
    };
    println!(
        "\n{:<10} {:>8} {:>10} {:>9} {:>10} {:>9} {:>10} {:>10} {:>6}",
        "policy", "KB", "compile", "ms/KB", "cached", "times", "native", "sandbox", "times"
    );
    for (name, bytes) in &sizes {
        let figures = ["compile", "cached", "pass-native", "pass-sandbox"].map(|what| median(what, name));
        let [Some(compile), Some(cached), Some(native), Some(sandbox)] = figures else { continue };
        #[allow(clippy::cast_precision_loss)]
        let kilobytes = *bytes as f64 / 1000.0;
        println!(
            "{name:<10} {kilobytes:>8.0} {:>7.0} ms {:>9.2} {:>7.2} ms {:>9.0} {:>7.0} µs {:>7.0} µs {:>6.2}",
            compile / 1e6,
            compile / 1e6 / kilobytes,
            cached / 1e6,
            compile / cached,
            native / 1e3,
            sandbox / 1e3,
            sandbox / native,
        );
    }
    Ok(())
}
