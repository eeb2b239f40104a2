//! Chooses the image of the operator as the chart does. The chart never uses the image of KAOS's operator.

use super::{
    go_image,
    report::{Sort, UpgradeFinding},
    values::{REPOSITORY, Values},
};

const TAG: &str = "controllerManager.manager.image.tag";
const DIGEST: &str = "controllerManager.manager.image.digest";
/// The name of this operator's image, without its registry.
const OWN: &str = "policy-operator";
/// The `appVersion` of the chart.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns whether a repository has the name of this operator's image.
///
/// An image of this name is never the image of KAOS's operator.
pub(super) fn is_ours(repository: &str) -> bool {
    repository.rsplit('/').next() == Some(OWN)
}

/// Corrects the operator's image in the values if it is the image of KAOS's operator.
///
/// In values of KAOS's chart, replaces a copy of the image of KAOS's operator by the usual image, and removes the tag
/// of KAOS's operator. Returns a finding about a copy or a tag that the chart refuses. Returns a note about a copy if
/// only the name shows that the image is a copy. `replaced` contains the images of KAOS's operator that run now, or
/// else the image that the release replaced.
pub(super) fn choose(values: &mut Values, replaced: &[String]) -> Option<UpgradeFinding> {
    if values.is_of_go() {
        return None;
    }
    let (repository, tag, digest) = (values.text(REPOSITORY), values.text(TAG), values.text(DIGEST));
    let is_named = values.is_carried && replaced.is_empty() && go_image::is_copy(&repository);
    let copy = replaced.iter().find(|image| go_image::repository(image) == repository);
    // No chart of KAOS has a value for a digest, so an image with a digest is not the image of KAOS's operator.
    if !is_ours(&repository) && digest.is_empty() && (is_named || copy.is_some()) {
        let of_copy = copy.and_then(|image| go_image::tag(image)).unwrap_or(&tag);
        if !values.is_carried || (!tag.is_empty() && of_copy != tag) {
            return Some(refused());
        }
        values.take_usual_image();
        return is_named.then(|| {
            let message = format!(
                "is {repository}: the chart takes it for the image of KAOS's operator, by its name, and replaces it"
            );
            let remedy = format!("if it is a copy of this operator, name its digest in {DIGEST}");
            UpgradeFinding::new(Sort::Note, REPOSITORY, message, remedy)
        });
    }
    let is_of_go = |image: &String| go_image::tag(image) == Some(&*tag);
    if tag.is_empty() || tag == VERSION || !digest.is_empty() || !replaced.iter().any(is_of_go) {
        return None;
    }
    if values.is_carried {
        values.set(TAG, "");
        return None;
    }
    let remedy = format!("remove it, or if your copy of this operator really has this tag, set {DIGEST}");
    Some(UpgradeFinding::new(Sort::Stops, TAG, format!("is {tag}, the tag of KAOS's operator"), remedy))
}

/// Returns the finding about the image of KAOS's operator in the values.
pub(super) fn refused() -> UpgradeFinding {
    let remedy = format!(
        "remove controllerManager.manager.image, with its tag, from the values; with `helm upgrade --reuse-values`, the \
         chart replaces this image: then check with --reuse-values; if this repository also has a copy of this operator, \
         set {DIGEST}"
    );
    UpgradeFinding::new(Sort::Stops, REPOSITORY, "is the image of KAOS's operator", remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: &str = "mirror:5000/operator:0.8.2";

    fn values(reuse: bool, image: &[(&str, &str)]) -> Values {
        let file = format!("{}/../../tests/golden/today/values/kaos-0.8.2.yaml", env!("CARGO_MANIFEST_DIR"));
        let mut values = if reuse { Values::read(&[file], true).unwrap() } else { Values::read(&[], false).unwrap() };
        for (name, text) in image {
            values.set(&format!("controllerManager.manager.image.{name}"), text);
        }
        values
    }

    /// Returns the image that the chart would choose, and the subject of the finding.
    fn chosen(reuse: bool, image: &[(&str, &str)], replaced: &[&str]) -> (String, String) {
        let mut values = values(reuse, image);
        let replaced: Vec<String> = replaced.iter().map(|&image| image.to_owned()).collect();
        let about = choose(&mut values, &replaced).map(|finding| finding.about).unwrap_or_default();
        (format!("{}:{}", values.text(REPOSITORY), values.text(TAG)), about)
    }

    #[test]
    fn a_copy_of_kaos_operator_is_replaced_in_values_of_its_chart_and_refused_in_others() {
        let (ours, copy) = ("ghcr.io/kaos-tools/policy-operator:", [("repository", "mirror:5000/operator")]);
        let old = [copy[0], ("tag", "0.8.2")];
        assert_eq!(chosen(true, &old, &[RUNNING]), (ours.to_owned(), String::new()));
        assert_eq!(chosen(false, &copy, &[RUNNING]).1, REPOSITORY);
        assert_eq!(
            chosen(true, &[copy[0], ("tag", "2")], &[RUNNING]).1,
            REPOSITORY,
            "it can be a copy of this operator"
        );
        let named = [("repository", "reg/kaos-operator"), ("tag", "0.8.2")];
        assert_eq!(chosen(true, &named, &[]), (ours.to_owned(), REPOSITORY.to_owned()));
        assert_eq!(chosen(true, &named, &[RUNNING]), ("reg/kaos-operator:".to_owned(), String::new()));
    }

    #[test]
    fn the_tag_of_kaos_operator_is_no_tag_of_this_operator() {
        let own = [("repository", "reg/policy-operator"), ("tag", "0.8.2")];
        assert_eq!(chosen(true, &own, &[RUNNING]), ("reg/policy-operator:".to_owned(), String::new()));
        assert_eq!(chosen(false, &own, &[RUNNING]).1, TAG);
        assert_eq!(chosen(false, &[("tag", "0.8.2")], &[RUNNING]).1, TAG);
        for image in [[own[0], ("tag", "2"), ("digest", "")], [own[0], own[1], ("digest", "sha256:0")]] {
            assert_eq!(chosen(false, &image, &[RUNNING]).1, "");
        }
    }
}
