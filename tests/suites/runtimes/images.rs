//! Replaces each image by a program, because the node runs no containers. `tests/runtimes/provision` installs the
//! packages with these programs. If no package contains the program of an image, `tests/runtimes/images` contains a
//! simple replacement.
//!
//! Like a real image, an [`Image`] has a command, and environment variables in addition to those of the pod.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// A program that the node runs instead of an image.
pub(crate) struct Image {
    /// A part of the image's name, by which the node recognises the image.
    named: &'static str,
    /// The Python environment of the program, below `target/runtimes`.
    environment: &'static str,
    /// The command that the node runs if the pod has no command. The node replaces `{}` by the path of
    /// `tests/runtimes/images`.
    command: &'static [&'static str],
}

/// A variable that makes LiteLLM use its own list of model prices. Without this variable, LiteLLM tries for several
/// seconds to download the prices.
pub(crate) const LOCAL_PRICES: (&str, &str) = ("LITELLM_LOCAL_MODEL_COST_MAP", "True");

/// The images. The node uses the first entry whose `named` is a part of the image's name.
const IMAGES: [Image; 8] = [
    Image {
        named: "kaos-agent",
        environment: "kaos",
        command: &["uvicorn", "pais.server:get_app", "--factory", "--host", "0.0.0.0", "--port", "8000"],
    },
    Image { named: "kaos-memory-service", environment: "kaos", command: &["python", "-m", "kaos_memory.app"] },
    Image { named: "litellm", environment: "litellm", command: &["litellm"] },
    Image { named: "python-string", environment: "kaos", command: &["python", "{}/python_string.py"] },
    Image { named: "fastmcp-codemode", environment: "kaos", command: &["python", "{}/fastmcp_codemode.py"] },
    Image { named: "ollama", environment: "kaos", command: &["ollama"] },
    Image { named: "kubernetes_mcp_server", environment: "kaos", command: &["kubernetes-mcp-server"] },
    Image { named: "provider", environment: "kaos", command: &["python", "{}/provider.py"] },
];

impl Image {
    /// Returns the program for the image with this name.
    pub(crate) fn named(name: &str) -> Result<&'static Self> {
        let image = IMAGES.iter().find(|image| name.contains(image.named));
        image.with_context(|| format!("the node has no program for the image {name}"))
    }

    /// Returns the folder with the program's executables, and the folder with replacements for missing executables.
    pub(crate) fn programs(&self) -> [PathBuf; 2] {
        [installed().join(self.environment).join("bin"), of_tests().join("images/bin")]
    }

    /// Returns a command that runs `words`. The first word names an executable of the program. The command's
    /// environment contains only `PYTHONPATH`.
    pub(crate) fn program(&self, words: &[String]) -> Result<Command> {
        let [name, arguments @ ..] = words else { bail!("a container without a command") };
        let found = self.programs().map(|folder| folder.join(name)).into_iter().find(|program| program.exists());
        let program = found.with_context(|| format!("there is no program {name}: run tests/runtimes/provision"))?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("PYTHONPATH", of_tests().join("node"));
        Ok(command)
    }

    /// Returns the command of the image.
    pub(crate) fn command(&self) -> Vec<String> {
        let folder = of_tests().join("images").display().to_string();
        self.command.iter().map(|word| word.replace("{}", &folder)).collect()
    }
}

/// Returns the folder with the Python files of this suite.
pub(crate) fn of_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("runtimes")
}

/// Returns the folder into which `provision` installs packages.
pub(crate) fn installed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/runtimes")
}

/// Returns the folder with the packages of a Python environment.
pub(crate) fn packages(environment: &str) -> Result<PathBuf> {
    let library = installed().join(environment).join("lib");
    let mut found = std::fs::read_dir(&library)
        .with_context(|| {
            format!("the folder {library} does not exist: run tests/runtimes/provision", library = library.display())
        })?
        .filter_map(|entry| Some(entry.ok()?.path().join("site-packages")));
    found.find(|path| path.is_dir()).with_context(|| format!("{} has no packages", library.display()))
}

/// Returns a folder of the LiteLLM proxy with a table that the package tiktoken needs. Without this folder, tiktoken
/// would download the table. The real image of the memory service also contains the table.
pub(crate) fn table_of_tokens() -> Result<PathBuf> {
    let folder = packages("litellm")?.join("litellm/litellm_core_utils/tokenizers");
    ensure!(folder.is_dir(), "the LiteLLM proxy ships no table of tokens: {}", folder.display());
    Ok(folder)
}
