//! Decides which calls of WASI a policy may contain, and contains the module that answers these calls.

/// The name of the module from which a core module imports WASI preview 1.
pub(super) const MODULE: &str = "wasi_snapshot_preview1";

/// The module that answers the calls of WASI inside of the component. `wasi.wat` is the source.
pub(super) const ADAPTER: &[u8] = include_bytes!("wasi.wasm");

/// The calls that every program contains, because its runtime needs them to start and to end. The adapter answers them
/// in the same way in every sandbox.
const ANSWERED: [&str; 27] = [
    "args_get",
    "args_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_close",
    "fd_fdstat_get",
    "fd_fdstat_set_flags",
    "fd_fdstat_set_rights",
    "fd_filestat_get",
    "fd_filestat_set_size",
    "fd_pread",
    "fd_prestat_dir_name",
    "fd_prestat_get",
    "fd_pwrite",
    "fd_read",
    "fd_readdir",
    "fd_seek",
    "fd_sync",
    "fd_tell",
    "fd_write",
    "poll_oneoff",
    "proc_exit",
    "random_get",
    "sched_yield",
    "sock_shutdown",
];

/// The calls that use paths of files, or sockets. With `--stub-wasi`, these calls fail.
const OUTSIDE: [&str; 13] = [
    "path_create_directory",
    "path_filestat_get",
    "path_filestat_set_times",
    "path_link",
    "path_open",
    "path_readlink",
    "path_remove_directory",
    "path_rename",
    "path_symlink",
    "path_unlink_file",
    "sock_accept",
    "sock_recv",
    "sock_send",
];

/// Returns why a module with these WASI imports cannot become a policy; `None` if it can.
pub(super) fn refusal(imports: &[&str], stub: bool) -> Option<String> {
    if let Some(unknown) = imports.iter().find(|name| !ANSWERED.contains(*name) && !OUTSIDE.contains(*name)) {
        return Some(format!(
            "imports {MODULE}.{}, but a policy cannot use this function of WASI preview 1: remove the code that \
             declares the import",
            kaos_policy::printable::printable(unknown)
        ));
    }
    let outside = |prefix: &str| -> Vec<&str> {
        imports.iter().filter(|name| name.starts_with(prefix) && OUTSIDE.contains(*name)).copied().collect()
    };
    let (files, sockets) = (outside("path_"), outside("sock_"));
    let (calls, reason) = match (files.is_empty() || stub, sockets.is_empty() || stub) {
        (true, true) => return None,
        (false, _) => (files, "a policy has no files: embed the file when you build the policy (in Go: `//go:embed`)"),
        (true, false) => (sockets, "a policy has no network: list the objects that the policy reads in its needs"),
    };
    Some(format!(
        "imports {}, but {reason}. If only a library contains these calls, and the policy never makes them, pass \
         --stub-wasi: these calls then fail",
        calls.iter().map(|name| format!("{MODULE}.{name}")).collect::<Vec<_>>().join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = include_str!("wasi.wat");

    #[test]
    fn the_bytes_of_the_adapter_are_those_of_its_source() {
        let bytes = wat::parse_str(SOURCE).unwrap();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/policy/build/wasi.wasm"), &bytes).unwrap();
        }
        assert!(bytes == ADAPTER, "wasi.wasm is old: UPDATE_GOLDEN=1 cargo test --package kaos-operator --lib wasi");
    }

    #[test]
    fn the_adapter_has_every_call_that_a_module_may_import_and_no_other() {
        for name in ANSWERED.iter().chain(&OUTSIDE) {
            assert!(SOURCE.contains(&format!("(export \"{name}\")")), "{name}");
        }
        assert_eq!(SOURCE.matches("(export \"").count(), ANSWERED.len() + OUTSIDE.len());
    }

    #[test]
    fn a_call_that_needs_the_outside_world_is_refused_with_its_name_and_the_reason() {
        assert_eq!(refusal(&["fd_write", "clock_time_get", "random_get"], false), None);
        let told = refusal(&["fd_write", "path_open", "path_link"], false).unwrap();
        for part in ["wasi_snapshot_preview1.path_open, wasi_snapshot_preview1.path_link", "no files", "--stub-wasi"] {
            assert!(told.contains(part), "{told}");
        }
        let told = refusal(&["sock_accept"], false).unwrap();
        assert!(told.contains("sock_accept, but a policy has no network"), "{told}");
        assert_eq!(refusal(&["path_open", "sock_accept"], true), None);
        let told = refusal(&["thread_spawn"], true).unwrap();
        assert!(told.contains("wasi_snapshot_preview1.thread_spawn, but a policy cannot use this"), "{told}");
    }
}
