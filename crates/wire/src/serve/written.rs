//! What waits for an answer to be written: run once, by whoever hands the answer's last byte to the transport.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

type Then = Box<dyn FnOnce() + Send>;

/// Shared by the call that says what is to be done and the letter that carries its answer. One that is dropped without
/// [`Written::happened`] did not happen, and does nothing.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Vec<Then>>>);

impl Written {
    /// Does this too.
    pub(crate) fn then(&self, then: impl FnOnce() + Send + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(then));
    }

    /// The transport has it. A message that is sent again does nothing again.
    pub(crate) fn happened(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_iter().for_each(|then| then());
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Written")
    }
}

/// Messages are alike by what they say.
impl PartialEq for Written {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Written {}
