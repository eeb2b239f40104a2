//! A source that a plan declares for a value: a path in the object, in the settings or in a found object.

use super::path::{Selector, parse};

/// The maximum number of bytes of a path or a source.
pub(crate) const TEXT: usize = 1024;

/// A source that a plan declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A path in the object.
    Object(Vec<Selector>),
    /// A path in the settings of a layer.
    Setting(Vec<Selector>),
    /// The id of a need, and a path in an object that answers the need.
    Found(String, Vec<Selector>),
}

impl Source {
    /// Parses a source. In the contract, the comment at `type source` describes the form of the text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > TEXT {
            return None;
        }
        let first = &text[..text.find(['.', '[', ' ']).unwrap_or(text.len())];
        match first {
            "spec" | "metadata" => parse(text).map(Self::Object),
            "settings" => parse(text).map(|mut path| Self::Setting(path.split_off(1))),
            _ => {
                let (id, path) = text.split_once(' ')?;
                let path = parse(path).filter(|_| !id.is_empty())?;
                Some(Self::Found(id.to_owned(), path))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origins::PathStep;

    #[test]
    fn the_beginning_of_a_source_decides_about_its_kind() {
        let name = |text: &str| Selector::Step(PathStep::Name(text.to_owned()));
        assert_eq!(Source::parse("spec.a"), Some(Source::Object(vec![name("spec"), name("a")])));
        assert_eq!(Source::parse("metadata"), Some(Source::Object(vec![name("metadata")])));
        assert_eq!(Source::parse("settings.a"), Some(Source::Setting(vec![name("a")])));
        assert_eq!(Source::parse("settings"), Some(Source::Setting(vec![])));
        let path = vec![name("status"), name("endpoint")];
        assert_eq!(Source::parse("ModelAPI/llm status.endpoint"), Some(Source::Found("ModelAPI/llm".to_owned(), path)));
    }

    #[test]
    fn a_place_outside_of_the_object_the_settings_and_found_objects_is_no_source() {
        for text in ["", "status.x", "kind", "specs.x", "spec..x", "ModelAPI/llm", " status", &"spec.".repeat(500)] {
            assert_eq!(Source::parse(text), None, "{text}");
        }
    }
}
