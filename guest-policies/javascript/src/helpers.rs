//! The native functions of the script's global `kaos` for the mapping and for names, with the rules of the Rust SDK.
//! Each function takes one value of the script, and returns one value.

use kaos_policy_sdk::{
    env::{self, Env},
    json, names,
};
use rquickjs::{Ctx, Exception, Object, Result, Value as Script, prelude::Func};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    bindings::types::EnvVar,
    from_script::record,
    plain::{Wrong, plain},
    pods,
    sdk_types::{of_sdk, refused, source_to_sdk, to_sdk},
    to_script::text,
};

/// Returns an object with the native functions.
pub(crate) fn native<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    native.set("env", Func::from(|ctx, value| answer(&ctx, &value, mapping)))?;
    native.set("containerEnv", Func::from(|ctx, value| answer(&ctx, &value, container_env)))?;
    native.set("dnsLabel", Func::from(|ctx, value| answer(&ctx, &value, dns_label)))?;
    native.set("mergePodSpec", Func::from(|ctx, value| answer(&ctx, &value, pods::merge_pod_spec)))?;
    native.set("mergeContainer", Func::from(|ctx, value| answer(&ctx, &value, pods::merge_container)))?;
    native.set("checkPodSpecEnv", Func::from(|ctx, value| answer(&ctx, &value, pods::check_pod_spec_env)))?;
    native.set("envOnce", Func::from(|ctx, value| answer(&ctx, &value, pods::env_once)))?;
    native.set("podSpecEnv", Func::from(|ctx, value| answer(&ctx, &value, pods::pod_spec_env)))?;
    native.set("parseYaml", Func::from(|ctx, value| answer(&ctx, &value, pods::parse_yaml)))?;
    native.set("shown", Func::from(|ctx, value| answer(&ctx, &value, pods::shown)))?;
    native.set("shellWord", Func::from(|ctx, value| answer(&ctx, &value, pods::shell_word)))?;
    native.set("onRegistry", Func::from(|ctx, value| answer(&ctx, &value, pods::on_registry)))?;
    native.set("unexpanded", Func::from(|ctx, value| answer(&ctx, &value, pods::unexpanded)))?;
    Ok(native)
}

/// Calls `function` with the value as JSON, and returns its result as a value of the script. Throws a `TypeError` for a
/// wrong argument.
fn answer<'js>(
    ctx: &Ctx<'js>,
    value: &Script<'js>,
    function: fn(&Value) -> std::result::Result<String, Wrong>,
) -> Result<Script<'js>> {
    let called = plain(ctx, value).and_then(|value| function(&value.unwrap_or_default()));
    match called {
        Ok(text) => ctx.json_parse(text),
        Err(Wrong { path, problem }) => Err(Exception::throw_type(ctx, &format!("{} {problem}", path.as_str()))),
    }
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "camelCase")]
enum Step {
    Set { container: String, name: String, value: String, origin: String },
    Bind { container: String, name: String, source: Value, origin: String },
    Hold { container: String, name: String, source: Value, origin: String },
    User { container: String, list: Vec<Value>, path: String },
    Remove { container: String, name: String },
}

fn mapping(value: &Value) -> std::result::Result<String, Wrong> {
    let base: Vec<EnvVar> = record(value.get("base")).map_err(|wrong| wrong.below("env"))?;
    let mut env = Env::over(base.into_iter().map(to_sdk).collect());
    for step in value.get("steps").and_then(Value::as_array).into_iter().flatten() {
        let step = Step::deserialize(step).map_err(|error| Wrong::new(format!("env: {error}")))?;
        match step {
            Step::Set { container, name, value, origin } => {
                env.container(&container).set(&name, value, &origin);
            }
            Step::Bind { container, name, source, origin } => {
                let source = record(Some(&source)).map_err(|wrong| wrong.below("source"))?;
                env.container(&container).bind(&name, source_to_sdk(source), &origin);
            }
            Step::Hold { container, name, source, origin } => {
                let source = record(Some(&source)).map_err(|wrong| wrong.below("source"))?;
                env.container(&container).hold(&name, source_to_sdk(source), &origin);
            }
            Step::User { container, list, path } => {
                if let Err(refusal) = env.container(&container).user(&list, &path) {
                    return Ok(json!({"refused": refused(&refusal)}).to_string());
                }
            }
            Step::Remove { container, name } => {
                env.container(&container).remove(&name);
            }
        }
    }
    let vars: Vec<EnvVar> = env.into_vars().into_iter().map(of_sdk).collect();
    let vars = text(&vars).map_err(|error| Wrong::new(error.0))?;
    Ok(format!("{{\"vars\":{vars}}}"))
}

fn container_env(value: &Value) -> std::result::Result<String, Wrong> {
    let vars: Vec<EnvVar> = record(value.get("env")).map_err(|wrong| wrong.below("env"))?;
    let container: String = record(value.get("container")).map_err(|wrong| wrong.below("container"))?;
    let vars: Vec<_> = vars.into_iter().map(to_sdk).collect();
    Ok(json::text(&Value::Array(env::to_json(&vars, &container))))
}

fn dns_label(value: &Value) -> std::result::Result<String, Wrong> {
    let name: String = record(Some(value))?;
    let problem = names::dns1035_label(&name).map(|why| why.to_string());
    Ok(json!(problem).to_string())
}
