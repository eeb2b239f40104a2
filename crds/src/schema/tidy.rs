//! What the generated schemas need before they are a good CRD: nothing is nullable that need not be, and
//! descriptions are running text.

use serde_json::Value;

pub(crate) fn tidy(crd: Value) -> Value {
    crd
}
