//! The JSON text of one cached object. [`super::dictionary`] compresses long texts.

use std::{borrow::Cow, sync::Arc};

use lz4_flex::block::decompress_with_dict;

/// Whole texts, one after another. The bytes of these texts never change, because compressed texts refer to them.
#[derive(Debug, Default)]
pub(super) struct Samples(Box<[u8]>);

impl Samples {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The JSON text of a cached object. A clone shares the memory, so that a reader can take the text while it holds the
/// lock, and expand and parse the text later.
#[derive(Debug, Clone)]
pub(super) enum Text {
    Plain(Arc<str>),
    Packed {
        bytes: Arc<[u8]>,
        /// The length of the plain text.
        length: u32,
        samples: Arc<Samples>,
    },
}

impl Text {
    /// Returns the length of the plain text.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Plain(text) => text.len(),
            // The conversion cannot fail on the machines that the operator runs on.
            Self::Packed { length, .. } => usize::try_from(*length).unwrap_or(usize::MAX),
        }
    }

    /// Returns the number of bytes that the text takes in memory.
    pub(super) fn stored(&self) -> usize {
        match self {
            Self::Plain(text) => text.len(),
            Self::Packed { bytes, .. } => bytes.len(),
        }
    }

    /// Returns the plain text.
    pub(super) fn plain(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Plain(text) => Cow::Borrowed(text.as_bytes()),
            // `Dictionary::pack` wrote the bytes with these samples, so the decoder does not fail.
            Self::Packed { bytes, samples, .. } => {
                Cow::Owned(decompress_with_dict(bytes, self.len(), samples.bytes()).unwrap_or_default())
            }
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::Plain(text.into())
    }
}
