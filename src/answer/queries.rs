//! Vectors of the questions asked last, so that the same question does not load the model again.
//!
//! A question is kept as a hash. The file is bounded and private; one that is not as it was written,
//! or is of another model, is as good as none.

use crate::host::Store;
use crate::retrieve::{Space, model_space};

const FILE: &str = "questions.vectors";
/// So many questions are kept, the last ones: 200 KB.
const KEPT: usize = 128;
const HASH: usize = 32;
const VALUE: usize = size_of::<f32>();

type Hash = [u8; HASH];

/// The questions asked last, the oldest first.
pub(super) struct Queries {
    store: Store,
    space: Space,
    /// Read when the first question comes.
    kept: Option<Vec<(Hash, Vec<f32>)>>,
}

impl Queries {
    pub(super) fn of(store: Store) -> Self {
        Self { store, space: model_space(), kept: None }
    }

    /// Forgets all of them.
    pub(super) fn forget(store: &Store) {
        // What cannot be removed is of no use without the model.
        let _ = store.remove(FILE);
    }

    /// The vector of a question that was asked before.
    pub(super) fn get(&mut self, text: &str) -> Option<Vec<f32>> {
        let hash = self.hash(text);
        let found = self.kept().iter().find(|(known, _)| *known == hash);
        found.map(|(_, vector)| vector.clone())
    }

    /// Keeps the vector of a question. Where nothing can be kept, nothing is.
    pub(super) fn keep(&mut self, text: &str, vector: &[f32]) {
        let hash = self.hash(text);
        if vector.len() != self.space.dimensions {
            return;
        }
        let kept = self.kept();
        kept.push((hash, vector.to_vec()));
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
        let file = encode(kept);
        let _ = self.store.replace(FILE, &file);
    }

    /// Stands for a question to this model.
    fn hash(&self, text: &str) -> Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.space.to_string().as_bytes());
        hasher.update(self.space.weights.as_bytes());
        hasher.update(b"\n").update(text.as_bytes());
        *hasher.finalize().as_bytes()
    }

    fn kept(&mut self) -> &mut Vec<(Hash, Vec<f32>)> {
        let (store, dimensions) = (&self.store, self.space.dimensions);
        self.kept.get_or_insert_with(|| {
            let file = store.read(FILE).ok().flatten().unwrap_or_default();
            decode(&file, dimensions).unwrap_or_default()
        })
    }
}

/// The hash of all that follows, and the questions.
fn encode(kept: &[(Hash, Vec<f32>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (hash, vector) in kept {
        body.extend_from_slice(hash);
        body.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
    }
    [blake3::hash(&body).as_bytes(), body.as_slice()].concat()
}

fn decode(file: &[u8], dimensions: usize) -> Option<Vec<(Hash, Vec<f32>)>> {
    let (written, body) = file.split_first_chunk::<HASH>()?;
    let row = HASH + dimensions * VALUE;
    if blake3::hash(body).as_bytes() != written || !body.len().is_multiple_of(row) {
        return None;
    }
    let questions = body.chunks_exact(row).take(KEPT).filter_map(|row| {
        let (hash, values) = row.split_first_chunk::<HASH>()?;
        let (values, _) = values.as_chunks::<VALUE>();
        Some((*hash, values.iter().map(|value| f32::from_le_bytes(*value)).collect()))
    });
    Some(questions.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn store(name: &str) -> Store {
        let name = format!("jobwise-queries-{name}-{}", std::process::id());
        Store::at(std::env::temp_dir().join(name))
    }

    #[test]
    fn the_last_questions_come_back_and_the_oldest_go() {
        let store = store("last");
        let vector = |n: u16| vec![f32::from(n); model_space().dimensions];
        for n in 0..200 {
            Queries::of(store.clone()).keep(&format!("question {n}"), &vector(n));
        }
        let mut queries = Queries::of(store.clone());
        assert_eq!(queries.get("question 199"), Some(vector(199)));
        assert_eq!(queries.get("question 72"), Some(vector(72)));
        assert_eq!(queries.get("question 71"), None);
        assert_eq!(queries.get("question"), None);
        // A vector of another length is of another model.
        queries.keep("short", &[1.0]);
        assert_eq!(queries.get("short"), None);
        let mut other = Queries::of(store.clone());
        other.space.weights = "another".to_owned();
        assert_eq!(other.get("question 199"), None);
        Queries::forget(&store);
        assert_eq!(Queries::of(store.clone()).get("question 199"), None);
        std::fs::remove_dir_all(store.root()).expect("removed");
    }

    proptest! {
        #[test]
        fn any_file_is_taken_and_a_damaged_one_is_none(
            bytes: Vec<u8>, at in 0_usize..1_000, flip in 1_u8..,
        ) {
            prop_assert!(decode(&bytes, 2).is_none_or(|kept| kept.is_empty() || bytes.len() > HASH));
            let mut file = encode(&[([7; HASH], vec![0.5, -0.5])]);
            let at = at % file.len();
            file[at] ^= flip;
            prop_assert_eq!(decode(&file, 2), None);
            prop_assert_eq!(decode(&file[..at], 2), None);
        }
    }
}
