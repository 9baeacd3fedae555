//! What a job can need an accelerator to do.

use serde::{Deserialize, Serialize, Serializer};

/// An ability of an accelerator, by the word that `--needs` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ability {
    /// Arithmetic on bfloat16.
    Bf16,
    /// Arithmetic on 8-bit floats.
    Fp8,
    /// Arithmetic on 4-bit floats.
    Fp4,
    /// TF32 in matrix units.
    Tf32,
    /// FP64 at half the rate of FP32 or better.
    Fp64,
    /// `FlashAttention` 2 runs on it.
    Flash,
    /// Runs CUDA.
    Cuda,
    /// Runs `ROCm`.
    Rocm,
    /// Tied to its neighbours by `NVLink`.
    Nvlink,
    /// Tied to its neighbours by Infinity Fabric.
    Xgmi,
    /// Can be cut into MIG slices.
    Mig,
}

impl Ability {
    /// Every ability with the words that name it; the first is its own.
    const WORDS: [(Self, &'static [&'static str]); 11] = [
        (Self::Bf16, &["bf16", "bfloat16"]),
        (Self::Fp8, &["fp8", "float8"]),
        (Self::Fp4, &["fp4", "float4"]),
        (Self::Tf32, &["tf32"]),
        (Self::Fp64, &["fp64", "float64", "double"]),
        (Self::Flash, &["flash", "flash_attention", "flash-attention"]),
        (Self::Cuda, &["cuda"]),
        (Self::Rocm, &["rocm", "hip"]),
        (Self::Nvlink, &["nvlink"]),
        (Self::Xgmi, &["xgmi", "infinity-fabric"]),
        (Self::Mig, &["mig"]),
    ];

    /// Every ability.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::WORDS.iter().map(|(ability, _)| *ability)
    }

    /// The ability of that name, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.trim().to_ascii_lowercase();
        let found = Self::WORDS.iter().find(|(_, words)| words.contains(&word.as_str()));
        found.map(|(ability, _)| *ability)
    }

    /// Its own word.
    pub fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(ability, _)| *ability == self);
        found.and_then(|(_, words)| words.first()).copied().unwrap_or_default()
    }
}

impl Serialize for Ability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ability_is_found_by_its_own_word() {
        for ability in Ability::all() {
            assert_eq!(Ability::parse(ability.word()), Some(ability));
        }
        assert_eq!(Ability::parse(" BFloat16"), Some(Ability::Bf16));
        assert_eq!(Ability::parse("warp"), None);
    }
}
