//! Opens the console in the user's browser.
//!
//! Other users of this machine can see the arguments of a program. So the browser gets the path of a file that only
//! this user can read, and the file leads to the console.

use std::{
    fs,
    io::Write as _,
    os::unix::{
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use maud::{DOCTYPE, html};

/// A folder with the file that leads the browser to the console. The folder is deleted on drop.
#[derive(Debug)]
pub(in crate::cli) struct OpeningFile(PathBuf);

impl OpeningFile {
    /// Writes a file that leads the browser to this address.
    pub(super) fn new(address: &str) -> anyhow::Result<Self> {
        let mut name = [0; 8];
        getrandom::fill(&mut name).map_err(|error| anyhow::anyhow!("this system has no random numbers: {error}"))?;
        let name = format!("kaos-console-{:016x}", u64::from_ne_bytes(name));
        let folder = Self(std::env::temp_dir().join(name));
        // Fails if the folder exists, so the folder is this user's own.
        fs::DirBuilder::new().mode(0o700).create(&folder.0)?;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="referrer" content="no-referrer";
                    meta http-equiv="refresh" content={ "0; url=" (address) };
                    title { "KAOS console" }
                }
                body { p { a href=(address) { "Open the console" } } }
            }
        };
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.path())?;
        file.write_all(page.into_string().as_bytes())?;
        Ok(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("open.html")
    }

    /// Opens the file in the user's browser. Returns false without a screen or a program that opens files.
    pub(super) fn open(&self) -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let has_screen = cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(is_set);
        let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        has_screen && start(Path::new(program), &self.path())
    }
}

impl Drop for OpeningFile {
    fn drop(&mut self) {
        // Ignore an error: a file that remains is harmless, because its secret is no longer valid.
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// Starts a program in a process group of its own. Otherwise, Ctrl-C in this terminal would also end the program, which
/// can be the user's browser.
fn start(program: &Path, file: &Path) -> bool {
    let quiet = Stdio::null;
    let mut command = Command::new(program);
    command.arg(file).stdin(quiet()).stdout(quiet()).stderr(quiet()).process_group(0);
    let Ok(mut child) = command.spawn() else { return false };
    std::thread::spawn(move || child.wait());
    true
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_this_user_can_read_the_file_and_the_file_goes_with_the_console() {
        let file = OpeningFile::new("http://127.0.0.1:1/?token=ab").expect("a file");
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!((mode(&file.0), mode(&file.path())), (0o700, 0o600));
        let text = fs::read_to_string(file.path()).expect("a text");
        assert!(text.contains("0; url=http://127.0.0.1:1/?token=ab"), "{text}");
        let path = file.path();
        drop(file);
        assert!(!path.exists());
    }
}
