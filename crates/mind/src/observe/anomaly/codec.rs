//! Numbers into bytes and back, for the small states that the store keeps. What cannot be read is nothing, not an error:
//! a habit that is lost is learned again.

#[derive(Default)]
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn int(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn long(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn real(&mut self, value: f32) {
        self.0.extend(value.to_le_bytes());
    }

    /// A count, then each item; lists here are far shorter than a count can tell.
    pub(super) fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.int(u32::try_from(items.len()).unwrap_or(0));
        items.iter().for_each(|one| item(self, one));
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

pub(super) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(super) fn int(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// A weight: neither negative nor without end.
    pub(super) fn real(&mut self) -> Option<f32> {
        self.take().map(f32::from_le_bytes).filter(|value| value.is_finite() && *value >= 0.0)
    }

    pub(super) fn list<T>(
        &mut self,
        most: usize,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count =
            self.int().and_then(|count| usize::try_from(count).ok()).filter(|count| *count <= most)?;
        (0..count).map(|_| item(self)).collect()
    }

    pub(super) fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}
