//! Recognizes the image of KAOS's operator, which is written in Go.

/// The image, after its registry.
const IMAGES: [&str; 2] = ["axsauze/kaos-operator", "axsaucedo/kaos-operator"];

/// Returns whether a repository contains the image of KAOS's operator.
pub(super) fn is_repository(repository: &str) -> bool {
    IMAGES.iter().any(|image| repository.strip_suffix(image).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
}

/// Returns whether an image, with a tag or a digest, is the image of KAOS's operator.
pub(super) fn is_image(image: &str) -> bool {
    let named = image.split('@').next().unwrap_or_default();
    is_repository(
        named.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).map_or(named, |(repository, _)| repository),
    )
}
