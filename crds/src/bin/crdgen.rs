//! Writes the CRDs into `crds/generated`.
//!
//! `cargo run -p kaos-crds --features schema --bin crdgen`

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("generated");
    for (file, text) in kaos_crds::generate::files()? {
        std::fs::write(folder.join(&file), text)?;
        println!("crds/generated/{file}");
    }
    Ok(())
}
