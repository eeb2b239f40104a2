//! Reads a component once from front to back, before validation. Counts the parts that make validation or compilation
//! slow. Collects the version of the contract, the imports and the exports.

use wasmparser::{
    ComponentExternalKind, ComponentInstance, ComponentType, ComponentTypeDeclaration, Encoding, Instance,
    InstanceTypeDeclaration, Parser, Payload,
};

use super::{Bounds, InspectError, Part, version::SECTION};

/// The number of bytes of a long name that a message shows.
const BEGINNING: usize = 40;

/// The names and the numbers of parts that this module has found so far.
#[derive(Default)]
pub(super) struct Walked {
    level: u64,
    pub(super) contract: Option<String>,
    pub(super) imports: Vec<String>,
    pub(super) exports: Vec<String>,
    pub(super) functions: u64,
    pub(super) largest_function: u64,
    parts: u64,
    types: u64,
    members: u64,
    segments: u64,
    memories: u64,
    tables: u64,
    instances: u64,
    arguments: u64,
}

/// Reads the component up to its end, or up to the first part that exceeds a bound.
pub(super) fn walk(component: &[u8], bounds: &Bounds) -> Result<Walked, InspectError> {
    let mut seen = Walked::default();
    for payload in Parser::new(0).parse_all(component) {
        seen.payload(&payload?, bounds)?;
        for (part, count, limit) in [
            (Part::Functions, seen.functions, bounds.functions),
            (Part::Modules, seen.parts, bounds.parts),
            (Part::Levels, seen.level, bounds.levels),
            (Part::Types, seen.types, bounds.types),
            (Part::Members, seen.members, bounds.members),
            (Part::Segments, seen.segments, bounds.segments),
            (Part::Memories, seen.memories, bounds.memories),
            (Part::Tables, seen.tables, bounds.tables),
            (Part::Instances, seen.instances, bounds.instances),
            (Part::Arguments, seen.arguments, bounds.arguments),
        ] {
            at_most(part, count, limit)?;
        }
    }
    Ok(seen)
}

fn at_most(part: Part, count: u64, limit: u64) -> Result<(), InspectError> {
    if count > limit { Err(InspectError::TooMany { part, count, limit }) } else { Ok(()) }
}

impl Walked {
    fn payload(&mut self, payload: &Payload<'_>, bounds: &Bounds) -> Result<(), InspectError> {
        match payload {
            Payload::Version { encoding, .. } => {
                self.level += 1;
                self.parts += 1;
                if self.level == 1 && *encoding == Encoding::Module {
                    return Err(InspectError::CoreModule);
                }
            }
            Payload::End(_) => self.level = self.level.saturating_sub(1),
            Payload::CustomSection(section) if section.name() == SECTION => {
                let version = String::from_utf8_lossy(section.data());
                short(&version, bounds)?;
                self.contract = Some(version.trim().to_owned());
            }
            Payload::TypeSection(section) => self.types += u64::from(section.count()),
            Payload::CoreTypeSection(section) => self.types += u64::from(section.count()),
            Payload::MemorySection(section) => self.memories += u64::from(section.count()),
            Payload::TableSection(section) => self.tables += u64::from(section.count()),
            Payload::DataSection(section) => self.segments += u64::from(section.count()),
            Payload::ElementSection(section) => self.segments += u64::from(section.count()),
            Payload::CodeSectionEntry(body) => {
                let bytes = (body.range().end - body.range().start) as u64;
                if bytes > bounds.function_bytes {
                    let index = u32::try_from(self.functions).unwrap_or(u32::MAX);
                    return Err(InspectError::FunctionTooLarge { index, bytes, limit: bounds.function_bytes });
                }
                self.functions += 1;
                self.largest_function = self.largest_function.max(bytes);
            }
            Payload::ComponentTypeSection(section) => {
                for of in section.clone() {
                    self.declared(&of?, self.level, bounds)?;
                }
            }
            Payload::InstanceSection(section) => {
                for instance in section.clone() {
                    self.instances += 1;
                    self.arguments += match instance? {
                        Instance::Instantiate { args, .. } => args.len() as u64,
                        Instance::FromExports(exports) => exports.len() as u64,
                    };
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section.clone() {
                    self.instance(&instance?, bounds)?;
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    let name = import?.name.name;
                    self.member(name, bounds)?;
                    if self.level == 1 {
                        self.imports.push(name.to_owned());
                    }
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    let export = export?;
                    self.member(export.name.name, bounds)?;
                    if self.level == 1 && export.kind == ComponentExternalKind::Instance {
                        self.exports.push(export.name.name.to_owned());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn instance(&mut self, instance: &ComponentInstance<'_>, bounds: &Bounds) -> Result<(), InspectError> {
        self.instances += 1;
        match instance {
            ComponentInstance::Instantiate { args, .. } => {
                self.arguments += args.len() as u64;
                args.iter().try_for_each(|arg| short(arg.name, bounds))
            }
            ComponentInstance::FromExports(exports) => {
                self.arguments += exports.len() as u64;
                exports.iter().try_for_each(|export| short(export.name.name, bounds))
            }
        }
    }

    /// Counts a component type and the types that it declares.
    fn declared(&mut self, of: &ComponentType<'_>, level: u64, bounds: &Bounds) -> Result<(), InspectError> {
        at_most(Part::Levels, level, bounds.levels)?;
        self.types += 1;
        match of {
            ComponentType::Defined(defined) => self.defined(defined, bounds),
            ComponentType::Func(function) => function.params.iter().try_for_each(|(name, _)| self.member(name, bounds)),
            ComponentType::Component(declarations) => declarations.iter().try_for_each(|it| match it {
                ComponentTypeDeclaration::Type(of) => self.declared(of, level + 1, bounds),
                ComponentTypeDeclaration::Export { name, .. } => self.member(name.name, bounds),
                ComponentTypeDeclaration::Import(import) => self.member(import.name.name, bounds),
                ComponentTypeDeclaration::CoreType(_) | ComponentTypeDeclaration::Alias(_) => self.member("", bounds),
            }),
            ComponentType::Instance(declarations) => declarations.iter().try_for_each(|it| match it {
                InstanceTypeDeclaration::Type(of) => self.declared(of, level + 1, bounds),
                InstanceTypeDeclaration::Export { name, .. } => self.member(name.name, bounds),
                InstanceTypeDeclaration::CoreType(_) | InstanceTypeDeclaration::Alias(_) => self.member("", bounds),
            }),
            ComponentType::Resource { .. } => Ok(()),
        }
    }

    fn defined(&mut self, of: &wasmparser::ComponentDefinedType<'_>, bounds: &Bounds) -> Result<(), InspectError> {
        use wasmparser::ComponentDefinedType as Of;
        match of {
            Of::Record(fields) => fields.iter().try_for_each(|(name, _)| self.member(name, bounds)),
            Of::Variant(cases) => cases.iter().try_for_each(|case| self.member(case.name, bounds)),
            Of::Flags(names) | Of::Enum(names) => names.iter().try_for_each(|name| self.member(name, bounds)),
            Of::Tuple(types) => types.iter().try_for_each(|_| self.member("", bounds)),
            _ => Ok(()),
        }
    }

    fn member(&mut self, name: &str, bounds: &Bounds) -> Result<(), InspectError> {
        self.members += 1;
        short(name, bounds)
    }

    /// Returns each exported interface of the contract, with its version.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = (&str, &str)> {
        self.exports.iter().filter_map(|name| name.strip_prefix("kaos:policy/")?.split_once('@'))
    }
}

fn short(name: &str, bounds: &Bounds) -> Result<(), InspectError> {
    if name.len() <= bounds.name_bytes {
        return Ok(());
    }
    let begins = name.chars().take(BEGINNING).collect();
    Err(InspectError::NameTooLong { begins, bytes: name.len(), limit: bounds.name_bytes })
}
