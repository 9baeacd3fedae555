//! all-MiniLM-L6-v2, the one embedding model: sentences of up to 256 tokens as 384 numbers.
//!
//! It is run by ONNX Runtime, a shared library, through `fastembed`. Both are on the machine or not;
//! bytes and path are given. Nothing is loaded before a text is to be embedded, and whatever is
//! wrong with either is an error that says so: `fastembed` by itself would end the process.
//!
//! The tokenizer is made here from the model's vocabulary, so that a model is one file.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fastembed::{
    InitOptionsUserDefined, Pooling, TextEmbedding, TokenizerFiles, UserDefinedEmbeddingModel,
};
use ort::environment::Environment;
use serde_json::{Value, json};

use super::{EmbedError, Embedder, Space};
use crate::host::packages::MODEL;

/// One token a line; its number is its line, from 0.
const VOCABULARY: &str = include_str!("minilm/vocabulary.txt");
/// The SHA-256 of that.
const VOCABULARY_HASH: &str = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3";

/// The longest text the model was trained on, in tokens; what is longer is cut.
const TOKENS: usize = 256;
const DIMENSIONS: usize = 384;
/// Texts at once. More are not faster on a few cores (180 sections took 32 s one by one and 34 s by
/// eights), take twice the memory (290 and 540 MB), and the vector of a text would depend, in its
/// last digits, on its company.
const BATCH: usize = 1;
/// A thread that waits for the next piece of work by trying takes time that a login node has not:
/// of 13 s of processor time 5 s.
const QUIET: (&str, &str) = ("session.intra_op.allow_spinning", "0");

/// What vectors of this model can be compared with.
pub fn space() -> Space {
    Space {
        model: "all-MiniLM-L6-v2".to_owned(),
        weights: MODEL.sha256.to_owned(),
        tokenizer: VOCABULARY_HASH.to_owned(),
        pooling: format!("mean of {TOKENS} tokens"),
        dimensions: DIMENSIONS,
    }
}

/// The model where it is not to be run: vectors that were made before can be compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModel;

impl Embedder for NoModel {
    fn space(&self) -> Space {
        space()
    }

    fn embed(&self, _texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Err(EmbedError::NoModel)
    }
}

/// The model, loaded.
pub struct MiniLm(Mutex<TextEmbedding>);

impl std::fmt::Debug for MiniLm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MiniLm")
    }
}

impl MiniLm {
    /// Loads the model from its bytes, which must be those of [`MODEL`], and the library from
    /// its path: the system's loader takes nothing else.
    pub fn open(model: Vec<u8>, library: &Path, threads: usize) -> Result<Self, EmbedError> {
        let environment = environment(library)?;
        let tokenizer = TokenizerFiles {
            tokenizer_file: tokenizer().to_string().into_bytes(),
            config_file: json!({ "pad_token_id": 0 }).to_string().into_bytes(),
            special_tokens_map_file: b"{}".to_vec(),
            tokenizer_config_file: json!({ "model_max_length": TOKENS, "pad_token": "[PAD]" })
                .to_string()
                .into_bytes(),
        };
        let model = UserDefinedEmbeddingModel::new(model, tokenizer).with_pooling(Pooling::Mean);
        let options = InitOptionsUserDefined::new()
            .with_environment(environment)
            .with_max_length(TOKENS)
            .with_intra_threads(threads)
            .with_session_config(QUIET.0, QUIET.1);
        let loaded = TextEmbedding::try_new_from_user_defined(model, options);
        loaded.map(|loaded| Self(Mutex::new(loaded))).map_err(unusable)
    }
}

impl Embedder for MiniLm {
    fn space(&self) -> Space {
        space()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut model = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let vectors = model.embed(texts, Some(BATCH)).map_err(unusable)?;
        if vectors.len() != texts.len() || vectors.iter().any(|one| one.len() != DIMENSIONS) {
            return Err(EmbedError::Unusable("its answer has another shape".to_owned()));
        }
        Ok(vectors)
    }
}

fn unusable(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Unusable(error.to_string())
}

/// The library's state, of which a process has one: the first that is loaded stays.
fn environment(library: &Path) -> Result<Environment, EmbedError> {
    static LOADED: Mutex<Option<Environment>> = Mutex::new(None);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(environment) = loaded.as_ref() {
        return Ok(environment.clone());
    }
    // What it logs by itself is of graphics cards that a login node does not have.
    let quiet = Arc::new(|_: ort::logging::LogLevel, _: &str, _: &str, _: &str, _: &str| {});
    let environment = ort::init_from(library)
        .map_err(unusable)?
        .with_telemetry(false)
        .with_logger(quiet)
        .build()
        .map_err(unusable)?;
    *loaded = Some(environment.clone());
    Ok(environment)
}

/// The tokenizer of BERT models without case, as the `tokenizers` library reads it.
fn tokenizer() -> Value {
    let vocabulary: serde_json::Map<String, Value> =
        VOCABULARY.lines().zip(0_u32..).map(|(token, id)| (token.to_owned(), id.into())).collect();
    let id = |token: &str| vocabulary.get(token).cloned().unwrap_or_default();
    let special = |token: &str| {
        json!({
            "id": id(token), "content": token, "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false,
        })
    };
    let frame = |token: &str| json!({ "SpecialToken": { "id": token, "type_id": 0 } });
    let framed = |token: &str| json!({ "id": token, "ids": [id(token)], "tokens": [token] });
    let text = json!({ "Sequence": { "id": "A", "type_id": 0 } });
    json!({
        "version": "1.0",
        "added_tokens": (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(special)),
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true,
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [frame("[CLS]"), text, frame("[SEP]")],
            "pair": [],
            "special_tokens": { "[CLS]": framed("[CLS]"), "[SEP]": framed("[SEP]") },
        },
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::packages::Package;

    #[test]
    fn the_vocabulary_is_the_one_that_is_named() {
        let vocabulary = Package { sha256: VOCABULARY_HASH, ..MODEL };
        assert_eq!(vocabulary.verify("vocabulary", VOCABULARY.as_bytes()), Ok(()));
        // BERT's own numbers, as its configuration has them: padding is 0, of 30522.
        assert_eq!((VOCABULARY.lines().next(), VOCABULARY.lines().count()), (Some("[PAD]"), 30522));
    }
}
