//! Compresses the texts of the objects of one type. Objects of a type resemble each other: a policy writes the same
//! Deployment for each Agent, except for names and a few values. So the dictionary keeps a few whole texts as samples.
//! Compression shrinks a text that resembles a sample to about a tenth. Without samples, compression would shrink the
//! text only to two thirds.

use std::sync::{Arc, Mutex};

use lz4_flex::block::compress_with_dict;

use super::text::{Samples, Text};
use crate::locking::lock;

/// The minimum length of a text to compress. For a shorter text, the saved memory is not worth the time.
const MIN_LENGTH: usize = 256;

/// The maximum number of bytes of the samples of one type. The number is small, because each compression reads all
/// samples. LZ4 can only use samples of up to 64 KiB.
const MAX_SAMPLE_BYTES: usize = 16 << 10;

/// A text resembles a sample if compression with the samples makes the text at least this many times shorter. Other
/// JSON becomes only one and a half to three times shorter.
const RESEMBLANCE: usize = 4;

/// Compresses the texts of one type. All watches on the type share one dictionary.
#[derive(Debug, Default)]
pub(super) struct Dictionary(Mutex<Arc<Samples>>);

impl Dictionary {
    /// Compresses a text. Returns the text unchanged if it is already compressed, or would not become shorter.
    pub(super) fn packed(&self, text: Text) -> Text {
        match &text {
            Text::Plain(plain) => self.pack(plain).unwrap_or(text),
            Text::Packed { .. } => text,
        }
    }

    /// Compresses a text. Returns `None` if the compressed text would not be shorter. If no sample resembles the text,
    /// the text itself becomes a sample. Texts that were compressed earlier keep a reference to the samples of that
    /// time.
    fn pack(&self, text: &str) -> Option<Text> {
        let length = u32::try_from(text.len()).ok().filter(|_| text.len() >= MIN_LENGTH)?;
        let mut samples = Arc::clone(&lock(&self.0));
        let mut bytes = compress_with_dict(text.as_bytes(), samples.bytes());
        if bytes.len() > text.len() / RESEMBLANCE
            && let Some(grown) = self.grow(&samples, text)
        {
            bytes = compress_with_dict(text.as_bytes(), grown.bytes());
            samples = grown;
        }
        (bytes.len() < text.len()).then(|| Text::Packed { bytes: bytes.into(), length, samples })
    }

    /// Adds a sample. Returns `None` if the sample would make the samples too long, or if another task added a sample
    /// meanwhile.
    fn grow(&self, known: &Arc<Samples>, text: &str) -> Option<Arc<Samples>> {
        if known.bytes().len() + text.len() > MAX_SAMPLE_BYTES {
            return None;
        }
        let mut samples = lock(&self.0);
        if !Arc::ptr_eq(&samples, known) {
            return None;
        }
        *samples = Arc::new(Samples::new([known.bytes(), text.as_bytes()].concat()));
        Some(Arc::clone(&samples))
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use serde_json::json;

    use super::*;

    fn deployment(number: usize) -> String {
        let name = format!("agent-{number}");
        let env: Vec<_> = (0..40).map(|at| json!({"name": format!("VARIABLE_{at}"), "value": at * 77})).collect();
        let owner = json!({"kind": "Agent", "name": name, "uid": format!("{:032x}", number * 0x9E37_79B9)});
        json!({"kind": "Deployment", "metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"env": env}})
            .to_string()
    }

    fn random(rng: &mut Rng, length: usize) -> String {
        (0..length).map(|_| rng.char('!'..'~')).collect()
    }

    fn plain(text: &Text) -> String {
        String::from_utf8(text.plain().into_owned()).unwrap()
    }

    #[test]
    fn texts_that_resemble_a_sample_take_a_tenth() {
        let dictionary = Dictionary::default();
        let texts: Vec<_> = (0..100).map(|number| dictionary.packed(deployment(number).into())).collect();
        for (number, text) in texts.iter().enumerate() {
            assert_eq!((plain(text), text.len()), (deployment(number), deployment(number).len()));
            assert!(text.stored() * 10 < text.len(), "{number}: {} of {}", text.stored(), text.len());
        }
        assert_eq!(lock(&dictionary.0).bytes().len(), deployment(0).len(), "one sample serves all");
    }

    #[test]
    fn texts_of_every_length_and_content_stay_the_same() {
        let dictionary = Dictionary::default();
        let mut rng = Rng::with_seed(7);
        let lengths = [0, 1, MIN_LENGTH - 1, MIN_LENGTH, 5_000, MAX_SAMPLE_BYTES, 70_000, 1 << 20];
        let texts: Vec<String> = (0..200).map(|at| random(&mut rng, lengths[at % lengths.len()])).collect();
        let mixed = texts.iter().enumerate().map(|(at, text)| format!("{text}{}", deployment(at)));
        let all: Vec<String> = texts.iter().cloned().chain(mixed).collect();
        let packed: Vec<Text> = all.iter().map(|text| dictionary.packed(text.clone().into())).collect();
        for (before, after) in all.iter().zip(&packed) {
            assert_eq!((&plain(after), after.len()), (before, before.len()));
            assert!(after.stored() <= before.len());
        }
    }

    #[test]
    fn samples_are_bounded_and_short_texts_stay_plain() {
        let dictionary = Dictionary::default();
        let mut rng = Rng::with_seed(1);
        for _ in 0..100 {
            drop(dictionary.pack(&random(&mut rng, 3_000)));
        }
        assert_eq!(lock(&dictionary.0).bytes().len(), MAX_SAMPLE_BYTES / 3_000 * 3_000);
        assert!(dictionary.pack(&"a".repeat(MIN_LENGTH - 1)).is_none());
        assert!(dictionary.pack(&"a".repeat(MIN_LENGTH)).is_some());
    }

    #[test]
    fn a_compressed_text_stays_as_it_is() {
        let dictionary = Dictionary::default();
        let Text::Packed { bytes, .. } = dictionary.packed(deployment(1).into()) else { panic!("plain") };
        let other = Text::Packed { bytes: Arc::clone(&bytes), length: 3, samples: Arc::default() };
        let again = dictionary.packed(other);
        assert!(matches!(again, Text::Packed { bytes: same, length: 3, .. } if Arc::ptr_eq(&bytes, &same)));
    }
}
