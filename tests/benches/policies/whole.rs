//! Measurements that criterion does not support: compilation in a separate process, memory, and `render` for a thousand
//! objects. If this executable gets arguments of the operator's command line, it acts as the operator.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use kaos_policy::clock::SystemClock;
use kaos_policy::compile::{ChildCompiler, Compile, CompileLimits, Order};
use kaos_policy::contract::{Cluster, Outcome};
use kaos_policy::lookup::Fixed;
use kaos_policy::policy::{Policy, Stack};
use kaos_policy::render::Renderer;
use kaos_tests::usage;
use serde_json::{Value, json};

use crate::sample::sample;

/// The number of Agents in the rendered file.
const OBJECTS: usize = 1_000;
/// The number of sandboxes that are open while the bench measures memory.
const SANDBOXES: usize = 32;
/// How often the bench runs each process. The result is the median time of these runs.
const RUNS: usize = 5;

/// Returns the time to compile a component in a child process, from the start of the process until the compiled code
/// arrives.
pub(crate) fn child(component: &[u8]) -> Result<Duration> {
    let limits = CompileLimits::default();
    let compiler =
        ChildCompiler::new(std::env::current_exe()?, vec!["compile-child".into()], limits, SystemClock::start());
    median(|| Ok(compiler.compile(&Order::new(component)).map(drop)?))
}

/// Returns the memory of an open sandbox after a pass, in bytes. The first number is the sandbox's linear memory. The
/// second number is the memory by which this process grows for each open sandbox.
pub(crate) fn memory(policy: &Arc<Policy>) -> Result<(usize, usize)> {
    let (renderer, object, lookup) = sample(policy)?;
    let subject = renderer.render(&object, &lookup)?.subject().clone();
    let before = resident()?;
    let mut open = Vec::new();
    for _ in 0..SANDBOXES {
        let mut sandbox = policy.code().open(policy.limits())?;
        sandbox.begin(&subject)?;
        let env = sandbox.map_env(Vec::new())?.map_err(|refusal| anyhow!("{refusal:?}"))?;
        sandbox.translate(env)?.map_err(|refusal| anyhow!("{refusal:?}"))?;
        open.push(sandbox);
    }
    let linear = open.iter().map(|sandbox| sandbox.memory()).sum::<usize>() / SANDBOXES;
    Ok((linear, resident()?.saturating_sub(before) / SANDBOXES))
}

/// Measures the time for a thousand Agents in three ways, and returns three durations. For the first, a separate
/// process runs `render` on a file with these Agents, and finds the compiled code in the cache. For the second, the
/// same process has an empty cache. For the third, this process makes only the passes.
pub(crate) fn thousand(policy: &Arc<Policy>) -> Result<(Duration, Duration, Duration)> {
    let named = |kind: &str, name: &str, spec: &Value| {
        json!({
            "apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "default"},
            "spec": spec,
        })
    };
    let mut model = named("ModelAPI", "llm", &json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}));
    model["status"] = json!({"phase": "Ready", "ready": true, "endpoint": "http://llm:8000"});
    let agent = |name: &str| named("Agent", name, &json!({"modelAPI": "llm", "model": "gpt"}));
    let mut text = model.to_string();
    for number in 0..OBJECTS {
        write!(text, "\n---\n{}", agent(&format!("a{number}")))?;
    }
    let file = std::env::temp_dir().join(format!("thousand-{}.yaml", std::process::id()));
    std::fs::write(&file, text)?;
    let cache = std::env::temp_dir().join(format!("thousand-cache-{}", std::process::id()));
    let compiling = median(|| {
        if cache.exists() {
            std::fs::remove_dir_all(&cache)?;
        }
        rendered(&file, &cache)
    })?;
    let whole = median(|| rendered(&file, &cache))?;
    std::fs::remove_dir_all(&cache)?;
    std::fs::remove_file(&file)?;
    let stack = Stack::single(Arc::clone(policy))?;
    let (renderer, lookup) = (Renderer::new(&stack, &[], Cluster::default())?, Fixed::new([model]));
    let object = agent("a");
    let passes = median(|| {
        for _ in 0..OBJECTS {
            let rendered = renderer.render(&object, &lookup)?;
            renderer.assess(&rendered, Outcome::Applied, Vec::new())?;
        }
        Ok(())
    })?;
    Ok((whole, compiling, passes))
}

fn rendered(file: &Path, cache: &Path) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env("XDG_CACHE_HOME", cache);
    let ended = command.args(["render", "-f"]).arg(file).stdout(Stdio::null()).status()?;
    if ended.success() { Ok(()) } else { Err(anyhow!("render: {ended}")) }
}

fn median(mut run: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[RUNS / 2])
}

/// Returns the memory that this process occupies now, in bytes.
fn resident() -> Result<usize> {
    Ok(usize::try_from(usage::resident(std::process::id()).context("no VmRSS")?)?)
}
