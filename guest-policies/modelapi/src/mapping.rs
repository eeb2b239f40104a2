//! Maps the variables: access to the provider, the user's variables, the log level, and telemetry.

use alloc::vec::Vec;
use kaos_policy_sdk::env::{ContainerEnv, Env, config_map_key, secret_key, with_optional};
use kaos_policy_sdk::types::{EnvVar, Refusal, Subject};

use crate::keyless;
use crate::providers::{Key, Proxy};
use crate::request::{API_BASE, API_KEY, KIND, Request};
use crate::wanted::Wanted;

/// Returns the mapping of `subject`. `base` is the mapping of the layer below. For the lowest layer, `base` is empty.
pub(crate) fn map(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
    let request = Request::of(subject)?;
    let mut mapping = Env::over(base);
    let mut env = mapping.container(KIND.container);
    if let Wanted::Proxy(proxy) = &request.wanted {
        provider(proxy, &mut env);
    }
    for (path, list) in request.user_env() {
        env.user(list, &path)?;
    }
    match &request.wanted {
        Wanted::Proxy(proxy) => {
            proxied(request, &mut env);
            if keyless::is_permitted(request, proxy) {
                env.set(keyless::VARIABLE, "true", "settings.proxyConfig.withoutMasterKey");
            }
        }
        Wanted::Hosted { .. } => hosted(request, &mut env),
    }
    Ok(mapping.into_vars())
}

fn provider(proxy: &Proxy, env: &mut ContainerEnv<'_>) {
    const FROM: &str = "spec.proxyConfig.apiKey.valueFrom";
    env.set_some(API_BASE, proxy.api_base.as_deref(), "spec.proxyConfig.apiBase");
    match &proxy.api_key {
        None => env,
        Some(Key::Literal(value)) => env.set(API_KEY, value.as_str(), "spec.proxyConfig.apiKey.value"),
        Some(Key::Secret(key)) => {
            let source = with_optional(secret_key(&key.name, &key.key), key.optional);
            env.bind(API_KEY, source, &format!("{FROM}.secretKeyRef"))
        }
        Some(Key::ConfigMap(key)) => {
            let source = with_optional(config_map_key(&key.name, &key.key), key.optional);
            env.bind(API_KEY, source, &format!("{FROM}.configMapKeyRef"))
        }
    };
}

fn proxied(request: &Request, env: &mut ContainerEnv<'_>) {
    let level = request.settings.log_level.as_str();
    // LiteLLM does not know the level TRACE.
    env.set("LITELLM_LOG", if level == "TRACE" { "DEBUG" } else { level }, "settings.logLevel");
    let telemetry = request.telemetry();
    if telemetry.enabled {
        let on = &telemetry.enabled_origin;
        let excluded = request.settings.telemetry.excluded_urls.as_str();
        env.set("OTEL_EXPORTER", "otlp_grpc", on);
        telemetry.set_endpoint(env);
        env.set("OTEL_SERVICE_NAME", request.object.name(), "metadata.name").set_some(
            "OTEL_PYTHON_EXCLUDED_URLS",
            Some(excluded),
            "settings.telemetry.excludedUrls",
        );
    }
}

/// Sets the log level. Ollama has no log levels, only two degrees of debug output.
fn hosted(request: &Request, env: &mut ContainerEnv<'_>) {
    let debug = match request.settings.log_level.as_str() {
        "TRACE" => Some("2"),
        "DEBUG" => Some("1"),
        _ => None,
    };
    env.set_some("OLLAMA_DEBUG", debug, "settings.logLevel");
}
