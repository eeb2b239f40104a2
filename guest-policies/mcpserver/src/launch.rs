//! Decides how to start the container: image, command, arguments, and the variable for the parameters.
//!
//! This module does not merge the user's `container`. The crate `kaos_workload` does this for every kind.

use alloc::{
    borrow::ToOwned,
    string::{String, ToString},
    vec::Vec,
};
use kaos_crds::Container;
use kaos_policy_sdk::quote::{shell_word, shown, unexpanded};
use kaos_policy_sdk::types::{Note, Reference, Refusal};
use kaos_policy_sdk::{Lookup, Object, blocker, need, note, refusal};
use kaos_workload::Registry;

use crate::registry::{self, RegistryError, RegistrySource, Runtime};
use crate::settings::Settings;
use crate::wanted::{CUSTOM, PYTHON_STRING, Source};

/// The image, command and variables with which the container starts.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Launch {
    /// The image. Empty if only the user's `container.image` can name an image.
    pub(crate) image: String,
    pub(crate) command: Option<Vec<String>>,
    pub(crate) args: Option<Vec<String>>,
    /// The name of the variable for the parameters.
    pub(crate) params_env_var: Option<String>,
    pub(crate) required_env: Vec<String>,
    /// Whether the parameters are Python source. Each function in this source is a tool.
    pub(crate) params_are_python: bool,
    pub(crate) tools: Vec<String>,
    pub(crate) notes: Vec<Note>,
}

/// The parts of a launch that the user's `container` sets itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Own {
    pub(crate) image: bool,
    pub(crate) command: bool,
}

impl Own {
    /// Returns the parts that `container` sets.
    pub(crate) fn of(container: Option<&Container>) -> Self {
        Self {
            image: container.and_then(|own| own.image.as_ref()).is_some_and(|image| !image.is_empty()),
            command: container.and_then(|own| own.command.as_ref()).is_some_and(|command| !command.is_empty()),
        }
    }
}

impl Launch {
    /// Returns the launch for the program `source`. `found` is the registry's ConfigMap, if the host found one.
    pub(crate) fn of(
        source: &Source,
        settings: &Settings,
        operator_namespace: &str,
        found: Lookup<Object>,
        own: Own,
    ) -> Result<Self, Refusal> {
        match source {
            Source::Custom if own.image => Ok(Self::default()),
            Source::Custom => {
                Err(refusal::invalid("spec.container.image", "custom runtime requires container.image to be set"))
            }
            Source::Package { name, path } => package(settings, name, path),
            Source::Registry(name) => {
                let unusable = |error: RegistryError| {
                    let on = registry_reference(settings, operator_namespace);
                    refusal::waiting(vec![blocker::new(on, "RegistryUnusable", error.to_string())])
                };
                let source = &settings.registry;
                let registry = registry::read(source, found, &settings.runtimes).map_err(unusable)?;
                let runtime = registry::runtime(&registry, name, source);
                let runtime = runtime.ok_or_else(|| unknown(name, &registry, source))?.map_err(unusable)?;
                registered(name, runtime, settings, own)
            }
        }
    }
}

/// Returns the reference to the registry's ConfigMap.
pub(crate) fn registry_reference(settings: &Settings, operator_namespace: &str) -> Reference {
    need::reference_in(operator_namespace, "v1", "ConfigMap", &settings.registry.config_map)
}

fn unknown(name: &str, registry: &Registry, source: &RegistrySource) -> Refusal {
    let (name, names) = (shown(name, 63), registry.names());
    let remedy = if names.is_empty() {
        let RegistrySource { config_map, key } = source;
        format!("the registry is empty; add {name} to {key} of ConfigMap {config_map}, or use")
    } else {
        format!("use a runtime of the registry ({names}), or", names = shown(&names.join(", "), 1000))
    };
    let message = format!("unknown runtime: {name} (not found in registry): {remedy} {CUSTOM} with container.image");
    refusal::invalid("spec.runtime", message)
}

fn registered(name: &str, runtime: Runtime, settings: &Settings, own: Own) -> Result<Launch, Refusal> {
    if runtime.image.is_empty() && !own.image {
        let message = format!(
            "the registry of runtimes has no image for runtime {name}: set container.image",
            name = shown(name, 63)
        );
        return Err(refusal::invalid("spec.container.image", message));
    }
    let mut launch = Launch {
        image: runtime.image,
        command: runtime.command,
        args: runtime.args,
        params_env_var: Some(runtime.params_env_var).filter(|name| !name.is_empty()),
        required_env: runtime.required_env,
        params_are_python: name == PYTHON_STRING,
        tools: runtime.tools,
        notes: Vec::new(),
    };
    // A user's command replaces the registry's command, whose flags must not become arguments of the user's command.
    if !own.command {
        flags_are_arguments(name, settings, &mut launch);
    }
    Ok(launch)
}

/// Handles a command that begins with a flag. Moves it to the arguments if the setting `commandFlagsAsArgs` allows
/// this. Otherwise adds a warning, because a command replaces the image's entrypoint, and a flag is not a program.
fn flags_are_arguments(name: &str, settings: &Settings, launch: &mut Launch) {
    let is_flags =
        launch.command.as_ref().and_then(|command| command.first()).is_some_and(|word| word.starts_with('-'));
    if !is_flags {
        return;
    }
    if settings.command_flags_as_args {
        let mut args = launch.command.take().unwrap_or_default();
        args.extend(launch.args.take().unwrap_or_default());
        launch.args = Some(args);
        return;
    }
    let message = format!(
        "the registry's command of runtime {name} begins with a flag and replaces the entrypoint of the image: move \
         the command to args in the registry, or set the policy setting commandFlagsAsArgs"
    );
    launch.notes.push(note::at("spec.runtime", note::warning("CommandIsFlags", message)));
}

/// Returns a launch that installs a package. After the installation, the container runs the command that has the same
/// name as the package. If the command fails, the container runs the Python module with this name.
fn package(settings: &Settings, name: &str, path: &str) -> Result<Launch, Refusal> {
    let end = name.find(['[', '=', '<', '>', '!', '~', ';', '@', ' ', '\t']).unwrap_or(name.len());
    let program = name.get(..end).unwrap_or_default();
    let of_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if program.is_empty()
        || program.starts_with('-')
        || !program.chars().all(of_a_name)
        || name.contains(char::is_control)
    {
        let message = format!(
            "`{name}` is not a Python package: name a package of PyPI, or use runtime {CUSTOM} with container.image",
            name = shown(name, 253)
        );
        return Err(refusal::invalid(path, message));
    }
    let module: String = program.chars().map(|c| if c == '-' { '_' } else { c }).collect();
    let [package, program, module] = [name, program, &module].map(shell_word);
    let script = format!("pip install {package} && ( {program} || python -m {module} )");
    let command = vec!["sh".to_owned(), "-c".to_owned(), unexpanded(&script)];
    Ok(Launch { image: settings.package_image.clone(), command: Some(command), ..Launch::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn launch(source: &Source, registry: &str, settings: &Settings) -> Result<Launch, Refusal> {
        let config_map = json!({"data": {"runtimes.yaml": registry}});
        Launch::of(source, settings, "kaos-system", Lookup::There(Object::new(config_map)), Own::default())
    }

    fn registered(name: &str, registry: &str) -> Result<Launch, Refusal> {
        launch(&Source::Registry(name.to_owned()), registry, &Settings::default())
    }

    fn packaged(name: &str) -> Result<Launch, Refusal> {
        let source = Source::Package { name: name.to_owned(), path: "spec.config.mcp" };
        launch(&source, "", &Settings::default())
    }

    fn violation(refusal: &Refusal) -> (&str, &str) {
        match refusal {
            Refusal::Invalid(violations) => (&violations[0].path, &violations[0].message),
            other => panic!("{other:?}"),
        }
    }

    const FLAGS: &str = "runtimes: {slack: {image: i, command: [\"--transport\", http], args: [\"--port\", \"1\"]}}";

    #[test]
    fn an_unknown_runtime_is_refused_with_the_known_ones() {
        let refused = registered("nope", "runtimes: {a: {image: i}, b: {image: i}}").unwrap_err();
        let (path, message) = violation(&refused);
        assert_eq!(path, "spec.runtime");
        assert!(message.starts_with("unknown runtime: nope (not found in registry)"), "{message}");
        assert!(message.contains("(a, b)"), "{message}");
    }

    #[test]
    fn the_error_for_a_runtime_in_an_empty_registry_says_where_to_add_it() {
        for empty in ["", "runtimes:", "runtimes: {}"] {
            let refused = registered("nope", empty).unwrap_err();
            let told = "unknown runtime: nope (not found in registry): the registry is empty; add nope to runtimes.yaml of \
                        ConfigMap kaos-mcp-runtimes, or use custom with container.image";
            assert_eq!(violation(&refused), ("spec.runtime", told));
        }
    }

    #[test]
    fn a_runtime_without_an_image_needs_one_from_the_user() {
        let refused = registered("a", "runtimes: {a: {}}").unwrap_err();
        assert_eq!(violation(&refused).0, "spec.container.image");
        let refused = launch(&Source::Custom, "", &Settings::default()).unwrap_err();
        assert_eq!(violation(&refused), ("spec.container.image", "custom runtime requires container.image to be set"));
    }

    #[test]
    fn a_registry_that_cannot_be_read_is_waited_for() {
        let Refusal::Waiting(blockers) = registered("a", "runtimes: [").unwrap_err() else { panic!("not waiting") };
        assert_eq!(
            (blockers[0].on.name.as_str(), blockers[0].reason.as_str()),
            ("kaos-mcp-runtimes", "RegistryUnusable")
        );
        assert_eq!(blockers[0].on.namespace.as_deref(), Some("kaos-system"));
    }

    #[test]
    fn flags_in_a_command_stay_with_a_note_unless_a_setting_makes_them_arguments() {
        let kept = registered("slack", FLAGS).unwrap();
        assert_eq!(kept.command, Some(vec!["--transport".to_owned(), "http".to_owned()]));
        assert_eq!(kept.notes[0].reason, "CommandIsFlags");
        let settings = Settings { command_flags_as_args: true, ..Settings::default() };
        let moved = launch(&Source::Registry("slack".to_owned()), FLAGS, &settings).unwrap();
        assert_eq!(moved.command, None);
        assert_eq!(moved.args.unwrap(), ["--transport", "http", "--port", "1"]);
        assert_eq!(moved.notes, []);
    }

    #[test]
    fn a_package_is_installed_and_run_with_the_recorded_script() {
        let script = packaged("mcp-server-time").unwrap().command.unwrap().pop().unwrap();
        assert_eq!(script, "pip install mcp-server-time && ( mcp-server-time || python -m mcp_server_time )");
    }

    #[test]
    fn a_package_with_extras_and_a_version_runs_its_own_command() {
        let script = packaged("mcp[cli]==1.2").unwrap().command.unwrap().pop().unwrap();
        assert_eq!(script, "pip install 'mcp[cli]==1.2' && ( mcp || python -m mcp )");
    }

    #[test]
    fn no_variable_of_the_container_gets_into_the_script() {
        // Kubernetes could expand `$(EVIL)` to a text that contains a quote, and this quote would end the quoted word.
        let script = packaged("pkg $(EVIL) $$(EVIL)").unwrap().command.unwrap().pop().unwrap();
        assert_eq!(script, "pip install 'pkg $$(EVIL) $$$$(EVIL)' && ( pkg || python -m pkg )");
    }

    #[test]
    fn a_package_name_stays_one_word_of_the_script() {
        let script = packaged("a; touch /x $(id) 'q'").unwrap().command.unwrap().pop().unwrap();
        assert_eq!(script, "pip install 'a; touch /x $$(id) '\\''q'\\''' && ( a || python -m a )");
        for name in ["-r/etc/passwd", "--index-url=x", "", "=1", "a\nb", "\0", "git+https://x/y.git", "./a", "größe"]
        {
            assert_eq!(violation(&packaged(name).unwrap_err()).0, "spec.config.mcp", "{name:?}");
        }
    }
}
