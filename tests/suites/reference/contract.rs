//! Generates `docs/reference/contract.md` from `wit/policy.wit`.

use std::fmt::Write as _;

use wit_parser::{
    Docs, Function, FunctionKind, Interface, Resolve, Type, TypeDef, TypeDefKind, TypeOwner, World, WorldItem,
};

/// The text for a type that this module cannot write. The page must not contain this text.
pub(crate) const NO_NAME: &str = "(no name)";

/// Generates the page for a contract.
pub(crate) fn page(file: &str, text: &str) -> anyhow::Result<String> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str(file, text)?;
    let package = &resolve.packages[package];
    let mut page = format!("# The contract: {}\n\n", package.name);
    page += "`UPDATE_REFERENCE=1 cargo test -p kaos-tests --test reference` generates this page from \
             [wit/policy.wit](../../wit/policy.wit), which is the contract.\n\n";
    page += &paragraphs(&package.docs);
    let interfaces = || package.interfaces.iter().map(|(name, id)| (name, &resolve.interfaces[*id]));
    page += "## Worlds\n\n";
    for (name, id) in &package.worlds {
        page += &world(&resolve, name, &resolve.worlds[*id]);
    }
    page += "## Functions\n\n";
    for (name, interface) in interfaces().filter(|(_, interface)| !interface.functions.is_empty()) {
        let _ = writeln!(page, "### {name}\n");
        page += &paragraphs(&interface.docs);
        for (name, id) in &interface.types {
            let of = &resolve.types[*id];
            if matches!(of.kind, TypeDefKind::Resource) {
                let _ = writeln!(page, "#### Resource {name}\n");
                page += &paragraphs(&of.docs);
            }
        }
        for function in interface.functions.values() {
            page += &signature(&resolve, function);
        }
    }
    page += "## Types\n\n";
    for (_, interface) in interfaces().filter(|(_, interface)| interface.functions.is_empty()) {
        page += &paragraphs(&interface.docs);
        page += &types(&resolve, interface);
    }
    Ok(page.trim_end().to_owned() + "\n")
}

fn world(resolve: &Resolve, name: &str, world: &World) -> String {
    let exports = world.exports.values().filter_map(|item| match item {
        WorldItem::Interface { id, .. } => Some(format!("`{}`", resolve.interfaces[*id].name.as_deref()?)),
        _ => None,
    });
    let docs = paragraphs(&world.docs);
    format!("**{name}**: {}\nExports {}.\n\n", docs.trim_end(), exports.collect::<Vec<_>>().join(", "))
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    // Skip the first parameter of a method, which is the resource to which the method belongs.
    let own = usize::from(matches!(function.kind, FunctionKind::Method(_)));
    let parameters = function.params.iter().skip(own);
    let parameters = parameters.map(|parameter| format!("{}: {}", parameter.name, plain(resolve, &parameter.ty)));
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    let text = if matches!(function.kind, FunctionKind::Constructor(_)) {
        format!("constructor({parameters})")
    } else {
        let result = function.result.map_or_else(String::new, |of| format!(" -> {}", plain(resolve, &of)));
        format!("{}: func({parameters}){result}", function.item_name())
    };
    format!("```wit\n{text}\n```\n\n{}", paragraphs(&function.docs))
}

fn types(resolve: &Resolve, interface: &Interface) -> String {
    let mut text = String::new();
    for (name, id) in &interface.types {
        let of = &resolve.types[*id];
        let _ = writeln!(text, "### {name}\n");
        text += &paragraphs(&of.docs);
        text += &definition(resolve, of);
    }
    text
}

fn definition(resolve: &Resolve, of: &TypeDef) -> String {
    let row = |name: &str, of: Option<&Type>, docs: &Docs| {
        let of = of.map_or_else(String::new, |of| format!("`{}`", plain(resolve, of)));
        format!("| `{name}` | {of} | {} |\n", line(docs))
    };
    let table = |heading: &str, rows: Vec<String>| format!("{heading}\n|---|---|---|\n{}\n", rows.concat());
    match &of.kind {
        TypeDefKind::Record(record) => {
            let rows = record.fields.iter().map(|field| row(&field.name, Some(&field.ty), &field.docs));
            table("| field | type | |", rows.collect())
        }
        TypeDefKind::Variant(variant) => {
            let rows = variant.cases.iter().map(|case| row(&case.name, case.ty.as_ref(), &case.docs));
            table("| case | with | |", rows.collect())
        }
        TypeDefKind::Enum(cases) => {
            let names: Vec<_> = cases.cases.iter().map(|case| format!("`{}`", case.name)).collect();
            format!("One of {}.\n\n", names.join(", "))
        }
        TypeDefKind::Type(other) => format!("A `{}`.\n\n", plain(resolve, other)),
        other => format!("A {}.\n\n", other.as_str()),
    }
}

/// Returns a type in the notation of the contract.
fn plain(resolve: &Resolve, of: &Type) -> String {
    let Type::Id(id) = of else { return primitive(of).to_owned() };
    let of = &resolve.types[*id];
    if let (Some(name), TypeOwner::Interface(_)) = (&of.name, of.owner) {
        return name.clone();
    }
    let inner = |of: &Type| plain(resolve, of);
    let side = |of: &Option<Type>| of.as_ref().map_or_else(|| "_".to_owned(), inner);
    match &of.kind {
        TypeDefKind::Option(of) => format!("option<{}>", inner(of)),
        TypeDefKind::List(of) => format!("list<{}>", inner(of)),
        TypeDefKind::Tuple(of) => format!("tuple<{}>", of.types.iter().map(inner).collect::<Vec<_>>().join(", ")),
        TypeDefKind::Result(of) => format!("result<{}, {}>", side(&of.ok), side(&of.err)),
        TypeDefKind::Type(of) => inner(of),
        other => other.as_str().to_owned(),
    }
}

fn primitive(of: &Type) -> &'static str {
    match of {
        Type::Bool => "bool",
        Type::String => "string",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S64 => "s64",
        // Any other type: the contract does not use such types yet.
        _ => NO_NAME,
    }
}

fn paragraphs(docs: &Docs) -> String {
    docs.contents.as_ref().map_or_else(String::new, |text| format!("{}\n\n", text.trim()))
}

/// Formats documentation for a table cell.
fn line(docs: &Docs) -> String {
    let text = docs.contents.as_deref().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
