//! The programs that stand behind the names of images: the packages that `tests/runtimes/provision` installs.
//!
//! An image adds a command, and variables of its own, to those of the pod.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// A program that is an image to the node.
pub(crate) struct Image {
    /// A word of the image's name.
    named: &'static str,
    /// The environment below `target/runtimes`.
    environment: &'static str,
    /// The command that runs where the pod names none. `{}` is the folder of the stand-ins.
    command: &'static [&'static str],
}

/// Without this variable, LiteLLM tries for seconds to download the prices of models.
pub(crate) const LOCAL_PRICES: (&str, &str) = ("LITELLM_LOCAL_MODEL_COST_MAP", "True");

/// The images, the most telling word first.
const IMAGES: [Image; 5] = [
    Image {
        named: "kaos-agent",
        environment: "kaos",
        command: &["uvicorn", "pais.server:get_app", "--factory", "--host", "0.0.0.0", "--port", "8000"],
    },
    Image { named: "kaos-memory-service", environment: "kaos", command: &["python", "-m", "kaos_memory.app"] },
    Image { named: "litellm", environment: "litellm", command: &["litellm"] },
    Image { named: "python-string", environment: "kaos", command: &["python", "{}/python_string.py"] },
    Image { named: "provider", environment: "kaos", command: &["python", "{}/provider.py"] },
];

impl Image {
    /// The image of this name.
    pub(crate) fn named(name: &str) -> Result<&'static Self> {
        let image = IMAGES.iter().find(|image| name.contains(image.named));
        image.with_context(|| format!("the node has no program for the image {name}"))
    }

    /// The folder with the programs of the image.
    pub(crate) fn programs(&self) -> PathBuf {
        installed().join(self.environment).join("bin")
    }

    /// A command with nothing of this process in its environment.
    pub(crate) fn program(&self, words: &[String]) -> Result<Command> {
        let [name, arguments @ ..] = words else { bail!("a container without a command") };
        let program = self.programs().join(name);
        ensure!(program.exists(), "{} does not exist: run tests/runtimes/provision", program.display());
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("PYTHONPATH", of_tests().join("node"));
        Ok(command)
    }

    /// The command of the image.
    pub(crate) fn command(&self) -> Vec<String> {
        let folder = of_tests().join("images").display().to_string();
        self.command.iter().map(|word| word.replace("{}", &folder)).collect()
    }
}

/// The folder with the Python files of this suite.
pub(crate) fn of_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("runtimes")
}

/// The folder into which `provision` installs.
pub(crate) fn installed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/runtimes")
}

/// The folder with the packages of an environment.
pub(crate) fn packages(environment: &str) -> Result<PathBuf> {
    let library = installed().join(environment).join("lib");
    let mut found = std::fs::read_dir(&library)
        .with_context(|| format!("{} is not there: run tests/runtimes/provision", library.display()))?
        .filter_map(|entry| Some(entry.ok()?.path().join("site-packages")));
    found.find(|path| path.is_dir()).with_context(|| format!("{} has no packages", library.display()))
}

/// The folder in which the package tiktoken finds its table, which it would download otherwise. The LiteLLM proxy ships
/// the same table, and the image of the memory service has it from when it was built.
pub(crate) fn table_of_tokens() -> Result<PathBuf> {
    let folder = packages("litellm")?.join("litellm/litellm_core_utils/tokenizers");
    ensure!(folder.is_dir(), "the LiteLLM proxy ships no table of tokens: {}", folder.display());
    Ok(folder)
}
