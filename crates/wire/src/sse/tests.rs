//! Tests for the grammar of server-sent events, the size limit, and independence of the chunking.

use proptest::prelude::*;

use super::*;

type Read = (Vec<Event>, Result<End, SseError>);

fn read_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, max_bytes: usize) -> Read {
    let mut parser = Parser::new(max_bytes);
    let mut events = VecDeque::new();
    for chunk in chunks {
        if let Err(error) = parser.push(chunk, &mut events) {
            assert_eq!(parser.push(b"data: x\n\n", &mut events), Err(error), "a fault lasts");
            return (events.into(), Err(error));
        }
    }
    (events.into(), Ok(parser.finish()))
}

fn read(text: &[u8]) -> Read {
    read_chunks([text], 1000)
}

fn event(name: &str, data: &str, id: Option<&str>) -> Event {
    Event { name: name.to_owned(), data: data.to_owned(), id: id.map(Into::into) }
}

fn message(data: &str) -> Event {
    event("message", data, None)
}

#[test]
fn fields_make_an_event_and_the_id_lasts() {
    let text = b": hello\nevent: ping\nid: 7\ndata: one\ndata:two\ndata\nother: x\n\ndata: next\n\n";
    let expected = vec![event("ping", "one\ntwo\n", Some("7")), event("message", "next", Some("7"))];
    assert_eq!(read(text), (expected, Ok(End::Complete)));
}

#[test]
fn every_line_end_ends_a_line() {
    for text in [
        "data: a\ndata: b\n\n",
        "data: a\r\ndata: b\r\n\r\n",
        "data: a\rdata: b\r\r",
        "data: a\r\ndata: b\r\n\n",
    ] {
        assert_eq!(read(text.as_bytes()), (vec![message("a\nb")], Ok(End::Complete)), "{text:?}");
    }
}

#[test]
fn only_one_space_after_the_colon_goes() {
    assert_eq!(read(b"data:  a: b \n\n").0, vec![message(" a: b ")]);
}

#[test]
fn a_bom_is_skipped_at_the_start_only() {
    assert_eq!(read(b"\xEF\xBB\xBFdata: a\n\n").0, vec![message("a")]);
    assert_eq!(read(b"data: a\n\n\xEF\xBB\xBFdata: b\n\n").0, vec![message("a")]);
}

#[test]
fn an_event_needs_data_but_the_data_may_be_empty() {
    assert_eq!(read(b"event: x\n\ndata:\n\n").0, vec![message("")]);
}

#[test]
fn an_id_with_nul_is_ignored_and_an_empty_one_counts() {
    let text = b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\nid\ndata: c\n\n";
    let expected = vec![
        event("message", "a", Some("1")),
        event("message", "b", Some("1")),
        event("message", "c", Some("")),
    ];
    assert_eq!(read(text).0, expected);
}

#[test]
fn retry_is_kept_when_it_is_a_number() {
    let mut parser = Parser::new(100);
    let mut events = VecDeque::new();
    parser
        .push(b"retry: 1500\nretry: soon\nretry:\nretry: +1\nretry: 99999999999999999999999\n\n", &mut events)
        .unwrap();
    assert_eq!((parser.retry(), events.len()), (Some(Duration::from_millis(1500)), 0));
}

#[test]
fn an_event_without_its_blank_line_is_dropped_and_reported() {
    for text in ["data: a", "data: a\n", "event: x\r\n", "data: a\n\ndat"] {
        let (events, end) = read(text.as_bytes());
        assert_eq!(end, Ok(End::Truncated), "{text:?}");
        assert!(events.len() <= 1 && !events.contains(&message("dat")));
    }
    for text in ["", "data: a\n\n", ": comment\n", ": half a comm", "data: a\r\r\n"] {
        assert_eq!(read(text.as_bytes()).1, Ok(End::Complete), "{text:?}");
    }
}

#[test]
fn the_cap_counts_what_one_event_holds_and_not_the_stream() {
    let many = "data: 1234\n\n".repeat(100);
    assert_eq!(read_chunks([many.as_bytes()], 10).0.len(), 100);
    let comments = ": 345678\n".repeat(100) + "data: 1234\n\n";
    assert_eq!(read_chunks([comments.as_bytes()], 10), (vec![message("1234")], Ok(End::Complete)));
    let too_long = Err(SseError::TooLong { max_bytes: 10 });
    assert_eq!(read_chunks([b"data: 12345\n\n".as_slice()], 10), (vec![], too_long));
    assert_eq!(
        read_chunks([b"data: 1\n\ndata: 12\ndata: 123\n\n".as_slice()], 10),
        (vec![message("1")], too_long)
    );
    assert_eq!(read_chunks([[b':'; 11].as_slice()], 10), (vec![], too_long));
}

#[test]
fn bytes_that_are_not_utf8_are_refused_but_in_comments() {
    assert_eq!(read(b": \xFF\ndata: a\n\n").0, vec![message("a")]);
    assert_eq!(read(b"data: a\n\ndata: \xFF\n\n"), (vec![message("a")], Err(SseError::NotUtf8)));
}

#[test]
fn a_character_may_be_split_between_chunks() {
    let text = "data: é€🦀\n\n".as_bytes();
    assert_eq!(read_chunks(text.chunks(1), 100).0, vec![message("é€🦀")]);
}

/// Streams built from significant fragments, so that random text exercises the grammar.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"data: ".to_vec()),
        Just(b"data".to_vec()),
        Just(b"event: x".to_vec()),
        Just(b"id: 1".to_vec()),
        Just(b"retry: 5".to_vec()),
        Just(b": note".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just("é€🦀".as_bytes().to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn chunking_never_changes_the_events(
        text in stream(),
        cuts in proptest::collection::vec(0_usize..200, 0..20),
        max_bytes in 5_usize..60,
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]);
        let whole = read_chunks([text.as_slice()], max_bytes);
        prop_assert_eq!(&read_chunks(chunks, max_bytes), &whole);
        prop_assert_eq!(&read_chunks(text.chunks(1), max_bytes), &whole);
    }
}
