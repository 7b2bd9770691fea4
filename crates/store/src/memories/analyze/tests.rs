//! The analyzer on many kinds of writing: what must be found by what, and that nothing breaks it.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn terms_of(text: &str) -> BTreeSet<Term> {
    document(text).chunks.into_iter().flat_map(|chunk| chunk.counts.into_keys()).collect()
}

/// Whether every word of the question occurs in the memory.
fn finds(asked: &str, memory: &str) -> bool {
    let indexed = terms_of(memory);
    let asked = question(asked, 64);
    !asked.is_empty() && asked.iter().all(|word| indexed.contains(&word.term))
}

#[test]
fn forms_of_a_word_find_each_other() {
    for (asked, memory) in [
        ("Where did she run?", "I was running home"),
        ("who bought mice", "she buys a mouse"),
        ("Who went hiking?", "They go on a hike"),
        ("CAFÉ", "the cafe"),
        ("cafe", "cafe\u{301}s"),
        ("Strasse", "die Straße"),
        ("Ｔｏｋｙｏ", "tokyo"),
        ("ﬁnance", "finance"),
        ("Caroline's dog", "Caroline has dogs"),
        ("O'Brien", "Mr O’Brien"),
        ("naïve", "naive"),
        ("Łódź", "lodz"),
        ("istanbul", "İSTANBUL"),
    ] {
        assert!(finds(asked, memory), "`{asked}` must find `{memory}`");
        assert!(finds(memory.split(' ').next_back().unwrap(), memory), "`{memory}` must find itself");
    }
}

#[test]
fn scripts_are_found_in_their_own_way() {
    for (asked, memory) in [
        ("книги", "он купил книгу"),
        ("ёлка", "елка"),
        ("ΟΔΟΣ", "οδός"),
        ("الكتب", "كُتُب"),
        ("東京", "私は昨日東京で猫を見ました"),
        ("猫", "私は昨日東京で猫を見ました"),
        ("カメラ", "ｶﾒﾗを買った"),
        ("고양이", "고양이가 잔다"),
        ("แมว", "ฉันเห็นแมวเมื่อวาน"),
        ("ຫມາ", "ຂ້ອຍມີຫມາ"),
        ("ឆ្មា", "ខ្ញុំឃើញឆ្មា"),
        ("ကြောင်", "ကျွန်တော်ကြောင်မြင်တယ်"),
        ("बिल्ली", "मैंने बिल्ली देखी"),
        ("שלום", "שָׁלוֹם עולם"),
        ("٢٠٢٣", "in 2023"),
        ("iPhone", "私のiPhoneです"),
    ] {
        assert!(finds(asked, memory), "`{asked}` must find `{memory}`");
    }
    assert!(!finds("京東", "東京都"), "the order of letters matters");
    assert!(!finds("か", "が"), "a voiced letter is another letter");
}

#[test]
fn stop_words_count_only_where_there_is_nothing_else() {
    assert_eq!(terms_of("The cat and I").len(), 1);
    assert_eq!(question("What was the cat?", 64).len(), 1);
    assert!(finds("to be or not to be", "To be, or not to be"));
    assert!(!finds("to be or not", "to be a dancer"));
    assert!(terms_of("They won't sing").is_disjoint(&terms_of("she won")), "a negation is no victory");
    assert!(terms_of("").is_empty() && terms_of("?! … 🎉").is_empty());
}

#[test]
fn long_texts_are_cut_into_chunks_and_the_last_is_never_tiny() {
    let lengths = |count: usize| -> Vec<u16> {
        let text: Vec<String> = (0..count).map(|number| format!("w{number}")).collect();
        document(&text.join(" ")).chunks.iter().map(|chunk| chunk.length).collect()
    };
    assert_eq!(lengths(0), [0]);
    assert_eq!(lengths(5), [5]);
    assert_eq!(lengths(40), [40]);
    assert_eq!(lengths(53), [53]);
    assert_eq!(lengths(54), [40, 14]);
    assert_eq!(lengths(93), [40, 53]);
}

#[test]
fn questions_are_noticed() {
    let flags = |text: &str| (document(text).asks, document(text).ends_asking);
    assert_eq!(flags("How are you?"), (true, true));
    assert_eq!(flags("How are you? I am fine."), (true, false));
    assert_eq!(flags("He asked: \"Really?\" "), (true, true));
    assert_eq!(flags("元気ですか？"), (true, true));
    assert_eq!(flags("see https://example.org/?q=1 there"), (false, false));
    assert_eq!(flags("Fine."), (false, false));
}

#[test]
fn words_are_bounded_and_questions_too() {
    let long = "x".repeat(70_000);
    assert!(finds(&long, &long));
    assert_eq!(terms_of(&long), terms_of(&"x".repeat(64)));
    let many: Vec<String> = (0..500).map(|number| format!("w{number}")).collect();
    assert_eq!(question(&many.join(" "), 64).len(), 64);
}

#[test]
fn names_leave_out_initials() {
    assert_eq!(name("J. R. Tolkien"), name("tolkien"));
    assert!(name("Al").is_empty());
    assert_eq!(name("田中"), [question("田中", 1)[0].name]);
}

/// Letters of the scripts that are treated in a way of their own, marks, digits and what stands between words.
const ALPHABET: &str = "[a-zA-Z0-9 '\u{2019}?.àéßøłİıсбёйыъαάςσΩابتةُ\u{640}אבָ\u{1100}\u{1161}가나一丁东京かがー々กขาํ่ກຂ់កခာ்தமிदी्\u{200d}\u{301}٢ﷺ🎉]";

fn writing(pattern: &str) -> impl Strategy<Value = String> {
    prop::string::string_regex(&pattern.replace("LETTER", ALPHABET)).unwrap()
}

proptest! {
    #[test]
    fn any_text_has_the_same_terms_composed_or_not(text in ".{0,200}") {
        let decomposed: String =
            icu_normalizer::DecomposingNormalizerBorrowed::new_nfd().normalize_iter(text.chars()).collect();
        prop_assert_eq!(terms_of(&text), terms_of(&decomposed));
    }

    #[test]
    fn every_text_finds_itself(text in writing("LETTER{0,120}")) {
        let indexed = terms_of(&text);
        for word in question(&text, usize::MAX) {
            prop_assert!(indexed.contains(&word.term));
        }
    }

    #[test]
    fn chunks_account_for_every_term(text in writing("(LETTER{1,9} ){0,150}")) {
        let document = document(&text);
        for chunk in &document.chunks {
            let counted: u64 = chunk.counts.values().map(|count| u64::from(*count)).sum();
            prop_assert_eq!(counted, u64::from(chunk.length));
        }
        let most = document.chunks.iter().map(|chunk| chunk.length).max().unwrap_or(0);
        prop_assert!(usize::from(most) < CHUNK_TERMS + CHUNK_TERMS / 3 + 1);
    }

    #[test]
    fn no_word_breaks_a_stemmer(word in "[a-z]{1,12}|[а-яё]{1,12}|[α-ω]{1,12}|[ء-ي]{1,12}|[அ-ஹா-்]{1,12}") {
        prop_assert!(question(&word, 64).len() <= 1 || word.chars().count() > 1);
    }
}
