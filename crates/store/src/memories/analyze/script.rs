//! Which writing system a letter belongs to, as far as the analyzer treats them differently. Refuses the finer
//! distinctions of Unicode: what is not listed is `Other`, and is neither stemmed nor cut.

/// A writing system, by how its words are found and reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Latin,
    Greek,
    Cyrillic,
    Arabic,
    Hebrew,
    Tamil,
    /// Han and kana: no spaces between words, and the two mix inside one.
    East,
    Hangul,
    Thai,
    Lao,
    Khmer,
    Myanmar,
    /// A letter of any other script.
    Other,
    /// Belongs to the script around it.
    Digit,
}

impl Script {
    /// The script of a letter or digit in composed form.
    pub(super) fn of(c: char) -> Self {
        match u32::from(c) {
            0x30..=0x39 | 0x660..=0x669 | 0x6f0..=0x6f9 | 0x966..=0x96f => Self::Digit,
            0x41..=0x2af | 0x1e00..=0x1eff | 0x2c60..=0x2c7f | 0xa720..=0xa7ff | 0xab30..=0xab6f => {
                Self::Latin
            }
            0x370..=0x3ff | 0x1f00..=0x1fff => Self::Greek,
            0x400..=0x52f | 0x1c80..=0x1c8f | 0x2de0..=0x2dff | 0xa640..=0xa69f => Self::Cyrillic,
            0x590..=0x5ff => Self::Hebrew,
            0x600..=0x6ff | 0x750..=0x77f | 0x870..=0x8ff => Self::Arabic,
            0xb80..=0xbff => Self::Tamil,
            0xe00..=0xe7f => Self::Thai,
            0xe80..=0xeff => Self::Lao,
            0x1000..=0x109f | 0xa9e0..=0xa9ff | 0xaa60..=0xaa7f => Self::Myanmar,
            0x1100..=0x11ff | 0x3130..=0x318f | 0xa960..=0xa97f | 0xac00..=0xd7ff => Self::Hangul,
            0x1780..=0x17ff => Self::Khmer,
            0x2e80..=0x2fdf | 0x3005..=0x3007 | 0x3021..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf => {
                Self::East
            }
            0x4e00..=0x9fff | 0xf900..=0xfaff | 0x1aff0..=0x1b16f | 0x20000..=0x3ffff => Self::East,
            _ => Self::Other,
        }
    }

    /// Whether words of this script are cut into pairs of letters: nothing marks where one ends, or (Hangul) endings
    /// grow onto words in ways that no stemmer here knows.
    pub(super) fn is_paired(self) -> bool {
        matches!(self, Self::East | Self::Hangul | Self::Thai | Self::Lao | Self::Khmer | Self::Myanmar)
    }

    /// Whether a single letter of this script is a word of its own often enough to be searched for.
    pub(super) fn has_words_of_one_letter(self) -> bool {
        matches!(self, Self::East)
    }
}
