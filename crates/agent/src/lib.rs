//! The agent: turns (prompt, model, tools, reply) and the channels they run on. It acts only through the broker, reads
//! no file and no environment, and keeps all state in the store.
//!
//! | module | owns |
//! |---|---|
//! | [`model`] | the chat model client: two wire formats, one interface |
//! | [`event`] | what happens in a turn, from the model to the page |
//! | [`turn`] | one turn, the same for every channel |
//! | [`telegram`] | the Telegram channel |
//! | [`schedule`] | timetables, and the scheduler that runs due jobs |
//! | [`usage`] | the requests to a model: budgets, tokens on record, prices |
//! | [`web_turns`] | web turns that continue when the page that started them closes |

pub mod event;
pub mod model;
pub mod schedule;
pub mod telegram;
pub mod turn;
pub mod usage;
pub mod web_turns;

use futures_util::future::BoxFuture;

/// An async function that the caller supplies. Dropping its future cancels the work.
pub struct AsyncCallback<I, O>(Box<dyn Fn(I) -> BoxFuture<'static, O> + Send + Sync>);

impl<I, O> AsyncCallback<I, O> {
    pub fn new<F>(callback: impl Fn(I) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = O> + Send + 'static,
    {
        Self(Box::new(move |input| Box::pin(callback(input))))
    }

    pub(crate) fn call(&self, input: I) -> BoxFuture<'static, O> {
        (self.0)(input)
    }
}
