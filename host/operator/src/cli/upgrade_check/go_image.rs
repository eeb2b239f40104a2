//! Recognizes the image of KAOS's operator, which is written in Go.

/// The names of the image, without the registry.
const IMAGES: [&str; 2] = ["axsauze/kaos-operator", "axsaucedo/kaos-operator"];
/// The last part of the image's name, also for a copy of the image in another registry.
const COPY: &str = "kaos-operator";

/// Returns whether a repository contains the image of KAOS's operator.
pub(super) fn is_repository(repository: &str) -> bool {
    IMAGES.iter().any(|image| ends_with(repository, image))
}

/// Returns whether the last part of a repository's name is the name of the image of KAOS's operator, as in a copy of
/// the image.
pub(super) fn is_copy(repository: &str) -> bool {
    ends_with(repository, COPY)
}

/// Returns the repository of an image: its name without a tag and a digest.
pub(super) fn repository(image: &str) -> &str {
    split(image).0
}

/// Returns the tag of an image.
pub(super) fn tag(image: &str) -> Option<&str> {
    split(image).1
}

fn split(image: &str) -> (&str, Option<&str>) {
    let named = image.split('@').next().unwrap_or_default();
    // A colon can also precede the port of the registry.
    match named.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        _ => (named, None),
    }
}

fn ends_with(repository: &str, name: &str) -> bool {
    repository.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}
