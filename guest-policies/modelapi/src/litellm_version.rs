//! Reads LiteLLM's version from the name of an image. `kaos-operator upgrade-check` uses the same code.

/// The first version of LiteLLM that needs a master key, or the permission to start without a master key.
pub(crate) const FIRST: (u64, u64) = (1, 104);
/// The word that the names of LiteLLM's images contain. The tag of any other image is not a version of LiteLLM.
const NAME: &str = "litellm";

/// The version of LiteLLM in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// This version starts without a master key and without the permission to do so.
    Earlier,
    /// This version needs a master key, or the permission to start without a master key.
    Later,
    /// The tag names no version, so a node can pull any version.
    Moving,
    /// A digest fixes the version, but neither the digest nor the tag names the version.
    Fixed,
}

/// Returns the version of LiteLLM in an image.
pub(crate) fn version(image: &str) -> Version {
    let (named, digest) = image.split_once('@').map_or((image, None), |(named, digest)| (named, Some(digest)));
    let last = named.rsplit('/').next().unwrap_or_default();
    let (program, tag) = last.split_once(':').unwrap_or((last, ""));
    let numbers = |part: &str| {
        let mut parts = part.split('.').map(|number| number.parse::<u64>().ok());
        Some((parts.next()??, parts.next()??))
    };
    let tag = if program.contains(NAME) { tag } else { "" };
    let parts = || tag.split(['-', '_']);
    // A tag can begin with a date, so first look for a version after the letter v.
    let after_letter = parts().filter_map(|part| part.strip_prefix('v')).find_map(numbers);
    match (after_letter.or_else(|| parts().find_map(numbers)), digest) {
        (Some(numbers), _) if numbers < FIRST => Version::Earlier,
        (Some(_), _) => Version::Later,
        (None, Some(_)) => Version::Fixed,
        (None, None) => Version::Moving,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_an_image_tells_the_version_or_moves() {
        for (image, is) in [
            ("ghcr.io/berriai/litellm:main-v1.103.9-stable", Version::Earlier),
            ("ghcr.io/berriai/litellm:v1.74.3.rc.1", Version::Earlier),
            ("registry:5000/litellm-database:1.104.0", Version::Later),
            ("litellm:main-v1.104.2-nightly@sha256:00", Version::Later),
            ("litellm:v2.0", Version::Later),
            ("ghcr.io/berriai/litellm:main-stable", Version::Moving),
            ("ghcr.io/berriai/litellm:main-1a2b3c4", Version::Moving),
            ("litellm", Version::Moving),
            ("litellm@sha256:1104", Version::Fixed),
            ("litellm:2026.11.28-v1.90.0", Version::Earlier),
            ("litellm:2026-v1.104", Version::Later),
            ("litellm/other:1.105", Version::Moving),
            ("llm-proxy:main-stable", Version::Moving),
        ] {
            assert_eq!(version(image), is, "{image}");
        }
    }
}
