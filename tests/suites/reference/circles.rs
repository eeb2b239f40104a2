//! Finds circles of files or folders in a crate, for example: A uses B, B uses C, and C uses A. The test reads `use`
//! declarations and paths as text.
//!
//! File A uses file B if A names an item that B defines. File A does not use file B if A only declares the module B or
//! re-exports its items. A folder uses all files and folders that its files use. The test skips code under
//! `#[cfg(test)]`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::{
    page::ROOT,
    rust::{declared_modules, defines, paths, reduced, uses},
};

/// The path of a module. The root module of a crate has an empty path.
type Module = Vec<String>;

struct File {
    module: Module,
    text: String,
    /// Each name that a `use` declaration imports, with the path of the item.
    imports: BTreeMap<String, Vec<String>>,
    handed_on: BTreeSet<String>,
}

struct Crate {
    name: String,
    files: Vec<File>,
    by_module: BTreeMap<Module, usize>,
}

/// For each module, the modules that it uses.
type Uses = BTreeMap<Module, BTreeSet<Module>>;

/// The folders that contain crates.
const FOLDERS: [&str; 4] = ["crds", "guest-policies", "host", "tests"];

/// Returns every circle. A circle is a list of files or folders.
pub(crate) fn all() -> Vec<String> {
    let sources: Vec<PathBuf> = FOLDERS.iter().flat_map(|folder| sources(&Path::new(ROOT).join(folder))).collect();
    assert!(sources.len() > 8, "{sources:?}");
    sources.iter().flat_map(|source| Crate::read(source).circles()).collect()
}

/// Returns the `src` folders of the repository's crates.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries.filter(|path| path.is_dir() && !path.ends_with("target") && !path.ends_with(".git"));
    let below = folders.flat_map(|folder| sources(&folder));
    let own = folder.join("src");
    let is_crate = folder.join("Cargo.toml").exists() && own.exists();
    is_crate.then_some(own).into_iter().chain(below).collect()
}

impl Crate {
    fn read(source: &Path) -> Self {
        let name = source.strip_prefix(ROOT).unwrap().display().to_string();
        let mut made = Self { name, files: Vec::new(), by_module: BTreeMap::new() };
        let roots = ["lib.rs", "main.rs"].map(|root| source.join(root));
        if let Some(root) = roots.iter().find(|root| root.exists()) {
            made.add(root, Vec::new(), source);
        }
        made
    }

    /// Reads a file, and the files of the modules that it declares.
    fn add(&mut self, path: &Path, module: Module, folder: &Path) {
        let text = reduced(&fs::read_to_string(path).unwrap());
        for name in declared_modules(&text) {
            let (inner, below) = (module.iter().cloned().chain([name.clone()]).collect(), folder.join(&name));
            let files = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
            if let Some(file) = files.iter().find(|file| file.exists()) {
                self.add(file, inner, &below);
            }
        }
        let (mut imports, mut handed_on) = (BTreeMap::new(), BTreeSet::new());
        for used in uses(&text) {
            if used.is_public {
                handed_on.insert(used.name.clone());
            }
            imports.insert(used.name, used.path);
        }
        self.by_module.insert(module.clone(), self.files.len());
        self.files.push(File { module, text, imports, handed_on });
    }

    /// Returns the file that defines the item to which a path in the file `from` refers. Returns `None` if no file of
    /// the crate defines the item.
    fn target(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let file = &self.files[from];
        let (first, rest) = path.split_first()?;
        let (mut module, mut rest) = match first.as_str() {
            "crate" => (Vec::new(), rest),
            "self" => (file.module.clone(), rest),
            "super" => {
                let up = path.iter().take_while(|step| *step == "super").count();
                (file.module[..file.module.len().checked_sub(up)?].to_vec(), &path[up..])
            }
            _ if self.is_module(&file.module, first) => (file.module.clone(), path),
            _ => {
                let import = file.imports.get(first).filter(|import| import.first() != Some(first) && depth < 8)?;
                let whole: Vec<String> = import.iter().chain(rest).cloned().collect();
                return self.target(from, &whole, depth + 1);
            }
        };
        while let Some((step, further)) = rest.split_first().filter(|(step, _)| self.is_module(&module, step)) {
            module.push(step.clone());
            rest = further;
        }
        let found = *self.by_module.get(&module)?;
        let (name, further) = rest.split_first()?;
        let holder = &self.files[found];
        match holder.imports.get(name) {
            Some(import) if !defines(&holder.text, name) && depth < 8 => {
                let whole: Vec<String> = import.iter().chain(further).cloned().collect();
                self.target(found, &whole, depth + 1)
            }
            _ => Some(found),
        }
    }

    fn is_module(&self, module: &[String], name: &str) -> bool {
        self.by_module.contains_key(&module.iter().cloned().chain([name.to_owned()]).collect::<Module>())
    }

    /// Returns the files that a file uses.
    fn used_by(&self, from: usize) -> BTreeSet<usize> {
        let file = &self.files[from];
        let mentioned = paths(&file.text);
        let is_used = |name: &String| !file.handed_on.contains(name) || mentioned.iter().any(|path| path[0] == *name);
        let imported = file.imports.iter().filter(|(name, _)| is_used(name)).map(|(_, path)| path);
        let named = mentioned.iter().filter(|path| path.len() > 1);
        imported.chain(named).filter_map(|path| self.target(from, path, 0)).filter(|to| *to != from).collect()
    }

    /// Returns every set of files in which each file uses all others, directly or through further files. Also returns,
    /// for each folder, such sets of the files and folders inside of this folder.
    fn circles(&self) -> BTreeSet<String> {
        let (mut files, mut siblings) = (Uses::new(), Uses::new());
        for (from, file) in self.files.iter().enumerate() {
            for other in self.used_by(from).into_iter().map(|to| &self.files[to]) {
                files.entry(file.module.clone()).or_default().insert(other.module.clone());
                let shared = file.module.iter().zip(&other.module).take_while(|(one, other)| one == other).count();
                if let (Some(one), Some(other)) = (file.module.get(..=shared), other.module.get(..=shared)) {
                    siblings.entry(one.to_vec()).or_default().insert(other.to_vec());
                }
            }
        }
        let told = |circle: BTreeSet<Module>| {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            format!("{}: {}", self.name, names.join(", "))
        };
        circles(&files).into_iter().chain(circles(&siblings)).map(told).collect()
    }
}

/// Returns every set of modules in which each module uses all others, directly or through further modules.
fn circles(uses: &Uses) -> BTreeSet<BTreeSet<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = uses.keys().map(|from| (from, reached(uses, from))).collect();
    let circle = |from: &Module| -> BTreeSet<Module> {
        let mutual = reach[from].iter().filter(|to| reach.get(**to).is_some_and(|back| back.contains(from)));
        mutual.map(|to| (*to).clone()).collect()
    };
    uses.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// Returns the modules that one module uses, directly or through further modules.
fn reached<'a>(uses: &'a Uses, from: &'a Module) -> BTreeSet<&'a Module> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        open.extend(uses.get(module).into_iter().flatten().filter(|to| seen.insert(*to)));
    }
    seen
}
